//! What processes say when they are asked whether they are well.

use std::time::Duration;

use ostler_core::{Event, ProcessId};

use super::process::{End, Step};
use super::{Happening, World};

/// How long a spell lasts.
const SPELL: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(500));

impl World {
    /// Whoever works reads the question only afterwards, and it may come too late then.
    pub(super) fn see_check(&mut self, id: ProcessId) {
        let process = &self.processes[&id];
        let busy_for_ever = process.running.iter().any(|work| work.end == End::Never);
        if process.stream_closed || busy_for_ever {
            return;
        }
        if !process.running.is_empty() {
            return self.plan_in(self.profile.load.service, Happening::Step(id, Step::SeeCheck));
        }
        if self.is_deaf(id) {
            return;
        }
        let well = !self.is_unwell(id);
        self.report(id, Event::HealthReported { process: id, well });
        if self.prng.chance(0.5) {
            self.report(id, Event::ProcessHeard { process: id });
        }
    }

    fn is_deaf(&mut self, id: ProcessId) -> bool {
        let falls = self.prng.chance(self.profile.faults.falls_deaf);
        let until = self.spell();
        let process = self.processes.get_mut(&id).expect("the step found it");
        if falls && process.deaf_until < self.now {
            process.deaf_until = until;
        }
        self.now < process.deaf_until
    }

    fn is_unwell(&mut self, id: ProcessId) -> bool {
        let falls = self.prng.chance(self.profile.faults.falls_unwell);
        let until = self.spell();
        let process = self.processes.get_mut(&id).expect("the step found it");
        if falls && process.unwell_until < self.now {
            process.unwell_until = until;
        }
        self.now < process.unwell_until
    }

    fn spell(&mut self) -> ostler_core::Time {
        let span = self.prng.span(SPELL.0, SPELL.1);
        self.now.after(span)
    }
}
