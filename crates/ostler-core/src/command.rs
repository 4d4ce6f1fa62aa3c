//! Orders to the shell, in the imperative, to be carried out in their order.

use std::time::Duration;

use crate::event::Exit;
use crate::id::{LeaseId, OrderId, ProcessId, RecordId, RequestId, WorkerId};
use crate::status::{Status, Trigger};
use crate::time::Time;

#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    Spawn {
        process: ProcessId,
    },
    /// Write the request to this process. `prefetched`: behind another one.
    Assign {
        request: RequestId,
        attempt: u32,
        process: ProcessId,
        deadline: Time,
        /// Executions that may have begun before this one.
        tries: u32,
        prefetched: bool,
    },
    /// One that lay behind another may begin now.
    Begin {
        request: RequestId,
        process: ProcessId,
    },
    /// Tell the worker to let go of a request. `withdraw`: only if it has not begun, because it
    /// is to run elsewhere.
    Cancel {
        request: RequestId,
        attempt: u32,
        process: ProcessId,
        withdraw: bool,
    },
    /// The request's one outcome.
    Resolve {
        request: RequestId,
        outcome: Outcome,
    },
    /// The request's one outcome, too: nothing ran.
    Refuse {
        request: RequestId,
        refusal: Refusal,
    },

    Ping {
        process: ProcessId,
    },
    /// Ask the worker whether it is well.
    CheckHealth {
        process: ProcessId,
    },
    AskShutdown {
        process: ProcessId,
    },
    Terminate {
        process: ProcessId,
    },
    /// SIGKILL, and everything that the process started with it.
    Kill {
        process: ProcessId,
    },
    Freeze {
        process: ProcessId,
    },
    Thaw {
        process: ProcessId,
    },

    Grant {
        lease: LeaseId,
        places: Vec<ProcessId>,
    },
    RefuseLease {
        lease: LeaseId,
        refusal: Refusal,
    },
    /// One place of a lease went with its process.
    LosePlace {
        lease: LeaseId,
        place: u32,
    },
    EndLease {
        lease: LeaseId,
        reason: LeaseEnd,
    },

    /// Store this change. It counts once `Recorded` says so.
    Record {
        record: RecordId,
        change: Change,
    },
    Reply {
        order: OrderId,
        reply: Reply,
    },
    Notify(Notice),
    /// Every process is gone and cleared, and no new one will come.
    Stopped,
}

/// How a request ended that may have run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Deliver what the worker answered.
    Answered,
    Cancelled {
        started: Started,
    },
    TimedOut {
        phase: Waiting,
        started: Started,
    },
    /// Its process ended first.
    Lost {
        exit: Exit,
        reason: LossReason,
        started: Started,
    },
}

/// Whether the request's handler began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Started {
    No,
    Yes,
    Unknown,
}

/// What a request waited for when its deadline came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    Queue,
    Retry,
    Worker,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossReason {
    Crashed,
    Stopped(StopReason),
}

/// Nothing ran; asking again is safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    Saturated {
        queued: u32,
        busy: u32,
        oldest: Duration,
    },
    QueueTimeout,
    /// By the pool's own estimate it would end too late.
    DeadlineUnreachable {
        queued: u32,
        estimate: Duration,
    },
    /// It killed two processes.
    Quarantined {
        exit: Exit,
        left: Duration,
    },
    /// Its ancestors hold all the places that it could have.
    NestedDeadlock,
    ShuttingDown,
    /// The breaker is open and no worker lives.
    PoolFailed,
    NoSuchWorker,
    /// The worker is there, but not in service.
    WorkerNotServing,
    NoSuchLease,
    /// More workers than the pool has.
    TooManyWorkers,
    LeaseTimeout,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseEnd {
    Released,
    Expired,
    /// Its last process went.
    Lost,
    ShuttingDown,
}

/// Why the core stopped a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StopReason {
    Shutdown,
    Retired,
    Discarded,
    Terminated,
    Paused,
    ForcedCancel,
    StartTimeout,
    StreamClosed,
    ProtocolViolation,
    HeartbeatLost,
    /// Too many checks failed in a row.
    Unhealthy,
    Tainted,
    Hung,
    GaveUp,
}

impl StopReason {
    /// Unplanned stops count against the restart budget.
    pub fn planned(self) -> bool {
        use StopReason::*;
        match self {
            Shutdown | Retired | Discarded | Terminated | Paused | ForcedCancel | GaveUp => true,
            StartTimeout | StreamClosed | ProtocolViolation | HeartbeatLost | Unhealthy
            | Tainted | Hung => false,
        }
    }
}

/// A worker's change of status, as the store keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// `None`: the worker comes into being.
    pub from: Option<Status>,
    pub to: Status,
    pub trigger: Trigger,
    pub order: Option<OrderId>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    Done {
        worker: WorkerId,
        status: Status,
    },
    NoSuchWorker,
    /// The status does not allow it.
    Illegal {
        from: Status,
        to: Status,
        allowed: Vec<Status>,
    },
    /// Another change of this worker is being stored.
    InTransition,
    StoreRefused,
    /// It did not take effect in time; the worker was terminated.
    TimedOut,
    DedicatedFull,
    ShuttingDown,
}

/// Something to tell whoever watches. Nothing depends on it.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    StatusChanged {
        worker: WorkerId,
        change: Change,
    },
    PhaseChanged {
        process: ProcessId,
        /// `None`: it was spawned.
        from: Option<Phase>,
        to: Phase,
        reason: PhaseReason,
        /// Spent in `from`.
        after: Duration,
    },
    Crashed {
        process: ProcessId,
        exit: Exit,
    },
    Unresponsive {
        process: ProcessId,
    },
    HeartbeatMissed {
        process: ProcessId,
        misses: u32,
    },
    Checked {
        process: ProcessId,
        result: CheckResult,
    },
    /// There will be another attempt.
    Retried {
        request: RequestId,
        /// Its process ended; otherwise the worker said that it may be tried again.
        lost: bool,
    },
    /// This request is refused from now on.
    Quarantined {
        request: RequestId,
        process: ProcessId,
        exit: Exit,
    },
    Stopping {
        process: ProcessId,
        reason: StopReason,
    },
    /// A message of an older incarnation, attempt or request changed nothing.
    StaleDropped {
        process: ProcessId,
    },
    RestartDelayed {
        worker: WorkerId,
        delay: Duration,
    },
    BreakerOpened {
        until: Time,
    },
    BreakerClosed,
    FirstReady,
    AllReady,
}

/// Why a phase changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PhaseReason {
    Spawned,
    Ready,
    /// Load reached capacity.
    Filled,
    /// Load fell below it.
    Freed,
    HeartbeatMissed,
    Heard,
    CheckFailed,
    CheckPassed,
    Stopped(StopReason),
    Exited,
    SpawnFailed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CheckResult {
    Passed,
    Failed,
    TimedOut,
}

/// A process as others see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    Starting,
    Ready,
    Busy,
    Degraded,
    Stopping,
    Dead,
}
