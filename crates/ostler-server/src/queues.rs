//! Queues of jobs: what waits in them, and whether somebody holds them.

use std::sync::Arc;

use axum::extract::State;
use ostler_store::ledger::job::Queue;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::answer::{Answer, ok};
use crate::asking::{Asking, Because};
use crate::given::Perhaps;
use crate::list::{self, Page};
use crate::problem::Problem;
use crate::query::{Nothing, Params};
use crate::segment::Segment;
use crate::server::Shared;
use crate::time::rfc3339;

/// A queue that somebody paused, or that has jobs without an end.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QueueBody {
    #[schema(example = "default")]
    pub name: String,
    pub paused: bool,
    #[schema(format = DateTime)]
    pub paused_at: Option<String>,
    /// Submitted and pending jobs.
    pub waiting: u64,
    pub running: u64,
}

impl QueueBody {
    pub fn of(queue: &Queue) -> Self {
        QueueBody {
            name: queue.name.clone(),
            paused: queue.paused_at.is_some(),
            paused_at: queue.paused_at.map(rfc3339),
            waiting: queue.waiting,
            running: queue.running,
        }
    }
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct QueueQuery {
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// The queues that are paused or have jobs without an end, by name.
#[utoipa::path(get, path = "/api/queues", tag = "jobs", operation_id = "queues.list",
    params(QueueQuery), responses((status = 200, body = Page<QueueBody>)))]
pub(crate) async fn list(
    State(shared): State<Arc<Shared>>,
    Params(query): Params<QueueQuery>,
) -> Result<Answer<Page<QueueBody>>, Problem> {
    let limit = list::limit(query.limit)?;
    let mut queues = shared.jobs.ledger().queues().await.map_err(Problem::of_ledger)?;
    queues.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    let rest =
        queues.iter().filter(|queue| query.cursor.as_ref().is_none_or(|at| queue.name > *at));
    Ok(ok(Page::cut(rest.map(QueueBody::of), limit, |queue| queue.name.clone())))
}

/// From now on its jobs wait; those that run go on.
#[utoipa::path(post, path = "/api/queues/{name}/pause", tag = "jobs", operation_id = "queues.pause",
    params(("name" = String, Path)), request_body = Option<Because>,
    responses((status = 200, body = QueueBody)))]
pub(crate) async fn pause(
    State(shared): State<Arc<Shared>>,
    Segment(name): Segment,
    Params(Nothing {}): Params<Nothing>,
    asking: Asking,
    Perhaps(order): Perhaps<Because>,
) -> Result<Answer<QueueBody>, Problem> {
    let paused = shared.jobs.ledger().pause_queue(&name, asking.because(order.reason)?).await;
    Ok(ok(QueueBody::of(&paused.map_err(Problem::of_ledger)?)))
}

/// Its jobs go on.
#[utoipa::path(post, path = "/api/queues/{name}/resume", tag = "jobs",
    operation_id = "queues.resume", params(("name" = String, Path)),
    request_body = Option<Because>, responses((status = 200, body = QueueBody)))]
pub(crate) async fn resume(
    State(shared): State<Arc<Shared>>,
    Segment(name): Segment,
    Params(Nothing {}): Params<Nothing>,
    asking: Asking,
    Perhaps(order): Perhaps<Because>,
) -> Result<Answer<QueueBody>, Problem> {
    let resumed = shared.jobs.ledger().resume_queue(&name, asking.because(order.reason)?).await;
    Ok(ok(QueueBody::of(&resumed.map_err(Problem::of_ledger)?)))
}
