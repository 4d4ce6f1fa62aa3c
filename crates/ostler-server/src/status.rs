//! The server itself: whether it lives, whether it is ready, how all of it does, and its end.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use ostler_core::Lifecycle;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::{Answer, ok};
use crate::given::Perhaps;
use crate::openapi::ProblemBody;
use crate::pools::{self, PoolBody};
use crate::problem::Problem;
use crate::query::{Nothing, Params};
use crate::server::{Shared, Stop};

/// The server runs.
#[utoipa::path(get, path = "/livez", tag = "server", operation_id = "server.livez",
    responses((status = 200, body = String, content_type = "text/plain")))]
pub(crate) async fn livez(Params(Nothing {}): Params<Nothing>) -> &'static str {
    "ok\n"
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReadyBody {
    pub ready: bool,
    pub waiting_for: Vec<Unready>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Unready {
    /// The pool.
    pub name: String,
    pub lifecycle: &'static str,
    pub reason: Option<String>,
}

/// Ready when every pool has had a worker and none has failed; not merely because all are busy.
#[utoipa::path(get, path = "/readyz", tag = "server", operation_id = "server.readyz",
    responses((status = 200, body = ReadyBody), (status = 503, body = ReadyBody)))]
pub(crate) async fn readyz(
    State(shared): State<Arc<Shared>>,
    Params(Nothing {}): Params<Nothing>,
) -> Answer<ReadyBody> {
    let infos = shared.pools().into_iter().map(|served| served.pool.info());
    let waiting_for: Vec<Unready> = infos
        .filter(|info| info.view.lifecycle != Lifecycle::Running)
        .map(|info| Unready {
            lifecycle: pools::lifecycle(info.view.lifecycle),
            reason: pools::reason(&info),
            name: info.name,
        })
        .collect();
    let ready = waiting_for.is_empty();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Answer(status, ReadyBody { ready, waiting_for })
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatsBody {
    pub server: ServerBody,
    pub pools: Vec<PoolBody>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ServerBody {
    pub version: &'static str,
    pub uptime_seconds: f64,
    pub pid: u32,
    #[schema(example = "127.0.0.1:6785")]
    pub listen: String,
}

/// Server, pools and workers at a glance.
#[utoipa::path(get, path = "/api/stats", tag = "server", operation_id = "server.stats",
    responses((status = 200, body = StatsBody)))]
pub(crate) async fn stats(
    State(shared): State<Arc<Shared>>,
    Params(Nothing {}): Params<Nothing>,
) -> Answer<StatsBody> {
    let server = ServerBody {
        version: shared.version,
        uptime_seconds: shared.started.elapsed().as_secs_f64(),
        pid: std::process::id(),
        listen: shared.listen.to_string(),
    };
    ok(StatsBody { server, pools: pools::all(&shared) })
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StopOrder {
    /// Do not wait for the running calls.
    #[serde(default)]
    pub now: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Stopping {
    pub stopping: bool,
    pub now: bool,
}

/// Ends the server, after the running calls or at once.
#[utoipa::path(post, path = "/api/server/stop", tag = "server", operation_id = "server.stop", request_body = Option<StopOrder>,
    responses((status = 202, body = Stopping),
              (status = 422, description = "validation", body = ProblemBody,
               content_type = "application/problem+json")))]
pub(crate) async fn stop(
    State(shared): State<Arc<Shared>>,
    Params(Nothing {}): Params<Nothing>,
    Perhaps(StopOrder { now }): Perhaps<StopOrder>,
) -> Result<Answer<Stopping>, Problem> {
    shared.stop.send_modify(|stop| {
        *stop = (*stop).max(if now { Stop::Now } else { Stop::Gracefully });
    });
    Ok(Answer(StatusCode::ACCEPTED, Stopping { stopping: true, now }))
}
