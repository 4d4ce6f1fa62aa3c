//! Does the pool agree with itself? Every index beside the workers and requests is compared with
//! them, each entry once: too slow for every event outside of tests and the simulator, and cheap
//! enough for the sweep, which runs it under the driver's lock.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{LeaseId, RequestId};
use crate::lease::Holding;
use crate::pool::Pool;
use crate::process::{Hold, State};
use crate::request::{Line, Place};

impl Pool {
    /// # Errors
    /// Names the first disagreement.
    pub fn check(&self) -> Result<(), String> {
        self.roster.check(&self.workers)?;
        self.check_requests()?;
        self.check_holds()?;
        self.check_leases()?;
        self.check_nested()?;
        self.check_own_lines()?;
        self.check_bonds()?;
        self.check_keys()?;
        self.check_starting()
    }

    fn check_requests(&self) -> Result<(), String> {
        let mut queued = 0;
        for (id, request) in &self.requests {
            let Place::Held(process) = request.place else {
                queued += usize::from(matches!(request.place, Place::Queued(_)));
                continue;
            };
            let live = self.workers.get(&process.worker).and_then(|worker| worker.process());
            let live = live.filter(|live| live.generation == process.generation);
            if live.and_then(|live| live.position(*id, request.attempt)).is_none() {
                return Err(format!("{id:?} is said to be at {process}, which does not hold it"));
            }
        }
        let own: usize = self.own.values().map(|queue| queue.len()).sum();
        let leased: usize = self.leases.values().map(|lease| lease.waiting_len()).sum();
        let (common, keyed) = (self.queue.len(), self.keys.len());
        if queued != self.queued || common + own + leased + keyed != queued {
            return Err(format!(
                "{queued} requests wait, {} counted, {common} + {own} + {leased} + {keyed} queued",
                self.queued,
            ));
        }
        Ok(())
    }

    fn check_own_lines(&self) -> Result<(), String> {
        let own = self.own.iter().flat_map(|(worker, queue)| queue.iter().map(|id| (*worker, id)));
        for (worker, id) in own {
            let place = self.requests.get(&id).map(|request| request.place);
            if place != Some(Place::Queued(Line::Own(worker))) {
                return Err(format!("{id:?} waits for {worker:?} and is said to be {place:?}"));
            }
        }
        Ok(())
    }

    fn check_holds(&self) -> Result<(), String> {
        for worker in self.workers.values() {
            for held in worker.process().map_or(&[][..], |process| &process.held) {
                let known = self.requests.get(&held.request).is_some_and(|request| {
                    request.place == Place::Held(worker.process_id())
                        && request.attempt == held.attempt
                });
                if known == matches!(held.hold, Hold::Abandoned { .. }) {
                    return Err(format!(
                        "{:?} on {:?} is {:?}",
                        held.request, worker.id, held.hold
                    ));
                }
            }
        }
        Ok(())
    }

    fn check_leases(&self) -> Result<(), String> {
        let mut taken: BTreeMap<LeaseId, usize> = BTreeMap::new();
        for process in self.workers.values().filter_map(|worker| worker.process()) {
            for lease in &process.leases {
                *taken.entry(*lease).or_default() += 1;
            }
        }
        for (id, lease) in &self.leases {
            let has = taken.remove(id).unwrap_or(0);
            let says = match &lease.state {
                Holding::Waiting { reserved } => reserved.len(),
                Holding::Granted { places } => places.iter().flatten().count(),
            };
            if has != says || self.waiting_leases.contains(id) != lease.waits() {
                return Err(format!("{id:?} says {says} places, workers say {has}"));
            }
        }
        if let Some((id, _)) = taken.first_key_value() {
            return Err(format!("{id:?} is gone but holds places"));
        }
        for (id, request) in &self.requests {
            if let Place::Queued(Line::Leased(lease, _)) = request.place
                && !self.leases.contains_key(&lease)
            {
                return Err(format!("{id:?} waits for {lease:?}, which is gone"));
            }
        }
        Ok(())
    }

    fn check_nested(&self) -> Result<(), String> {
        let queued = self.requests.iter().filter(|(_, request)| {
            matches!(request.place, Place::Queued(_)) && !request.spec.ancestors.is_empty()
        });
        let queued: BTreeSet<RequestId> = queued.map(|(id, _)| *id).collect();
        if queued != self.nested {
            return Err(format!("{queued:?} are nested and wait, {:?} are listed", self.nested));
        }
        Ok(())
    }

    fn check_starting(&self) -> Result<(), String> {
        let processes = self.workers.values().filter_map(|worker| worker.process());
        let starting = processes
            .filter(|process| !process.was_ready && !matches!(process.state, State::Exited { .. }))
            .count();
        if starting != self.starting as usize {
            return Err(format!("{starting} processes start, {} counted", self.starting));
        }
        Ok(())
    }
}
