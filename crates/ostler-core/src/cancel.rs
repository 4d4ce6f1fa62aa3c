//! Requests that end before their worker is done: cancelled, out of time, or called back to run
//! elsewhere. The caller is answered at once; the worker is asked, and made to, afterwards.

use crate::command::{Outcome, Refusal, Started, StopReason, Waiting};
use crate::id::{ProcessId, RequestId, WorkerId};
use crate::pool::{Cx, Pool};
use crate::process::{Hold, Step};
use crate::request::Place;
use crate::timers::Timer;

impl Pool {
    pub(crate) fn on_cancel_requested(&mut self, cx: &mut Cx<'_>, id: RequestId) {
        // Without a request the outcome was faster: a normal race.
        let Some(request) = self.requests.get(&id) else { return };
        match request.place {
            Place::Queued(_) => {
                let started = if request.tries > 0 { Started::Yes } else { Started::No };
                self.unqueue(id);
                self.resolve(cx, id, Outcome::Cancelled { started });
            }
            Place::Retrying => self.resolve(cx, id, Outcome::Cancelled { started: Started::Yes }),
            Place::Held(process) => {
                let started = self.started(process, id);
                self.abandon(cx, process, id);
                self.resolve(cx, id, Outcome::Cancelled { started });
            }
        }
    }

    pub(crate) fn on_request_timer(&mut self, cx: &mut Cx<'_>, id: RequestId) {
        let request = self.requests.get_mut(&id).expect("its timer goes with it");
        request.timer = None;
        let (place, tries) = (request.place, request.tries);
        let expired = cx.now >= request.spec.deadline;
        let ran = if tries > 0 { Started::Yes } else { Started::No };
        match place {
            Place::Queued(_) => {
                self.unqueue(id);
                if expired || tries > 0 {
                    let phase = Waiting::Queue;
                    self.resolve(cx, id, Outcome::TimedOut { phase, started: ran });
                } else {
                    self.refuse(cx, id, Refusal::QueueTimeout);
                }
            }
            Place::Retrying if expired => {
                let phase = Waiting::Retry;
                self.resolve(cx, id, Outcome::TimedOut { phase, started: Started::Yes });
            }
            Place::Retrying => self.requeue(cx, id),
            Place::Held(process) if expired => {
                let (phase, started) = (Waiting::Worker, self.started(process, id));
                self.abandon(cx, process, id);
                self.resolve(cx, id, Outcome::TimedOut { phase, started });
            }
            // It was taken from the queue in time; from here on only its deadline counts.
            Place::Held(_) => {
                let deadline = self.requests[&id].spec.deadline;
                self.set_request_timer(id, Some(deadline));
            }
        }
    }

    /// What is known of a held request's beginning. One behind another may begin at any moment.
    fn started(&self, process: ProcessId, id: RequestId) -> Started {
        let request = &self.requests[&id];
        let live = self.workers.get(&process.worker).and_then(|worker| worker.process());
        let live = live.expect("a held request has a live process");
        let position = live.position(id, request.attempt).expect("it is held there");
        if request.tries > 0 || live.may_have_started(position) {
            Started::Yes
        } else {
            Started::Unknown
        }
    }

    /// The caller no longer waits: ask the worker to let go, and give it the grace to do so.
    fn abandon(&mut self, cx: &mut Cx<'_>, process: ProcessId, id: RequestId) {
        let attempt = self.requests[&id].attempt;
        let worker = self.workers.get_mut(&process.worker).expect("a held request has its worker");
        let live = worker.process_mut().expect("a held request has a live process");
        let position = live.position(id, attempt).expect("it is held there");
        let held = &mut live.held[position];
        held.hold = Hold::Abandoned { since: cx.now };
        Self::send_cancel(cx, process, held, false);
        let grace_over = cx.now.after(self.settings.cancel_grace);
        self.timers.set_earlier(Timer::Grace(process.worker), grace_over);
        self.after_release(cx, process.worker);
    }

    pub(crate) fn on_grace_over(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        let Some(process) = self.workers.get(&id).and_then(|worker| worker.process()) else {
            return;
        };
        if !process.serving() {
            return;
        }
        let grace = self.settings.cancel_grace;
        let mut next = None;
        // One that stands behind others holds nobody up: its grace begins when it moves up.
        for held in process.held.iter().take(process.capacity as usize) {
            let Hold::Abandoned { since } = held.hold else { continue };
            let over = since.after(grace);
            if over <= cx.now {
                return self.stop(cx, id, StopReason::ForcedCancel, Step::Drain);
            }
            next = Some(next.map_or(over, |next: crate::time::Time| next.min(over)));
        }
        let behind = process.held.iter().skip(process.capacity as usize);
        let waits = behind.clone().any(|held| matches!(held.hold, Hold::Abandoned { .. }));
        if let Some(at) = next.or_else(|| waits.then(|| cx.now.after(grace))) {
            self.timers.set(Timer::Grace(id), at);
        }
    }

    /// Calls back what a worker has not started, so that others can have it.
    pub(crate) fn withdraw_prefetched(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        let process_id = worker.process_id();
        let Some(process) = worker.process_mut() else { return };
        let capacity = process.capacity as usize;
        for held in process.held.iter_mut().skip(capacity) {
            if held.hold == Hold::Live {
                held.hold = Hold::Withdrawing;
                Self::send_cancel(cx, process_id, held, true);
            }
        }
    }

    pub(crate) fn on_patience_over(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        let Some(process) = self.workers.get(&id).and_then(|worker| worker.process()) else {
            return;
        };
        let patience = self.settings.prefetch_patience;
        let behind = process.held.iter().skip(process.capacity as usize);
        let mut waiting = behind.filter(|held| held.hold == Hold::Live).peekable();
        let Some(first) = waiting.peek() else { return };
        if self.roster.best().is_some() && cx.now.since(first.sent) >= patience {
            self.withdraw_prefetched(cx, id);
        }
        self.timers.set(Timer::Patience(id), cx.now.after(patience));
    }
}
