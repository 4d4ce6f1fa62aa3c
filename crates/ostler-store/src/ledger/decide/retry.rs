//! A new job like one that has ended without a result.

use ostler_core::JobStatus;

use super::super::draft::Draft;
use super::super::error::LedgerError;
use super::super::id::JobId;
use super::super::job::{Job, NewJob};
use super::super::key::Asked;
use super::check::invalid;
use super::step::By;
use super::submit::Origin;
use super::{Decided, Operation};

#[derive(Debug)]
pub(in crate::ledger) struct Retry {
    pub id: JobId,
    pub asked: Asked,
}

impl Operation for Retry {
    type Answer = Job;

    async fn decide(&self, draft: &mut Draft) -> Decided<Job> {
        let old = draft.existing(&self.id).await?;
        let from = old.state.status;
        if !matches!(from, JobStatus::Failed | JobStatus::Canceled) {
            let (id, to, allowed) = (self.id.clone(), JobStatus::Submitted, from.allowed());
            return Err(LedgerError::Illegal { id, from, to, allowed }.into());
        }
        // It stands for itself: its parent has ended, or has judged without it.
        let job = NewJob {
            parent: None,
            depth: None,
            child_key: None,
            run_at: None,
            ..old.spec.job(&old.facts)
        };
        if let Some(living) = draft.known(&job).await? {
            let what = format!("the job `{living}` has the same `unique_key` and no end yet");
            return Err(invalid("unique_key", what).into());
        }
        draft.check_quota(1).await?;
        let origin = Origin { retry_of: Some(self.id.clone()), ..Origin::default() };
        let kept = draft.add_job(&job, origin, &By::asked("submit", &self.asked)).await?;
        draft.mark_key(&self.asked, kept.facts.id.as_str()).await?;
        Ok(draft.shown(&kept))
    }
}
