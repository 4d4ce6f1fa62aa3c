//! Orders to pools: hold, let in, let nobody in, resize, replace. What they mean is
//! decided elsewhere; here they are read, passed on, and the reply is told.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use ostler_core::{Action, Reply, Status, WorkerId};
use ostler_runtime::{Pool, PoolInfo};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::{Answer, ok};
use crate::given::Given;
use crate::pools::PoolBody;
use crate::problem::Problem;
use crate::query::{Nothing, Params, invalid};
use crate::segment::Segment;
use crate::server::Shared;
use crate::whereabouts;

/// As many workers as a configuration may ask for.
const SIZE_MAX: u32 = 1_000;

/// Whether the order was carried out, and if not, why. `whom` it was about.
pub(crate) fn done(reply: Reply, whom: &str) -> Result<(), Problem> {
    let conflict = |code, detail: String| Problem::new(StatusCode::CONFLICT, code, detail);
    Err(match reply {
        Reply::Done { .. } | Reply::PoolDone | Reply::Recycling { .. } | Reply::Reloaded { .. } => {
            return Ok(());
        }
        Reply::NoSuchWorker => whereabouts::not_found(whom),
        Reply::Illegal { from, to, allowed } => illegal(whom, from, to, &allowed),
        Reply::InTransition => {
            let detail = format!("another change of `{whom}` is under way; ask again");
            conflict("in_transition", detail).retryable(None)
        }
        Reply::NotServing => {
            conflict("worker_not_serving", format!("worker `{whom}` is not in service"))
        }
        Reply::NotInKeyedPool => {
            let detail = format!("`{whom}` is of a keyed pool: there keys bind, nothing else does");
            conflict("not_in_keyed_pool", detail)
        }
        Reply::StoreRefused => {
            let detail = format!("the change of `{whom}` could not be stored");
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", detail)
                .retryable(None)
        }
        Reply::TimedOut => {
            let detail = format!("it did not take effect in time; `{whom}` was terminated");
            Problem::new(StatusCode::GATEWAY_TIMEOUT, "supervisor_timeout", detail)
        }
        Reply::DedicatedFull => {
            let detail = format!("pool `{whom}` has as many dedicated workers as it may");
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "dedicated_full", detail)
        }
        Reply::ReloadFailed { .. } => {
            conflict("reload_failed", format!("a new worker of `{whom}` did not become ready"))
        }
        Reply::ReloadUnderway => {
            conflict("reload_underway", format!("`{whom}` is being reloaded")).retryable(None)
        }
        Reply::ShuttingDown => {
            let detail = format!("`{whom}` is shutting down");
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", detail).retryable(None)
        }
    })
}

pub(crate) fn illegal(whom: &str, from: Status, to: Status, allowed: &[Status]) -> Problem {
    let mut allowed: Vec<&str> = allowed.iter().map(|status| status.name()).collect();
    allowed.sort_unstable();
    let (from, to) = (from.name(), to.name());
    let detail = format!("`{whom}` is {from} and cannot become {to}");
    Problem::new(StatusCode::CONFLICT, "illegal_transition", detail)
        .with("from", from)
        .with("to", to)
        .with("allowed", allowed)
}

/// The pool after an order about all of it.
async fn ordered(shared: &Shared, name: &str, action: Action) -> Result<Answer<PoolBody>, Problem> {
    let served = shared.served(name)?;
    done(served.pool.order(action).await, name)?;
    Ok(ok(PoolBody::of(&served)))
}

/// From now on calls wait; what runs goes on.
#[utoipa::path(post, path = "/api/pools/{pool}/pause", tag = "pools", operation_id = "pools.pause",
    params(("pool" = String, Path)), responses((status = 200, body = PoolBody)))]
pub(crate) async fn pause(
    State(shared): State<Arc<Shared>>,
    Segment(pool): Segment,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Answer<PoolBody>, Problem> {
    ordered(&shared, &pool, Action::PausePool).await
}

/// Undoes a pause and a drain.
#[utoipa::path(post, path = "/api/pools/{pool}/resume", tag = "pools", operation_id = "pools.resume",
    params(("pool" = String, Path)), responses((status = 200, body = PoolBody)))]
pub(crate) async fn resume(
    State(shared): State<Arc<Shared>>,
    Segment(pool): Segment,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Answer<PoolBody>, Problem> {
    ordered(&shared, &pool, Action::ResumePool).await
}

/// Lets nobody new in; those inside are served. `drained` says when nobody is left.
#[utoipa::path(post, path = "/api/pools/{pool}/drain", tag = "pools", operation_id = "pools.drain",
    params(("pool" = String, Path)), responses((status = 200, body = PoolBody)))]
pub(crate) async fn drain(
    State(shared): State<Arc<Shared>>,
    Segment(pool): Segment,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Answer<PoolBody>, Problem> {
    ordered(&shared, &pool, Action::DrainPool).await
}

/// `size`, or `min` and `max`.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScaleOrder {
    #[schema(minimum = 1, maximum = 1000)]
    size: Option<u32>,
    #[schema(minimum = 0, maximum = 1000)]
    min: Option<u32>,
    #[schema(minimum = 1, maximum = 1000)]
    max: Option<u32>,
}

impl ScaleOrder {
    /// From and to how many. `keyed`: workers are made on demand, and there is no least number.
    fn bounds(self, keyed: bool) -> Result<(u32, u32), Problem> {
        let (min, max) = match (self.size, self.min, self.max) {
            (Some(size), None, None) if keyed => (0, size),
            (Some(size), None, None) => (size, size),
            (None, None, Some(max)) if keyed => (0, max),
            (None, Some(min), Some(max)) => (min, max),
            _ => return Err(invalid("say either `size`, or both `min` and `max`")),
        };
        if !(1..=SIZE_MAX).contains(&max) || min > max {
            let detail = format!("{min}..{max} workers: use 1 to {SIZE_MAX}, and no less than min");
            return Err(invalid(detail));
        }
        if keyed && min > 0 {
            return Err(invalid("a keyed pool makes its workers on demand: `min` must be 0"));
        }
        Ok((min, max))
    }
}

/// How many workers the pool has from now on, until the server restarts or reloads it.
#[utoipa::path(post, path = "/api/pools/{pool}/scale", tag = "pools", operation_id = "pools.scale",
    params(("pool" = String, Path)), request_body = ScaleOrder,
    responses((status = 200, body = PoolBody)))]
pub(crate) async fn scale(
    State(shared): State<Arc<Shared>>,
    Segment(pool): Segment,
    Params(Nothing {}): Params<Nothing>,
    Given(order): Given<ScaleOrder>,
) -> Result<Answer<PoolBody>, Problem> {
    let keyed = shared.pool(&pool)?.keyed_by().is_some();
    let (min, max) = order.bounds(keyed)?;
    ordered(&shared, &pool, Action::Scale { min, max }).await
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecyclingBody {
    pub pool: String,
    /// Those that are replaced, one after the other, by their names.
    pub workers: Vec<String>,
}

/// Replaces all workers of a pool, each when its successor is ready.
#[utoipa::path(post, path = "/api/pools/{pool}/recycle", tag = "pools",
    operation_id = "pools.recycle", params(("pool" = String, Path)),
    responses((status = 202, body = RecyclingBody)))]
pub(crate) async fn recycle_pool(
    State(shared): State<Arc<Shared>>,
    Segment(name): Segment,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Answer<RecyclingBody>, Problem> {
    let pool = shared.pool(&name)?;
    // Names before the order: those that were idle may be gone after it.
    let before = pool.info();
    let reply = pool.order(Action::RecyclePool).await;
    let chosen = match &reply {
        Reply::Recycling { workers } => workers.clone(),
        _ => Vec::new(),
    };
    done(reply, &name)?;
    let workers = names(&pool, &before, &chosen);
    Ok(Answer(StatusCode::ACCEPTED, RecyclingBody { pool: name, workers }))
}

fn names(pool: &Pool, before: &PoolInfo, chosen: &[WorkerId]) -> Vec<String> {
    let now = pool.info();
    let name = |id: &WorkerId| {
        let mut known = before.workers.iter().chain(&now.workers);
        known.find(|worker| worker.view.id == *id).map(|worker| worker.name.clone())
    };
    chosen.iter().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_scaled_to_one_size_or_between_two() {
        let order = |size, min, max| ScaleOrder { size, min, max };
        assert_eq!(order(Some(3), None, None).bounds(false).unwrap(), (3, 3));
        assert_eq!(order(None, Some(0), Some(4)).bounds(false).unwrap(), (0, 4));
        assert_eq!(order(Some(3), None, None).bounds(true).unwrap(), (0, 3));
        assert_eq!(order(None, None, Some(3)).bounds(true).unwrap(), (0, 3));
        for wrong in [
            order(None, None, None),
            order(Some(1), Some(1), Some(1)),
            order(None, Some(1), None),
            order(None, None, Some(2)),
            order(Some(0), None, None),
            order(None, Some(3), Some(2)),
            order(Some(SIZE_MAX + 1), None, None),
        ] {
            assert_eq!(wrong.bounds(false).unwrap_err().status, 422, "{wrong:?}");
        }
        assert!(order(None, Some(1), Some(2)).bounds(true).is_err());
    }

    #[test]
    fn a_refused_change_of_status_names_what_would_be_allowed() {
        let allowed = vec![Status::Terminated, Status::Running];
        let reply = Reply::Illegal { from: Status::Paused, to: Status::Completed, allowed };
        let problem = done(reply, "py-1").unwrap_err();
        assert_eq!((problem.status.as_u16(), problem.code), (409, "illegal_transition"));
        assert_eq!(problem.more["from"], "PAUSED");
        assert_eq!(problem.more["allowed"], serde_json::json!(["RUNNING", "TERMINATED"]));
    }
}
