//! Workers that go though they did nothing wrong: for a true reason, after their successor was
//! ready or because there are too many, not too many at a time, and in time.

use std::collections::{BTreeSet, VecDeque};

use ostler_core::{Change, ProcessId, RecordId, Retirement, Status, Time, Trigger, WorkerId};

use super::Ledger;
use super::process::{Row, Rung};
use crate::violation::{Verdict, require};

/// That somebody is to go, as it was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Retiring {
    pub reason: Retirement,
    since: Time,
    /// Nobody comes in its place.
    pub departs: bool,
    /// There were more than are wanted, so that nobody may come in its place.
    pub spare: bool,
}

#[derive(Debug, Default)]
pub(super) struct Replacements {
    /// New workers that became ready and have not taken anybody's place, in the order of that.
    readied: VecDeque<(Time, WorkerId)>,
    /// Those who leave because somebody came in their place, until the last of them is gone.
    leaving: BTreeSet<WorkerId>,
    /// The process that reached a limit with this event.
    spent: Option<ProcessId>,
    /// Somebody was to be replaced, at some time.
    any: bool,
    /// The worker that completes with this event.
    completes: Option<WorkerId>,
}

impl Replacements {
    pub fn ready(&mut self, now: Time, worker: WorkerId) {
        self.readied.push_back((now, worker));
    }

    /// Somebody who was ready after it was known that the old one is to go.
    fn successor(&mut self, since: Time) -> Option<WorkerId> {
        // The first of them: whoever may have that one and no other has had it already.
        let at = self.readied.iter().position(|(at, _)| *at >= since)?;
        self.readied.remove(at).map(|(_, new)| new)
    }
}

/// Nobody is made for those who go for these.
fn leaves_for_good(reason: Retirement) -> bool {
    use Retirement::*;
    match reason {
        Idle | Evicted | Scaled | KeyEnded => true,
        Asked | Ordered | Ttl | MaxRequests | Memory | Reloaded => false,
    }
}

impl Ledger {
    pub(super) fn retirement(&self, worker: WorkerId) -> Option<Retirement> {
        self.workers.get(worker)?.retiring.map(|retiring| retiring.reason)
    }

    pub(super) fn departs(&self, worker: WorkerId) -> bool {
        let retiring = self.workers.get(worker).and_then(|row| row.retiring);
        retiring.is_some_and(|retiring| retiring.departs)
    }

    /// It departs, or may have to.
    pub(super) fn may_depart(&self, worker: WorkerId) -> bool {
        let retiring = self.workers.get(worker).and_then(|row| row.retiring);
        retiring.is_some_and(|retiring| retiring.departs || retiring.spare)
    }

    pub(super) fn judge_retiring(
        &mut self,
        now: Time,
        worker: WorkerId,
        reason: Retirement,
    ) -> Verdict {
        require!(
            self.has_cause(now, worker, reason),
            "nobody retires without a cause",
            "{worker:?} {reason:?}: {:?} {:?}",
            self.workers.get(worker),
            self.processes.of(worker)
        );
        let before = self.workers.get(worker).and_then(|row| row.retiring);
        let keyed_trial = self.settings.keyed.is_some()
            && reason == Retirement::Reloaded
            && self.reloads.was_trial(worker);
        let departs = leaves_for_good(reason) || keyed_trial;
        // Who is to go is told so a second time when it turns out that nobody need follow.
        let spare = before.is_some() && self.staying() > self.allowed();
        self.replacements.any |= !departs && self.workers.is_regular(worker);
        let since = before.map_or(now, |before| before.since);
        if let Some(row) = self.workers.get_mut(worker) {
            row.retiring = Some(Retiring { reason, since, departs, spare });
            row.replacement_asked = true;
        }
        Ok(())
    }

    pub(super) fn has_cause(&self, now: Time, id: WorkerId, reason: Retirement) -> bool {
        let s = &self.settings;
        let (Some(worker), process) = (self.workers.get(id), self.processes.of(id)) else {
            return false;
        };
        let holds = |f: &dyn Fn(&Row) -> bool| process.is_some_and(f);
        match reason {
            Retirement::Asked => holds(&|row| row.retire_asked),
            Retirement::Ordered => worker.recycled,
            Retirement::Ttl => holds(&|row| row.ttl_from.is_some_and(|at| now >= at)),
            Retirement::MaxRequests => {
                holds(&|row| s.max_requests.is_some_and(|most| row.served >= most))
            }
            Retirement::Memory => holds(&|row| s.max_memory.is_some_and(|most| row.memory >= most)),
            Retirement::Idle => {
                let long = s.idle_ttl.is_some_and(|ttl| now >= worker.usage.used.after(ttl));
                let elastic = s.keyed.is_some() || s.min < s.max;
                let waited_for = self.requests.line.waits_for(id.0);
                long && elastic && !waited_for && holds(&|row| row.is_idle())
            }
            Retirement::Evicted => self.may_be_evicted(now, id),
            Retirement::Scaled => self.staying() > self.allowed(),
            Retirement::Reloaded => {
                let older = holds(&|row| row.edition < self.reloads.edition);
                older || self.reloads.under_way() || self.reloads.was_trial(id)
            }
            Retirement::KeyEnded => {
                let key = process.and_then(|row| row.key);
                self.keys.ended_now(key)
            }
        }
    }

    /// A worker completes by itself: was it told to go, and has somebody come in its place?
    pub(super) fn judge_completion(&mut self, record: RecordId, change: Change) -> Verdict {
        let id = record.worker;
        let alone = change.trigger != Trigger::Complete || change.order.is_some();
        let row = self.workers.get(id);
        if alone || row.is_none_or(|row| row.pending.is_some()) {
            return Ok(());
        }
        let retiring = row.and_then(|row| row.retiring);
        require!(
            retiring.is_some_and(|told| change.retirement == Some(told.reason)),
            "nobody retires without a cause",
            "{record:?} {change:?}, told was {retiring:?}"
        );
        let process = self.processes.of(id);
        let bound = process.is_some_and(|row| self.bonds.any_at(row.id));
        require!(
            !bound && process.is_none_or(|row| row.held.is_empty()),
            "whoever leaves has nothing left",
            "{record:?}, sessions are bound there: {bound}, {process:?}"
        );
        let retiring = retiring.expect("required above");
        self.replacements.completes = Some(id);
        if retiring.departs {
            return Ok(());
        }
        let successor = self.replacements.successor(retiring.since);
        if successor.is_none() && retiring.spare {
            return Ok(());
        }
        require!(
            successor.is_some(),
            "the successor is ready before the old one leaves",
            "{record:?} {change:?}, told at {:?}",
            retiring.since
        );
        self.forget_the_gone();
        self.replacements.leaving.insert(id);
        let most = self.reloads.retire_max.max(self.settings.retire_max) as usize;
        require!(
            self.replacements.leaving.len() <= most,
            "no more leave at a time than may",
            "{:?} leave, {most} may",
            self.replacements.leaving
        );
        Ok(())
    }

    fn forget_the_gone(&mut self) {
        let mut leaving = std::mem::take(&mut self.replacements.leaving);
        leaving.retain(|id| !self.workers.ended(*id) || self.processes.of(*id).is_some());
        self.replacements.leaving = leaving;
    }

    /// It has let go of another request, or was measured.
    pub(super) fn note_wear(&mut self, id: ProcessId) {
        if self.phases.serves(id) {
            self.replacements.spent = Some(id);
        }
    }

    /// Between two events: who reached a limit is on its way.
    pub(super) fn check_wear(&mut self) -> Verdict {
        let Some(id) = self.replacements.spent.take() else { return Ok(()) };
        let Some(row) = self.processes.get(id).filter(|row| !row.exited) else { return Ok(()) };
        let s = &self.settings;
        let killed = row.stopping.is_some_and(|stop| stop.rung == Rung::Killed);
        let too_large = s.max_memory_hard.is_some_and(|most| row.memory >= most);
        require!(
            killed || !too_large || row.measured.is_none_or(|at| at < self.heard_at),
            "who is far too large is killed",
            "{row:?}"
        );
        let large = s.max_memory.is_some_and(|most| row.memory >= most);
        let large = large && row.measured == Some(self.heard_at);
        let spent = s.max_requests.is_some_and(|most| row.served >= most);
        let goes = self.workers.get(id.worker).is_some_and(|row| row.retiring.is_some());
        let goes = goes || self.reloads.under_way();
        require!(
            goes || !self.phases.serves(id) || !(large || spent),
            "who is worn out is replaced",
            "{row:?}"
        );
        Ok(())
    }

    /// Successors, and the first of a new kind, that may start beside all others.
    pub(super) fn beside(&self) -> usize {
        let most = self.reloads.retire_max.max(self.settings.retire_max) as usize;
        // One that has taken over and has to start again is still among them, beside the next.
        let replaced = if self.replacements.any { 2 * most } else { 0 };
        replaced + usize::from(self.reloads.under_way())
    }

    /// Between two events: no place of one that completes is held by anybody.
    pub(super) fn check_completion(&mut self) -> Verdict {
        let row = self.replacements.completes.take().and_then(|id| self.processes.of(id));
        let leased = row.filter(|row| row.leased > 0);
        require!(leased.is_none(), "whoever leaves has nothing left", "{leased:?} is leased");
        Ok(())
    }

    /// When it has served long enough.
    pub(super) fn ttl_due(&self, row: &Row) -> Option<Time> {
        let told = self.workers.get(row.id.worker).is_some_and(|row| row.retiring.is_some());
        // Whoever is paired with the first of a new kind is told when that has proved itself.
        let stays = !told && !self.reloads.under_way() && self.phases.serves(row.id);
        row.ttl_by.filter(|_| stays)
    }

    pub(super) fn is_completed(&self, worker: WorkerId) -> bool {
        self.workers.get(worker).is_some_and(|row| row.status == Some(Status::Completed))
    }
}
