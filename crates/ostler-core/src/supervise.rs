//! Changes of status: ordered by someone or wanted by the core, stored first, then in effect.
//!
//! A change goes out as `Record` and counts when the store has confirmed it. A store that cannot
//! say whether it did the work is asked again with the same record until it can; meanwhile the
//! worker has that one change pending and takes no other.

use crate::command::{Change, Command, Notice, Refusal, Reply, Retirement, StopReason};
use crate::event::{Action, Recording, Target};
use crate::id::{OrderId, RecordId, RequestId, WorkerId};
use crate::pool::{Cx, Pool, Stage};
use crate::process::Step;
use crate::status::{Status, Trigger};
use crate::timers::Timer;
use crate::worker::{Engine, Pending, Worker};

/// Terminal workers that are still known by their id.
const BURIED_MAX: usize = 1_024;

impl Pool {
    pub(crate) fn on_ordered(&mut self, cx: &mut Cx<'_>, order: OrderId, action: Action) {
        if matches!(self.stage, Stage::Draining | Stage::Stopped) {
            return cx.push(Command::Reply { order, reply: Reply::ShuttingDown });
        }
        let (worker, trigger) = match action {
            Action::Create => return self.on_create_ordered(cx, order),
            Action::Start(worker) => (worker, Trigger::Start),
            Action::Pause { worker, freeze } => {
                return self.on_pause_ordered(cx, order, worker, freeze);
            }
            Action::Resume(worker) => (worker, Trigger::Resume),
            Action::Complete(worker) => return self.on_complete_ordered(cx, order, worker),
            Action::Terminate(worker) => (worker, Trigger::Terminate),
            Action::Recycle(worker) => return self.on_recycle_ordered(cx, order, worker),
            Action::RecyclePool => return self.on_recycle_pool_ordered(cx, order),
            Action::PausePool => return self.on_pause_pool_ordered(cx, order),
            Action::ResumePool => return self.on_resume_pool_ordered(cx, order),
            Action::DrainPool => return self.on_drain_pool_ordered(cx, order),
            Action::Scale { min, max } => return self.on_scale_ordered(cx, order, (min, max)),
            Action::Bind { session, worker } => {
                return self.on_bind_ordered(cx, order, session, worker);
            }
            Action::Unbind(session) => return self.on_unbind_ordered(cx, order, session),
        };
        self.transition(cx, worker, trigger, Some(order));
    }

    fn on_create_ordered(&mut self, cx: &mut Cx<'_>, order: OrderId) {
        let dedicated = self.workers.values().filter(|worker| worker.dedicated).count();
        if dedicated >= self.settings.dedicated_max as usize {
            return cx.push(Command::Reply { order, reply: Reply::DedicatedFull });
        }
        self.create_worker(cx, Some(order), true);
    }

    fn on_pause_ordered(&mut self, cx: &mut Cx<'_>, order: OrderId, id: WorkerId, freeze: bool) {
        self.transition(cx, id, Trigger::Pause, Some(order));
        let pending = self.workers.get_mut(&id).and_then(|worker| worker.pending.as_mut());
        if let Some(pending) = pending.filter(|pending| pending.change.order == Some(order)) {
            pending.freeze = freeze;
        }
    }

    /// Nothing new; COMPLETED when it is idle, TERMINATED if that takes too long.
    fn on_complete_ordered(&mut self, cx: &mut Cx<'_>, order: OrderId, id: WorkerId) {
        if self.workers.get(&id).is_some_and(|worker| worker.completing.is_some()) {
            return cx.push(Command::Reply { order, reply: Reply::InTransition });
        }
        let draining = self
            .workers
            .get(&id)
            .is_some_and(|worker| worker.status == Status::Running && worker.pending.is_none());
        if !draining {
            return self.transition(cx, id, Trigger::Complete, Some(order));
        }
        self.workers.get_mut(&id).expect("looked up above").completing = Some(order);
        self.refresh(id);
        self.withdraw_prefetched(cx, id);
        self.timers.set(Timer::Supervise(id), cx.now.after(self.settings.supervisor_timeout));
        self.evacuate(cx, id);
        self.reroute(cx, id, None);
        self.complete_when_idle(cx, id);
    }

    pub(crate) fn complete_when_idle(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        let worker = &self.workers[&id];
        let busy = worker.process().is_some_and(|process| !process.idle())
            || self.bonds.any_at(worker.process_id());
        // Paused meanwhile: it completes after it was resumed, or runs out of time.
        if busy || worker.pending.is_some() || worker.status != Status::Running {
            return;
        }
        let order = worker.completing;
        self.timers.clear(Timer::Restart(id));
        self.transition(cx, id, Trigger::Complete, order);
    }

    pub(crate) fn on_supervisor_timeout(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        if let Some(order) = worker.completing.take() {
            if let Some(pending) = &mut worker.pending
                && pending.change.order == Some(order)
            {
                if !std::mem::replace(&mut pending.overdue, true) {
                    cx.push(Command::Reply { order, reply: Reply::TimedOut });
                }
                return;
            }
            cx.push(Command::Reply { order, reply: Reply::TimedOut });
            self.transition(cx, id, Trigger::Terminate, None);
        } else if worker.proving {
            worker.proving = false;
            self.transition(cx, id, Trigger::Terminate, None);
        }
    }

    pub(crate) fn create_worker(
        &mut self,
        cx: &mut Cx<'_>,
        order: Option<OrderId>,
        dedicated: bool,
    ) -> WorkerId {
        let id = WorkerId(self.next_worker);
        self.next_worker += 1;
        self.workers.insert(id, Worker::new(id, dedicated, cx.now));
        let change = Change {
            from: None,
            to: Status::Idle,
            trigger: Trigger::Create,
            retirement: None,
            order,
        };
        self.record(cx, id, change);
        id
    }

    /// Begins a change of status, if the table allows it.
    pub(crate) fn transition(
        &mut self,
        cx: &mut Cx<'_>,
        id: WorkerId,
        trigger: Trigger,
        order: Option<OrderId>,
    ) {
        let worker = self.workers.get_mut(&id).or_else(|| self.buried.get_mut(&id));
        let Some(worker) = worker else {
            return reply(cx, order, Reply::NoSuchWorker);
        };
        if worker.pending.is_some() {
            if order.is_none() && worker.wanted != Some(Trigger::Terminate) {
                worker.wanted = Some(trigger);
            }
            return reply(cx, order, Reply::InTransition);
        }
        let (from, to) = (worker.status, trigger.leads_to());
        if !legal(worker, trigger) {
            self.counters.illegal_orders += u64::from(order.is_some());
            return reply(cx, order, Reply::Illegal { from, to, allowed: from.allowed() });
        }
        let retirement = worker.retirement.filter(|_| trigger == Trigger::Complete);
        self.record(cx, id, Change { from: Some(from), to, trigger, retirement, order });
    }

    fn record(&mut self, cx: &mut Cx<'_>, id: WorkerId, change: Change) {
        let worker = self.workers.get_mut(&id).or_else(|| self.buried.get_mut(&id));
        let worker = worker.expect("only a known worker changes");
        worker.pending = Some(Pending {
            change,
            freeze: false,
            since: cx.now,
            asked: true,
            overdue: false,
            doubted: false,
        });
        let record = RecordId { worker: id, seq: worker.seq + 1 };
        cx.push(Command::Record { record, change });
        self.await_record(cx, id);
        self.refresh(id);
    }

    /// Whoever gave the order is not to wait for a silent store for ever.
    fn await_record(&mut self, cx: &Cx<'_>, id: WorkerId) {
        self.timers.set(Timer::Record(id), cx.now.after(self.settings.supervisor_timeout));
    }

    pub(crate) fn on_recorded(&mut self, cx: &mut Cx<'_>, record: RecordId, result: Recording) {
        let id = record.worker;
        let worker = self.workers.get_mut(&id).or_else(|| self.buried.get_mut(&id));
        let Some(worker) = worker else { return };
        let Some(pending) = worker.pending.filter(|_| record.seq == worker.seq + 1) else {
            self.counters.stale += 1;
            return;
        };
        if let Some(pending) = &mut worker.pending {
            pending.asked = false;
            pending.doubted |= result == Recording::Unknown;
        }
        match result {
            Recording::Stored => self.settle(cx, id, pending),
            Recording::Refused if pending.change.order.is_some() && !pending.doubted => {
                self.unsettle(cx, id, pending);
            }
            // Nobody waits for it, or it may be there already: it is a fact that must be stored.
            Recording::Refused | Recording::Unknown => {
                self.timers.set(Timer::Record(id), cx.now.after(self.settings.record_retry));
            }
        }
    }

    pub(crate) fn on_record_due(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        let worker = self.workers.get_mut(&id).or_else(|| self.buried.get_mut(&id));
        let Some(worker) = worker else { return };
        let record = RecordId { worker: id, seq: worker.seq + 1 };
        let Some(pending) = &mut worker.pending else { return };
        if !std::mem::replace(&mut pending.asked, true) {
            // It never changes, whoever still waits for it: the store knows it by that.
            cx.push(Command::Record { record, change: pending.change });
        }
        let overdue = cx.now.since(pending.since) >= self.settings.supervisor_timeout;
        if overdue && !pending.overdue && pending.change.order.is_some() {
            pending.overdue = true;
            reply(cx, pending.change.order, Reply::TimedOut);
        } else if !pending.overdue && pending.change.order.is_some() {
            self.await_record(cx, id);
        }
    }

    fn settle(&mut self, cx: &mut Cx<'_>, id: WorkerId, pending: Pending) {
        let change = pending.change;
        let worker = self.workers.get_mut(&id).or_else(|| self.buried.get_mut(&id));
        let worker = worker.expect("its record was pending");
        worker.seq += 1;
        worker.status = change.to;
        worker.pending = None;
        cx.notify(Notice::StatusChanged { worker: id, change });
        self.timers.clear(Timer::Record(id));
        self.refresh(id);
        let waits = if pending.overdue { None } else { change.order };
        self.take_effect(cx, id, pending, waits);
        if pending.overdue && !change.to.terminal() {
            self.transition(cx, id, Trigger::Terminate, None);
        }
        self.take_up_wanted(cx, id);
    }

    fn unsettle(&mut self, cx: &mut Cx<'_>, id: WorkerId, pending: Pending) {
        let worker = self.workers.get_mut(&id).or_else(|| self.buried.get_mut(&id));
        let worker = worker.expect("its record was pending");
        worker.pending = None;
        if worker.completing == pending.change.order {
            worker.completing = None;
            self.timers.clear(Timer::Supervise(id));
        }
        self.timers.clear(Timer::Record(id));
        if !pending.overdue {
            reply(cx, pending.change.order, Reply::StoreRefused);
        }
        if pending.change.trigger == Trigger::Create {
            self.workers.remove(&id);
            return;
        }
        self.refresh(id);
        self.take_up_wanted(cx, id);
        self.resume_after_refused_change(cx, id);
        self.begin_next_replacement(cx);
    }

    /// While the refused change was pending, the worker may have lost its process.
    fn resume_after_refused_change(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        let Some(worker) = self.workers.get(&id) else { return };
        let stranded = worker.status == Status::Running
            && worker.pending.is_none()
            && matches!(worker.engine, Engine::Parked | Engine::Waiting)
            && !self.timers.has(Timer::Restart(id));
        if stranded {
            self.want_process(cx, id);
        }
        self.feed_places(cx, id);
    }

    fn take_up_wanted(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        if worker.pending.is_some() {
            return;
        }
        if let Some(trigger) = worker.wanted.take() {
            self.transition(cx, id, trigger, None);
        }
        // What was wanted may have come true by itself.
        let Some(worker) = self.workers.get(&id) else { return };
        if worker.status == Status::Running && (worker.retiring || worker.completing.is_some()) {
            self.complete_when_idle(cx, id);
        }
    }

    fn take_effect(
        &mut self,
        cx: &mut Cx<'_>,
        id: WorkerId,
        pending: Pending,
        order: Option<OrderId>,
    ) {
        let trigger = pending.change.trigger;
        let done = Reply::Done { worker: id, status: pending.change.to };
        if trigger != Trigger::Terminate {
            reply(cx, order, done.clone());
        }
        match trigger {
            Trigger::Create => self.after_create(cx, id),
            Trigger::Start => self.after_start(cx, id),
            Trigger::Pause => self.after_pause(cx, id, pending.freeze),
            Trigger::PauseExhausted => self.after_exhaustion(cx, id),
            Trigger::Resume => self.after_resume(cx, id),
            Trigger::Complete => self.after_complete(cx, id),
            Trigger::ErrorUnrecoverable => {
                self.stop(cx, id, StopReason::GaveUp, Step::Ask);
                self.bury_if_parked(cx, id);
            }
            Trigger::Terminate => {
                if let Some(worker) = self.workers.get_mut(&id)
                    && worker.process().is_some()
                {
                    worker.terminating = order;
                    return self.after_terminate(cx, id);
                }
                reply(cx, order, done);
                self.after_terminate(cx, id);
            }
        }
    }

    fn after_create(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        if !self.workers[&id].dedicated && self.stage == Stage::Open {
            self.transition(cx, id, Trigger::Start, None);
        }
    }

    fn after_start(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        self.want_process(cx, id);
        let worker = self.workers.get_mut(&id).expect("it just started");
        if worker.dedicated && self.stage == Stage::Open {
            worker.proving = true;
            let by = cx.now.after(self.settings.supervisor_timeout);
            self.timers.set(Timer::Supervise(id), by);
        }
    }

    fn after_pause(&mut self, cx: &mut Cx<'_>, id: WorkerId, freeze: bool) {
        self.withdraw_prefetched(cx, id);
        self.timers.clear(Timer::Restart(id));
        let worker = self.workers.get_mut(&id).expect("it just paused");
        let process_id = worker.process_id();
        match &mut worker.engine {
            Engine::Waiting | Engine::Queued => worker.engine = Engine::Parked,
            Engine::Live(process) if freeze && process.serving() => {
                process.frozen = true;
                cx.push(Command::Freeze { process: process_id });
            }
            Engine::Live(_) | Engine::Parked => {}
        }
    }

    fn after_exhaustion(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        let worker = self.workers.get_mut(&id).expect("it just paused");
        worker.paused_by_system = true;
        worker.crashes = worker.crashes.max(1) + 1;
        let delay = self.restarts.delay(worker.crashes, &self.settings);
        self.timers.set(Timer::Restart(id), cx.now.after(delay));
        cx.notify(Notice::RestartDelayed { worker: id, delay });
    }

    fn after_resume(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        self.timers.clear(Timer::Restart(id));
        let worker = self.workers.get_mut(&id).expect("it just resumed");
        worker.paused_by_system = false;
        let process_id = worker.process_id();
        match &mut worker.engine {
            Engine::Parked => self.want_process(cx, id),
            Engine::Live(process) if process.frozen => {
                process.frozen = false;
                process.heard = cx.now;
                process.asked_if_well = None;
                cx.push(Command::Thaw { process: process_id });
            }
            Engine::Live(_) | Engine::Waiting | Engine::Queued => {}
        }
        self.begin_next_replacement(cx);
        self.feed_places(cx, id);
    }

    fn after_complete(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        self.timers.clear(Timer::Supervise(id));
        let worker = self.workers.get_mut(&id).expect("it just completed");
        worker.completing = None;
        let reason = *worker.retirement.get_or_insert(Retirement::Ordered);
        self.stop(cx, id, StopReason::Retired(reason), Step::Ask);
        self.bury_if_parked(cx, id);
    }

    fn after_terminate(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        self.stop(cx, id, StopReason::Terminated, Step::Kill);
        self.bury_if_parked(cx, id);
    }

    fn bury_if_parked(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        if worker.process().is_none() {
            worker.engine = Engine::Parked;
            self.bury(cx, id);
        }
    }

    /// A terminal worker without a process leaves the pool; another one may take its place.
    pub(crate) fn bury(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        self.clear_process_timers(id);
        for timer in [Timer::Restart(id), Timer::Supervise(id)] {
            self.timers.clear(timer);
        }
        let waiting = self.take_own(id);
        let mut worker = self.workers.remove(&id).expect("only a known worker is buried");
        if let Some(order) = worker.completing.take() {
            let answered = worker.status == Status::Completed;
            if !answered {
                cx.push(Command::Reply { order, reply: Reply::TimedOut });
            }
        }
        self.close_key_of(&worker);
        self.unlink(cx, &mut worker);
        self.fail_reload_of(cx, &worker);
        self.buried.insert(id, worker);
        if self.buried.len() > BURIED_MAX {
            self.buried.pop_first();
        }
        self.send_elsewhere(cx, waiting);
        self.open_breaker_if_probe_died(cx, id);
        self.refuse_if_failed(cx);
        self.replenish(cx);
        self.refuse_circles(cx);
    }

    fn take_own(&mut self, id: WorkerId) -> Vec<RequestId> {
        let waiting = self.own.remove(&id).map_or_else(Vec::new, |queue| queue.iter().collect());
        for request in &waiting {
            self.left_queue(*request);
        }
        waiting
    }

    /// Those who waited for a worker that is gone: others may serve them, unless they named it.
    fn send_elsewhere(&mut self, cx: &mut Cx<'_>, waiting: Vec<RequestId>) {
        for request in waiting {
            match self.requests[&request].spec.target {
                Target::Any => self.requeue(cx, request),
                _ => self.turn_away(cx, request, Refusal::WorkerNotServing),
            }
        }
    }
}

/// The table, and one rule beyond it: a worker that is being started by the pool is not IDLE to
/// anyone else.
fn legal(worker: &Worker, trigger: Trigger) -> bool {
    match (worker.status, trigger) {
        (Status::Idle, Trigger::Resume) | (Status::Paused, Trigger::Start) => false,
        (from, trigger) => from.may_become(trigger.leads_to()),
    }
}

fn reply(cx: &mut Cx<'_>, order: Option<OrderId>, reply: Reply) {
    if let Some(order) = order {
        cx.push(Command::Reply { order, reply });
    }
}
