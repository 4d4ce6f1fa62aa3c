//! Jobs and what belongs to them, row by row.

use std::sync::Arc;

use super::super::backend::Failed;
use super::super::id::JobId;
use super::super::row::{
    AttemptRow, EventRow, JobFacts, JobResult, JobState, Row, Task, TransitionRow,
};
use super::super::shown;
use super::{Draft, Kept};

/// Tasks that are read for one claim and those behind it.
const READ_AHEAD: usize = 256;

impl Draft {
    pub async fn job(&mut self, id: &JobId) -> Result<Option<Kept>, Failed> {
        if self.states.get(id).is_none() || self.facts.get(id).is_none() {
            let row = self.began().await?.job(id).await?;
            self.learn(id.clone(), row)?;
        }
        let Some(Some(state)) = self.states.get(id) else { return Ok(None) };
        let state = state.clone();
        let Some(Some((facts, spec))) = self.facts.get(id) else { return Ok(None) };
        Ok(Some(Kept { facts: Arc::clone(facts), spec: Arc::clone(spec), state }))
    }

    /// So that they are known, all with one question.
    pub async fn prefetch(&mut self, ids: impl Iterator<Item = &JobId>) -> Result<(), Failed> {
        let unknown = |id: &&JobId| self.states.get(id).is_none() || self.facts.get(id).is_none();
        let ids: Vec<JobId> = ids.filter(unknown).cloned().collect();
        if ids.is_empty() {
            return Ok(());
        }
        for row in self.began().await?.jobs_of(&ids).await? {
            self.learn(row.0.id.clone(), Some(row))?;
        }
        Ok(())
    }

    fn learn(&mut self, id: JobId, row: Option<(JobFacts, JobState)>) -> Result<(), Failed> {
        let Some((facts, state)) = row else {
            self.facts.learn(id.clone(), None);
            self.states.learn(id, None);
            return Ok(());
        };
        let spec = Arc::new(shown::spec(&facts)?);
        self.facts_bytes += facts.payload.len();
        self.facts.learn(id.clone(), Some((Arc::new(facts), spec)));
        self.states.learn(id, Some(state));
        Ok(())
    }

    pub fn insert_job(&mut self, job: &Kept) {
        let (facts, spec) = (Arc::clone(&job.facts), Arc::clone(&job.spec));
        self.new_facts.push(Row::Facts(Box::new(JobFacts::clone(&facts))));
        self.facts_bytes += facts.payload.len();
        self.facts.put(facts.id.clone(), Some((facts, spec)));
        self.open_jobs = self.open_jobs.map(|open| open + 1);
        self.put_state(job.state.clone());
    }

    /// Also what makes it count no more among the open ones.
    pub fn put_state(&mut self, state: JobState) {
        self.changes += 1;
        self.witness = Some(state.id.clone());
        self.states.put(state.id.clone(), Some(state));
    }

    /// It has its end by now.
    pub fn note_end(&mut self, id: &JobId) {
        self.open_jobs = self.open_jobs.map(|open| open.saturating_sub(1));
        self.ended.push(id.clone());
    }

    pub async fn open_jobs(&mut self) -> Result<u64, Failed> {
        if self.open_jobs.is_none() {
            self.open_jobs = Some(self.stored().await?.open_jobs().await?);
        }
        Ok(self.open_jobs.unwrap_or(0))
    }

    pub async fn task(&mut self, id: &JobId) -> Result<Option<Task>, Failed> {
        if self.tasks.get(id).is_none() {
            let task = self.began().await?.task(id).await?;
            self.tasks.learn(id.clone(), task);
        }
        Ok(self.tasks.get(id).cloned().flatten())
    }

    /// Nobody has it.
    pub fn put_task(&mut self, task: Task) {
        self.changes += 1;
        let open = self
            .queues
            .get(&task.queue)
            .is_some_and(|queue| queue.as_ref().is_none_or(|queue| queue.paused_at.is_none()));
        if task.workers > 1 || task.run_at > self.now {
            // Those who claim one by one do not get it, or not yet.
        } else if open && task.concurrency_key.is_none() {
            self.ready.add(&task);
        } else {
            self.ready.forget();
        }
        self.tasks.put(task.job.clone(), Some(task));
    }

    /// Somebody has it.
    pub fn put_claimed_task(&mut self, task: Task) {
        self.changes += 1;
        self.claims.push((task.job.clone(), task.fence));
        match task.concurrency_key {
            Some(_) => self.ready.forget(),
            None => self.ready.remove(&task),
        }
        self.tasks.put(task.job.clone(), Some(task));
    }

    pub fn drop_task(&mut self, task: &Task) {
        self.changes += 1;
        match &task.concurrency_key {
            Some(_) => self.ready.forget(),
            None => self.ready.remove(task),
        }
        self.tasks.put(task.job.clone(), None);
    }

    /// The next tasks that may be claimed, the most urgent first. Each is given once.
    pub async fn take_ready(&mut self, pool: &str, limit: usize) -> Result<Vec<Task>, Failed> {
        if self.now >= self.quiet_until {
            self.ready.forget();
        }
        let taken = match self.ready.take(pool, limit) {
            Some(taken) => taken,
            None => {
                let (now, wanted) = (self.now, limit.max(READ_AHEAD));
                let tasks = self.stored().await?.ready(pool, now, false, wanted).await?;
                self.ready.learn(pool, tasks, wanted);
                self.ready.take(pool, limit).unwrap_or_default()
            }
        };
        for task in &taken {
            self.tasks.learn(task.job.clone(), Some(task.clone()));
        }
        Ok(taken)
    }

    pub async fn attempt(
        &mut self,
        id: &JobId,
        attempt: u32,
    ) -> Result<Option<AttemptRow>, Failed> {
        let key = (id.clone(), attempt);
        if self.attempts.get(&key).is_none() {
            let rows = self.stored().await?.attempts(id).await?;
            let row = rows.into_iter().find(|row| row.attempt == attempt);
            self.attempts.learn(key.clone(), row);
        }
        Ok(self.attempts.get(&key).cloned().flatten())
    }

    pub fn put_attempt(&mut self, row: AttemptRow) {
        self.changes += 1;
        self.attempts.put((row.job.clone(), row.attempt), Some(row));
    }

    pub fn drop_attempt(&mut self, id: &JobId, attempt: u32) {
        self.changes += 1;
        self.attempts.put((id.clone(), attempt), None);
    }

    pub fn add_result(&mut self, row: JobResult) {
        self.changes += 1;
        self.results.push(Row::Result(row));
    }

    pub fn add_transition(&mut self, row: TransitionRow) {
        self.changes += 1;
        self.transitions.push(Row::Transition(row));
    }

    pub fn add_event(&mut self, row: EventRow) {
        self.changes += 1;
        self.said.insert(row.job.clone(), row.seq);
        self.events.push(Row::Event(row));
    }

    /// It is pruned.
    pub fn forget_job(&mut self, id: &JobId) {
        self.ended.push(id.clone());
    }
}
