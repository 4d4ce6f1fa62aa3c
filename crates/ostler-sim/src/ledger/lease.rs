//! Who asked for places, who holds them, until when.

use std::collections::BTreeMap;
use std::time::Duration;

use ostler_core::{LeaseEnd, LeaseId, LeaseSpec, ProcessId, Refusal, Settings, Time};

use super::process::Processes;
use crate::violation::{Verdict, require};

#[derive(Debug, Default)]
pub(super) struct Leases {
    /// Those that are asked for or held; the ended ones are gone.
    rows: BTreeMap<LeaseId, Row>,
    waiting: usize,
}

#[derive(Debug)]
struct Row {
    spec: LeaseSpec,
    asked: Time,
    places: Option<Vec<Option<ProcessId>>>,
    /// When it is refused if not granted, or ends if not renewed.
    until: Time,
    released: bool,
}

impl Leases {
    pub fn any_waits(&self) -> bool {
        self.waiting > 0
    }

    pub fn first(&self) -> Option<LeaseId> {
        self.rows.keys().next().copied()
    }

    pub fn next_due(&self) -> Option<Time> {
        self.rows.values().map(|row| row.until).min()
    }

    /// Since when the first of those has waited that still wait.
    pub fn first_asked(&self) -> Option<Time> {
        self.rows.values().filter(|row| row.places.is_none()).map(|row| row.asked).min()
    }

    pub fn place(&self, lease: LeaseId, place: u32) -> Option<ProcessId> {
        *self.rows.get(&lease)?.places.as_ref()?.get(place as usize)?
    }

    pub fn ask(&mut self, now: Time, lease: LeaseId, spec: &LeaseSpec) {
        let until = spec.deadline;
        let row = Row { spec: spec.clone(), asked: now, places: None, until, released: false };
        self.rows.insert(lease, row);
        self.waiting += 1;
    }

    pub fn renew(&mut self, now: Time, lease: LeaseId, ttl: Duration) {
        if let Some(row) = self.rows.get_mut(&lease).filter(|row| row.places.is_some()) {
            row.until = now.after(ttl);
        }
    }

    /// Returns the processes that are no longer wanted.
    pub fn release(&mut self, lease: LeaseId) -> Vec<ProcessId> {
        let Some(row) = self.rows.get_mut(&lease) else { return Vec::new() };
        row.released = true;
        row.places.iter().flatten().flatten().copied().collect()
    }

    pub fn grant(
        &mut self,
        now: Time,
        lease: LeaseId,
        places: &[ProcessId],
        processes: &mut Processes,
    ) -> Verdict {
        let Some(row) = self.rows.get_mut(&lease).filter(|row| row.places.is_none()) else {
            require!(false, "a lease is granted once", "{lease:?} is not waiting");
            return Ok(());
        };
        let mut workers: Vec<_> = places.iter().map(|place| place.worker).collect();
        workers.sort();
        workers.dedup();
        require!(
            workers.len() == row.spec.workers as usize && places.len() == workers.len(),
            "a lease has all its places or none",
            "{lease:?} wants {} workers and gets {places:?}",
            row.spec.workers
        );
        for place in places {
            let process = processes.addressed(*place, "Grant")?;
            process.leased += 1;
            process.open_since = None;
            require!(
                process.serves() && !process.dedicated && process.used() <= process.capacity,
                "a leased place is free and exclusive",
                "{lease:?} gets a place on {process:?}"
            );
        }
        row.places = Some(places.iter().copied().map(Some).collect());
        row.until = now.after(row.spec.ttl);
        self.waiting -= 1;
        Ok(())
    }

    pub fn refuse(
        &mut self,
        now: Time,
        lease: LeaseId,
        refusal: Refusal,
        (settings, draining): (&Settings, bool),
    ) -> Verdict {
        let Some(row) = self.rows.remove(&lease).filter(|row| row.places.is_none()) else {
            require!(false, "a lease has one answer", "{lease:?} is refused and not waiting");
            return Ok(());
        };
        self.waiting -= 1;
        let fits = match refusal {
            Refusal::LeaseTimeout => now >= row.spec.deadline,
            Refusal::TooManyWorkers => row.spec.workers > settings.max,
            Refusal::Saturated { .. } => self.rows.len() >= settings.leases_max as usize,
            Refusal::ShuttingDown | Refusal::PoolFailed => true,
            Refusal::PoolDraining => draining,
            Refusal::NotInKeyedPool => settings.keyed.is_some(),
            _ => false,
        };
        require!(fits, "a refusal fits its lease", "{lease:?} {refusal:?}: {row:?}");
        Ok(())
    }

    pub fn lose_place(&mut self, lease: LeaseId, place: u32, processes: &mut Processes) -> Verdict {
        let places = self.rows.get_mut(&lease).and_then(|row| row.places.as_mut());
        let place_of = places.and_then(|places| places.get_mut(place as usize));
        let Some(process) = place_of.and_then(Option::take) else {
            require!(false, "a place is lost once", "{lease:?} has no place {place}");
            return Ok(());
        };
        let gone = processes.get(process).is_none_or(|row| row.exited);
        require!(
            gone,
            "a place is lost with its process",
            "{lease:?} loses {process}, which lives"
        );
        Ok(())
    }

    pub fn end(
        &mut self,
        now: Time,
        lease: LeaseId,
        reason: LeaseEnd,
        processes: &mut Processes,
        shutting_down: bool,
    ) -> Verdict {
        let Some(row) = self.rows.remove(&lease) else {
            require!(false, "a lease ends once", "{lease:?} is not there");
            return Ok(());
        };
        self.waiting -= usize::from(row.places.is_none());
        let places = row.places.as_deref().unwrap_or_default();
        let fits = match reason {
            LeaseEnd::Released => row.released,
            LeaseEnd::Expired => row.places.is_some() && now >= row.until,
            LeaseEnd::Lost => row.places.is_some() && places.iter().all(Option::is_none),
            LeaseEnd::ShuttingDown => shutting_down,
        };
        require!(fits, "a lease ends for its reason", "{lease:?} {reason:?}: {row:?}");
        for process in places.iter().flatten() {
            if let Some(process) = processes.get_mut(*process) {
                process.leased -= 1;
                process.return_place(lease);
            }
        }
        Ok(())
    }
}
