//! Somebody wants a job to end, and with it all that is below it. First the wish is noted on the
//! whole tree; then whatever nobody works on ends, the deepest first; the rest ends when its work
//! has let go.

use ostler_core::JobStatus;

use super::super::draft::{Draft, Kept};
use super::super::error::LedgerError;
use super::super::id::JobId;
use super::super::job::Job;
use super::super::key::Asked;
use super::super::notice::Notice;
use super::super::row::JobState;
use super::check::note;
use super::settle::Consequences;
use super::step::{By, SYSTEM, actor};
use super::{Decided, Operation};

#[derive(Debug)]
pub(in crate::ledger) struct CancelJob {
    pub id: JobId,
    pub asked: Asked,
}

impl Operation for CancelJob {
    type Answer = Job;

    async fn decide(&self, draft: &mut Draft) -> Decided<Job> {
        let job = draft.existing(&self.id).await?;
        let from = job.state.status;
        if from.terminal() {
            let (id, to, allowed) = (self.id.clone(), JobStatus::Canceled, from.allowed());
            return Err(LedgerError::Illegal { id, from, to, allowed }.into());
        }
        if job.state.cancel_at.is_none() {
            let wanted = Wanted::asked(&self.asked);
            draft.follow(Consequences::of_cancel(self.id.clone(), wanted)).await?;
        }
        draft.mark_key(&self.asked, self.id.as_str()).await?;
        draft.show(&self.id).await
    }
}

/// Why a tree is to end, and by whom.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    reason: &'static str,
    by: String,
    note: Option<String>,
    request: Option<String>,
}

impl Wanted {
    pub fn because(reason: &'static str) -> Wanted {
        Wanted { reason, by: SYSTEM.to_owned(), note: None, request: None }
    }

    /// Its handler says so, and nobody asked.
    pub fn by_itself() -> Wanted {
        Wanted::because("cancelled")
    }

    pub fn timeout() -> Wanted {
        Wanted::because(TIMEOUT)
    }

    fn asked(asked: &Asked) -> Wanted {
        Wanted {
            reason: "cancelled",
            by: actor(asked).to_owned(),
            note: asked.reason.as_deref().map(note),
            request: asked.request_id.clone(),
        }
    }

    /// For those below the one that it was said of.
    fn below(&self) -> Wanted {
        Wanted { reason: "parent_cancelled", note: None, ..self.clone() }
    }
}

const TIMEOUT: &str = "timeout";

/// Who is to be named when a job that was to be cancelled is.
pub(super) fn by_of_cancel(state: &JobState) -> By {
    let timeout = state.cancel_reason.as_deref() == Some(TIMEOUT);
    By {
        trigger: if timeout { TIMEOUT } else { "cancel" },
        reason: state.cancel_note.clone().or_else(|| state.cancel_reason.clone()),
        actor: state.cancel_by.clone().unwrap_or_else(|| SYSTEM.to_owned()),
        request_id: state.cancel_request.clone(),
    }
}

impl Draft {
    pub(super) async fn cancel_tree(
        &mut self,
        top: &JobId,
        wanted: &Wanted,
        left: &mut Consequences,
    ) -> Decided<()> {
        let tree = self.tree(top).await?;
        for id in &tree {
            let wanted = if id == top { wanted.clone() } else { wanted.below() };
            self.note_cancel(id, &wanted).await?;
        }
        for id in tree.iter().rev() {
            let job = self.existing(id).await?;
            if !job.waits() && self.task(id).await?.is_none() {
                left.ended.push_back(self.put_end(job));
            }
        }
        Ok(())
    }

    /// The job and all below it that has no end and is not to be cancelled yet; each before its
    /// children.
    async fn tree(&mut self, top: &JobId) -> Decided<Vec<JobId>> {
        let mut tree = Vec::new();
        let mut level = vec![top.clone()];
        while !level.is_empty() {
            self.prefetch(level.iter()).await?;
            let mut next = Vec::new();
            for id in level {
                let Some(job) = self.job(&id).await?.filter(untouched) else { continue };
                if job.waits() {
                    next.extend(self.stored().await?.open_children(&id).await?);
                }
                tree.push(id);
            }
            level = next;
        }
        Ok(tree)
    }

    async fn note_cancel(&mut self, id: &JobId, wanted: &Wanted) -> Decided<()> {
        let mut job = self.existing(id).await?;
        job.state.cancel_at = Some(self.now);
        job.state.cancel_reason = Some(wanted.reason.to_owned());
        job.state.cancel_by = Some(wanted.by.clone());
        job.state.cancel_note = wanted.note.clone();
        job.state.cancel_request = wanted.request.clone();
        job.state.version += 1;
        match self.task(id).await? {
            Some(task) if task.node.is_some() => {
                let (job, fence) = (id.clone(), task.fence);
                self.tell(Notice::CancelAsked { job, fence, reason: wanted.reason.to_owned() });
            }
            Some(task) => {
                self.drop_task(&task);
                job.state.waiting = true;
            }
            // Its own work is done: it ends with the last of its children.
            None => job.state.waiting = true,
        }
        self.put_state(job.state);
        Ok(())
    }
}

fn untouched(job: &Kept) -> bool {
    !job.state.status.terminal() && job.state.cancel_at.is_none()
}
