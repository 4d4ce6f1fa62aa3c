//! Rows as their readers see them.

use serde_json::Value;

use super::audit::Transition;
use super::backend::Failed;
use super::job::{Attempt, Cancel, Job, JobEvent};
use super::row::{
    AttemptRow, EventRow, JobFacts, JobResult, JobState, ScheduleRow, TransitionRow, WorkerRow,
};
use super::schedule::Schedule;
use super::spec::{ScheduleSpec, Spec};
use super::worker::Worker;
use crate::clock::timestamp;
use crate::content::Content;

pub(super) fn job(
    facts: &JobFacts,
    spec: &Spec,
    state: &JobState,
    result: Option<&JobResult>,
) -> Job {
    let completed = state.status == ostler_core::JobStatus::Completed;
    Job {
        id: facts.id.clone(),
        status: state.status,
        spec: spec.job(facts),
        root: facts.root.clone(),
        depth: facts.depth,
        attempt: state.attempt,
        waiting: state.waiting && !state.status.terminal(),
        open_children: state.open_children,
        cancel: cancel(state),
        progress: state.progress.as_deref().map(value),
        result: result.filter(|_| completed).map(content),
        error: state.error.as_deref().map(value),
        reason: state.reason.clone(),
        retry_of: facts.retry_of.clone(),
        schedule: facts.schedule.clone(),
        version: state.version,
        created_at: timestamp(facts.created_at),
        started_at: state.started_at.map(timestamp),
        completed_at: state.completed_at.map(timestamp),
        deadline: state.deadline.map(timestamp),
        events_dropped: state.events_dropped,
    }
}

/// From the rows alone.
pub(super) fn job_of_rows(
    facts: &JobFacts,
    state: &JobState,
    result: Option<&JobResult>,
) -> Result<Job, Failed> {
    Ok(job(facts, &spec(facts)?, state, result))
}

pub(super) fn spec(facts: &JobFacts) -> Result<Spec, Failed> {
    Spec::read(&facts.spec).map_err(|error| damaged("job", facts.id.as_str(), &error))
}

fn cancel(state: &JobState) -> Option<Cancel> {
    Some(Cancel {
        at: timestamp(state.cancel_at?),
        reason: state.cancel_reason.clone().unwrap_or_default(),
        by: state.cancel_by.clone().unwrap_or_default(),
    })
}

fn content(result: &JobResult) -> Content {
    Content::new(result.content_type.as_str(), result.bytes.clone())
}

/// What cannot be read is shown as it is written.
fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

pub(super) fn attempt(row: AttemptRow) -> Attempt {
    Attempt {
        attempt: row.attempt,
        fence: row.fence,
        node: row.node,
        workers: serde_json::from_str(&row.workers).unwrap_or_default(),
        started_at: timestamp(row.started_at),
        ended_at: row.ended_at.map(timestamp),
        outcome: row.outcome,
        error: row.error.as_deref().map(value),
    }
}

pub(super) fn event(row: EventRow) -> JobEvent {
    JobEvent { seq: row.seq, kind: row.kind, data: value(&row.data), at: timestamp(row.at) }
}

pub(super) fn transition(row: TransitionRow) -> Transition {
    Transition {
        seq: row.seq,
        from: row.from,
        to: row.to,
        trigger: row.trigger,
        reason: row.reason,
        actor: row.actor,
        node: row.node,
        request_id: row.request_id,
        at: timestamp(row.at),
    }
}

pub(super) fn worker(row: WorkerRow) -> Worker {
    Worker {
        id: row.id,
        name: row.name,
        pool: row.pool,
        workspace: row.workspace,
        dedicated: row.dedicated,
        status: row.status,
        seq: row.seq,
        created_at: timestamp(row.created_at),
        updated_at: timestamp(row.updated_at),
    }
}

pub(super) fn schedule(row: &ScheduleRow) -> Result<Schedule, Failed> {
    let spec = ScheduleSpec::read(&row.spec)
        .map_err(|error| damaged("schedule", row.id.as_str(), &error))?;
    Ok(Schedule {
        id: row.id.clone(),
        spec: spec.schedule(row.name.clone(), row.workspace.clone()),
        next_at: row.next_at.map(timestamp),
        last_at: row.last_at.map(timestamp),
        last_job: row.last_job.clone(),
        version: row.version,
        created_at: timestamp(row.created_at),
    })
}

fn damaged(what: &str, id: &str, error: &serde_json::Error) -> Failed {
    let reason = format!(
        "the row of {what} `{id}` cannot be read ({error}); look at the store with `ostler store \
         check`"
    );
    Failed { full: false, of_rows: true, doubtful: false, reason }
}
