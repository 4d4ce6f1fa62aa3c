//! Which worker an id or a name means: one of a pool that is served, or one of which only the
//! ledger knows by now.

use axum::http::StatusCode;
use ostler_core::{Status, WorkerId};
use ostler_runtime::{Pool, WorkerInfo};
use ostler_store::ledger::worker::Worker;

use crate::problem::Problem;
use crate::roster::Served;
use crate::server::Shared;
use crate::workers::{Key, WorkerBody};

#[derive(Debug)]
pub(crate) enum Whereabouts {
    Here {
        pool: Pool,
        worker: WorkerId,
        name: String,
        status: Status,
    },
    /// It has its end, or its pool is not served any more.
    Past(Worker),
}

/// A worker that is there, as its pool knows it.
pub(crate) fn living(shared: &Shared, id: &str) -> Result<(Pool, WorkerId), Problem> {
    match here(shared, id) {
        Some(Whereabouts::Here { pool, worker, .. }) => Ok((pool, worker)),
        _ => Err(not_found(id)),
    }
}

pub(crate) fn here(shared: &Shared, id: &str) -> Option<Whereabouts> {
    shared.pools().into_iter().find_map(|served| {
        let info = served.pool.info();
        let found = info.workers.iter().find(|worker| is(&served, worker, id))?;
        let (worker, name, status) = (found.view.id, found.name.clone(), found.view.status);
        Some(Whereabouts::Here { pool: served.pool, worker, name, status })
    })
}

/// A worker, wherever it is.
pub(crate) async fn of(shared: &Shared, id: &str) -> Result<Whereabouts, Problem> {
    if let Some(here) = here(shared, id) {
        return Ok(here);
    }
    past(shared, id).await.map(Whereabouts::Past)
}

/// A worker as the ledger remembers it.
pub(crate) async fn past(shared: &Shared, id: &str) -> Result<Worker, Problem> {
    let known = shared.jobs.ledger().worker(id).await.map_err(Problem::of_ledger)?;
    known.ok_or_else(|| not_found(id))
}

/// How it is, or how it ended.
pub(crate) async fn body(shared: &Shared, id: &str) -> Result<WorkerBody, Problem> {
    match body_here(shared, id) {
        Some(body) => Ok(body),
        None => past(shared, id).await.map(|worker| WorkerBody::past(&worker)),
    }
}

fn body_here(shared: &Shared, id: &str) -> Option<WorkerBody> {
    shared.pools().into_iter().find_map(|served| {
        let info = served.pool.info();
        let worker = info.workers.iter().find(|worker| is(&served, worker, id))?;
        Some(WorkerBody::of(&served, worker))
    })
}

fn is(served: &Served, worker: &WorkerInfo, id: &str) -> bool {
    worker.name == id || Key::of(served, worker.view.id).to_string() == id
}

/// A worker's pool and its name. One that is gone is remembered by its name only.
pub(crate) fn remembered(shared: &Shared, id: &str) -> Result<(Pool, String), Problem> {
    if let Some(Whereabouts::Here { pool, name, .. }) = here(shared, id) {
        return Ok((pool, name));
    }
    let remembers = |served: &Served| served.pool.worker_output(id).is_some();
    let found = shared.pools().into_iter().find(remembers);
    found.map(|served| (served.pool, id.to_owned())).ok_or_else(|| not_found(id))
}

pub(crate) fn not_found(id: &str) -> Problem {
    let detail = format!("there is no worker `{id}`; GET /api/workers lists them");
    Problem::new(StatusCode::NOT_FOUND, "worker_not_found", detail)
}
