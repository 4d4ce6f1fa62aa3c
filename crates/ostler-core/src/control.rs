//! Orders about the whole pool: hold work back, let nobody in, replace everybody.

use crate::command::{Command, Notice, Reply, Retirement};
use crate::id::{OrderId, WorkerId};
use crate::pool::{Cx, Pool, Stage};

impl Pool {
    /// Requests wait from now on; what runs goes on.
    pub(crate) fn on_pause_pool_ordered(&mut self, cx: &mut Cx<'_>, order: OrderId) {
        if !std::mem::replace(&mut self.paused, true) {
            cx.notify(Notice::PoolPaused);
        }
        let workers: Vec<WorkerId> = self.workers.keys().copied().collect();
        for worker in workers {
            self.withdraw_prefetched(cx, worker);
        }
        cx.push(Command::Reply { order, reply: Reply::PoolDone });
    }

    pub(crate) fn on_resume_pool_ordered(&mut self, cx: &mut Cx<'_>, order: OrderId) {
        let paused = std::mem::replace(&mut self.paused, false);
        let closed = std::mem::replace(&mut self.closed, false);
        self.drained = false;
        if paused || closed {
            cx.notify(Notice::PoolResumed);
        }
        let workers: Vec<WorkerId> = self.workers.keys().copied().collect();
        for worker in workers {
            self.feed_places(cx, worker);
        }
        cx.push(Command::Reply { order, reply: Reply::PoolDone });
    }

    pub(crate) fn on_drain_pool_ordered(&mut self, cx: &mut Cx<'_>, order: OrderId) {
        if !std::mem::replace(&mut self.closed, true) {
            cx.notify(Notice::PoolDraining);
        }
        cx.push(Command::Reply { order, reply: Reply::PoolDone });
    }

    pub(crate) fn note_if_drained(&mut self, cx: &mut Cx<'_>) {
        if !self.closed || self.drained || self.stage != Stage::Open {
            return;
        }
        let held = self.workers.values().any(|worker| worker.load() > 0);
        if self.requests.is_empty() && self.leases.is_empty() && !held {
            self.drained = true;
            cx.notify(Notice::PoolDrained);
        }
    }

    pub(crate) fn on_recycle_pool_ordered(&mut self, cx: &mut Cx<'_>, order: OrderId) {
        // Whoever is about to take over from another is fresh.
        let serving = self.workers.values().filter(|worker| {
            worker.in_service() && worker.replaces.is_none() && !self.is_trial(worker.id)
        });
        let workers: Vec<WorkerId> = serving.map(|worker| worker.id).collect();
        for worker in &workers {
            self.retire(cx, *worker, Retirement::Ordered);
        }
        cx.push(Command::Reply { order, reply: Reply::Recycling { workers } });
    }
}
