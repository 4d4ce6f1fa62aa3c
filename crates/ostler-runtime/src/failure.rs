//! How a call can end without a result. A refusal and a failure are different types: after a
//! refusal nothing ran and asking again is safe.

use std::time::Duration;

use ostler_core::{Exit, LossReason, Refusal, Started, Waiting};
use ostler_proto::WorkerError;

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
    #[error("pool `{pool}` has no function `{function}`")]
    FunctionNotFound { pool: String, function: String, known: Vec<String> },
    #[error("{}", describe(.0))]
    Pool(Refusal),
    #[error("the workers of this pool keep failing; it will try again. The last of them: {why}")]
    PoolFailed { why: String },
    #[error("the payload cannot be sent to this worker: {why}")]
    Unsendable { why: String },
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
    #[error("the deadline passed while the request {}", waited(*.phase))]
    TimedOut { phase: Waiting, started: Started },
    #[error("worker {worker} {}", how_it_ended(*.exit, *.reason))]
    Crashed {
        worker: String,
        exit: Exit,
        reason: LossReason,
        started: Started,
        /// What it last wrote to stderr.
        stderr: Vec<String>,
        /// Chunks that the caller has seen.
        chunks: u64,
    },
    #[error("the result is larger than the limit of {limit} bytes")]
    ResultTooLarge { limit: u64 },
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
        LossReason::Stopped(why) => format!("was stopped ({why:?}) before it answered"),
    }
}

pub(crate) fn describe_exit(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exited with code {code}"),
        Exit::Signal(signal) => format!("was ended by {}", signal_name(signal)),
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
        Refusal::QueueTimeout => "no worker came free within queue_timeout".to_owned(),
        Refusal::ShuttingDown => "the pool is shutting down".to_owned(),
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
