//! The ledger, as its users hold it: what changes it goes to the clerk, what only reads goes past
//! it to what was committed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};

use super::audit::{AuditReport, Entity, Transition};
use super::backend::{Backend, Failed, Reader, Reads};
use super::clerk::{Ask, Clerk, Message, WAITING_MAX, Watchers};
use super::decide::{self, Operation};
use super::draft::Draft;
use super::error::LedgerError;
use super::id::{JobId, ScheduleId};
use super::job::{
    Attempt, AttemptEnd, Claimed, Finished, Job, JobCounts, JobEvent, JobFilter, NewJob, Queue,
    Saying, Submitted,
};
use super::key::{Answer, Asked, Begun, Key};
use super::memory::Memory;
use super::notice::Notice;
use super::row::Millis;
use super::schedule::{NewSchedule, Schedule, ScheduleChange};
use super::settings::{LedgerSettings, Place};
use super::shown;
use super::verify;
use super::worker::{PoolPast, Stored, Worker, WorkerChange};
use crate::clock::{Clock, MachineClock, Time, timestamp};
use crate::error::OpenError;
use crate::store::Store;

type Result<T> = std::result::Result<T, LedgerError>;

/// Rows listed at once, whatever was asked for.
/// One more than the largest page, so that whoever shows one can see whether there is another.
const LIST_MAX: usize = 1_001;

/// Cheap to clone; all clones are one. Its clerk is a task: a ledger is made and used inside a tokio
/// runtime. What was asked for is done even if nobody waits for the answer any more.
#[derive(Debug, Clone)]
pub struct Ledger {
    shared: Arc<Shared>,
    clerk: mpsc::Sender<Message>,
}

#[derive(Debug)]
struct Shared {
    node: Arc<str>,
    started_at: Millis,
    time: Arc<Time>,
    watchers: Arc<Watchers>,
    reader: Arc<dyn Reader>,
    verifying: tokio::sync::Mutex<()>,
    /// Words about an attempt that was no longer current.
    stale: AtomicU64,
}

impl Ledger {
    /// Opens the ledger as a new node, alone. What the nodes before held is settled first: their
    /// attempts are lost, their pool workers terminated. Inside a tokio runtime.
    ///
    /// # Errors
    /// If another server has it, it is of a newer version, it is damaged, or the place refuses.
    pub async fn open(
        place: &Place,
        settings: LedgerSettings,
    ) -> std::result::Result<Ledger, OpenError> {
        Store::open(place).await?.ledger(settings).await
    }

    /// Ends with the process.
    pub fn in_memory(settings: LedgerSettings) -> Ledger {
        Ledger::over(Box::new(Memory::default()), settings, MachineClock::new())
    }

    /// On a backend, as a new node.
    pub(crate) async fn start(
        backend: Box<dyn Backend>,
        settings: LedgerSettings,
        clock: impl Clock,
    ) -> Result<Ledger> {
        let ledger = Ledger::over(backend, settings, clock);
        let started_at = ledger.shared.started_at;
        loop {
            match ledger.ask(decide::StartNode { started_at }).await {
                Ok(true) => {}
                Ok(false) => return Ok(ledger),
                Err(error) => {
                    // Whoever tries again finds the backend closed.
                    ledger.end().await;
                    return Err(error);
                }
            }
        }
    }

    fn over(backend: Box<dyn Backend>, settings: LedgerSettings, clock: impl Clock) -> Ledger {
        let node: Arc<str> = format!("n_{}", uuid::Uuid::now_v7().simple()).into();
        let (time, watchers) = (Arc::new(Time::new(clock)), Arc::new(Watchers::default()));
        let reader = backend.reader();
        let draft = Draft::new(backend, Arc::clone(&node), Arc::new(settings));
        let (clerk, inbox) = mpsc::channel(WAITING_MAX);
        let (now, stale) = (time.now(), AtomicU64::new(0));
        let (clerk_time, clerk_watchers) = (Arc::clone(&time), Arc::clone(&watchers));
        let work = Clerk { draft, time: clerk_time, watchers: clerk_watchers, inbox, doubt: None };
        // It ends with `close`, or when the last handle is dropped.
        tokio::spawn(work.run());
        let shared = Shared {
            node,
            started_at: now,
            time,
            watchers,
            reader,
            verifying: tokio::sync::Mutex::default(),
            stale,
        };
        Ledger { shared: Arc::new(shared), clerk }
    }

    async fn ask<O: Operation>(&self, operation: O) -> Result<O::Answer> {
        let (ask, answered) = Ask::new(operation);
        self.clerk.send(Message::Ask(Box::new(ask))).await.map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?
    }

    pub(super) async fn read(&self) -> Result<Box<dyn Reads + Send>> {
        self.shared.reader.open().await.map_err(unreadable)
    }

    fn count_stale(&self) {
        self.shared.stale.fetch_add(1, Ordering::Relaxed);
    }

    /// This run's identity.
    pub fn node(&self) -> &str {
        &self.shared.node
    }

    /// Called after each commit, in order, on the clerk's task: it must be quick.
    pub fn watch(&self, listener: impl Fn(&[Notice]) + Send + Sync + 'static) {
        self.shared.watchers.add(listener);
    }

    // ---- jobs ----

    /// All or none. The index of what does not fit is in the error.
    pub async fn submit(&self, jobs: Vec<NewJob>, asked: Asked) -> Result<Vec<Submitted>> {
        self.ask(decide::Submit { jobs, asked }).await
    }

    pub async fn job(&self, id: &JobId) -> Result<Job> {
        let mut reads = self.read().await?;
        let row = reads.job(id).await.map_err(unreadable)?;
        let (facts, state) = row.ok_or_else(|| LedgerError::NoJob { id: id.to_string() })?;
        let result = reads.result(id).await.map_err(unreadable)?;
        shown::job_of_rows(&facts, &state, result.as_ref()).map_err(unreadable)
    }

    /// The youngest first, without their results.
    pub async fn jobs(&self, filter: &JobFilter, limit: usize) -> Result<Vec<Job>> {
        let mut reads = self.read().await?;
        let rows = reads.jobs(filter, limit.min(LIST_MAX)).await.map_err(unreadable)?;
        let shown = rows.iter().map(|(facts, state)| shown::job_of_rows(facts, state, None));
        shown.collect::<std::result::Result<_, _>>().map_err(unreadable)
    }

    pub async fn attempts(&self, id: &JobId) -> Result<Vec<Attempt>> {
        let rows = self.read().await?.attempts(id).await.map_err(unreadable)?;
        Ok(rows.into_iter().map(shown::attempt).collect())
    }

    /// The lines of its story after `after`.
    pub async fn events(&self, id: &JobId, after: u64, limit: usize) -> Result<Vec<JobEvent>> {
        let mut reads = self.read().await?;
        let rows = reads.events(id, after, limit.min(LIST_MAX)).await.map_err(unreadable)?;
        Ok(rows.into_iter().map(shown::event).collect())
    }

    /// Of the job and all below it that has no end. It may still run: see `Job::cancel`.
    pub async fn cancel(&self, id: &JobId, asked: Asked) -> Result<Job> {
        self.ask(decide::CancelJob { id: id.clone(), asked }).await
    }

    /// A new job like this one, which must have ended without a result or been cancelled.
    pub async fn retry(&self, id: &JobId, asked: Asked) -> Result<Job> {
        self.ask(decide::Retry { id: id.clone(), asked }).await
    }

    pub async fn counts(&self) -> Result<JobCounts> {
        let counts = self.read().await?.counts().await.map_err(unreadable)?;
        Ok(JobCounts { stale: self.shared.stale.load(Ordering::Relaxed), ..counts })
    }

    // ---- for whoever runs jobs ----

    /// Up to `limit` jobs of one worker each, the most urgent first. They are this node's from now
    /// on, and RUNNING.
    pub async fn claim(&self, pool: &str, limit: usize) -> Result<Vec<Claimed>> {
        self.ask(decide::Claim { pool: pool.to_owned(), limit }).await
    }

    /// The most urgent job of several workers, not claimed: its workers must be had first.
    pub async fn next_gang(&self, pool: &str) -> Result<Option<(JobId, u32)>> {
        let now = self.shared.time.now();
        let tasks = self.read().await?.ready(pool, now, true, 1).await.map_err(unreadable)?;
        Ok(tasks.into_iter().next().map(|task| (task.job, task.workers)))
    }

    /// That one. None: it is not to be had any more.
    pub async fn claim_job(&self, id: &JobId) -> Result<Option<Claimed>> {
        self.ask(decide::ClaimJob { id: id.clone() }).await
    }

    pub async fn finish(&self, id: &JobId, fence: u64, end: AttemptEnd) -> Result<Finished> {
        self.finish_saying(id, fence, Vec::new(), end).await
    }

    /// Together with what it said last: both are stored, or neither.
    pub async fn finish_saying(
        &self,
        id: &JobId,
        fence: u64,
        said: Vec<Saying>,
        end: AttemptEnd,
    ) -> Result<Finished> {
        let finished = self.ask(decide::Finish { id: id.clone(), fence, said, end }).await?;
        if finished == Finished::Stale {
            self.count_stale();
        }
        Ok(finished)
    }

    /// Stale words are dropped and counted.
    pub async fn say(&self, id: &JobId, fence: u64, sayings: Vec<Saying>) -> Result<()> {
        if !self.ask(decide::Say { id: id.clone(), fence, sayings }).await? {
            self.count_stale();
        }
        Ok(())
    }

    /// Does what time asks for (jobs that are due, timeouts, schedules, retention) and says when
    /// it wants to be asked again. At least each second in any case.
    pub async fn keep_time(&self) -> Result<Option<Timestamp>> {
        use decide::Chore::{
            EndOverdue, FireSchedules, PruneJobs, PruneWorkers, StartDue, SweepKeys,
        };
        // All at once, so that they share a transaction.
        let (due, overdue, fired, swept, jobs, workers, next) = tokio::join!(
            self.ask(StartDue),
            self.ask(EndOverdue),
            self.ask(FireSchedules),
            self.ask(SweepKeys),
            self.ask(PruneJobs),
            self.ask(PruneWorkers),
            self.ask(decide::NextDue),
        );
        let more = due? | overdue? | fired? | swept? | jobs? | workers?;
        let (now, next) = next?;
        Ok(if more { Some(timestamp(now)) } else { next.map(timestamp) })
    }

    // ---- queues ----

    /// One that is paused already stays so.
    pub async fn pause_queue(&self, name: &str, asked: Asked) -> Result<Queue> {
        self.ask(decide::SetQueue { name: name.to_owned(), paused: true, asked }).await
    }

    pub async fn resume_queue(&self, name: &str, asked: Asked) -> Result<Queue> {
        self.ask(decide::SetQueue { name: name.to_owned(), paused: false, asked }).await
    }

    pub async fn queues(&self) -> Result<Vec<Queue>> {
        self.read().await?.queues().await.map_err(unreadable)
    }

    // ---- schedules ----

    pub async fn add_schedule(&self, new: NewSchedule, asked: Asked) -> Result<Schedule> {
        self.ask(decide::AddSchedule { new, asked }).await
    }

    /// By its id, or by its name in the workspace `default`.
    pub async fn schedule(&self, id: &str) -> Result<Schedule> {
        let mut reads = self.read().await?;
        let row = match id.parse::<ScheduleId>() {
            Ok(id) => reads.schedule(&id).await,
            Err(()) => reads.schedule_named(DEFAULT_WORKSPACE, id).await,
        };
        let row = row.map_err(unreadable)?;
        let row = row.ok_or_else(|| LedgerError::NoSchedule { id: id.to_owned() })?;
        shown::schedule(&row).map_err(unreadable)
    }

    pub async fn schedules(
        &self,
        after: Option<&ScheduleId>,
        limit: usize,
    ) -> Result<Vec<Schedule>> {
        let mut reads = self.read().await?;
        let rows = reads.schedules(after, limit.min(LIST_MAX)).await.map_err(unreadable)?;
        let shown = rows.iter().map(shown::schedule);
        shown.collect::<std::result::Result<_, _>>().map_err(unreadable)
    }

    pub async fn change_schedule(
        &self,
        id: &str,
        change: ScheduleChange,
        asked: Asked,
    ) -> Result<Schedule> {
        self.ask(decide::ChangeSchedule { id: id.to_owned(), change, asked }).await
    }

    /// Its jobs stay.
    pub async fn delete_schedule(&self, id: &str, asked: Asked) -> Result<()> {
        self.ask(decide::DeleteSchedule { id: id.to_owned(), asked }).await
    }

    // ---- workers ----

    /// What the pool of this name is to know of its past.
    pub async fn pool_past(&self, pool: &str) -> Result<PoolPast> {
        self.ask(decide::Past { pool: pool.to_owned() }).await
    }

    pub async fn record(&self, change: WorkerChange) -> Stored {
        match self.ask(decide::Record { change }).await {
            Ok(stored) => stored,
            Err(error @ LedgerError::Doubtful { .. }) => Stored::Unknown(error.to_string()),
            Err(error) => Stored::No(error.to_string()),
        }
    }

    /// Also one that has ended, as long as it is kept. By id or name.
    pub async fn worker(&self, id: &str) -> Result<Option<Worker>> {
        let row = self.read().await?.worker(id).await.map_err(unreadable)?;
        Ok(row.map(shown::worker))
    }

    // ---- audit ----

    /// Oldest first, after `after`.
    pub async fn transitions(
        &self,
        entity: Entity,
        id: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Transition>> {
        let mut reads = self.read().await?;
        let limit = limit.min(LIST_MAX);
        let rows = reads.transitions(entity, id, after, limit).await.map_err(unreadable)?;
        Ok(rows.into_iter().map(shown::transition).collect())
    }

    /// Replays every entity.
    pub async fn verify(&self) -> Result<AuditReport> {
        // One at a time: it takes long, and has a connection that others wait for.
        let _alone = self.shared.verifying.lock().await;
        verify::replay(&mut *self.read().await?).await.map_err(unreadable)
    }

    // ---- keys ----

    /// `stored`: the effect of this route is in the ledger, so a crash leaves no doubt about it.
    pub async fn begin_key(&self, key: &Key, fingerprint: u64, stored: bool) -> Result<Begun> {
        self.ask(decide::BeginKey { key: key.clone(), fingerprint, stored }).await
    }

    pub async fn finish_key(&self, key: &Key, answer: Answer) -> Result<()> {
        self.ask(decide::FinishKey { key: key.clone(), answer }).await
    }

    pub async fn abandon_key(&self, key: &Key) -> Result<()> {
        self.ask(decide::AbandonKey { key: key.clone() }).await
    }

    // ---- the store itself ----

    /// A copy that can be opened, made while the ledger is in use. SQLite only.
    pub async fn backup(&self, to: &Path) -> Result<()> {
        let (answer, answered) = oneshot::channel();
        let message = Message::Backup(PathBuf::from(to), answer);
        self.clerk.send(message).await.map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?
    }

    /// The workers of this node end with it, and so does the ledger.
    pub async fn close(&self) {
        let started_at = self.shared.started_at;
        if let Err(error) = self.ask(decide::EndNode { started_at }).await {
            tracing::warn!(%error, "the end of this run could not be stored");
        }
        self.end().await;
    }

    /// The clerk stops, whatever was going on; in a test that is how a server dies.
    pub(super) async fn end(&self) {
        let (answer, answered) = oneshot::channel();
        if self.clerk.send(Message::Close(answer)).await.is_ok() {
            let _ = answered.await;
        }
    }
}

pub(super) const DEFAULT_WORKSPACE: &str = "default";

fn closed() -> LedgerError {
    LedgerError::Unavailable { reason: "it is closed".to_owned() }
}

/// Reading leaves no doubt about what was written.
fn unreadable(failed: Failed) -> LedgerError {
    LedgerError::Unavailable { reason: failed.reason }
}
