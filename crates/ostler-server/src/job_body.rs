//! Jobs as this API shows them. A list leaves out what may be large; a job that is asked for by its
//! id has all of it.

use std::collections::BTreeMap;

use ostler_runtime::Body;
use ostler_store::Content;
use ostler_store::ledger::audit::Transition;
use ostler_store::ledger::job::{Attempt, Children, Job, NewJob};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::time::rfc3339;

/// One job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobBody {
    #[schema(example = "j_019a8f0c4a7b7c3e9d1f2a3b4c5d6e7f")]
    pub id: String,
    /// SUBMITTED, PENDING, RUNNING, COMPLETED, FAILED or CANCELED.
    pub status: &'static str,
    #[serde(flatten)]
    pub spec: JobSpecBody,
    pub parent_job_id: Option<String>,
    /// The first of its ancestors, or itself.
    pub root_job_id: String,
    pub depth: u32,
    #[schema(format = DateTime)]
    pub run_at: Option<String>,
    /// Attempts begun.
    pub attempts: u32,
    /// Its function has returned; it waits for its children.
    pub waiting: bool,
    /// Children without an end.
    pub open_children: u32,
    /// Somebody wants it to end; it is CANCELED once its work has let go.
    pub cancel: Option<CancelBody>,
    /// The last that it said.
    #[schema(value_type = Option<Value>)]
    pub progress: Option<Value>,
    /// Of a completed job, as `payload`; with several workers a list, by shard.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub result: Option<Box<RawValue>>,
    /// `code`, `message`, and what helps: of a failed job, or of the last attempt of a running one.
    #[schema(value_type = Option<Value>)]
    pub error: Option<Value>,
    /// Why it ended so.
    pub reason: Option<String>,
    pub retry_of: Option<String>,
    pub schedule_id: Option<String>,
    /// Rises with every change.
    pub version: u64,
    #[schema(format = DateTime)]
    pub created_at: String,
    #[schema(format = DateTime)]
    pub started_at: Option<String>,
    #[schema(format = DateTime)]
    pub completed_at: Option<String>,
    /// When its timeout strikes.
    #[schema(format = DateTime)]
    pub deadline: Option<String>,
    /// Messages and log lines that were not kept.
    pub events_dropped: u64,
    /// Every change of its status. Only of a job that is asked for by its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_history: Option<Vec<JobStep>>,
    /// It was there already, by its unique key. Only where it was submitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<bool>,
}

/// What a job is to do.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobSpecBody {
    pub workspace_id: String,
    pub queue: String,
    pub pool: String,
    pub function: String,
    /// Bytes are `{"$bytes": base64}`. Only of a job or schedule that is asked for by its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub payload: Option<Box<RawValue>>,
    pub task_description: Option<String>,
    pub worker_count: u32,
    pub session: Option<String>,
    pub priority: i8,
    /// Seconds.
    pub timeout: Option<f64>,
    pub max_attempts: u32,
    pub retry_on: Vec<&'static str>,
    pub backoff: BackoffBody,
    /// wait or ignore.
    pub children: &'static str,
    pub tags: BTreeMap<String, String>,
    pub unique_key: Option<String>,
    pub concurrency_key: Option<String>,
    pub concurrency_limit: u32,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BackoffBody {
    /// Seconds.
    pub initial: f64,
    /// Seconds.
    pub max: f64,
    pub factor: f64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CancelBody {
    #[schema(format = DateTime)]
    pub at: String,
    pub reason: String,
    pub by: String,
}

/// One change of a job's status.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobStep {
    /// Counts from 1, without a gap.
    pub seq: u64,
    /// Null: it came into being.
    pub from: Option<String>,
    pub to: String,
    pub trigger: String,
    pub reason: Option<String>,
    pub actor: String,
    pub request_id: Option<String>,
    #[schema(format = DateTime)]
    pub at: String,
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Value>,
}

/// One attempt to run a job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AttemptBody {
    /// Counts from 1.
    pub attempt: u32,
    /// By shard, as far as they are known.
    pub workers: Vec<String>,
    #[schema(format = DateTime)]
    pub started_at: String,
    #[schema(format = DateTime)]
    pub ended_at: Option<String>,
    /// completed, canceled, or how it failed: error, retryable, crashed, lost, invalid_arguments.
    pub outcome: Option<String>,
    #[schema(value_type = Option<Value>)]
    pub error: Option<Value>,
    /// Rises with every attempt; a word about an older one is not heard.
    pub fence: u64,
    /// Which run of the server made it.
    pub node: String,
}

impl JobSpecBody {
    /// Without its payload.
    pub fn brief(spec: &NewJob) -> Self {
        let backoff = &spec.retrying.backoff;
        JobSpecBody {
            workspace_id: spec.workspace.clone(),
            queue: spec.queue.clone(),
            pool: spec.pool.clone(),
            function: spec.function.clone(),
            payload: None,
            task_description: spec.task_description.clone(),
            worker_count: spec.worker_count,
            session: spec.session.clone(),
            priority: spec.priority,
            timeout: spec.timeout.map(|timeout| timeout.as_secs_f64()),
            max_attempts: spec.retrying.max_attempts,
            retry_on: if spec.retrying.on_error { vec!["error"] } else { Vec::new() },
            backoff: BackoffBody {
                initial: backoff.initial.as_secs_f64(),
                max: backoff.max.as_secs_f64(),
                factor: backoff.factor,
            },
            children: match spec.children {
                Children::Wait => "wait",
                Children::Ignore => "ignore",
            },
            tags: spec.tags.clone(),
            unique_key: spec.unique_key.clone(),
            concurrency_key: spec.concurrency_key.clone(),
            concurrency_limit: spec.concurrency_limit,
        }
    }

    pub fn whole(spec: &NewJob) -> Self {
        let payload = Some(&spec.payload).filter(|payload| !payload.bytes.is_empty());
        JobSpecBody { payload: payload.map(spelled), ..JobSpecBody::brief(spec) }
    }
}

impl JobBody {
    /// Without what may be large.
    pub fn brief(job: &Job) -> Self {
        JobBody {
            id: job.id.to_string(),
            status: job.status.name(),
            spec: JobSpecBody::brief(&job.spec),
            parent_job_id: job.spec.parent.as_ref().map(ToString::to_string),
            root_job_id: job.root.to_string(),
            depth: job.depth,
            run_at: job.spec.run_at.map(rfc3339),
            attempts: job.attempt,
            waiting: job.waiting,
            open_children: job.open_children,
            cancel: job.cancel.as_ref().map(|cancel| CancelBody {
                at: rfc3339(cancel.at),
                reason: cancel.reason.clone(),
                by: cancel.by.clone(),
            }),
            progress: job.progress.clone(),
            result: None,
            error: job.error.clone(),
            reason: job.reason.clone(),
            retry_of: job.retry_of.as_ref().map(ToString::to_string),
            schedule_id: job.schedule.as_ref().map(ToString::to_string),
            version: job.version,
            created_at: rfc3339(job.created_at),
            started_at: job.started_at.map(rfc3339),
            completed_at: job.completed_at.map(rfc3339),
            deadline: job.deadline.map(rfc3339),
            events_dropped: job.events_dropped,
            state_history: None,
            known: None,
        }
    }

    /// And its result, if it has one.
    pub fn with_result(job: &Job) -> Self {
        JobBody { result: job.result.as_ref().map(spelled), ..JobBody::brief(job) }
    }

    pub fn whole(job: &Job, history: &[Transition]) -> Self {
        JobBody {
            spec: JobSpecBody::whole(&job.spec),
            state_history: Some(history.iter().map(JobStep::of).collect()),
            ..JobBody::with_result(job)
        }
    }
}

impl JobStep {
    pub fn of(step: &Transition) -> Self {
        JobStep {
            seq: step.seq,
            from: step.from.clone(),
            to: step.to.clone(),
            trigger: step.trigger.clone(),
            reason: step.reason.clone(),
            actor: step.actor.clone(),
            request_id: step.request_id.clone(),
            at: rfc3339(step.at),
            metadata: None,
        }
    }
}

impl AttemptBody {
    pub fn of(attempt: &Attempt) -> Self {
        AttemptBody {
            attempt: attempt.attempt,
            workers: attempt.workers.clone(),
            started_at: rfc3339(attempt.started_at),
            ended_at: attempt.ended_at.map(rfc3339),
            outcome: attempt.outcome.clone(),
            error: attempt.error.clone(),
            fence: attempt.fence,
            node: attempt.node.clone(),
        }
    }
}

const JSON: &str = "application/json";

/// As JSON, whatever it is.
fn spelled(content: &Content) -> Box<RawValue> {
    let raw = || Body::raw(content.bytes.clone(), Some(content.content_type.to_string()));
    let plain = match &*content.content_type {
        JSON => Body::json(content.bytes.clone()).value(),
        _ => raw().to_json(),
    };
    // What calls itself JSON and is none is shown as bytes.
    read(&plain).or_else(|| read(&raw().to_json())).expect("bytes in base64 are JSON")
}

fn read(json: &[u8]) -> Option<Box<RawValue>> {
    serde_json::from_slice(json).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_json_whatever_they_are() {
        let shown =
            |kind: &str, bytes: &'static [u8]| spelled(&Content::new(kind, bytes)).get().to_owned();
        assert_eq!(shown(JSON, b"{\"a\": 1}"), "{\"a\": 1}");
        assert_eq!(shown(JSON, b""), "null");
        assert!(shown("image/png", b"\x89PNG").contains("$bytes"));
        assert!(shown(JSON, b"{").contains("$bytes"));
    }
}
