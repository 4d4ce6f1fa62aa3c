//! Where the ledger is kept, and its bounds.

use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Ends with the server.
    Memory,
    /// A file of this server alone.
    Sqlite(PathBuf),
    /// `postgres://user:password@host:port/database`, or with `?host=/run/postgresql`.
    Postgres(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerSettings {
    /// Jobs without an end, at once.
    pub jobs_max: u64,
    /// Bytes of one job's payload.
    pub payload_max: u64,
    /// Bytes of one job's result. A larger one fails the job.
    pub result_max: u64,
    /// Messages and log lines kept of one job. What exceeds it is counted, not kept.
    pub events_max: u64,
    /// Ended jobs are kept this long, with all that belongs to them.
    pub retention: Duration,
    /// Ended workers and their trail are kept this long.
    pub worker_retention: Duration,
    pub schedules_max: u64,
    /// How long an answer is kept under its idempotency key.
    pub key_ttl: Duration,
    /// Keys at once.
    pub keys_max: u64,
}

impl Default for LedgerSettings {
    fn default() -> Self {
        LedgerSettings {
            jobs_max: 1_000_000,
            payload_max: 16 << 20,
            result_max: 64 << 20,
            events_max: 10_000,
            retention: Duration::from_secs(7 * 24 * 3600),
            worker_retention: Duration::from_secs(7 * 24 * 3600),
            schedules_max: 1_000,
            key_ttl: Duration::from_secs(3600),
            keys_max: 1_000_000,
        }
    }
}
