//! Was it the right worker? The strategy's definition, written down again, over loads, uses and
//! turns that the ledger counts itself.

use ostler_core::{Candidate, ProcessId, Rank, Ranking, RequestId, Strategy, Target, Time};

use super::Ledger;
use super::process::Row;
use crate::own::Evenly;
use crate::violation::{Verdict, require};

/// What a worker has been given so far, over all its processes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usage {
    /// When it was last given something or let go of something; at first, its creation.
    pub used: Time,
    /// The number of the last assignment that was its own, counted from one.
    pub turn: u64,
    pub answered: u64,
}

impl Ledger {
    /// Among those that were surely open, nobody had a better claim. Places that are kept for a
    /// lease cannot be seen from here.
    pub(super) fn check_choice(&self, now: Time, request: RequestId, id: ProcessId) -> Verdict {
        let spec = self.requests.get(request).map(|row| &row.spec);
        let free = spec.is_some_and(|spec| spec.target == Target::Any && spec.bond.is_none());
        if !free || self.leases.any_waits() || self.settings.keyed.is_some() {
            return Ok(());
        }
        let Some(chosen) = self.processes.get(id) else { return Ok(()) };
        let rank = self.rank(chosen);
        let open = self.processes.rows().filter(|row| !row.dedicated && row.id != id);
        let better =
            open.filter(|row| self.rank(row) < rank).find(|row| self.surely_open(now, row));
        require!(
            better.is_none(),
            "the strategy chooses",
            "by {:?} {request:?} goes to {id} of {rank:?}; better, with {:?}: {better:?}",
            self.settings.strategy,
            better.map(|row| self.rank(row))
        );
        Ok(())
    }

    fn rank(&self, row: &Row) -> Rank {
        let usage = self.workers.get(row.id.worker).map_or(Usage::default(), |row| row.usage);
        let load = row.used() as u64;
        let used = usage.used.as_nanos();
        match self.settings.strategy {
            Strategy::LeastLoaded => Rank(load, u64::MAX - used),
            Strategy::RoundRobin => Rank(usage.turn, 0),
            Strategy::Lru => Rank(used, 0),
            Strategy::Own(_) => Evenly.rank(&Candidate {
                id: row.id.worker,
                load: load as u32,
                capacity: (row.capacity as u32).max(load as u32),
                last_used: usage.used,
                last_turn: usage.turn,
                answered: usage.answered,
            }),
        }
    }
}
