//! What watchers were told of each process: one notice for each change, along the table, from its
//! spawn to its death, and at any moment what is true.

use std::collections::BTreeMap;
use std::time::Duration;

use ostler_core::{Phase, PhaseReason, ProcessId, Time};

use super::process::Row;
use crate::violation::{Verdict, require};

/// The whole table, written down again.
const LEGAL: [(Phase, Phase); 15] = [
    (Phase::Starting, Phase::Ready),
    (Phase::Starting, Phase::Stopping),
    (Phase::Starting, Phase::Dead),
    (Phase::Ready, Phase::Busy),
    (Phase::Ready, Phase::Degraded),
    (Phase::Ready, Phase::Stopping),
    (Phase::Ready, Phase::Dead),
    (Phase::Busy, Phase::Ready),
    (Phase::Busy, Phase::Stopping),
    (Phase::Busy, Phase::Dead),
    (Phase::Degraded, Phase::Ready),
    (Phase::Degraded, Phase::Busy),
    (Phase::Degraded, Phase::Stopping),
    (Phase::Degraded, Phase::Dead),
    (Phase::Stopping, Phase::Dead),
];

/// A change of phase, as it is told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walk {
    pub from: Option<Phase>,
    pub to: Phase,
    pub reason: PhaseReason,
    pub after: Duration,
}

#[derive(Debug, Default)]
pub(super) struct Phases {
    /// Those that were told of and are not dead.
    shown: BTreeMap<ProcessId, (Phase, Time)>,
}

impl Phases {
    pub fn of(&self, id: ProcessId) -> Option<Phase> {
        self.shown.get(&id).map(|(phase, _)| *phase)
    }

    /// Watchers believe that it is in service.
    pub fn serves(&self, id: ProcessId) -> bool {
        matches!(self.of(id), Some(Phase::Ready | Phase::Busy | Phase::Degraded))
    }

    pub fn first(&self) -> Option<(ProcessId, Phase)> {
        self.shown.first_key_value().map(|(id, (phase, _))| (*id, *phase))
    }

    /// `row`: what the ledger has of this process; nothing, once it is known never to have been.
    pub fn walk(&mut self, now: Time, id: ProcessId, walk: Walk, row: Option<&Row>) -> Verdict {
        let (was, since) = match self.shown.get(&id) {
            Some((phase, since)) => (Some(*phase), *since),
            None => (None, now),
        };
        let spawned = row.is_some_and(|row| row.spawned == now && !row.exited);
        let step = match was {
            Some(was) => LEGAL.contains(&(was, walk.to)),
            None => walk.to == Phase::Starting && spawned,
        };
        require!(
            walk.from == was && step,
            "phases walk the table",
            "{id} was {was:?}, and now {walk:?}"
        );
        require!(
            fits(walk),
            "a change of phase names its reason",
            "{id} was {was:?}, and now {walk:?}"
        );
        require!(
            walk.after == now.since(since),
            "the times in the phases add up",
            "{id} is {was:?} since {since:?}, it is {now:?}, and now {walk:?}"
        );
        if walk.to == Phase::Dead {
            require!(
                row.is_none_or(|row| row.exited),
                "dead means waited for",
                "{id} is told dead: {row:?}"
            );
            self.shown.remove(&id);
        } else {
            self.shown.insert(id, (walk.to, now));
        }
        Ok(())
    }

    /// Between two events: what watchers believe is so.
    pub fn check(&self, row: &Row) -> Verdict {
        let full = row.held.len() >= row.capacity;
        let served = row.ready.is_some() && row.stopping.is_none() && row.tainted.is_none();
        let true_of = |phase| match phase {
            Phase::Starting => row.ready.is_none() && row.tainted.is_none(),
            Phase::Ready => served && !full && !row.health.degraded(),
            Phase::Busy => served && full && !row.health.degraded(),
            Phase::Degraded => served && row.health.degraded(),
            Phase::Stopping => true,
            Phase::Dead => false,
        };
        let shown = self.of(row.id);
        let holds = match shown {
            None => row.exited,
            Some(phase) => !row.exited && true_of(phase),
        };
        require!(holds, "a phase is told as it is", "watchers believe {shown:?} of {row:?}");
        Ok(())
    }

    pub fn check_count(&self, living: usize) -> Verdict {
        require!(
            self.shown.len() == living,
            "every process dies once",
            "{} are told of, {living} are there",
            self.shown.len()
        );
        Ok(())
    }
}

fn fits(walk: Walk) -> bool {
    use PhaseReason::*;
    match (walk.from, walk.to, walk.reason) {
        (None, _, reason) => reason == Spawned,
        (Some(Phase::Starting), Phase::Ready, reason) => reason == Ready,
        (Some(Phase::Degraded), Phase::Ready | Phase::Busy, reason) => {
            matches!(reason, Heard | CheckPassed)
        }
        (_, Phase::Ready, reason) => reason == Freed,
        (_, Phase::Busy, reason) => reason == Filled,
        (_, Phase::Degraded, reason) => matches!(reason, HeartbeatMissed | CheckFailed),
        (_, Phase::Stopping, reason) => matches!(reason, Stopped(_)),
        (_, Phase::Dead, reason) => matches!(reason, Exited | SpawnFailed),
        (_, Phase::Starting, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use ostler_core::{Settings, WorkerId};

    use super::*;

    const ID: ProcessId = ProcessId { worker: WorkerId(1), generation: 1 };
    const BORN: Time = Time::from_nanos(10);

    fn born() -> (Phases, Row) {
        let (mut phases, row) =
            (Phases::default(), Row::new(BORN, ID, false, &Settings::of_size(1)));
        let birth = walk(None, Phase::Starting, PhaseReason::Spawned, 0);
        assert_eq!(phases.walk(BORN, ID, birth, Some(&row)), Ok(()));
        (phases, row)
    }

    fn walk(from: Option<Phase>, to: Phase, reason: PhaseReason, after: u64) -> Walk {
        Walk { from, to, reason, after: Duration::from_nanos(after) }
    }

    fn finding(step: Walk) -> &'static str {
        let (mut phases, row) = born();
        let verdict = phases.walk(Time::from_nanos(15), ID, step, Some(&row));
        verdict.expect_err("it is a finding").checker
    }

    #[test]
    fn a_step_that_is_not_in_the_table_is_a_finding() {
        let step = walk(Some(Phase::Starting), Phase::Busy, PhaseReason::Filled, 5);
        assert_eq!(finding(step), "phases walk the table");
        let step = walk(Some(Phase::Ready), Phase::Stopping, PhaseReason::Exited, 5);
        assert_eq!(finding(step), "phases walk the table");
    }

    #[test]
    fn a_wrong_reason_a_wrong_time_and_an_early_death_are_findings() {
        let (starting, ready) = (Some(Phase::Starting), Phase::Ready);
        let step = walk(starting, ready, PhaseReason::Freed, 5);
        assert_eq!(finding(step), "a change of phase names its reason");
        let step = walk(starting, ready, PhaseReason::Ready, 6);
        assert_eq!(finding(step), "the times in the phases add up");
        let step = walk(starting, Phase::Dead, PhaseReason::Exited, 5);
        assert_eq!(finding(step), "dead means waited for");
    }

    #[test]
    fn a_death_that_is_not_told_is_a_finding() {
        let (phases, mut row) = born();
        assert_eq!(phases.check(&row), Ok(()));
        row.exited = true;
        let verdict = phases.check(&row).expect_err("its death was not told");
        assert_eq!(verdict.checker, "a phase is told as it is");
    }
}
