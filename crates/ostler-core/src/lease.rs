//! Places held for several calls: one place of one worker, or n workers all at once.
//!
//! A waiting lease takes what is left over when the queue is empty. After `gang_patience` the
//! oldest one is given every place that comes free, so that a stream of small requests cannot
//! starve it; what it has been given so far is reserved, not half granted.

use std::collections::VecDeque;
use std::time::Duration;

use crate::command::{Command, LeaseEnd, Refusal, StopReason};
use crate::event::LeaseSpec;
use crate::id::{LeaseId, ProcessId, RequestId, WorkerId};
use crate::pool::{Cx, Pool, Stage};
use crate::process::{Held, Step};
use crate::time::Time;
use crate::timers::Timer;

/// How many waiting leases `feed` looks at before it gives up.
const LOOK_AHEAD: usize = 16;

#[derive(Debug)]
pub(crate) struct Lease {
    pub spec: LeaseSpec,
    pub asked: Time,
    pub state: Holding,
}

#[derive(Debug)]
pub(crate) enum Holding {
    Waiting {
        reserved: Vec<WorkerId>,
    },
    /// `None`: that place went with its process.
    Granted {
        places: Vec<Option<LeasePlace>>,
    },
}

#[derive(Debug)]
pub(crate) struct LeasePlace {
    pub process: ProcessId,
    pub busy: Option<RequestId>,
    pub waiting: VecDeque<RequestId>,
}

impl LeasePlace {
    pub fn free(&self) -> bool {
        self.busy.is_none() && self.waiting.is_empty()
    }
}

impl Lease {
    pub fn place(&self, index: u32) -> Option<&LeasePlace> {
        match &self.state {
            Holding::Granted { places } => places.get(index as usize)?.as_ref(),
            Holding::Waiting { .. } => None,
        }
    }

    pub fn place_mut(&mut self, index: u32) -> Option<&mut LeasePlace> {
        match &mut self.state {
            Holding::Granted { places } => places.get_mut(index as usize)?.as_mut(),
            Holding::Waiting { .. } => None,
        }
    }

    fn place_at(&mut self, worker: WorkerId) -> Option<&mut LeasePlace> {
        match &mut self.state {
            Holding::Granted { places } => {
                places.iter_mut().flatten().find(|place| place.process.worker == worker)
            }
            Holding::Waiting { .. } => None,
        }
    }

    pub fn waits(&self) -> bool {
        matches!(self.state, Holding::Waiting { .. })
    }

    pub fn waiting_len(&self) -> usize {
        match &self.state {
            Holding::Waiting { .. } => 0,
            Holding::Granted { places } => {
                places.iter().flatten().map(|place| place.waiting.len()).sum()
            }
        }
    }

    /// The request that has waited longest for one of its places.
    pub fn oldest(&self) -> Option<RequestId> {
        match &self.state {
            Holding::Waiting { .. } => None,
            Holding::Granted { places } => {
                places.iter().flatten().filter_map(|place| place.waiting.front()).min().copied()
            }
        }
    }

    fn workers(&self) -> Vec<WorkerId> {
        match &self.state {
            Holding::Waiting { reserved } => reserved.clone(),
            Holding::Granted { places } => {
                places.iter().flatten().map(|place| place.process.worker).collect()
            }
        }
    }
}

impl Pool {
    pub(crate) fn on_lease_requested(&mut self, cx: &mut Cx<'_>, id: LeaseId, spec: LeaseSpec) {
        let refusal = match self.stage {
            Stage::Draining | Stage::Stopped => Some(Refusal::ShuttingDown),
            _ if self.closed => Some(Refusal::PoolDraining),
            _ if self.settings.keyed.is_some() => Some(Refusal::NotInKeyedPool),
            _ if spec.workers == 0 || spec.workers > self.settings.max => {
                Some(Refusal::TooManyWorkers)
            }
            _ if self.leases.len() >= self.settings.leases_max as usize => {
                Some(Refusal::Saturated {
                    queued: self.waiting_leases.len() as u32,
                    busy: self.leases.len() as u32,
                    oldest: Duration::ZERO,
                })
            }
            _ if self.failed() => Some(Refusal::PoolFailed),
            _ => None,
        };
        if let Some(refusal) = refusal {
            return cx.push(Command::RefuseLease { lease: id, refusal });
        }
        self.timers.set(Timer::Lease(id), spec.deadline);
        let state = Holding::Waiting { reserved: Vec::new() };
        let twice = self.leases.insert(id, Lease { spec, asked: cx.now, state });
        assert!(twice.is_none(), "a lease is asked for once");
        self.waiting_leases.insert(id);
        self.set_gang_timer(cx.now);
    }

    pub(crate) fn on_lease_renewed(&mut self, cx: &mut Cx<'_>, id: LeaseId, ttl: Duration) {
        if matches!(self.leases.get(&id), Some(Lease { state: Holding::Granted { .. }, .. })) {
            self.timers.set(Timer::Lease(id), cx.now.after(ttl));
        }
    }

    pub(crate) fn on_lease_released(&mut self, cx: &mut Cx<'_>, id: LeaseId, discard: bool) {
        let Some(lease) = self.leases.get(&id) else { return };
        let workers = lease.workers();
        let granted = matches!(lease.state, Holding::Granted { .. });
        self.end_lease(cx, id, LeaseEnd::Released);
        if discard && granted {
            for worker in workers {
                self.stop(cx, worker, StopReason::Discarded, Step::Drain);
            }
        }
    }

    pub(crate) fn on_lease_timer(&mut self, cx: &mut Cx<'_>, id: LeaseId) {
        match self.leases[&id].state {
            Holding::Granted { .. } => self.end_lease(cx, id, LeaseEnd::Expired),
            Holding::Waiting { .. } => self.refuse_lease(cx, id, Refusal::LeaseTimeout),
        }
    }

    pub(crate) fn refuse_lease(&mut self, cx: &mut Cx<'_>, id: LeaseId, refusal: Refusal) {
        self.drop_lease(cx, id);
        cx.push(Command::RefuseLease { lease: id, refusal });
    }

    pub(crate) fn end_lease(&mut self, cx: &mut Cx<'_>, id: LeaseId, reason: LeaseEnd) {
        let refusal = match reason {
            LeaseEnd::ShuttingDown => Refusal::ShuttingDown,
            LeaseEnd::Released | LeaseEnd::Expired | LeaseEnd::Lost => Refusal::NoSuchLease,
        };
        let waiting: Vec<RequestId> = match &self.leases[&id].state {
            Holding::Waiting { .. } => Vec::new(),
            Holding::Granted { places } => {
                places.iter().flatten().flat_map(|place| place.waiting.iter().copied()).collect()
            }
        };
        for request in waiting {
            self.unqueue(request);
            self.turn_away(cx, request, refusal);
        }
        self.drop_lease(cx, id);
        cx.push(Command::EndLease { lease: id, reason });
    }

    /// Gives the places back. What runs there goes on as a plain request.
    fn drop_lease(&mut self, cx: &mut Cx<'_>, id: LeaseId) {
        let lease = self.leases.remove(&id).expect("only a known lease is dropped");
        self.waiting_leases.remove(&id);
        self.timers.clear(Timer::Lease(id));
        self.set_gang_timer(cx.now);
        for worker in lease.workers() {
            self.give_back(worker, id);
            self.after_release(cx, worker);
        }
    }

    fn give_back(&mut self, worker: WorkerId, lease: LeaseId) {
        let Some(process) = self.workers.get_mut(&worker).and_then(|w| w.process_mut()) else {
            return;
        };
        process.leases.retain(|held| *held != lease);
        for held in &mut process.held {
            if held.lease == Some(lease) {
                held.lease = None;
            }
        }
        self.refresh(worker);
    }

    pub(crate) fn occupy_place(&mut self, lease: LeaseId, place: u32, request: RequestId) {
        if let Some(place) = self.leases.get_mut(&lease).and_then(|lease| lease.place_mut(place)) {
            place.busy = Some(request);
        }
    }

    /// A worker let go of a request on a lease's place: the next one of that place may go.
    pub(crate) fn vacate_place(&mut self, cx: &mut Cx<'_>, held: &Held) {
        let Some(id) = held.lease else { return };
        let Some(Holding::Granted { places }) = self.leases.get_mut(&id).map(|l| &mut l.state)
        else {
            return;
        };
        let Some(place) = places.iter_mut().flatten().find(|p| p.busy == Some(held.request)) else {
            return;
        };
        place.busy = None;
        let worker = place.process.worker;
        self.feed_places(cx, worker);
    }

    /// Sends what waits for the leased places of a worker.
    pub(crate) fn feed_places(&mut self, cx: &mut Cx<'_>, worker: WorkerId) {
        let known = self.workers.get(&worker).filter(|w| w.serves_its_leases() && !self.paused);
        let Some(known) = known else { return };
        let leases = known.process().map_or_else(Vec::new, |process| process.leases.clone());
        for id in leases {
            while let Some(next) = self.next_for_place(id, worker) {
                if !self.out_of_time_or_favour(cx, next) {
                    self.assign(cx, next, worker, Some(id));
                }
            }
        }
    }

    /// Takes the next request that waits for a free place; none while the place is busy.
    fn next_for_place(&mut self, lease: LeaseId, worker: WorkerId) -> Option<RequestId> {
        let place = self.leases.get_mut(&lease)?.place_at(worker)?;
        if place.busy.is_some() {
            return None;
        }
        let next = place.waiting.pop_front()?;
        self.left_queue(next);
        Some(next)
    }

    /// A process went, and with it a place or a reservation.
    pub(crate) fn lose_place(&mut self, cx: &mut Cx<'_>, id: LeaseId, worker: WorkerId) {
        let Some(lease) = self.leases.get_mut(&id) else { return };
        match &mut lease.state {
            Holding::Waiting { reserved } => reserved.retain(|reserved| *reserved != worker),
            Holding::Granted { places } => {
                let at = places
                    .iter()
                    .position(|place| place.as_ref().is_some_and(|p| p.process.worker == worker));
                let Some(at) = at else { return };
                let waiting = places[at].take().expect("found just now").waiting;
                let last = places.iter().all(Option::is_none);
                cx.push(Command::LosePlace { lease: id, place: at as u32 });
                for request in waiting {
                    self.left_queue(request);
                    self.turn_away(cx, request, Refusal::NoSuchLease);
                }
                if last {
                    self.end_lease(cx, id, LeaseEnd::Lost);
                }
            }
        }
    }

    /// A worker that no longer accepts work is not kept for anybody.
    fn drop_closed_reservations(&mut self, cx: &mut Cx<'_>, id: LeaseId) {
        let Some(Lease { state: Holding::Waiting { reserved }, .. }) = self.leases.get(&id) else {
            return;
        };
        let closed: Vec<WorkerId> = reserved
            .iter()
            .filter(|worker| !self.workers.get(worker).is_some_and(|worker| worker.accepts()))
            .copied()
            .collect();
        for worker in &closed {
            self.give_back(*worker, id);
        }
        if let Some(Lease { state: Holding::Waiting { reserved }, .. }) = self.leases.get_mut(&id) {
            reserved.retain(|worker| !closed.contains(worker));
        }
        for worker in closed {
            self.after_release(cx, worker);
        }
    }

    /// The oldest waiting lease whose patience is over, of those that can be had at all: while too
    /// many workers are paused nothing is kept back for one that waits for them.
    pub(crate) fn impatient_lease(&self, now: Time) -> Option<LeaseId> {
        let impatient =
            |id: &&LeaseId| now.since(self.leases[*id].asked) >= self.settings.gang_patience;
        let mut impatient = self.waiting_leases.iter().take_while(impatient).peekable();
        impatient.peek()?;
        let most = self.servable_count();
        impatient.find(|id| self.leases[*id].spec.workers as usize <= most).copied()
    }

    /// What was kept for a lease that another one has overtaken, or that cannot be had any more.
    fn drop_idle_reservations(&mut self, cx: &mut Cx<'_>, chosen: Option<LeaseId>) {
        let kept_for = |id: &LeaseId| Some(*id) != chosen && !self.leases[id].workers().is_empty();
        let others: Vec<LeaseId> = self.waiting_leases.iter().copied().filter(kept_for).collect();
        for id in others {
            let workers = self.leases[&id].workers();
            let lease = self.leases.get_mut(&id).expect("listed above");
            lease.state = Holding::Waiting { reserved: Vec::new() };
            for worker in &workers {
                self.give_back(*worker, id);
            }
            for worker in workers {
                self.after_release(cx, worker);
            }
        }
    }

    pub(crate) fn reserve_for_the_impatient(&mut self, cx: &mut Cx<'_>) {
        let chosen = self.impatient_lease(cx.now);
        self.drop_idle_reservations(cx, chosen);
        let Some(id) = chosen else { return };
        self.drop_closed_reservations(cx, id);
        let lease = &self.leases[&id];
        let wanted = lease.spec.workers as usize;
        let mut reserved = lease.workers();
        let candidates: Vec<WorkerId> = self.roster.open().collect();
        for worker in candidates {
            if reserved.len() < wanted && !reserved.contains(&worker) {
                self.take_place(worker, id);
                reserved.push(worker);
            }
        }
        if reserved.len() == wanted {
            return self.grant(cx, id, reserved);
        }
        let lease = self.leases.get_mut(&id).expect("looked up above");
        lease.state = Holding::Waiting { reserved };
    }

    pub(crate) fn grant_what_fits(&mut self, cx: &mut Cx<'_>) {
        let waiting: Vec<LeaseId> = self.waiting_leases.iter().take(LOOK_AHEAD).copied().collect();
        for id in waiting {
            self.drop_closed_reservations(cx, id);
            let lease = &self.leases[&id];
            let mut workers = lease.workers();
            let missing = (lease.spec.workers as usize).saturating_sub(workers.len());
            if missing > self.roster.open_count() {
                continue;
            }
            let more = self.roster.open().filter(|worker| !workers.contains(worker)).take(missing);
            let more: Vec<WorkerId> = more.collect();
            if more.len() == missing {
                for worker in &more {
                    self.take_place(*worker, id);
                }
                workers.extend(more);
                self.grant(cx, id, workers);
            }
        }
    }

    fn take_place(&mut self, worker: WorkerId, lease: LeaseId) {
        let process = self.workers.get_mut(&worker).and_then(|worker| worker.process_mut());
        process.expect("an open worker is live").leases.push(lease);
        self.refresh(worker);
    }

    fn grant(&mut self, cx: &mut Cx<'_>, id: LeaseId, workers: Vec<WorkerId>) {
        let processes: Vec<ProcessId> =
            workers.iter().map(|worker| self.workers[worker].process_id()).collect();
        let places = processes.iter().map(|process| {
            Some(LeasePlace { process: *process, busy: None, waiting: VecDeque::new() })
        });
        let lease = self.leases.get_mut(&id).expect("only a known lease is granted");
        lease.state = Holding::Granted { places: places.collect() };
        let expires = cx.now.after(lease.spec.ttl);
        self.waiting_leases.remove(&id);
        self.timers.set(Timer::Lease(id), expires);
        self.set_gang_timer(cx.now);
        cx.push(Command::Grant { lease: id, places: processes });
    }

    /// For the next one to lose its patience.
    pub(crate) fn set_gang_timer(&mut self, now: Time) {
        let patience = self.settings.gang_patience;
        let over = |id: &LeaseId| self.leases[id].asked.after(patience);
        match self.waiting_leases.iter().map(over).find(|at| *at > now) {
            None => self.timers.clear(Timer::Gang),
            Some(at) => self.timers.set(Timer::Gang, at),
        }
    }
}
