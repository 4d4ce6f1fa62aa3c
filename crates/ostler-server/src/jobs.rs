//! Jobs: submitted, looked at, cancelled, tried again.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ostler_core::JobStatus;
use ostler_store::ledger::JobId;
use ostler_store::ledger::audit::Entity;
use ostler_store::ledger::job::{Job, JobFilter, Submitted};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::answer::{Answer, ok};
use crate::asking::{Asking, Because};
use crate::given::{Given, Perhaps};
use crate::job_body::{AttemptBody, JobBody, JobStep};
use crate::job_order::{BatchOrder, JobOrder};
use crate::list::{self, Page};
use crate::listed::{JobStatusName, named};
use crate::prefer::{Patience, PreferHeader};
use crate::problem::Problem;
use crate::programs::HARMLESS;
use crate::query::{Nothing, Params, invalid};
use crate::segment::Segment;
use crate::server::{Shared, Stop};
use crate::terms::trace_context;

/// A job changes its status a handful of times.
const STEPS_MAX: usize = 1_000;

/// Submits a job. 202 while it has no end; 200 if it was there already, or has its end by the time
/// that `Prefer` allows.
#[utoipa::path(post, path = "/api/jobs", tag = "jobs", operation_id = "jobs.submit",
    params(PreferHeader), request_body = JobOrder,
    responses((status = 202, body = JobBody, headers(("Location" = String))),
              (status = 200, body = JobBody, headers(("Location" = String)))))]
pub(crate) async fn submit(
    State(shared): State<Arc<Shared>>,
    Params(Nothing {}): Params<Nothing>,
    patience: Patience,
    asking: Asking,
    headers: HeaderMap,
    Given(order): Given<JobOrder>,
) -> Result<Response, Problem> {
    let job = order.meant(&shared, trace_context(&headers).as_deref())?;
    let mut submitted =
        shared.jobs.submit(vec![job], asking.plainly()).await.map_err(Problem::of_job)?;
    let Submitted { mut job, known } = submitted.pop().expect("as many as were submitted");
    if let Some(time) = patience.0 {
        // It was accepted, whatever is the matter with reading it now.
        job = awaited(&shared, &job.id, time).await.unwrap_or(job);
    }
    let ended = patience.0.is_some() && job.status.terminal();
    let status = if known || ended { StatusCode::OK } else { StatusCode::ACCEPTED };
    let mut response = shown(status, JobBody { known: Some(known), ..JobBody::with_result(&job) });
    response.headers_mut().extend(patience.applied());
    Ok(response)
}

/// The job when it has its end, or as it is then. A server that stops waits for nothing.
async fn awaited(shared: &Shared, id: &JobId, time: Duration) -> Result<Job, Problem> {
    let mut stop = shared.stop.subscribe();
    let stopping = async { drop(stop.wait_for(|stop| *stop != Stop::No).await) };
    tokio::select! {
        job = shared.jobs.wait(id, time) => job.map_err(Problem::of_ledger),
        () = stopping => found(shared, id).await,
    }
}

/// With the place where it can be asked for.
pub(crate) fn shown(status: StatusCode, body: JobBody) -> Response {
    let location = HeaderValue::from_str(&format!("/api/jobs/{}", body.id)).expect("hex digits");
    ([(header::LOCATION, location)], Answer(status, body)).into_response()
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BatchBody {
    /// In the order in which they were given.
    pub jobs: Vec<JobBody>,
}

/// Submits many jobs, all or none of them. What does not fit is named by its `index`.
#[utoipa::path(post, path = "/api/jobs/batch", tag = "jobs", operation_id = "jobs.submit_batch",
    request_body = BatchOrder, responses((status = 202, body = BatchBody)))]
pub(crate) async fn submit_batch(
    State(shared): State<Arc<Shared>>,
    Params(Nothing {}): Params<Nothing>,
    asking: Asking,
    headers: HeaderMap,
    Given(order): Given<BatchOrder>,
) -> Result<Answer<BatchBody>, Problem> {
    let jobs = order.meant(&shared, trace_context(&headers).as_deref())?;
    let submitted = shared.jobs.submit(jobs, asking.plainly()).await.map_err(Problem::of_job)?;
    let jobs = submitted
        .iter()
        .map(|Submitted { job, known }| JobBody { known: Some(*known), ..JobBody::brief(job) });
    Ok(Answer(StatusCode::ACCEPTED, BatchBody { jobs: jobs.collect() }))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct JobQuery {
    #[param(inline, value_type = Option<JobStatusName>)]
    status: Option<String>,
    pool: Option<String>,
    queue: Option<String>,
    function: Option<String>,
    workspace_id: Option<String>,
    #[param(pattern = "^j_[0-9a-f]{32}$")]
    parent_job_id: Option<String>,
    #[param(pattern = "^j_[0-9a-f]{32}$")]
    root_job_id: Option<String>,
    #[param(pattern = "^s_[0-9a-f]{32}$")]
    schedule_id: Option<String>,
    /// `name:value`.
    #[param(pattern = "^[^:]+:.*$")]
    tag: Option<String>,
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// `next_cursor` of the page before.
    #[param(pattern = "^j_[0-9a-f]{32}$")]
    cursor: Option<String>,
}

impl JobQuery {
    fn filter(self) -> Result<(JobFilter, usize), Problem> {
        let status = self.status.as_deref().map(|name| named::<JobStatus>("status", name));
        let tag = self.tag.map(|tag| match tag.split_once(':') {
            Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
            None => Err(invalid(format!("`tag` is `{tag}`; use name:value"))),
        });
        let filter = JobFilter {
            workspace: self.workspace_id,
            queue: self.queue,
            pool: self.pool,
            function: self.function,
            status: status.transpose()?,
            parent: id_in("parent_job_id", self.parent_job_id.as_deref())?,
            root: id_in("root_job_id", self.root_job_id.as_deref())?,
            schedule: id_in("schedule_id", self.schedule_id.as_deref())?,
            tag: tag.transpose()?,
            before: id_in("cursor", self.cursor.as_deref())?,
        };
        Ok((filter, list::limit(self.limit)?))
    }
}

/// An id in a parameter.
pub(crate) fn id_in<T: std::str::FromStr>(
    parameter: &str,
    given: Option<&str>,
) -> Result<Option<T>, Problem> {
    let parse = |id: &str| {
        id.parse().map_err(|_| invalid(format!("`{parameter}` is `{id}`, which is no such id")))
    };
    given.map(parse).transpose()
}

/// Jobs, the youngest first, without their payloads and results.
#[utoipa::path(get, path = "/api/jobs", tag = "jobs", operation_id = "jobs.list",
    params(JobQuery), responses((status = 200, body = Page<JobBody>)))]
pub(crate) async fn list(
    State(shared): State<Arc<Shared>>,
    Params(query): Params<JobQuery>,
) -> Result<Answer<Page<JobBody>>, Problem> {
    let (filter, limit) = query.filter()?;
    page(&shared, &filter, limit).await.map(ok)
}

async fn page(shared: &Shared, filter: &JobFilter, limit: usize) -> Result<Page<JobBody>, Problem> {
    let jobs = shared.jobs.ledger().jobs(filter, limit + 1).await.map_err(Problem::of_ledger)?;
    Ok(Page::cut(jobs.iter().map(JobBody::brief), limit, |job| job.id.clone()))
}

/// The job of that id.
pub(crate) fn id_of(given: &str) -> Result<JobId, Problem> {
    given.parse().map_err(|()| not_found(given))
}

fn not_found(id: &str) -> Problem {
    Problem::of_ledger(ostler_store::ledger::LedgerError::NoJob { id: id.to_owned() })
}

pub(crate) async fn found(shared: &Shared, id: &JobId) -> Result<Job, Problem> {
    shared.jobs.ledger().job(id).await.map_err(Problem::of_ledger)
}

/// One job with its payload, its result and every change of its status.
#[utoipa::path(get, path = "/api/jobs/{id}", tag = "jobs", operation_id = "jobs.get",
    params(("id" = String, Path)), responses((status = 200, body = JobBody)))]
pub(crate) async fn one(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Answer<JobBody>, Problem> {
    let id = id_of(&id)?;
    let job = found(&shared, &id).await?;
    let steps = shared.jobs.ledger().transitions(Entity::Job, id.as_str(), 0, STEPS_MAX).await;
    Ok(ok(JobBody::whole(&job, &steps.map_err(Problem::of_ledger)?)))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct StepQuery {
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// `next_cursor` of the page before: those after this `seq`.
    #[param(maximum = 9223372036854775807u64)]
    cursor: Option<u64>,
}

/// Every change of a job's status, oldest first.
#[utoipa::path(get, path = "/api/jobs/{id}/transitions", tag = "jobs",
    operation_id = "jobs.transitions", params(("id" = String, Path), StepQuery),
    responses((status = 200, body = Page<JobStep>)))]
pub(crate) async fn transitions(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(query): Params<StepQuery>,
) -> Result<Answer<Page<JobStep>>, Problem> {
    let id = id_of(&id)?;
    let (limit, after) = (list::limit(query.limit)?, list::after("cursor", query.cursor)?);
    found(&shared, &id).await?;
    let ledger = shared.jobs.ledger();
    let steps = ledger.transitions(Entity::Job, id.as_str(), after, limit + 1).await;
    let steps = steps.map_err(Problem::of_ledger)?;
    Ok(ok(Page::cut(steps.iter().map(JobStep::of), limit, |step| step.seq.to_string())))
}

/// The attempts to run a job, oldest first.
#[utoipa::path(get, path = "/api/jobs/{id}/attempts", tag = "jobs", operation_id = "jobs.attempts",
    params(("id" = String, Path)), responses((status = 200, body = Page<AttemptBody>)))]
pub(crate) async fn attempts(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Answer<Page<AttemptBody>>, Problem> {
    let id = id_of(&id)?;
    found(&shared, &id).await?;
    let attempts = shared.jobs.ledger().attempts(&id).await.map_err(Problem::of_ledger)?;
    Ok(ok(Page::whole(attempts.iter().map(AttemptBody::of).collect())))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ChildQuery {
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// `next_cursor` of the page before.
    #[param(pattern = "^j_[0-9a-f]{32}$")]
    cursor: Option<String>,
}

/// The jobs that this one is the parent of, the youngest first.
#[utoipa::path(get, path = "/api/jobs/{id}/children", tag = "jobs", operation_id = "jobs.children",
    params(("id" = String, Path), ChildQuery), responses((status = 200, body = Page<JobBody>)))]
pub(crate) async fn children(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(query): Params<ChildQuery>,
) -> Result<Answer<Page<JobBody>>, Problem> {
    let parent = id_of(&id)?;
    let before = id_in("cursor", query.cursor.as_deref())?;
    let limit = list::limit(query.limit)?;
    found(&shared, &parent).await?;
    let filter = JobFilter { parent: Some(parent), before, ..JobFilter::default() };
    page(&shared, &filter, limit).await.map(ok)
}

/// The result of a completed job, as it is.
#[utoipa::path(get, path = "/api/jobs/{id}/result", tag = "jobs", operation_id = "jobs.result",
    params(("id" = String, Path)),
    responses((status = 200, description = "Under its own content type", content_type = "*/*")))]
pub(crate) async fn result(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Response, Problem> {
    let job = found(&shared, &id_of(&id)?).await?;
    let Some(content) = &job.result else { return Err(no_result(&job)) };
    let kind = HeaderValue::from_str(&content.content_type);
    let kind = kind.unwrap_or(HeaderValue::from_static("application/octet-stream"));
    let json = &*content.content_type == "application/json";
    let bytes = match json && content.bytes.is_empty() {
        true => "null".into(),
        false => content.bytes.clone(),
    };
    Ok(([(header::CONTENT_TYPE, kind)], HARMLESS, bytes).into_response())
}

fn no_result(job: &Job) -> Problem {
    let detail = format!("job `{}` is {} and has no result", job.id, job.status.name());
    let problem = Problem::new(StatusCode::CONFLICT, "no_result", detail)
        .with("job_status", job.status.name())
        .with("reason", job.reason.clone())
        .with("error", job.error.clone());
    if job.status.terminal() { problem } else { problem.retryable(None) }
}

/// Cancels a job and all below it. 200 if it is CANCELED already; 202 while its work has not let
/// go yet.
#[utoipa::path(post, path = "/api/jobs/{id}/cancel", tag = "jobs", operation_id = "jobs.cancel",
    params(("id" = String, Path)), request_body = Option<Because>,
    responses((status = 200, body = JobBody), (status = 202, body = JobBody)))]
pub(crate) async fn cancel(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
    asking: Asking,
    Perhaps(order): Perhaps<Because>,
) -> Result<Answer<JobBody>, Problem> {
    let (id, asked) = (id_of(&id)?, asking.because(order.reason)?);
    let job = shared.jobs.ledger().cancel(&id, asked).await.map_err(Problem::of_ledger)?;
    Ok(cancelled(&job))
}

pub(crate) fn cancelled(job: &Job) -> Answer<JobBody> {
    let status = if job.status.terminal() { StatusCode::OK } else { StatusCode::ACCEPTED };
    Answer(status, JobBody::brief(job))
}

/// A new job like this one, which failed or was cancelled.
#[utoipa::path(post, path = "/api/jobs/{id}/retry", tag = "jobs", operation_id = "jobs.retry",
    params(("id" = String, Path)), request_body = Option<Because>,
    responses((status = 202, body = JobBody, headers(("Location" = String)))))]
pub(crate) async fn retry(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
    asking: Asking,
    Perhaps(order): Perhaps<Because>,
) -> Result<Response, Problem> {
    let (id, asked) = (id_of(&id)?, asking.because(order.reason)?);
    // Its pool may be gone, or smaller, since it was submitted.
    let mut like_it = found(&shared, &id).await?.spec;
    shared.jobs.complete(&mut like_it).map_err(Problem::of_job)?;
    let job = shared.jobs.ledger().retry(&id, asked).await.map_err(Problem::of_ledger)?;
    Ok(shown(StatusCode::ACCEPTED, JobBody::brief(&job)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_read_or_refused_by_name() {
        let id = JobId::fresh();
        let query = JobQuery {
            status: Some("running".into()),
            tag: Some("a:b:c".into()),
            cursor: Some(id.to_string()),
            ..JobQuery::default()
        };
        let (filter, limit) = query.filter().unwrap();
        assert_eq!((filter.status, limit), (Some(JobStatus::Running), 100));
        assert_eq!(filter.tag, Some(("a".into(), "b:c".into())));
        assert_eq!(filter.before, Some(id));
        let wrong = [
            JobQuery { status: Some("DONE".into()), ..JobQuery::default() },
            JobQuery { tag: Some("a".into()), ..JobQuery::default() },
            JobQuery { cursor: Some("j_1".into()), ..JobQuery::default() },
            JobQuery { limit: Some(0), ..JobQuery::default() },
        ];
        for query in wrong {
            assert_eq!(query.filter().unwrap_err().status, 422);
        }
    }
}
