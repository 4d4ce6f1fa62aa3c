//! Workers that go though they did nothing wrong: too old, too much used, too large, or not
//! needed. Most are replaced first (`replace`); those of which there are too many just depart.

use crate::command::{Notice, Retirement, StopReason};
use crate::id::{ProcessId, WorkerId};
use crate::pool::{Cx, Pool, Stage};
use crate::process::{Process, Step};
use crate::timers::Timer;

impl Pool {
    /// Its time has come: a successor first, if it has one to wait for.
    pub(crate) fn retire(&mut self, cx: &mut Cx<'_>, id: WorkerId, reason: Retirement) {
        let Some(worker) = self.workers.get(&id) else { return };
        if worker.dedicated {
            return self.renew(cx, id, reason);
        }
        self.plan_replacement(cx, id, reason);
    }

    /// A dedicated worker's identity is what its owner holds on to: it gets its next incarnation,
    /// when it has nothing to do.
    fn renew(&mut self, cx: &mut Cx<'_>, id: WorkerId, reason: Retirement) {
        let worker = self.workers.get_mut(&id).expect("looked up by the caller");
        if worker.retirement.replace(reason).is_some() {
            return;
        }
        let Some(process) = worker.process_mut() else { return };
        process.leaving = true;
        cx.notify(Notice::Retiring { worker: id, reason });
        self.refresh(id);
        self.withdraw_prefetched(cx, id);
        self.renew_when_idle(cx, id);
    }

    pub(crate) fn renew_when_idle(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        let worker = &self.workers[&id];
        let leaves = worker.process().is_some_and(|process| process.leaving && process.idle());
        if let Some(reason) = worker.retirement.filter(|_| worker.dedicated && leaves) {
            self.stop(cx, id, StopReason::Retired(reason), Step::Ask);
        }
    }

    /// It leaves, and nobody comes in its place.
    pub(crate) fn depart(&mut self, cx: &mut Cx<'_>, id: WorkerId, reason: Retirement) {
        let worker = self.workers.get_mut(&id).expect("only a known worker departs");
        if worker.retiring {
            return;
        }
        worker.departing = true;
        worker.retirement = Some(reason);
        self.to_replace.retain(|waiting| *waiting != id);
        cx.notify(Notice::Retiring { worker: id, reason });
        self.leave(cx, id);
    }

    /// No new work; its sessions move, and it ends when it is idle.
    pub(crate) fn leave(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        let worker = self.workers.get_mut(&id).expect("only a known worker leaves");
        worker.retiring = true;
        self.refresh(id);
        self.withdraw_prefetched(cx, id);
        self.evacuate(cx, id);
        self.reroute(cx, id, None);
        self.complete_when_idle(cx, id);
    }

    pub(crate) fn begin_ttl(&mut self, cx: &Cx<'_>, id: WorkerId) {
        if let Some(ttl) = self.settings.ttl {
            let ttl = self.restarts.vary(ttl, self.settings.ttl_jitter);
            self.timers.set(Timer::Ttl(id), cx.now.after(ttl));
        }
    }

    pub(crate) fn on_ttl_due(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        let process = self.workers.get(&id).and_then(|worker| worker.process());
        if self.stage != Stage::Open || !process.is_some_and(Process::serving) {
            return;
        }
        self.retire(cx, id, Retirement::Ttl);
    }

    /// A process has let go of one more request, however it ended.
    pub(crate) fn count_request(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        let limit = self.settings.max_requests;
        let Some(process) = self.workers.get_mut(&id).and_then(|worker| worker.process_mut())
        else {
            return;
        };
        process.served += 1;
        if limit.is_some_and(|limit| process.served >= limit) && process.serving() {
            self.retire(cx, id, Retirement::MaxRequests);
        }
    }

    pub(crate) fn on_memory_measured(&mut self, cx: &mut Cx<'_>, id: ProcessId, bytes: u64) {
        let (soft, hard) = (self.settings.max_memory, self.settings.max_memory_hard);
        let Some(worker) = self.current(cx, id) else { return };
        let process = worker.process_mut().expect("checked by `current`");
        if process.exited() {
            return self.stale(cx, id);
        }
        process.memory = bytes;
        if !process.serving() {
            return;
        }
        if hard.is_some_and(|hard| bytes >= hard) {
            self.stop(cx, id.worker, StopReason::MemoryExceeded, Step::Kill);
        } else if soft.is_some_and(|soft| bytes >= soft) {
            self.retire(cx, id.worker, Retirement::Memory);
        }
    }
}
