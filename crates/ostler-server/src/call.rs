//! `POST /api/pools/{pool}/call/{function}`: the one route that must be fast. A call on a lease goes
//! the same way. A call without a session neither allocates nor waits for what sessions need.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use ostler_runtime::{Call, Continuity, Item, OnDisconnect, Pool, Running, continuity_name};

use crate::payload::Payload;
use crate::problem::Problem;
use crate::query::invalid;
use crate::segment::decoded;
use crate::server::Shared;
use crate::stream::{Framing, StreamBody};
use crate::tenancy::Tenant;
use crate::terms::{self, REQUEST_ID, SESSION};
use crate::upload;

const WORKER: HeaderName = HeaderName::from_static("ostler-worker");
const CONTINUITY: HeaderName = HeaderName::from_static("ostler-session-continuity");

/// What a path names, if it names a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route<'p> {
    Pool(&'p str, &'p str),
    Lease(&'p str, &'p str),
}

pub(crate) fn route(path: &str) -> Option<Route<'_>> {
    let rest = path.strip_prefix("/api/")?;
    let (of, rest) = rest.split_once('/')?;
    let (name, function) = rest.split_once("/call/")?;
    let whole = |part: &str| !part.is_empty() && !part.contains('/');
    match of {
        _ if !whole(name) || !whole(function) => None,
        "pools" => Some(Route::Pool(name, function)),
        "leases" => Some(Route::Lease(name, function)),
        _ => None,
    }
}

pub(crate) async fn serve(
    shared: Arc<Shared>,
    request: Request<Incoming>,
    client: u64,
    given: Option<HeaderValue>,
) -> Response<Payload> {
    let mut id = given;
    if request.method() != Method::POST {
        let id = id.unwrap_or_else(|| shared.next_request_id());
        return not_a_post(&id);
    }
    match answer(&shared, request, client, &mut id).await {
        Ok(response) => response,
        Err(problem) => {
            // What was refused before it became a request has an id of its own.
            let id = id.unwrap_or_else(|| shared.next_request_id());
            crate::payload::problem(&problem, &id)
        }
    }
}

fn not_a_post(id: &HeaderValue) -> Response<Payload> {
    let detail = "a call is made with POST";
    let refused = Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail);
    let mut response = crate::payload::problem(&refused, id);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
    response
}

/// Who is to serve a call.
enum Whom {
    Pool(Pool),
    Place(Arc<Tenant>, u32),
}

impl Whom {
    fn of(shared: &Shared, route: Route<'_>, query: Option<&str>) -> Result<Self, Problem> {
        let query = query.filter(|query| !query.is_empty());
        match (route, query) {
            (Route::Pool(pool, _), None) => Ok(Whom::Pool(shared.pool(&decoded(pool)?)?)),
            (Route::Pool(..), Some(query)) => {
                Err(invalid(format!("a call has no parameters beside its body: `{query}`")))
            }
            (Route::Lease(lease, _), query) => {
                let tenant = shared.leases.find(&decoded(lease)?)?;
                let place = place(query, tenant.workers.len())?;
                Ok(Whom::Place(tenant, place))
            }
        }
    }

    fn pool(&self) -> &Pool {
        match self {
            Whom::Pool(pool) => pool,
            Whom::Place(tenant, _) => &tenant.pool,
        }
    }

    fn call(&self, call: Call) -> Result<Running, Problem> {
        match self {
            Whom::Pool(pool) => Ok(pool.call(call)),
            Whom::Place(tenant, place) => tenant.call_on(*place, call),
        }
    }
}

/// Which of so many places is meant; the first if nothing is said.
fn place(query: Option<&str>, places: usize) -> Result<u32, Problem> {
    let Some(query) = query else { return Ok(0) };
    let place = query.strip_prefix("place=").and_then(|place| place.parse::<u32>().ok());
    place.filter(|place| (*place as usize) < places).ok_or_else(|| {
        let last = places.saturating_sub(1);
        invalid(format!("`{query}`: a call on this lease has one parameter, place=0 to {last}"))
    })
}

async fn answer(
    shared: &Arc<Shared>,
    request: Request<Incoming>,
    client: u64,
    id: &mut Option<HeaderValue>,
) -> Result<Response<Payload>, Problem> {
    let (head, incoming) = request.into_parts();
    let route = route(head.uri.path()).expect("routed here by its path");
    let whom = Whom::of(shared, route, head.uri.query())?;
    let (Route::Pool(_, function) | Route::Lease(_, function)) = route;
    let framing = terms::framing(&head.headers);
    let session = terms::session(&head.headers)?;
    let mut call = terms::described(&head.headers, client, session)?;
    call.function = decoded(function)?;
    call.stream = framing.is_some();
    let encoding = upload::encoding(&head.headers)?;
    let pool = whom.pool();
    let limit = shared.max_body.min(usize::try_from(pool.max_body()).unwrap_or(usize::MAX));
    call.body = upload::received(incoming, encoding, limit).await?;
    // A call that will be refused makes no session.
    if let Some(session) = session.filter(|_| pool.knows(&call.function)) {
        session.enter(pool, &mut call).await?;
    }
    let mut running = whom.call(call)?;
    if pool.on_disconnect() == OnDisconnect::Continue {
        running.continue_when_dropped();
    }
    let name = running.id();
    let id = id.get_or_insert_with(|| HeaderValue::from_str(&name).expect("hex digits"));
    let session = session.and_then(|_| head.headers.get(SESSION));
    match framing {
        None => whole(shared, running, id, session).await,
        Some(framing) => {
            let first = match session {
                None => None,
                // What its session finds is known with the first that comes.
                Some(_) => Some(running.next().await),
            };
            let stream = Streamed { running, first, framing, name: &name };
            Ok(streamed(shared, stream, id, session))
        }
    }
}

async fn whole(
    shared: &Shared,
    running: Running,
    id: &HeaderValue,
    session: Option<&HeaderValue>,
) -> Result<Response<Payload>, Problem> {
    let result = running.result().await;
    let answered = result.map_err(|error| Problem::of_call(&error, shared.tracebacks))?;
    let content_type = match answered.body.is_raw() {
        false => HeaderValue::from_static("application/json"),
        true => HeaderValue::from_str(answered.body.content_type())
            .unwrap_or(HeaderValue::from_static("application/octet-stream")),
    };
    let mut response = Response::new(Payload::whole(answered.body.value()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, content_type);
    headers.insert(REQUEST_ID, id.clone());
    tell(&mut response, answered.worker.as_deref(), session, answered.continuity);
    Ok(response)
}

/// Who served it, and what its session found there.
fn tell(
    response: &mut Response<Payload>,
    worker: Option<&str>,
    session: Option<&HeaderValue>,
    continuity: Option<Continuity>,
) {
    let headers = response.headers_mut();
    if let Some(worker) = worker.and_then(|name| HeaderValue::from_str(name).ok()) {
        headers.insert(WORKER, worker);
    }
    let Some(session) = session else { return };
    headers.insert(SESSION, session.clone());
    if let Some(continuity) = continuity {
        headers.insert(CONTINUITY, HeaderValue::from_static(continuity_name(continuity)));
    }
}

struct Streamed<'a> {
    running: Running,
    /// What has come already.
    first: Option<Item>,
    framing: Framing,
    name: &'a str,
}

fn streamed(
    shared: &Shared,
    stream: Streamed<'_>,
    id: &HeaderValue,
    session: Option<&HeaderValue>,
) -> Response<Payload> {
    let Streamed { running, first, framing, name } = stream;
    let (worker, continuity) = match session {
        None => (None, None),
        Some(_) => (running.worker(), running.continuity()),
    };
    let mut body = StreamBody::new(running, framing, shared.tracebacks, name.to_owned());
    body.begin_with(first);
    let mut response = Response::new(Payload::Stream(Box::new(body)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(framing.content_type()));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REQUEST_ID, id.clone());
    tell(&mut response, worker.as_deref(), session, continuity);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_call_paths_are_calls() {
        assert_eq!(route("/api/pools/py/call/f"), Some(Route::Pool("py", "f")));
        assert_eq!(route("/api/leases/l_1/call/f"), Some(Route::Lease("l_1", "f")));
        for path in [
            "/api/pools/py/call/",
            "/api/pools//call/f",
            "/api/pools/a/b/call/f",
            "/api/workers/a/call/f",
            "/api",
        ] {
            assert_eq!(route(path), None, "{path}");
        }
    }

    #[test]
    fn a_place_is_one_of_those_that_are_held() {
        assert_eq!(place(None, 1).unwrap(), 0);
        assert_eq!(place(Some("place=2"), 3).unwrap(), 2);
        for wrong in ["place=3", "place=", "place=-1", "plaice=0", "place=0&x=1"] {
            assert_eq!(place(Some(wrong), 3).unwrap_err().status, 422, "{wrong}");
        }
    }
}
