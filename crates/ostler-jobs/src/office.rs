//! What all who work here share: the ledger, the pools, and what is known of the work in hand.
//!
//! The office hears what the ledger tells and passes it on. Everything it does with it is quick:
//! it is told on the clerk's own task.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use ostler_core::JobStatus;
use ostler_runtime::{Directory, EventLog};
use ostler_store::ledger::{JobId, Ledger, Notice};
use tokio::sync::{Notify, watch};

use crate::events;
use crate::follow::Followers;
use crate::foreman::Foreman;
use crate::roll::Roll;
use crate::tasks::Tasks;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSettings {
    /// For jobs that name none, from their start to their end. None: no bound.
    pub timeout: Option<Duration>,
    /// For jobs that name none. None: the only pool that there is.
    pub default_pool: Option<String>,
    /// Bytes of what a generator may yield in all.
    pub result_max: u64,
}

impl Default for JobSettings {
    fn default() -> Self {
        let timeout = Some(Duration::from_secs(3600));
        JobSettings { timeout, default_pool: None, result_max: 64 << 20 }
    }
}

/// How far the end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Working,
    /// Nothing is begun any more.
    Stopping,
    /// What still runs is given up.
    Hurrying,
}

#[derive(Debug)]
pub(crate) struct Office {
    me: Weak<Office>,
    pub ledger: Ledger,
    pub directory: Directory,
    pub log: Arc<EventLog>,
    pub settings: JobSettings,
    pub stage: watch::Sender<Stage>,
    pub roll: Arc<Roll>,
    pub followers: Followers,
    pub tasks: Tasks,
    /// Something is due sooner than the clock knows.
    pub due: Notify,
    foremen: Mutex<BTreeMap<String, Arc<Foreman>>>,
}

impl Office {
    pub fn open(
        ledger: Ledger,
        directory: Directory,
        log: Arc<EventLog>,
        settings: JobSettings,
    ) -> Arc<Office> {
        let office = Arc::new_cyclic(|me: &Weak<Office>| Office {
            me: me.clone(),
            ledger,
            directory,
            log,
            settings,
            stage: watch::Sender::new(Stage::Working),
            roll: Arc::default(),
            followers: Followers::default(),
            tasks: Tasks::default(),
            due: Notify::new(),
            foremen: Mutex::default(),
        });
        let me = Arc::downgrade(&office);
        office.ledger.watch(move |notices| {
            if let Some(office) = me.upgrade() {
                office.hear(notices);
            }
        });
        office
    }

    pub fn me(&self) -> Arc<Office> {
        self.me.upgrade().expect("it is in use")
    }

    pub fn working(&self) -> bool {
        *self.stage.borrow() == Stage::Working
    }

    fn foremen(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Foreman>>> {
        self.foremen.lock().expect("no code panics here")
    }

    /// Whoever runs the jobs of this pool. None: there is no such pool.
    fn foreman(&self, pool: &str) -> Option<Arc<Foreman>> {
        let mut foremen = self.foremen();
        if let Some(foreman) = foremen.get(pool) {
            return Some(Arc::clone(foreman));
        }
        if !self.working() || self.directory.pool(pool).is_none() {
            return None;
        }
        let foreman = Foreman::hire(self.me(), pool);
        foremen.insert(pool.to_owned(), Arc::clone(&foreman));
        Some(foreman)
    }

    /// They know the office and it knows them: one side has to let go.
    pub fn dismiss(&self) {
        self.foremen().clear();
    }

    /// Pools come with a reload and go with one: each has somebody who looks after its jobs.
    pub fn look_around(&self) {
        for pool in self.directory.pools() {
            if let Some(foreman) = self.foreman(&pool) {
                foreman.wake();
            }
        }
    }

    fn hear(&self, notices: &[Notice]) {
        let mut pools: HashMap<&str, Heard> = HashMap::new();
        let mut cancelled = false;
        for notice in notices {
            match notice {
                Notice::Ready { pool } => pools.entry(pool).or_default().ready = true,
                Notice::DueSooner => self.due.notify_one(),
                Notice::JobChanged { job, pool, from, to, reason } => {
                    self.changed(job, *to);
                    events::publish(&self.log, job, pool, *from, *to, reason.as_deref());
                    let heard = pools.entry(pool).or_default();
                    match (from, to) {
                        (_, JobStatus::Pending) => heard.more += 1,
                        // What is claimed is counted by whoever claims.
                        (Some(JobStatus::Pending), to) if *to != JobStatus::Running => {
                            heard.fewer += 1;
                        }
                        _ => {}
                    }
                }
                Notice::JobSaid { job, .. } | Notice::JobPruned { job } => self.followers.tell(job),
                Notice::CancelAsked { job, fence, .. } => {
                    self.roll.call_off(job, *fence);
                    cancelled = true;
                }
            }
        }
        if cancelled {
            // It may lie with one of them, fetched and not begun.
            self.foremen().values().for_each(|foreman| foreman.wake());
        }
        for (pool, heard) in pools {
            if let Some(foreman) = heard.matters().then(|| self.foreman(pool)).flatten() {
                foreman.hear(heard);
            }
        }
    }

    fn changed(&self, job: &JobId, to: JobStatus) {
        self.followers.tell(job);
        if to.terminal() {
            self.roll.ended(job);
        }
    }
}

/// What one commit said about the jobs of a pool.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Heard {
    pub ready: bool,
    pub more: usize,
    pub fewer: usize,
}

impl Heard {
    fn matters(self) -> bool {
        self.ready || self.more > 0 || self.fewer > 0
    }
}
