//! A pool as others see it: its workers, its requests, what is remembered of them. Read-only.

use std::sync::Arc;

use jiff::Timestamp;
use ostler_core::{Affinity, PoolView, ProcessId, RequestId, WorkerId, WorkerView};

use crate::chronicle::MetricKey;
use crate::containment::Level;
use crate::dossier::{Dossier, PhaseStep, StatusStep};
use crate::failure::Condition;
use crate::link::{Connection, Link};
use crate::output::Output;
use crate::pool::Pool;
use crate::record::RequestRecord;
use crate::session::KeyedBy;
use crate::tally::{Counts, Tally};

/// Sessions of one worker that are listed.
const SESSIONS_SHOWN: usize = 100;

/// A worker as operators see it: the core's view, the process behind it, and what is remembered.
#[derive(Debug, Clone)]
pub struct WorkerInfo {
    pub name: String,
    pub view: WorkerView,
    pub pid: Option<i32>,
    pub connection: Connection,
    /// What a look at the process showed, if it fell silent.
    pub condition: Option<Condition>,
    /// What it last said was wrong with it.
    pub complaint: Option<String>,
    pub created: Timestamp,
    pub updated: Timestamp,
    /// When its process was started.
    pub started: Option<Timestamp>,
    pub last_active: Timestamp,
    /// Ids of the requests that it works on.
    pub requests: Vec<Arc<str>>,
    /// Ids of sessions that are bound to it, not more than a hundred.
    pub sessions: Vec<Arc<str>>,
    /// The workspace that it belongs to, where workspaces have workers of their own.
    pub workspace: Option<Arc<str>>,
    pub outcomes: Counts,
    /// What it wrote.
    pub output: Option<Arc<Output>>,
    /// Times it went from ready to busy or back.
    pub flips: u64,
}

impl WorkerInfo {
    /// The last lines that it wrote, oldest first.
    pub fn last_lines(&self, lines: usize) -> Vec<String> {
        self.output.as_ref().map_or_else(Vec::new, |output| output.tail(lines))
    }
}

/// What happened to a worker, oldest first.
#[derive(Debug, Clone, Default)]
pub struct WorkerHistory {
    pub phases: Vec<PhaseStep>,
    pub statuses: Vec<StatusStep>,
}

#[derive(Debug, Clone)]
pub struct PoolInfo {
    pub name: String,
    pub view: PoolView,
    pub affinity: Affinity,
    pub keyed_by: Option<KeyedBy>,
    pub level: Level,
    pub last_failure: Option<String>,
    pub workers: Vec<WorkerInfo>,
}

/// A request as others see it.
#[derive(Debug, Clone)]
pub struct RequestInfo {
    pub id: Arc<str>,
    pub record: RequestRecord,
    /// When each step of the record's history was.
    pub times: Vec<Timestamp>,
}

impl Pool {
    /// The pool and its workers as they are now.
    pub fn info(&self) -> PoolInfo {
        let driver = self.driver();
        let now = driver.clock.now();
        let (view, workers) = driver.look(|core, links| {
            let workers: Vec<(WorkerView, Option<Arc<Link>>)> = core
                .workers()
                .map(|view| {
                    let process = ProcessId { worker: view.id, generation: view.generation };
                    let link = links.get(&process).cloned();
                    (view, link)
                })
                .collect();
            (core.view(now), workers)
        });
        let mut info = PoolInfo {
            name: self.name().to_owned(),
            view,
            level: driver.launcher.level(),
            affinity: self.affinity(),
            keyed_by: self.keyed_by(),
            last_failure: driver.launcher.last_failure(),
            workers: driver.recall(|chronicle, live| {
                let name = |id: &RequestId| Some(driver.name_of(live.get(id)?));
                let describe = |(view, link): (WorkerView, Option<Arc<Link>>)| {
                    let requests = view.held.iter().filter_map(name).collect();
                    let dossier = chronicle.dossiers.get(&view.id);
                    self.describe(view, link.as_deref(), dossier, requests)
                };
                workers.into_iter().map(describe).collect()
            }),
        };
        // The store has a lock of its own: not under the driver's.
        for worker in &mut info.workers {
            worker.sessions = self.sessions_of(worker.view.id);
        }
        info
    }

    fn describe(
        &self,
        view: WorkerView,
        link: Option<&Link>,
        dossier: Option<&Dossier>,
        requests: Vec<Arc<str>>,
    ) -> WorkerInfo {
        let driver = self.driver();
        let process = ProcessId { worker: view.id, generation: view.generation };
        let last_active = driver.clock.timestamp(view.last_used);
        WorkerInfo {
            name: driver.launcher.name(process),
            pid: link.map(|link| link.pid),
            connection: link.map_or(Connection::Disconnected, Link::connection),
            condition: link.and_then(Link::condition),
            complaint: link.and_then(Link::complaint),
            created: dossier.map_or(last_active, |dossier| dossier.created),
            updated: dossier.map_or(last_active, |dossier| dossier.updated),
            started: dossier.and_then(|dossier| dossier.started),
            last_active,
            requests,
            sessions: Vec::new(),
            workspace: self
                .workspace_of(&view)
                .or_else(|| dossier.and_then(|dossier| dossier.workspace.clone())),
            outcomes: dossier.map_or_else(Counts::default, |dossier| dossier.outcomes.clone()),
            output: dossier.map(|dossier| Arc::clone(&dossier.output)),
            flips: dossier.map_or(0, |dossier| dossier.flips),
            view,
        }
    }

    /// Ids of sessions that are bound to a worker, not more than a hundred.
    pub fn sessions_of(&self, worker: WorkerId) -> Vec<Arc<str>> {
        let driver = self.driver();
        let bound = driver
            .look(|core, _| core.sessions_of(worker).take(SESSIONS_SHOWN).collect::<Vec<_>>());
        bound.into_iter().filter_map(|session| driver.session_id(session)).collect()
    }

    fn workspace_of(&self, view: &WorkerView) -> Option<Arc<str>> {
        let by_workspace = self.keyed_by() == Some(KeyedBy::Workspace);
        let key = view.key.filter(|_| by_workspace)?;
        self.driver().workspaces.name(key)
    }

    /// What happened to a worker, also to one that is gone by now.
    pub fn worker_history(&self, name: &str) -> Option<WorkerHistory> {
        self.with_dossier(name, |dossier| WorkerHistory {
            phases: dossier.phases.iter().copied().collect(),
            statuses: dossier.statuses.iter().copied().collect(),
        })
    }

    /// What a worker has written, also one that is gone by now.
    pub fn worker_output(&self, name: &str) -> Option<Arc<Output>> {
        self.with_dossier(name, |dossier| Arc::clone(&dossier.output))
    }

    /// The outputs of all workers that are remembered.
    pub fn outputs(&self) -> Vec<(Arc<str>, Arc<Output>)> {
        self.driver().recall(|chronicle, _| {
            let dossiers = chronicle.dossiers.values();
            dossiers.map(|d| (Arc::clone(&d.name), Arc::clone(&d.output))).collect()
        })
    }

    fn with_dossier<T>(&self, name: &str, look: impl FnOnce(&Dossier) -> T) -> Option<T> {
        self.driver().recall(|chronicle, _| {
            chronicle.dossiers.values().find(|dossier| &*dossier.name == name).map(look)
        })
    }

    /// The counts since the pool was started.
    pub fn tally(&self) -> Tally {
        self.driver().recall(|chronicle, _| chronicle.tally.clone())
    }

    /// What the workers measured themselves, the last of each series.
    pub fn metrics(&self) -> Vec<(MetricKey, f64)> {
        self.driver().recall(|chronicle, _| {
            chronicle.metrics.iter().map(|(key, value)| (key.clone(), *value)).collect()
        })
    }

    /// The requests without an end and the last that had one, the newest first.
    pub fn requests(&self) -> Vec<RequestInfo> {
        let driver = self.driver();
        let mut records = driver.recall(|chronicle, live| {
            let live = live.values().filter_map(|exchange| exchange.record());
            live.chain(chronicle.register.latest().cloned()).collect::<Vec<_>>()
        });
        records.sort_by_key(|record| std::cmp::Reverse(record.number));
        records.into_iter().map(|record| self.inform(record)).collect()
    }

    /// A request of this pool by its id: the caller's own, or the one that was made for it.
    pub fn request(&self, id: &str) -> Option<RequestInfo> {
        let driver = self.driver();
        let number = driver.request_named(id)?;
        let record = driver.recall(|chronicle, live| {
            let live = live.get(&number).and_then(|exchange| exchange.record());
            live.or_else(|| chronicle.register.by_number(number).cloned())
        });
        record.map(|record| self.inform(record))
    }

    fn inform(&self, record: RequestRecord) -> RequestInfo {
        let driver = self.driver();
        let made = || crate::naming::made_id(driver.number, record.number).into();
        RequestInfo {
            id: record.id.clone().unwrap_or_else(made),
            times: record.history.iter().map(|step| driver.clock.timestamp(step.at)).collect(),
            record,
        }
    }
}
