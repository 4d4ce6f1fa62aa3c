//! The end of an attempt, accepted once: by the node that has the job, with the fence under which it
//! was claimed.

use ostler_core::{AttemptFailure, JobStatus, NextTry};
use serde_json::{Value, json};

use super::super::draft::{Draft, Kept};
use super::super::id::JobId;
use super::super::job::{AttemptEnd, Finished, Saying};
use super::super::row::{JobResult, Task};
use super::super::shown;
use super::cancel::Wanted;
use super::settle::Consequences;
use super::step::By;
use super::{Decided, Operation};
use crate::clock::millis;
use crate::content::Content;

#[derive(Debug)]
pub(in crate::ledger) struct Finish {
    pub id: JobId,
    pub fence: u64,
    /// Said before it ended.
    pub said: Vec<Saying>,
    pub end: AttemptEnd,
}

impl Operation for Finish {
    type Answer = Finished;

    async fn decide(&self, draft: &mut Draft) -> Decided<Finished> {
        let Some(task) = draft.held(&self.id, self.fence).await? else {
            return Ok(Finished::Stale);
        };
        let mut job = draft.existing(&self.id).await?;
        draft.say_all(&mut job, &task, &self.said).await?;
        draft.end_attempt(job, task, &self.end).await?;
        let job = draft.existing(&self.id).await?;
        let result = match &self.end {
            AttemptEnd::Completed(content) => Some(result(&self.id, content)),
            _ => None,
        };
        let shown = shown::job(&job.facts, &job.spec, &job.state, result.as_ref());
        Ok(Finished::Taken(Box::new(shown)))
    }

    fn weight(&self) -> usize {
        match &self.end {
            AttemptEnd::Completed(content) => content.bytes.len(),
            _ => 0,
        }
    }
}

fn result(id: &JobId, content: &Content) -> JobResult {
    let (content_type, bytes) = (content.content_type.to_string(), content.bytes.clone());
    JobResult { id: id.clone(), content_type, bytes }
}

impl Draft {
    /// The task, if this node has it under this fence.
    pub(super) async fn held(&mut self, id: &JobId, fence: u64) -> Decided<Option<Task>> {
        let node = std::sync::Arc::clone(&self.node);
        let held = |task: &Task| task.node.as_deref() == Some(&*node) && task.fence == fence;
        Ok(self.task(id).await?.filter(held))
    }

    /// As if it had never been claimed, if it still is.
    pub(in crate::ledger) async fn release(&mut self, id: &JobId, fence: u64) -> Decided<()> {
        let Some(task) = self.held(id, fence).await? else { return Ok(()) };
        let job = self.existing(id).await?;
        self.end_attempt(job, task, &AttemptEnd::Released).await
    }

    pub(super) async fn end_attempt(
        &mut self,
        mut job: Kept,
        mut task: Task,
        end: &AttemptEnd,
    ) -> Decided<()> {
        if matches!(end, AttemptEnd::Released) {
            self.drop_attempt(&task.job, task.attempt);
            task.attempt -= 1;
            job.state.attempt = task.attempt;
        } else {
            self.close_attempt(&task, end).await?;
        }
        if task.concurrency_key.is_some() {
            self.tell_ready(&task.pool, self.now);
            // Pools that wait for the same key are found when time is kept.
            self.kept_until = 0;
        }
        if job.state.cancel_at.is_some() {
            self.drop_task(&task);
            return self.let_go(job).await;
        }
        match end {
            AttemptEnd::Completed(content) => self.returned(job, task, content).await,
            AttemptEnd::Failed { failure, error } => self.failed(job, task, *failure, error).await,
            AttemptEnd::Canceled => {
                self.drop_task(&task);
                self.put_state(job.state);
                self.follow(Consequences::of_cancel(task.job, Wanted::by_itself())).await
            }
            AttemptEnd::Released => {
                if task.attempt == 0 {
                    // It never began, so neither did its time.
                    (job.state.started_at, job.state.deadline) = (None, None);
                }
                // In its old place: whoever was let down does not go to the end of the line.
                let at = task.run_at;
                self.give_back(task, at);
                job.state.version += 1;
                self.put_state(job.state);
                Ok(())
            }
        }
    }

    async fn close_attempt(&mut self, task: &Task, end: &AttemptEnd) -> Decided<()> {
        let Some(mut row) = self.attempt(&task.job, task.attempt).await? else { return Ok(()) };
        row.ended_at = Some(self.now);
        row.outcome = Some(outcome(end).to_owned());
        if let AttemptEnd::Failed { error, .. } = end {
            row.error = Some(error.to_string());
        }
        self.put_attempt(row);
        Ok(())
    }

    /// Its cancellation was asked for, and its work has ended: so has it, unless what is below it
    /// still runs.
    async fn let_go(&mut self, mut job: Kept) -> Decided<()> {
        if job.waits() {
            job.state.waiting = true;
            job.state.version += 1;
            self.put_state(job.state);
            return Ok(());
        }
        self.conclude(job).await
    }

    async fn returned(&mut self, mut job: Kept, task: Task, content: &Content) -> Decided<()> {
        let (bytes, max) = (content.bytes.len() as u64, self.settings.result_max);
        if bytes > max {
            let message = format!(
                "the result has {bytes} bytes and may have {max}; return less, or raise \
                 `result_max` in [jobs]"
            );
            let error = json!({ "code": "result_too_large", "message": message });
            return self.fail(job, &task, "result_too_large", &error).await;
        }
        self.drop_task(&task);
        self.add_result(result(&task.job, content));
        if !job.waits() {
            return self.conclude(job).await;
        }
        job.state.waiting = true;
        self.add_line(&mut job, "attempt", attempt_line(&task, "completed"));
        self.put_state(job.state);
        Ok(())
    }

    async fn failed(
        &mut self,
        mut job: Kept,
        task: Task,
        failure: AttemptFailure,
        error: &Value,
    ) -> Decided<()> {
        let draw = self.dice.draw();
        match job.spec.retrying().next(failure, task.attempt, draw) {
            NextTry::Never => self.fail(job, &task, reason(failure), error).await,
            NextTry::After(delay) => {
                job.state.error = Some(error.to_string());
                self.add_line(&mut job, "attempt", attempt_line(&task, failure.name()));
                self.put_state(job.state);
                self.give_back(task, self.now.saturating_add(millis(delay)));
                Ok(())
            }
        }
    }

    async fn fail(
        &mut self,
        mut job: Kept,
        task: &Task,
        reason: &str,
        error: &Value,
    ) -> Decided<()> {
        self.drop_task(task);
        job.state.error = Some(error.to_string());
        job.state.reason = Some(reason.to_owned());
        self.step(&mut job, JobStatus::Failed, &By::system("fail").because(reason));
        self.put_state(job.state);
        self.follow(Consequences::of_end(task.job.clone())).await
    }

    /// Nobody has it any more; it may be claimed from then on.
    fn give_back(&mut self, mut task: Task, at: i64) {
        task.node = None;
        task.run_at = at;
        self.tell_ready(&task.pool, at);
        self.put_task(task);
    }
}

fn outcome(end: &AttemptEnd) -> &'static str {
    match end {
        AttemptEnd::Completed(_) => "completed",
        AttemptEnd::Failed { failure, .. } => failure.name(),
        AttemptEnd::Canceled => "canceled",
        AttemptEnd::Released => "released",
    }
}

fn reason(failure: AttemptFailure) -> &'static str {
    match failure {
        AttemptFailure::Invalid => "invalid_arguments",
        AttemptFailure::Lost => "lost",
        AttemptFailure::Crashed => "worker_crashed",
        AttemptFailure::Error | AttemptFailure::Retryable => "application_error",
    }
}

fn attempt_line(task: &Task, outcome: &str) -> String {
    json!({ "attempt": task.attempt, "outcome": outcome }).to_string()
}
