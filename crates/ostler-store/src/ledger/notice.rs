//! What is told after a commit, so that nobody has to poll. Hints: whoever misses one finds the
//! truth in the ledger.

use ostler_core::JobStatus;

use super::id::JobId;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A job of this pool may be claimed now.
    Ready {
        pool: String,
    },
    /// Something is due earlier than was known, in the future.
    DueSooner,
    JobChanged {
        job: JobId,
        pool: String,
        from: Option<JobStatus>,
        to: JobStatus,
        reason: Option<String>,
    },
    /// Its story has more lines.
    JobSaid {
        job: JobId,
        last_seq: u64,
    },
    /// Whoever runs this attempt is to let go.
    CancelAsked {
        job: JobId,
        fence: u64,
        reason: String,
    },
    JobPruned {
        job: JobId,
    },
}
