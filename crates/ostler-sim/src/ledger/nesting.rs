//! Requests that keep a place while they wait for a call of their own. Whoever waits in a queue can
//! go on if some place that it may have can come free; a place can if whoever keeps it does not
//! itself wait for somebody who cannot go on. What is left when nobody more can be shown to go on
//! is a circle.

use std::collections::BTreeSet;

use ostler_core::{RequestId, Status, Target, Time, WorkerId};

use super::Ledger;
use super::process::Row;
use crate::violation::{Verdict, require};

/// When nobody pauses any more.
const LATER: Time = Time::from_nanos(u64::MAX);

/// Which way doubts are settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doubt {
    /// Somebody sits in a circle: whatever may yet help counts.
    Hopeful,
    /// Somebody is refused for a circle: only what surely helps counts.
    Strict,
}

impl Ledger {
    /// A request is told that it would close a circle.
    pub(super) fn judge_circle(&self, request: RequestId) -> Verdict {
        let nested = !self.spec(request).ancestors.is_empty();
        let stuck = self.stuck(Doubt::Strict, LATER);
        require!(
            nested && stuck.contains(&request),
            "a circle is refused only where there is one",
            "{request:?} {:?} could go on; stuck: {stuck:?}",
            self.spec(request)
        );
        Ok(())
    }

    /// Between two events: nobody sits in a circle that nothing but a deadline ends.
    pub(super) fn check_circles(&self, now: Time) -> Verdict {
        let overdue = self.awaited.is_some_and(|at| at <= now);
        if overdue || self.breaker_open || self.control.paused || !self.requests.any_nested_waits()
        {
            return Ok(());
        }
        let stuck = self.stuck(Doubt::Hopeful, now);
        let first = stuck.first().map(|id| (id, self.spec(*id)));
        require!(
            first.is_none(),
            "no circle of waiting requests",
            "at {now:?} {stuck:?} can never go on, the first is {first:?}"
        );
        Ok(())
    }

    /// Workers are missing: somebody new will come and bring a place.
    fn awaits_workers(&self, doubt: Doubt) -> bool {
        let living = self.workers.living();
        let pool = living.iter().filter(|(_, row)| !row.dedicated && row.status.is_some());
        let grows = doubt == Doubt::Hopeful && self.size.target < self.settings.max;
        let room = pool.count() < self.settings.max as usize;
        !self.breaker_open && !self.control.paused && (room || grows)
    }

    /// Those that wait in a queue by then and of which it cannot be shown that they will go on.
    fn stuck(&self, doubt: Doubt, then: Time) -> BTreeSet<RequestId> {
        let mut stuck: BTreeSet<RequestId> = self.requests.nested_waiting(then).collect();
        loop {
            let keepers = self.keepers(&stuck);
            let moves = |id: &RequestId| self.may_go_on(*id, &keepers, doubt);
            let Some(next) = stuck.iter().copied().find(|id| moves(id)) else { return stuck };
            stuck.remove(&next);
        }
    }

    /// Who keeps a place for one of these.
    fn keepers(&self, stuck: &BTreeSet<RequestId>) -> BTreeSet<RequestId> {
        stuck.iter().flat_map(|id| self.spec(*id).ancestors.iter().copied()).collect()
    }

    fn may_go_on(&self, id: RequestId, keepers: &BTreeSet<RequestId>, doubt: Doubt) -> bool {
        let spec = self.spec(id);
        let bond = spec.bond.filter(|bond| bond.affinity.strict());
        match spec.target {
            // What becomes of those who wait for a worker of their own is known only then.
            Target::Any if bond.is_some() || spec.key.is_some() => match doubt {
                Doubt::Hopeful => true,
                Doubt::Strict => {
                    let home = bond.and_then(|bond| self.bonds.home_of(bond.session));
                    home.is_some_and(|home| self.may_come_free(home.worker, keepers, doubt))
                }
            },
            Target::Any => {
                let living = self.workers.living().into_iter();
                let living = living.filter(|(_, row)| !row.dedicated).map(|(id, _)| id);
                let dying = self.processes.rows().filter(|row| !row.dedicated);
                let mut pool = living.chain(dying.map(|row| row.id.worker));
                self.awaits_workers(doubt) || pool.any(|id| self.may_come_free(id, keepers, doubt))
            }
            Target::Worker(id) => self.may_come_free(id, keepers, doubt),
            Target::Lease(lease, place) => {
                let row = self.leases.place(lease, place).and_then(|id| self.processes.get(id));
                let at = row.and_then(|row| row.held.iter().find(|h| h.lease == Some(lease)));
                at.is_none_or(|held| !keepers.contains(&held.request))
            }
        }
    }

    fn may_come_free(&self, id: WorkerId, keepers: &BTreeSet<RequestId>, doubt: Doubt) -> bool {
        let Some(worker) = self.workers.get(id) else { return false };
        let stays = match doubt {
            // Only when the last of it is gone is it known what becomes of those who wait.
            Doubt::Hopeful => {
                self.processes.of(id).is_some()
                    || worker.status.is_none_or(|status| !status.terminal())
            }
            Doubt::Strict => {
                worker.status == Some(Status::Running) && self.workers.surely_in_service(id)
            }
        };
        stays && self.processes.of(id).is_none_or(|row| self.has_room(row, keepers, doubt))
    }

    /// What is on its way out makes room for its successor, in the end.
    fn has_room(&self, row: &Row, keepers: &BTreeSet<RequestId>, doubt: Doubt) -> bool {
        let leaves = doubt == Doubt::Hopeful && !self.phases.serves(row.id);
        let held = row.held.iter().take(row.capacity);
        // One that is not waited for any more does not wait for anybody either.
        let kept = held.filter(|h| h.cancelled.is_none() && keepers.contains(&h.request));
        leaves || kept.count() < row.capacity
    }
}
