//! Facts that the shell reports, in the past tense. None of them carries a payload.

use std::time::Duration;

use crate::id::{KeyId, LeaseId, OrderId, ProcessId, RecordId, RequestId, SessionId, WorkerId};
use crate::settings::Settings;
use crate::time::Time;

#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The pool may make its workers now.
    PoolStarted,
    /// `next_deadline` has come.
    DeadlineReached,
    /// `now`: do not wait for anything, kill.
    ShutdownRequested {
        now: bool,
    },

    RequestArrived {
        request: RequestId,
        spec: RequestSpec,
    },
    CancelRequested {
        request: RequestId,
    },

    /// There is no process: it never came to be.
    SpawnFailed {
        process: ProcessId,
        cause: SpawnFailure,
    },
    ProcessReady {
        process: ProcessId,
        ready: Ready,
    },
    /// The worker has let go of a request. The answer itself stays with the shell.
    Answered {
        process: ProcessId,
        request: RequestId,
        attempt: u32,
        answer: Answer,
        streamed: bool,
    },
    /// The answer to `CheckHealth`.
    HealthReported {
        process: ProcessId,
        well: bool,
    },
    /// Some frame came after the last `Ping`.
    ProcessHeard {
        process: ProcessId,
    },
    /// The process asked to be replaced.
    RetireAsked {
        process: ProcessId,
    },
    /// Resident bytes of the process and its descendants.
    MemoryMeasured {
        process: ProcessId,
        bytes: u64,
    },
    /// The machine has little memory left, or enough again.
    PressureChanged {
        high: bool,
    },
    /// The answer to `SaveSession`.
    SessionSaved {
        process: ProcessId,
        session: SessionId,
        saved: bool,
    },
    /// The session is no more: deleted or expired.
    SessionEnded {
        session: SessionId,
    },
    /// Nobody will ask for this key again.
    KeyEnded {
        key: KeyId,
    },
    /// The process cannot be trusted any more: its memory or its device is in doubt.
    ProcessTainted {
        process: ProcessId,
    },
    StreamClosed {
        process: ProcessId,
    },
    ProtocolViolated {
        process: ProcessId,
    },
    /// The process was waited for. All that it had written was read and reported before.
    ProcessExited {
        process: ProcessId,
        exit: Exit,
        /// Requests of which the caller has seen chunks.
        streamed: Vec<RequestId>,
    },
    /// Nothing that the process had started is left either.
    ProcessCleared {
        process: ProcessId,
    },

    LeaseRequested {
        lease: LeaseId,
        spec: LeaseSpec,
    },
    LeaseRenewed {
        lease: LeaseId,
        ttl: Duration,
    },
    LeaseReleased {
        lease: LeaseId,
        discard: bool,
    },

    Ordered {
        order: OrderId,
        action: Action,
    },

    /// A new kind of worker is to take over, under these settings, if it proves itself.
    ReloadOrdered {
        order: OrderId,
        settings: Box<Settings>,
    },

    /// What the store says of a `Record`.
    Recorded {
        record: RecordId,
        result: Recording,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct RequestSpec {
    pub deadline: Time,
    /// −100..=100, higher first.
    pub priority: i8,
    /// Whom fairness is owed to.
    pub owner: u64,
    /// The caller allows more than one execution.
    pub idempotent: bool,
    pub target: Target,
    /// The session it belongs to.
    pub bond: Option<Bond>,
    /// Whose worker is meant, in a keyed pool.
    pub key: Option<KeyId>,
    /// Of function and payload: the same request has the same. 0: nobody took one.
    pub fingerprint: u64,
    /// Requests of this pool that wait for this one, if it was made by one of them.
    pub ancestors: Vec<RequestId>,
}

impl RequestSpec {
    /// A plain call to whoever is free.
    pub fn until(deadline: Time) -> Self {
        RequestSpec {
            deadline,
            priority: 0,
            owner: 0,
            idempotent: false,
            target: Target::Any,
            bond: None,
            key: None,
            fingerprint: 0,
            ancestors: Vec::new(),
        }
    }
}

/// How a request belongs to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bond {
    pub session: SessionId,
    pub affinity: Affinity,
}

/// How much a session insists on its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Affinity {
    /// Rather its own, else any other.
    #[default]
    Hint,
    /// Its own, and wait for it.
    StrictQueue,
    /// Its own, and at once.
    StrictFailFast,
}

impl Affinity {
    pub fn strict(self) -> bool {
        self != Affinity::Hint
    }
}

/// Who may serve a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    Any,
    Worker(WorkerId),
    /// The n-th place of a lease.
    Lease(LeaseId, u32),
}

#[derive(Debug, Clone, PartialEq)]
pub struct LeaseSpec {
    /// Places wanted, each on a worker of its own, all at once or none.
    pub workers: u32,
    pub ttl: Duration,
    /// Refused if it cannot be granted by then.
    pub deadline: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// What the process says it can do at a time.
    pub capacity: Option<u32>,
    /// Whether it answers pings.
    pub heartbeat: bool,
    /// Whether it gives back a request that it has not begun, also while it works on another.
    pub gives_back: bool,
    /// Whether it hands over the state of a session when asked to.
    pub saves_sessions: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpawnFailure {
    /// The system refused for want of memory, processes or descriptors.
    Exhausted,
    /// The program cannot be run.
    Broken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Completed,
    Failed {
        retryable: bool,
    },
    /// The handler was interrupted, or `started` is false and it never ran.
    Cancelled {
        started: bool,
    },
    /// The shell could not or need not write it: the worker never saw it.
    NotSent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// Killed by the kernel for want of memory.
    OutOfMemory,
    /// Waited for by someone who could not say how it ended.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Create,
    Start(WorkerId),
    Pause {
        worker: WorkerId,
        freeze: bool,
    },
    Resume(WorkerId),
    Complete(WorkerId),
    Terminate(WorkerId),
    /// Planned replacement: a new worker, and when it is ready this one ends.
    Recycle(WorkerId),
    /// All workers, one after the other.
    RecyclePool,
    /// Nothing new is given to workers; requests wait.
    PausePool,
    /// Undoes a pause, and a drain.
    ResumePool,
    /// Nobody new is let in; those inside are served.
    DrainPool,
    Scale {
        min: u32,
        max: u32,
    },
    Bind {
        session: SessionId,
        worker: WorkerId,
    },
    Unbind(SessionId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recording {
    Stored,
    /// Certainly not stored.
    Refused,
    /// Perhaps stored. The same record will be sent again.
    Unknown,
}
