//! A backend with one bad moment: some of its operations fail, from the n-th on.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use super::super::audit::Entity;
use super::super::backend::{Backend, Failed, Reader, Reads, Reply};
use super::super::id::{JobId, ScheduleId};
use super::super::job::{JobCounts, JobFilter, Queue};
use super::super::key::Key;
use super::super::row::{
    AttemptRow, EventRow, JobFacts, JobResult, JobState, KeyRow, Millis, PoolRow, QueueRow, Row,
    ScheduleRow, Task, TransitionRow, WorkerRow,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is not done, and that is said.
    Refused,
    /// It is not done; of a commit nobody knows.
    Lost,
    /// It is done, and failure is reported; of a commit nobody knows.
    Performed,
}

/// Which operations fail, and how.
#[derive(Debug)]
pub(super) struct Plan {
    fault: Fault,
    /// Until the first that fails; then down to `-count`.
    left: AtomicI64,
    count: i64,
}

impl Plan {
    pub fn new(fault: Fault, first: i64, count: i64) -> Arc<Plan> {
        Arc::new(Plan { fault, left: AtomicI64::new(first), count })
    }

    /// Whether it ever came to the first.
    pub fn struck(&self) -> bool {
        self.left.load(Ordering::SeqCst) < 0
    }

    fn strikes(&self) -> bool {
        let left = self.left.fetch_sub(1, Ordering::SeqCst);
        left <= 0 && left > -self.count
    }
}

#[derive(Debug)]
pub(super) struct Faulty {
    pub inner: Box<dyn Backend>,
    pub plan: Arc<Plan>,
}

type Step<T> = for<'a> fn(&'a mut dyn Backend) -> Reply<'a, T>;

impl Faulty {
    async fn pass<T>(&mut self, commit: bool, step: Step<T>) -> Result<T, Failed> {
        self.through(commit, |inner| step(inner)).await
    }

    async fn through<'a, T>(
        &'a mut self,
        commit: bool,
        step: impl FnOnce(&'a mut dyn Backend) -> Reply<'a, T>,
    ) -> Result<T, Failed> {
        if !self.plan.strikes() {
            return step(&mut *self.inner).await;
        }
        let fault = self.plan.fault;
        if fault == Fault::Performed {
            step(&mut *self.inner).await?;
        }
        let doubtful = commit && fault != Fault::Refused;
        Err(Failed { full: false, of_rows: false, doubtful, reason: "a bad moment".to_owned() })
    }
}

impl Backend for Faulty {
    fn begin(&mut self) -> Reply<'_, ()> {
        Box::pin(self.pass(false, |inner| inner.begin()))
    }

    fn write(&mut self, rows: Vec<Row>) -> Reply<'_, ()> {
        Box::pin(self.through(false, move |inner| inner.write(rows)))
    }

    fn commit(&mut self) -> Reply<'_, ()> {
        Box::pin(self.pass(true, |inner| inner.commit()))
    }

    /// Even if it fails nothing of the transaction stays: that is what the end of a connection does.
    fn rollback(&mut self) -> Reply<'_, ()> {
        Box::pin(async move {
            self.inner.rollback().await?;
            self.pass(false, |_| Box::pin(async { Ok(()) })).await
        })
    }

    fn reader(&self) -> Arc<dyn Reader> {
        self.inner.reader()
    }

    fn backup<'a>(&'a mut self, to: &'a Path) -> Reply<'a, ()> {
        self.inner.backup(to)
    }

    fn close(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.inner.close()
    }
}

macro_rules! reads {
    ($life:lifetime; $($name:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {
        $(fn $name<$life>(&$life mut self, $($arg: $type),*) -> Reply<$life, $answer> {
            Box::pin(self.through(false, move |inner| inner.$name($($arg),*)))
        })*
    };
}

impl Reads for Faulty {
    reads! { 'a;
        job(id: &'a JobId) -> Option<(JobFacts, JobState)>;
        jobs_of(ids: &'a [JobId]) -> Vec<(JobFacts, JobState)>;
        result(id: &'a JobId) -> Option<JobResult>;
        task(id: &'a JobId) -> Option<Task>;
        ready(pool: &'a str, now: Millis, gangs: bool, limit: usize) -> Vec<Task>;
        ready_pools(since: Millis, now: Millis) -> Vec<String>;
        running_with(concurrency_key: &'a str) -> u32;
        due(now: Millis, limit: usize) -> Vec<JobId>;
        overdue(now: Millis, limit: usize) -> Vec<JobId>;
        next_due(now: Millis) -> Option<Millis>;
        claimed_elsewhere(node: &'a str, limit: usize) -> Vec<Task>;
        open_children(parent: &'a JobId) -> Vec<JobId>;
        child_by_key(parent: &'a JobId, child_key: &'a str) -> Option<JobId>;
        by_unique_key(workspace: &'a str, function: &'a str, unique_key: &'a str) -> Option<JobId>;
        open_jobs() -> u64;
        jobs(filter: &'a JobFilter, limit: usize) -> Vec<(JobFacts, JobState)>;
        counts() -> JobCounts;
        attempts(id: &'a JobId) -> Vec<AttemptRow>;
        events(id: &'a JobId, after: u64, limit: usize) -> Vec<EventRow>;
        prunable(before: Millis, limit: usize) -> Vec<JobId>;
        queue(name: &'a str) -> Option<QueueRow>;
        queues() -> Vec<Queue>;
        schedule(id: &'a ScheduleId) -> Option<ScheduleRow>;
        schedule_named(workspace: &'a str, name: &'a str) -> Option<ScheduleRow>;
        schedules(after: Option<&'a ScheduleId>, limit: usize) -> Vec<ScheduleRow>;
        schedules_count() -> u64;
        schedules_due(now: Millis, limit: usize) -> Vec<ScheduleRow>;
        worker(id: &'a str) -> Option<WorkerRow>;
        open_workers(pool: Option<&'a str>) -> Vec<WorkerRow>;
        prunable_workers(before: Millis, limit: usize) -> Vec<String>;
        pool(name: &'a str) -> Option<PoolRow>;
        last_pool_number() -> u64;
        transitions(entity: Entity, id: &'a str, after: u64, limit: usize) -> Vec<TransitionRow>;
        entities(entity: Entity, after: &'a str, limit: usize) -> Vec<String>;
        key(key: &'a Key) -> Option<KeyRow>;
        keys_count() -> u64;
        expired_keys(now: Millis, limit: usize) -> Vec<Key>;
    }
}
