//! How errors are known outside: code, status and details, for HTTP answers, events, metrics and
//! workers that call back. The one place that maps them; what they say to people is in `failure`.

use std::time::Duration;

use ostler_core::{Exit, LossReason, Refusal, Started, StopReason, Waiting};
use ostler_proto::WorkerError;
use ostler_store::SessionError;
use serde_json::{Map, Value, json};

use crate::events::reason;
use crate::failure::{CallError, Condition, Failure, Refused, signal_name};

/// One of a closed list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    pub code: &'static str,
    /// The HTTP status.
    pub status: u16,
    pub retryable: bool,
    /// When asking again may help.
    pub retry_after: Option<Duration>,
}

impl CallError {
    pub fn known(&self) -> Known {
        match self {
            CallError::Refused(refused) => refused.known(),
            CallError::Failed(failure) => failure.known(),
        }
    }

    /// What helps to understand it, beside code and message. `tracebacks`: the caller may see them.
    pub fn details(&self, tracebacks: bool) -> Map<String, Value> {
        let details = match self {
            CallError::Refused(refused) => refused.details(),
            CallError::Failed(failure) => failure.details(tracebacks),
        };
        match details {
            Value::Object(mut details) => {
                details.retain(|_, value| !value.is_null());
                details
            }
            _ => Map::new(),
        }
    }
}

const SECOND: Duration = Duration::from_secs(1);

fn final_answer(status: u16, code: &'static str) -> Known {
    Known { code, status, retryable: false, retry_after: None }
}

fn unavailable(code: &'static str, retry_after: Duration) -> Known {
    Known { code, status: 503, retryable: true, retry_after: Some(retry_after) }
}

impl Refused {
    fn known(&self) -> Known {
        match self {
            Refused::FunctionNotFound { .. } => final_answer(404, "function_not_found"),
            Refused::PoolNotFound { .. } => final_answer(404, "pool_not_found"),
            Refused::Unsendable { .. } => final_answer(400, "malformed"),
            Refused::NestedTooDeep { .. } => final_answer(409, "nested_too_deep"),
            Refused::Arguments(error) => match error.code.as_str() {
                WorkerError::FUNCTION_NOT_FOUND => final_answer(404, "function_not_found"),
                WorkerError::MALFORMED => final_answer(400, "malformed"),
                WorkerError::THREAD_UNSAFE => {
                    Known { retryable: true, ..final_answer(409, "thread_unsafe") }
                }
                _ => final_answer(422, "invalid_arguments"),
            },
            Refused::Session(error) => known_session(error),
            Refused::SessionRequired => final_answer(422, "session_required"),
            Refused::OperationNotFound { .. } => final_answer(404, "operation_not_found"),
            Refused::PoolFailed { .. } => known_refusal(&Refusal::PoolFailed),
            Refused::Pool(refusal) => known_refusal(refusal),
        }
    }

    fn details(&self) -> Value {
        match self {
            Refused::FunctionNotFound { known, .. } | Refused::PoolNotFound { known, .. } => {
                json!({ "started": false, "known": known })
            }
            Refused::Pool(Refusal::Saturated { queued, busy, oldest }) => json!({
                "started": false, "queued": queued, "busy": busy,
                "oldest_seconds": oldest.as_secs_f64(),
            }),
            Refused::Pool(Refusal::DeadlineUnreachable { queued, estimate }) => json!({
                "started": false, "queued": queued, "estimate_seconds": estimate.as_secs_f64(),
            }),
            Refused::Pool(Refusal::Quarantined { exit, left }) => json!({
                "started": false, "exit": exit_details(*exit), "left_seconds": left.as_secs_f64(),
            }),
            Refused::OperationNotFound { known, .. } => json!({ "started": false, "known": known }),
            Refused::Session(SessionError::VersionConflict { version, .. }) => {
                json!({ "started": false, "version": version })
            }
            _ => json!({ "started": false }),
        }
    }
}

fn known_session(error: &SessionError) -> Known {
    let again = |status, code| Known { retryable: true, ..final_answer(status, code) };
    match error {
        SessionError::NotFound { .. } => final_answer(404, "session_not_found"),
        SessionError::Exists { .. } => final_answer(409, "session_exists"),
        SessionError::Invalid(_) => final_answer(422, "invalid_session"),
        SessionError::VersionConflict { .. } => again(412, "version_conflict"),
        SessionError::Quota { .. } => again(429, "session_quota_exceeded"),
        SessionError::ProgramNotFound { .. } => final_answer(404, "program_not_found"),
        SessionError::ProgramQuota { .. } => final_answer(422, "program_quota_exceeded"),
        SessionError::MetadataTooLarge { .. } => final_answer(413, "metadata_too_large"),
        SessionError::StoreFull { .. } => final_answer(507, "session_store_full"),
        SessionError::StoreUnavailable { .. } => unavailable("store_unavailable", SECOND),
    }
}

fn known_refusal(refusal: &Refusal) -> Known {
    match refusal {
        Refusal::Saturated { .. } => unavailable("pool_saturated", SECOND),
        Refusal::QueueTimeout => unavailable("queue_timeout", SECOND),
        Refusal::DeadlineUnreachable { .. } => unavailable("deadline_unreachable", SECOND),
        Refusal::PoolDraining => unavailable("pool_draining", SECOND),
        Refusal::SessionWorkerLost => {
            Known { retryable: true, ..final_answer(409, "session_worker_lost") }
        }
        Refusal::WorkerBusy => Known { retryable: true, ..final_answer(409, "worker_busy") },
        Refusal::KeyRequired => final_answer(422, "key_required"),
        Refusal::NotInKeyedPool => final_answer(409, "not_in_keyed_pool"),
        Refusal::ShuttingDown => unavailable("shutting_down", SECOND),
        Refusal::PoolFailed => unavailable("pool_failed", Duration::from_secs(30)),
        Refusal::LeaseTimeout => unavailable("lease_timeout", SECOND),
        Refusal::Quarantined { left, .. } => {
            Known { retry_after: Some(*left), ..final_answer(422, "quarantined") }
        }
        Refusal::NestedDeadlock => final_answer(409, "nested_deadlock"),
        Refusal::NoSuchWorker => final_answer(404, "worker_not_found"),
        Refusal::WorkerNotServing => final_answer(409, "worker_not_serving"),
        Refusal::NoSuchLease => final_answer(404, "lease_not_found"),
        Refusal::TooManyWorkers => final_answer(422, "too_many_workers"),
    }
}

impl Failure {
    fn known(&self) -> Known {
        match self {
            Failure::Application(error) => {
                Known { retryable: error.retryable, ..final_answer(500, "application_error") }
            }
            Failure::Cancelled { .. } => final_answer(499, "cancelled"),
            Failure::TimedOut { .. } => final_answer(504, "deadline_exceeded"),
            Failure::Crashed { reason, .. } => final_answer(502, crash_code(*reason)),
            Failure::ResultTooLarge { .. } => final_answer(502, "result_too_large"),
        }
    }

    fn details(&self, tracebacks: bool) -> Value {
        match self {
            Failure::Application(error) => {
                let traceback = error.traceback.as_ref().filter(|_| tracebacks);
                let mut details = json!({ "started": true });
                let optional = [("error_type", error.kind.as_ref()), ("traceback", traceback)];
                for (key, value) in optional {
                    if let Some(value) = value {
                        details[key] = value.as_str().into();
                    }
                }
                details
            }
            Failure::Cancelled { started } => json!({ "started": started_value(*started) }),
            Failure::TimedOut { phase, started, condition } => json!({
                "started": started_value(*started),
                "phase": match phase {
                    Waiting::Queue => "queue",
                    Waiting::Retry => "retry",
                    Waiting::Worker => "running",
                },
                "process_state": condition.map(Condition::name),
            }),
            Failure::Crashed { worker, exit, started, stderr, chunks, condition, .. } => json!({
                "started": started_value(*started),
                "outcome_unknown": true,
                "worker": worker,
                "exit": exit_details(*exit),
                "stderr": stderr,
                "chunks": chunks,
                "process_state": condition.map(Condition::name),
            }),
            Failure::ResultTooLarge { limit } => json!({ "started": true, "limit": limit }),
        }
    }
}

fn crash_code(reason: LossReason) -> &'static str {
    match reason {
        LossReason::Stopped(StopReason::ProtocolViolation) => "worker_answered_nonsense",
        LossReason::Stopped(StopReason::Hung | StopReason::HeartbeatLost) => "worker_unresponsive",
        LossReason::Stopped(StopReason::Shutdown) => "shutting_down",
        LossReason::Stopped(_) => "worker_stopped",
        LossReason::Crashed => "worker_crashed",
    }
}

fn exit_details(exit: Exit) -> Value {
    let class = reason::of_exit(exit);
    match exit {
        Exit::Code(code) => json!({ "class": class, "code": code }),
        Exit::Signal(signal) => json!({ "class": class, "signal": signal_name(signal) }),
        Exit::OutOfMemory | Exit::Unknown => json!({ "class": class }),
    }
}

pub fn started_value(started: Started) -> Value {
    match started {
        Started::No => false.into(),
        Started::Yes => true.into(),
        Started::Unknown => "unknown".into(),
    }
}
