//! What the end of one job means for those above and below it.
//!
//! ```text
//!  a child ended ──▶ its parent has one open child less
//!        └─ not COMPLETED ──▶ the parent remembers why; its other children are cancelled
//!  the parent waits, and none is open ──▶ COMPLETED, FAILED (child_failed) or CANCELED
//!  a parent FAILED or CANCELED ──▶ its open children are cancelled
//! ```
//!
//! Only where the parent waits for its children: otherwise they are counted and go on.

use std::collections::VecDeque;

use ostler_core::JobStatus;
use serde_json::json;

use super::super::draft::{Draft, Kept};
use super::super::id::JobId;
use super::Decided;
use super::cancel::{Wanted, by_of_cancel};
use super::step::By;

/// What is left to do after a change, in the order in which it came up.
#[derive(Debug, Default)]
pub(super) struct Consequences {
    /// Trees that are to be cancelled.
    pub cancels: VecDeque<(JobId, Wanted)>,
    /// Jobs that have just ended.
    pub ended: VecDeque<JobId>,
}

impl Consequences {
    pub fn of_end(id: JobId) -> Self {
        Consequences { ended: [id].into(), ..Consequences::default() }
    }

    pub fn of_cancel(id: JobId, wanted: Wanted) -> Self {
        Consequences { cancels: [(id, wanted)].into(), ..Consequences::default() }
    }
}

impl Kept {
    /// It cannot end before others have.
    pub(super) fn waits(&self) -> bool {
        self.spec.wait && self.state.open_children > 0
    }
}

impl Draft {
    /// Until nothing follows any more.
    pub(super) async fn follow(&mut self, mut left: Consequences) -> Decided<()> {
        loop {
            if let Some((id, wanted)) = left.cancels.pop_front() {
                self.cancel_tree(&id, &wanted, &mut left).await?;
            } else if let Some(id) = left.ended.pop_front() {
                self.after_end(&id, &mut left).await?;
            } else {
                return Ok(());
            }
        }
    }

    /// The end of a job whose work has ended and which waits for nobody.
    pub(super) async fn conclude(&mut self, job: Kept) -> Decided<()> {
        let id = self.put_end(job);
        self.follow(Consequences::of_end(id)).await
    }

    /// Which end it is.
    pub(super) fn put_end(&mut self, mut job: Kept) -> JobId {
        job.state.error = None;
        let (to, by) = if job.state.cancel_at.is_some() {
            job.state.reason = job.state.cancel_reason.clone();
            (JobStatus::Canceled, by_of_cancel(&job.state))
        } else if job.state.child_error.is_some() {
            job.state.reason = Some(CHILD_FAILED.to_owned());
            job.state.error = job.state.child_error.clone();
            (JobStatus::Failed, By::system("fail").because(CHILD_FAILED))
        } else {
            (JobStatus::Completed, By::system("complete"))
        };
        self.step(&mut job, to, &by);
        self.put_state(job.state);
        job.facts.id.clone()
    }

    async fn after_end(&mut self, id: &JobId, left: &mut Consequences) -> Decided<()> {
        let job = self.existing(id).await?;
        if job.waits() && job.state.status != JobStatus::Completed {
            let reason = match job.state.status {
                JobStatus::Failed => "parent_failed",
                _ => "parent_cancelled",
            };
            self.cancel_children(id, reason, left).await?;
        }
        let Some(parent) = &job.facts.parent else { return Ok(()) };
        match self.job(parent).await? {
            Some(parent) => self.after_child(parent, &job, left).await,
            None => Ok(()),
        }
    }

    async fn after_child(
        &mut self,
        mut parent: Kept,
        child: &Kept,
        left: &mut Consequences,
    ) -> Decided<()> {
        let id = parent.facts.id.clone();
        parent.state.open_children = parent.state.open_children.saturating_sub(1);
        parent.state.version += 1;
        let concerned =
            parent.spec.wait && !parent.state.status.terminal() && parent.state.cancel_at.is_none();
        let spoiled = concerned
            && parent.state.child_error.is_none()
            && child.state.status != JobStatus::Completed;
        if spoiled {
            parent.state.child_error = Some(child_error(child));
        }
        if parent.state.waiting && !parent.state.status.terminal() && !parent.waits() {
            left.ended.push_back(self.put_end(parent));
            return Ok(());
        }
        self.put_state(parent.state);
        if spoiled {
            self.cancel_children(&id, "sibling_failed", left).await?;
        }
        Ok(())
    }

    async fn cancel_children(
        &mut self,
        parent: &JobId,
        reason: &'static str,
        left: &mut Consequences,
    ) -> Decided<()> {
        for child in self.stored().await?.open_children(parent).await? {
            left.cancels.push_back((child, Wanted::because(reason)));
        }
        Ok(())
    }
}

const CHILD_FAILED: &str = "child_failed";

fn child_error(child: &Kept) -> String {
    let (id, status) = (child.facts.id.as_str(), child.state.status.name());
    let reason = child.state.reason.as_deref().unwrap_or_default();
    let message = format!("its child `{id}` is {status} ({reason})");
    json!({
        "code": CHILD_FAILED,
        "message": message,
        "job_id": id,
        "status": status,
        "reason": reason,
    })
    .to_string()
}
