//! What is told of sessions, and to whom.

use std::fmt;
use std::panic;
use std::sync::{Arc, PoisonError, RwLock};

/// Something happened and is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionNotice {
    Created {
        id: Arc<str>,
        number: u64,
    },
    /// Its metadata, times or programs.
    Updated {
        id: Arc<str>,
        number: u64,
        version: u64,
    },
    Deleted {
        id: Arc<str>,
        number: u64,
    },
    Expired {
        id: Arc<str>,
        number: u64,
    },
    /// 80 % of the sessions that may live do. Told again when they were fewer than 75 % between.
    QuotaWarning {
        current: u64,
        max: u64,
    },
    /// By the clock or by hand.
    Swept {
        removed: u64,
    },
}

type Listener = dyn Fn(&SessionNotice) + Send + Sync;

/// Those who are told, in the order of the commits and before the operation is answered.
#[derive(Default)]
pub(crate) struct Watchers {
    listeners: RwLock<Vec<Arc<Listener>>>,
}

impl Watchers {
    pub fn add(&self, listener: impl Fn(&SessionNotice) + Send + Sync + 'static) {
        let mut listeners = self.listeners.write().unwrap_or_else(PoisonError::into_inner);
        listeners.push(Arc::new(listener));
    }

    /// No lock is held meanwhile: a listener may ask the store, or add another listener.
    pub fn tell(&self, notices: &[SessionNotice]) {
        if notices.is_empty() {
            return;
        }
        let listeners = self.listeners.read().unwrap_or_else(PoisonError::into_inner).clone();
        for notice in notices {
            for listener in &listeners {
                // One that breaks must not take the store with it.
                let told = panic::catch_unwind(panic::AssertUnwindSafe(|| listener(notice)));
                if told.is_err() {
                    tracing::error!(?notice, "a listener panicked");
                }
            }
        }
    }
}

impl fmt::Debug for Watchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.listeners.read().unwrap_or_else(PoisonError::into_inner).len();
        f.debug_struct("Watchers").field("listeners", &count).finish()
    }
}
