//! Where rows are kept. A backend knows how to find and to write rows, all or none of a transaction,
//! and knows no rules about what they mean.
//!
//! One writer: the clerk owns the backend and works in one transaction at a time. Readers look at
//! what was committed, beside it.

use std::fmt::Debug;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use super::audit::Entity;
use super::id::{JobId, ScheduleId};
use super::job::{JobCounts, JobFilter, Queue};
use super::key::Key;
use super::row::{
    AttemptRow, EventRow, JobFacts, JobResult, JobState, KeyRow, Millis, PoolRow, QueueRow, Row,
    ScheduleRow, Task, TransitionRow, WorkerRow,
};

/// Why nothing was read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failed {
    /// For want of room.
    pub full: bool,
    /// It lies with these rows: without them the rest may be taken. Of a read: the row is there and
    /// damaged (`its checksum does not fit`).
    pub of_rows: bool,
    /// A commit that may have happened all the same.
    pub doubtful: bool,
    /// Names the thing and what to do next.
    pub reason: String,
}

pub(crate) type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failed>> + Send + 'a>>;

pub(crate) trait Backend: Reads + Send + Debug {
    fn begin(&mut self) -> Reply<'_, ()>;

    /// Inside a transaction; what is read afterwards shows it. After an error the transaction can
    /// only be rolled back.
    fn write(&mut self, rows: Vec<Row>) -> Reply<'_, ()>;

    /// Returns when it will be there after whatever happens next.
    fn commit(&mut self) -> Reply<'_, ()>;

    /// Also after a failure, also without a transaction. If it fails the backend connects anew at
    /// the next `begin`.
    fn rollback(&mut self) -> Reply<'_, ()>;

    /// A second way to the same rows, which shows what was committed.
    fn reader(&self) -> Arc<dyn Reader>;

    fn backup<'a>(&'a mut self, to: &'a Path) -> Reply<'a, ()>;

    fn close(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// Many at once may use it.
pub(crate) trait Reader: Send + Sync + Debug {
    /// A connection of one's own for as long as it is kept; waits for a free one.
    fn open(&self) -> Reply<'_, Box<dyn Reads + Send>>;
}

/// Every list is in the order that its comment names.
pub(crate) trait Reads {
    fn job<'a>(&'a mut self, id: &'a JobId) -> Reply<'a, Option<(JobFacts, JobState)>>;
    /// Those of them that there are, in any order.
    fn jobs_of<'a>(&'a mut self, ids: &'a [JobId]) -> Reply<'a, Vec<(JobFacts, JobState)>>;
    fn result<'a>(&'a mut self, id: &'a JobId) -> Reply<'a, Option<JobResult>>;
    fn task<'a>(&'a mut self, id: &'a JobId) -> Reply<'a, Option<Task>>;

    /// Tasks that may be claimed: nobody has them, `run_at` has come, their queue is not paused,
    /// fewer than `concurrency_limit` claimed ones have their key. `gangs`: those of several
    /// workers, else those of one. By priority (high first), `run_at`, job.
    fn ready<'a>(
        &'a mut self,
        pool: &'a str,
        now: Millis,
        gangs: bool,
        limit: usize,
    ) -> Reply<'a, Vec<Task>>;
    /// Pools of unclaimed tasks whose `run_at` lies after `since` and not after `now`, by name.
    fn ready_pools(&mut self, since: Millis, now: Millis) -> Reply<'_, Vec<String>>;
    /// Claimed tasks with this concurrency key.
    fn running_with<'a>(&'a mut self, concurrency_key: &'a str) -> Reply<'a, u32>;
    /// SUBMITTED jobs whose task's `run_at` has come.
    fn due(&mut self, now: Millis, limit: usize) -> Reply<'_, Vec<JobId>>;
    /// Jobs without an end and without a cancellation whose deadline has come.
    fn overdue(&mut self, now: Millis, limit: usize) -> Reply<'_, Vec<JobId>>;
    /// The earliest after `now` of: `run_at` of unclaimed tasks, deadlines of jobs without an end
    /// and without a cancellation, `next_at` of schedules.
    fn next_due(&mut self, now: Millis) -> Reply<'_, Option<Millis>>;
    /// Claimed by another node.
    fn claimed_elsewhere<'a>(&'a mut self, node: &'a str, limit: usize) -> Reply<'a, Vec<Task>>;

    /// Children without an end, oldest first.
    fn open_children<'a>(&'a mut self, parent: &'a JobId) -> Reply<'a, Vec<JobId>>;
    fn child_by_key<'a>(
        &'a mut self,
        parent: &'a JobId,
        child_key: &'a str,
    ) -> Reply<'a, Option<JobId>>;
    /// Among those without an end.
    fn by_unique_key<'a>(
        &'a mut self,
        workspace: &'a str,
        function: &'a str,
        unique_key: &'a str,
    ) -> Reply<'a, Option<JobId>>;
    fn open_jobs(&mut self) -> Reply<'_, u64>;
    /// The youngest first.
    fn jobs<'a>(
        &'a mut self,
        filter: &'a JobFilter,
        limit: usize,
    ) -> Reply<'a, Vec<(JobFacts, JobState)>>;
    fn counts(&mut self) -> Reply<'_, JobCounts>;
    /// By attempt.
    fn attempts<'a>(&'a mut self, id: &'a JobId) -> Reply<'a, Vec<AttemptRow>>;
    /// Those after `after`, by seq.
    fn events<'a>(
        &'a mut self,
        id: &'a JobId,
        after: u64,
        limit: usize,
    ) -> Reply<'a, Vec<EventRow>>;
    /// Jobs that ended before this time and whose parent has ended too (a retried parent looks for
    /// its children), oldest first.
    fn prunable(&mut self, before: Millis, limit: usize) -> Reply<'_, Vec<JobId>>;

    fn queue<'a>(&'a mut self, name: &'a str) -> Reply<'a, Option<QueueRow>>;
    /// Those that are paused and those of jobs without an end, by name.
    fn queues(&mut self) -> Reply<'_, Vec<Queue>>;

    /// By id, or by workspace and name.
    fn schedule<'a>(&'a mut self, id: &'a ScheduleId) -> Reply<'a, Option<ScheduleRow>>;
    fn schedule_named<'a>(
        &'a mut self,
        workspace: &'a str,
        name: &'a str,
    ) -> Reply<'a, Option<ScheduleRow>>;
    /// By id.
    fn schedules<'a>(
        &'a mut self,
        after: Option<&'a ScheduleId>,
        limit: usize,
    ) -> Reply<'a, Vec<ScheduleRow>>;
    fn schedules_count(&mut self) -> Reply<'_, u64>;
    fn schedules_due(&mut self, now: Millis, limit: usize) -> Reply<'_, Vec<ScheduleRow>>;

    /// By id or name; of several with one name the last.
    fn worker<'a>(&'a mut self, id: &'a str) -> Reply<'a, Option<WorkerRow>>;
    /// Those without an end. None: of all pools. By id.
    fn open_workers<'a>(&'a mut self, pool: Option<&'a str>) -> Reply<'a, Vec<WorkerRow>>;
    fn prunable_workers(&mut self, before: Millis, limit: usize) -> Reply<'_, Vec<String>>;
    fn pool<'a>(&'a mut self, name: &'a str) -> Reply<'a, Option<PoolRow>>;
    /// The highest number given so far.
    fn last_pool_number(&mut self) -> Reply<'_, u64>;

    /// Those after `after`, by seq.
    fn transitions<'a>(
        &'a mut self,
        entity: Entity,
        id: &'a str,
        after: u64,
        limit: usize,
    ) -> Reply<'a, Vec<TransitionRow>>;
    /// Every id of this kind of which there is a row or a transition, after `after`, by id.
    fn entities<'a>(
        &'a mut self,
        entity: Entity,
        after: &'a str,
        limit: usize,
    ) -> Reply<'a, Vec<String>>;

    fn key<'a>(&'a mut self, key: &'a Key) -> Reply<'a, Option<KeyRow>>;
    fn keys_count(&mut self) -> Reply<'_, u64>;
    fn expired_keys(&mut self, now: Millis, limit: usize) -> Reply<'_, Vec<Key>>;
}
