//! What time asks for: jobs that are due, jobs that took too long, schedules, and what was kept long
//! enough. A bounded part of it at once; what is left is done the next time, which is then now.

use ostler_core::JobStatus;

use super::super::draft::Draft;
use super::super::notice::Notice;
use super::super::row::{Millis, Row};
use super::cancel::Wanted;
use super::settle::Consequences;
use super::step::By;
use super::{Decided, Operation};
use crate::clock::millis;

/// Of each kind.
const CHUNK: usize = 256;

/// One part of it. Each stands for itself: what is wrong with one does not stop the others.
#[derive(Debug, Clone, Copy)]
pub(in crate::ledger) enum Chore {
    StartDue,
    EndOverdue,
    FireSchedules,
    SweepKeys,
    PruneJobs,
    PruneWorkers,
}

impl Operation for Chore {
    /// Whether there may be more of it.
    type Answer = bool;

    async fn decide(&self, draft: &mut Draft) -> Decided<bool> {
        let done = match self {
            Chore::StartDue => draft.start_due().await?,
            Chore::EndOverdue => draft.end_overdue().await?,
            Chore::FireSchedules => draft.fire_schedules(CHUNK).await?,
            Chore::SweepKeys => draft.sweep_keys().await?,
            Chore::PruneJobs => draft.prune_jobs().await?,
            Chore::PruneWorkers => draft.prune_workers().await?,
        };
        Ok(done == CHUNK)
    }
}

/// After the chores.
#[derive(Debug)]
pub(in crate::ledger) struct NextDue;

impl Operation for NextDue {
    /// Now, and when time has something to do again.
    type Answer = (Millis, Option<Millis>);

    const LAST: bool = true;

    async fn decide(&self, draft: &mut Draft) -> Decided<(Millis, Option<Millis>)> {
        draft.tell_ready_pools().await?;
        let now = draft.now;
        let next = draft.stored().await?.next_due(now).await?;
        draft.next_due = next.unwrap_or(Millis::MAX);
        draft.quiet_until = draft.next_due;
        Ok((now, next))
    }
}

impl Draft {
    async fn start_due(&mut self) -> Decided<usize> {
        let now = self.now;
        let due = self.stored().await?.due(now, CHUNK).await?;
        self.prefetch(due.iter()).await?;
        for id in &due {
            let mut job = self.existing(id).await?;
            self.step(&mut job, JobStatus::Pending, &By::system("due"));
            self.tell_ready(&job.facts.pool, now);
            self.put_state(job.state);
        }
        Ok(due.len())
    }

    async fn end_overdue(&mut self) -> Decided<usize> {
        let now = self.now;
        let overdue = self.stored().await?.overdue(now, CHUNK).await?;
        for id in &overdue {
            self.follow(Consequences::of_cancel(id.clone(), Wanted::timeout())).await?;
        }
        Ok(overdue.len())
    }

    async fn sweep_keys(&mut self) -> Decided<usize> {
        let now = self.now;
        let expired = self.stored().await?.expired_keys(now, CHUNK).await?;
        let found = expired.len();
        for key in expired {
            self.put_key(key, None, -1);
        }
        Ok(found)
    }

    async fn prune_jobs(&mut self) -> Decided<usize> {
        let before = self.now.saturating_sub(millis(self.settings.retention));
        let old = self.stored().await?.prunable(before, CHUNK).await?;
        for id in &old {
            self.add(Row::Prune(id.clone()));
            self.tell(Notice::JobPruned { job: id.clone() });
            self.forget_job(id);
        }
        Ok(old.len())
    }

    async fn prune_workers(&mut self) -> Decided<usize> {
        let before = self.now.saturating_sub(millis(self.settings.worker_retention));
        let old = self.stored().await?.prunable_workers(before, CHUNK).await?;
        let found = old.len();
        for id in old {
            self.prune_worker(id);
        }
        Ok(found)
    }

    /// Pools whose tasks may be claimed since time was kept the last time.
    async fn tell_ready_pools(&mut self) -> Decided<()> {
        let (since, now) = (self.kept_until, self.now);
        for pool in self.stored().await?.ready_pools(since, now).await? {
            self.tell_ready(&pool, now);
            self.forget_ready();
        }
        self.kept_until = now;
        Ok(())
    }
}
