//! A request that has no outcome yet. Once it has one it is gone from the core; what a worker
//! still holds of it is an entry of that process.

use crate::command::LossReason;
use crate::event::{Exit, RequestSpec};
use crate::id::{KeyId, LeaseId, ProcessId, WorkerId};
use crate::time::Time;

#[derive(Debug)]
pub(crate) struct Request {
    pub spec: RequestSpec,
    pub arrived: Time,
    /// Assignments so far. Fences the messages about earlier ones.
    pub attempt: u32,
    /// Executions that may have begun and are over.
    pub tries: u32,
    /// How the last of them ended; its end, if there is no other attempt.
    pub past: Option<Past>,
    pub place: Place,
    /// When its timer is set to fire.
    pub timer: Option<Time>,
}

/// How an attempt ended that may be followed by another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Past {
    /// The worker answered with a retryable error, which the shell keeps.
    Failed,
    Lost {
        exit: Exit,
        reason: LossReason,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Queued(Line),
    /// Between two attempts.
    Retrying,
    Held(ProcessId),
}

/// Where a request waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// For whoever is free.
    Common,
    /// For one worker.
    Own(WorkerId),
    /// For a worker of this key to be made.
    Key(KeyId),
    /// For one place of a lease.
    Leased(LeaseId, u32),
}
