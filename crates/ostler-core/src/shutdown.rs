//! The end of a pool: nobody new, those inside finish, then the ladder for every process.

use crate::command::{Command, LeaseEnd, Refusal, Reply, StopReason};
use crate::id::{LeaseId, RequestId, WorkerId};
use crate::lease::Holding;
use crate::pool::{Cx, Pool, Stage};
use crate::process::{State, Step};
use crate::request::Place;
use crate::timers::Timer;
use crate::worker::Engine;

impl Pool {
    pub(crate) fn on_shutdown_requested(&mut self, cx: &mut Cx<'_>, now: bool) {
        if self.stage == Stage::Stopped {
            return;
        }
        if self.stage != Stage::Draining {
            self.stage = Stage::Draining;
            self.turn_away_everyone(cx);
        }
        let workers: Vec<WorkerId> = self.workers.keys().copied().collect();
        for id in workers {
            self.dismiss(cx, id, now);
        }
        self.note_if_stopped(cx);
    }

    fn turn_away_everyone(&mut self, cx: &mut Cx<'_>) {
        self.timers.clear(Timer::Breaker);
        for timer in [Timer::Launch, Timer::Grow, Timer::Evict, Timer::Sweep] {
            self.timers.clear(timer);
        }
        self.give_up_reload(cx);
        let leases: Vec<LeaseId> = self.leases.keys().copied().collect();
        for id in leases {
            match self.leases[&id].state {
                Holding::Waiting { .. } => self.refuse_lease(cx, id, Refusal::ShuttingDown),
                Holding::Granted { .. } => self.end_lease(cx, id, LeaseEnd::ShuttingDown),
            }
        }
        let mut waiting: Vec<(RequestId, Place)> = self
            .requests
            .iter()
            .filter(|(_, request)| !matches!(request.place, Place::Held(_)))
            .map(|(id, request)| (*id, request.place))
            .collect();
        waiting.sort_by_key(|(id, _)| *id);
        for (id, place) in waiting {
            if matches!(place, Place::Queued(_)) {
                self.unqueue(id);
            }
            self.turn_away(cx, id, Refusal::ShuttingDown);
        }
    }

    fn dismiss(&mut self, cx: &mut Cx<'_>, id: WorkerId, now: bool) {
        let worker = self.workers.get_mut(&id).expect("listed above");
        let process_id = worker.process_id();
        if let Some(order) = worker.completing.take()
            && worker.pending.is_none()
        {
            cx.push(Command::Reply { order, reply: Reply::ShuttingDown });
        }
        let worker = self.workers.get_mut(&id).expect("listed above");
        worker.proving = false;
        self.timers.clear(Timer::Supervise(id));
        self.timers.clear(Timer::Restart(id));
        let process = match &mut worker.engine {
            Engine::Waiting | Engine::Queued | Engine::Parked => {
                worker.engine = Engine::Parked;
                return;
            }
            Engine::Live(process) => process,
        };
        if std::mem::take(&mut process.frozen) {
            cx.push(Command::Thaw { process: process_id });
        }
        let step = match process.state {
            _ if now => Step::Kill,
            State::Starting => Step::Term,
            State::Serving => Step::Drain,
            State::Stopping { .. } | State::Exited { .. } => return,
        };
        self.stop(cx, id, StopReason::Shutdown, step);
    }

    pub(crate) fn note_if_stopped(&mut self, cx: &mut Cx<'_>) {
        let gone = self.workers.values().all(|worker| worker.process().is_none());
        if self.stage == Stage::Draining && gone {
            self.stage = Stage::Stopped;
            cx.push(Command::Stopped);
        }
    }
}
