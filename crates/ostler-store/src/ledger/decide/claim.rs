//! Work is taken: from now on it is this node's, and RUNNING.

use ostler_core::JobStatus;

use super::super::draft::{Draft, Kept};
use super::super::id::JobId;
use super::super::job::Claimed;
use super::super::row::{AttemptRow, Task};
use super::step::By;
use super::{Decided, Operation};

/// Of one operation, whatever was asked for.
const CLAIM_MAX: usize = 256;

/// Up to `limit` jobs of one worker each.
#[derive(Debug)]
pub(in crate::ledger) struct Claim {
    pub pool: String,
    pub limit: usize,
}

impl Operation for Claim {
    type Answer = Vec<Claimed>;

    const LAST: bool = true;

    async fn decide(&self, draft: &mut Draft) -> Decided<Vec<Claimed>> {
        let limit = self.limit.min(CLAIM_MAX);
        let mut claimed = Vec::new();
        // Some are held up by others with their key: then those behind them are looked at.
        for _ in 0..=limit {
            let tasks = draft.take_ready(&self.pool, limit - claimed.len()).await?;
            if tasks.is_empty() {
                break;
            }
            draft.prefetch(tasks.iter().map(|task| &task.job)).await?;
            for task in tasks {
                if draft.has_room(&task).await? {
                    claimed.extend(draft.claim(task).await?);
                }
            }
        }
        Ok(claimed)
    }
}

/// That one, if it may be claimed.
#[derive(Debug)]
pub(in crate::ledger) struct ClaimJob {
    pub id: JobId,
}

impl Operation for ClaimJob {
    type Answer = Option<Claimed>;

    const LAST: bool = true;

    async fn decide(&self, draft: &mut Draft) -> Decided<Option<Claimed>> {
        let Some(task) = draft.task(&self.id).await? else { return Ok(None) };
        let free = task.node.is_none() && task.run_at <= draft.now;
        if !free || draft.paused(&task.queue).await? || !draft.has_room(&task).await? {
            return Ok(None);
        }
        draft.claim(task).await
    }
}

impl Draft {
    async fn paused(&mut self, queue: &str) -> Decided<bool> {
        Ok(self.queue(queue).await?.is_some_and(|queue| queue.paused_at.is_some()))
    }

    async fn has_room(&mut self, task: &Task) -> Decided<bool> {
        let Some(key) = &task.concurrency_key else { return Ok(true) };
        Ok(self.stored().await?.running_with(key).await? < task.concurrency_limit)
    }

    async fn claim(&mut self, mut task: Task) -> Decided<Option<Claimed>> {
        let Some(mut job) = self.job(&task.job).await? else { return Ok(None) };
        task.node = Some(self.node.to_string());
        task.fence += 1;
        task.attempt += 1;
        let (attempt, fence) = (task.attempt, task.fence);
        job.state.attempt = attempt;
        self.start(&mut job);
        job.state.version += 1;
        self.put_attempt(AttemptRow {
            job: task.job.clone(),
            attempt,
            fence,
            node: self.node.to_string(),
            workers: "[]".to_owned(),
            started_at: self.now,
            ended_at: None,
            outcome: None,
            error: None,
        });
        self.put_claimed_task(task);
        self.put_state(job.state.clone());
        Ok(Some(Claimed { job: self.shown(&job), attempt, fence }))
    }

    /// It is RUNNING, now or already.
    fn start(&mut self, job: &mut Kept) {
        let by = By::system("claim");
        if job.state.status == JobStatus::Submitted {
            self.step(job, JobStatus::Pending, &By::system("due"));
        }
        if job.state.status == JobStatus::Pending {
            self.step(job, JobStatus::Running, &by);
        }
        if job.state.started_at.is_some() {
            return;
        }
        job.state.started_at = Some(self.now);
        job.state.deadline = job.spec.timeout.map(|timeout| self.now.saturating_add(timeout));
        if let Some(deadline) = job.state.deadline {
            self.tell_due(deadline);
        }
    }
}
