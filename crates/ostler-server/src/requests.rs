//! Requests: those that live and the last that have ended, across all pools, and their cancelling.

use std::cmp::Reverse;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use ostler_runtime::{Pool, RequestInfo, RequestState};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::answer::{Answer, ok};
use crate::list::{self, Page};
use crate::listed::{StateName, named};
use crate::openapi::ProblemBody;
use crate::problem::Problem;
use crate::query::{Nothing, Params, invalid};
use crate::roster::Served;
use crate::segment::Segment;
use crate::server::Shared;
use crate::time::rfc3339;

/// One call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RequestBody {
    /// The caller's own, or the one that was made for it.
    pub id: String,
    pub pool: String,
    pub function: String,
    /// PENDING, PROCESSING, STREAMING, COMPLETE, ERROR, CANCELLED or REJECTED.
    pub state: &'static str,
    /// Who works on it or did so last.
    pub worker: Option<String>,
    /// Counted from 1; 0 before the first.
    pub attempt: u32,
    /// Delivered so far.
    pub chunks: u64,
    /// What the function said last of how far it is.
    #[schema(value_type = Value)]
    pub progress: Option<Value>,
    /// Of the problem it ended in.
    pub code: Option<&'static str>,
    #[schema(format = DateTime)]
    pub arrived_at: String,
    /// When it first reached a worker.
    #[schema(format = DateTime)]
    pub started_at: Option<String>,
    #[schema(format = DateTime)]
    pub ended_at: Option<String>,
}

/// One call and its way.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RequestDetail {
    #[serde(flatten)]
    pub request: RequestBody,
    /// Oldest first.
    pub state_history: Vec<StepBody>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StepBody {
    pub state: &'static str,
    #[schema(format = DateTime)]
    pub at: String,
    pub worker: Option<String>,
    pub attempt: u32,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CancelBody {
    pub id: String,
    /// CANCELLED, unless its worker was quicker.
    pub state: &'static str,
}

impl RequestBody {
    fn of(pool: &str, info: &RequestInfo) -> Self {
        let record = &info.record;
        let when = |wanted: fn(RequestState) -> bool| {
            let mut steps = record.history.iter().zip(&info.times);
            steps.find(|(step, _)| wanted(step.state)).map(|(_, at)| rfc3339(*at))
        };
        RequestBody {
            id: info.id.to_string(),
            pool: pool.to_owned(),
            function: record.function.to_string(),
            state: record.state.name(),
            worker: record.worker.as_ref().map(ToString::to_string),
            attempt: record.attempt(),
            chunks: record.chunks,
            progress: record.progress.as_ref().and_then(|raw| raw.get().parse().ok()),
            code: record.code,
            arrived_at: rfc3339(arrived(info)),
            started_at: when(|state| state == RequestState::Processing),
            ended_at: when(RequestState::ended),
        }
    }
}

impl RequestDetail {
    fn of(pool: &str, info: &RequestInfo) -> Self {
        let steps = info.record.history.iter().zip(&info.times).map(|(step, at)| StepBody {
            state: step.state.name(),
            at: rfc3339(*at),
            worker: step.worker.as_ref().map(ToString::to_string),
            attempt: step.attempt,
        });
        RequestDetail { request: RequestBody::of(pool, info), state_history: steps.collect() }
    }
}

/// A record begins with its arrival.
fn arrived(info: &RequestInfo) -> Timestamp {
    info.times.first().copied().unwrap_or_default()
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RequestQuery {
    pool: Option<String>,
    #[param(inline, value_type = Option<StateName>)]
    state: Option<String>,
    function: Option<String>,
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// `next_cursor` of the page before.
    #[param(pattern = r"^[0-9]{1,20}\.[0-9]{1,9}\.[0-9]{1,18}$")]
    cursor: Option<String>,
}

/// When a request came, and which it is: what the list is sorted by.
type Key = (Timestamp, usize, u64);

/// Live requests and the last that have ended, the latest to arrive first.
#[utoipa::path(get, path = "/api/requests", tag = "requests", operation_id = "requests.list",
    params(RequestQuery),
    responses((status = 200, body = Page<RequestBody>),
              (status = 404, description = "pool_not_found", body = ProblemBody,
               content_type = "application/problem+json"),
              (status = 422, description = "validation", body = ProblemBody,
               content_type = "application/problem+json")))]
pub(crate) async fn list(
    State(shared): State<Arc<Shared>>,
    Params(query): Params<RequestQuery>,
) -> Result<Answer<Page<RequestBody>>, Problem> {
    if let Some(pool) = &query.pool {
        shared.pool(pool)?;
    }
    let limit = list::limit(query.limit)?;
    let state = query.state.as_deref().map(|state| named::<RequestState>("state", state));
    let (state, cursor) = (state.transpose()?, query.cursor.as_deref().map(parse_cursor));
    let cursor = cursor.transpose()?;
    let pools = shared.pools();
    let mut found: Vec<(Key, &str, RequestInfo)> = Vec::new();
    for Served { place, pool } in &pools {
        if query.pool.as_deref().is_some_and(|name| name != pool.name()) {
            continue;
        }
        let wanted = pool.requests().into_iter().filter(|info| {
            let record = &info.record;
            state.is_none_or(|state| state == record.state)
                && query.function.as_deref().is_none_or(|name| name == &*record.function)
        });
        found.extend(
            wanted.map(|info| ((arrived(&info), *place, info.record.number.0), pool.name(), info)),
        );
    }
    found.retain(|(key, ..)| cursor.is_none_or(|cursor| *key < cursor));
    found.sort_unstable_by_key(|(key, ..)| Reverse(*key));
    let page = Page::cut(found.into_iter(), limit, |(key, ..)| spell_cursor(key));
    Ok(ok(page.map(|(_, pool, info)| RequestBody::of(pool, &info))))
}

fn spell_cursor((at, pool, number): &Key) -> String {
    format!("{}.{pool}.{number}", at.as_nanosecond())
}

fn parse_cursor(text: &str) -> Result<Key, Problem> {
    let mut parts = text.split('.');
    let mut next = || parts.next().and_then(|part| part.parse::<i128>().ok());
    let key = (|| {
        let at = Timestamp::from_nanosecond(next()?).ok()?;
        let (pool, number) = (usize::try_from(next()?).ok()?, u64::try_from(next()?).ok()?);
        next().is_none().then_some((at, pool, number))
    })();
    key.ok_or_else(|| invalid("`cursor` is not one that a list of requests has given"))
}

/// One request, alive or ended not long ago.
#[utoipa::path(get, path = "/api/requests/{id}", tag = "requests", operation_id = "requests.get",
    params(("id" = String, Path, description = "What `Ostler-Request-Id` said")),
    responses((status = 200, body = RequestDetail),
              (status = 404, description = "request_not_found", body = ProblemBody,
               content_type = "application/problem+json")))]
pub(crate) async fn one(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Answer<RequestDetail>, Problem> {
    let (pool, info) = find(&shared, &id)?;
    Ok(ok(RequestDetail::of(pool.name(), &info)))
}

/// Cancels a request, wherever it is: its caller gets its end at once.
#[utoipa::path(post, path = "/api/requests/{id}/cancel", tag = "requests",
    operation_id = "requests.cancel", params(("id" = String, Path)),
    responses((status = 202, body = CancelBody),
              (status = 404, description = "request_not_found", body = ProblemBody,
               content_type = "application/problem+json"),
              (status = 409, description = "request_ended", body = ProblemBody,
               content_type = "application/problem+json")))]
pub(crate) async fn cancel(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Answer<CancelBody>, Problem> {
    let (pool, info) = find(&shared, &id)?;
    let cancelled = pool.cancel(&id) == Some(true);
    let state = pool.request(&id).unwrap_or(info).record.state.name();
    if cancelled {
        return Ok(Answer(StatusCode::ACCEPTED, CancelBody { id, state }));
    }
    let detail = format!("request `{id}` has ended: {state}");
    Err(Problem::new(StatusCode::CONFLICT, "request_ended", detail).with("state", state))
}

/// Callers choose ids, and two pools may know the same one: whoever is still alive is meant, else
/// the last to have come.
fn find(shared: &Shared, id: &str) -> Result<(Pool, RequestInfo), Problem> {
    let known = shared.pools().into_iter().filter_map(|served| {
        let info = served.pool.request(id)?;
        Some((served.pool, info))
    });
    let meant =
        known.max_by_key(|(_, info)| (!info.record.state.ended(), info.times.first().copied()));
    meant.ok_or_else(|| not_found(id))
}

fn not_found(id: &str) -> Problem {
    let detail = format!("no request `{id}` is alive or among the last that have ended");
    Problem::new(StatusCode::NOT_FOUND, "request_not_found", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let key = (Timestamp::new(1_700_000_000, 5).unwrap(), 2, 77);
        assert_eq!(parse_cursor(&spell_cursor(&key)).unwrap(), key);
        for nonsense in ["", "1", "1.2", "1.2.3.4", "1.-2.3", "a.b.c"] {
            assert!(parse_cursor(nonsense).is_err(), "{nonsense}");
        }
    }
}
