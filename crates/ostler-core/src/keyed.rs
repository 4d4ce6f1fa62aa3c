//! Pools in which each key has a worker of its own, made when it is first asked for.
//!
//! A request goes to the worker of its key and to no other. If there is none, one is made; if the
//! pool has all the workers it may have, one with nothing to do leaves for it; if there is none of
//! that kind, the request waits.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::command::{Notice, Retirement};
use crate::id::{IdMap, KeyId, RequestId, WorkerId};
use crate::pool::{Cx, Pool};
use crate::restart::Breaker;
use crate::settings::{Evict, Keyed};
use crate::time::Time;
use crate::timers::Timer;
use crate::way::Way;
use crate::worker::Worker;

#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// The worker of each key, until it has left the pool.
    workers: IdMap<KeyId, WorkerId>,
    /// Requests whose key has no worker, by priority and arrival.
    waiting: BTreeSet<(Reverse<i8>, RequestId)>,
    by_key: BTreeMap<KeyId, BTreeSet<(Reverse<i8>, RequestId)>>,
    of: IdMap<RequestId, KeyId>,
}

impl Keys {
    pub fn push(&mut self, key: KeyId, priority: i8, request: RequestId) {
        self.waiting.insert((Reverse(priority), request));
        self.by_key.entry(key).or_default().insert((Reverse(priority), request));
        self.of.insert(request, key);
    }

    pub fn remove(&mut self, key: KeyId, priority: i8, request: RequestId) {
        self.waiting.remove(&(Reverse(priority), request));
        self.of.remove(&request);
        if let Some(waiting) = self.by_key.get_mut(&key) {
            waiting.remove(&(Reverse(priority), request));
            if waiting.is_empty() {
                self.by_key.remove(&key);
            }
        }
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn oldest(&self) -> Option<RequestId> {
        self.waiting.iter().map(|(_, request)| *request).min()
    }

    pub fn iter(&self) -> impl Iterator<Item = RequestId> + '_ {
        self.waiting.iter().map(|(_, request)| *request)
    }

    /// The first key in the line that has no worker, not even one on its way out.
    fn next(&self) -> Option<KeyId> {
        let keys = self.waiting.iter().map(|(_, request)| self.of[request]);
        keys.into_iter().find(|key| !self.workers.contains_key(key))
    }
}

impl Pool {
    pub(crate) fn keyed_way(&self, key: KeyId) -> Way {
        match self.keys.workers.get(&key) {
            Some(worker) if !self.workers[worker].retiring => Way::Only(*worker),
            _ => Way::Key(key),
        }
    }

    /// Gives a worker to every key that waits for one, as far as the pool may.
    pub(crate) fn open_keys(&mut self, cx: &mut Cx<'_>) {
        let Some(keyed) = self.settings.keyed else { return };
        while self.restarts.breaker == Breaker::Closed {
            let Some(key) = self.keys.next() else { return };
            if self.regular_count() < self.settings.max as usize + self.extra_count() {
                if self.held_by_pressure(cx) {
                    return;
                }
                self.open_key(cx, key);
            } else if self.departing_count() >= self.keys.by_key.len() {
                return;
            } else if let Some(worker) = self.evictable(cx, keyed) {
                self.depart(cx, worker, Retirement::Evicted);
            } else {
                return;
            }
        }
    }

    fn open_key(&mut self, cx: &mut Cx<'_>, key: KeyId) {
        let worker = self.create_worker(cx, None, false);
        self.workers.get_mut(&worker).expect("created above").key = Some(key);
        self.hand_key_to(cx, key, worker);
        let made = self.regular_count() as u32;
        cx.notify(Notice::Scaled { from: made - 1, to: made });
    }

    /// From now on requests of this key go to this worker, also those who wait.
    pub(crate) fn hand_key_to(&mut self, cx: &mut Cx<'_>, key: KeyId, worker: WorkerId) {
        let old = self.keys.workers.insert(key, worker);
        let waiting = self.keys.by_key.get(&key);
        let waiting: Vec<RequestId> =
            waiting.map_or_else(Vec::new, |of| of.iter().map(|(_, id)| *id).collect());
        for id in waiting {
            self.unqueue(id);
            self.enqueue(cx, id);
        }
        if let Some(old) = old.filter(|old| *old != worker) {
            self.reroute(cx, old, None);
        }
    }

    /// The worker has left the pool.
    pub(crate) fn close_key_of(&mut self, gone: &Worker) {
        if let Some(key) = gone.key
            && self.keys.workers.get(&key) == Some(&gone.id)
        {
            self.keys.workers.remove(&key);
        }
    }

    /// One that may leave for another key. Too young ones are looked at again when they are not.
    fn evictable(&mut self, cx: &Cx<'_>, keyed: Keyed) -> Option<WorkerId> {
        let idle = self.workers.values().filter(|worker| {
            let idle = worker.process().is_some_and(|process| process.idle());
            let alone = worker.successor.is_none() && worker.replaces.is_none();
            let free = alone && !self.own.contains_key(&worker.id);
            idle && free && !worker.dedicated && worker.accepts()
        });
        let of_age = |worker: &&Worker| old_enough(worker, keyed) <= cx.now;
        let (of_age, young): (Vec<&Worker>, Vec<&Worker>) = idle.partition(of_age);
        let chosen = of_age.into_iter().min_by_key(|worker| rank(worker, keyed.evict));
        let chosen = chosen.map(|worker| worker.id);
        if chosen.is_none()
            && let Some(at) = young.into_iter().map(|worker| old_enough(worker, keyed)).min()
        {
            self.timers.set(Timer::Evict, at);
        }
        chosen
    }

    /// Nobody asks for this key any more: its worker leaves when it has nothing to do.
    pub(crate) fn on_key_ended(&mut self, cx: &mut Cx<'_>, key: KeyId) {
        let Some(worker) = self.keys.workers.get(&key).copied() else { return };
        let successor = self.workers[&worker].successor;
        for id in [Some(worker), successor].into_iter().flatten() {
            if self.workers.get(&id).is_some_and(|worker| !worker.retiring) {
                self.depart(cx, id, Retirement::KeyEnded);
            }
        }
    }

    pub(crate) fn check_keys(&self) -> Result<(), String> {
        for (key, id) in &self.keys.workers {
            if self.workers.get(id).and_then(|worker| worker.key) != Some(*key) {
                return Err(format!("{key:?} is said to have {id:?}, which does not know"));
            }
        }
        let listed: usize = self.keys.by_key.values().map(BTreeSet::len).sum();
        if listed != self.keys.waiting.len() || listed != self.keys.of.len() {
            return Err(format!("{listed} wait for keys, {} in line", self.keys.waiting.len()));
        }
        for key in self.keys.by_key.keys() {
            if let Some(worker) = self.keys.workers.get(key)
                && !self.workers[worker].retiring
            {
                return Err(format!("{key:?} has {worker:?}, and requests that wait for one"));
            }
        }
        Ok(())
    }
}

fn old_enough(worker: &Worker, keyed: Keyed) -> Time {
    worker.ready_since.after(keyed.evict_min_age)
}

fn rank(worker: &Worker, evict: Evict) -> (u64, u64) {
    let used = worker.last_used.as_nanos();
    match evict {
        Evict::Lru => (used, worker.id.0),
        Evict::Oldest => (worker.id.0, used),
        Evict::LeastUsed => (worker.answered, used),
    }
}
