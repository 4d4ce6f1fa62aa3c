//! What is known of one request, while it lives and for a while after.
//!
//! A record is plain data: whoever drives the request writes it, under a lock of their own. The
//! register keeps the last that have ended. It is written with every call and read once in a
//! while, so it is made for writing: a ring without an index, and a map only of the ids that
//! callers gave.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use ostler_core::{RequestId, Time};
use serde_json::value::RawValue;

/// How many ended requests are remembered where nothing else is set.
pub const ENDED_KEPT: usize = 1000;
/// A request that moves from worker to worker for ever must not remember every move.
const STEPS_MAX: usize = 32;
/// Pending, processing, streaming, complete: the way of nearly every request.
const STEPS_INLINE: usize = 4;

/// ```text
///  PENDING ──▶ PROCESSING ──▶ STREAMING ──▶ COMPLETE, ERROR, CANCELLED
///     │            └──────────────────────────▲
///     ├── CANCELLED, ERROR (while it waited)
///     └── REJECTED (nothing ran)
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestState {
    Pending,
    Processing,
    Streaming,
    Complete,
    Error,
    Cancelled,
    Rejected,
}

impl RequestState {
    pub const ALL: [RequestState; 7] = [
        RequestState::Pending,
        RequestState::Processing,
        RequestState::Streaming,
        RequestState::Complete,
        RequestState::Error,
        RequestState::Cancelled,
        RequestState::Rejected,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            RequestState::Pending => "PENDING",
            RequestState::Processing => "PROCESSING",
            RequestState::Streaming => "STREAMING",
            RequestState::Complete => "COMPLETE",
            RequestState::Error => "ERROR",
            RequestState::Cancelled => "CANCELLED",
            RequestState::Rejected => "REJECTED",
        }
    }

    pub fn named(name: &str) -> Option<RequestState> {
        RequestState::ALL.into_iter().find(|state| state.name() == name)
    }

    pub const fn ended(self) -> bool {
        match self {
            RequestState::Pending | RequestState::Processing | RequestState::Streaming => false,
            RequestState::Complete
            | RequestState::Error
            | RequestState::Cancelled
            | RequestState::Rejected => true,
        }
    }
}

/// A request came into a state.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub state: RequestState,
    pub at: Time,
    pub worker: Option<Arc<str>>,
    /// Counted from 1; 0 before the first.
    pub attempt: u32,
}

/// The steps of a request, oldest first. The usual few need no allocation.
#[derive(Debug, Clone, Default)]
pub struct History {
    first: [Option<Step>; STEPS_INLINE],
    rest: Vec<Step>,
}

impl History {
    pub fn push(&mut self, step: Step) {
        if let Some(free) = self.first.iter_mut().find(|slot| slot.is_none()) {
            *free = Some(step);
            return;
        }
        if self.rest.len() == STEPS_MAX - STEPS_INLINE {
            // How it began and how it went on lately tell more than the middle.
            self.rest.remove(0);
        }
        self.rest.push(step);
    }

    pub fn iter(&self) -> impl Iterator<Item = &Step> {
        self.first.iter().flatten().chain(&self.rest)
    }

    pub fn last(&self) -> Option<&Step> {
        self.rest.last().or_else(|| self.first.iter().flatten().last())
    }
}

#[derive(Debug, Clone)]
pub struct RequestRecord {
    pub number: RequestId,
    /// The caller's own id.
    pub id: Option<Arc<str>>,
    pub function: Arc<str>,
    pub state: RequestState,
    pub arrived: Time,
    pub history: History,
    /// Delivered to the caller.
    pub chunks: u64,
    /// What the function said last of how far it is.
    pub progress: Option<Box<RawValue>>,
    /// The code of the problem it ended in.
    pub code: Option<&'static str>,
    /// Who works on it or did so last.
    pub worker: Option<Arc<str>>,
}

impl RequestRecord {
    pub fn new(number: RequestId, id: Option<Arc<str>>, function: Arc<str>, now: Time) -> Self {
        let mut history = History::default();
        history.push(Step { state: RequestState::Pending, at: now, worker: None, attempt: 0 });
        RequestRecord {
            number,
            id,
            function,
            state: RequestState::Pending,
            arrived: now,
            history,
            chunks: 0,
            progress: None,
            code: None,
            worker: None,
        }
    }

    /// A worker has it: for the first time, or again.
    pub fn begin(&mut self, now: Time, worker: &Arc<str>, attempt: u32) {
        self.worker = Some(Arc::clone(worker));
        self.enter(RequestState::Processing, now, attempt);
    }

    /// Its caller has seen a chunk. Only the first is a step.
    pub fn stream(&mut self, now: Time) {
        if self.state != RequestState::Streaming {
            self.enter(RequestState::Streaming, now, self.attempt());
        }
    }

    /// It waits again: for its next attempt, or for another worker.
    pub fn wait(&mut self, now: Time) {
        self.worker = None;
        self.enter(RequestState::Pending, now, self.attempt());
    }

    /// Its one end. `code` is that of its problem, if it has one.
    pub fn end(&mut self, state: RequestState, code: Option<&'static str>, now: Time) {
        debug_assert!(state.ended(), "{} is no end", state.name());
        self.code = code;
        self.enter(state, now, self.attempt());
    }

    pub fn attempt(&self) -> u32 {
        self.history.last().map_or(0, |step| step.attempt)
    }

    /// When it first reached a worker.
    pub fn began(&self) -> Option<Time> {
        let began = self.history.iter().find(|step| step.state == RequestState::Processing);
        began.map(|step| step.at)
    }

    /// When its last worker began.
    pub fn last_began(&self) -> Option<Time> {
        let began = self.history.iter().filter(|step| step.state == RequestState::Processing);
        began.last().map(|step| step.at)
    }

    pub fn ended(&self) -> Option<Time> {
        self.history.last().filter(|step| step.state.ended()).map(|step| step.at)
    }

    fn enter(&mut self, state: RequestState, at: Time, attempt: u32) {
        debug_assert!(!self.state.ended(), "an ended request does not move");
        self.state = state;
        self.history.push(Step { state, at, worker: self.worker.clone(), attempt });
    }
}

/// The last requests that have ended.
#[derive(Debug)]
pub struct Register {
    ended: VecDeque<RequestRecord>,
    kept: usize,
    /// How many were forgotten: the place of the oldest.
    forgotten: u64,
    /// Places by the ids that callers gave. Of two requests under one id the last counts.
    named: HashMap<Arc<str>, u64>,
}

impl Register {
    /// `kept` 0: nothing is remembered.
    pub fn new(kept: usize) -> Self {
        let ended = VecDeque::with_capacity(kept.min(ENDED_KEPT));
        Register { ended, kept, forgotten: 0, named: HashMap::new() }
    }

    pub fn keep(&mut self, record: RequestRecord) {
        if self.kept == 0 {
            return;
        }
        if self.ended.len() == self.kept {
            self.forget();
        }
        if let Some(id) = &record.id {
            let place = self.forgotten + self.ended.len() as u64;
            self.named.insert(Arc::clone(id), place);
        }
        self.ended.push_back(record);
    }

    fn forget(&mut self) {
        let Some(oldest) = self.ended.pop_front() else { return };
        if let Some(id) = &oldest.id
            && self.named.get(id) == Some(&self.forgotten)
        {
            self.named.remove(id);
        }
        self.forgotten += 1;
    }

    pub fn by_number(&self, number: RequestId) -> Option<&RequestRecord> {
        self.latest().find(|record| record.number == number)
    }

    pub fn by_id(&self, id: &str) -> Option<&RequestRecord> {
        let place = self.named.get(id)?.checked_sub(self.forgotten)?;
        self.ended.get(usize::try_from(place).ok()?)
    }

    /// The last to end first.
    pub fn latest(&self) -> impl Iterator<Item = &RequestRecord> {
        self.ended.iter().rev()
    }

    pub fn len(&self) -> usize {
        self.ended.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ended.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: u64, id: Option<&str>) -> RequestRecord {
        let id = id.map(Arc::from);
        RequestRecord::new(RequestId(number), id, "greet".into(), Time::from_nanos(number))
    }

    #[test]
    fn a_retried_request_remembers_its_way() {
        let mut record = record(1, None);
        let (one, two): (Arc<str>, Arc<str>) = ("py-1".into(), "py-2".into());
        record.begin(Time::from_nanos(2), &one, 1);
        record.wait(Time::from_nanos(3));
        record.begin(Time::from_nanos(4), &two, 2);
        record.stream(Time::from_nanos(5));
        record.stream(Time::from_nanos(6));
        record.end(RequestState::Complete, None, Time::from_nanos(7));
        let way: Vec<_> =
            record.history.iter().map(|step| (step.state.name(), step.attempt)).collect();
        let wanted = [
            ("PENDING", 0),
            ("PROCESSING", 1),
            ("PENDING", 1),
            ("PROCESSING", 2),
            ("STREAMING", 2),
            ("COMPLETE", 2),
        ];
        assert_eq!(way, wanted);
        assert_eq!(record.began(), Some(Time::from_nanos(2)));
        assert_eq!(record.ended(), Some(Time::from_nanos(7)));
        assert_eq!(record.worker, Some(two));
    }

    #[test]
    fn a_history_is_bounded_and_keeps_its_beginning_and_its_end() {
        let mut record = record(1, None);
        for n in 0..1_000 {
            record.begin(Time::from_nanos(n), &"py-1".into(), n as u32);
        }
        let attempts: Vec<u32> = record.history.iter().map(|step| step.attempt).collect();
        assert_eq!(attempts.len(), STEPS_MAX);
        assert_eq!((attempts[1], attempts[STEPS_MAX - 1]), (0, 999));
    }

    #[test]
    fn the_register_forgets_the_oldest() {
        let mut register = Register::new(3);
        for number in 1..=5 {
            register.keep(record(number, Some(&format!("r{number}"))));
        }
        let numbers: Vec<u64> = register.latest().map(|record| record.number.0).collect();
        assert_eq!(numbers, [5, 4, 3]);
        assert!(register.by_number(RequestId(2)).is_none());
        assert!(register.by_id("r2").is_none());
        assert_eq!(register.by_id("r3").unwrap().number, RequestId(3));
        assert_eq!(register.by_number(RequestId(4)).unwrap().number, RequestId(4));
        assert_eq!(register.named.len(), 3, "ids of the forgotten go with them");
    }

    #[test]
    fn an_id_that_was_used_twice_names_the_last_as_long_as_it_is_there() {
        let mut register = Register::new(2);
        register.keep(record(1, Some("same")));
        register.keep(record(2, Some("same")));
        assert_eq!(register.by_id("same").unwrap().number, RequestId(2));
        register.keep(record(3, None));
        assert_eq!(register.by_id("same").unwrap().number, RequestId(2));
        register.keep(record(4, None));
        assert!(register.by_id("same").is_none());
    }

    #[test]
    fn a_register_of_none_remembers_nothing() {
        let mut register = Register::new(0);
        register.keep(record(1, Some("a")));
        assert!(register.is_empty() && register.by_id("a").is_none());
    }

    #[test]
    fn states_are_found_by_their_names() {
        for state in RequestState::ALL {
            assert_eq!(RequestState::named(state.name()), Some(state));
        }
    }
}
