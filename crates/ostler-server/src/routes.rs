//! Every route but the call itself, and what answers where there is none.

use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, Uri};
use axum::routing::{get, post};

use crate::problem::Problem;
use crate::server::Shared;
use crate::{docs, events, logs, metrics, openapi, pools, requests, status, transitions, workers};

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/livez", get(status::livez))
        .route("/readyz", get(status::readyz))
        .route("/api/stats", get(status::stats))
        .route("/api/server/stop", post(status::stop))
        .route("/api/pools", get(pools::list))
        .route("/api/pools/{pool}", get(pools::one))
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
        .with_state(shared)
}

async fn no_route(uri: Uri) -> Problem {
    let detail = format!("there is nothing at {}", uri.path());
    Problem::new(StatusCode::NOT_FOUND, "not_found", detail)
}

async fn no_method(uri: Uri) -> Problem {
    let detail = format!("{} does not take this method", uri.path());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
}
