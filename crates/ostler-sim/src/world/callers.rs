//! Those who call: when they come, what they want, and when they lose interest.

use std::time::Duration;

use ostler_core::{Event, RequestId, RequestSpec, Target};

use super::{Happening, World};
use crate::violation::Verdict;

/// The slow trickle of a healed world, and of a calm night.
const TRICKLE: Duration = Duration::from_millis(20);

impl World {
    pub(super) fn plan_arrival(&mut self) {
        let mean = if self.healed { TRICKLE } else { self.profile.load.gap };
        let wait = self.prng.wait(mean);
        self.plan_in(wait, Happening::Arrival);
    }

    pub(super) fn arrive(&mut self) -> Verdict {
        if self.quiet {
            return Ok(());
        }
        self.plan_arrival();
        let burst = !self.healed && self.prng.chance(self.profile.load.bursts);
        let many = if burst { self.prng.between(2, self.profile.load.burst_max) } else { 1 };
        for _ in 0..many {
            let target = self.target();
            self.call(target)?;
        }
        Ok(())
    }

    pub(super) fn call(&mut self, target: Target) -> Verdict {
        let request = RequestId(self.next_request);
        self.next_request += 1;
        let load = self.profile.load.clone();
        let patience = self.prng.span(load.deadline.0, load.deadline.1);
        let belonging = self.belonging(target);
        let owner = u64::from(self.prng.between(1, load.owners));
        let spec = RequestSpec {
            deadline: self.now.after(patience),
            priority: if load.priorities {
                (self.prng.between(0, 4) as i32 * 50 - 100) as i8
            } else {
                0
            },
            owner: belonging.owner(target).unwrap_or(owner),
            idempotent: self.prng.chance(load.idempotent),
            target,
            bond: belonging.bond,
            key: belonging.key,
            fingerprint: self.fingerprint(request),
            ancestors: Vec::new(),
        };
        if self.prng.chance(load.cancels) {
            let wait = self.prng.wait(load.service * 2);
            self.plan_in(wait, Happening::CallerLeaves(request));
        }
        self.deliver(Event::RequestArrived { request, spec })
    }

    /// What kind of request it is, as a digest tells it.
    pub(super) fn fingerprint(&mut self, request: RequestId) -> u64 {
        match self.profile.load.kinds {
            0 => u64::MAX - request.0,
            kinds => self.prng.below(u64::from(kinds)),
        }
    }

    /// Every worker of a mended, idle pool takes a request at once, and answers it.
    pub(super) fn prove_service(&mut self) -> Verdict {
        let first = self.next_request;
        for worker in self.ledger.serving_workers() {
            self.call(Target::Worker(worker))?;
        }
        self.ledger.expect_taken(first)?;
        self.run_for(self.profile.load.deadline.1)?;
        self.ledger.expect_answered(first)
    }

    fn target(&mut self) -> Target {
        if self.prng.chance(self.profile.load.to_worker) {
            return self.some_worker().map_or(Target::Any, Target::Worker);
        }
        Target::Any
    }
}
