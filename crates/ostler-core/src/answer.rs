//! A worker has let go of a request: who is answered, who is tried again, what the place is for.

use std::time::Duration;

use crate::command::{Command, LossReason, Notice, Outcome, PhaseReason, StopReason};
use crate::event::{Answer, Exit};
use crate::id::{ProcessId, RequestId, WorkerId};
use crate::pool::{Cx, Pool, Stage};
use crate::process::{Held, Hold, State, Step};
use crate::request::{Past, Place};
use crate::time::Time;

impl Pool {
    pub(crate) fn on_answered(
        &mut self,
        cx: &mut Cx<'_>,
        process: ProcessId,
        (request, attempt): (RequestId, u32),
        answer: Answer,
        streamed: bool,
    ) {
        let Some(worker) = self.current(cx, process) else { return };
        let live = worker.process_mut().expect("checked by `current`");
        let Some(position) = live.position(request, attempt) else {
            return self.stale(cx, process);
        };
        let held = live.held.remove(position);
        let ran_for = cx.now.since(held.sent.max(live.last_answer));
        live.last_answer = cx.now;
        live.heard = cx.now;
        live.pinged = None;
        live.unresponsive = false;
        // What could not be written once will not be written again at once.
        live.mute = answer == Answer::NotSent && held.hold == Hold::Live;
        let was_silent = std::mem::take(&mut live.silent);
        let stopping = live.stopping();
        if live.may_have_started(position)
            && let Some(request) = promote(live, cx.now)
        {
            cx.push(Command::Begin { request, process });
        }
        worker.last_used = cx.now;
        if matches!(answer, Answer::Completed | Answer::Failed { .. }) {
            worker.answered += 1;
            worker.crashes = 0;
            self.note_service(ran_for);
        }
        if let Some(session) = held.bond {
            self.bonds.finished(session, process, cx.now);
        }
        self.vacate_place(cx, &held);
        self.refresh(process.worker);
        let reason = if was_silent { PhaseReason::Heard } else { PhaseReason::Freed };
        self.show(cx, process.worker, reason);
        self.conclude(cx, held, answer, streamed, stopping);
        self.count_request(cx, process.worker);
        self.after_release(cx, process.worker);
    }

    fn conclude(
        &mut self,
        cx: &mut Cx<'_>,
        held: Held,
        answer: Answer,
        streamed: bool,
        stopping: Option<StopReason>,
    ) {
        let id = held.request;
        if let (Answer::Cancelled { started }, Some(reason)) = (answer, stopping) {
            // Nobody but the end of its process asked for that.
            let why = (Exit::Unknown, LossReason::Stopped(reason));
            return self.lose(cx, &held, started, streamed, why);
        }
        match (held.hold, answer) {
            (Hold::Abandoned { .. }, _) => {}
            (Hold::Withdrawing, Answer::Cancelled { started: false } | Answer::NotSent) => {
                self.counters.moved += 1;
                self.requeue(cx, id);
            }
            (_, Answer::NotSent) => self.requeue(cx, id),
            (_, Answer::Failed { retryable: true }) => self.retry_or_deliver(cx, id, streamed),
            (_, Answer::Completed | Answer::Failed { .. } | Answer::Cancelled { .. }) => {
                self.resolve(cx, id, Outcome::Answered);
            }
        }
    }

    fn retry_or_deliver(&mut self, cx: &mut Cx<'_>, id: RequestId, streamed: bool) {
        let request = self.requests.get_mut(&id).expect("a live hold has its request");
        request.tries += 1;
        request.past = Some(Past::Failed);
        let doublings = (request.tries - 1).min(16);
        let at = cx.now.after(self.settings.retry_delay * (1 << doublings));
        let again = self.stage == Stage::Open
            && request.spec.idempotent
            && !streamed
            && request.tries < self.settings.attempts_max
            && at < request.spec.deadline;
        if !again {
            return self.resolve(cx, id, Outcome::Answered);
        }
        request.place = Place::Retrying;
        self.counters.retried += 1;
        cx.notify(Notice::Retried { request: id, lost: false });
        self.set_request_timer(id, Some(at));
    }

    /// What follows from a worker having one request less.
    pub(crate) fn after_release(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        let Some(worker) = self.workers.get(&id) else { return };
        let Some(process) = worker.process() else { return };
        let drained = !process.has_live_work();
        if drained && matches!(process.state, State::Stopping { step: Step::Drain, .. }) {
            return self.next_step(cx, id);
        }
        if worker.dedicated {
            self.renew_when_idle(cx, id);
        }
        let worker = &self.workers[&id];
        if worker.retiring || worker.completing.is_some() {
            self.evacuate(cx, id);
            self.complete_when_idle(cx, id);
        }
    }

    fn note_service(&mut self, took: Duration) {
        self.service = (self.service * 7 + took) / 8;
        self.service_known = true;
    }

    pub(crate) fn send_cancel(cx: &mut Cx<'_>, process: ProcessId, held: &Held, withdraw: bool) {
        let (request, attempt) = (held.request, held.attempt);
        cx.push(Command::Cancel { request, attempt, process, withdraw });
    }
}

/// The one that moved up may start now; if nobody waits for it any more, its grace begins now.
fn promote(process: &mut crate::process::Process, now: Time) -> Option<RequestId> {
    let last_started = (process.capacity as usize).saturating_sub(1);
    let moved_up = process.held.get_mut(last_started)?;
    match &mut moved_up.hold {
        Hold::Abandoned { since } => {
            *since = now;
            None
        }
        Hold::Live | Hold::Withdrawing => Some(moved_up.request),
    }
}
