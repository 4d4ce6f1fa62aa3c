//! Which workers a session is bound to, one in each pool at most, and binding by hand.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use ostler_core::{Action, SessionId};
use ostler_runtime::Pool;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::answer::{Answer, ok};
use crate::given::Given;
use crate::orders::done;
use crate::problem::Problem;
use crate::query::{Nothing, Params};
use crate::segment::Segment;
use crate::server::Shared;
use crate::sessions::peek;
use crate::whereabouts;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BindingsBody {
    pub bindings: Vec<BindingBody>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BindingBody {
    pub pool: String,
    #[schema(example = "py-3")]
    pub worker: String,
}

impl BindingsBody {
    fn of(shared: &Shared, session: u64) -> Self {
        let bindings = shared.pools().into_iter().filter_map(|served| {
            let worker = served.pool.binding(session)?.to_string();
            Some(BindingBody { pool: served.pool.name().to_owned(), worker })
        });
        BindingsBody { bindings: bindings.collect() }
    }
}

/// Where a session is bound. Looking does not keep it alive.
#[utoipa::path(get, path = "/api/sessions/{id}/binding", tag = "sessions",
    operation_id = "binding.get", params(("id" = String, Path)),
    responses((status = 200, body = BindingsBody)))]
pub(crate) async fn show(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Answer<BindingsBody>, Problem> {
    let session = peek(&shared, &id)?.number;
    Ok(ok(BindingsBody::of(&shared, session)))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BindingOrder {
    /// The pool of the worker, if it is not clear.
    pool: Option<String>,
    /// By id or name.
    #[schema(example = "py-3")]
    worker: String,
}

/// Binds a session to a worker.
#[utoipa::path(put, path = "/api/sessions/{id}/binding", tag = "sessions",
    operation_id = "binding.put", params(("id" = String, Path)), request_body = BindingOrder,
    responses((status = 200, body = BindingsBody)))]
pub(crate) async fn bind(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
    Given(order): Given<BindingOrder>,
) -> Result<Answer<BindingsBody>, Problem> {
    let meant = order.pool.as_deref().map(|pool| shared.pool(pool)).transpose()?;
    let session = shared.sessions.get(&id).await.map_err(Problem::of_session)?.number;
    let (pool, worker) = whereabouts::living(&shared, &order.worker)?;
    if meant.is_some_and(|meant| meant.name() != pool.name()) {
        return Err(whereabouts::not_found(&order.worker));
    }
    done(pool.order(Action::Bind { session: SessionId(session), worker }).await, &order.worker)?;
    Ok(ok(BindingsBody::of(&shared, session)))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct BindingQuery {
    /// Only in this pool.
    pool: Option<String>,
}

/// Takes a session from its workers; its next call binds it anew.
#[utoipa::path(delete, path = "/api/sessions/{id}/binding", tag = "sessions",
    operation_id = "binding.delete", params(("id" = String, Path), BindingQuery),
    responses((status = 204, description = "It is bound no more")))]
pub(crate) async fn unbind(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(query): Params<BindingQuery>,
) -> Result<StatusCode, Problem> {
    let pools: Vec<Pool> = match &query.pool {
        Some(name) => vec![shared.pool(name)?],
        None => shared.pools().into_iter().map(|served| served.pool).collect(),
    };
    let session = SessionId(peek(&shared, &id)?.number);
    for pool in pools {
        done(pool.order(Action::Unbind(session)).await, pool.name())?;
    }
    Ok(StatusCode::NO_CONTENT)
}
