//! A fake worker process: a stream of requests it has not begun, those it works on, and its vices.
//! It knows nothing of the pool; the world moves it.

use std::collections::VecDeque;

use ostler_core::{Answer, ProcessId, RequestId, SessionId, Time};

#[derive(Debug)]
pub struct Process {
    pub id: ProcessId,
    pub life: Life,
    /// Requests that it works on at a time.
    pub capacity: usize,
    /// Read in this order; nothing in here has begun.
    pub stream: VecDeque<Work>,
    pub running: Vec<Work>,
    pub vices: Vices,
    /// Stopped by the supervisor, or by a stranger.
    pub frozen: bool,
    pub stopped: bool,
    /// What it will do as soon as it may move again.
    pub deferred: Vec<Step>,
    /// The last moment for which something of it is on its way to the core.
    pub reported_until: Time,
    pub stream_closed: bool,
    pub answers_pings: bool,
    /// Until when it says that it is not well, and until when it does not hear the question.
    pub unwell_until: Time,
    pub deaf_until: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    Starting,
    Up,
    Dead,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    pub request: RequestId,
    pub attempt: u32,
    pub streamed: bool,
    pub end: End,
    /// It is going to make a call of its own, or waits for the end of that one.
    pub inner: Option<Inner>,
}

/// How an execution is going to end, if nothing comes between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Answer(Answer),
    /// The answer is written twice.
    Twice(Answer),
    /// It dies before it answers, or right after.
    Die,
    AnswerAndDie(Answer),
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inner {
    ToCome,
    Awaited(RequestId),
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Vices {
    pub ignores_cancel: bool,
    pub ignores_term: bool,
    pub ignores_shutdown: bool,
}

/// One thing that a process does, or that is done to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    BecomeReady,
    /// Read the stream, begin what there is room for.
    PickUp,
    /// Make the call that this one needs.
    CallOut {
        request: RequestId,
        attempt: u32,
    },
    Finish {
        request: RequestId,
        attempt: u32,
    },
    /// `withdraw`: only if it has not begun.
    SeeCancel {
        request: RequestId,
        attempt: u32,
        withdraw: bool,
    },
    SeePing,
    SeeCheck,
    /// Asked to hand over what it keeps of a session.
    SeeSave {
        session: SessionId,
    },
    Saved {
        session: SessionId,
        saved: bool,
    },
    SeeShutdown,
    SeeTerm,
    Die,
}

impl Process {
    pub fn new(id: ProcessId, capacity: usize, vices: Vices) -> Self {
        Process {
            id,
            life: Life::Starting,
            capacity,
            stream: VecDeque::new(),
            running: Vec::new(),
            vices,
            frozen: false,
            stopped: false,
            deferred: Vec::new(),
            reported_until: Time::ZERO,
            stream_closed: false,
            answers_pings: true,
            unwell_until: Time::ZERO,
            deaf_until: Time::ZERO,
        }
    }

    pub fn moves(&self) -> bool {
        !self.frozen && !self.stopped
    }

    pub fn take_unstarted(&mut self, request: RequestId, attempt: u32) -> Option<Work> {
        let at = self.stream.iter().position(|work| work.is(request, attempt))?;
        self.stream.remove(at)
    }

    pub fn take_running(&mut self, request: RequestId, attempt: u32) -> Option<Work> {
        let at = self.running.iter().position(|work| work.is(request, attempt))?;
        Some(self.running.swap_remove(at))
    }

    pub fn working(&mut self, request: RequestId, attempt: u32) -> Option<&mut Work> {
        self.running.iter_mut().find(|work| work.is(request, attempt))
    }

    pub fn runs(&self, request: RequestId, attempt: u32) -> bool {
        self.running.iter().any(|work| work.is(request, attempt))
    }
}

impl Work {
    pub fn sent(request: RequestId, attempt: u32) -> Self {
        Work { request, attempt, streamed: false, end: End::Never, inner: None }
    }

    fn is(&self, request: RequestId, attempt: u32) -> bool {
        self.request == request && self.attempt == attempt
    }
}
