//! All that the core waits for, in one ordered set. Each key has at most one time; requests, of which
//! there are many, remember theirs themselves.

use std::collections::BTreeSet;

use crate::id::{IdMap, LeaseId, RequestId, WorkerId};
use crate::time::Time;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Timer {
    /// Queue timeout, deadline, or the end of a wait between attempts.
    Request(RequestId),
    /// Start timeout, or the next step of the stop ladder.
    Process(WorkerId),
    /// A cancelled request that its worker should have let go of.
    Grace(WorkerId),
    Heartbeat(WorkerId),
    /// The next active check, or the end of the wait for one.
    Checkup(WorkerId),
    /// A prefetched request that has waited behind a long one.
    Patience(WorkerId),
    /// The end of a backoff, or of a pause for want of resources.
    Restart(WorkerId),
    /// An ordered start or completion that must take effect.
    Supervise(WorkerId),
    /// A change that the store has not confirmed.
    Record(WorkerId),
    /// What a worker should have handed over.
    Save(WorkerId),
    /// A worker that may have idled long enough.
    Idle(WorkerId),
    /// A process that has served long enough.
    Ttl(WorkerId),
    Lease(LeaseId),
    /// The next batch of processes.
    Launch,
    Breaker,
    /// The oldest waiting lease loses its patience.
    Gang,
    /// A request has waited long enough for another worker.
    Grow,
    /// A worker is old enough to be evicted.
    Evict,
    Sweep,
}

#[derive(Debug, Default)]
pub(crate) struct Timers {
    due: BTreeSet<(Time, Timer)>,
    at: IdMap<Timer, Time>,
}

impl Timers {
    pub fn set(&mut self, timer: Timer, at: Time) {
        if let Some(old) = self.at.insert(timer, at) {
            if old == at {
                return;
            }
            self.due.remove(&(old, timer));
        }
        self.due.insert((at, timer));
    }

    /// Sets it unless it is to fire earlier anyway.
    pub fn set_earlier(&mut self, timer: Timer, at: Time) {
        if self.at.get(&timer).is_none_or(|old| at < *old) {
            self.set(timer, at);
        }
    }

    pub fn clear(&mut self, timer: Timer) {
        if let Some(at) = self.at.remove(&timer) {
            self.due.remove(&(at, timer));
        }
    }

    pub fn next(&self) -> Option<Time> {
        self.due.first().map(|(at, _)| *at)
    }

    pub fn pop_due(&mut self, now: Time) -> Option<Timer> {
        let (at, timer) = *self.due.first()?;
        if at > now {
            return None;
        }
        self.due.pop_first();
        self.at.remove(&timer);
        Some(timer)
    }

    /// For an owner that remembers the time itself and is spared the look-up.
    pub fn reset(&mut self, timer: Timer, old: Option<Time>, new: Option<Time>) {
        if old == new {
            return;
        }
        if let Some(old) = old {
            self.due.remove(&(old, timer));
        }
        if let Some(new) = new {
            self.due.insert((new, timer));
        }
    }

    pub fn has(&self, timer: Timer) -> bool {
        self.at.contains_key(&timer)
    }
}
