//! Leases over HTTP: places of workers held for several calls. A holder that vanishes keeps its
//! places until the lease runs out; one that goes away while it waits for them has none.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use ostler_runtime::{CallError, LeaseRequest};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::answer::{Answer, ok};
use crate::given::Perhaps;
use crate::list::Page;
use crate::problem::Problem;
use crate::query::{Nothing, Params, invalid};
use crate::segment::Segment;
use crate::server::Shared;
use crate::span::Span;
use crate::tenancy::Tenant;
use crate::time::rfc3339;

const TTL_MAX: Duration = Duration::from_secs(3_600);
const TIMEOUT_MAX: Duration = Duration::from_secs(3_600);

/// Places that somebody holds.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LeaseBody {
    #[schema(example = "l_019a8f0c4a7b7c3e9d1f2a3b4c5d6e7f")]
    pub id: String,
    pub pool: String,
    /// One for each place.
    pub workers: Vec<String>,
    /// It comes back by itself then, unless it is renewed.
    #[schema(format = DateTime)]
    pub expires_at: String,
}

impl LeaseBody {
    fn of(tenant: &Tenant) -> Self {
        let end = Timestamp::now().checked_add(tenant.expires_in());
        LeaseBody {
            id: tenant.id.clone(),
            pool: tenant.pool.name().to_owned(),
            workers: tenant.workers.iter().map(ToString::to_string).collect(),
            expires_at: rfc3339(end.unwrap_or(Timestamp::MAX)),
        }
    }
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LeaseOrder {
    /// Until it comes back by itself: 60 s if nothing is said, at most 1 h.
    ttl: Option<Span>,
    /// Workers, each with one place: all at once or none. One if nothing is said.
    #[schema(minimum = 1, maximum = 1000)]
    workers: Option<u32>,
    /// How long to wait for them: 10 s if nothing is said, at most 1 h.
    timeout: Option<Span>,
}

fn ttl(given: Option<Span>) -> Result<Option<Duration>, Problem> {
    match given {
        None => Ok(None),
        Some(Span(ttl)) if !ttl.is_zero() && ttl <= TTL_MAX => Ok(Some(ttl)),
        Some(_) => Err(invalid("`ttl` must be more than 0 and at most 1h")),
    }
}

impl LeaseOrder {
    fn meant(&self) -> Result<LeaseRequest, Problem> {
        let usual = LeaseRequest::default();
        let timeout = self.timeout.map_or(usual.timeout, |Span(timeout)| timeout);
        if timeout > TIMEOUT_MAX {
            return Err(invalid("`timeout` must be at most 1h"));
        }
        let workers = self.workers.unwrap_or(usual.workers);
        if workers == 0 {
            return Err(invalid("`workers` must be 1 or more"));
        }
        Ok(LeaseRequest { workers, ttl: ttl(self.ttl)?.unwrap_or(usual.ttl), timeout })
    }
}

/// Waits for places and holds them.
#[utoipa::path(post, path = "/api/pools/{pool}/leases", tag = "leases",
    operation_id = "leases.create", params(("pool" = String, Path)),
    request_body = Option<LeaseOrder>,
    responses((status = 201, body = LeaseBody, headers(("Location" = String)))))]
pub(crate) async fn create(
    State(shared): State<Arc<Shared>>,
    Segment(name): Segment,
    Params(Nothing {}): Params<Nothing>,
    Perhaps(order): Perhaps<LeaseOrder>,
) -> Result<Response, Problem> {
    let pool = shared.pool(&name)?;
    let request = order.meant()?;
    let room = shared.leases.room()?;
    let lease = pool.lease(request).await;
    let lease = lease.map_err(|refused| Problem::of_call(&CallError::Refused(refused), false))?;
    let tenant = shared.leases.add(room, pool, lease, request.ttl);
    let location = format!("/api/leases/{}", tenant.id);
    let body = Answer(StatusCode::CREATED, LeaseBody::of(&tenant));
    Ok(([(header::LOCATION, location)], body).into_response())
}

/// The leases that are held in a pool by clients of this API.
#[utoipa::path(get, path = "/api/pools/{pool}/leases", tag = "leases", operation_id = "leases.list",
    params(("pool" = String, Path)), responses((status = 200, body = Page<LeaseBody>)))]
pub(crate) async fn list(
    State(shared): State<Arc<Shared>>,
    Segment(name): Segment,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Answer<Page<LeaseBody>>, Problem> {
    shared.pool(&name)?;
    let held = shared.leases.of_pool(&name);
    Ok(ok(Page::whole(held.iter().map(|tenant| LeaseBody::of(tenant)).collect())))
}

/// One lease.
#[utoipa::path(get, path = "/api/leases/{id}", tag = "leases", operation_id = "leases.get",
    params(("id" = String, Path)), responses((status = 200, body = LeaseBody)))]
pub(crate) async fn one(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Answer<LeaseBody>, Problem> {
    Ok(ok(LeaseBody::of(&*shared.leases.find(&id)?)))
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RenewOrder {
    /// From now on; as long as before if nothing is said, at most 1 h.
    ttl: Option<Span>,
}

/// The lease begins anew.
#[utoipa::path(post, path = "/api/leases/{id}/renew", tag = "leases", operation_id = "leases.renew",
    params(("id" = String, Path)), request_body = Option<RenewOrder>,
    responses((status = 200, body = LeaseBody)))]
pub(crate) async fn renew(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
    Perhaps(order): Perhaps<RenewOrder>,
) -> Result<Answer<LeaseBody>, Problem> {
    let ttl = ttl(order.ttl)?;
    shared.leases.find(&id)?.renew(ttl);
    // One that ran out just before is not renewed.
    Ok(ok(LeaseBody::of(&*shared.leases.find(&id)?)))
}

/// How the holder leaves the workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Ok,
    /// Something failed, but not the workers.
    Error,
    /// They are not to be used again.
    Close,
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReturnQuery {
    /// `close` has its workers replaced. The body may say it instead.
    #[param(inline)]
    outcome: Option<Outcome>,
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReturnOrder {
    /// `ok` if nothing is said.
    outcome: Option<Outcome>,
}

/// Gives a lease back.
#[utoipa::path(delete, path = "/api/leases/{id}", tag = "leases", operation_id = "leases.delete",
    params(("id" = String, Path), ReturnQuery), request_body = Option<ReturnOrder>,
    responses((status = 204, description = "It is given back")))]
pub(crate) async fn give_back(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(query): Params<ReturnQuery>,
    Perhaps(order): Perhaps<ReturnOrder>,
) -> Result<StatusCode, Problem> {
    let outcome = match (query.outcome, order.outcome) {
        (Some(one), Some(other)) if one != other => {
            return Err(invalid("the query and the body name different outcomes"));
        }
        (one, other) => one.or(other),
    };
    shared.leases.give_back(&id, outcome == Some(Outcome::Close))?;
    Ok(StatusCode::NO_CONTENT)
}
