//! The ledger, as its users hold it.

use std::path::Path;

use jiff::Timestamp;

use super::audit::{AuditReport, Entity, Transition};
use super::error::LedgerError;
use super::id::{JobId, ScheduleId};
use super::job::{
    Attempt, AttemptEnd, Claimed, Finished, Job, JobCounts, JobEvent, JobFilter, NewJob, Queue,
    Saying, Submitted,
};
use super::key::{Answer, Asked, Begun, Key};
use super::notice::Notice;
use super::schedule::{NewSchedule, Schedule, ScheduleChange};
use super::settings::{LedgerSettings, Place};
use super::worker::{PoolPast, Stored, Worker, WorkerChange};
use crate::error::OpenError;

type Result<T> = std::result::Result<T, LedgerError>;

/// Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub struct Ledger {}

#[allow(unused_variables, clippy::todo, clippy::unused_async)]
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
        todo!()
    }

    pub fn in_memory(settings: LedgerSettings) -> Ledger {
        todo!()
    }

    /// This run's identity.
    pub fn node(&self) -> &str {
        todo!()
    }

    /// Called after each commit, in order, on the clerk's task: it must be quick.
    pub fn watch(&self, listener: impl Fn(&[Notice]) + Send + Sync + 'static) {
        todo!()
    }

    // ---- jobs ----

    /// All or none. The index of what does not fit is in the error.
    pub async fn submit(&self, jobs: Vec<NewJob>, asked: Asked) -> Result<Vec<Submitted>> {
        todo!()
    }

    pub async fn job(&self, id: &JobId) -> Result<Job> {
        todo!()
    }

    /// The youngest first.
    pub async fn jobs(&self, filter: &JobFilter, limit: usize) -> Result<Vec<Job>> {
        todo!()
    }

    pub async fn attempts(&self, id: &JobId) -> Result<Vec<Attempt>> {
        todo!()
    }

    /// The lines of its story after `after`.
    pub async fn events(&self, id: &JobId, after: u64, limit: usize) -> Result<Vec<JobEvent>> {
        todo!()
    }

    /// Of the job and all below it that has no end. It may still run: see `Job::cancel`.
    pub async fn cancel(&self, id: &JobId, asked: Asked) -> Result<Job> {
        todo!()
    }

    /// A new job like this one, which must have ended without a result or been cancelled.
    pub async fn retry(&self, id: &JobId, asked: Asked) -> Result<Job> {
        todo!()
    }

    pub async fn counts(&self) -> Result<JobCounts> {
        todo!()
    }

    // ---- for whoever runs jobs ----

    /// Up to `limit` jobs of one worker each, the most urgent first. They are this node's from now
    /// on, and RUNNING.
    pub async fn claim(&self, pool: &str, limit: usize) -> Result<Vec<Claimed>> {
        todo!()
    }

    /// The most urgent job of several workers, not claimed: its workers must be had first.
    pub async fn next_gang(&self, pool: &str) -> Result<Option<(JobId, u32)>> {
        todo!()
    }

    /// That one. None: it is not to be had any more.
    pub async fn claim_job(&self, id: &JobId) -> Result<Option<Claimed>> {
        todo!()
    }

    pub async fn finish(&self, id: &JobId, fence: u64, end: AttemptEnd) -> Result<Finished> {
        todo!()
    }

    /// Stale words are dropped and counted.
    pub async fn say(&self, id: &JobId, fence: u64, sayings: Vec<Saying>) -> Result<()> {
        todo!()
    }

    /// Does what time asks for (jobs that are due, timeouts, schedules, retention) and says when
    /// it wants to be asked again. At least each second in any case.
    pub async fn keep_time(&self) -> Result<Option<Timestamp>> {
        todo!()
    }

    // ---- queues ----

    pub async fn pause_queue(&self, name: &str, asked: Asked) -> Result<Queue> {
        todo!()
    }

    pub async fn resume_queue(&self, name: &str, asked: Asked) -> Result<Queue> {
        todo!()
    }

    pub async fn queues(&self) -> Result<Vec<Queue>> {
        todo!()
    }

    // ---- schedules ----

    pub async fn add_schedule(&self, new: NewSchedule, asked: Asked) -> Result<Schedule> {
        todo!()
    }

    /// By its id or its name.
    pub async fn schedule(&self, id: &str) -> Result<Schedule> {
        todo!()
    }

    pub async fn schedules(
        &self,
        after: Option<&ScheduleId>,
        limit: usize,
    ) -> Result<Vec<Schedule>> {
        todo!()
    }

    pub async fn change_schedule(
        &self,
        id: &str,
        change: ScheduleChange,
        asked: Asked,
    ) -> Result<Schedule> {
        todo!()
    }

    pub async fn delete_schedule(&self, id: &str, asked: Asked) -> Result<()> {
        todo!()
    }

    // ---- workers ----

    /// What the pool of this name is to know of its past.
    pub async fn pool_past(&self, pool: &str) -> Result<PoolPast> {
        todo!()
    }

    pub async fn record(&self, change: WorkerChange) -> Stored {
        todo!()
    }

    /// Also one that has ended, as long as it is kept. By id or name.
    pub async fn worker(&self, id: &str) -> Result<Option<Worker>> {
        todo!()
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
        todo!()
    }

    /// Replays every entity.
    pub async fn verify(&self) -> Result<AuditReport> {
        todo!()
    }

    // ---- keys ----

    /// `stored`: the effect of this route is in the ledger, so a crash leaves no doubt about it.
    pub async fn begin_key(&self, key: &Key, fingerprint: u64, stored: bool) -> Result<Begun> {
        todo!()
    }

    pub async fn finish_key(&self, key: &Key, answer: Answer) -> Result<()> {
        todo!()
    }

    pub async fn abandon_key(&self, key: &Key) -> Result<()> {
        todo!()
    }

    // ---- the store itself ----

    /// A copy that can be opened, made while the ledger is in use. SQLite only.
    pub async fn backup(&self, to: &Path) -> Result<()> {
        todo!()
    }

    /// The workers of this node end with it, and so does the ledger.
    pub async fn close(&self) {
        todo!()
    }
}
