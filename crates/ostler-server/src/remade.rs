//! An answer made of what is there. The effect of a request was stored with its key and the answer
//! was not: the server ended in between, or somebody is still waiting for it. It shows things as
//! they are by now.

use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use ostler_store::ledger::LedgerError;

use crate::answer::{Answer, ok};
use crate::job_body::JobBody;
use crate::jobs::{self, BatchBody};
use crate::problem::Problem;
use crate::queues::QueueBody;
use crate::schedules::{self, ScheduleBody};
use crate::server::Shared;
use crate::supervise;
use crate::told::Told;
use crate::whereabouts;

/// What the route of this path would have answered about the resource.
pub(crate) async fn answer(
    shared: &Shared,
    method: &Method,
    path: &str,
    resource: &str,
) -> Result<Told, Problem> {
    let segments: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let response = match *segments {
        ["api", "jobs"] => submitted(shared, resource).await?,
        ["api", "jobs", "batch"] => batch(shared, resource).await?.into_response(),
        ["api", "jobs", _, "cancel"] => {
            let job = jobs::found(shared, &jobs::id_of(resource)?).await?;
            jobs::cancelled(&job).into_response()
        }
        ["api", "jobs", _, "retry"] => submitted(shared, resource).await?,
        ["api", "queues", ..] => queue(shared, resource).await?.into_response(),
        ["api", "schedules", _] if method == Method::DELETE => {
            StatusCode::NO_CONTENT.into_response()
        }
        ["api", "schedules"] => schedules::made(&schedule(shared, resource).await?),
        ["api", "schedules", ..] => {
            ok(ScheduleBody::of(&schedule(shared, resource).await?)).into_response()
        }
        ["api", "workers"] => supervise::made(whereabouts::body(shared, resource).await?),
        _ => ok(whereabouts::body(shared, resource).await?).into_response(),
    };
    Told::of(response).await
}

async fn submitted(shared: &Shared, id: &str) -> Result<Response, Problem> {
    let job = jobs::found(shared, &jobs::id_of(id)?).await?;
    Ok(jobs::shown(StatusCode::ACCEPTED, JobBody::with_result(&job)))
}

async fn batch(shared: &Shared, ids: &str) -> Result<Answer<BatchBody>, Problem> {
    let mut jobs = Vec::new();
    for id in ids.split(',') {
        jobs.push(JobBody::brief(&jobs::found(shared, &jobs::id_of(id)?).await?));
    }
    Ok(Answer(StatusCode::ACCEPTED, BatchBody { jobs }))
}

async fn queue(shared: &Shared, name: &str) -> Result<Answer<QueueBody>, Problem> {
    let queues = shared.jobs.ledger().queues().await.map_err(Problem::of_ledger)?;
    let found = queues.iter().find(|queue| queue.name == name);
    // A queue that nobody holds and nothing waits in is not listed.
    let idle =
        QueueBody { name: name.to_owned(), paused: false, paused_at: None, waiting: 0, running: 0 };
    Ok(ok(found.map_or(idle, QueueBody::of)))
}

async fn schedule(
    shared: &Shared,
    id: &str,
) -> Result<ostler_store::ledger::schedule::Schedule, Problem> {
    let found: Result<_, LedgerError> = shared.jobs.ledger().schedule(id).await;
    found.map_err(Problem::of_ledger)
}
