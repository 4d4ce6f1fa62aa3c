//! How many workers a pool wants: `target`, between `min` and `max`. Up when requests wait, down
//! when workers idle.

use crate::command::{Command, Notice, Reply, Retirement};
use crate::id::{OrderId, WorkerId};
use crate::pool::{Cx, Pool, Stage};
use crate::restart::Breaker;
use crate::status::Status;
use crate::time::Time;
use crate::timers::Timer;
use crate::worker::Worker;

impl Pool {
    /// Workers of the pool's own, those on their way out included.
    pub(crate) fn regular_count(&self) -> usize {
        self.regulars().count()
    }

    /// Those who will have left in a moment.
    pub(crate) fn departing_count(&self) -> usize {
        let idle = |worker: &Worker| worker.process().is_none_or(|process| process.idle());
        self.regulars().filter(|worker| worker.departing && idle(worker)).count()
    }

    /// Workers that there may be beyond `max`, for a while.
    pub(crate) fn extra_count(&self) -> usize {
        self.replacing.len() + self.regulars().filter(|worker| self.is_extra(worker)).count()
    }

    fn regulars(&self) -> impl Iterator<Item = &Worker> + '_ {
        self.workers.values().filter(|worker| !worker.dedicated)
    }

    /// Workers that may be in service at once, as things stand: paused ones are not, nor are those
    /// that go.
    pub(crate) fn servable_count(&self) -> usize {
        let goes =
            |worker: &Worker| worker.retiring || worker.departing || worker.completing.is_some();
        let serves = |worker: &&Worker| worker.status != Status::Paused && !goes(worker);
        let room = (self.settings.max as usize).saturating_sub(self.regular_count());
        self.regulars().filter(serves).count() + room
    }

    /// Workers that there will be when all replacements under way are done.
    pub(crate) fn staying_count(&self) -> usize {
        let stays = |worker: &&Worker| !worker.departing && !self.is_extra(worker);
        let staying = self.regulars().filter(stays).count();
        staying.saturating_sub(self.replacing.len())
    }

    /// How many workers there are too few, within what the pool may have.
    pub(crate) fn missing(&self) -> usize {
        if self.settings.keyed.is_some() {
            return 0;
        }
        let short = (self.target as usize).saturating_sub(self.staying_count());
        let most = self.settings.max as usize + self.extra_count();
        short.min(most.saturating_sub(self.regular_count()))
    }

    /// There may be more workers than there will be.
    pub(crate) fn may_grow(&self) -> bool {
        self.settings.keyed.is_none()
            && self.target < self.settings.max
            && self.stage == Stage::Open
            && !self.paused
            && self.restarts.breaker == Breaker::Closed
    }

    /// Somebody waits: how long until there is another worker for it?
    pub(crate) fn consider_growth(&mut self, cx: &mut Cx<'_>) {
        if !self.may_grow() || (self.queue.is_empty() && self.waiting_leases.is_empty()) {
            return;
        }
        if self.target == 0 {
            return self.grow(cx);
        }
        if !self.timers.has(Timer::Grow) {
            self.timers.set(Timer::Grow, cx.now.after(self.settings.scale_up_after));
        }
    }

    pub(crate) fn on_growth_due(&mut self, cx: &mut Cx<'_>) {
        let Some(oldest) = self.oldest_demand().filter(|_| self.may_grow()) else { return };
        let due = oldest.after(self.settings.scale_up_after);
        if due > cx.now {
            return self.timers.set(Timer::Grow, due);
        }
        self.grow(cx);
    }

    fn oldest_demand(&self) -> Option<Time> {
        let request = self.queue.oldest().and_then(|id| self.requests.get(&id));
        let lease = self.waiting_leases.first().and_then(|id| self.leases.get(id));
        let arrived = request.map(|request| request.arrived);
        arrived.into_iter().chain(lease.map(|lease| lease.asked)).min()
    }

    /// As many as would serve those who wait at once, less those already on their way, and no
    /// more at a time than may start at a time.
    fn grow(&mut self, cx: &mut Cx<'_>) {
        if self.held_by_pressure(cx) {
            return;
        }
        let leased = self.waiting_leases.iter().map(|id| self.leases[id].spec.workers as usize);
        let capacity = self.settings.capacity.max(1) as usize;
        let demand = self.queue.len().div_ceil(capacity) + leased.sum::<usize>();
        let coming = |worker: &&Worker| !worker.process().is_some_and(|p| p.was_ready);
        let coming = self.regulars().filter(coming).count();
        let batch = (self.settings.start_batch as usize).saturating_sub(coming);
        let room = (self.settings.max - self.target) as usize;
        let more = demand.saturating_sub(coming).min(batch).min(room);
        if more > 0 {
            self.set_target(cx, self.target + more as u32);
            self.replenish(cx);
        }
    }

    /// While memory is short no worker is made beyond those there are; the first one always is.
    pub(crate) fn held_by_pressure(&mut self, cx: &mut Cx<'_>) -> bool {
        let held = self.strained && self.regular_count() > 0;
        if held && !self.growth_held {
            self.growth_held = true;
            cx.notify(Notice::GrowthHeld);
        }
        held
    }

    pub(crate) fn on_pressure_changed(&mut self, high: bool) {
        self.strained = high;
        self.growth_held &= high;
    }

    fn set_target(&mut self, cx: &mut Cx<'_>, to: u32) {
        let from = std::mem::replace(&mut self.target, to);
        if from != to {
            cx.notify(Notice::Scaled { from, to });
        }
    }

    pub(crate) fn on_scale_ordered(
        &mut self,
        cx: &mut Cx<'_>,
        order: OrderId,
        (min, max): (u32, u32),
    ) {
        self.settings.max = max.max(1);
        self.settings.min = min.min(self.settings.max);
        self.resize(cx);
        cx.push(Command::Reply { order, reply: Reply::PoolDone });
    }

    pub(crate) fn aim_within_bounds(&mut self, cx: &mut Cx<'_>) {
        let (min, max) = (self.settings.min, self.settings.max);
        self.set_target(cx, self.target.clamp(min, max));
    }

    /// After `min` or `max` changed.
    pub(crate) fn resize(&mut self, cx: &mut Cx<'_>) {
        self.aim_within_bounds(cx);
        self.replenish(cx);
        let workers: Vec<WorkerId> = self.workers.keys().copied().collect();
        for worker in workers {
            self.begin_idle_watch(cx, worker);
        }
    }

    /// Sends away whoever is too many. Those who are being replaced are looked at when that is over.
    pub(crate) fn shed(&mut self, cx: &mut Cx<'_>) {
        let keyed = self.settings.keyed.is_some();
        let allowed = if keyed { self.settings.max } else { self.target };
        let surplus = self.staying_count().saturating_sub(allowed as usize);
        for worker in self.coldest(surplus) {
            self.depart(cx, worker, Retirement::Scaled);
        }
    }

    /// Those who would be missed least: the idle before the busy, the long idle first.
    fn coldest(&self, count: usize) -> Vec<WorkerId> {
        let staying = |worker: &&Worker| {
            let paired = worker.successor.is_some() || worker.replaces.is_some();
            !worker.departing && !paired && !self.is_extra(worker)
        };
        let mut workers: Vec<&Worker> = self.regulars().filter(staying).collect();
        workers.sort_by_key(|worker| {
            let serves = worker.process().is_some_and(|process| process.was_ready);
            (serves, worker.load(), worker.last_used, worker.id)
        });
        workers.into_iter().take(count).map(|worker| worker.id).collect()
    }

    pub(crate) fn begin_idle_watch(&mut self, cx: &Cx<'_>, id: WorkerId) {
        let elastic = self.settings.keyed.is_some() || self.settings.min < self.settings.max;
        let Some(idle_ttl) = self.settings.idle_ttl.filter(|_| elastic) else { return };
        let worker = &self.workers[&id];
        if !worker.dedicated && worker.process().is_some_and(|process| process.serving()) {
            let at = worker.last_used.after(idle_ttl).max(cx.now);
            self.timers.set(Timer::Idle(id), at);
        }
    }

    /// Looked at once per `idle_ttl`, so that calls need not touch the timer.
    pub(crate) fn on_idle_due(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        let Some(idle_ttl) = self.settings.idle_ttl else { return };
        let Some(worker) = self.workers.get(&id) else { return };
        let due = worker.last_used.after(idle_ttl);
        let serving = worker.process().filter(|process| process.serving());
        let Some(process) = serving.filter(|_| self.stage == Stage::Open) else { return };
        let idle = process.idle() && worker.in_service() && !self.own.contains_key(&id);
        if !idle || due > cx.now {
            let again = if due > cx.now { due } else { cx.now.after(idle_ttl) };
            return self.timers.set(Timer::Idle(id), again);
        }
        let spare = self.settings.keyed.is_some() || self.target > self.settings.min;
        if !spare || worker.successor.is_some() || worker.replaces.is_some() {
            return self.timers.set(Timer::Idle(id), cx.now.after(idle_ttl));
        }
        if self.settings.keyed.is_none() {
            self.set_target(cx, self.target - 1);
        }
        self.depart(cx, id, Retirement::Idle);
    }
}
