//! A call as part of a job: what its worker is told about the job, and who hears what the worker
//! says on the way.

use std::fmt::Debug;
use std::sync::Arc;

/// The attempt of a job that a call is part of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duty {
    pub job: Arc<str>,
    /// Counts from 1.
    pub attempt: u32,
    /// Which of `shard_count` parts, from 0.
    pub shard: u32,
    pub shard_count: u32,
    /// How many jobs are above this one.
    pub depth: u32,
}

/// Hears what a call says before its end. Called where a worker's messages are read: it must be
/// quick and never wait.
pub trait Listener: Debug + Send + Sync {
    /// A worker has it.
    fn began(&self, worker: &Arc<str>);

    /// How far it is, as JSON text.
    fn progress(&self, json: &str);

    fn log(&self, level: &'static str, text: &str);
}
