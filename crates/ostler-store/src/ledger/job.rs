//! A job as its submitter describes it, as anybody reads it, and as whoever runs it holds it.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use ostler_core::{AttemptFailure, JobStatus, Retrying};
use serde_json::Value;

use super::id::{JobId, ScheduleId};
use crate::content::Content;

pub const DEPTH_MAX: u32 = 5;
pub const WORKER_COUNT_MAX: u32 = 10;

/// What to do. The pool was checked by whoever knows pools; the rest is checked here.
#[derive(Debug, Clone, PartialEq)]
pub struct NewJob {
    pub workspace: String,
    pub queue: String,
    pub pool: String,
    pub function: String,
    /// Arguments as a call has them: JSON or bytes, never looked into.
    pub payload: Content,
    pub task_description: Option<String>,
    /// Workers at once, each with a shard: 1..=10.
    pub worker_count: u32,
    pub parent: Option<JobId>,
    /// What the submitter believes; it must agree with the parent's depth.
    pub depth: Option<u32>,
    /// Of two children of one parent with the same one, the second is the first.
    pub child_key: Option<String>,
    /// The session that its requests belong to.
    pub session: Option<String>,
    /// −100..=100, higher first.
    pub priority: i8,
    /// Not before. None: at once.
    pub run_at: Option<Timestamp>,
    /// From its first start to its end, children included. None: no bound.
    pub timeout: Option<Duration>,
    pub retrying: Retrying,
    pub children: Children,
    pub tags: BTreeMap<String, String>,
    pub traceparent: Option<String>,
    /// Among the jobs of this workspace and function without an end there is one with this key.
    pub unique_key: Option<String>,
    /// At most `concurrency_limit` of the jobs with this key run at a time.
    pub concurrency_key: Option<String>,
    pub concurrency_limit: u32,
}

impl NewJob {
    pub fn new(pool: impl Into<String>, function: impl Into<String>, payload: Content) -> Self {
        NewJob {
            workspace: "default".to_owned(),
            queue: "default".to_owned(),
            pool: pool.into(),
            function: function.into(),
            payload,
            task_description: None,
            worker_count: 1,
            parent: None,
            depth: None,
            child_key: None,
            session: None,
            priority: 0,
            run_at: None,
            timeout: None,
            retrying: Retrying::default(),
            children: Children::Wait,
            tags: BTreeMap::new(),
            traceparent: None,
            unique_key: None,
            concurrency_key: None,
            concurrency_limit: 1,
        }
    }
}

/// What a job whose handler has returned does about its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Children {
    /// It ends when they have ended, and fails if one of them did not complete.
    #[default]
    Wait,
    Ignore,
}

/// A job as it is now.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    pub id: JobId,
    pub status: JobStatus,
    /// Everything submitted; `parent`, `run_at` and `depth` are filled in.
    pub spec: NewJob,
    /// The first of its ancestors, or itself.
    pub root: JobId,
    pub depth: u32,
    /// Attempts begun.
    pub attempt: u32,
    /// Its handler has returned; it waits for its children.
    pub waiting: bool,
    /// Children without an end.
    pub open_children: u32,
    pub cancel: Option<Cancel>,
    pub progress: Option<Value>,
    /// Of a completed job. With several workers: a JSON list, by shard.
    pub result: Option<Content>,
    /// Of a failed job: `code`, `message`, and what helps. Of a running one: its last attempt's.
    pub error: Option<Value>,
    /// Why it ended so: `timeout`, `cancelled`, `lost`, `child_failed`, `invalid_arguments`, …
    pub reason: Option<String>,
    pub retry_of: Option<JobId>,
    pub schedule: Option<ScheduleId>,
    /// Rises with every change.
    pub version: u64,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub completed_at: Option<Timestamp>,
    /// When its timeout strikes.
    pub deadline: Option<Timestamp>,
    /// Messages and log lines that were not kept.
    pub events_dropped: u64,
}

/// Somebody wants it to end. It is CANCELED once its work has let go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancel {
    pub at: Timestamp,
    /// `cancelled` or `timeout`, `parent_cancelled`, `parent_failed`, `sibling_failed`.
    pub reason: String,
    pub by: String,
}

/// What a submission came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Submitted {
    pub job: Job,
    /// It was there already, by its unique key or its child key.
    pub known: bool,
}

/// Which jobs a list is to show. Empty fields do not select.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobFilter {
    pub workspace: Option<String>,
    pub queue: Option<String>,
    pub pool: Option<String>,
    pub function: Option<String>,
    pub status: Option<JobStatus>,
    pub parent: Option<JobId>,
    pub root: Option<JobId>,
    pub schedule: Option<ScheduleId>,
    /// Name and value.
    pub tag: Option<(String, String)>,
    /// Those older than this one: the last of the page before.
    pub before: Option<JobId>,
}

/// Work that this node holds. Every word about it carries its fence.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    pub job: Job,
    /// Counts from 1.
    pub attempt: u32,
    pub fence: u64,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq)]
pub enum AttemptEnd {
    Completed(Content),
    Failed {
        failure: AttemptFailure,
        /// `code`, `message`, and what helps.
        error: Value,
    },
    /// It let go because its cancellation was asked for.
    Canceled,
    /// It never began: the attempt does not count, and the job waits again.
    Released,
}

/// What finishing an attempt came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Finished {
    /// The job is this by now: ended, waiting for its children, or for its next attempt.
    Taken(Box<Job>),
    /// Somebody else has this job by now, or it has its end. Nothing was changed.
    Stale,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    pub attempt: u32,
    pub fence: u64,
    pub node: String,
    /// The workers that it ran on, by shard, as far as they are known.
    pub workers: Vec<String>,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// `completed`, `canceled`, or the name of its failure.
    pub outcome: Option<String>,
    pub error: Option<Value>,
}

/// What a running job says of itself.
#[derive(Debug, Clone, PartialEq)]
pub enum Saying {
    /// Replaces the job's progress.
    Progress(Value),
    /// One chunk of what it yields, or anything that it wants to tell.
    Message(Value),
    Log {
        level: String,
        text: String,
    },
    /// It runs on this worker.
    Worker {
        shard: u32,
        worker: String,
    },
}

/// One line of a job's story, in the order of `seq`: `status`, `attempt`, `progress`, `message`,
/// `log`.
#[derive(Debug, Clone, PartialEq)]
pub struct JobEvent {
    pub seq: u64,
    pub kind: String,
    pub data: Value,
    pub at: Timestamp,
}

/// A queue that somebody paused, or that has jobs without an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    pub name: String,
    pub paused_at: Option<Timestamp>,
    /// Submitted and pending, and running.
    pub waiting: u64,
    pub running: u64,
}

/// Jobs by status, and what was refused.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobCounts {
    pub by_status: BTreeMap<JobStatus, u64>,
    /// Words about an attempt that was no longer current.
    pub stale: u64,
}
