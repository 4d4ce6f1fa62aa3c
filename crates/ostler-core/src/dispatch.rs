//! From arrival to a worker: who is refused, who waits, who is sent where.

use std::time::Duration;

use crate::command::{Command, Outcome, PhaseReason, Refusal, Started, Waiting};
use crate::event::{RequestSpec, Target};
use crate::id::{LeaseId, ProcessId, RequestId, WorkerId};
use crate::pool::{Cx, Pool, Stage};
use crate::process::{Held, Hold};
use crate::request::{Past, Place, Request};
use crate::settings::Admission;
use crate::status::Status;
use crate::time::Time;
use crate::timers::Timer;
use crate::worker::Worker;

impl Pool {
    pub(crate) fn on_request_arrived(&mut self, cx: &mut Cx<'_>, id: RequestId, spec: RequestSpec) {
        self.counters.arrived += 1;
        if let Some(refusal) = self.refusal_for(cx.now, &spec) {
            self.counters.refused += 1;
            return cx.push(Command::Refuse { request: id, refusal });
        }
        let deadline = spec.deadline;
        let request = Request {
            spec,
            arrived: cx.now,
            attempt: 0,
            tries: 0,
            past: None,
            place: Place::Queued,
            timer: None,
        };
        let twice = self.requests.insert(id, request);
        assert!(twice.is_none(), "a request arrives once");
        if deadline <= cx.now {
            let outcome = Outcome::TimedOut { phase: Waiting::Queue, started: Started::No };
            return self.resolve(cx, id, outcome);
        }
        if let Some((worker, lease)) = self.place_at_once(id) {
            self.set_request_timer(id, Some(deadline));
            return self.assign(cx, id, worker, lease);
        }
        match self.queue_refusal(cx.now, &self.requests[&id].spec) {
            Some(refusal) => self.refuse(cx, id, refusal),
            None => self.enqueue(cx, id),
        }
    }

    /// Nothing that waits is passed over: `feed` leaves no open worker while someone waits for it.
    fn place_at_once(&self, id: RequestId) -> Option<(WorkerId, Option<LeaseId>)> {
        match self.requests[&id].spec.target {
            Target::Any => Some((self.roster.best()?, None)),
            Target::Worker(worker) => {
                let free = self.workers.get(&worker).is_some_and(|w| w.free_places() > 0);
                free.then_some((worker, None))
            }
            Target::Lease(lease, place) => {
                let place = self.leases.get(&lease)?.place(place)?;
                let worker = self.workers.get(&place.process.worker)?;
                (place.free() && worker.serves_its_leases()).then_some((worker.id, Some(lease)))
            }
        }
    }

    /// Why a request cannot wait.
    fn queue_refusal(&self, now: Time, spec: &RequestSpec) -> Option<Refusal> {
        if let Some(refusal) = self.nested_refusal(spec) {
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

    fn refusal_for(&self, now: Time, spec: &RequestSpec) -> Option<Refusal> {
        match self.stage {
            Stage::Draining | Stage::Stopped => return Some(Refusal::ShuttingDown),
            Stage::New | Stage::Open => {}
        }
        if let Some((exit, left)) = self.quarantine.holds(now, spec.fingerprint) {
            return Some(Refusal::Quarantined { exit, left });
        }
        match spec.target {
            Target::Any => self.failed().then_some(Refusal::PoolFailed),
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
        let oldest = self.queue.oldest().into_iter().chain(own).chain(leased).min();
        let oldest = oldest.and_then(|id| self.requests.get(&id));
        oldest.map_or(Duration::ZERO, |request| now.since(request.arrived))
    }

    pub(crate) fn enqueue(&mut self, cx: &mut Cx<'_>, id: RequestId) {
        let request = self.requests.get_mut(&id).expect("only what has no outcome is queued");
        request.place = Place::Queued;
        let spec = &request.spec;
        let mut until = spec.deadline;
        if request.tries == 0 {
            until = until.min(request.arrived.after(self.settings.queue_timeout));
        }
        match spec.target {
            Target::Any => self.queue.push(spec.priority, spec.owner, id),
            Target::Worker(worker) => {
                self.own.entry(worker).or_default().push(spec.priority, spec.owner, id);
            }
            Target::Lease(lease, place) => {
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
        let spec = &self.requests[&id].spec;
        let (priority, owner) = (spec.priority, spec.owner);
        match spec.target {
            Target::Any => drop(self.queue.remove(priority, owner, id)),
            Target::Worker(worker) => {
                if let Some(queue) = self.own.get_mut(&worker) {
                    queue.remove(priority, owner, id);
                    if queue.is_empty() {
                        self.own.remove(&worker);
                    }
                }
            }
            Target::Lease(lease, place) => {
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
        let refusal = self.refusal_for(cx.now, spec).or_else(|| self.nested_refusal(spec));
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
        if self.stage != Stage::Open {
            return;
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
                self.assign(cx, request, worker, None);
            }
        }
        if !self.waiting_leases.is_empty() {
            self.grant_what_fits(cx);
        }
        self.prefetch(cx);
    }

    fn feed_own(&mut self, cx: &mut Cx<'_>) {
        let waited_for: Vec<WorkerId> = self.own.keys().copied().collect();
        for worker in waited_for {
            while self.workers.get(&worker).is_some_and(|w| w.free_places() > 0) {
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
            // One that others wait for could end up behind them.
            let first = self.queue.first().filter(|id| self.requests[id].spec.ancestors.is_empty());
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
        let worker = self.workers.get_mut(&worker_id).expect("only a known worker is chosen");
        let process_id = ProcessId { worker: worker_id, generation: worker.generation };
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
            hold: Hold::Live,
        });
        cx.push(Command::Assign {
            request: id,
            attempt: request.attempt,
            process: process_id,
            deadline: request.spec.deadline,
            tries: request.tries,
            prefetched,
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

    pub(crate) fn refuse(&mut self, cx: &mut Cx<'_>, request: RequestId, refusal: Refusal) {
        self.forget(request);
        self.counters.refused += 1;
        cx.push(Command::Refuse { request, refusal });
    }

    fn forget(&mut self, request: RequestId) {
        let known = self.requests.remove(&request).expect("a request has one outcome");
        self.timers.reset(Timer::Request(request), known.timer, None);
    }

    pub(crate) fn set_request_timer(&mut self, id: RequestId, at: Option<Time>) {
        let request = self.requests.get_mut(&id).expect("only what has no outcome has a timer");
        let old = std::mem::replace(&mut request.timer, at);
        self.timers.reset(Timer::Request(id), old, at);
    }
}
