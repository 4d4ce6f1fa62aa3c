//! What happened in the pools, for whoever watches: one log for all pools, in one order.
//!
//! The log is a memory of bounded length that any number of followers read at their own pace. A
//! follower holds a place in it and no buffer, so a slow one costs nothing; one that falls behind
//! what is kept is told how much it missed and ends. Nothing in the server depends on an event:
//! whatever must not be lost is not told here alone.
//!
//! Some kinds come with every call (see [`EventKind::frequent`]). They are made only while
//! somebody follows them, and kept apart, so that they never push out the rare ones.

mod kind;
pub(crate) mod reason;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use jiff::Timestamp;
use serde_json::{Map, Value};
use tokio::sync::Notify;

pub use kind::EventKind;

/// How many events are kept where nothing else is set.
pub const EVENTS_KEPT: usize = 4096;

#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Rises by one with each event of the server.
    pub seq: u64,
    pub at: Timestamp,
    pub kind: EventKind,
    pub pool: Arc<str>,
    pub worker: Option<Arc<str>>,
    pub generation: Option<u32>,
    /// The request's id, as its caller knows it.
    pub request: Option<String>,
    pub from: Option<&'static str>,
    pub to: Option<&'static str>,
    /// One of the kind's [`reasons`](EventKind::reasons).
    pub reason: Option<&'static str>,
    /// Time in the state that was left.
    pub seconds: Option<f64>,
    pub detail: Map<String, Value>,
}

/// An event that has not been published.
#[derive(Debug, Clone)]
#[must_use = "a draft is nothing until it is published"]
pub struct EventDraft {
    event: Event,
}

impl EventDraft {
    pub fn new(kind: EventKind, pool: &Arc<str>) -> Self {
        EventDraft {
            event: Event {
                seq: 0,
                at: Timestamp::UNIX_EPOCH,
                kind,
                pool: Arc::clone(pool),
                worker: None,
                generation: None,
                request: None,
                from: None,
                to: None,
                reason: None,
                seconds: None,
                detail: Map::new(),
            },
        }
    }

    pub fn worker(mut self, name: &Arc<str>) -> Self {
        self.event.worker = Some(Arc::clone(name));
        self
    }

    pub fn generation(mut self, generation: u32) -> Self {
        self.event.generation = Some(generation);
        self
    }

    pub fn request(mut self, id: impl Into<String>) -> Self {
        self.event.request = Some(id.into());
        self
    }

    pub fn moved(mut self, from: Option<&'static str>, to: &'static str) -> Self {
        self.event.from = from;
        self.event.to = Some(to);
        self
    }

    pub fn reason(mut self, reason: &'static str) -> Self {
        debug_assert!(
            self.event.kind.reasons().contains(&reason),
            "`{reason}` is not among the reasons of {}",
            self.event.kind.name()
        );
        self.event.reason = Some(reason);
        self
    }

    pub fn seconds(mut self, seconds: f64) -> Self {
        self.event.seconds = Some(seconds);
        self
    }

    pub fn detail(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.event.detail.insert(key.to_owned(), value.into());
        self
    }
}

/// The last events of all pools.
#[derive(Debug)]
pub struct EventLog {
    kept: Mutex<Kept>,
    news: Notify,
    followers_of_all: AtomicUsize,
}

#[derive(Debug)]
struct Kept {
    last_seq: u64,
    closed: bool,
    rare: Ring,
    frequent: Ring,
}

impl EventLog {
    /// Keeps the last `kept` of the rare and as many of the frequent events.
    pub fn new(kept: usize) -> Self {
        let kept = kept.max(1);
        EventLog {
            kept: Mutex::new(Kept {
                last_seq: 0,
                closed: false,
                rare: Ring::new(kept),
                frequent: Ring::new(kept),
            }),
            news: Notify::new(),
            followers_of_all: AtomicUsize::new(0),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("no code panics here")
    }

    /// Somebody follows the frequent kinds: only then is it worth making one.
    pub fn wants_requests(&self) -> bool {
        self.followers_of_all.load(Ordering::Relaxed) > 0
    }

    /// A frequent event that nobody follows is dropped.
    pub fn publish(&self, draft: EventDraft) {
        let EventDraft { mut event } = draft;
        if event.kind.frequent() && !self.wants_requests() {
            return;
        }
        {
            let mut kept = self.kept();
            kept.last_seq += 1;
            event.seq = kept.last_seq;
            // Under the lock, so that times rise with the numbers.
            event.at = Timestamp::now();
            let ring = if event.kind.frequent() { &mut kept.frequent } else { &mut kept.rare };
            ring.push(Arc::new(event));
        }
        self.news.notify_waiters();
    }

    /// No more events come: followers read what is left and end.
    pub fn close(&self) {
        self.kept().closed = true;
        self.news.notify_waiters();
    }

    /// Follows the rare events: those after the given number, or only new ones. After 0 means
    /// whatever is kept. A number that was never given comes from another life of the server:
    /// then all that is kept is new.
    pub fn follow(self: &Arc<Self>, after: Option<u64>) -> Follower {
        self.follower(after, false)
    }

    /// Follows the frequent events too.
    pub fn follow_all(self: &Arc<Self>, after: Option<u64>) -> Follower {
        self.followers_of_all.fetch_add(1, Ordering::Relaxed);
        self.follower(after, true)
    }

    fn follower(self: &Arc<Self>, after: Option<u64>, all: bool) -> Follower {
        let kept = self.kept();
        let after = after.map(|seq| if seq > kept.last_seq { 0 } else { seq });
        let (rare, frequent) = (kept.rare.place_after(after), kept.frequent.place_after(after));
        drop(kept);
        Follower { log: Arc::clone(self), all, rare, frequent, ended: false }
    }
}

/// Somebody's place in the log.
#[derive(Debug)]
pub struct Follower {
    log: Arc<EventLog>,
    all: bool,
    rare: u64,
    frequent: u64,
    ended: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Followed {
    Event(Arc<Event>),
    /// It fell behind. Who follows again after `resume` gets the oldest that is still kept.
    Lagged {
        missed: u64,
        resume: u64,
    },
    /// The log is closed, or this follower has lagged.
    Ended,
}

impl Follower {
    /// Waits for the next event. It may be dropped and called again; nothing is lost.
    pub async fn next(&mut self) -> Followed {
        let log = Arc::clone(&self.log);
        loop {
            // Listening begins before the look, or an event in between would go unnoticed.
            let news = log.news.notified();
            if let Some(followed) = self.try_next() {
                return followed;
            }
            news.await;
        }
    }

    /// The next event, if it is there.
    pub fn try_next(&mut self) -> Option<Followed> {
        if self.ended {
            return Some(Followed::Ended);
        }
        let log = Arc::clone(&self.log);
        let kept = log.kept();
        let missed = self.missed(&kept);
        if missed > 0 {
            self.ended = true;
            return Some(Followed::Lagged { missed, resume: kept.before_oldest(self.all) });
        }
        let rare = kept.rare.at(self.rare);
        let frequent = kept.frequent.at(self.frequent).filter(|_| self.all);
        let next = match (rare, frequent) {
            (Some(rare), Some(frequent)) if frequent.seq < rare.seq => frequent,
            (Some(rare), _) => rare,
            (None, Some(frequent)) => frequent,
            (None, None) => {
                self.ended = kept.closed;
                return kept.closed.then_some(Followed::Ended);
            }
        };
        match next.kind.frequent() {
            true => self.frequent += 1,
            false => self.rare += 1,
        }
        Some(Followed::Event(Arc::clone(next)))
    }

    fn missed(&self, kept: &Kept) -> u64 {
        let frequent = if self.all { kept.frequent.gone.saturating_sub(self.frequent) } else { 0 };
        kept.rare.gone.saturating_sub(self.rare) + frequent
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if self.all {
            self.log.followers_of_all.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Kept {
    /// The number after which a follower misses nothing that is kept and lags behind no ring.
    fn before_oldest(&self, all: bool) -> u64 {
        let rare = self.rare.last_gone;
        if all { rare.max(self.frequent.last_gone) } else { rare }
    }
}

/// The last events of one sort. Places are counted from the first event that ever was.
#[derive(Debug)]
struct Ring {
    events: VecDeque<Arc<Event>>,
    kept: usize,
    /// How many were dropped, and the number of the last of them.
    gone: u64,
    last_gone: u64,
}

impl Ring {
    fn new(kept: usize) -> Self {
        Ring { events: VecDeque::new(), kept, gone: 0, last_gone: 0 }
    }

    fn push(&mut self, event: Arc<Event>) {
        if self.events.len() == self.kept
            && let Some(oldest) = self.events.pop_front()
        {
            self.gone += 1;
            self.last_gone = oldest.seq;
        }
        self.events.push_back(event);
    }

    fn at(&self, place: u64) -> Option<&Arc<Event>> {
        let index = usize::try_from(place.checked_sub(self.gone)?).ok()?;
        self.events.get(index)
    }

    /// The place of the first event after a number. One that is no longer kept is a place before
    /// the oldest, which is how a lag is told.
    fn place_after(&self, after: Option<u64>) -> u64 {
        match after {
            None => self.gone + self.events.len() as u64,
            Some(0) => self.gone,
            Some(seq) if seq < self.last_gone => self.gone - 1,
            Some(seq) => self.gone + self.events.partition_point(|event| event.seq <= seq) as u64,
        }
    }
}

#[cfg(test)]
mod tests;
