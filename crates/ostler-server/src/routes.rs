//! Every route but the call itself.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::problem::Problem;
use crate::server::{Shared, Stop};
use crate::stats;

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .route("/api/stats", get(all_stats))
        .route("/api/pools", get(pools))
        .route("/api/pools/{pool}", get(pool))
        .route("/api/server/stop", post(stop))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .with_state(shared)
}

/// Left for the server to spell, which knows the request's id.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

fn answer(status: StatusCode, value: &Value) -> Response {
    let content_type = [(header::CONTENT_TYPE, "application/json")];
    (status, content_type, value.to_string()).into_response()
}

/// Ready when every pool has had a worker and none has failed; not merely because all are busy.
async fn readyz(State(shared): State<Arc<Shared>>) -> Response {
    let unready: Vec<Value> = shared
        .pools
        .iter()
        .filter_map(|pool| {
            let stats = stats::pool(&pool.info());
            (stats["lifecycle"] != "running").then(|| {
                json!({ "name": pool.name(), "lifecycle": stats["lifecycle"],
                        "reason": stats["reason"] })
            })
        })
        .collect();
    let status = if unready.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    answer(status, &json!({ "ready": unready.is_empty(), "waiting_for": unready }))
}

async fn all_stats(State(shared): State<Arc<Shared>>) -> Response {
    let pools: Vec<Value> = shared.pools.iter().map(|pool| stats::pool(&pool.info())).collect();
    let server = json!({
        "version": shared.version,
        "uptime_seconds": shared.started.elapsed().as_secs_f64(),
        "pid": std::process::id(),
        "listen": shared.listen.to_string(),
    });
    answer(StatusCode::OK, &json!({ "server": server, "pools": pools }))
}

async fn pools(State(shared): State<Arc<Shared>>) -> Response {
    let items: Vec<Value> = shared.pools.iter().map(|pool| stats::pool(&pool.info())).collect();
    answer(StatusCode::OK, &json!({ "items": items, "next_cursor": null }))
}

async fn pool(State(shared): State<Arc<Shared>>, Path(name): Path<String>) -> Response {
    match shared.pool(&name) {
        Err(problem) => problem.into_response(),
        Ok(pool) => {
            let mut body = stats::pool(&pool.info());
            body["functions"] = stats::functions(pool);
            answer(StatusCode::OK, &body)
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct StopBody {
    #[serde(default)]
    now: bool,
}

async fn stop(State(shared): State<Arc<Shared>>, body: String) -> Response {
    let wanted = match body.trim() {
        "" => Ok(StopBody::default()),
        text => serde_json::from_str::<StopBody>(text),
    };
    let wanted = match wanted {
        Ok(wanted) => wanted,
        Err(error) => {
            let detail = format!("the body is not {{\"now\": true or false}}: {error}");
            return Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "validation", detail)
                .into_response();
        }
    };
    shared.stop.send_modify(|stop| {
        *stop = (*stop).max(if wanted.now { Stop::Now } else { Stop::Gracefully });
    });
    answer(StatusCode::ACCEPTED, &json!({ "stopping": true, "now": wanted.now }))
}

async fn no_route(uri: Uri) -> Problem {
    let detail = format!("there is nothing at {}", uri.path());
    Problem::new(StatusCode::NOT_FOUND, "not_found", detail)
}

async fn no_method(uri: Uri) -> Problem {
    let detail = format!("{} does not take this method", uri.path());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
}
