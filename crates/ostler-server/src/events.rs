//! What happens in the pools, followed live.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use bytes::BytesMut;
use ostler_runtime::{Event, EventKind, Followed, Follower};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::{IntoParams, ToSchema};

use crate::listed::{KindName, group_of, named};
use crate::openapi::ProblemBody;
use crate::problem::Problem;
use crate::query::Params;
use crate::server::Shared;
use crate::sse::{self, Source, last_event_id};
use crate::time::rfc3339;

/// How much is gathered into one write.
const GATHER: usize = 64 << 10;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventBody<'a> {
    /// Rises by one with each event of the server.
    pub seq: u64,
    #[schema(format = DateTime)]
    pub at: String,
    #[schema(example = "worker.ready")]
    pub kind: &'static str,
    pub pool: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// Spent in `from`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    pub detail: &'a Map<String, Value>,
}

impl<'a> EventBody<'a> {
    fn of(event: &'a Event) -> Self {
        EventBody {
            seq: event.seq,
            at: rfc3339(event.at),
            kind: event.kind.name(),
            pool: &event.pool,
            worker: event.worker.as_deref(),
            generation: event.generation,
            request_id: event.request.as_deref(),
            from: event.from,
            to: event.to,
            reason: event.reason,
            seconds: event.seconds,
            detail: &event.detail,
        }
    }
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventQuery {
    /// Only of this pool.
    pool: Option<String>,
    /// Only these, separated by commas: kinds, or all of `worker`, `pool`, `request`, `session`,
    /// `job`.
    #[param(inline, value_type = Option<Vec<KindName>>, style = Form, explode = false,
        min_items = 1)]
    kind: Option<String>,
    /// Also those that come with every call. They come too when `kind` names them.
    #[serde(default)]
    all: bool,
    /// False: what is kept, and then the end.
    #[serde(default = "yes")]
    #[param(default = true)]
    follow: bool,
    /// Those after this number, as far as they are kept; 0: all that are kept. `Last-Event-ID`
    /// says the same.
    #[param(maximum = 18446744073709551615u64)]
    after: Option<u64>,
}

/// Follows what happens, as server-sent events under their kinds; `lagged` for one who fell behind.
/// The catalogue is in docs/events.md.
#[utoipa::path(get, path = "/api/events", tag = "events", operation_id = "events.follow", params(EventQuery),
    responses((status = 200, description = "Server-sent events", body = EventBody,
               content_type = "text/event-stream"),
              (status = 404, description = "pool_not_found", body = ProblemBody,
               content_type = "application/problem+json"),
              (status = 422, description = "validation", body = ProblemBody,
               content_type = "application/problem+json")))]
pub(crate) async fn follow(
    State(shared): State<Arc<Shared>>,
    Params(query): Params<EventQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if let Some(pool) = &query.pool {
        shared.pool(pool)?;
    }
    let filter = Filter::of(&query)?;
    // What is kept, where nobody is going to wait for more.
    let after = last_event_id(&headers)?.or(query.after).or((!query.follow).then_some(0));
    let log = &shared.events;
    let follower = match query.all || filter.names_frequent() {
        true => log.follow_all(after),
        false => log.follow(after),
    };
    Ok(sse::stream(Following { follower, filter, follow: query.follow }))
}

fn yes() -> bool {
    true
}

#[derive(Debug)]
struct Filter {
    pool: Option<String>,
    /// `None`: every kind.
    kinds: Option<Vec<EventKind>>,
    /// Frequent kinds were asked for by name.
    frequent: bool,
}

impl Filter {
    fn of(query: &EventQuery) -> Result<Self, Problem> {
        let mut filter = Filter { pool: query.pool.clone(), kinds: None, frequent: false };
        let Some(kinds) = &query.kind else { return Ok(filter) };
        let mut wanted = Vec::new();
        for name in kinds.split(',').map(str::trim) {
            let group = EventKind::ALL.iter().copied().filter(|kind| group_of(*kind) == name);
            let before = wanted.len();
            wanted.extend(group);
            if wanted.len() == before {
                let kind = named::<EventKind>("kind", name)?;
                filter.frequent |= kind.frequent();
                wanted.push(kind);
            }
        }
        filter.kinds = Some(wanted);
        Ok(filter)
    }

    fn names_frequent(&self) -> bool {
        self.frequent
    }

    fn wants(&self, event: &Event) -> bool {
        self.pool.as_deref().is_none_or(|pool| pool == &*event.pool)
            && self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&event.kind))
    }
}

struct Following {
    follower: Follower,
    filter: Filter,
    follow: bool,
}

impl Source for Following {
    async fn write(&mut self, out: &mut BytesMut) -> bool {
        let mut next = match (self.follower.try_next(), self.follow) {
            (Some(next), _) => next,
            (None, true) => self.follower.next().await,
            (None, false) => return false,
        };
        loop {
            match next {
                Followed::Event(event) if self.filter.wants(&event) => put(out, &event),
                Followed::Event(_) => {}
                Followed::Lagged { missed, resume } => {
                    let data = json!({ "missed": missed }).to_string();
                    sse::put(out, Some(resume), "lagged", data.as_bytes());
                    return false;
                }
                Followed::Ended => return false,
            }
            if out.len() >= GATHER {
                return true;
            }
            next = match self.follower.try_next() {
                Some(next) => next,
                None => return true,
            };
        }
    }
}

fn put(out: &mut BytesMut, event: &Event) {
    let data = serde_json::to_vec(&EventBody::of(event)).expect("plain data with text keys");
    sse::put(out, Some(event.seq), event.kind.name(), &data);
}

#[cfg(test)]
mod tests {
    use ostler_runtime::{EventDraft, EventLog};

    use super::*;

    fn query(kind: &str) -> EventQuery {
        EventQuery { kind: Some(kind.to_owned()), ..EventQuery::default() }
    }

    fn publish(log: &EventLog, kind: EventKind, pool: &str) {
        log.publish(EventDraft::new(kind, &pool.into()));
    }

    async fn written(following: &mut Following) -> (String, bool) {
        let mut out = BytesMut::new();
        let goes_on = following.write(&mut out).await;
        (String::from_utf8(out.to_vec()).unwrap(), goes_on)
    }

    #[tokio::test]
    async fn only_what_was_asked_for_is_told() {
        let log = Arc::new(EventLog::new(16));
        let filter =
            Filter::of(&EventQuery { pool: Some("py".to_owned()), ..query("worker.ready, pool") });
        let mut following =
            Following { follower: log.follow(None), filter: filter.unwrap(), follow: true };
        publish(&log, EventKind::WorkerReady, "other");
        publish(&log, EventKind::WorkerSpawned, "py");
        publish(&log, EventKind::WorkerReady, "py");
        publish(&log, EventKind::PoolReady, "py");
        let (text, goes_on) = written(&mut following).await;
        assert!(goes_on);
        log.close();
        let events: Vec<&str> = text.lines().filter(|line| line.starts_with("event")).collect();
        assert_eq!(events, ["event: worker.ready", "event: pool.ready"]);
        assert!(text.starts_with("id: 3\n"), "{text}");
        let (rest, goes_on) = written(&mut following).await;
        assert!(rest.is_empty() && !goes_on, "it ends with the log");
    }

    #[tokio::test]
    async fn a_slow_reader_is_cut_off_and_told_where_to_go_on() {
        let log = Arc::new(EventLog::new(2));
        let filter = Filter::of(&EventQuery::default()).unwrap();
        let mut following = Following { follower: log.follow(None), filter, follow: true };
        for _ in 0..5 {
            publish(&log, EventKind::WorkerReady, "py");
        }
        let (text, goes_on) = written(&mut following).await;
        assert_eq!(text, "id: 3\nevent: lagged\ndata: {\"missed\":3}\n\n");
        assert!(!goes_on);
    }

    #[test]
    fn frequent_kinds_are_asked_for_by_name_not_by_group() {
        assert!(Filter::of(&query("request.completed")).unwrap().names_frequent());
        assert!(!Filter::of(&query("request,worker")).unwrap().names_frequent());
        let problem = Filter::of(&query("worker.redy")).unwrap_err();
        assert!(problem.detail.contains("worker.ready"), "{}", problem.detail);
    }
}
