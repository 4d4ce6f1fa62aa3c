//! After an unplanned end: again at once, later, or not at all.

use crate::command::{Notice, Refusal};
use crate::id::{RequestId, WorkerId};
use crate::pool::{Cx, Pool, Stage};
use crate::restart::Breaker;
use crate::status::{Status, Trigger};
use crate::timers::Timer;
use crate::worker::Engine;

impl Pool {
    pub(crate) fn recover(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        let spent = self.restarts.spend(cx.now, &self.settings);
        let worker = self.workers.get_mut(&id).expect("it just lost its process");
        worker.crashes += 1;
        let crashes = worker.crashes;
        match self.restarts.breaker {
            Breaker::Closed if !spent => {
                let delay = self.restarts.delay(crashes, &self.settings);
                if delay.is_zero() {
                    return self.want_process(cx, id);
                }
                self.workers.get_mut(&id).expect("looked up above").engine = Engine::Waiting;
                self.timers.set(Timer::Restart(id), cx.now.after(delay));
                cx.notify(Notice::RestartDelayed { worker: id, delay });
            }
            Breaker::Closed => self.open_breaker(cx),
            Breaker::Probing { worker } if worker == id => self.open_breaker(cx),
            Breaker::Open { .. } | Breaker::Probing { .. } => self.give_up(cx, id),
        }
    }

    /// The budget is spent: what has no process fails, what lives serves on.
    pub(crate) fn open_breaker(&mut self, cx: &mut Cx<'_>) {
        let until = cx.now.after(self.settings.restart_cooldown);
        self.restarts.breaker = Breaker::Open { until };
        self.timers.set(Timer::Breaker, until);
        cx.notify(Notice::BreakerOpened { until });
        let without: Vec<WorkerId> = self
            .workers
            .values()
            .filter(|w| w.status == Status::Running && w.process().is_none())
            .map(|w| w.id)
            .collect();
        for id in without {
            self.give_up(cx, id);
        }
        self.keep_those_who_would_leave();
        self.refuse_if_failed(cx);
    }

    fn give_up(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        self.timers.clear(Timer::Restart(id));
        let worker = self.workers.get_mut(&id).expect("only a known worker fails");
        worker.engine = Engine::Parked;
        self.transition(cx, id, Trigger::ErrorUnrecoverable, None);
        self.refuse_if_failed(cx);
    }

    /// A failed pool answers at once, also those who wait already.
    pub(crate) fn refuse_if_failed(&mut self, cx: &mut Cx<'_>) {
        if !self.failed() {
            return;
        }
        let waiting: Vec<RequestId> = self.queue.iter().chain(self.keys.iter()).collect();
        for request in waiting {
            self.unqueue(request);
            self.turn_away(cx, request, Refusal::PoolFailed);
        }
        let leases: Vec<_> = self.waiting_leases.iter().copied().collect();
        for lease in leases {
            self.refuse_lease(cx, lease, Refusal::PoolFailed);
        }
    }

    pub(crate) fn on_cooldown_over(&mut self, cx: &mut Cx<'_>) {
        if self.stage != Stage::Open || !matches!(self.restarts.breaker, Breaker::Open { .. }) {
            return;
        }
        // Nobody is missing, so there is nobody to try it with.
        if self.missing() == 0 {
            return self.close_breaker(cx);
        }
        let worker = self.create_worker(cx, None, false);
        self.restarts.breaker = Breaker::Probing { worker };
    }

    pub(crate) fn close_breaker_after_probe(&mut self, cx: &mut Cx<'_>, ready: WorkerId) {
        if self.restarts.breaker == (Breaker::Probing { worker: ready }) {
            self.close_breaker(cx);
        }
    }

    pub(crate) fn close_breaker(&mut self, cx: &mut Cx<'_>) {
        self.restarts.breaker = Breaker::Closed;
        self.restarts.forget();
        cx.notify(Notice::BreakerClosed);
        self.replenish(cx);
    }

    /// A backoff is over, or a pause for want of resources.
    pub(crate) fn on_restart_due(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        let Some(worker) = self.workers.get(&id) else { return };
        match (worker.status, &worker.engine) {
            (Status::Running, Engine::Waiting) => self.want_process(cx, id),
            // The breaker holds back whoever has no process, for whatever reason.
            (Status::Paused, Engine::Parked)
                if worker.paused_by_system && self.restarts.breaker != Breaker::Closed =>
            {
                let later = cx.now.after(self.settings.restart_cooldown);
                self.timers.set(Timer::Restart(id), later);
            }
            (Status::Paused, Engine::Parked) if worker.paused_by_system => {
                self.transition(cx, id, Trigger::Resume, None);
            }
            _ => {}
        }
    }
}
