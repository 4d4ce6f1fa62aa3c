//! Planned replacement: a new worker first, and when it is ready the old one ends. One at a time,
//! so that the pool never has more than one worker too many. And the pool's size, kept.

use crate::command::{Command, Reply, StopReason};
use crate::id::{OrderId, ProcessId, WorkerId};
use crate::pool::{Cx, Pool, Stage};
use crate::process::{State, Step};
use crate::restart::Breaker;
use crate::status::Status;
use crate::worker::Worker;

impl Pool {
    /// Makes the workers that are missing.
    pub(crate) fn replenish(&mut self, cx: &mut Cx<'_>) {
        if self.stage != Stage::Open || self.restarts.breaker != Breaker::Closed {
            return;
        }
        for _ in 0..self.missing() {
            self.create_worker(cx, None, false);
        }
        self.begin_next_replacement(cx);
    }

    /// How many workers there are too few, those dedicated to somebody not counted.
    pub(crate) fn missing(&self) -> usize {
        let regular = self.workers.values().filter(|worker| !worker.dedicated).count();
        let wanted = self.settings.size as usize + usize::from(self.replacing.is_some());
        wanted.saturating_sub(regular)
    }

    pub(crate) fn on_recycle_ordered(&mut self, cx: &mut Cx<'_>, order: OrderId, id: WorkerId) {
        let reply = match self.workers.get(&id).or_else(|| self.buried.get(&id)) {
            None => Reply::NoSuchWorker,
            Some(worker) if worker.pending.is_some() => Reply::InTransition,
            Some(worker) if worker.status != Status::Running => {
                let (from, to) = (worker.status, Status::Completed);
                self.counters.illegal_orders += 1;
                Reply::Illegal { from, to, allowed: from.allowed() }
            }
            Some(worker) if worker.pending.is_some() || !worker.in_service() => Reply::InTransition,
            Some(worker) if worker.dedicated => {
                self.stop(cx, id, StopReason::Discarded, Step::Drain);
                Reply::Done { worker: id, status: Status::Running }
            }
            Some(_) => {
                self.plan_replacement(cx, id);
                Reply::Done { worker: id, status: Status::Running }
            }
        };
        cx.push(Command::Reply { order, reply });
    }

    pub(crate) fn on_retire_asked(&mut self, cx: &mut Cx<'_>, id: ProcessId) {
        let Some(worker) = self.current(cx, id) else { return };
        match worker.process().expect("checked by `current`").state {
            State::Serving => {}
            // On its way out already.
            State::Stopping { .. } => return,
            State::Starting | State::Exited { .. } => return self.stale(cx, id),
        }
        let dedicated = worker.dedicated;
        // Under an open breaker nobody takes its place soon: it serves on until then.
        if self.restarts.breaker == Breaker::Closed {
            let worker = self.workers.get_mut(&id.worker).expect("looked up above");
            worker.process_mut().expect("looked up above").leaving = true;
        }
        self.refresh(id.worker);
        self.withdraw_prefetched(cx, id.worker);
        if dedicated {
            self.stop(cx, id.worker, StopReason::Discarded, Step::Drain);
        } else {
            self.plan_replacement(cx, id.worker);
        }
    }

    fn plan_replacement(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        if self.replacing != Some(id) && !self.to_replace.contains(&id) {
            self.to_replace.push_back(id);
            self.begin_next_replacement(cx);
        }
    }

    pub(crate) fn begin_next_replacement(&mut self, cx: &mut Cx<'_>) {
        if self.stage != Stage::Open || self.restarts.breaker != Breaker::Closed {
            return;
        }
        if self.replacing.is_some() {
            return;
        }
        self.to_replace.retain(|id| self.workers.contains_key(id));
        // A paused one keeps its turn.
        let at = self.to_replace.iter().position(|id| self.workers[id].in_service());
        if let Some(old) = at.and_then(|at| self.to_replace.remove(at)) {
            self.replacing = Some(old);
            let new = self.create_worker(cx, None, false);
            self.workers.get_mut(&new).expect("created above").replaces = Some(old);
            self.workers.get_mut(&old).expect("looked up above").successor = Some(new);
        }
    }

    /// The successor is ready: the old one takes nothing new and ends when it is idle.
    pub(crate) fn begin_retirement_of_predecessor(&mut self, cx: &mut Cx<'_>, new: WorkerId) {
        let Some(old) = self.workers.get_mut(&new).and_then(|worker| worker.replaces.take()) else {
            return;
        };
        let Some(worker) = self.workers.get_mut(&old) else { return };
        worker.retiring = true;
        self.refresh(old);
        self.withdraw_prefetched(cx, old);
        if self.workers[&old].status == Status::Running {
            self.complete_when_idle(cx, old);
        }
    }

    /// A worker left the pool: nobody waits for it to replace or to be replaced any more.
    pub(crate) fn unlink(&mut self, cx: &mut Cx<'_>, gone: &mut Worker) {
        if self.replacing == Some(gone.id) {
            self.replacing = None;
            let successor = gone.successor.take().and_then(|id| self.workers.get_mut(&id));
            if let Some(successor) = successor {
                successor.replaces = None;
            }
        }
        if let Some(old) = gone.replaces.take()
            && self.replacing == Some(old)
        {
            self.replacing = None;
            self.keep_after_all(old);
        }
        self.begin_next_replacement(cx);
    }

    /// Its successor came to nothing: better a tired worker than none.
    fn keep_after_all(&mut self, old: WorkerId) {
        let Some(worker) = self.workers.get_mut(&old) else { return };
        worker.successor = None;
        if let Some(process) = worker.process_mut() {
            process.leaving = false;
        }
        self.refresh(old);
    }

    /// No successors for a while: those who asked to go and have none yet serve on.
    pub(crate) fn keep_those_who_would_leave(&mut self) {
        let waiting: Vec<WorkerId> = self.to_replace.iter().copied().collect();
        for id in waiting {
            self.keep_after_all(id);
        }
    }

    pub(crate) fn open_breaker_if_probe_died(&mut self, cx: &mut Cx<'_>, gone: WorkerId) {
        let probing = self.restarts.breaker == Breaker::Probing { worker: gone };
        if probing && self.stage == Stage::Open {
            self.open_breaker(cx);
        }
    }
}
