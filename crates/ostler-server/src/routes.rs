//! Every route but the call itself, and what answers where there is none.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};

use crate::problem::Problem;
use crate::server::Shared;
use crate::{
    audit, bindings, docs, events, idempotency, job_events, jobs, leases, logs, metrics, openapi,
    orders, pools, programs, queues, reload, requests, schedules, session_stats, sessions, status,
    store, supervise, transitions, workers,
};

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    let limit = DefaultBodyLimit::max(shared.max_body);
    Router::new()
        .route("/livez", get(status::livez))
        .route("/readyz", get(status::readyz))
        .route("/api/stats", get(status::stats))
        .route("/api/stats/sessions", get(session_stats::of_all))
        .route("/api/server/stop", post(status::stop))
        .route("/api/reload", post(reload::reload))
        .route("/api/pools", get(pools::list))
        .route("/api/pools/{pool}", get(pools::one))
        .route("/api/pools/{pool}/pause", post(orders::pause))
        .route("/api/pools/{pool}/resume", post(orders::resume))
        .route("/api/pools/{pool}/drain", post(orders::drain))
        .route("/api/pools/{pool}/scale", post(orders::scale))
        .route("/api/pools/{pool}/recycle", post(orders::recycle_pool))
        .route("/api/pools/{pool}/leases", get(leases::list).post(leases::create))
        .route("/api/leases/{id}", get(leases::one).delete(leases::give_back))
        .route("/api/leases/{id}/renew", post(leases::renew))
        .route("/api/sessions", get(sessions::list).post(sessions::create))
        .route("/api/sessions/sweep", post(session_stats::sweep))
        .merge(of_a_session())
        .merge(of_workers())
        .merge(of_jobs())
        .merge(of_schedules())
        .route("/api/audit/verify", get(audit::verify))
        .route("/api/store/check", post(store::check))
        .route("/api/store/backup", post(store::backup))
        .route("/api/requests", get(requests::list))
        .route("/api/requests/{id}", get(requests::one))
        .route("/api/requests/{id}/cancel", post(requests::cancel))
        .route("/api/events", get(events::follow))
        .route("/metrics", get(metrics::expose))
        .route("/openapi.json", get(openapi::document))
        .route("/docs", get(docs::page))
        .route_layer(from_fn_with_state(Arc::clone(&shared), idempotency::guard))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(limit)
        .with_state(shared)
}

fn of_workers() -> Router<Arc<Shared>> {
    let order = |name: &str| format!("/api/supervisor/workers/{{id}}/{name}");
    Router::new()
        .route("/api/workers", get(workers::list).post(supervise::create))
        .route("/api/workers/{id}", get(workers::one))
        .route("/api/workers/{id}/start", post(supervise::start))
        .route("/api/workers/{id}/transitions", get(transitions::list))
        .route("/api/workers/{id}/logs", get(logs::read))
        .route(&order("pause"), post(supervise::pause))
        .route(&order("resume"), post(supervise::resume))
        .route(&order("complete"), post(supervise::complete))
        .route(&order("terminate"), post(supervise::terminate))
        .route(&order("recycle"), post(supervise::recycle))
}

fn of_jobs() -> Router<Arc<Shared>> {
    Router::new()
        .route("/api/jobs", get(jobs::list).post(jobs::submit))
        .route("/api/jobs/batch", post(jobs::submit_batch))
        .route("/api/jobs/{id}", get(jobs::one))
        .route("/api/jobs/{id}/transitions", get(jobs::transitions))
        .route("/api/jobs/{id}/attempts", get(jobs::attempts))
        .route("/api/jobs/{id}/children", get(jobs::children))
        .route("/api/jobs/{id}/result", get(jobs::result))
        .route("/api/jobs/{id}/events", get(job_events::follow))
        .route("/api/jobs/{id}/cancel", post(jobs::cancel))
        .route("/api/jobs/{id}/retry", post(jobs::retry))
        .route("/api/queues", get(queues::list))
        .route("/api/queues/{name}/pause", post(queues::pause))
        .route("/api/queues/{name}/resume", post(queues::resume))
}

fn of_schedules() -> Router<Arc<Shared>> {
    let schedule = get(schedules::one).patch(schedules::patch).delete(schedules::delete);
    Router::new()
        .route("/api/schedules", get(schedules::list).post(schedules::create))
        .route("/api/schedules/{id}", schedule)
        .route("/api/schedules/{id}/pause", post(schedules::pause))
        .route("/api/schedules/{id}/resume", post(schedules::resume))
}

fn of_a_session() -> Router<Arc<Shared>> {
    let session = get(sessions::one).patch(sessions::patch).delete(sessions::delete);
    let program = get(programs::one).put(programs::put).delete(programs::delete);
    let binding = get(bindings::show).put(bindings::bind).delete(bindings::unbind);
    Router::new()
        .route("/api/sessions/{id}", session)
        .route("/api/sessions/{id}/stats", get(session_stats::of_one))
        .route("/api/sessions/{id}/programs", get(programs::list))
        .route("/api/sessions/{id}/programs/{name}", program)
        .route("/api/sessions/{id}/binding", binding)
}

async fn no_route(uri: Uri) -> Problem {
    let detail = format!("there is nothing at {}", uri.path());
    Problem::new(StatusCode::NOT_FOUND, "not_found", detail)
}

async fn no_method(uri: Uri) -> Problem {
    let detail = format!("{} does not take this method", uri.path());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
}
