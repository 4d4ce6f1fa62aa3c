//! How a call can end without a result. A refusal and a failure are different types: after a
//! refusal nothing ran and asking again is safe.

use std::time::Duration;

use ostler_core::{Exit, LossReason, Refusal, Started, Waiting};
use ostler_proto::WorkerError;
use ostler_store::SessionError;

use crate::events::reason;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CallError {
    #[error("{0}")]
    Refused(#[from] Refused),
    #[error("{0}")]
    Failed(#[from] Failure),
}

/// Nothing ran.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refused {
    #[error("pool `{pool}` has no function `{function}`; known: {}", known.join(", "))]
    FunctionNotFound { pool: String, function: String, known: Vec<String> },
    #[error("{}", describe(.0))]
    Pool(Refusal),
    #[error("the workers of this pool keep failing; it will try again. The last of them: {why}")]
    PoolFailed { why: String },
    #[error("the payload cannot be sent to this worker: {why}")]
    Unsendable { why: String },
    #[error("there is no pool `{pool}`; known: {}", known.join(", "))]
    PoolNotFound { pool: String, known: Vec<String> },
    #[error("calls inside calls, {limit} deep: that looks like an endless chain")]
    NestedTooDeep { limit: usize },
    #[error("{0}")]
    Session(SessionError),
    #[error("the request belongs to no session; send it with one")]
    SessionRequired,
    #[error("there is no operation `{operation}`; known: {}", known.join(", "))]
    OperationNotFound { operation: String, known: Vec<String> },
    /// The worker looked at the arguments and did not begin.
    #[error("{}", .0.message)]
    Arguments(WorkerError),
}

/// Something may have run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Failure {
    /// The handler raised.
    #[error("{}", .0.message)]
    Application(WorkerError),
    #[error("cancelled")]
    Cancelled { started: Started },
    #[error("the deadline passed while the request {}{}", waited(*.phase), remark(condition))]
    TimedOut {
        phase: Waiting,
        started: Started,
        /// What was known of its worker that explains it.
        condition: Option<Condition>,
    },
    #[error("worker {worker} {}{}", how_it_ended(*.exit, *.reason), remark(condition))]
    Crashed {
        worker: String,
        exit: Exit,
        reason: LossReason,
        started: Started,
        /// What it last wrote to stderr.
        stderr: Vec<String>,
        /// Chunks that the caller has seen.
        chunks: u64,
        condition: Option<Condition>,
    },
    #[error("the result is larger than the limit of {limit} bytes")]
    ResultTooLarge { limit: u64 },
}

impl Failure {
    /// A result of another type than the caller expected.
    pub(crate) fn unexpected(error: &serde_json::Error) -> Self {
        let message = format!("the result is not what was expected: {error}");
        Failure::Application(WorkerError {
            message,
            kind: Some("unexpected_result".to_owned()),
            ..WorkerError::default()
        })
    }
}

/// What a look at a silent process showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Somebody stopped it, with SIGSTOP most likely.
    Stopped,
    /// It waits in the kernel and cannot be interrupted.
    Uninterruptible,
}

impl Condition {
    pub fn name(self) -> &'static str {
        match self {
            Condition::Stopped => "stopped",
            Condition::Uninterruptible => "uninterruptible",
        }
    }
}

fn remark(condition: &Option<Condition>) -> &'static str {
    match condition {
        None => "",
        Some(Condition::Stopped) => "; its process is stopped (SIGSTOP or a debugger)",
        Some(Condition::Uninterruptible) => "; its process waits in the kernel (a disk or a mount)",
    }
}

fn waited(phase: Waiting) -> &'static str {
    match phase {
        Waiting::Queue => "waited in the queue",
        Waiting::Retry => "waited for its next attempt",
        Waiting::Worker => "was with its worker",
    }
}

fn how_it_ended(exit: Exit, reason: LossReason) -> String {
    let end = describe_exit(exit);
    match reason {
        LossReason::Crashed => format!("{end} before it answered"),
        LossReason::Stopped(why) => {
            format!("was stopped ({}) before it answered", reason::of_stop(why))
        }
    }
}

pub(crate) fn describe_exit(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exited with code {code}"),
        Exit::Signal(signal) => format!("was ended by {}", signal_name(signal)),
        Exit::OutOfMemory => "was killed by the kernel for want of memory".to_owned(),
        Exit::Unknown => "ended".to_owned(),
    }
}

pub fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGILL => "SIGILL",
        libc::SIGINT => "SIGINT",
        libc::SIGKILL => "SIGKILL",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGTERM => "SIGTERM",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}

fn describe(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Saturated { queued, busy, oldest } => format!(
            "the queue is full: {queued} wait, {busy} are being worked on, the oldest has waited {}",
            seconds(*oldest)
        ),
        Refusal::DeadlineUnreachable { queued, estimate } => format!(
            "{queued} wait already; it would be done in about {}, after its deadline",
            seconds(*estimate)
        ),
        Refusal::Quarantined { exit, left } => format!(
            "this request has ended two processes (the last one {}); it is refused for {}",
            describe_exit(*exit),
            seconds(*left)
        ),
        Refusal::NestedDeadlock => "this call can never be served: the requests that wait for it \
             hold every place it could have. Give the pool more workers, or call another pool"
            .to_owned(),
        Refusal::QueueTimeout => "no worker came free within queue_timeout".to_owned(),
        Refusal::ShuttingDown => "the pool is shutting down".to_owned(),
        Refusal::PoolDraining => {
            "the pool is being drained and lets nobody in; open it again with: ostler resume"
                .to_owned()
        }
        Refusal::SessionWorkerLost => {
            "the process of this session is gone, and with it what it kept in memory. This is \
             told once: the next request of the session begins with a new process"
                .to_owned()
        }
        Refusal::WorkerBusy => "the worker of this session is busy".to_owned(),
        Refusal::KeyRequired => "this pool keeps a worker for each session or workspace, and the \
             request names none"
            .to_owned(),
        Refusal::NotInKeyedPool => {
            "workers of a keyed pool belong to their keys and are not lent".to_owned()
        }
        Refusal::PoolFailed => "the pool's workers keep failing; it will try again".to_owned(),
        Refusal::NoSuchWorker => "there is no such worker".to_owned(),
        Refusal::WorkerNotServing => "the worker is not in service".to_owned(),
        Refusal::NoSuchLease => "the lease is gone".to_owned(),
        Refusal::TooManyWorkers => "more workers than the pool has".to_owned(),
        Refusal::LeaseTimeout => "the workers did not come free in time".to_owned(),
    }
}

fn seconds(span: Duration) -> String {
    format!("{:.3} s", span.as_secs_f64())
}
