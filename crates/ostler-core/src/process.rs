//! What a worker runs on just now.
//!
//! ```text
//!   Starting ──ready──▶ Serving ──▶ Stopping(Drain ▶ Ask ▶ Term ▶ Kill) ──▶ Exited ──▶ (cleared)
//!       └───────────────────────────────▲                                    ▲
//!       └─────────────── exit, from any of them ─────────────────────────────┘
//! ```
//! Ready, busy and degraded are read off a serving process; `shown` only remembers what was told.

use crate::command::{Phase, StopReason};
use crate::event::Exit;
use crate::id::{LeaseId, RequestId, SessionId};
use crate::time::Time;

#[derive(Debug)]
pub(crate) struct Process {
    pub generation: u32,
    pub edition: u32,
    pub capacity: u32,
    /// Requests that may wait in its stream.
    pub prefetch: u32,
    pub state: State,
    /// What was sent and not let go of, in the order of sending.
    pub held: Vec<Held>,
    /// Places that belong to leases, granted or reserved.
    pub leases: Vec<LeaseId>,
    pub heard: Time,
    /// The first ping since then.
    pub pinged: Option<Time>,
    pub heartbeat: bool,
    /// It hands over the state of a session when asked to.
    pub saves_sessions: bool,
    /// Requests that it has let go of.
    pub served: u64,
    /// Resident bytes of it and its descendants, as last measured.
    pub memory: u64,
    /// It missed a heartbeat while it had nothing to do.
    pub silent: bool,
    pub unresponsive: bool,
    /// Checks that failed in a row.
    pub failed_checks: u32,
    /// A check is under way.
    pub asked_if_well: Option<Time>,
    /// It has answered one, so it knows how.
    pub answers_checks: bool,
    /// It asked to go: no new work, and a successor is on its way.
    pub leaving: bool,
    pub frozen: bool,
    /// Something could not be written to it: no new work until it is heard.
    pub mute: bool,
    pub last_answer: Time,
    /// It said that it is ready.
    pub was_ready: bool,
    /// The phase that was last told of, and since when.
    pub shown: (Phase, Time),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Starting,
    Serving,
    Stopping { step: Step, reason: StopReason },
    Exited { exit: Exit, reason: Option<StopReason> },
}

/// The rungs of the stop ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Drain,
    Ask,
    Term,
    Kill,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    pub request: RequestId,
    pub attempt: u32,
    pub sent: Time,
    pub lease: Option<LeaseId>,
    pub fingerprint: u64,
    /// The session that runs here with it, on its own process.
    pub bond: Option<SessionId>,
    pub hold: Hold,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    Live,
    /// Asked back before it started, to run elsewhere.
    Withdrawing,
    /// Its caller has an outcome; it counts until the worker lets go.
    Abandoned {
        since: Time,
    },
}

impl Hold {
    /// Somebody still wants its answer.
    pub fn waited_for(self) -> bool {
        !matches!(self, Hold::Abandoned { .. })
    }
}

impl Process {
    pub fn starting((generation, edition): (u32, u32), capacity: u32, now: Time) -> Self {
        Process {
            generation,
            edition,
            capacity,
            prefetch: 0,
            state: State::Starting,
            held: Vec::new(),
            leases: Vec::new(),
            heard: now,
            pinged: None,
            heartbeat: false,
            saves_sessions: false,
            served: 0,
            memory: 0,
            silent: false,
            unresponsive: false,
            failed_checks: 0,
            asked_if_well: None,
            answers_checks: false,
            leaving: false,
            frozen: false,
            mute: false,
            last_answer: now,
            was_ready: false,
            shown: (Phase::Starting, now),
        }
    }

    pub fn phase(&self) -> Phase {
        match self.state {
            State::Starting => Phase::Starting,
            State::Serving if self.degraded() => Phase::Degraded,
            State::Serving if self.held.len() >= self.capacity as usize => Phase::Busy,
            State::Serving => Phase::Ready,
            State::Stopping { .. } => Phase::Stopping,
            State::Exited { .. } => Phase::Dead,
        }
    }

    pub fn stopping(&self) -> Option<StopReason> {
        match self.state {
            State::Stopping { reason, .. } => Some(reason),
            State::Exited { reason, .. } => reason,
            State::Starting | State::Serving => None,
        }
    }

    pub fn serving(&self) -> bool {
        self.state == State::Serving
    }

    pub fn exited(&self) -> bool {
        matches!(self.state, State::Exited { .. })
    }

    pub fn degraded(&self) -> bool {
        self.silent || self.failed_checks > 0
    }

    /// It works and may be given work, as far as it is concerned.
    pub fn well(&self) -> bool {
        self.serving() && !self.degraded() && !self.leaving && !self.mute
    }

    /// Places in use: requests outside leases, and the places of leases.
    pub fn used(&self) -> usize {
        self.held.iter().filter(|held| held.lease.is_none()).count() + self.leases.len()
    }

    pub fn idle(&self) -> bool {
        self.held.is_empty() && self.leases.is_empty()
    }

    pub fn position(&self, request: RequestId, attempt: u32) -> Option<usize> {
        self.held.iter().position(|held| held.request == request && held.attempt == attempt)
    }

    /// Those behind the first `capacity` cannot have started: a worker answers before it goes on.
    pub fn may_have_started(&self, position: usize) -> bool {
        position < self.capacity as usize
    }

    pub fn has_live_work(&self) -> bool {
        self.held.iter().any(|held| held.hold.waited_for())
    }
}
