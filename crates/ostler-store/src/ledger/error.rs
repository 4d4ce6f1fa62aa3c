//! Why the ledger did not do something. Nothing was changed, unless it says otherwise.

use ostler_core::JobStatus;

use super::id::JobId;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    #[error("there is no job `{id}`; it may have been pruned after its end")]
    NoJob { id: String },
    #[error("there is no schedule `{id}`")]
    NoSchedule { id: String },
    #[error("a schedule `{name}` exists; change that one, or use another name")]
    ScheduleExists { name: String },
    /// Something given does not fit: the message names it. `index`: of a batch.
    #[error("{what}")]
    Invalid { field: &'static str, what: String, index: usize },
    #[error("job `{id}` is {} and cannot become {}", from.name(), to.name())]
    Illegal { id: JobId, from: JobStatus, to: JobStatus, allowed: Vec<JobStatus> },
    #[error(
        "{current} jobs have no end yet and {max} may; wait for some, or raise `max` in [jobs]"
    )]
    Quota { current: u64, max: u64 },
    #[error("{current} schedules exist and {max} may; delete some")]
    ScheduleQuota { current: u64, max: u64 },
    #[error("{current} idempotency keys are kept and {max} may; send it without one, or wait")]
    KeyQuota { current: u64, max: u64 },
    #[error("the store is full: {reason}")]
    Full { reason: String },
    /// Certainly nothing was stored.
    #[error("the store cannot be used: {reason}")]
    Unavailable { reason: String },
    /// The store failed in a commit: perhaps it was stored.
    #[error("whether it was stored is not known: {reason}")]
    Doubtful { reason: String },
}
