//! What is not a job, row by row; and what is told.

use super::super::backend::Failed;
use super::super::id::ScheduleId;
use super::super::key::Key;
use super::super::notice::Notice;
use super::super::row::{KeyRow, Millis, PoolRow, QueueRow, Row, ScheduleRow, WorkerRow};
use super::Draft;

impl Draft {
    /// A row that is not read again in this transaction, behind all others.
    pub fn add(&mut self, row: Row) {
        self.changes += 1;
        self.others.push(row);
    }

    /// What is told once it is committed.
    pub fn tell(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    /// A task of this pool may be claimed from then on.
    pub fn tell_ready(&mut self, pool: &str, at: Millis) {
        if at > self.now {
            self.tell_due(at);
        } else if !self.ready_pools.contains(pool) {
            self.ready_pools.insert(pool.to_owned());
        }
    }

    /// Time has something to do then.
    pub fn tell_due(&mut self, at: Millis) {
        self.quiet_until = self.quiet_until.min(at);
        if at < self.next_due {
            self.next_due = at;
            self.due_sooner = true;
        }
    }

    /// Some tasks may be claimed by now of which nobody was told.
    pub fn forget_ready(&mut self) {
        self.ready.forget();
    }

    pub async fn key(&mut self, key: &Key) -> Result<Option<KeyRow>, Failed> {
        if self.keys.get(key).is_none() {
            let row = self.began().await?.key(key).await?;
            self.note_answered(key, row.as_ref());
            self.keys.learn(key.clone(), row);
        }
        Ok(self.keys.get(key).cloned().flatten())
    }

    /// None: it is gone. `more`: rows that there are more than before.
    pub fn put_key(&mut self, key: Key, row: Option<KeyRow>, more: i64) {
        self.changes += 1;
        self.keys_count = self.keys_count.map(|count| count.saturating_add_signed(more));
        self.note_answered(&key, row.as_ref());
        self.keys.put(key, row);
    }

    /// Answers may be large and are seldom asked for: they are not kept in memory.
    fn note_answered(&mut self, key: &Key, row: Option<&KeyRow>) {
        if row.is_some_and(|row| row.answer.is_some()) {
            self.answered.push(key.clone());
        }
    }

    pub async fn keys_count(&mut self) -> Result<u64, Failed> {
        if self.keys_count.is_none() {
            self.keys_count = Some(self.stored().await?.keys_count().await?);
        }
        Ok(self.keys_count.unwrap_or(0))
    }

    pub async fn worker(&mut self, id: &str) -> Result<Option<WorkerRow>, Failed> {
        let id = id.to_owned();
        if self.workers.get(&id).is_none() {
            let row = self.began().await?.worker(&id).await?.filter(|row| row.id == id);
            self.workers.learn(id.clone(), row);
        }
        Ok(self.workers.get(&id).cloned().flatten())
    }

    pub fn put_worker(&mut self, row: WorkerRow) {
        self.changes += 1;
        self.workers.put(row.id.clone(), Some(row));
    }

    pub fn prune_worker(&mut self, id: String) {
        self.workers.put(id.clone(), None);
        self.add(Row::PruneWorker(id));
    }

    pub async fn pool(&mut self, name: &str) -> Result<Option<PoolRow>, Failed> {
        let name = name.to_owned();
        if self.pools.get(&name).is_none() {
            let row = self.began().await?.pool(&name).await?;
            self.pools.learn(name.clone(), row);
        }
        Ok(self.pools.get(&name).cloned().flatten())
    }

    pub fn put_pool(&mut self, row: PoolRow) {
        self.changes += 1;
        self.pools.put(row.name.clone(), Some(row));
    }

    pub async fn queue(&mut self, name: &str) -> Result<Option<QueueRow>, Failed> {
        let name = name.to_owned();
        if self.queues.get(&name).is_none() {
            let row = self.began().await?.queue(&name).await?;
            self.queues.learn(name.clone(), row);
        }
        Ok(self.queues.get(&name).cloned().flatten())
    }

    pub fn put_queue(&mut self, row: QueueRow) {
        self.changes += 1;
        self.ready.forget();
        self.queues.put(row.name.clone(), Some(row));
    }

    pub async fn schedule(&mut self, id: &ScheduleId) -> Result<Option<ScheduleRow>, Failed> {
        if self.schedules.get(id).is_none() {
            let row = self.began().await?.schedule(id).await?;
            self.schedules.learn(id.clone(), row);
        }
        Ok(self.schedules.get(id).cloned().flatten())
    }

    pub fn put_schedule(&mut self, id: ScheduleId, row: Option<ScheduleRow>) {
        self.changes += 1;
        self.schedules.put(id, row);
    }
}
