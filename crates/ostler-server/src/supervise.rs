//! Orders to one worker: made, started, held, let go on, retired, ended, replaced. What they mean
//! is decided by its pool; here they are read, passed on with who asked, and the worker is shown.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use ostler_core::{Action, Reply, Status, Trigger, WorkerId};
use ostler_runtime::Pool;
use ostler_store::ledger::LedgerError;
use ostler_store::ledger::key::Asked;
use ostler_store::ledger::worker::{Stored, Worker, WorkerChange};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::answer::{Answer, ok};
use crate::asking::{Asking, Because, check_text};
use crate::given::Perhaps;
use crate::orders::{done, illegal};
use crate::problem::Problem;
use crate::query::{Nothing, Params};
use crate::segment::Segment;
use crate::server::Shared;
use crate::whereabouts::{self, Whereabouts};
use crate::workers::{Key, WORKSPACE, WorkerBody};

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkerMaking {
    /// Whom it works for; `default` if nothing is said.
    #[schema(min_length = 1, max_length = 128, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$")]
    workspace_id: Option<String>,
    /// The default pool if nothing is said.
    pool: Option<String>,
    /// An idempotency key, where there is none in the header.
    #[schema(pattern = "^[ -~]{1,255}$")]
    #[expect(dead_code, reason = "read before the body gets here")]
    request_id: Option<String>,
}

/// Makes a worker that takes only calls addressed to it. It is IDLE until it is started.
#[utoipa::path(post, path = "/api/workers", tag = "workers", operation_id = "workers.create",
    request_body = Option<WorkerMaking>,
    responses((status = 201, body = WorkerBody, headers(("Location" = String)))))]
pub(crate) async fn create(
    State(shared): State<Arc<Shared>>,
    Params(Nothing {}): Params<Nothing>,
    asking: Asking,
    Perhaps(making): Perhaps<WorkerMaking>,
) -> Result<Response, Problem> {
    let workspace = making.workspace_id.as_deref().unwrap_or(WORKSPACE);
    check_text("workspace_id", workspace, 128)?;
    let pool = match &making.pool {
        Some(name) => shared.pool(name)?,
        None => shared.default_pool()?,
    };
    let reply = pool.create_worker(workspace, asking.plainly()).await;
    let Reply::Done { worker, .. } = reply else {
        return Err(done(reply, pool.name()).expect_err("what is not done is refused"));
    };
    let served = shared.served(pool.name())?;
    let id = Key::of(&served, worker).to_string();
    Ok(made(whereabouts::body(&shared, &id).await?))
}

pub(crate) fn made(body: WorkerBody) -> Response {
    let location = HeaderValue::from_str(&format!("/api/workers/{}", body.id)).expect("digits");
    ([(header::LOCATION, location)], Answer(StatusCode::CREATED, body)).into_response()
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PauseOrder {
    /// Also stop its processes where they are; their deadlines go on.
    #[serde(default)]
    freeze: bool,
    /// Kept with the change.
    #[schema(min_length = 1, max_length = 500, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$")]
    reason: Option<String>,
    /// An idempotency key, where there is none in the header.
    #[schema(pattern = "^[ -~]{1,255}$")]
    #[expect(dead_code, reason = "read before the body gets here")]
    request_id: Option<String>,
}

/// An order on its way to the pool of its worker.
struct Order {
    action: fn(WorkerId) -> Action,
    /// The status that it leads to.
    to: Status,
    asking: Asking,
    reason: Option<String>,
}

/// The worker after the order.
async fn ordered(shared: &Shared, id: &str, order: Order) -> Result<WorkerBody, Problem> {
    let asked = order.asking.because(order.reason)?;
    let before = whereabouts::body(shared, id).await?;
    if let Some((pool, worker)) = pool_of(shared, id).await? {
        match pool.order_by((order.action)(worker), asked.clone()).await {
            Reply::NoSuchWorker => {}
            Reply::Done { status, .. } => {
                let ended = WorkerBody { status: status.name(), phase: None, pid: None, ..before };
                // Without a ledger nobody remembers it.
                return Ok(whereabouts::body(shared, id).await.unwrap_or(ended));
            }
            reply => return done(reply, id).map(|()| before),
        }
    }
    let past = whereabouts::past(shared, id).await?;
    let ends = order.to == Status::Terminated && past.status.terminal();
    if !ends || !past.status.may_become(order.to) {
        return Err(illegal(id, past.status, order.to, &past.status.allowed()));
    }
    end_on_paper(shared, past, asked).await?;
    whereabouts::body(shared, id).await
}

/// Who is to carry out an order. Pools know the last of their ended workers, too.
async fn pool_of(shared: &Shared, id: &str) -> Result<Option<(Pool, WorkerId)>, Problem> {
    Ok(match whereabouts::of(shared, id).await? {
        Whereabouts::Here { pool, worker, .. } => Some((pool, worker)),
        Whereabouts::Past(past) => {
            let key = past.id.parse::<Key>().ok();
            shared.pool(&past.pool).ok().zip(key.map(|key| key.worker))
        }
    })
}

/// A worker of which nothing is left but its record: COMPLETED and FAILED may still become
/// TERMINATED.
async fn end_on_paper(shared: &Shared, past: Worker, asked: Asked) -> Result<(), Problem> {
    let change = WorkerChange {
        worker: past.id,
        name: past.name.clone(),
        pool: past.pool,
        workspace: past.workspace,
        dedicated: past.dedicated,
        seq: past.seq + 1,
        from: Some(past.status),
        to: Status::Terminated,
        trigger: Trigger::Terminate.name().to_owned(),
        reason: asked.reason.clone(),
        at: Timestamp::now(),
        asked,
    };
    match shared.jobs.ledger().record(change).await {
        Stored::Yes => Ok(()),
        Stored::No(_) => done(Reply::StoreRefused, &past.name),
        Stored::Unknown(reason) => Err(Problem::of_ledger(LedgerError::Doubtful { reason })),
    }
}

/// Puts an IDLE worker into service.
#[utoipa::path(post, path = "/api/workers/{id}/start", tag = "workers",
    operation_id = "workers.start",
    params(("id" = String, Path, description = "`w_1_3` or `py-3`")),
    request_body = Option<Because>, responses((status = 200, body = WorkerBody)))]
pub(crate) async fn start(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
    asking: Asking,
    Perhaps(Because { reason, .. }): Perhaps<Because>,
) -> Result<Answer<WorkerBody>, Problem> {
    let order = Order { action: Action::Start, to: Status::Running, asking, reason };
    ordered(&shared, &id, order).await.map(ok)
}

/// Gives it nothing new; what it works on goes on.
#[utoipa::path(post, path = "/api/supervisor/workers/{id}/pause", tag = "workers",
    operation_id = "workers.pause",
    params(("id" = String, Path, description = "`w_1_3` or `py-3`")),
    request_body = Option<PauseOrder>, responses((status = 200, body = WorkerBody)))]
pub(crate) async fn pause(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
    asking: Asking,
    Perhaps(PauseOrder { freeze, reason, .. }): Perhaps<PauseOrder>,
) -> Result<Answer<WorkerBody>, Problem> {
    let action = match freeze {
        true => |worker| Action::Pause { worker, freeze: true },
        false => |worker| Action::Pause { worker, freeze: false },
    };
    let order = Order { action, to: Status::Paused, asking, reason };
    ordered(&shared, &id, order).await.map(ok)
}

/// Puts a PAUSED worker back into service.
#[utoipa::path(post, path = "/api/supervisor/workers/{id}/resume", tag = "workers",
    operation_id = "workers.resume",
    params(("id" = String, Path, description = "`w_1_3` or `py-3`")),
    request_body = Option<Because>, responses((status = 200, body = WorkerBody)))]
pub(crate) async fn resume(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
    asking: Asking,
    Perhaps(Because { reason, .. }): Perhaps<Because>,
) -> Result<Answer<WorkerBody>, Problem> {
    let order = Order { action: Action::Resume, to: Status::Running, asking, reason };
    ordered(&shared, &id, order).await.map(ok)
}

/// Retires it once nothing is pending there.
#[utoipa::path(post, path = "/api/supervisor/workers/{id}/complete", tag = "workers",
    operation_id = "workers.complete",
    params(("id" = String, Path, description = "`w_1_3` or `py-3`")),
    request_body = Option<Because>, responses((status = 200, body = WorkerBody)))]
pub(crate) async fn complete(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
    asking: Asking,
    Perhaps(Because { reason, .. }): Perhaps<Because>,
) -> Result<Answer<WorkerBody>, Problem> {
    let order = Order { action: Action::Complete, to: Status::Completed, asking, reason };
    ordered(&shared, &id, order).await.map(ok)
}

/// Ends it by force. Its processes are gone when this answers.
#[utoipa::path(post, path = "/api/supervisor/workers/{id}/terminate", tag = "workers",
    operation_id = "workers.terminate",
    params(("id" = String, Path, description = "`w_1_3` or `py-3`")),
    request_body = Option<Because>, responses((status = 200, body = WorkerBody)))]
pub(crate) async fn terminate(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
    asking: Asking,
    Perhaps(Because { reason, .. }): Perhaps<Because>,
) -> Result<Answer<WorkerBody>, Problem> {
    let order = Order { action: Action::Terminate, to: Status::Terminated, asking, reason };
    ordered(&shared, &id, order).await.map(ok)
}

/// Replaces a worker. It goes on until its successor is ready.
#[utoipa::path(post, path = "/api/supervisor/workers/{id}/recycle", tag = "workers",
    operation_id = "workers.recycle",
    params(("id" = String, Path, description = "`w_1_3` or `py-3`")),
    request_body = Option<Because>, responses((status = 202, body = WorkerBody)))]
pub(crate) async fn recycle(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
    asking: Asking,
    Perhaps(Because { reason, .. }): Perhaps<Because>,
) -> Result<Answer<WorkerBody>, Problem> {
    let order = Order { action: Action::Recycle, to: Status::Completed, asking, reason };
    let body = ordered(&shared, &id, order).await?;
    Ok(Answer(StatusCode::ACCEPTED, body))
}
