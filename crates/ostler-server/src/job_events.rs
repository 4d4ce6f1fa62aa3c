//! The story of one job, followed live: what it said and what became of it.
//!
//! The lines are read from the ledger as the client takes them. A reader has a place and no buffer,
//! so a slow one costs nothing and holds up nobody; one that outlasts the job's retention is told
//! that the rest is gone.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use bytes::BytesMut;
use ostler_store::ledger::job::{Job, JobEvent};
use ostler_store::ledger::{JobId, LedgerError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;
use utoipa::{IntoParams, ToSchema};

use crate::jobs::{found, id_of};
use crate::list;
use crate::problem::Problem;
use crate::query::Params;
use crate::segment::Segment;
use crate::server::Shared;
use crate::sse::{self, Source, last_event_id};
use crate::time::rfc3339;

/// Lines that are read at once.
const GATHER: usize = 256;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobEventBody<'a> {
    /// Counts the lines of this job's story.
    pub seq: u64,
    #[schema(format = DateTime)]
    pub at: String,
    /// status, attempt, progress, message or log.
    #[schema(example = "progress")]
    pub kind: &'a str,
    #[schema(value_type = Value)]
    pub data: &'a Value,
}

/// The last event: how the job ended.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobEndBody<'a> {
    /// COMPLETED, FAILED or CANCELED.
    pub status: &'static str,
    pub reason: Option<&'a str>,
    #[schema(value_type = Option<Value>)]
    pub error: Option<&'a Value>,
    pub attempts: u32,
}

/// The last event where the rest of the story is not to be had.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobGoneBody {
    /// `job_not_found`: it was pruned.
    pub code: &'static str,
    pub detail: String,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct StoryQuery {
    /// False: what there is, and then the end of the stream.
    #[serde(default = "yes")]
    #[param(default = true)]
    follow: bool,
    /// Lines after this number. `Last-Event-ID` says the same.
    #[param(maximum = 9223372036854775807u64)]
    after: Option<u64>,
}

fn yes() -> bool {
    true
}

/// Follows a job, as server-sent events under their kinds. The last one is `end`, with how the job
/// ended.
#[utoipa::path(get, path = "/api/jobs/{id}/events", tag = "jobs", operation_id = "jobs.events",
    params(("id" = String, Path), StoryQuery),
    responses((status = 200, description = "Server-sent events", body = JobEventBody,
               content_type = "text/event-stream")))]
pub(crate) async fn follow(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(query): Params<StoryQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = id_of(&id)?;
    let after = list::after("after", last_event_id(&headers)?.or(query.after))?;
    found(&shared, &id).await?;
    let changes = shared.jobs.changes(&id);
    let closing = shared.closing.subscribe();
    Ok(sse::stream(Following { shared, id, after, changes, closing, follow: query.follow }))
}

struct Following {
    shared: Arc<Shared>,
    id: JobId,
    /// The last line that was written.
    after: u64,
    changes: watch::Receiver<u64>,
    closing: watch::Receiver<bool>,
    follow: bool,
}

/// What there is to write.
enum Next {
    Lines(Vec<JobEvent>),
    /// All was told, and the job is this.
    Ended(Box<Job>),
    Gone(LedgerError),
    /// The server ends, or nobody wants to wait.
    Enough,
}

impl Following {
    /// Nothing is written before this returns, so nothing is lost where it is dropped.
    async fn next(&mut self) -> Next {
        loop {
            // Before looking: what changes from here on wakes.
            self.changes.borrow_and_update();
            match self.look().await {
                Ok(Some(next)) => return next,
                Ok(None) if self.follow => {}
                Ok(None) => return Next::Enough,
                Err(error) => return Next::Gone(error),
            }
            tokio::select! {
                changed = self.changes.changed() => if changed.is_err() { return Next::Enough },
                _ = self.closing.wait_for(|closing| *closing) => return Next::Enough,
            }
        }
    }

    async fn look(&self) -> Result<Option<Next>, LedgerError> {
        let ledger = self.shared.jobs.ledger();
        // The job first: the lines of its end are stored with it.
        let job = ledger.job(&self.id).await?;
        let lines = ledger.events(&self.id, self.after, GATHER).await?;
        Ok(match lines.is_empty() {
            false => Some(Next::Lines(lines)),
            true if job.status.terminal() => Some(Next::Ended(Box::new(job))),
            true => None,
        })
    }
}

impl Source for Following {
    async fn write(&mut self, out: &mut BytesMut) -> bool {
        match self.next().await {
            Next::Lines(lines) => {
                for line in &lines {
                    put(out, line);
                    self.after = line.seq;
                }
                true
            }
            Next::Ended(job) => {
                put_end(out, self.after, &job);
                false
            }
            Next::Gone(error) => {
                put_gone(out, self.after, &error);
                false
            }
            Next::Enough => false,
        }
    }
}

fn put(out: &mut BytesMut, line: &JobEvent) {
    let (kind, data) = (line.kind.as_str(), &line.data);
    let body = JobEventBody { seq: line.seq, at: rfc3339(line.at), kind, data };
    put_body(out, line.seq, kind, &body);
}

fn put_end(out: &mut BytesMut, after: u64, job: &Job) {
    let body = JobEndBody {
        status: job.status.name(),
        reason: job.reason.as_deref(),
        error: job.error.as_ref(),
        attempts: job.attempt,
    };
    put_body(out, after, "end", &body);
}

/// Pruned while it was followed, or the store cannot be read. Whoever comes back finds out.
fn put_gone(out: &mut BytesMut, after: u64, error: &LedgerError) {
    let problem = Problem::of_ledger(error.clone());
    put_body(out, after, "gone", &JobGoneBody { code: problem.code, detail: problem.detail });
}

fn put_body(out: &mut BytesMut, id: u64, event: &str, body: &impl Serialize) {
    let data = serde_json::to_vec(body).expect("plain data with text keys");
    sse::put(out, Some(id), event, &data);
}
