//! Sessions in figures: all of them, and one.

use std::sync::Arc;

use axum::extract::State;
use jiff::Timestamp;
use ostler_store::SessionStats;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{Answer, ok};
use crate::problem::Problem;
use crate::query::{Nothing, Params};
use crate::segment::Segment;
use crate::server::Shared;
use crate::sessions::peek;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionsBody {
    /// Alive: what has expired does not count.
    pub current: u64,
    pub max: u64,
    pub memory_bytes: u64,
    pub memory_max: u64,
    /// The rest is counted since the server started.
    pub created: u64,
    pub deleted: u64,
    pub expired: u64,
    pub sweeps: u64,
    /// Changes that the disk refused.
    pub disk_refusals: u64,
}

impl SessionsBody {
    fn of(stats: &SessionStats) -> Self {
        SessionsBody {
            current: stats.current,
            max: stats.max,
            memory_bytes: stats.memory_bytes,
            memory_max: stats.memory_max,
            created: stats.created,
            deleted: stats.deleted,
            expired: stats.expired,
            sweeps: stats.sweeps,
            disk_refusals: stats.disk_refusals,
        }
    }
}

/// The sessions of this server in figures.
#[utoipa::path(get, path = "/api/stats/sessions", tag = "sessions",
    operation_id = "sessions.stats", responses((status = 200, body = SessionsBody)))]
pub(crate) async fn of_all(
    State(shared): State<Arc<Shared>>,
    Params(Nothing {}): Params<Nothing>,
) -> Answer<SessionsBody> {
    ok(SessionsBody::of(&shared.sessions.stats()))
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionFigures {
    pub id: String,
    pub age_seconds: f64,
    /// Since it was last used.
    pub idle_seconds: f64,
    /// Until it is gone, if nobody uses it.
    pub expires_in_seconds: f64,
    /// Members of its metadata.
    pub items: usize,
    pub programs: usize,
    pub program_bytes: u64,
    /// All that it takes of the memory for sessions.
    pub bytes: u64,
    pub version: u64,
}

/// One session in figures. Looking at them does not keep it alive.
#[utoipa::path(get, path = "/api/sessions/{id}/stats", tag = "sessions",
    operation_id = "sessions.figures", params(("id" = String, Path)),
    responses((status = 200, body = SessionFigures)))]
pub(crate) async fn of_one(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Answer<SessionFigures>, Problem> {
    let session = peek(&shared, &id)?;
    let now = shared.sessions.now();
    Ok(ok(SessionFigures {
        age_seconds: seconds(session.created_at, now),
        idle_seconds: seconds(session.last_accessed, now),
        expires_in_seconds: seconds(now, session.gone_at()),
        items: session.items(),
        programs: session.programs.len(),
        program_bytes: session.programs.iter().map(|program| program.bytes).sum(),
        bytes: session.bytes,
        version: session.version,
        id,
    }))
}

/// Never less than none: two looks at a clock need not agree.
fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64().max(0.0)
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SweepBody {
    /// Sessions that had expired.
    pub removed: usize,
}

/// Removes what has expired, without waiting for the clock.
#[utoipa::path(post, path = "/api/sessions/sweep", tag = "sessions",
    operation_id = "sessions.sweep", responses((status = 200, body = SweepBody)))]
pub(crate) async fn sweep(
    State(shared): State<Arc<Shared>>,
    Params(Nothing {}): Params<Nothing>,
) -> Answer<SweepBody> {
    ok(SweepBody { removed: shared.sessions.sweep().await })
}
