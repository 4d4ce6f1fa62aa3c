//! Workers, as operators see them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use axum::extract::State;
use ostler_core::{Phase, Retirement, Status, StopReason, WorkerId};
use ostler_runtime::{Connection, WorkerInfo, phase_name, stop_reason};
use ostler_store::ledger::worker::Worker as PastWorker;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use crate::answer::{Answer, ok};
use crate::list::{self, Page};
use crate::listed::{PhaseName, StatusName, named};
use crate::openapi::ProblemBody;
use crate::problem::Problem;
use crate::query::{Nothing, Params, invalid};
use crate::roster::Served;
use crate::segment::Segment;
use crate::server::Shared;
use crate::time::rfc3339;
use crate::whereabouts;

/// The workspace of all that belongs to nobody in particular.
pub(crate) const WORKSPACE: &str = "default";

/// One worker and the process it runs on.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WorkerBody {
    #[schema(example = "w_1_3")]
    pub id: String,
    #[schema(example = "py-3")]
    pub name: String,
    pub pool: String,
    /// The tenant that it works for.
    #[schema(example = "default")]
    pub workspace_id: String,
    /// IDLE, RUNNING, PAUSED, COMPLETED, FAILED or TERMINATED.
    pub status: &'static str,
    /// starting, ready, busy, degraded, stopping or dead; null without a process.
    pub phase: Option<&'static str>,
    /// unknown, healthy or unhealthy.
    pub health: &'static str,
    /// What is wrong, if it said so or was found so.
    pub complaint: Option<String>,
    /// Which of its processes this is, counted from 1.
    pub generation: u32,
    /// The process, by the host's number.
    pub pid: Option<i32>,
    /// Its process group, by the host's number.
    pub pgid: Option<i32>,
    /// disconnected, connecting or connected.
    pub connection: &'static str,
    pub capacity: u32,
    pub load: u32,
    /// Ids of the requests that it works on.
    pub current_requests: Vec<String>,
    /// Takes only calls that are addressed to it.
    pub dedicated: bool,
    /// Its memory or device is in doubt; it gets no new work.
    pub taint: bool,
    /// Ids of sessions that are bound to it, not more than a hundred.
    pub sessions: Vec<String>,
    /// Why another one is to take its place.
    pub retirement: Option<&'static str>,
    /// Why its process is on its way out.
    pub stopping: Option<&'static str>,
    pub requests: WorkerRequests,
    /// Unplanned ends in a row, without an answer in between.
    pub crashes: u32,
    /// Requests that its process has let go of.
    pub served: u64,
    /// Which kind of worker its process is; a reload makes a new one.
    pub edition: u32,
    /// Resident bytes of its process and of what that has started, as last measured.
    pub memory: Option<u64>,
    /// Labels that its maker gave it.
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
    #[schema(format = DateTime)]
    pub created_at: String,
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// When its process was started.
    #[schema(format = DateTime)]
    pub started_at: Option<String>,
    #[schema(format = DateTime)]
    pub last_active_at: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WorkerRequests {
    pub total: u64,
    /// By the code of their problem; `ok` if answered.
    pub outcomes: BTreeMap<&'static str, u64>,
}

/// The id of a worker: the number of its pool and its own there. The ledger numbers pools for good;
/// without one their places among all that there were count, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pool: u64,
    pub worker: WorkerId,
}

impl Key {
    pub fn of(served: &Served, worker: WorkerId) -> Self {
        let known = served.pool.worker_id(worker).and_then(|id| id.parse().ok());
        known.unwrap_or(Key { pool: served.place as u64 + 1, worker })
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "w_{}_{}", self.pool, self.worker.0)
    }
}

impl FromStr for Key {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (pool, worker) = text.strip_prefix("w_").and_then(|t| t.split_once('_')).ok_or(())?;
        let pool = pool.parse().ok().filter(|pool| *pool > 0).ok_or(())?;
        Ok(Key { pool, worker: WorkerId(worker.parse().map_err(|_| ())?) })
    }
}

impl WorkerBody {
    pub fn of(served: &Served, worker: &WorkerInfo) -> Self {
        let view = &worker.view;
        WorkerBody {
            id: Key::of(served, view.id).to_string(),
            name: worker.name.clone(),
            pool: served.pool.name().to_owned(),
            workspace_id: worker.workspace.as_deref().unwrap_or(WORKSPACE).to_owned(),
            status: view.status.name(),
            phase: view.phase.map(phase_name),
            health: health(worker),
            complaint: complaint(worker),
            generation: view.generation,
            pid: worker.pid,
            pgid: worker.pid.and_then(process_group),
            connection: match worker.connection {
                Connection::Disconnected => "disconnected",
                Connection::Connecting => "connecting",
                Connection::Connected => "connected",
            },
            capacity: view.capacity,
            load: view.load,
            current_requests: worker.requests.iter().map(ToString::to_string).collect(),
            dedicated: view.dedicated,
            sessions: worker.sessions.iter().map(ToString::to_string).collect(),
            taint: view.stopping == Some(StopReason::Tainted),
            retirement: view.retirement.map(Retirement::name),
            stopping: view.stopping.map(stop_reason),
            requests: WorkerRequests {
                total: worker.outcomes.iter().map(|(_, count)| count).sum(),
                outcomes: worker.outcomes.iter().collect(),
            },
            crashes: view.crashes,
            served: view.served,
            edition: view.edition,
            memory: memory(worker),
            metadata: Map::new(),
            created_at: rfc3339(worker.created),
            updated_at: rfc3339(worker.updated),
            started_at: worker.started.map(rfc3339),
            last_active_at: rfc3339(worker.last_active),
        }
    }

    /// One that has ended: what its process was is not remembered.
    pub fn past(worker: &PastWorker) -> Self {
        WorkerBody {
            id: worker.id.clone(),
            name: worker.name.clone(),
            pool: worker.pool.clone(),
            workspace_id: worker.workspace.clone(),
            status: worker.status.name(),
            phase: None,
            health: "unknown",
            complaint: None,
            generation: 0,
            pid: None,
            pgid: None,
            connection: "disconnected",
            capacity: 0,
            load: 0,
            current_requests: Vec::new(),
            dedicated: worker.dedicated,
            taint: false,
            sessions: Vec::new(),
            retirement: None,
            stopping: None,
            requests: WorkerRequests { total: 0, outcomes: BTreeMap::new() },
            crashes: 0,
            served: 0,
            edition: 0,
            memory: None,
            metadata: Map::new(),
            created_at: rfc3339(worker.created_at),
            updated_at: rfc3339(worker.updated_at),
            started_at: None,
            last_active_at: rfc3339(worker.updated_at),
        }
    }
}

fn complaint(worker: &WorkerInfo) -> Option<String> {
    let found = || worker.condition.map(|condition| format!("its process is {}", condition.name()));
    worker.complaint.clone().or_else(found)
}

fn health(worker: &WorkerInfo) -> &'static str {
    match (worker.view.status, worker.view.phase) {
        _ if worker.view.unresponsive => "unhealthy",
        (_, Some(Phase::Degraded)) => "unhealthy",
        (Status::Running | Status::Paused, Some(Phase::Ready | Phase::Busy)) => "healthy",
        _ => "unknown",
    }
}

fn process_group(pid: i32) -> Option<i32> {
    let group = rustix::process::getpgid(rustix::process::Pid::from_raw(pid)).ok()?;
    Some(group.as_raw_nonzero().get())
}

/// The whole family is measured from time to time; until then its head counts.
pub(crate) fn memory(worker: &WorkerInfo) -> Option<u64> {
    let pid = worker.pid?;
    if worker.view.memory > 0 { Some(worker.view.memory) } else { resident_bytes(pid) }
}

fn resident_bytes(pid: i32) -> Option<u64> {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WorkerQuery {
    pool: Option<String>,
    #[param(inline, value_type = Option<StatusName>)]
    status: Option<String>,
    #[param(inline, value_type = Option<PhaseName>)]
    phase: Option<String>,
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// `next_cursor` of the page before.
    #[param(pattern = "^w_[1-9][0-9]{0,8}_[0-9]{1,18}$")]
    cursor: Option<String>,
}

/// The workers of all pools.
#[utoipa::path(get, path = "/api/workers", tag = "workers", operation_id = "workers.list",
    params(WorkerQuery),
    responses((status = 200, body = Page<WorkerBody>),
              (status = 404, description = "pool_not_found", body = ProblemBody,
               content_type = "application/problem+json"),
              (status = 422, description = "validation", body = ProblemBody,
               content_type = "application/problem+json")))]
pub(crate) async fn list(
    State(shared): State<Arc<Shared>>,
    Params(query): Params<WorkerQuery>,
) -> Result<Answer<Page<WorkerBody>>, Problem> {
    if let Some(pool) = &query.pool {
        shared.pool(pool)?;
    }
    let limit = list::limit(query.limit)?;
    let status = query.status.as_deref();
    let status = status.map(|name| named::<Status>("status", name)).transpose()?;
    let phase = query.phase.as_deref();
    let phase = phase.map(|name| named::<Phase>("phase", name)).transpose()?;
    let cursor = query.cursor.as_deref().map(str::parse::<Key>).transpose();
    let cursor = cursor.map_err(|()| invalid("`cursor` is not one that a list of workers gave"))?;
    let mut found = Vec::new();
    for served in shared.pools() {
        if query.pool.as_deref().is_some_and(|name| name != served.pool.name()) {
            continue;
        }
        let wanted = served.pool.info().workers.into_iter().filter_map(|worker| {
            let key = Key::of(&served, worker.view.id);
            let meant = status.is_none_or(|status| status == worker.view.status)
                && phase.is_none_or(|phase| worker.view.phase == Some(phase))
                && cursor.is_none_or(|cursor| key > cursor);
            meant.then(|| (key, WorkerBody::of(&served, &worker)))
        });
        found.extend(wanted);
    }
    found.sort_unstable_by_key(|(key, _)| *key);
    let page = Page::cut(found.into_iter(), limit, |(key, _)| key.to_string());
    Ok(ok(page.map(|(_, body)| body)))
}

/// One worker, by its id or its name; also one that has ended, as long as it is kept.
#[utoipa::path(get, path = "/api/workers/{id}", tag = "workers", operation_id = "workers.get",
    params(("id" = String, Path, description = "`w_1_3` or `py-3`")),
    responses((status = 200, body = WorkerBody),
              (status = 404, description = "worker_not_found", body = ProblemBody,
               content_type = "application/problem+json")))]
pub(crate) async fn one(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Answer<WorkerBody>, Problem> {
    whereabouts::body(&shared, &id).await.map(ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_was_written() {
        let key = Key { pool: 1, worker: WorkerId(12) };
        assert_eq!(key.to_string(), "w_1_12");
        assert_eq!(key.to_string().parse(), Ok(key));
        for nonsense in ["", "w_", "w_1", "w_0_1", "w_a_1", "py-1"] {
            assert_eq!(nonsense.parse::<Key>(), Err(()), "{nonsense}");
        }
    }

    #[test]
    fn ids_sort_by_number() {
        let key = |pool, worker| Key { pool, worker: WorkerId(worker) };
        assert!(key(1, 9) < key(1, 10) && key(1, 10) < key(2, 1));
    }
}
