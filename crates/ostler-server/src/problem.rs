//! Every error that leaves the server, as a problem: what a call ended in (its code and status are
//! the runtime's to name), and what is wrong with a request before there is a call.

use std::time::Duration;

use hyper::StatusCode;
use ostler_jobs::JobError;
use ostler_runtime::{CallError, Refused};
use ostler_store::SessionError;
use ostler_store::ledger::LedgerError;
use serde_json::{Map, Value};

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

    /// `tracebacks`: the caller may see those of the handler.
    pub fn of_call(error: &CallError, tracebacks: bool) -> Self {
        let known = error.known();
        let status = StatusCode::from_u16(known.status).expect("a valid status");
        Problem {
            status,
            code: known.code,
            detail: error.to_string(),
            retryable: known.retryable,
            retry_after: known.retry_after,
            more: error.details(tracebacks),
        }
    }

    /// A job names a pool that there is not: nothing is stored.
    pub fn unknown_pool(pool: &str, known: &[String]) -> Self {
        let detail = format!("there is no pool `{pool}`; known: {}", known.join(", "));
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "unknown_pool", detail)
            .with("field", "pool")
            .with("known", known)
    }

    /// What became of a submission.
    pub fn of_job(error: JobError) -> Self {
        match error {
            JobError::Ledger(error) => Problem::of_ledger(error),
            JobError::UnknownPool { pool, known } => Problem::unknown_pool(&pool, &known),
            JobError::TooManyWorkers { asked, max } => {
                let detail = format!("`worker_count` is {asked}, and the pool has at most {max}");
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "too_many_workers", detail)
                    .with("field", "worker_count")
                    .with("max", max)
            }
        }
    }

    /// What the ledger said.
    pub fn of_ledger(error: LedgerError) -> Self {
        use LedgerError as Ledger;
        let detail = error.to_string();
        let new = |status, code| Problem::new(status, code, detail.clone());
        match error {
            Ledger::NoJob { .. } => new(StatusCode::NOT_FOUND, "job_not_found"),
            Ledger::NoSchedule { .. } => new(StatusCode::NOT_FOUND, "schedule_not_found"),
            Ledger::ScheduleExists { .. } => new(StatusCode::CONFLICT, "schedule_exists"),
            Ledger::Invalid { field, index, .. } => {
                let problem = new(StatusCode::UNPROCESSABLE_ENTITY, "validation");
                problem.with("field", field).with("index", index)
            }
            Ledger::Illegal { from, to, allowed, .. } => {
                let allowed: Vec<&str> = allowed.iter().map(|status| status.name()).collect();
                let problem = new(StatusCode::CONFLICT, "illegal_transition");
                problem.with("from", from.name()).with("to", to.name()).with("allowed", allowed)
            }
            Ledger::Quota { current, max } => {
                let problem = new(StatusCode::TOO_MANY_REQUESTS, "job_quota_exceeded");
                problem.with("current", current).with("max", max).retryable(None)
            }
            Ledger::ScheduleQuota { current, max } => {
                let problem = new(StatusCode::TOO_MANY_REQUESTS, "schedule_quota_exceeded");
                problem.with("current", current).with("max", max)
            }
            Ledger::KeyQuota { current, max } => {
                let problem = new(StatusCode::TOO_MANY_REQUESTS, "key_quota_exceeded");
                problem.with("current", current).with("max", max).retryable(None)
            }
            Ledger::Full { .. } => new(StatusCode::INSUFFICIENT_STORAGE, "store_full"),
            Ledger::Unavailable { .. } => {
                new(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable").retryable(None)
            }
            Ledger::Doubtful { .. } => new(StatusCode::INTERNAL_SERVER_ERROR, "store_doubtful"),
        }
    }

    /// What the store of sessions said.
    pub fn of_session(error: SessionError) -> Self {
        let mut problem = Problem::of_call(&Refused::Session(error).into(), false);
        // There was nothing to start.
        problem.more.remove("started");
        problem
    }
}
