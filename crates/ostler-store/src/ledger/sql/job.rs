//! Jobs as rows: what never changes (`job`, with `job_tag` and `job_unique` to search by), what does
//! (`job_state`), and what came of it (`job_result`).

mod find;

use ostler_core::JobStatus;

use crate::ledger::id::JobId;
use crate::ledger::row::{JobFacts, JobResult, JobState};
use crate::sql::{Again, Cells, Record, Sink, Stored, Table, Trouble, checked};

use super::job_id;

pub(super) use find::*;

impl Stored for JobFacts {
    const TABLE: Table = Table {
        name: "job",
        columns: &[
            "id",
            "workspace",
            "queue",
            "pool",
            "function",
            "parent",
            "root",
            "depth",
            "child_key",
            "unique_key",
            "schedule",
            "retry_of",
            "spec",
            "tags",
            "payload_type",
            "payload",
            "created_at",
            "checksum",
        ],
        key: 1,
        again: Again::Refused,
    };

    fn fields(&self, to: &mut impl Sink) {
        to.text(self.id.as_str());
        to.text(&self.workspace);
        to.text(&self.queue);
        to.text(&self.pool);
        to.text(&self.function);
        to.maybe_text(self.parent.as_ref().map(JobId::as_str));
        to.text(self.root.as_str());
        to.int(self.depth.into());
        to.maybe_text(self.child_key.as_deref());
        to.maybe_text(self.unique_key.as_deref());
        to.maybe_text(self.schedule.as_ref().map(|id| id.as_str()));
        to.maybe_text(self.retry_of.as_ref().map(JobId::as_str));
        to.text(&self.spec);
        to.text(&serde_json::to_string(&self.tags).expect("texts are JSON"));
        to.text(&self.payload_type);
        to.bytes(&self.payload);
        to.int(self.created_at);
    }
}

/// A tag of a job.
#[derive(Debug)]
pub(super) struct Tag<'a>(pub &'a JobId, pub &'a str, pub &'a str);

impl Stored for Tag<'_> {
    const TABLE: Table = Table {
        name: "job_tag",
        columns: &["job", "name", "value"],
        key: 2,
        again: Again::Refused,
    };

    fn fields(&self, to: &mut impl Sink) {
        to.text(self.0.as_str());
        to.text(self.1);
        to.text(self.2);
    }
}

/// The unique key of a job without an end.
#[derive(Debug)]
pub(super) struct Unique<'a>(pub &'a JobFacts, pub &'a str);

impl Stored for Unique<'_> {
    const TABLE: Table = Table {
        name: "job_unique",
        columns: &["workspace", "function", "unique_key", "job"],
        key: 3,
        again: Again::Refused,
    };

    fn fields(&self, to: &mut impl Sink) {
        to.text(&self.0.workspace);
        to.text(&self.0.function);
        to.text(self.1);
        to.text(self.0.id.as_str());
    }
}

impl Stored for JobState {
    const TABLE: Table = Table {
        name: "job_state",
        columns: &[
            "id",
            "status",
            "attempt",
            "waiting",
            "open_children",
            "child_error",
            "cancel_at",
            "cancel_reason",
            "cancel_by",
            "cancel_note",
            "cancel_request",
            "progress",
            "error",
            "reason",
            "version",
            "seq",
            "event_seq",
            "events_dropped",
            "started_at",
            "completed_at",
            "deadline",
            "checksum",
        ],
        key: 1,
        again: Again::Replaced,
    };

    fn fields(&self, to: &mut impl Sink) {
        to.text(self.id.as_str());
        to.text(self.status.name());
        to.int(self.attempt.into());
        to.flag(self.waiting);
        to.int(self.open_children.into());
        to.maybe_text(self.child_error.as_deref());
        to.maybe_int(self.cancel_at);
        to.maybe_text(self.cancel_reason.as_deref());
        to.maybe_text(self.cancel_by.as_deref());
        to.maybe_text(self.cancel_note.as_deref());
        to.maybe_text(self.cancel_request.as_deref());
        to.maybe_text(self.progress.as_deref());
        to.maybe_text(self.error.as_deref());
        to.maybe_text(self.reason.as_deref());
        to.int(self.version as i64);
        to.int(self.seq as i64);
        to.int(self.event_seq as i64);
        to.int(self.events_dropped as i64);
        to.maybe_int(self.started_at);
        to.maybe_int(self.completed_at);
        to.maybe_int(self.deadline);
    }
}

impl Stored for JobResult {
    const TABLE: Table = Table {
        name: "job_result",
        columns: &["id", "content_type", "data", "checksum"],
        key: 1,
        again: Again::Refused,
    };

    fn fields(&self, to: &mut impl Sink) {
        to.text(self.id.as_str());
        to.text(&self.content_type);
        to.bytes(&self.bytes);
    }
}

fn facts(cells: &mut Cells<'_>) -> Result<JobFacts, Trouble> {
    let facts = JobFacts {
        id: job_id(cells)?,
        workspace: cells.string()?,
        queue: cells.string()?,
        pool: cells.string()?,
        function: cells.string()?,
        parent: cells.maybe_parsed("job", |id| id.parse().ok())?,
        root: job_id(cells)?,
        depth: cells.count()?,
        child_key: cells.maybe_string()?,
        unique_key: cells.maybe_string()?,
        schedule: cells.maybe_parsed("schedule", |id| id.parse().ok())?,
        retry_of: cells.maybe_parsed("job", |id| id.parse().ok())?,
        spec: cells.string()?,
        tags: cells.parsed("list of tags", |tags| serde_json::from_str(tags).ok())?,
        payload_type: cells.string()?,
        payload: cells.bytes()?.into(),
        created_at: cells.int()?,
    };
    checked(facts, cells)
}

fn state(cells: &mut Cells<'_>) -> Result<JobState, Trouble> {
    let state = JobState {
        id: job_id(cells)?,
        status: cells.parsed("status", JobStatus::named)?,
        attempt: cells.count()?,
        waiting: cells.flag()?,
        open_children: cells.count()?,
        child_error: cells.maybe_string()?,
        cancel_at: cells.maybe_int()?,
        cancel_reason: cells.maybe_string()?,
        cancel_by: cells.maybe_string()?,
        cancel_note: cells.maybe_string()?,
        cancel_request: cells.maybe_string()?,
        progress: cells.maybe_string()?,
        error: cells.maybe_string()?,
        reason: cells.maybe_string()?,
        version: cells.count()?,
        seq: cells.count()?,
        event_seq: cells.count()?,
        events_dropped: cells.count()?,
        started_at: cells.maybe_int()?,
        completed_at: cells.maybe_int()?,
        deadline: cells.maybe_int()?,
    };
    checked(state, cells)
}

fn both(record: &Record) -> Result<(JobFacts, JobState), Trouble> {
    let mut cells = record.cells();
    Ok((facts(&mut cells)?, state(&mut cells)?))
}

fn job_result(record: &Record) -> Result<JobResult, Trouble> {
    let mut cells = record.cells();
    let result = JobResult {
        id: job_id(&mut cells)?,
        content_type: cells.string()?,
        bytes: cells.bytes()?.into(),
    };
    checked(result, &mut cells)
}
