//! Planned replacement: a new worker first, and when it is ready the old one ends. A few at a time
//! (`retire_max`), so that the pool never has more than that many workers too many. And the
//! pool's size, kept.

use crate::command::{Command, Notice, Reply, Retirement};
use crate::id::{OrderId, ProcessId, WorkerId};
use crate::pool::{Cx, Pool, Stage};
use crate::process::State;
use crate::restart::Breaker;
use crate::status::Status;
use crate::worker::Worker;

impl Pool {
    /// Makes the workers that are missing.
    pub(crate) fn replenish(&mut self, cx: &mut Cx<'_>) {
        if self.stage != Stage::Open || self.restarts.breaker != Breaker::Closed {
            return;
        }
        self.shed(cx);
        for _ in 0..self.missing() {
            self.create_worker(cx, None, false);
        }
        self.begin_next_replacement(cx);
    }

    pub(crate) fn on_recycle_ordered(&mut self, cx: &mut Cx<'_>, order: OrderId, id: WorkerId) {
        let reply = match self.workers.get(&id).or_else(|| self.buried.get(&id)) {
            None => Reply::NoSuchWorker,
            Some(worker) if worker.pending.is_some() || self.stands_by(worker) => {
                Reply::InTransition
            }
            Some(worker) if worker.status != Status::Running => {
                let (from, to) = (worker.status, Status::Completed);
                self.counters.illegal_orders += 1;
                Reply::Illegal { from, to, allowed: from.allowed() }
            }
            Some(worker) if worker.pending.is_some() || !worker.in_service() => Reply::InTransition,
            Some(_) => {
                self.retire(cx, id, Retirement::Ordered);
                Reply::Done { worker: id, status: Status::Running }
            }
        };
        cx.push(Command::Reply { order, reply });
    }

    /// It is to take over from another one, or to show that its kind can: that comes first.
    fn stands_by(&self, worker: &Worker) -> bool {
        worker.replaces.is_some() || self.is_trial(worker.id)
    }

    pub(crate) fn on_retire_asked(&mut self, cx: &mut Cx<'_>, id: ProcessId) {
        let Some(worker) = self.current(cx, id) else { return };
        match worker.process().expect("checked by `current`").state {
            State::Serving => {}
            // On its way out already.
            State::Stopping { .. } => return,
            State::Starting | State::Exited { .. } => return self.stale(cx, id),
        }
        // Under an open breaker nobody takes its place soon: it serves on until then.
        if self.restarts.breaker == Breaker::Closed {
            let worker = self.workers.get_mut(&id.worker).expect("looked up above");
            worker.process_mut().expect("looked up above").leaving = true;
        }
        self.refresh(id.worker);
        self.withdraw_prefetched(cx, id.worker);
        self.retire(cx, id.worker, Retirement::Asked);
    }

    pub(crate) fn plan_replacement(&mut self, cx: &mut Cx<'_>, id: WorkerId, reason: Retirement) {
        // The trial of a reload is judged first.
        let judged = !self.is_trial(id);
        let worker = self.workers.get_mut(&id).expect("only a known worker is replaced");
        if worker.retirement.is_some() || worker.retiring || !judged {
            return;
        }
        worker.retirement = Some(reason);
        self.to_replace.push_back(id);
        cx.notify(Notice::Retiring { worker: id, reason });
        self.begin_next_replacement(cx);
    }

    pub(crate) fn begin_next_replacement(&mut self, cx: &mut Cx<'_>) {
        self.begin_trial(cx);
        if self.stage != Stage::Open || self.restarts.breaker != Breaker::Closed {
            return;
        }
        while self.replacing.len() < self.settings.retire_max.max(1) as usize {
            let Some(old) = self.next_to_replace() else { return };
            let reason = self.workers[&old].retirement.unwrap_or(Retirement::Ordered);
            if self.one_too_many() {
                // Nobody need come in its place.
                self.depart(cx, old, reason);
                continue;
            }
            let new = self.create_worker(cx, None, false);
            self.pair(cx, old, new, reason);
        }
    }

    fn next_to_replace(&mut self) -> Option<WorkerId> {
        self.to_replace.retain(|id| self.workers.contains_key(id));
        // A paused one keeps its turn, and one that is itself to take over does that first.
        let may = |id: &WorkerId| {
            let worker = &self.workers[id];
            worker.in_service() && worker.replaces.is_none()
        };
        let at = self.to_replace.iter().position(may)?;
        self.to_replace.remove(at)
    }

    fn one_too_many(&self) -> bool {
        let keyed = self.settings.keyed.is_some();
        let allowed = if keyed { self.settings.max } else { self.target };
        self.staying_count() > allowed as usize
    }

    /// `new` takes over from `old` when it is ready.
    pub(crate) fn pair(
        &mut self,
        cx: &mut Cx<'_>,
        old: WorkerId,
        new: WorkerId,
        reason: Retirement,
    ) {
        self.to_replace.retain(|id| *id != old);
        self.replacing.insert(old);
        let worker = self.workers.get_mut(&old).expect("only a known worker is replaced");
        worker.successor = Some(new);
        let key = worker.key;
        let told = worker.retirement.replace(reason) == Some(reason);
        // Whether it goes for the trial of a reload is still to be seen.
        if !told && !self.is_trial(new) {
            cx.notify(Notice::Retiring { worker: old, reason });
        }
        let successor = self.workers.get_mut(&new).expect("created by the caller");
        (successor.replaces, successor.key) = (Some(old), key);
    }

    /// The successor is ready: the old one takes nothing new and ends when it is idle.
    pub(crate) fn begin_retirement_of_predecessor(&mut self, cx: &mut Cx<'_>, new: WorkerId) {
        let worker = self.workers.get_mut(&new).expect("it just became ready");
        let Some(old) = worker.replaces.take() else { return };
        let key = worker.key;
        if !self.workers.contains_key(&old) {
            return;
        }
        self.workers.get_mut(&old).expect("looked up above").retiring = true;
        if self.is_trial(new) {
            cx.notify(Notice::Retiring { worker: old, reason: Retirement::Reloaded });
        }
        if let Some(key) = key {
            self.hand_key_to(cx, key, new);
        }
        self.leave(cx, old);
    }

    /// A worker left the pool: nobody waits for it to replace or to be replaced any more.
    pub(crate) fn unlink(&mut self, cx: &mut Cx<'_>, gone: &mut Worker) {
        if self.replacing.remove(&gone.id) {
            self.free_successor(cx, gone);
        }
        if let Some(old) = gone.replaces.take()
            && self.replacing.remove(&old)
        {
            self.keep_after_all(cx, old);
        }
        self.begin_next_replacement(cx);
    }

    /// The old one went before its successor was ready.
    fn free_successor(&mut self, cx: &mut Cx<'_>, gone: &mut Worker) {
        let Some(id) = gone.successor.take() else { return };
        let Some(successor) = self.workers.get_mut(&id) else { return };
        if successor.replaces.take() != Some(gone.id) {
            // It has taken over long ago.
            return;
        }
        match gone.key {
            // Nobody asks for that key any more.
            Some(_) if gone.departing => self.depart(cx, id, Retirement::KeyEnded),
            Some(key) => self.hand_key_to(cx, key, id),
            None => {}
        }
    }

    /// Its successor came to nothing: better a tired worker than none.
    fn keep_after_all(&mut self, cx: &mut Cx<'_>, old: WorkerId) {
        let Some(worker) = self.workers.get_mut(&old) else { return };
        worker.successor = None;
        if worker.retiring {
            return;
        }
        worker.retirement = None;
        let mut older = false;
        if let Some(process) = worker.process_mut() {
            process.leaving = false;
            older = process.edition < self.edition;
            self.begin_ttl(cx, old);
        }
        self.refresh(old);
        if older {
            self.plan_replacement(cx, old, Retirement::Reloaded);
        }
    }

    /// A new process is as good as a new worker: there is no reason to replace it any more.
    pub(crate) fn call_off_replacement(&mut self, id: WorkerId) {
        let worker = self.workers.get_mut(&id).expect("its process just started");
        if worker.retirement.is_some() && !worker.retiring && worker.successor.is_none() {
            worker.retirement = None;
            self.to_replace.retain(|waiting| *waiting != id);
        }
    }

    /// No successors for a while: those who asked to go and have none yet serve on.
    pub(crate) fn keep_those_who_would_leave(&mut self) {
        for id in self.to_replace.clone() {
            if let Some(process) = self.workers.get_mut(&id).and_then(|w| w.process_mut()) {
                process.leaving = false;
            }
            self.refresh(id);
        }
    }

    pub(crate) fn open_breaker_if_probe_died(&mut self, cx: &mut Cx<'_>, gone: WorkerId) {
        let probing = self.restarts.breaker == Breaker::Probing { worker: gone };
        if probing && self.stage == Stage::Open {
            self.open_breaker(cx);
        }
    }
}
