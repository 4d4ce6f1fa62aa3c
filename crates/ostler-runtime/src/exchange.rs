//! One call between its caller and its worker: the payload on the way in, chunks and one end on
//! the way out. Leaf data under its own lock; it decides nothing.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use ostler_core::RequestId;
use ostler_proto::{Body, Credit};

use crate::failure::CallError;
use crate::link::Link;

#[derive(Debug)]
pub(crate) struct Exchange {
    pub id: RequestId,
    pub function: Box<str>,
    pub body: Body,
    pub stream: bool,
    pub details: Option<Box<Details>>,
    state: Mutex<State>,
}

/// What most calls do not have.
#[derive(Debug, Clone, Default)]
pub(crate) struct Details {
    pub request_id: Option<String>,
    pub traceparent: Option<String>,
    pub idempotent: bool,
}

#[derive(Debug, Default)]
struct State {
    chunks: VecDeque<Body>,
    buffered: usize,
    delivered: u64,
    /// What the worker said last; it becomes the end if the core says so.
    answer: Option<Result<Body, CallError>>,
    end: Option<Result<Body, CallError>>,
    /// Where it runs, to grant credit to.
    link: Option<(Arc<Link>, u64)>,
    /// Consumed since the last grant.
    owed: Owed,
    caller: Option<Waker>,
    reader: Option<Waker>,
    abandoned: bool,
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
    pub fn new(
        id: RequestId,
        function: Box<str>,
        body: Body,
        stream: bool,
        details: Option<Box<Details>>,
    ) -> Self {
        Exchange { id, function, body, stream, details, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds an exchange")
    }

    /// It was handed to a worker, perhaps not for the first time.
    pub fn assigned(&self, link: Arc<Link>, wire_id: u64) {
        let mut state = self.state();
        state.answer = None;
        state.unwaited = false;
        state.owed = Owed::default();
        state.link = Some((link, wire_id));
    }

    pub fn link(&self) -> Option<(Arc<Link>, u64)> {
        self.state().link.clone()
    }

    pub fn worker(&self) -> Option<Arc<str>> {
        self.state().link.as_ref().map(|(link, _)| Arc::clone(&link.name))
    }

    pub fn keep_answer(&self, answer: Result<Body, CallError>) {
        self.state().answer = Some(answer);
    }

    pub fn streamed(&self) -> bool {
        self.state().delivered > 0
    }

    pub fn delivered(&self) -> u64 {
        self.state().delivered
    }

    /// Takes in a chunk; false if the window is overdrawn and the reader had better wait.
    pub fn push_chunk(&self, chunk: Body) -> bool {
        let mut state = self.state();
        if state.abandoned || state.end.is_some() {
            return true;
        }
        state.delivered += 1;
        state.buffered += chunk.len();
        state.chunks.push_back(chunk);
        if let Some(caller) = state.caller.take() {
            caller.wake();
        }
        !state.overfull()
    }

    /// Waits until the caller has taken enough. For workers that know no credit.
    pub fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.abandoned || state.unwaited || state.end.is_some() || !state.overfull() {
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
    pub fn deliver_answer(&self) {
        let mut state = self.state();
        let answer = state.answer.take();
        let answer = answer.expect("the core delivers only what a worker answered");
        state.finish(answer);
    }

    pub fn finish(&self, end: Result<Body, CallError>) {
        self.state().finish(end);
    }

    /// The caller is gone: what still comes is thrown away.
    pub fn abandon(&self) {
        let mut state = self.state();
        state.abandoned = true;
        state.chunks.clear();
        state.buffered = 0;
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
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

impl State {
    fn overfull(&self) -> bool {
        self.chunks.len() >= Credit::DEFAULT.chunks as usize
            || self.buffered >= Credit::DEFAULT.bytes as usize
    }

    fn finish(&mut self, end: Result<Body, CallError>) {
        self.end = Some(end);
        for waker in [self.caller.take(), self.reader.take()].into_iter().flatten() {
            waker.wake();
        }
    }

    /// Grants in halves of the window, so that a stream costs few messages.
    fn took(&mut self, chunk: &Body) -> Option<Grant> {
        self.buffered -= chunk.len();
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        self.owed.chunks += 1;
        self.owed.bytes = self.owed.bytes.saturating_add(chunk.len() as u32);
        let half = Credit { chunks: Credit::DEFAULT.chunks / 2, bytes: Credit::DEFAULT.bytes / 2 };
        let due = self.owed.chunks >= half.chunks || self.owed.bytes >= half.bytes;
        if !due || self.end.is_some() {
            return None;
        }
        let owed = std::mem::take(&mut self.owed);
        let (link, wire_id) = self.link.clone()?;
        let credit = Credit { chunks: owed.chunks, bytes: owed.bytes };
        Some(Grant { link, wire_id, credit })
    }
}
