//! Rows, as backends keep them. Times are milliseconds since 1970; what nobody searches by is JSON
//! text. A backend adds a checksum to the rows that matter (facts, state, result, transition,
//! worker) and looks at it when it reads them.

use bytes::Bytes;

use super::audit::Entity;
use super::id::{JobId, ScheduleId};

pub type Millis = i64;

/// What never changes about a job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobFacts {
    pub id: JobId,
    pub workspace: String,
    pub queue: String,
    pub pool: String,
    pub function: String,
    pub parent: Option<JobId>,
    pub root: JobId,
    pub depth: u32,
    pub child_key: Option<String>,
    pub unique_key: Option<String>,
    pub schedule: Option<ScheduleId>,
    pub retry_of: Option<JobId>,
    /// What else was submitted, as JSON.
    pub spec: String,
    /// Name and value; also searched by.
    pub tags: Vec<(String, String)>,
    pub payload_type: String,
    pub payload: Bytes,
    pub created_at: Millis,
}

/// What changes about a job. Small: it is written often.
#[derive(Debug, Clone, PartialEq)]
pub struct JobState {
    pub id: JobId,
    pub status: ostler_core::JobStatus,
    pub attempt: u32,
    pub waiting: bool,
    pub open_children: u32,
    /// Why a child did not complete, if one did not: JSON.
    pub child_error: Option<String>,
    pub cancel_at: Option<Millis>,
    pub cancel_reason: Option<String>,
    pub cancel_by: Option<String>,
    /// What its asker gave as the reason, and the request that asked.
    pub cancel_note: Option<String>,
    pub cancel_request: Option<String>,
    pub progress: Option<String>,
    pub error: Option<String>,
    pub reason: Option<String>,
    pub version: u64,
    /// Of its last transition, and of the last line of its story.
    pub seq: u64,
    pub event_seq: u64,
    pub events_dropped: u64,
    pub started_at: Option<Millis>,
    /// Set if and only if the status is terminal.
    pub completed_at: Option<Millis>,
    pub deadline: Option<Millis>,
}

/// Written once, when a handler has returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobResult {
    pub id: JobId,
    pub content_type: String,
    pub bytes: Bytes,
}

/// Work to be done or being done: the small hot table. Gone when the handler has returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    pub job: JobId,
    pub pool: String,
    pub queue: String,
    pub workers: u32,
    pub priority: i8,
    pub run_at: Millis,
    pub concurrency_key: Option<String>,
    pub concurrency_limit: u32,
    pub attempt: u32,
    /// Rises with every claim.
    pub fence: u64,
    /// Who has it. None: nobody, it is ready from `run_at` on.
    pub node: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRow {
    pub job: JobId,
    pub attempt: u32,
    pub fence: u64,
    pub node: String,
    /// JSON list.
    pub workers: String,
    pub started_at: Millis,
    pub ended_at: Option<Millis>,
    pub outcome: Option<String>,
    pub error: Option<String>,
}

/// Never changed, never removed before its entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransitionRow {
    pub entity: Entity,
    pub id: String,
    pub seq: u64,
    pub from: Option<String>,
    pub to: String,
    pub trigger: String,
    pub reason: Option<String>,
    pub actor: String,
    pub node: String,
    pub request_id: Option<String>,
    pub at: Millis,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRow {
    pub job: JobId,
    pub seq: u64,
    pub kind: String,
    pub data: String,
    pub at: Millis,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueRow {
    pub name: String,
    pub paused_at: Option<Millis>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleRow {
    pub id: ScheduleId,
    pub workspace: String,
    /// Unique in the workspace.
    pub name: String,
    /// JSON.
    pub spec: String,
    pub next_at: Option<Millis>,
    pub last_at: Option<Millis>,
    pub last_job: Option<JobId>,
    pub version: u64,
    pub created_at: Millis,
}

/// A time of a schedule that was served, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FireRow {
    pub schedule: ScheduleId,
    pub at: Millis,
    /// None: it was left out.
    pub job: Option<JobId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerRow {
    pub id: String,
    pub name: String,
    pub pool: String,
    pub workspace: String,
    pub dedicated: bool,
    pub node: String,
    pub status: ostler_core::Status,
    pub seq: u64,
    pub created_at: Millis,
    pub updated_at: Millis,
    pub finished_at: Option<Millis>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolRow {
    pub name: String,
    pub number: u64,
    pub next_worker: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    pub caller: String,
    pub route: String,
    pub key: String,
    pub fingerprint: u64,
    pub node: String,
    /// A crash leaves no doubt about its effect: `resource` says whether there was one.
    pub stored: bool,
    pub resource: Option<String>,
    /// JSON of status and headers. None: in progress.
    pub answer: Option<String>,
    pub body: Option<Bytes>,
    pub created_at: Millis,
    pub expires_at: Millis,
}

/// One run of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRow {
    pub id: String,
    pub version: String,
    pub started_at: Millis,
    /// The lease by which it is known to live; for several servers on one database.
    pub expires_at: Millis,
    pub ended_at: Option<Millis>,
}

/// One write. A row that is there is replaced, unless its kind says that it never is.
#[derive(Debug, Clone, PartialEq)]
pub enum Row {
    /// New; never replaced.
    Facts(Box<JobFacts>),
    State(Box<JobState>),
    /// New; never replaced.
    Result(JobResult),
    Task(Task),
    NoTask(JobId),
    Attempt(AttemptRow),
    NoAttempt(JobId, u32),
    /// New; a second one with the same (entity, id, seq) is an error.
    Transition(TransitionRow),
    /// New.
    Event(EventRow),
    Queue(QueueRow),
    Schedule(Box<ScheduleRow>),
    /// With its fires.
    NoSchedule(ScheduleId),
    Fire(FireRow),
    Worker(WorkerRow),
    Pool(PoolRow),
    Key(Box<KeyRow>),
    NoKey(super::key::Key),
    Node(NodeRow),
    /// The job and all that belongs to it.
    Prune(JobId),
    /// The worker and its trail.
    PruneWorker(String),
}
