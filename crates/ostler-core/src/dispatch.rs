//! From arrival to a worker: who is refused, who waits, who is sent where.

use std::cmp::Reverse;
use std::time::Duration;

use crate::command::{Command, Continuity, Outcome, PhaseReason, Refusal, Started, Waiting};
use crate::event::{RequestSpec, Target};
use crate::id::{LeaseId, ProcessId, RequestId, WorkerId};
use crate::pool::{Cx, Pool, Stage};
use crate::process::{Held, Hold};
use crate::request::{Line, Past, Place, Request};
use crate::settings::Admission;
use crate::status::Status;
use crate::time::Time;
use crate::timers::Timer;
use crate::way::Way;
use crate::worker::{Openness, Worker};

impl Pool {
    pub(crate) fn on_request_arrived(&mut self, cx: &mut Cx<'_>, id: RequestId, spec: RequestSpec) {
        self.counters.arrived += 1;
        if let Some(refusal) = self.door_refusal(&spec).or_else(|| self.refusal_for(cx.now, &spec))
        {
            self.counters.refused += 1;
            self.note_told(&spec, refusal);
            return cx.push(Command::Refuse { request: id, refusal });
        }
        let deadline = spec.deadline;
        let request = Request {
            spec,
            arrived: cx.now,
            attempt: 0,
            tries: 0,
            past: None,
            place: Place::Queued(Line::Common),
            timer: None,
        };
        let twice = self.requests.insert(id, request);
        assert!(twice.is_none(), "a request arrives once");
        if deadline <= cx.now {
            let outcome = Outcome::TimedOut { phase: Waiting::Queue, started: Started::No };
            return self.resolve(cx, id, outcome);
        }
        if let Some((worker, lease)) = self.place_at_once(cx.now, id) {
            self.set_request_timer(id, Some(deadline));
            return self.assign(cx, id, worker, lease);
        }
        match self.queue_refusal(cx.now, &self.requests[&id].spec) {
            Some(refusal) => self.refuse(cx, id, refusal),
            None => self.enqueue(cx, id),
        }
    }

    /// Nothing that waits is passed over: `feed` leaves no open worker while someone waits for it.
    fn place_at_once(&self, now: Time, id: RequestId) -> Option<(WorkerId, Option<LeaseId>)> {
        if self.paused {
            return None;
        }
        match self.way(now, &self.requests[&id].spec) {
            Way::Anyone => Some((self.roster.best()?, None)),
            Way::Rather(worker) if self.is_free(worker) => Some((worker, None)),
            Way::Rather(_) => Some((self.roster.best()?, None)),
            Way::Only(worker) => self.is_free(worker).then_some((worker, None)),
            Way::Key(_) => None,
            Way::Place(lease, place) => {
                let place = self.leases.get(&lease)?.place(place)?;
                let worker = self.workers.get(&place.process.worker)?;
                (place.free() && worker.serves_its_leases()).then_some((worker.id, Some(lease)))
            }
        }
    }

    fn is_free(&self, worker: WorkerId) -> bool {
        self.workers.get(&worker).is_some_and(|worker| worker.free_places() > 0)
    }

    /// Why a request cannot wait.
    fn queue_refusal(&self, now: Time, spec: &RequestSpec) -> Option<Refusal> {
        if let Some(refusal) = self.busy_refusal(spec) {
            return Some(refusal);
        }
        if let Some(refusal) = self.nested_refusal(now, spec) {
            return Some(refusal);
        }
        if self.queued >= self.settings.queue_max as usize {
            return Some(self.saturation(now));
        }
        let estimate = self.estimate(spec)?;
        let late = now.after(estimate) > spec.deadline;
        late.then_some(Refusal::DeadlineUnreachable { queued: self.queued as u32, estimate })
    }

    /// How long a request would take that waits now, if that matters and can be told: those before
    /// it, spread over the places, and then itself.
    fn estimate(&self, spec: &RequestSpec) -> Option<Duration> {
        let asked = self.settings.admission == Admission::Deadline && self.service_known;
        if !asked || spec.target != Target::Any {
            return None;
        }
        let serving = self.workers.values().filter(|worker| !worker.dedicated && worker.accepts());
        let places: u32 = serving.filter_map(Worker::process).map(|process| process.capacity).sum();
        let turns = self.queue.len_before(spec.priority, spec.owner) as u32;
        (places > 0).then(|| self.service.saturating_mul(turns) / places + self.service)
    }

    /// Of a pool that lets nobody new in. Calls that those inside wait for are not new.
    fn door_refusal(&self, spec: &RequestSpec) -> Option<Refusal> {
        let inside = !spec.ancestors.is_empty() || matches!(spec.target, Target::Lease(..));
        let open = self.closed && self.stage == Stage::Open;
        (open && !inside).then_some(Refusal::PoolDraining)
    }

    fn refusal_for(&self, now: Time, spec: &RequestSpec) -> Option<Refusal> {
        match self.stage {
            Stage::Draining | Stage::Stopped => return Some(Refusal::ShuttingDown),
            Stage::New | Stage::Open => {}
        }
        if let Some((exit, left)) = self.quarantine.holds(now, spec.fingerprint) {
            return Some(Refusal::Quarantined { exit, left });
        }
        match spec.target {
            Target::Any if self.settings.keyed.is_some() && spec.key.is_none() => {
                Some(Refusal::KeyRequired)
            }
            Target::Any if self.failed() => Some(Refusal::PoolFailed),
            Target::Any => self.bond_refusal(spec),
            Target::Worker(id) => match self.workers.get(&id) {
                None => Some(Refusal::NoSuchWorker),
                Some(worker) => {
                    let serves = matches!(worker.status, Status::Running | Status::Paused);
                    (!serves).then_some(Refusal::WorkerNotServing)
                }
            },
            Target::Lease(lease, place) => {
                let held = self.leases.get(&lease).and_then(|lease| lease.place(place));
                held.is_none().then_some(Refusal::NoSuchLease)
            }
        }
    }

    fn saturation(&self, now: Time) -> Refusal {
        Refusal::Saturated {
            queued: self.queued as u32,
            busy: self.workers.values().map(|worker| worker.load() as u32).sum(),
            oldest: self.oldest_waits(now),
        }
    }

    /// How long the first of all queues has waited.
    pub(crate) fn oldest_waits(&self, now: Time) -> Duration {
        let own = self.own.values().filter_map(|queue| queue.oldest());
        let leased = self.leases.values().filter_map(|lease| lease.oldest());
        let (common, keyed) = (self.queue.oldest(), self.keys.oldest());
        let oldest = common.into_iter().chain(keyed).chain(own).chain(leased).min();
        let oldest = oldest.and_then(|id| self.requests.get(&id));
        oldest.map_or(Duration::ZERO, |request| now.since(request.arrived))
    }

    pub(crate) fn enqueue(&mut self, cx: &mut Cx<'_>, id: RequestId) {
        let line = match self.way(cx.now, &self.requests[&id].spec) {
            Way::Anyone | Way::Rather(_) => Line::Common,
            Way::Only(worker) => Line::Own(worker),
            Way::Key(key) => Line::Key(key),
            Way::Place(lease, place) => Line::Leased(lease, place),
        };
        let request = self.requests.get_mut(&id).expect("only what has no outcome is queued");
        request.place = Place::Queued(line);
        let spec = &request.spec;
        let mut until = spec.deadline;
        if request.tries == 0 {
            until = until.min(request.arrived.after(self.settings.queue_timeout));
        }
        match line {
            Line::Common => self.queue.push(spec.priority, spec.owner, id),
            Line::Key(key) => self.keys.push(key, spec.priority, id),
            Line::Own(worker) => {
                self.own.entry(worker).or_default().push(spec.priority, spec.owner, id);
            }
            Line::Leased(lease, place) => {
                let lease = self.leases.get_mut(&lease).and_then(|lease| lease.place_mut(place));
                lease.expect("checked by the caller").waiting.push_back(id);
            }
        }
        self.queued += 1;
        self.note_nested_queued(id);
        self.set_request_timer(id, Some(until.max(cx.now)));
    }

    /// Takes a waiting request out of its queue.
    pub(crate) fn unqueue(&mut self, id: RequestId) {
        let request = &self.requests[&id];
        let (priority, owner) = (request.spec.priority, request.spec.owner);
        let Place::Queued(line) = request.place else { unreachable!("only what waits is taken") };
        match line {
            Line::Common => drop(self.queue.remove(priority, owner, id)),
            Line::Key(key) => self.keys.remove(key, priority, id),
            Line::Own(worker) => {
                if let Some(queue) = self.own.get_mut(&worker) {
                    queue.remove(priority, owner, id);
                    if queue.is_empty() {
                        self.own.remove(&worker);
                    }
                }
            }
            Line::Leased(lease, place) => {
                if let Some(place) = self.leases.get_mut(&lease).and_then(|l| l.place_mut(place)) {
                    place.waiting.retain(|waiting| *waiting != id);
                }
            }
        }
        self.left_queue(id);
    }

    /// After a request was taken out of whichever queue it was in.
    pub(crate) fn left_queue(&mut self, id: RequestId) {
        self.queued -= 1;
        self.note_nested_left(id);
    }

    /// Back to the queue, or to the refusal that fits: what it waited for may be gone.
    pub(crate) fn requeue(&mut self, cx: &mut Cx<'_>, id: RequestId) {
        let spec = &self.requests[&id].spec;
        let target = spec.target;
        let refusal = self.refusal_for(cx.now, spec).or_else(|| self.nested_refusal(cx.now, spec));
        if let Some(refusal) = refusal {
            return self.turn_away(cx, id, refusal);
        }
        self.enqueue(cx, id);
        if let Target::Lease(lease, place) = target {
            let place = self.leases.get(&lease).and_then(|lease| lease.place(place));
            let worker = place.expect("checked by `refusal_for`").process.worker;
            self.feed_places(cx, worker);
        }
    }

    /// There is no other attempt: a refusal if it never ran, else how the last attempt ended.
    pub(crate) fn turn_away(&mut self, cx: &mut Cx<'_>, id: RequestId, refusal: Refusal) {
        match self.requests[&id].past {
            None => self.refuse(cx, id, refusal),
            Some(Past::Failed) => self.resolve(cx, id, Outcome::Answered),
            Some(Past::Lost { exit, reason }) => {
                self.resolve(cx, id, Outcome::Lost { exit, reason, started: Started::Unknown });
            }
        }
    }

    /// Sends what waits to whoever is free, until one of both is used up.
    pub(crate) fn feed(&mut self, cx: &mut Cx<'_>) {
        if self.stage != Stage::Open || self.paused {
            return;
        }
        if self.keys.len() > 0 {
            self.open_keys(cx);
        }
        if !self.own.is_empty() {
            self.feed_own(cx);
        }
        if !self.waiting_leases.is_empty() {
            self.reserve_for_the_impatient(cx);
        }
        while let Some(worker) = self.roster.best() {
            let Some(request) = self.queue.pop() else { break };
            self.left_queue(request);
            if !self.out_of_time_or_favour(cx, request) {
                self.send(cx, request, worker);
            }
        }
        // A session that was bound anew may have brought its own to somebody who is free.
        if !self.own.is_empty() {
            self.feed_own(cx);
        }
        if !self.waiting_leases.is_empty() {
            self.grant_what_fits(cx);
        }
        self.prefetch(cx);
        self.consider_growth(cx);
    }

    /// Sends a request that waited for anybody to `best`, unless its session was bound meanwhile.
    fn send(&mut self, cx: &mut Cx<'_>, id: RequestId, best: WorkerId) {
        let spec = &self.requests[&id].spec;
        if spec.bond.is_none() {
            return self.assign(cx, id, best, None);
        }
        if let Some(refusal) = self.bond_refusal(spec) {
            return self.turn_away(cx, id, refusal);
        }
        match self.way(cx.now, spec) {
            Way::Rather(worker) | Way::Only(worker) if self.is_free(worker) => {
                self.assign(cx, id, worker, None);
            }
            Way::Only(_) => match self.busy_refusal(spec) {
                Some(refusal) => self.turn_away(cx, id, refusal),
                None => self.enqueue(cx, id),
            },
            Way::Anyone | Way::Rather(_) | Way::Key(_) | Way::Place(..) => {
                self.assign(cx, id, best, None);
            }
        }
    }

    fn feed_own(&mut self, cx: &mut Cx<'_>) {
        let waited_for: Vec<WorkerId> = self.own.keys().copied().collect();
        for worker in waited_for {
            while self.workers.get(&worker).is_some_and(|w| w.free_places() > 0) {
                if let Some(first) = self.whose_turn_before_own(cx.now, worker) {
                    self.queue.pop();
                    self.left_queue(first);
                    if !self.out_of_time_or_favour(cx, first) {
                        self.send(cx, first, worker);
                    }
                    continue;
                }
                let Some(queue) = self.own.get_mut(&worker) else { break };
                let request = queue.pop().expect("an empty queue is removed");
                if queue.is_empty() {
                    self.own.remove(&worker);
                }
                self.left_queue(request);
                if !self.out_of_time_or_favour(cx, request) {
                    self.assign(cx, request, worker, None);
                }
            }
        }
    }

    /// The first of the common line, if the worker may serve it and it comes before those who wait
    /// for this worker alone: by priority, then by arrival.
    fn whose_turn_before_own(&self, now: Time, worker: WorkerId) -> Option<RequestId> {
        let open = matches!(self.workers[&worker].openness(), Openness::Open(_));
        // With another one to go to, it does not need this one.
        let best = self.roster.best() == Some(worker);
        if !open || !best || self.impatient_lease(now).is_some() {
            return None;
        }
        let (common, own) = (self.queue.first()?, self.own.get(&worker)?.first()?);
        let rank = |id: RequestId| (Reverse(self.requests[&id].spec.priority), id);
        (rank(common) < rank(own)).then_some(common)
    }

    /// It never runs: its deadline passed while it waited, or its like has killed twice since.
    pub(crate) fn out_of_time_or_favour(&mut self, cx: &mut Cx<'_>, id: RequestId) -> bool {
        if self.expire(cx, id) {
            return true;
        }
        let held = self.quarantine.holds(cx.now, self.requests[&id].spec.fingerprint);
        if let Some((exit, left)) = held {
            self.turn_away(cx, id, Refusal::Quarantined { exit, left });
        }
        held.is_some()
    }

    /// Its deadline passed while it waited.
    fn expire(&mut self, cx: &mut Cx<'_>, id: RequestId) -> bool {
        let request = &self.requests[&id];
        let expired = cx.now >= request.spec.deadline;
        if expired {
            let started = if request.tries > 0 { Started::Yes } else { Started::No };
            self.resolve(cx, id, Outcome::TimedOut { phase: Waiting::Queue, started });
        }
        expired
    }

    /// Behind short calls the next one should already lie in the worker's stream.
    fn prefetch(&mut self, cx: &mut Cx<'_>) {
        let long = self.service >= self.settings.prefetch_below;
        if self.queue.is_empty() || long || self.impatient_lease(cx.now).is_some() {
            return;
        }
        while let Some(worker) = self.best_for_prefetch() {
            // One that others wait for could end up behind them; one of a session belongs with it.
            let first = self.queue.first().filter(|id| {
                let spec = &self.requests[id].spec;
                spec.ancestors.is_empty() && spec.bond.is_none()
            });
            let Some(request) = first.and_then(|_| self.queue.pop()) else { break };
            self.left_queue(request);
            if self.out_of_time_or_favour(cx, request) {
                continue;
            }
            self.counters.prefetched += 1;
            self.assign(cx, request, worker, None);
            if !self.timers.has(Timer::Patience(worker)) {
                let at = cx.now.after(self.settings.prefetch_patience);
                self.timers.set(Timer::Patience(worker), at);
            }
        }
    }

    /// Whoever waits for one worker in particular is not to be kept waiting by others.
    fn best_for_prefetch(&self) -> Option<WorkerId> {
        self.roster.prefetchable().find(|id| !self.own.contains_key(id))
    }

    pub(crate) fn assign(
        &mut self,
        cx: &mut Cx<'_>,
        id: RequestId,
        worker_id: WorkerId,
        lease: Option<LeaseId>,
    ) {
        let generation = self.workers[&worker_id].generation;
        let process_id = ProcessId { worker: worker_id, generation };
        let spec = &self.requests[&id].spec;
        let bond = spec.bond.filter(|_| spec.target == Target::Any);
        let continuity = bond.map(|bond| self.tie(cx, bond, process_id));
        let tied = bond.filter(|_| continuity != Some(Continuity::Elsewhere));
        let worker = self.workers.get_mut(&worker_id).expect("only a known worker is chosen");
        worker.last_used = cx.now;
        worker.last_turn = self.counters.assigned + 1;
        let process = worker.process_mut().expect("only a live worker is chosen");
        let request = self.requests.get_mut(&id).expect("only what has no outcome is assigned");
        request.attempt += 1;
        request.place = Place::Held(process_id);
        let prefetched = !process.may_have_started(process.held.len());
        // A question that work overtakes has no verdict.
        process.asked_if_well = None;
        process.held.push(Held {
            request: id,
            attempt: request.attempt,
            sent: cx.now,
            lease,
            fingerprint: request.spec.fingerprint,
            bond: tied.map(|bond| bond.session),
            hold: Hold::Live,
        });
        cx.push(Command::Assign {
            request: id,
            attempt: request.attempt,
            process: process_id,
            deadline: request.spec.deadline,
            tries: request.tries,
            prefetched,
            continuity,
        });
        if let (Some(lease), Target::Lease(_, place)) = (lease, request.spec.target) {
            self.occupy_place(lease, place, id);
        }
        self.counters.assigned += 1;
        self.refresh(worker_id);
        self.show(cx, worker_id, PhaseReason::Filled);
    }

    pub(crate) fn resolve(&mut self, cx: &mut Cx<'_>, request: RequestId, outcome: Outcome) {
        self.forget(request);
        self.counters.resolved += 1;
        cx.push(Command::Resolve { request, outcome });
    }

    /// The loss of a session's process is told once.
    fn note_told(&mut self, spec: &RequestSpec, refusal: Refusal) {
        if let (Refusal::SessionWorkerLost, Some(bond)) = (refusal, spec.bond) {
            self.bonds.told(bond.session);
        }
    }

    pub(crate) fn refuse(&mut self, cx: &mut Cx<'_>, request: RequestId, refusal: Refusal) {
        let known = self.forget(request);
        self.note_told(&known.spec, refusal);
        self.counters.refused += 1;
        cx.push(Command::Refuse { request, refusal });
    }

    fn forget(&mut self, request: RequestId) -> Request {
        let known = self.requests.remove(&request).expect("a request has one outcome");
        self.timers.reset(Timer::Request(request), known.timer, None);
        known
    }

    pub(crate) fn set_request_timer(&mut self, id: RequestId, at: Option<Time>) {
        let request = self.requests.get_mut(&id).expect("only what has no outcome has a timer");
        let old = std::mem::replace(&mut request.timer, at);
        self.timers.reset(Timer::Request(id), old, at);
    }
}
