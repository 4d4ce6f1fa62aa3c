//! Orders to the shell, in the imperative, to be carried out in their order.

use std::time::Duration;

use crate::event::Exit;
use crate::id::{LeaseId, OrderId, ProcessId, RecordId, RequestId, SessionId, WorkerId};
use crate::status::{Status, Trigger};
use crate::time::Time;

#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// `edition`: which kind of worker; a reload makes a new one.
    Spawn {
        process: ProcessId,
        edition: u32,
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
        /// What its session finds there, if it has one.
        continuity: Option<Continuity>,
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
    /// Have the worker hand over what it keeps of a session.
    SaveSession {
        process: ProcessId,
        session: SessionId,
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
    /// The pool lets nobody new in.
    PoolDraining,
    /// The process of its session is gone, and with it what it kept. Told once.
    SessionWorkerLost,
    /// The worker of its session is not free, and it does not wait.
    WorkerBusy,
    /// A keyed pool, and no key.
    KeyRequired,
    /// Workers of a keyed pool are not lent to anybody.
    NotInKeyedPool,
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
    Retired(Retirement),
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
    /// Beyond the hard limit.
    MemoryExceeded,
    GaveUp,
}

/// Why a worker is to go that did nothing wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Retirement {
    /// It asked to.
    Asked,
    /// Somebody ordered it.
    Ordered,
    Ttl,
    MaxRequests,
    Memory,
    Idle,
    /// Its place is needed for another key.
    Evicted,
    /// The pool was made smaller.
    Scaled,
    Reloaded,
    /// Its session is no more.
    KeyEnded,
}

impl Retirement {
    pub const ALL: [Retirement; 10] = [
        Retirement::Asked,
        Retirement::Ordered,
        Retirement::Ttl,
        Retirement::MaxRequests,
        Retirement::Memory,
        Retirement::Idle,
        Retirement::Evicted,
        Retirement::Scaled,
        Retirement::Reloaded,
        Retirement::KeyEnded,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Retirement::Asked => "asked",
            Retirement::Ordered => "ordered",
            Retirement::Ttl => "ttl",
            Retirement::MaxRequests => "max_requests",
            Retirement::Memory => "max_memory",
            Retirement::Idle => "idle",
            Retirement::Evicted => "evicted",
            Retirement::Scaled => "scaled",
            Retirement::Reloaded => "reloaded",
            Retirement::KeyEnded => "session_ended",
        }
    }
}

/// What a request of a session finds where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Continuity {
    /// Its first process.
    Bound,
    /// The one it had.
    Same,
    /// Another than its own, which was not free.
    Elsewhere,
    /// A new one that was given what the old one kept.
    Restored,
    /// A new one that knows nothing.
    Restarted,
}

impl StopReason {
    /// Unplanned stops count against the restart budget.
    pub fn planned(self) -> bool {
        use StopReason::*;
        match self {
            Shutdown | Retired(_) | Discarded | Terminated | Paused | ForcedCancel | GaveUp => true,
            StartTimeout | StreamClosed | ProtocolViolation | HeartbeatLost | Unhealthy
            | Tainted | Hung | MemoryExceeded => false,
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
    /// Why, if it was planned.
    pub retirement: Option<Retirement>,
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
    /// What concerned the whole pool is done.
    PoolDone,
    /// These are replaced, one after the other.
    Recycling {
        workers: Vec<WorkerId>,
    },
    /// The worker is not in service.
    NotServing,
    /// Keys bind, in this pool; nothing else does.
    NotInKeyedPool,
    /// The new kind has proved itself and takes over.
    Reloaded {
        edition: u32,
    },
    /// It did not become ready; everything stays as it was.
    ReloadFailed {
        worker: WorkerId,
        exit: Option<Exit>,
    },
    ReloadUnderway,
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
    /// The worker is to go, for this reason.
    Retiring {
        worker: WorkerId,
        reason: Retirement,
    },
    /// What became of a session's binding.
    Session {
        session: SessionId,
        process: ProcessId,
        step: BondStep,
    },
    /// How many workers the pool wants.
    Scaled {
        from: u32,
        to: u32,
    },
    /// It would grow, but memory is short.
    GrowthHeld,
    PoolPaused,
    PoolResumed,
    PoolDraining,
    /// Nobody is inside any more.
    PoolDrained,
    ReloadBegun {
        edition: u32,
    },
    Reloaded {
        edition: u32,
    },
    ReloadFailed {
        edition: u32,
    },
    /// The sweep found what should not be.
    SweepFound {
        what: String,
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

/// What became of a binding, in the process that the notice names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BondStep {
    Bound,
    /// After another one, which is gone or was given up.
    Rebound(Continuity),
    /// The process handed over its state.
    Saved,
    /// It was let go of, and knows nothing of it.
    Released,
    /// The process went, and with it what it kept.
    Lost,
    Unbound,
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
