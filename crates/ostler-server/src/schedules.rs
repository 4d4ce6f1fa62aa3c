//! Schedules: jobs that come again and again.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ostler_store::ledger::schedule::{NewSchedule, Overlap, Schedule, ScheduleChange};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::answer::{Answer, ok};
use crate::asking::{Asking, Because, check_text};
use crate::given::{Given, Perhaps};
use crate::job_body::JobSpecBody;
use crate::job_order::JobOrder;
use crate::jobs::id_in;
use crate::list::{self, Page};
use crate::problem::Problem;
use crate::query::{Nothing, Params};
use crate::segment::Segment;
use crate::server::Shared;
use crate::time::rfc3339;

const ZONE_MAX: usize = 100;

/// One schedule.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScheduleBody {
    #[schema(example = "s_019a8f0c4a7b7c3e9d1f2a3b4c5d6e7f")]
    pub id: String,
    pub name: String,
    pub workspace_id: String,
    #[schema(example = "*/5 * * * *")]
    pub cron: String,
    pub timezone: String,
    /// skip or allow.
    pub overlap: &'static str,
    pub paused: bool,
    pub job: JobSpecBody,
    /// Null while it is paused.
    #[schema(format = DateTime)]
    pub next_at: Option<String>,
    #[schema(format = DateTime)]
    pub last_at: Option<String>,
    pub last_job_id: Option<String>,
    /// Rises with every change.
    pub version: u64,
    #[schema(format = DateTime)]
    pub created_at: String,
}

impl ScheduleBody {
    pub fn of(schedule: &Schedule) -> Self {
        let spec = &schedule.spec;
        ScheduleBody {
            id: schedule.id.to_string(),
            name: spec.name.clone(),
            workspace_id: spec.workspace.clone(),
            cron: spec.cron.clone(),
            timezone: spec.timezone.clone(),
            overlap: match spec.overlap {
                Overlap::Skip => "skip",
                Overlap::Allow => "allow",
            },
            paused: spec.paused,
            job: JobSpecBody::whole(&spec.job),
            next_at: schedule.next_at.map(rfc3339),
            last_at: schedule.last_at.map(rfc3339),
            last_job_id: schedule.last_job.as_ref().map(ToString::to_string),
            version: schedule.version,
            created_at: rfc3339(schedule.created_at),
        }
    }
}

/// What happens when the last job has no end yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OverlapOrder {
    /// This time is left out.
    Skip,
    Allow,
}

impl OverlapOrder {
    fn meant(self) -> Overlap {
        match self {
            OverlapOrder::Skip => Overlap::Skip,
            OverlapOrder::Allow => Overlap::Allow,
        }
    }
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScheduleOrder {
    /// Unique in its workspace.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// `default` if nothing is said.
    #[schema(min_length = 1, max_length = 200)]
    workspace_id: Option<String>,
    /// Five fields (`*/5 * * * *`), `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`, or
    /// `@every 90s`.
    #[schema(min_length = 1, max_length = 200)]
    cron: String,
    /// An IANA name; UTC if nothing is said.
    #[schema(min_length = 1, max_length = 100)]
    timezone: Option<String>,
    /// What is submitted each time.
    job: JobOrder,
    /// `skip` if nothing is said.
    overlap: Option<OverlapOrder>,
    paused: Option<bool>,
    /// An idempotency key, where there is none in the header.
    #[schema(pattern = "^[ -~]{1,255}$")]
    #[expect(dead_code, reason = "read before the body gets here")]
    request_id: Option<String>,
}

/// Adds a schedule.
#[utoipa::path(post, path = "/api/schedules", tag = "schedules", operation_id = "schedules.create",
    request_body = ScheduleOrder,
    responses((status = 201, body = ScheduleBody, headers(("Location" = String)))))]
pub(crate) async fn create(
    State(shared): State<Arc<Shared>>,
    Params(Nothing {}): Params<Nothing>,
    asking: Asking,
    Given(order): Given<ScheduleOrder>,
) -> Result<Response, Problem> {
    let timezone = order.timezone.unwrap_or_else(|| "UTC".to_owned());
    check_text("timezone", &timezone, ZONE_MAX)?;
    let new = NewSchedule {
        name: order.name,
        workspace: order.workspace_id.unwrap_or_else(|| "default".to_owned()),
        cron: order.cron,
        timezone,
        job: order.job.scheduled(&shared)?,
        overlap: order.overlap.map_or_else(Overlap::default, OverlapOrder::meant),
        paused: order.paused.unwrap_or_default(),
    };
    let added = shared.jobs.ledger().add_schedule(new, asking.plainly()).await;
    Ok(made(&added.map_err(Problem::of_ledger)?))
}

pub(crate) fn made(schedule: &Schedule) -> Response {
    let location = format!("/api/schedules/{}", schedule.id);
    let location = HeaderValue::from_str(&location).expect("hex digits");
    let body = Answer(StatusCode::CREATED, ScheduleBody::of(schedule));
    ([(header::LOCATION, location)], body).into_response()
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ScheduleQuery {
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// `next_cursor` of the page before.
    #[param(pattern = "^s_[0-9a-f]{32}$")]
    cursor: Option<String>,
}

/// All schedules, the oldest first.
#[utoipa::path(get, path = "/api/schedules", tag = "schedules", operation_id = "schedules.list",
    params(ScheduleQuery), responses((status = 200, body = Page<ScheduleBody>)))]
pub(crate) async fn list(
    State(shared): State<Arc<Shared>>,
    Params(query): Params<ScheduleQuery>,
) -> Result<Answer<Page<ScheduleBody>>, Problem> {
    let limit = list::limit(query.limit)?;
    let after = id_in("cursor", query.cursor.as_deref())?;
    let found = shared.jobs.ledger().schedules(after.as_ref(), limit + 1).await;
    let found = found.map_err(Problem::of_ledger)?;
    Ok(ok(Page::cut(found.iter().map(ScheduleBody::of), limit, |schedule| schedule.id.clone())))
}

/// One schedule, by its id or its name.
#[utoipa::path(get, path = "/api/schedules/{id}", tag = "schedules", operation_id = "schedules.get",
    params(("id" = String, Path)), responses((status = 200, body = ScheduleBody)))]
pub(crate) async fn one(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Answer<ScheduleBody>, Problem> {
    let found = shared.jobs.ledger().schedule(&id).await.map_err(Problem::of_ledger)?;
    Ok(ok(ScheduleBody::of(&found)))
}

/// What is to change. What is not named stays.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SchedulePatch {
    #[schema(min_length = 1, max_length = 200)]
    cron: Option<String>,
    #[schema(min_length = 1, max_length = 100)]
    timezone: Option<String>,
    /// As a whole.
    job: Option<JobOrder>,
    overlap: Option<OverlapOrder>,
    paused: Option<bool>,
    /// An idempotency key, where there is none in the header.
    #[schema(pattern = "^[ -~]{1,255}$")]
    #[expect(dead_code, reason = "read before the body gets here")]
    request_id: Option<String>,
}

/// Changes a schedule.
#[utoipa::path(patch, path = "/api/schedules/{id}", tag = "schedules",
    operation_id = "schedules.patch", params(("id" = String, Path)), request_body = SchedulePatch,
    responses((status = 200, body = ScheduleBody)))]
pub(crate) async fn patch(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
    asking: Asking,
    Given(patch): Given<SchedulePatch>,
) -> Result<Answer<ScheduleBody>, Problem> {
    if let Some(timezone) = &patch.timezone {
        check_text("timezone", timezone, ZONE_MAX)?;
    }
    let change = ScheduleChange {
        cron: patch.cron,
        timezone: patch.timezone,
        job: patch.job.map(|job| job.scheduled(&shared)).transpose()?,
        overlap: patch.overlap.map(OverlapOrder::meant),
        paused: patch.paused,
    };
    changed(&shared, &id, change, asking, None).await
}

async fn changed(
    shared: &Shared,
    id: &str,
    change: ScheduleChange,
    asking: Asking,
    reason: Option<String>,
) -> Result<Answer<ScheduleBody>, Problem> {
    let asked = asking.because(reason)?;
    let changed = shared.jobs.ledger().change_schedule(id, change, asked).await;
    Ok(ok(ScheduleBody::of(&changed.map_err(Problem::of_ledger)?)))
}

/// Ends a schedule. Jobs that it has submitted go on.
#[utoipa::path(delete, path = "/api/schedules/{id}", tag = "schedules",
    operation_id = "schedules.delete", params(("id" = String, Path)),
    responses((status = 204, description = "It is gone")))]
pub(crate) async fn delete(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
    asking: Asking,
) -> Result<StatusCode, Problem> {
    let deleted = shared.jobs.ledger().delete_schedule(&id, asking.plainly()).await;
    deleted.map_err(Problem::of_ledger)?;
    Ok(StatusCode::NO_CONTENT)
}

/// No more jobs until it is resumed. Times that pass meanwhile are left out.
#[utoipa::path(post, path = "/api/schedules/{id}/pause", tag = "schedules",
    operation_id = "schedules.pause", params(("id" = String, Path)),
    request_body = Option<Because>, responses((status = 200, body = ScheduleBody)))]
pub(crate) async fn pause(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
    asking: Asking,
    Perhaps(order): Perhaps<Because>,
) -> Result<Answer<ScheduleBody>, Problem> {
    let change = ScheduleChange { paused: Some(true), ..ScheduleChange::default() };
    changed(&shared, &id, change, asking, order.reason).await
}

/// Jobs come again, from the next time on.
#[utoipa::path(post, path = "/api/schedules/{id}/resume", tag = "schedules",
    operation_id = "schedules.resume", params(("id" = String, Path)),
    request_body = Option<Because>, responses((status = 200, body = ScheduleBody)))]
pub(crate) async fn resume(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
    asking: Asking,
    Perhaps(order): Perhaps<Because>,
) -> Result<Answer<ScheduleBody>, Problem> {
    let change = ScheduleChange { paused: Some(false), ..ScheduleChange::default() };
    changed(&shared, &id, change, asking, order.reason).await
}
