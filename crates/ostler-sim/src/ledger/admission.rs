//! Who is let into the queue, if only those are who can be served in time. How long calls take is
//! measured here again; how many places there are is known within bounds.

use std::collections::BTreeMap;
use std::time::Duration;

use ostler_core::{Admission, RequestId, RequestSpec, Settings, Target, Time};

use super::Ledger;
use super::process::Row;
use crate::violation::{Verdict, require};

#[derive(Debug)]
pub(super) struct Service {
    /// The last answer counts one eighth.
    average: Duration,
    known: bool,
}

/// The shortest and the longest that somebody may be said to need.
type Estimate = (Duration, Duration);

impl Service {
    pub fn new(settings: &Settings) -> Self {
        Service { average: settings.prefetch_below, known: false }
    }

    pub fn note(&mut self, took: Duration) {
        self.average = (self.average * 7 + took) / 8;
        self.known = true;
    }
}

impl Ledger {
    pub(super) fn judge_unreachable(
        &self,
        now: Time,
        request: RequestId,
        told: Duration,
    ) -> Verdict {
        let spec = self.spec(request);
        let asked = self.settings.admission == Admission::Deadline && spec.target == Target::Any;
        require!(
            asked && self.service.known,
            "only who would be late is told so",
            "{request:?} is told {told:?}, nobody asked or nobody can know: {spec:?}"
        );
        let (least, most) = self.estimate(now, request, spec);
        require!(
            now.after(told) > spec.deadline && (least..=most).contains(&told),
            "only who would be late is told so",
            "{request:?} is told {told:?} at {now:?}, by {least:?} to {most:?}: {spec:?}"
        );
        let open = self.processes.rows().filter(|row| !row.dedicated);
        let anybody = spec.bond.is_none() && spec.key.is_none();
        let open = open.filter(|_| anybody && !self.leases.any_waits());
        let open = open.filter(|row| self.surely_open(now, row)).map(|row| row.id).next();
        require!(
            open.is_none(),
            "only who would be late is told so",
            "{request:?} could go to {open:?}"
        );
        Ok(())
    }

    /// Whoever came with this event and waits has a chance.
    pub(super) fn check_admission(&self, now: Time) -> Verdict {
        let Some(request) = self.arrived else { return Ok(()) };
        let spec = self.spec(request);
        let asked = self.settings.admission == Admission::Deadline && spec.target == Target::Any;
        if !asked || !self.service.known || !self.requests.waits(request) {
            return Ok(());
        }
        let surely = |row: &Row| !row.dedicated && self.surely_well(now, row);
        if !self.processes.rows().any(surely) {
            return Ok(());
        }
        let (least, _) = self.estimate(now, request, spec);
        require!(
            now.after(least) <= spec.deadline,
            "who would be late is not let in",
            "{request:?} waits at {now:?} and needs {least:?}: {spec:?}"
        );
        Ok(())
    }

    fn estimate(&self, now: Time, request: RequestId, spec: &RequestSpec) -> Estimate {
        let surely = |row: &&Row| !row.dedicated && self.surely_well(now, row);
        let perhaps = |row: &&Row| !row.dedicated && row.ready.is_some() && !row.exited;
        let least = self.processes.rows().filter(surely).map(|row| row.capacity).sum::<usize>();
        let most = self.processes.rows().filter(perhaps).map(|row| row.capacity).sum::<usize>();
        let before = |unsure| before(spec, self.requests.rivals(request, unsure));
        let need = |turns: usize, places: usize| {
            self.service.average.saturating_mul(turns as u32) / (places.max(1) as u32)
                + self.service.average
        };
        (need(before(false), most), need(before(true), least))
    }
}

/// Who goes first: all of a higher priority, and of each owner as many as have their turn before
/// this one has.
fn before<'a>(spec: &RequestSpec, rivals: impl Iterator<Item = &'a RequestSpec>) -> usize {
    let (mut higher, mut peers) = (0, BTreeMap::<u64, usize>::new());
    for rival in rivals.filter(|rival| rival.priority >= spec.priority) {
        match rival.priority == spec.priority {
            true => *peers.entry(rival.owner).or_default() += 1,
            false => higher += 1,
        }
    }
    let own = peers.remove(&spec.owner).unwrap_or(0);
    higher + own + peers.values().map(|theirs| (*theirs).min(own + 1)).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_go_first_and_equals_by_turns() {
        let of =
            |priority, owner| RequestSpec { priority, owner, ..RequestSpec::until(Time::ZERO) };
        let mut waiting = vec![of(5, 1), of(0, 2), of(-5, 3)];
        waiting.extend(vec![of(0, 1); 10]);
        assert_eq!(before(&of(0, 2), waiting.iter()), 1 + 1 + 2);
        assert_eq!(before(&of(0, 1), waiting.iter()), 1 + 10 + 1);
        assert_eq!(before(&of(0, 9), waiting.iter()), 1 + 1 + 1);
        assert_eq!(before(&of(9, 9), waiting.iter()), 0);
    }
}
