//! Pools: what each is, how it does, and which functions it serves.

use std::sync::Arc;

use axum::extract::State;
use ostler_core::{Counters, Lifecycle, Occupancy};
use ostler_runtime::{Affinity, KeyedBy, Pool, PoolInfo};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::answer::{Answer, ok};
use crate::list::Page;
use crate::openapi::ProblemBody;
use crate::problem::Problem;
use crate::query::{Nothing, Params};
use crate::roster::Served;
use crate::segment::Segment;
use crate::server::Shared;
use crate::workers::WorkerBody;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PoolBody {
    #[schema(example = "py")]
    pub name: String,
    /// starting, running, draining, stopped or failed.
    pub lifecycle: &'static str,
    /// Why the pool is not what it should be.
    pub reason: Option<String>,
    /// idle (no process), active or at_capacity.
    pub occupancy: &'static str,
    pub containment: ContainmentBody,
    /// How many workers it wants just now.
    pub size: u32,
    /// It has no fewer workers, nor more; one more may be there while it replaces another.
    pub min: u32,
    pub max: u32,
    /// Calls wait until it is resumed.
    pub paused: bool,
    /// It lets nobody in, and nobody is left inside.
    pub drained: bool,
    /// Memory is short, and it does not grow.
    pub strained: bool,
    /// session or workspace, if each of these has a worker of its own.
    pub key: Option<&'static str>,
    /// hint, strict_queue or strict_fail_fast: how much sessions insist on their processes.
    pub affinity: &'static str,
    /// Which kind of worker it makes; a reload makes a new one.
    pub edition: u32,
    /// Places that somebody holds.
    pub leases: usize,
    pub queue_length: usize,
    pub oldest_waits_seconds: f64,
    /// Requests that workers hold.
    pub running: u32,
    /// How many its workers can hold.
    pub capacity: u32,
    pub requests: RequestCounts,
    pub restarts: RestartCounts,
    pub workers: Vec<WorkerBody>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContainmentBody {
    /// C1, C2 or C3.
    pub level: String,
    /// What that means here, and why it is not a higher one.
    pub detail: String,
}

/// Since the server started.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RequestCounts {
    pub arrived: u64,
    pub resolved: u64,
    pub refused: u64,
    pub retried: u64,
    /// Written to a worker's stream behind another one.
    pub prefetched: u64,
    /// Taken back from a worker's stream, for another worker.
    pub moved: u64,
    /// Late messages that changed nothing.
    pub stale: u64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RestartCounts {
    pub planned: u64,
    pub unplanned: u64,
}

/// One pool with its functions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PoolDetail {
    #[serde(flatten)]
    pub pool: PoolBody,
    /// Empty while no worker has been ready, or if workers do not announce any.
    pub functions: Vec<FunctionBody>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FunctionBody {
    #[schema(example = "greet")]
    pub name: String,
    pub doc: Option<String>,
    /// It yields chunks.
    pub streaming: bool,
    /// JSON schema of its parameters.
    #[schema(value_type = Option<Object>)]
    pub parameters: Option<Value>,
}

impl PoolBody {
    pub fn of(served: &Served) -> Self {
        let info = &served.pool.info();
        let view = &info.view;
        PoolBody {
            name: info.name.clone(),
            lifecycle: lifecycle(view.lifecycle),
            reason: reason(info),
            occupancy: occupancy(view.occupancy),
            containment: ContainmentBody {
                level: info.level.rung.to_string(),
                detail: info.level.reason.clone(),
            },
            size: view.target,
            min: view.min,
            max: view.max,
            paused: view.paused,
            drained: view.drained,
            strained: view.strained,
            key: info.keyed_by.map(|key| match key {
                KeyedBy::Session => "session",
                KeyedBy::Workspace => "workspace",
            }),
            affinity: affinity(info.affinity),
            edition: view.edition,
            leases: view.leases,
            queue_length: view.queued,
            oldest_waits_seconds: view.oldest_waits.as_secs_f64(),
            running: info.workers.iter().map(|worker| worker.view.load).sum(),
            capacity: view.capacity,
            requests: RequestCounts::of(&view.counters),
            restarts: RestartCounts {
                planned: view.counters.restarts_planned,
                unplanned: view.counters.restarts_unplanned,
            },
            workers: info.workers.iter().map(|worker| WorkerBody::of(served, worker)).collect(),
        }
    }
}

impl RequestCounts {
    fn of(counters: &Counters) -> Self {
        RequestCounts {
            arrived: counters.arrived,
            resolved: counters.resolved,
            refused: counters.refused,
            retried: counters.retried,
            prefetched: counters.prefetched,
            moved: counters.moved,
            stale: counters.stale,
        }
    }
}

pub(crate) fn lifecycle(lifecycle: Lifecycle) -> &'static str {
    match lifecycle {
        Lifecycle::Starting => "starting",
        Lifecycle::Running => "running",
        Lifecycle::Draining => "draining",
        Lifecycle::Stopped => "stopped",
        Lifecycle::Failed => "failed",
    }
}

pub(crate) fn reason(info: &PoolInfo) -> Option<String> {
    match info.view.lifecycle {
        Lifecycle::Failed | Lifecycle::Starting => info.last_failure.clone(),
        Lifecycle::Running | Lifecycle::Draining | Lifecycle::Stopped => None,
    }
}

fn affinity(affinity: Affinity) -> &'static str {
    match affinity {
        Affinity::Hint => "hint",
        Affinity::StrictQueue => "strict_queue",
        Affinity::StrictFailFast => "strict_fail_fast",
    }
}

fn occupancy(occupancy: Occupancy) -> &'static str {
    match occupancy {
        Occupancy::Idle => "idle",
        Occupancy::Active => "active",
        Occupancy::AtCapacity => "at_capacity",
    }
}

/// Every pool as it is now.
pub(crate) fn all(shared: &Shared) -> Vec<PoolBody> {
    let pools = shared.pools().into_iter();
    pools.map(|served| PoolBody::of(&served)).collect()
}

pub(crate) fn functions(pool: &Pool) -> Vec<FunctionBody> {
    let functions = pool.functions();
    let bodies = functions.iter().map(|function| FunctionBody {
        name: function.name.clone(),
        doc: function.doc.clone(),
        streaming: function.streaming,
        parameters: function.parameters.as_ref().and_then(|schema| schema.as_str().parse().ok()),
    });
    bodies.collect()
}

/// All pools.
#[utoipa::path(get, path = "/api/pools", tag = "pools", operation_id = "pools.list",
    responses((status = 200, body = Page<PoolBody>)))]
pub(crate) async fn list(
    State(shared): State<Arc<Shared>>,
    Params(Nothing {}): Params<Nothing>,
) -> Answer<Page<PoolBody>> {
    ok(Page::whole(all(&shared)))
}

/// One pool with its functions.
#[utoipa::path(get, path = "/api/pools/{pool}", tag = "pools", operation_id = "pools.get", params(("pool" = String, Path)),
    responses((status = 200, body = PoolDetail),
              (status = 404, description = "pool_not_found", body = ProblemBody,
               content_type = "application/problem+json")))]
pub(crate) async fn one(
    State(shared): State<Arc<Shared>>,
    Segment(name): Segment,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Answer<PoolDetail>, Problem> {
    let served = shared.served(&name)?;
    Ok(ok(PoolDetail { pool: PoolBody::of(&served), functions: functions(&served.pool) }))
}
