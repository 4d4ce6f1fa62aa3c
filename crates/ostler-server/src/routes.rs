//! Every route but the call itself, and what answers where there is none.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{StatusCode, Uri};
use axum::routing::{get, post};

use crate::problem::Problem;
use crate::server::Shared;
use crate::{
    bindings, docs, events, leases, logs, metrics, openapi, orders, pools, programs, reload,
    requests, session_stats, sessions, status, transitions, workers,
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
        .route("/api/supervisor/workers/{id}/recycle", post(orders::recycle_worker))
        .route("/api/workers", get(workers::list))
        .route("/api/workers/{id}", get(workers::one))
        .route("/api/workers/{id}/transitions", get(transitions::list))
        .route("/api/workers/{id}/logs", get(logs::read))
        .route("/api/requests", get(requests::list))
        .route("/api/requests/{id}", get(requests::one))
        .route("/api/requests/{id}/cancel", post(requests::cancel))
        .route("/api/events", get(events::follow))
        .route("/metrics", get(metrics::expose))
        .route("/openapi.json", get(openapi::document))
        .route("/docs", get(docs::page))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(limit)
        .with_state(shared)
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
