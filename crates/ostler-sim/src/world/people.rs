//! Supervisors who give orders, and holders of leases. Neither looks before it asks.

use std::time::Duration;

use ostler_core::{Action, Event, LeaseId, LeaseSpec, ProcessId, Target, WorkerId};

use super::{Happening, World};
use crate::violation::Verdict;

/// Leases that somebody holds, with their number of places.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    held: Vec<(LeaseId, usize)>,
}

impl Leases {
    pub(super) fn end(&mut self, lease: LeaseId) {
        self.held.retain(|(held, _)| *held != lease);
    }
}

impl World {
    pub(super) fn plan_order(&mut self) {
        if let Some(gap) = self.profile.people.order_gap {
            let wait = self.prng.wait(gap);
            self.plan_in(wait, Happening::Order);
        }
    }

    pub(super) fn give_order(&mut self) -> Verdict {
        self.plan_order();
        if self.healed {
            return Ok(());
        }
        let worker = self.some_worker().unwrap_or(WorkerId(9));
        let action = match self.prng.below(12) {
            0 | 1 => Action::Create,
            2 | 3 => Action::Start(worker),
            4 => Action::Pause { worker, freeze: false },
            5 => Action::Pause { worker, freeze: true },
            6..=8 => Action::Resume(worker),
            9 => Action::Complete(worker),
            10 => Action::Terminate(worker),
            _ => Action::Recycle(worker),
        };
        let order = self.order_id();
        self.deliver(Event::Ordered { order, action })
    }

    /// Somebody watches, and sometimes finds out in time that a process was only stopped.
    pub(super) fn look_after(&mut self, process: ProcessId) {
        if self.prng.chance(0.5) {
            let wait = self.latency();
            self.plan_in(wait, Happening::Continued(process));
        }
    }

    /// Any worker there ever was, the latest ones more often, and now and then one that never was.
    pub(super) fn some_worker(&mut self) -> Option<WorkerId> {
        if self.prng.chance(0.02) {
            return Some(WorkerId(1_000_000));
        }
        let known = self.ledger.known_workers();
        let lately = known.len().saturating_sub(2 * self.profile.settings.max as usize + 6);
        let known = if self.prng.chance(0.8) { &known[lately..] } else { known };
        self.prng.pick(known)
    }

    /// Whoever held the pool lets it go, and there is memory again.
    pub(super) fn relax(&mut self) -> Verdict {
        self.deliver(Event::PressureChanged { high: false })?;
        self.resume_pool()
    }

    /// Whoever paused a worker wants it back when all is well again.
    pub(super) fn resume_paused(&mut self) -> Verdict {
        for worker in self.ledger.paused_workers() {
            let order = self.order_id();
            self.deliver(Event::Ordered { order, action: Action::Resume(worker) })?;
        }
        Ok(())
    }

    pub(super) fn plan_lease(&mut self) {
        if let Some(gap) = self.profile.people.lease_gap {
            let wait = self.prng.wait(gap);
            self.plan_in(wait, Happening::Lease);
        }
    }

    pub(super) fn ask_lease(&mut self) -> Verdict {
        self.plan_lease();
        if self.healed {
            return Ok(());
        }
        let lease = LeaseId(self.next_lease);
        self.next_lease += 1;
        let size = self.profile.settings.max;
        let (low, high) = self.profile.people.lease_ttl;
        let most = if self.prng.chance(0.05) { size + 2 } else { size };
        let patience = self.prng.span(Duration::from_millis(1), Duration::from_secs(1));
        let spec = LeaseSpec {
            workers: if self.prng.chance(0.5) { 1 } else { self.prng.between(1, most) },
            ttl: self.prng.span(low, high),
            deadline: self.now.after(patience),
        };
        // Some holders leave while they still wait.
        let wait = self.prng.wait(high);
        self.plan_in(wait, Happening::LeaseUse(lease));
        self.deliver(Event::LeaseRequested { lease, spec })
    }

    pub(super) fn begin_lease(&mut self, lease: LeaseId, places: usize) {
        self.leases.held.push((lease, places));
        let wait = self.latency();
        self.plan_in(wait, Happening::LeaseUse(lease));
    }

    /// A holder calls, renews, or gives back, also a little after the end.
    pub(super) fn use_lease(&mut self, lease: LeaseId) -> Verdict {
        let held = self.leases.held.iter().find(|(held, _)| *held == lease);
        let places = held.map_or(1, |(_, places)| *places as u64);
        let again = held.is_some();
        let (low, high) = self.profile.people.lease_ttl;
        match self.prng.below(8) {
            0 => {
                let ttl = self.prng.span(low, high);
                self.deliver(Event::LeaseRenewed { lease, ttl })?;
            }
            1 => {
                let discard = self.prng.chance(0.3);
                self.deliver(Event::LeaseReleased { lease, discard })?;
            }
            _ => {
                let place = self.prng.below(places + u64::from(self.prng.clone().chance(0.1)));
                self.call(Target::Lease(lease, place as u32))?;
            }
        }
        if again {
            let wait = self.prng.wait(self.profile.load.service * 2);
            self.plan_in(wait, Happening::LeaseUse(lease));
        }
        Ok(())
    }
}
