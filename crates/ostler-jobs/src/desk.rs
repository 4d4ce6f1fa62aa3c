//! Where workers hand in jobs and ask about them: `job.submit`, `job.get`, `job.cancel`.
//!
//! What a job submits is its child, and known by what it is and how often it was submitted: a parent
//! that is tried again finds the children that it has.

use std::sync::{Arc, Weak};

use ostler_proto::Body;
use ostler_runtime::{DESK_OPERATIONS, Desk, DeskAnswer, DeskAsk, HostError};
use ostler_store::ledger::job::Job;
use ostler_store::ledger::key::Asked;
use ostler_store::ledger::{JobId, LedgerError};
use serde::Deserialize;

use crate::jobs::JobError;
use crate::office::Office;
use crate::order;
use crate::shown::shown;

/// The pools know the desk and the office knows the pools: one of the ways must not hold.
#[derive(Debug)]
pub(crate) struct OfficeDesk {
    pub office: Weak<Office>,
}

impl Desk for OfficeDesk {
    fn operate(&self, ask: DeskAsk) -> DeskAnswer {
        let office = self.office.upgrade();
        Box::pin(async move {
            match office {
                Some(office) => operate(office, ask).await,
                None => Err(error("shutting_down", "the server is shutting down", true)),
            }
        })
    }
}

async fn operate(office: Arc<Office>, ask: DeskAsk) -> Result<Body, HostError> {
    match ask.operation.as_str() {
        "job.submit" => submit(&office, &ask).await,
        "job.get" => {
            let named: Named = read(&ask)?;
            let job = office.ledger.job(&named.parse()?).await.map_err(told)?;
            Ok(spelled(&job, None))
        }
        "job.cancel" => {
            let named: Named = read(&ask)?;
            let asked = Asked { reason: named.reason.clone(), ..asked(&ask) };
            let job = office.ledger.cancel(&named.parse()?, asked).await.map_err(told)?;
            Ok(spelled(&job, None))
        }
        other => {
            let known = DESK_OPERATIONS.join(", ");
            let message = format!("there is no operation `{other}`; known: {known}");
            Err(error("operation_not_found", message, false))
        }
    }
}

async fn submit(office: &Office, ask: &DeskAsk) -> Result<Body, HostError> {
    let job = order::read(&ask.body, ask.duty.as_deref()).map_err(invalid)?;
    let submitted = office.submit(vec![job], asked(ask)).await.map_err(told_of_job)?;
    let submitted = submitted.first().expect("one was submitted, so one comes back");
    Ok(spelled(&submitted.job, Some(submitted.known)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    id: String,
    reason: Option<String>,
}

impl Named {
    /// What is no id is no job's.
    fn parse(&self) -> Result<JobId, HostError> {
        self.id.parse().map_err(|()| told(LedgerError::NoJob { id: self.id.clone() }))
    }
}

fn read<'a, T: Deserialize<'a>>(ask: &'a DeskAsk) -> Result<T, HostError> {
    serde_json::from_slice(&ask.body.bytes)
        .map_err(|error| invalid(format!("{} takes {{id, reason?}}: {error}", ask.operation)))
}

fn asked(ask: &DeskAsk) -> Asked {
    let request_id = ask.request.as_ref().map(ToString::to_string);
    Asked { request_id, ..Asked::by(&*ask.worker) }
}

fn spelled(job: &Job, known: Option<bool>) -> Body {
    let mut shown = shown(job);
    if let Some(known) = known {
        shown["known"] = known.into();
    }
    Body::json(shown.to_string())
}

fn error(code: &str, message: impl Into<String>, retryable: bool) -> HostError {
    HostError { code: code.to_owned(), message: message.into(), retryable }
}

fn invalid(message: String) -> HostError {
    error("validation", message, false)
}

fn told_of_job(job_error: JobError) -> HostError {
    let message = job_error.to_string();
    match job_error {
        JobError::Ledger(ledger) => told(ledger),
        JobError::UnknownPool { .. } => error("pool_not_found", message, false),
        JobError::TooManyWorkers { .. } => error("too_many_workers", message, false),
    }
}

/// The codes of the HTTP API.
fn told(ledger: LedgerError) -> HostError {
    let (code, retryable) = match &ledger {
        LedgerError::NoJob { .. } => ("job_not_found", false),
        LedgerError::NoSchedule { .. } => ("schedule_not_found", false),
        LedgerError::ScheduleExists { .. } => ("schedule_exists", false),
        LedgerError::Invalid { .. } => ("validation", false),
        LedgerError::Illegal { .. } => ("illegal_transition", false),
        LedgerError::Quota { .. } => ("job_quota_exceeded", true),
        LedgerError::ScheduleQuota { .. } => ("schedule_quota_exceeded", false),
        LedgerError::KeyQuota { .. } => ("key_quota_exceeded", true),
        LedgerError::Full { .. } => ("store_full", false),
        LedgerError::Unavailable { .. } => ("store_unavailable", true),
        LedgerError::Doubtful { .. } => ("store_doubtful", false),
    };
    error(code, ledger.to_string(), retryable)
}
