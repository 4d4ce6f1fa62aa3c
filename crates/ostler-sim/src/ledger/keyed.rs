//! Keys and the workers that belong to them: one process for each, and who has to go when there
//! are more keys than workers.

use std::collections::BTreeSet;

use ostler_core::{Evict, KeyId, ProcessId, RequestId, Target, Time, WorkerId};

use super::Ledger;
use super::process::Row;
use crate::violation::{Verdict, require};

#[derive(Debug, Default)]
pub(super) struct Keys {
    /// Keys of which the core was told that nobody will ask for them.
    ended: BTreeSet<KeyId>,
    /// The one that ended with this event.
    ends: Option<KeyId>,
}

impl Keys {
    pub fn end(&mut self, key: KeyId) {
        self.ended.insert(key);
        self.ends = Some(key);
    }

    /// It belongs to an ended one; or to nobody that it ever served.
    pub fn ended_now(&self, key: Option<KeyId>) -> bool {
        key.map_or(!self.ended.is_empty(), |key| self.ended.contains(&key))
    }
}

impl Ledger {
    /// A request of a key goes to a process.
    pub(super) fn judge_key(&mut self, request: RequestId, process: ProcessId) -> Verdict {
        let spec = self.spec(request);
        let Some(key) = spec.key.filter(|_| spec.target == Target::Any) else { return Ok(()) };
        let own = self.processes.get(process).and_then(|row| row.key);
        require!(
            own.is_none_or(|own| own == key),
            "a worker serves one key",
            "{request:?} of {key:?} goes to {process} of {own:?}"
        );
        let of_key = |row: &&Row| row.key == Some(key) && row.id != process;
        let other = self.processes.rows().filter(of_key).find(|row| {
            let worker = row.id.worker;
            let replaced = self.retirement(worker).is_some() && !self.departs(worker);
            !replaced && worker != process.worker
        });
        require!(
            other.is_none(),
            "one process for each key",
            "{request:?} of {key:?} goes to {process}, beside {other:?}"
        );
        if let Some(row) = self.processes.get_mut(process) {
            row.key = Some(key);
        }
        Ok(())
    }

    /// It has nothing to do, is old enough, nobody waits for it, and no other should rather go.
    pub(super) fn may_be_evicted(&self, now: Time, id: WorkerId) -> bool {
        let Some(row) = self.processes.of(id).filter(|row| self.is_evictable(now, row)) else {
            return false;
        };
        let full = self.regulars().count() >= self.settings.max as usize;
        let rank = self.eviction_rank(row.id.worker);
        let others = self.processes.rows().filter(|other| other.id != row.id && !other.dedicated);
        let better = others.filter(|other| other.key.is_some() && self.is_evictable(now, other));
        let better = better.filter(|other| self.surely_well(now, other));
        full && !better.into_iter().any(|other| self.eviction_rank(other.id.worker) < rank)
    }

    fn is_evictable(&self, now: Time, row: &Row) -> bool {
        let Some(keyed) = self.settings.keyed else { return false };
        let of_age = row.ready_at.is_some_and(|at| now >= at.after(keyed.evict_min_age));
        let waited_for = row.key.is_some_and(|key| self.is_waited_for(key, row.id));
        let named = self.requests.line.waits_for(row.id.worker.0);
        row.is_idle() && of_age && !waited_for && !named
    }

    /// Between two events: the worker of a key that has ended is on its way.
    pub(super) fn check_ended_key(&mut self) -> Verdict {
        let Some(key) = self.keys.ends.take() else { return Ok(()) };
        let serving = self.processes.rows().filter(|row| self.phases.serves(row.id));
        let mut of_key = serving.filter(|row| row.key == Some(key));
        let kept = of_key.find(|row| self.retirement(row.id.worker).is_none());
        require!(kept.is_none(), "the worker of an ended key leaves", "{key:?}: {kept:?}");
        Ok(())
    }

    /// By the pool's policy, the lowest goes.
    fn eviction_rank(&self, worker: WorkerId) -> (u64, u64) {
        let usage = self.workers.get(worker).map(|row| row.usage).unwrap_or_default();
        let used = usage.used.as_nanos();
        match self.settings.keyed.map(|keyed| keyed.evict) {
            None | Some(Evict::Lru) => (used, worker.0),
            Some(Evict::Oldest) => (worker.0, used),
            Some(Evict::LeastUsed) => (usage.answered, used),
        }
    }

    /// Somebody of this key waits, and not for an older process that has to hand over first.
    fn is_waited_for(&self, key: KeyId, process: ProcessId) -> bool {
        let waiting = self.requests.open().filter(|id| self.requests.waits_in_line(*id));
        let mut waiting = waiting.filter(|id| Some(*id) != self.arrived);
        waiting.any(|id| {
            let spec = self.spec(id);
            let home = spec.bond.and_then(|bond| self.bonds.process_of(bond.session));
            spec.key == Some(key) && home.is_none_or(|home| home == process)
        })
    }
}
