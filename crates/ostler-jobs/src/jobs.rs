//! Jobs, as servers, workers and embedding programs hold them.

use std::sync::Arc;
use std::time::Duration;

use ostler_runtime::{Directory, EventLog};
use ostler_store::ledger::job::{Job, NewJob, Submitted};
use ostler_store::ledger::key::Asked;
use ostler_store::ledger::{JobId, Ledger, LedgerError};
use tokio::sync::watch;

use crate::clock;
use crate::desk::OfficeDesk;
use crate::office::{JobSettings, Office, Stage};

/// How long what was given up has to let go, and its end to be stored.
const LAST_GRACE: Duration = Duration::from_secs(10);

/// Why a job was not taken. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    #[error("{0}")]
    Ledger(#[from] LedgerError),
    #[error("{}", unknown_pool(pool, known))]
    UnknownPool { pool: String, known: Vec<String> },
    #[error("the job wants {asked} workers at once and its pool has at most {max}")]
    TooManyWorkers { asked: u32, max: u32 },
}

fn unknown_pool(pool: &str, known: &[String]) -> String {
    let known = known.join(", ");
    match pool {
        "" => format!("the job names no pool and there is no default one; known: {known}"),
        pool => format!("there is no pool `{pool}`; known: {known}"),
    }
}

/// The jobs of a ledger, run on the pools of a directory. Cheap to clone; all clones are one.
/// Dropping the last one ends what runs; [`stop`](Self::stop) lets it end first.
#[derive(Debug, Clone)]
pub struct Jobs {
    owner: Arc<Owner>,
}

#[derive(Debug)]
struct Owner {
    office: Arc<Office>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.office.stage.send_replace(Stage::Hurrying);
        self.office.tasks.abort();
        self.office.dismiss();
    }
}

impl Jobs {
    /// Begins to run jobs, and takes those that the workers of the directory hand in. Pools may
    /// come to it at any time. Once for each directory; inside a tokio runtime.
    pub fn start(
        ledger: Ledger,
        directory: Directory,
        events: Arc<EventLog>,
        settings: JobSettings,
    ) -> Jobs {
        let office = Office::open(ledger, directory, events, settings);
        office.directory.set_desk(Arc::new(OfficeDesk { office: Arc::downgrade(&office) }));
        office.tasks.spawn(clock::keep(Arc::clone(&office)));
        Jobs { owner: Arc::new(Owner { office }) }
    }

    fn office(&self) -> &Office {
        &self.owner.office
    }

    pub fn ledger(&self) -> &Ledger {
        &self.office().ledger
    }

    /// All or none. Whatever a job leaves open is filled in: its pool, if it has no name, and its
    /// timeout.
    ///
    /// # Errors
    /// If a pool is unknown or too small, and whatever the ledger says.
    pub async fn submit(
        &self,
        jobs: Vec<NewJob>,
        asked: Asked,
    ) -> Result<Vec<Submitted>, JobError> {
        self.office().submit(jobs, asked).await
    }

    /// Fills in what a job leaves open, as [`submit`](Self::submit) does by itself: for one that
    /// is to be submitted later.
    ///
    /// # Errors
    /// If its pool is unknown or too small.
    pub fn complete(&self, job: &mut NewJob) -> Result<(), JobError> {
        self.office().complete(job, 0)
    }

    /// Waits until it has its end, or the time is over: then it is as it is.
    pub async fn wait(&self, id: &JobId, time: Duration) -> Result<Job, LedgerError> {
        let ended = async {
            let mut changes = self.changes(id);
            loop {
                let job = self.ledger().job(id).await;
                if !job.as_ref().is_ok_and(|job| !job.status.terminal()) {
                    return job;
                }
                if changes.changed().await.is_err() {
                    return job;
                }
            }
        };
        match tokio::time::timeout(time, ended).await {
            Ok(job) => job,
            Err(_) => self.ledger().job(id).await,
        }
    }

    /// Changes whenever the job has, or has more to tell. What it is now is in the ledger.
    pub fn changes(&self, id: &JobId) -> watch::Receiver<u64> {
        self.office().followers.follow(id)
    }

    /// Begins nothing any more, gives what runs so much time to end, and gives up what has not
    /// ended then: its attempt is lost. When this returns nothing runs.
    pub async fn stop(&self, grace: Duration) {
        self.stop_within(grace, LAST_GRACE).await;
    }

    async fn stop_within(&self, grace: Duration, last_grace: Duration) {
        let office = self.office();
        office.advance(Stage::Stopping);
        if tokio::time::timeout(grace, office.tasks.ended()).await.is_ok() {
            return;
        }
        office.advance(Stage::Hurrying);
        drop(tokio::time::timeout(last_grace, office.tasks.ended()).await);
        office.tasks.abort();
        office.tasks.ended().await;
    }
}

impl Office {
    fn advance(&self, to: Stage) {
        self.stage.send_if_modified(|stage| {
            let later = *stage < to;
            *stage = (*stage).max(to);
            later
        });
    }

    pub(crate) async fn submit(
        &self,
        mut jobs: Vec<NewJob>,
        asked: Asked,
    ) -> Result<Vec<Submitted>, JobError> {
        for (index, job) in jobs.iter_mut().enumerate() {
            self.complete(job, index)?;
        }
        Ok(self.ledger.submit(jobs, asked).await?)
    }

    /// Fills in what it leaves open, and checks what only pools know.
    fn complete(&self, job: &mut NewJob, index: usize) -> Result<(), JobError> {
        if job.pool.is_empty() {
            job.pool = self.default_pool().unwrap_or_default();
        }
        let Some(pool) = self.directory.pool(&job.pool) else {
            let known = self.directory.pools();
            return Err(JobError::UnknownPool { pool: job.pool.clone(), known });
        };
        let max = if pool.keyed_by().is_some() { 1 } else { pool.size_max() };
        if job.worker_count > max {
            return Err(JobError::TooManyWorkers { asked: job.worker_count, max });
        }
        if job.worker_count > 1 && job.session.is_some() {
            let what = "a job of several workers belongs to no session; leave one of both out";
            let (field, what) = ("session", what.to_owned());
            return Err(LedgerError::Invalid { field, what, index }.into());
        }
        job.timeout = job.timeout.or(self.settings.timeout);
        Ok(())
    }

    fn default_pool(&self) -> Option<String> {
        let only = || {
            let mut pools = self.directory.pools();
            if pools.len() == 1 { pools.pop() } else { None }
        };
        self.settings.default_pool.clone().or_else(only)
    }
}

#[cfg(test)]
mod tests {
    use ostler_store::ledger::LedgerSettings;

    use super::*;

    #[tokio::test]
    async fn what_does_not_let_go_has_ended_too_when_all_is_stopped() {
        let ledger = Ledger::in_memory(LedgerSettings::default());
        let log = Arc::new(EventLog::new(1));
        let jobs = Jobs::start(ledger, Directory::new(), log, JobSettings::default());
        let held = Arc::new(());
        let holds = Arc::clone(&held);
        jobs.office().tasks.spawn(async move {
            let _held = holds;
            std::future::pending::<()>().await;
        });
        jobs.stop_within(Duration::ZERO, Duration::ZERO).await;
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
