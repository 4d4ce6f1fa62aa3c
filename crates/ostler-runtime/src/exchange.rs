//! One call between its caller and its worker: the payload on the way in, chunks and one end on
//! the way out. Leaf data under its own lock; it decides nothing.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use ostler_core::{Continuity, Refusal, RequestId, Started, Time};
use ostler_proto::{Body, Credit};
use serde_json::value::RawValue;

use crate::chronicle::{CancelledBy, Ended};
use crate::duty::{Duty, Listener};
use crate::failure::{CallError, Failure, Refused};
use crate::link::Link;
use crate::naming;
use crate::record::{RequestRecord, RequestState};

#[derive(Debug)]
pub(crate) struct Exchange {
    pub id: RequestId,
    pub function: Arc<str>,
    pub body: Body,
    pub stream: bool,
    pub deadline: Time,
    pub priority: i8,
    pub owner: u64,
    pub details: Option<Box<Details>>,
    state: Mutex<State>,
}

/// What most calls do not have.
#[derive(Debug, Clone, Default)]
pub(crate) struct Details {
    pub request_id: Option<Arc<str>>,
    pub traceparent: Option<String>,
    pub idempotent: bool,
    /// The session it belongs to, and its number.
    pub session: Option<Arc<str>>,
    pub session_number: u64,
    /// The requests that wait for this one, oldest first: each with the number of its pool.
    pub lineage: Vec<(u64, RequestId)>,
    pub duty: Option<Arc<Duty>>,
    pub listener: Option<Arc<dyn Listener>>,
}

#[derive(Debug)]
struct State {
    /// Gone to the register once it has its end.
    record: Option<RequestRecord>,
    attempt: u32,
    cancelled_by: CancelledBy,
    chunks: VecDeque<Body>,
    buffered: usize,
    delivered: u64,
    /// What the worker said last; it becomes the end if the core says so.
    answer: Option<Result<Body, CallError>>,
    end: Option<Result<Body, CallError>>,
    /// Where it runs, to grant credit to; nowhere once it has its end.
    link: Option<(Arc<Link>, u64)>,
    /// Who worked on it last.
    worker: Option<Arc<str>>,
    /// What its session found there.
    continuity: Option<Continuity>,
    /// Consumed since the last grant.
    owed: Owed,
    caller: Option<Waker>,
    reader: Option<Waker>,
    abandoned: bool,
    continues: bool,
    /// Nothing is gained by letting its reader wait.
    unwaited: bool,
}

#[derive(Debug, Default, Clone, Copy)]
struct Owed {
    chunks: u32,
    bytes: u32,
}

/// What a caller gets next.
#[derive(Debug)]
pub enum Item {
    Chunk(Body),
    End(Result<Body, CallError>),
}

impl Exchange {
    pub fn new(id: RequestId, part: Part, details: Option<Box<Details>>, now: Time) -> Self {
        let Part { function, body, stream, deadline, priority, owner } = part;
        let name = details.as_ref().and_then(|details| details.request_id.clone());
        let record = RequestRecord::new(id, name, Arc::clone(&function), now);
        let state = Mutex::new(State::new(record));
        Exchange { id, function, body, stream, deadline, priority, owner, details, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds an exchange")
    }

    /// It was handed to a worker, perhaps not for the first time.
    pub fn assigned(&self, link: Arc<Link>, wire_id: u64, began: Began) {
        let mut state = self.state();
        state.attempt = began.attempt;
        if !began.prefetched {
            state.note(|record| record.begin(began.now, &link.name, began.attempt));
        }
        state.worker = Some(Arc::clone(&link.name));
        state.continuity = began.continuity;
        state.unwaited = false;
        state.owed = Owed::default();
        let name = Arc::clone(&link.name);
        state.link = Some((link, wire_id));
        drop(state);
        if !began.prefetched {
            self.tell(|listener| listener.began(&name));
        }
    }

    /// It lay behind another one and has moved up.
    pub fn moved_up(&self, now: Time) {
        let mut state = self.state();
        if let Some((link, _)) = state.link.clone() {
            let attempt = state.attempt;
            state.note(|record| record.begin(now, &link.name, attempt));
            drop(state);
            self.tell(|listener| listener.began(&link.name));
        }
    }

    /// Whoever listens is told outside of the lock.
    pub fn tell(&self, tell: impl FnOnce(&dyn Listener)) {
        let listener = self.details.as_ref().and_then(|details| details.listener.as_deref());
        if let Some(listener) = listener {
            tell(listener);
        }
    }

    /// It waits for its next attempt.
    pub fn waits_again(&self, now: Time) {
        self.state().note(|record| record.wait(now));
    }

    pub fn progressed(&self, progress: Box<RawValue>) {
        self.state().note(|record| record.progress = Some(progress));
    }

    /// What is known of it; none once it has its end.
    pub fn record(&self) -> Option<RequestRecord> {
        let state = self.state();
        let record = state.record.clone()?;
        Some(RequestRecord { chunks: state.delivered, ..record })
    }

    pub fn link(&self) -> Option<(Arc<Link>, u64)> {
        self.state().link.clone()
    }

    pub fn worker(&self) -> Option<Arc<str>> {
        self.state().worker.clone()
    }

    pub fn continuity(&self) -> Option<Continuity> {
        self.state().continuity
    }

    /// The id that its caller gave.
    pub fn given_id(&self) -> Option<Arc<str>> {
        self.details.as_ref()?.request_id.clone()
    }

    /// The id by which it is known outside: the caller's own, or one made of its numbers.
    pub fn name(&self, pool: u64) -> Arc<str> {
        self.given_id().unwrap_or_else(|| naming::made_id(pool, self.id).into())
    }

    pub fn keep_answer(&self, answer: Result<Body, CallError>) {
        self.state().answer = Some(answer);
    }

    /// It came back without having begun: what an earlier attempt ended in still counts.
    pub fn keep_unless_answered(&self, answer: Result<Body, CallError>) {
        self.state().answer.get_or_insert(answer);
    }

    pub fn streamed(&self) -> bool {
        self.state().delivered > 0
    }

    pub fn delivered(&self) -> u64 {
        self.state().delivered
    }

    /// Takes in a chunk.
    pub fn push_chunk(&self, chunk: Body, now: impl FnOnce() -> Time) -> Pushed {
        let mut state = self.state();
        if state.ended() {
            return Pushed::Fits;
        }
        state.delivered += 1;
        if state.delivered == 1 {
            state.note(|record| record.stream(now()));
        }
        if state.abandoned {
            let grant = if state.continues { state.owe(&chunk) } else { None };
            return grant.map_or(Pushed::Fits, Pushed::Discarded);
        }
        state.buffered += chunk.len();
        state.chunks.push_back(chunk);
        if let Some(caller) = state.caller.take() {
            caller.wake();
        }
        match state.overfull() {
            false => Pushed::Fits,
            true if state.beyond() => Pushed::Beyond,
            true => Pushed::Full,
        }
    }

    /// Waits until the caller has taken enough. For workers that know no credit.
    pub fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.abandoned || state.unwaited || state.ended() || !state.overfull() {
            return Poll::Ready(());
        }
        state.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    pub fn release_reader(&self) {
        let mut state = self.state();
        state.unwaited = true;
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
    }

    /// The core has decided: what the worker answered.
    pub fn deliver_answer(&self, now: Time) -> Ended {
        let mut state = self.state();
        let answer = state.answer.take();
        debug_assert!(answer.is_some(), "the core delivers only what a worker answered");
        let none = || Err(Failure::Cancelled { started: Started::Unknown }.into());
        state.finish(answer.unwrap_or_else(none), now)
    }

    /// Its one end; what is to be remembered of it.
    pub fn finish(&self, end: Result<Body, CallError>, now: Time) -> Ended {
        self.state().finish(end, now)
    }

    pub fn note_cancel(&self, by: CancelledBy) {
        self.state().cancelled_by = by;
    }

    /// The caller is gone: what still comes is thrown away. `continues`: the worker is to go on all
    /// the same, so what was thrown away is credited to it.
    pub fn abandon(&self, continues: bool) -> Option<Grant> {
        let mut state = self.state();
        state.abandoned = true;
        state.continues = continues;
        while let Some(chunk) = state.chunks.pop_front() {
            state.note_owed(&chunk);
        }
        state.buffered = 0;
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
        if continues { state.grant() } else { None }
    }

    /// The next chunk or the end, and what credit the worker is owed for the chunks taken.
    pub fn poll_item(&self, cx: &mut Context<'_>) -> Poll<(Item, Option<Grant>)> {
        let mut state = self.state();
        if let Some(chunk) = state.chunks.pop_front() {
            let grant = state.took(&chunk);
            return Poll::Ready((Item::Chunk(chunk), grant));
        }
        if let Some(end) = state.end.take() {
            return Poll::Ready((Item::End(end), None));
        }
        match &mut state.caller {
            Some(waker) => waker.clone_from(cx.waker()),
            None => state.caller = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

/// Credit to send to a worker.
#[derive(Debug)]
pub(crate) struct Grant {
    pub link: Arc<Link>,
    pub wire_id: u64,
    pub credit: Credit,
}

/// What a call is made of.
#[derive(Debug)]
pub(crate) struct Part {
    pub function: Arc<str>,
    pub body: Body,
    pub stream: bool,
    pub deadline: Time,
    pub priority: i8,
    pub owner: u64,
}

/// How an assignment begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Began {
    pub now: Time,
    pub attempt: u32,
    pub prefetched: bool,
    pub continuity: Option<Continuity>,
}

/// What became of a chunk.
#[derive(Debug)]
pub(crate) enum Pushed {
    Fits,
    /// The window is used up: the reader had better wait.
    Full,
    /// More than a worker could send that heeds its credit.
    Beyond,
    /// Nobody waits for it; the worker gets its credit all the same.
    Discarded(Grant),
}

impl State {
    fn new(record: RequestRecord) -> Self {
        State {
            record: Some(record),
            attempt: 0,
            cancelled_by: CancelledBy::default(),
            chunks: VecDeque::new(),
            buffered: 0,
            delivered: 0,
            answer: None,
            end: None,
            link: None,
            worker: None,
            continuity: None,
            owed: Owed::default(),
            caller: None,
            reader: None,
            abandoned: false,
            continues: false,
            unwaited: false,
        }
    }

    fn note(&mut self, note: impl FnOnce(&mut RequestRecord)) {
        if let Some(record) = &mut self.record {
            note(record);
        }
    }

    fn ended(&self) -> bool {
        self.record.is_none()
    }

    /// The last chunk may go over the bytes, but there is no other behind it.
    fn beyond(&self) -> bool {
        let last = self.chunks.back().map_or(0, Body::len);
        self.chunks.len() > Credit::DEFAULT.chunks as usize
            || self.buffered - last > Credit::DEFAULT.bytes as usize
    }

    fn overfull(&self) -> bool {
        self.chunks.len() >= Credit::DEFAULT.chunks as usize
            || self.buffered >= Credit::DEFAULT.bytes as usize
    }

    fn finish(&mut self, end: Result<Body, CallError>, now: Time) -> Ended {
        let mut record = self.record.take().expect("a request ends once");
        let began = record.began().is_some();
        let (state, code) = match &end {
            Ok(_) => (RequestState::Complete, None),
            Err(error) => (ended_as(error, began), Some(error.known().code)),
        };
        record.chunks = self.delivered;
        record.end(state, code, now);
        self.end = Some(end);
        for waker in [self.caller.take(), self.reader.take()].into_iter().flatten() {
            waker.wake();
        }
        let worker = self.link.take().map(|(link, _)| link.process.worker);
        Ended { record, cancelled_by: self.cancelled_by, worker }
    }

    fn took(&mut self, chunk: &Body) -> Option<Grant> {
        self.buffered -= chunk.len();
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        self.owe(chunk)
    }

    /// Grants in halves of the window, so that a stream costs few messages.
    fn owe(&mut self, chunk: &Body) -> Option<Grant> {
        self.note_owed(chunk);
        let half = Credit { chunks: Credit::DEFAULT.chunks / 2, bytes: Credit::DEFAULT.bytes / 2 };
        let due = self.owed.chunks >= half.chunks || self.owed.bytes >= half.bytes;
        if due { self.grant() } else { None }
    }

    fn note_owed(&mut self, chunk: &Body) {
        self.owed.chunks += 1;
        self.owed.bytes = self.owed.bytes.saturating_add(chunk.len() as u32);
    }

    fn grant(&mut self) -> Option<Grant> {
        if self.ended() || self.owed.chunks == 0 {
            return None;
        }
        let owed = std::mem::take(&mut self.owed);
        let (link, wire_id) = self.link.clone()?;
        let credit = Credit { chunks: owed.chunks, bytes: owed.bytes };
        Some(Grant { link, wire_id, credit })
    }
}

/// The state that an error leads to. What no worker began was turned away, unless its time ran out.
fn ended_as(error: &CallError, began: bool) -> RequestState {
    match error {
        CallError::Failed(Failure::Cancelled { .. }) => RequestState::Cancelled,
        CallError::Refused(Refused::Pool(Refusal::QueueTimeout)) => RequestState::Error,
        CallError::Refused(_) if !began => RequestState::Rejected,
        CallError::Refused(_) | CallError::Failed(_) => RequestState::Error,
    }
}
