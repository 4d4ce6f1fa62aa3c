//! A process from spawn to clearance: batches of starts, the stop ladder, the exit.

use std::time::Duration;

use crate::command::{
    Command, LossReason, Notice, Outcome, Phase, PhaseReason, Reply, Started, StopReason,
};
use crate::event::{Exit, Ready, SpawnFailure};
use crate::id::{ProcessId, RequestId, WorkerId};
use crate::pool::{Cx, Pool, Stage};
use crate::process::{Held, Hold, Process, State, Step};
use crate::request::Past;
use crate::settings::CapacityFrom;
use crate::status::{Status, Trigger};
use crate::timers::Timer;
use crate::worker::{Engine, Worker};

/// Far more than one process can work on.
const CAPACITY_MAX: u32 = 1 << 16;

impl Pool {
    /// The worker is to have its next incarnation as soon as its batch comes.
    pub(crate) fn want_process(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        if self.stage != Stage::Open {
            return;
        }
        let worker = self.workers.get_mut(&id).expect("only a known worker is started");
        debug_assert!(worker.process().is_none(), "one process at a time");
        worker.engine = Engine::Queued;
        self.start_queue.push_back(id);
        self.launch(cx);
    }

    pub(crate) fn launch(&mut self, cx: &mut Cx<'_>) {
        while cx.now >= self.next_launch {
            let next = self.start_queue.iter().position(|id| self.may_start(*id));
            let Some(id) = next.and_then(|at| self.start_queue.remove(at)) else { return };
            let Some(worker) = self.workers.get_mut(&id) else { continue };
            if !matches!(worker.engine, Engine::Queued) {
                continue;
            }
            if !worker.in_service() {
                worker.engine = Engine::Parked;
                continue;
            }
            let edition = self.edition_of(id);
            let worker = self.workers.get_mut(&id).expect("looked up above");
            worker.generation += 1;
            let incarnation = (worker.generation, edition);
            let process = Process::starting(incarnation, self.settings.capacity, cx.now);
            worker.engine = Engine::Live(process);
            let process = worker.process_id();
            self.call_off_replacement(id);
            self.starting += 1;
            self.timers.set(Timer::Process(id), cx.now.after(self.start_timeout_of(id)));
            cx.push(Command::Spawn { process, edition });
            cx.notify(Notice::PhaseChanged {
                process,
                from: None,
                to: Phase::Starting,
                reason: PhaseReason::Spawned,
                after: Duration::ZERO,
            });
            self.pace_batches(cx);
        }
    }

    /// Successors start beside the batch, because there are few of them and somebody else serves
    /// meanwhile: one that hangs must not keep those waiting who have nobody.
    fn may_start(&self, id: WorkerId) -> bool {
        let stands_by = |worker: &Worker| worker.replaces.is_some() || self.is_trial(worker.id);
        if self.workers.get(&id).is_none_or(stands_by) {
            return true;
        }
        let beside = self.replacing.iter().filter_map(|old| self.workers.get(old)?.successor);
        // A trial without a predecessor is not among them.
        let alone = self.trial().filter(|id| self.workers[id].replaces.is_none());
        let beside = beside.chain(alone).filter_map(|id| self.workers.get(&id)?.process());
        let beside = beside.filter(|process| process.state == State::Starting).count() as u32;
        self.starting.saturating_sub(beside) < self.settings.start_batch
    }

    fn pace_batches(&mut self, cx: &mut Cx<'_>) {
        if self.settings.start_batch_delay == Duration::ZERO {
            return;
        }
        self.launched_in_batch += 1;
        if self.launched_in_batch == self.settings.start_batch {
            self.launched_in_batch = 0;
            self.next_launch = cx.now.after(self.settings.start_batch_delay);
            self.timers.set(Timer::Launch, self.next_launch);
        }
    }

    pub(crate) fn on_spawn_failed(&mut self, cx: &mut Cx<'_>, id: ProcessId, cause: SpawnFailure) {
        let Some(worker) = self.current(cx, id) else { return };
        let process = worker.process().expect("checked by `current`");
        let reason = match process.state {
            State::Starting => None,
            State::Stopping { reason, .. } => Some(reason),
            State::Serving | State::Exited { .. } => return self.stale(cx, id),
        };
        if process.was_ready {
            return self.stale(cx, id);
        }
        let (from, since) = process.shown;
        worker.engine = Engine::Parked;
        self.starting -= 1;
        self.timers.clear(Timer::Process(id.worker));
        cx.notify(Notice::PhaseChanged {
            process: id,
            from: Some(from),
            to: Phase::Dead,
            reason: PhaseReason::SpawnFailed,
            after: cx.now.since(since),
        });
        self.refresh(id.worker);
        let exhausted = cause == SpawnFailure::Exhausted && reason.is_none();
        let trial = self.is_trial(id.worker);
        let in_service = self.workers[&id.worker].in_service();
        if exhausted && self.stage == Stage::Open && in_service && !trial {
            self.transition(cx, id.worker, Trigger::PauseExhausted, None);
        } else {
            // What the system lacks is not held against the pool.
            let unplanned = reason.is_none_or(|reason| !reason.planned());
            self.after_end(cx, id.worker, unplanned && !exhausted);
        }
        self.launch(cx);
    }

    pub(crate) fn on_process_ready(&mut self, cx: &mut Cx<'_>, id: ProcessId, ready: Ready) {
        let Some(worker) = self.current(cx, id) else { return };
        if worker.process().expect("checked by `current`").state != State::Starting {
            return self.stale(cx, id);
        }
        if self.is_trial(id.worker) {
            self.adopt_settings();
        }
        let (capacity, prefetch) = (self.capacity_of(ready), self.settings.prefetch);
        let worker = self.workers.get_mut(&id.worker).expect("looked up above");
        let process = worker.process_mut().expect("checked by `current`");
        process.state = State::Serving;
        process.capacity = capacity;
        process.prefetch = if ready.gives_back { prefetch } else { 0 };
        process.was_ready = true;
        process.heard = cx.now;
        process.heartbeat = ready.heartbeat;
        // Whoever answers pings knows the rest too.
        process.answers_checks = ready.heartbeat;
        process.saves_sessions = ready.saves_sessions;
        worker.ready_since = cx.now;
        worker.last_used = cx.now;
        self.starting -= 1;
        self.timers.clear(Timer::Process(id.worker));
        self.show(cx, id.worker, PhaseReason::Ready);
        self.begin_heartbeat(cx, id.worker);
        self.begin_checkups(cx, id.worker);
        self.begin_ttl(cx, id.worker);
        self.begin_idle_watch(cx, id.worker);
        self.refresh(id.worker);
        self.note_readiness(cx, id.worker);
        self.launch(cx);
    }

    fn capacity_of(&self, ready: Ready) -> u32 {
        let (ours, theirs) = (self.settings.capacity, ready.capacity);
        let capacity = match self.settings.capacity_from {
            CapacityFrom::Pool => ours,
            CapacityFrom::Worker => theirs.unwrap_or(ours),
            CapacityFrom::Min => theirs.map_or(ours, |theirs| theirs.min(ours)),
        };
        // Sums of them must stay numbers, whatever a worker boasts of.
        capacity.clamp(1, CAPACITY_MAX)
    }

    fn note_readiness(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        let worker = self.workers.get_mut(&id).expect("it just became ready");
        if worker.proving {
            worker.proving = false;
            self.timers.clear(Timer::Supervise(id));
        }
        self.close_breaker_after_probe(cx, id);
        self.begin_retirement_of_predecessor(cx, id);
        self.adopt_if_trial(cx, id);
        self.note_who_serves(cx);
    }

    /// A pool that keeps nobody is ready as it is.
    pub(crate) fn note_who_serves(&mut self, cx: &mut Cx<'_>) {
        let (serving, min) = (self.serving_count(), self.settings.min as usize);
        if !self.was_ready && (serving > 0 || min == 0) {
            self.was_ready = true;
            cx.notify(Notice::FirstReady);
        }
        if !self.was_all_ready && serving >= min {
            self.was_all_ready = true;
            cx.notify(Notice::AllReady);
        }
    }

    /// Puts the process on a rung of the stop ladder. It only ever goes down.
    pub(crate) fn stop(&mut self, cx: &mut Cx<'_>, id: WorkerId, reason: StopReason, step: Step) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        let process_id = worker.process_id();
        let Some(process) = worker.process_mut() else { return };
        // One that is not ready does not listen yet.
        let step = if process.was_ready { step } else { step.max(Step::Term) };
        let reason = match process.state {
            State::Exited { .. } => return,
            State::Stopping { step: current, .. } if current >= step => return,
            State::Stopping { reason, .. } => reason,
            State::Starting | State::Serving => {
                cx.notify(Notice::Stopping { process: process_id, reason });
                reason
            }
        };
        process.state = State::Stopping { step, reason };
        self.refresh(id);
        self.show(cx, id, PhaseReason::Stopped(reason));
        self.enter_step(cx, id, step, reason);
    }

    fn enter_step(&mut self, cx: &mut Cx<'_>, id: WorkerId, step: Step, reason: StopReason) {
        let process_id = self.workers[&id].process_id();
        self.timers.clear(Timer::Process(id));
        let limit = match step {
            Step::Drain => return self.enter_drain(cx, id, reason),
            Step::Ask => {
                cx.push(Command::AskShutdown { process: process_id });
                self.settings.stop_grace
            }
            Step::Term => {
                cx.push(Command::Terminate { process: process_id });
                self.settings.stop_grace
            }
            // Still wait after the kill: dead is what was waited for.
            Step::Kill => return cx.push(Command::Kill { process: process_id }),
        };
        self.timers.set(Timer::Process(id), cx.now.after(limit));
    }

    fn enter_drain(&mut self, cx: &mut Cx<'_>, id: WorkerId, reason: StopReason) {
        self.withdraw_prefetched(cx, id);
        let process = self.workers[&id].process().expect("a stopping worker is live");
        if !process.has_live_work() {
            return self.next_step(cx, id);
        }
        let limit = match reason {
            StopReason::ForcedCancel => self.settings.cancel_grace,
            _ => self.settings.drain_timeout,
        };
        self.timers.set(Timer::Process(id), cx.now.after(limit));
    }

    pub(crate) fn next_step(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        let Some(process) = self.workers.get(&id).and_then(|worker| worker.process()) else {
            return;
        };
        let State::Stopping { step, reason } = process.state else { return };
        let next = match step {
            // Its main thread does not listen: asking is a waste of the grace.
            Step::Drain if reason == StopReason::ForcedCancel => Step::Term,
            Step::Drain => Step::Ask,
            Step::Ask => Step::Term,
            Step::Term | Step::Kill => Step::Kill,
        };
        self.stop(cx, id, reason, next);
    }

    pub(crate) fn on_process_timer(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        let process = self.workers.get(&id).and_then(|worker| worker.process());
        match process.map(|process| process.state) {
            Some(State::Starting) => self.stop(cx, id, StopReason::StartTimeout, Step::Kill),
            Some(State::Stopping { .. }) => self.next_step(cx, id),
            Some(State::Serving | State::Exited { .. }) | None => {
                unreachable!("its timer was cleared")
            }
        }
    }

    pub(crate) fn on_stream_closed(&mut self, cx: &mut Cx<'_>, id: ProcessId) {
        self.condemn(cx, id, StopReason::StreamClosed);
    }

    pub(crate) fn on_protocol_violated(&mut self, cx: &mut Cx<'_>, id: ProcessId) {
        self.condemn(cx, id, StopReason::ProtocolViolation);
    }

    /// It finishes what it works on, and the next incarnation comes as after a crash.
    pub(crate) fn on_process_tainted(&mut self, cx: &mut Cx<'_>, id: ProcessId) {
        let Some(worker) = self.current(cx, id) else { return };
        match worker.process().expect("checked by `current`").state {
            State::Starting | State::Serving => {
                self.stop(cx, id.worker, StopReason::Tainted, Step::Drain);
            }
            State::Stopping { .. } => {}
            State::Exited { .. } => self.stale(cx, id),
        }
    }

    /// Nothing can be expected of this process any more.
    fn condemn(&mut self, cx: &mut Cx<'_>, id: ProcessId, reason: StopReason) {
        let Some(worker) = self.current(cx, id) else { return };
        match worker.process().expect("checked by `current`").state {
            // One that was asked to go closes its stream on the way out.
            State::Stopping { step: Step::Ask | Step::Term, .. }
                if reason == StopReason::StreamClosed => {}
            State::Exited { .. } => self.stale(cx, id),
            _ => self.stop(cx, id.worker, reason, Step::Kill),
        }
    }

    pub(crate) fn on_process_exited(
        &mut self,
        cx: &mut Cx<'_>,
        id: ProcessId,
        exit: Exit,
        streamed: &[RequestId],
    ) {
        let Some(worker) = self.current(cx, id) else { return };
        let process = worker.process_mut().expect("checked by `current`");
        let (reason, was_starting) = match process.state {
            State::Exited { .. } => return self.stale(cx, id),
            State::Starting => (None, true),
            State::Serving => (None, false),
            State::Stopping { reason, .. } => (Some(reason), !process.was_ready),
        };
        process.state = State::Exited { exit, reason };
        let held = std::mem::take(&mut process.held);
        let leases = std::mem::take(&mut process.leases);
        process.frozen = false;
        let capacity = process.capacity as usize;
        worker.last_exit = Some(exit);
        if was_starting {
            self.starting -= 1;
        }
        self.clear_process_timers(id.worker);
        self.refresh(id.worker);
        self.show(cx, id.worker, PhaseReason::Exited);
        if reason.is_none_or(|reason| !reason.planned()) {
            cx.notify(Notice::Crashed { process: id, exit });
        }
        if reason.is_none() {
            self.blame(cx, id, &held[..held.len().min(capacity)], exit);
        }
        for lease in leases {
            self.lose_place(cx, lease, id.worker);
        }
        self.lose_bonds(cx, id);
        let why = reason.map_or(LossReason::Crashed, LossReason::Stopped);
        for (position, held) in held.iter().enumerate() {
            let seen = streamed.contains(&held.request);
            self.lose(cx, held, position < capacity, seen, (exit, why));
        }
    }

    /// Only what ran alone can be said to have been the cause.
    fn blame(&mut self, cx: &mut Cx<'_>, process: ProcessId, running: &[Held], exit: Exit) {
        let [alone] = running else { return };
        let period = self.settings.quarantine;
        if exit.own() && self.quarantine.blame(cx.now, alone.fingerprint, exit, period) {
            cx.notify(Notice::Quarantined { request: alone.request, process, exit });
        }
    }

    /// A request whose process ended before it answered.
    pub(crate) fn lose(
        &mut self,
        cx: &mut Cx<'_>,
        held: &Held,
        may_have_started: bool,
        streamed: bool,
        (exit, reason): (Exit, LossReason),
    ) {
        if matches!(held.hold, Hold::Abandoned { .. }) {
            return;
        }
        let id = held.request;
        if !may_have_started {
            self.counters.moved += 1;
            return self.requeue(cx, id);
        }
        let request = self.requests.get_mut(&id).expect("a live hold has its request");
        request.tries += 1;
        request.past = Some(Past::Lost { exit, reason });
        // A session that insists on its process is not to find another one behind its back.
        let insists = request.spec.bond.is_some_and(|bond| bond.affinity.strict());
        let again = request.spec.idempotent
            && !streamed
            && !insists
            && request.tries < self.settings.attempts_max
            && self.stage == Stage::Open;
        if again {
            self.requeue(cx, id);
            if self.requests.contains_key(&id) {
                self.counters.retried += 1;
                cx.notify(Notice::Retried { request: id, lost: true });
            }
        } else {
            self.resolve(cx, id, Outcome::Lost { exit, reason, started: Started::Unknown });
        }
    }

    pub(crate) fn on_process_cleared(&mut self, cx: &mut Cx<'_>, id: ProcessId) {
        let Some(worker) = self.current(cx, id) else { return };
        let State::Exited { reason, .. } = worker.process().expect("checked by `current`").state
        else {
            return self.stale(cx, id);
        };
        worker.engine = Engine::Parked;
        self.refresh(id.worker);
        self.after_end(cx, id.worker, reason.is_none_or(|reason| !reason.planned()));
        self.launch(cx);
    }

    /// The worker has no process any more: what becomes of it?
    fn after_end(&mut self, cx: &mut Cx<'_>, id: WorkerId, unplanned: bool) {
        let worker = self.workers.get_mut(&id).expect("its process just ended");
        if let Some(order) = worker.terminating.take() {
            let reply = Reply::Done { worker: id, status: worker.status };
            cx.push(Command::Reply { order, reply });
        }
        let terminal = worker.status.terminal();
        if self.is_trial(id) && self.stage == Stage::Open && !terminal {
            return self.transition(cx, id, Trigger::Terminate, None);
        }
        // Nothing follows what ends in a shutdown.
        match (self.stage, unplanned) {
            (Stage::Open, true) => self.counters.restarts_unplanned += 1,
            (Stage::Open, false) => self.counters.restarts_planned += 1,
            _ => {}
        }
        let worker = &self.workers[&id];
        match worker.status {
            _ if self.stage != Stage::Open => {}
            status if status.terminal() => return self.bury(cx, id),
            Status::Running if worker.retiring || worker.completing.is_some() => {
                self.complete_when_idle(cx, id);
            }
            Status::Running if unplanned => self.recover(cx, id),
            Status::Running => self.want_process(cx, id),
            // A paused worker gets its process when it is resumed.
            _ => {}
        }
        self.note_if_stopped(cx);
    }

    pub(crate) fn clear_process_timers(&mut self, id: WorkerId) {
        for timer in [
            Timer::Process(id),
            Timer::Grace(id),
            Timer::Heartbeat(id),
            Timer::Checkup(id),
            Timer::Patience(id),
            Timer::Save(id),
            Timer::Idle(id),
            Timer::Ttl(id),
        ] {
            self.timers.clear(timer);
        }
    }
}
