//! Facts that the shell reports, in the past tense. None of them carries a payload.

use std::time::Duration;

use crate::id::{LeaseId, OrderId, ProcessId, RecordId, RequestId, WorkerId};
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
            fingerprint: 0,
            ancestors: Vec::new(),
        }
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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recording {
    Stored,
    /// Certainly not stored.
    Refused,
    /// Perhaps stored. The same record will be sent again.
    Unknown,
}
