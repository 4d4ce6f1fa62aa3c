//! Whom a worker may call: the pools of this program by their names, and the functions that the
//! program itself offers.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock, RwLock};
use std::time::Duration;

use ostler_proto::Body;
use ostler_store::{SessionSettings, Sessions};

use crate::desk::Desk;
use crate::pool::{Pool, WeakPool};

/// Pools that share a directory can call each other. Cheap to clone; all clones are one.
#[derive(Clone, Default)]
pub struct Directory {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Weak: a pool lives as long as its handles, not as long as its name is known.
    pools: RwLock<BTreeMap<String, WeakPool>>,
    host: RwLock<BTreeMap<String, HostFunction>>,
    sessions: OnceLock<Sessions>,
    desk: OnceLock<Arc<dyn Desk>>,
}

type HostFuture = Pin<Box<dyn Future<Output = Result<Body, HostError>> + Send>>;
pub(crate) type HostFunction = Arc<dyn Fn(HostCall) -> HostFuture + Send + Sync>;

/// A call of a function of the embedding program.
#[derive(Debug, Clone)]
pub struct HostCall {
    pub function: String,
    pub body: Body,
    /// Who calls.
    pub pool: Arc<str>,
    pub worker: Arc<str>,
    /// The request that waits for it.
    pub request: Option<Arc<str>>,
    /// Until the deadline of that request. The call is dropped then.
    pub time_left: Duration,
}

/// Why a function of the embedding program gave no result; the worker sees it as a `CallError`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostError {
    pub code: String,
    pub message: String,
    pub retryable: bool,
}

impl HostError {
    pub fn new(message: impl Into<String>) -> Self {
        HostError { code: "host_error".to_owned(), message: message.into(), retryable: false }
    }
}

impl<E: std::error::Error> From<E> for HostError {
    fn from(error: E) -> Self {
        HostError::new(error.to_string())
    }
}

impl Directory {
    pub fn new() -> Self {
        Directory::default()
    }

    /// Calls of its pools belong to these sessions. Without them there are some in memory.
    #[must_use]
    pub fn with_sessions(self, sessions: Sessions) -> Self {
        self.follow(&sessions);
        assert!(
            self.shared.sessions.set(sessions).is_ok(),
            "a directory has one store of sessions"
        );
        self
    }

    /// The sessions of its pools. Inside a tokio runtime.
    pub fn sessions(&self) -> Sessions {
        let in_memory = || {
            let sessions = Sessions::in_memory(SessionSettings::default());
            self.follow(&sessions);
            sessions
        };
        self.shared.sessions.get_or_init(in_memory).clone()
    }

    /// Where the workers of its pools hand in jobs. Once.
    pub fn set_desk(&self, desk: Arc<dyn Desk>) {
        assert!(self.shared.desk.set(desk).is_ok(), "a directory has one desk");
    }

    pub(crate) fn desk(&self) -> Option<Arc<dyn Desk>> {
        self.shared.desk.get().cloned()
    }

    /// Bindings end with their sessions.
    fn follow(&self, sessions: &Sessions) {
        let shared = Arc::downgrade(&self.shared);
        sessions.watch(move |notice| {
            let Some(shared) = shared.upgrade() else { return };
            let pools = shared.pools.read().expect("no code panics here").clone();
            for pool in pools.values().filter_map(WeakPool::upgrade) {
                pool.driver().on_session_notice(notice);
            }
        });
    }

    /// Offers a function to all workers, as `ostler.call("host", name, …)`.
    pub fn offer<F, A>(&self, name: impl Into<String>, function: F)
    where
        F: Fn(HostCall) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Body, HostError>> + Send + 'static,
    {
        let function: HostFunction = Arc::new(move |call| Box::pin(function(call)));
        self.shared.host.write().expect("no code panics here").insert(name.into(), function);
    }

    pub(crate) fn enter(&self, pool: &Pool) {
        let mut pools = self.shared.pools.write().expect("no code panics here");
        pools.retain(|_, pool| pool.upgrade().is_some());
        pools.insert(pool.name().to_owned(), pool.downgrade());
    }

    /// The pool of this name, if it runs.
    pub fn pool(&self, name: &str) -> Option<Pool> {
        self.shared.pools.read().expect("no code panics here").get(name)?.upgrade()
    }

    /// The names of its pools, sorted.
    pub fn pools(&self) -> Vec<String> {
        self.shared.pools.read().expect("no code panics here").keys().cloned().collect()
    }

    pub(crate) fn host_function(&self, name: &str) -> Option<HostFunction> {
        self.shared.host.read().expect("no code panics here").get(name).cloned()
    }

    pub(crate) fn host_functions(&self) -> Vec<String> {
        self.shared.host.read().expect("no code panics here").keys().cloned().collect()
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pools, host) = (self.pools(), self.host_functions());
        f.debug_struct("Directory").field("pools", &pools).field("host", &host).finish()
    }
}
