//! The durable side of a worker: who it is, its status, and each change of it.

use jiff::Timestamp;
use ostler_core::Status;

use super::key::Asked;

/// One change of status, as the pool decided it. It takes effect once it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerChange {
    /// `w_…`.
    pub worker: String,
    /// `py-3`.
    pub name: String,
    pub pool: String,
    /// Of the first change only, and so is `dedicated`: afterwards it is known.
    pub workspace: String,
    pub dedicated: bool,
    /// Counts the worker's changes from 1, without a gap. The same change may come again.
    pub seq: u64,
    pub from: Option<Status>,
    pub to: Status,
    pub trigger: String,
    pub reason: Option<String>,
    pub at: Timestamp,
    /// Who asked for it; the system, if nobody did.
    pub asked: Asked,
}

/// What became of a [`WorkerChange`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    Yes,
    /// Certainly not.
    No(String),
    /// Perhaps. Send it again.
    Unknown(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    pub id: String,
    pub name: String,
    pub pool: String,
    pub workspace: String,
    pub dedicated: bool,
    pub status: Status,
    pub seq: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// What a pool is to know about its past when it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolPast {
    /// Stays the same for a pool of this name.
    pub number: u64,
    /// The first number that no worker of this pool ever had.
    pub next_worker: u64,
    /// Its dedicated workers without an end. The others ended with the server before.
    pub dedicated: Vec<Worker>,
}
