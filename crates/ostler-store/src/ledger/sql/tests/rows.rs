//! Rows to write.

use bytes::Bytes;
use ostler_core::JobStatus;

use crate::ledger::audit::Entity;
use crate::ledger::id::JobId;
use crate::ledger::row::{JobFacts, JobResult, JobState, Row, Task, TransitionRow};

pub(super) const NOW: i64 = 1_790_000_000_000;

pub(super) fn facts(id: &JobId) -> JobFacts {
    JobFacts {
        id: id.clone(),
        workspace: "default".to_owned(),
        queue: "default".to_owned(),
        pool: "py".to_owned(),
        function: "f".to_owned(),
        parent: None,
        root: id.clone(),
        depth: 0,
        child_key: None,
        unique_key: None,
        schedule: None,
        retry_of: None,
        spec: "{}".to_owned(),
        tags: vec![("colour".to_owned(), "red".to_owned())],
        payload_type: "application/json".to_owned(),
        payload: Bytes::from_static(b"[1]"),
        created_at: NOW,
    }
}

pub(super) fn state(id: &JobId, status: JobStatus) -> JobState {
    JobState {
        id: id.clone(),
        status,
        attempt: 0,
        waiting: false,
        open_children: 0,
        child_error: None,
        cancel_at: None,
        cancel_reason: None,
        cancel_by: None,
        cancel_note: None,
        cancel_request: None,
        progress: None,
        error: None,
        reason: None,
        version: 1,
        seq: 1,
        event_seq: 0,
        events_dropped: 0,
        started_at: None,
        completed_at: status.terminal().then_some(NOW),
        deadline: None,
    }
}

pub(super) fn task(id: &JobId, run_at: i64) -> Task {
    Task {
        job: id.clone(),
        pool: "py".to_owned(),
        queue: "default".to_owned(),
        workers: 1,
        priority: 0,
        run_at,
        concurrency_key: None,
        concurrency_limit: 1,
        attempt: 0,
        fence: 0,
        node: None,
    }
}

pub(super) fn transition(id: &JobId, seq: u64, from: Option<&str>, to: &str) -> TransitionRow {
    TransitionRow {
        entity: Entity::Job,
        id: id.to_string(),
        seq,
        from: from.map(str::to_owned),
        to: to.to_owned(),
        trigger: "submit".to_owned(),
        reason: None,
        actor: "test".to_owned(),
        node: "n".to_owned(),
        request_id: None,
        at: NOW,
    }
}

pub(super) fn result(id: &JobId, bytes: usize) -> Row {
    let (content_type, bytes) = ("text/plain".to_owned(), Bytes::from(vec![7; bytes]));
    Row::Result(JobResult { id: id.clone(), content_type, bytes })
}

/// A job as it is after its submission for that time.
pub(super) fn submitted(id: &JobId, run_at: i64) -> Vec<Row> {
    vec![
        Row::Facts(Box::new(facts(id))),
        Row::State(Box::new(state(id, JobStatus::Submitted))),
        Row::Task(task(id, run_at)),
        Row::Transition(transition(id, 1, None, "SUBMITTED")),
    ]
}
