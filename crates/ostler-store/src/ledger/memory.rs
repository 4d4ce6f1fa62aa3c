//! Rows in memory: for servers that need nothing to survive them, and the measure by which the
//! other backends are tested. A transaction holds the tables for itself; what it replaced is kept
//! until it is over, and put back if it fails.

mod find;
mod tables;

use std::fmt;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::{OwnedRwLockWriteGuard, RwLock};

use super::audit::Entity;
use super::backend::{Backend, Failed, Reader, Reads, Reply};
use super::id::{JobId, ScheduleId};
use super::job::{JobCounts, JobFilter, Queue};
use super::key::Key;
use super::row::{
    AttemptRow, EventRow, JobFacts, JobResult, JobState, KeyRow, Millis, PoolRow, QueueRow, Row,
    ScheduleRow, Task, TransitionRow, WorkerRow,
};
use tables::{Cell, Tables};

#[derive(Default)]
pub(crate) struct Memory {
    tables: Arc<RwLock<Tables>>,
    /// The transaction under way.
    held: Option<OwnedRwLockWriteGuard<Tables>>,
    /// What it replaced, in order.
    replaced: Vec<Cell>,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("in_transaction", &self.held.is_some()).finish()
    }
}

impl Memory {
    /// Another way to the same rows, as a server that starts again would have it.
    #[cfg(test)]
    pub fn again(&self) -> Memory {
        Memory { tables: Arc::clone(&self.tables), held: None, replaced: Vec::new() }
    }

    /// What the transaction sees, or what was committed.
    fn find<'a, T: Send>(
        &'a mut self,
        find: impl FnOnce(&Tables) -> T + Send + 'a,
    ) -> Reply<'a, T> {
        Box::pin(async move {
            Ok(match &self.held {
                Some(held) => find(held),
                None => find(&*self.tables.read().await),
            })
        })
    }

    fn put(&mut self, rows: Vec<Row>) -> Result<(), Failed> {
        let tables = self.held.as_mut().ok_or_else(|| failed("no transaction was begun"))?;
        for row in rows {
            for cell in tables.cells(row).map_err(failed)? {
                self.replaced.push(tables.set(cell));
            }
        }
        Ok(())
    }

    fn put_back(&mut self) {
        let Some(mut tables) = self.held.take() else { return };
        for cell in self.replaced.drain(..).rev() {
            tables.set(cell);
        }
    }
}

fn failed(reason: impl Into<String>) -> Failed {
    Failed { full: false, of_rows: true, doubtful: false, reason: reason.into() }
}

impl Backend for Memory {
    fn begin(&mut self) -> Reply<'_, ()> {
        Box::pin(async move {
            self.put_back();
            self.held = Some(Arc::clone(&self.tables).write_owned().await);
            Ok(())
        })
    }

    fn write(&mut self, rows: Vec<Row>) -> Reply<'_, ()> {
        Box::pin(async move { self.put(rows) })
    }

    fn commit(&mut self) -> Reply<'_, ()> {
        Box::pin(async move {
            self.replaced.clear();
            self.held = None;
            Ok(())
        })
    }

    fn rollback(&mut self) -> Reply<'_, ()> {
        Box::pin(async move {
            self.put_back();
            Ok(())
        })
    }

    fn reader(&self) -> Arc<dyn Reader> {
        Arc::new(MemoryReader(Arc::clone(&self.tables)))
    }

    fn backup<'a>(&'a mut self, _: &'a Path) -> Reply<'a, ()> {
        let reason = "the store is in memory; set `path` in [store] to have one that can be copied";
        Box::pin(async move { Err(failed(reason)) })
    }

    fn close(mut self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move { self.put_back() })
    }
}

#[derive(Debug)]
struct MemoryReader(Arc<RwLock<Tables>>);

impl Reader for MemoryReader {
    fn open(&self) -> Reply<'_, Box<dyn Reads + Send>> {
        let tables = Arc::clone(&self.0);
        let reads = Memory { tables, held: None, replaced: Vec::new() };
        Box::pin(async move { Ok(Box::new(reads) as Box<dyn Reads + Send>) })
    }
}

impl Reads for Memory {
    fn job<'a>(&'a mut self, id: &'a JobId) -> Reply<'a, Option<(JobFacts, JobState)>> {
        self.find(|tables| tables.job(id))
    }

    fn jobs_of<'a>(&'a mut self, ids: &'a [JobId]) -> Reply<'a, Vec<(JobFacts, JobState)>> {
        self.find(|tables| ids.iter().filter_map(|id| tables.job(id)).collect())
    }

    fn result<'a>(&'a mut self, id: &'a JobId) -> Reply<'a, Option<JobResult>> {
        self.find(|tables| tables.results.get(id).cloned())
    }

    fn task<'a>(&'a mut self, id: &'a JobId) -> Reply<'a, Option<Task>> {
        self.find(|tables| tables.tasks.get(id).cloned())
    }

    fn ready<'a>(
        &'a mut self,
        pool: &'a str,
        now: Millis,
        gangs: bool,
        limit: usize,
    ) -> Reply<'a, Vec<Task>> {
        self.find(move |tables| tables.ready(pool, now, gangs, limit))
    }

    fn ready_pools(&mut self, since: Millis, now: Millis) -> Reply<'_, Vec<String>> {
        self.find(move |tables| tables.ready_pools(since, now))
    }

    fn running_with<'a>(&'a mut self, concurrency_key: &'a str) -> Reply<'a, u32> {
        self.find(|tables| tables.running_with(concurrency_key))
    }

    fn due(&mut self, now: Millis, limit: usize) -> Reply<'_, Vec<JobId>> {
        self.find(move |tables| tables.due(now, limit))
    }

    fn overdue(&mut self, now: Millis, limit: usize) -> Reply<'_, Vec<JobId>> {
        self.find(move |tables| tables.overdue(now, limit))
    }

    fn next_due(&mut self, now: Millis) -> Reply<'_, Option<Millis>> {
        self.find(move |tables| tables.next_due(now))
    }

    fn claimed_elsewhere<'a>(&'a mut self, node: &'a str, limit: usize) -> Reply<'a, Vec<Task>> {
        self.find(move |tables| tables.claimed_elsewhere(node, limit))
    }

    fn open_children<'a>(&'a mut self, parent: &'a JobId) -> Reply<'a, Vec<JobId>> {
        self.find(|tables| tables.open_children(parent))
    }

    fn child_by_key<'a>(
        &'a mut self,
        parent: &'a JobId,
        child_key: &'a str,
    ) -> Reply<'a, Option<JobId>> {
        self.find(|tables| tables.child_by_key(parent, child_key))
    }

    fn by_unique_key<'a>(
        &'a mut self,
        workspace: &'a str,
        function: &'a str,
        unique_key: &'a str,
    ) -> Reply<'a, Option<JobId>> {
        self.find(|tables| tables.by_unique_key(workspace, function, unique_key))
    }

    fn open_jobs(&mut self) -> Reply<'_, u64> {
        self.find(|tables| tables.open.len() as u64)
    }

    fn jobs<'a>(
        &'a mut self,
        filter: &'a JobFilter,
        limit: usize,
    ) -> Reply<'a, Vec<(JobFacts, JobState)>> {
        self.find(move |tables| tables.list(filter, limit))
    }

    fn counts(&mut self) -> Reply<'_, JobCounts> {
        self.find(Tables::counts)
    }

    fn attempts<'a>(&'a mut self, id: &'a JobId) -> Reply<'a, Vec<AttemptRow>> {
        self.find(|tables| tables.attempts_of(id))
    }

    fn events<'a>(
        &'a mut self,
        id: &'a JobId,
        after: u64,
        limit: usize,
    ) -> Reply<'a, Vec<EventRow>> {
        self.find(move |tables| tables.events_of(id, after, limit))
    }

    fn prunable(&mut self, before: Millis, limit: usize) -> Reply<'_, Vec<JobId>> {
        self.find(move |tables| tables.prunable(before, limit))
    }

    fn queue<'a>(&'a mut self, name: &'a str) -> Reply<'a, Option<QueueRow>> {
        self.find(|tables| tables.queues.get(name).cloned())
    }

    fn queues(&mut self) -> Reply<'_, Vec<Queue>> {
        self.find(Tables::list_queues)
    }

    fn schedule<'a>(&'a mut self, id: &'a ScheduleId) -> Reply<'a, Option<ScheduleRow>> {
        self.find(|tables| tables.schedules.get(id).cloned())
    }

    fn schedule_named<'a>(
        &'a mut self,
        workspace: &'a str,
        name: &'a str,
    ) -> Reply<'a, Option<ScheduleRow>> {
        self.find(|tables| tables.schedule_named(workspace, name))
    }

    fn schedules<'a>(
        &'a mut self,
        after: Option<&'a ScheduleId>,
        limit: usize,
    ) -> Reply<'a, Vec<ScheduleRow>> {
        self.find(move |tables| tables.list_schedules(after, limit))
    }

    fn schedules_count(&mut self) -> Reply<'_, u64> {
        self.find(|tables| tables.schedules.len() as u64)
    }

    fn schedules_due(&mut self, now: Millis, limit: usize) -> Reply<'_, Vec<ScheduleRow>> {
        self.find(move |tables| tables.schedules_due(now, limit))
    }

    fn worker<'a>(&'a mut self, id: &'a str) -> Reply<'a, Option<WorkerRow>> {
        self.find(|tables| tables.worker(id))
    }

    fn open_workers<'a>(&'a mut self, pool: Option<&'a str>) -> Reply<'a, Vec<WorkerRow>> {
        self.find(move |tables| tables.open_workers(pool))
    }

    fn prunable_workers(&mut self, before: Millis, limit: usize) -> Reply<'_, Vec<String>> {
        self.find(move |tables| tables.prunable_workers(before, limit))
    }

    fn pool<'a>(&'a mut self, name: &'a str) -> Reply<'a, Option<PoolRow>> {
        self.find(|tables| tables.pools.get(name).cloned())
    }

    fn last_pool_number(&mut self) -> Reply<'_, u64> {
        self.find(|tables| tables.pools.values().map(|pool| pool.number).max().unwrap_or(0))
    }

    fn transitions<'a>(
        &'a mut self,
        entity: Entity,
        id: &'a str,
        after: u64,
        limit: usize,
    ) -> Reply<'a, Vec<TransitionRow>> {
        self.find(move |tables| tables.transitions_of(entity, id, after, limit))
    }

    fn entities<'a>(
        &'a mut self,
        entity: Entity,
        after: &'a str,
        limit: usize,
    ) -> Reply<'a, Vec<String>> {
        self.find(move |tables| tables.entities(entity, after, limit))
    }

    fn key<'a>(&'a mut self, key: &'a Key) -> Reply<'a, Option<KeyRow>> {
        self.find(|tables| tables.keys.get(key).cloned())
    }

    fn keys_count(&mut self) -> Reply<'_, u64> {
        self.find(|tables| tables.keys.len() as u64)
    }

    fn expired_keys(&mut self, now: Millis, limit: usize) -> Reply<'_, Vec<Key>> {
        self.find(move |tables| tables.expired_keys(now, limit))
    }
}
