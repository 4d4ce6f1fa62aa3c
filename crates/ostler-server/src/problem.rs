//! Every error that leaves the server: one code, one status, one place that maps them.

use std::time::Duration;

use hyper::StatusCode;
use ostler_core::{Exit, LossReason, Refusal, Started, StopReason, Waiting};
use ostler_runtime::{CallError, Failure, Refused, WorkerError, signal_name};
use serde_json::{Map, Value, json};

#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    pub status: StatusCode,
    pub code: &'static str,
    pub detail: String,
    pub retryable: bool,
    pub retry_after: Option<Duration>,
    /// What helps, beside the standard members.
    pub more: Map<String, Value>,
}

impl Problem {
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Problem { status, code, detail, retryable: false, retry_after: None, more: Map::new() }
    }

    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.more.insert(key.to_owned(), value.into());
        self
    }

    pub fn retryable(mut self, after: Option<Duration>) -> Self {
        self.retryable = true;
        self.retry_after = after;
        self
    }

    pub fn to_json(&self, request_id: &str) -> Value {
        let mut members = self.more.clone();
        members.insert("type".to_owned(), "about:blank".into());
        let title = self.status.canonical_reason().unwrap_or("Cancelled");
        members.insert("title".to_owned(), title.into());
        members.insert("status".to_owned(), self.status.as_u16().into());
        members.insert("code".to_owned(), self.code.into());
        members.insert("detail".to_owned(), self.detail.as_str().into());
        members.insert("retryable".to_owned(), self.retryable.into());
        members.insert("request_id".to_owned(), request_id.into());
        Value::Object(members)
    }

    pub fn bad_request(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::BAD_REQUEST, "malformed", detail)
    }

    pub fn pool_not_found(pool: &str, known: &[String]) -> Self {
        let detail = format!("there is no pool `{pool}`; known: {}", known.join(", "));
        Problem::new(StatusCode::NOT_FOUND, "pool_not_found", detail)
    }

    pub fn of_call(error: &CallError, tracebacks: bool) -> Self {
        match error {
            CallError::Refused(refused) => of_refusal(refused),
            CallError::Failed(failure) => of_failure(failure, tracebacks),
        }
    }
}

fn of_refusal(refused: &Refused) -> Problem {
    let detail = refused.to_string();
    match refused {
        Refused::FunctionNotFound { known, .. } => {
            let detail = format!("{detail}; known: {}", known.join(", "));
            Problem::new(StatusCode::NOT_FOUND, "function_not_found", detail)
        }
        Refused::Unsendable { .. } => Problem::bad_request(detail).with("started", false),
        Refused::Arguments(error) => {
            let not_found = error.code == WorkerError::FUNCTION_NOT_FOUND;
            let (status, code) = if not_found {
                (StatusCode::NOT_FOUND, "function_not_found")
            } else {
                (StatusCode::UNPROCESSABLE_ENTITY, "invalid_arguments")
            };
            Problem::new(status, code, detail).with("started", false)
        }
        Refused::Pool(refusal) => of_pool_refusal(*refusal, detail).with("started", false),
        Refused::PoolFailed { .. } => {
            of_pool_refusal(Refusal::PoolFailed, detail).with("started", false)
        }
    }
}

fn of_pool_refusal(refusal: Refusal, detail: String) -> Problem {
    let unavailable = |code| Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, detail.clone());
    let second = Some(Duration::from_secs(1));
    match refusal {
        Refusal::Saturated { queued, busy, oldest } => unavailable("pool_saturated")
            .retryable(second)
            .with("queued", queued)
            .with("busy", busy)
            .with("oldest_seconds", oldest.as_secs_f64()),
        Refusal::QueueTimeout => unavailable("queue_timeout").retryable(second),
        Refusal::ShuttingDown => unavailable("shutting_down").retryable(second),
        Refusal::PoolFailed => unavailable("pool_failed").retryable(Some(Duration::from_secs(30))),
        Refusal::LeaseTimeout => unavailable("lease_timeout").retryable(second),
        Refusal::NoSuchWorker => Problem::new(StatusCode::NOT_FOUND, "worker_not_found", detail),
        Refusal::WorkerNotServing => {
            Problem::new(StatusCode::CONFLICT, "worker_not_serving", detail)
        }
        Refusal::NoSuchLease => Problem::new(StatusCode::NOT_FOUND, "lease_not_found", detail),
        Refusal::TooManyWorkers => {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "too_many_workers", detail)
        }
    }
}

fn of_failure(failure: &Failure, tracebacks: bool) -> Problem {
    let detail = failure.to_string();
    match failure {
        Failure::Application(error) => application(error, tracebacks),
        Failure::Cancelled { started } => {
            let status = StatusCode::from_u16(499).expect("a valid status");
            Problem::new(status, "cancelled", "the request was cancelled")
                .with("started", started_value(*started))
        }
        Failure::TimedOut { phase, started } => {
            Problem::new(StatusCode::GATEWAY_TIMEOUT, "deadline_exceeded", detail)
                .with("phase", phase_name(*phase))
                .with("started", started_value(*started))
        }
        Failure::Crashed { worker, exit, reason, started, stderr, chunks } => {
            let crashed = Problem::new(StatusCode::BAD_GATEWAY, crash_code(*reason), detail)
                .with("worker", worker.as_str())
                .with("exit", exit_value(*exit))
                .with("started", started_value(*started))
                .with("outcome_unknown", true)
                .with("stderr", stderr.clone());
            if *chunks > 0 { crashed.with("chunks", *chunks) } else { crashed }
        }
        Failure::ResultTooLarge { limit } => {
            Problem::new(StatusCode::BAD_GATEWAY, "result_too_large", detail).with("limit", *limit)
        }
    }
}

fn application(error: &WorkerError, tracebacks: bool) -> Problem {
    let mut problem =
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "application_error", error.message.clone())
            .with("started", true);
    problem.retryable = error.retryable;
    if let Some(kind) = &error.kind {
        problem = problem.with("error_type", kind.as_str());
    }
    match &error.traceback {
        Some(traceback) if tracebacks => problem.with("traceback", traceback.as_str()),
        _ => problem,
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

fn exit_value(exit: Exit) -> Value {
    match exit {
        Exit::Code(code) => json!({ "class": "exit", "code": code }),
        Exit::Signal(signal) => json!({
            "class": match signal {
                libc::SIGSEGV | libc::SIGBUS => "segfault",
                libc::SIGABRT => "abort",
                libc::SIGKILL => "killed",
                _ => "signal",
            },
            "signal": signal_name(signal),
        }),
        Exit::Unknown => json!({ "class": "unknown" }),
    }
}

pub fn started_value(started: Started) -> Value {
    match started {
        Started::No => false.into(),
        Started::Yes => true.into(),
        Started::Unknown => "unknown".into(),
    }
}

fn phase_name(phase: Waiting) -> &'static str {
    match phase {
        Waiting::Queue => "queue",
        Waiting::Retry => "retry",
        Waiting::Worker => "running",
    }
}
