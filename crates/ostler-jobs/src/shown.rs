//! A job as the HTTP API shows it, for workers that ask about one.

use jiff::Timestamp;
use ostler_runtime::Body;
use ostler_store::Content;
use ostler_store::ledger::job::{Children, Job};
use serde_json::{Value, json};

use crate::body;

pub(crate) fn shown(job: &Job) -> Value {
    let spec = &job.spec;
    let backoff = &spec.retrying.backoff;
    let mut shown = json!({
        "id": job.id.as_str(),
        "status": job.status.name(),
        "workspace_id": spec.workspace,
        "queue": spec.queue,
        "pool": spec.pool,
        "function": spec.function,
        "task_description": spec.task_description,
        "worker_count": spec.worker_count,
        "session": spec.session,
        "priority": spec.priority,
        "timeout": spec.timeout.map(|timeout| timeout.as_secs_f64()),
        "max_attempts": spec.retrying.max_attempts,
        "retry_on": if spec.retrying.on_error { vec!["error"] } else { Vec::new() },
        "backoff": {
            "initial": backoff.initial.as_secs_f64(),
            "max": backoff.max.as_secs_f64(),
            "factor": backoff.factor,
        },
        "children": match spec.children {
            Children::Wait => "wait",
            Children::Ignore => "ignore",
        },
        "tags": spec.tags,
        "unique_key": spec.unique_key,
        "concurrency_key": spec.concurrency_key,
        "concurrency_limit": spec.concurrency_limit,
    });
    let state = json!({
        "parent_job_id": spec.parent.as_ref().map(ToString::to_string),
        "root_job_id": job.root.as_str(),
        "depth": job.depth,
        "run_at": spec.run_at.map(time),
        "attempts": job.attempt,
        "waiting": job.waiting,
        "open_children": job.open_children,
        "cancel": job.cancel.as_ref().map(|cancel| {
            json!({ "at": time(cancel.at), "reason": cancel.reason, "by": cancel.by })
        }),
        "progress": job.progress,
        "error": job.error,
        "reason": job.reason,
        "retry_of": job.retry_of.as_ref().map(ToString::to_string),
        "schedule_id": job.schedule.as_ref().map(ToString::to_string),
        "version": job.version,
        "created_at": time(job.created_at),
        "started_at": job.started_at.map(time),
        "completed_at": job.completed_at.map(time),
        "deadline": job.deadline.map(time),
        "events_dropped": job.events_dropped,
    });
    merge(&mut shown, state);
    if let Some(result) = &job.result {
        shown["result"] = spelled(result);
    }
    shown
}

/// RFC 3339 in UTC, to the microsecond.
fn time(at: Timestamp) -> String {
    format!("{at:.6}")
}

fn merge(into: &mut Value, more: Value) {
    if let (Value::Object(into), Value::Object(more)) = (into, more) {
        into.extend(more);
    }
}

/// As JSON, whatever it is.
fn spelled(content: &Content) -> Value {
    let raw = || Body::raw(content.bytes.clone(), Some(content.content_type.to_string()));
    let read = |text: &[u8]| serde_json::from_slice(text).ok();
    read(&body::to_body(content).to_json())
        .or_else(|| read(&raw().to_json()))
        .unwrap_or(Value::Null)
}
