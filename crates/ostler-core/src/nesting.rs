//! Calls made by requests that are themselves being worked on. Such a request keeps its place
//! while it waits. One that waits in a queue can go on if some place that it may have can come
//! free, and a place can if whoever keeps it does not itself wait for one that cannot go on. What
//! is left when nobody more can go on is a circle; the call that would close it is refused.

use std::collections::BTreeSet;

use crate::command::Refusal;
use crate::event::{RequestSpec, Target};
use crate::id::RequestId;
use crate::pool::{Cx, Pool};
use crate::process::Held;
use crate::restart::Breaker;
use crate::time::Time;
use crate::way::Way;
use crate::worker::Worker;

impl Pool {
    /// The refusal of a nested call that would wait for ever.
    pub(crate) fn nested_refusal(&self, now: Time, spec: &RequestSpec) -> Option<Refusal> {
        if spec.ancestors.is_empty() {
            return None;
        }
        let queued = self.nested.iter().map(|id| &self.requests[id].spec);
        let mut stuck: Vec<&RequestSpec> = queued.chain([spec]).collect();
        loop {
            let keepers = stuck.iter().flat_map(|spec| &spec.ancestors).copied().collect();
            if self.may_go_on(now, spec, &keepers) {
                return None;
            }
            let (any, before) = (self.any_may_come_free(&keepers), stuck.len());
            stuck.retain(|spec| match (spec.target, spec.bond, spec.key) {
                (Target::Any, None, None) => !any,
                _ => !self.may_go_on(now, spec, &keepers),
            });
            if stuck.len() == before {
                return Some(Refusal::NestedDeadlock);
            }
        }
    }

    /// Places went for good: those who can no longer be served are told so, the youngest first.
    pub(crate) fn refuse_circles(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now;
        let stuck = |pool: &Pool, id: &RequestId| pool.nested_refusal(now, &pool.requests[id].spec);
        while let Some(id) = self.nested.iter().rfind(|id| stuck(self, id).is_some()).copied() {
            self.unqueue(id);
            self.turn_away(cx, id, Refusal::NestedDeadlock);
        }
    }

    fn may_go_on(&self, now: Time, spec: &RequestSpec, keepers: &BTreeSet<RequestId>) -> bool {
        match self.way(now, spec) {
            Way::Anyone | Way::Rather(_) => self.any_may_come_free(keepers),
            Way::Only(id) => self.workers.get(&id).is_some_and(|worker| {
                // What one that leaves was to serve goes elsewhere, unless it was named.
                let moves = worker.retiring && spec.target == Target::Any;
                self.may_come_free(worker, keepers) || (moves && self.any_may_come_free(keepers))
            }),
            Way::Key(_) => {
                let room = self.regular_count() < self.settings.max as usize;
                room || self.any_may_come_free(keepers)
            }
            Way::Place(lease, place) => {
                let place = self.leases.get(&lease).and_then(|lease| lease.place(place));
                let busy = place.and_then(|place| place.busy);
                busy.is_none_or(|busy| !keepers.contains(&busy))
            }
        }
    }

    fn any_may_come_free(&self, keepers: &BTreeSet<RequestId>) -> bool {
        let mut pool = self.workers.values().filter(|worker| !worker.dedicated);
        self.may_grow() || pool.any(|worker| self.may_come_free(worker, keepers))
    }

    /// One that is on its way out takes nobody any more; but where there are too few, another one
    /// comes when it has left.
    fn may_come_free(&self, worker: &Worker, keepers: &BTreeSet<RequestId>) -> bool {
        if worker.retiring {
            let kept = |held: &Held| held.hold.waited_for() && keepers.contains(&held.request);
            let stays = worker.process().is_some_and(|process| process.held.iter().any(kept));
            let too_few = self.staying_count() < self.target as usize;
            return worker.departing
                && !stays
                && too_few
                && self.restarts.breaker == Breaker::Closed;
        }
        if worker.status.terminal() {
            // Another one takes its place when it has left.
            return !worker.dedicated && self.restarts.breaker == Breaker::Closed;
        }
        worker.process().is_none_or(|process| {
            let capacity = process.capacity as usize;
            let kept = |held: &&Held| held.hold.waited_for() && keepers.contains(&held.request);
            process.held.iter().take(capacity).filter(kept).count() < capacity
        })
    }

    pub(crate) fn note_nested_queued(&mut self, id: RequestId) {
        if !self.requests[&id].spec.ancestors.is_empty() {
            self.nested.insert(id);
        }
    }

    pub(crate) fn note_nested_left(&mut self, id: RequestId) {
        if !self.nested.is_empty() {
            self.nested.remove(&id);
        }
    }
}
