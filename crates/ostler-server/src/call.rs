//! `POST /api/pools/{pool}/call/{function}`: the one route that must be fast. Calls on a lease and
//! calls to one worker go the same way. A call without a session or a key neither allocates nor
//! waits for what those need.

use std::sync::Arc;

use axum::http::request::Parts;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use ostler_core::Status;
use ostler_runtime::{Body, Call, Continuity, Item, OnDisconnect, Pool, Running, continuity_name};
use ostler_store::ledger::key::Key;

use crate::idempotency::{Slip, once};
use crate::keys::{fingerprint, header_key, key_of};
use crate::payload::Payload;
use crate::problem::Problem;
use crate::query::invalid;
use crate::segment::decoded;
use crate::server::Shared;
use crate::stream::{Framing, StreamBody};
use crate::tenancy::Tenant;
use crate::terms::{self, Named, REQUEST_ID, SESSION};
use crate::told::Told;
use crate::upload;
use crate::whereabouts::{self, Whereabouts};

const WORKER: HeaderName = HeaderName::from_static("ostler-worker");
const CONTINUITY: HeaderName = HeaderName::from_static("ostler-session-continuity");

/// What a path names, if it names a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route<'p> {
    Pool(&'p str, &'p str),
    Lease(&'p str, &'p str),
    Worker(&'p str, &'p str),
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
        "workers" => Some(Route::Worker(name, function)),
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
    /// That one and no other.
    Worker(Pool, String),
}

impl Whom {
    async fn of(shared: &Shared, route: Route<'_>, query: Option<&str>) -> Result<Self, Problem> {
        let query = query.filter(|query| !query.is_empty());
        match (route, query) {
            (Route::Pool(pool, _), None) => Ok(Whom::Pool(shared.pool(&decoded(pool)?)?)),
            (Route::Worker(worker, _), None) => Whom::worker(shared, &decoded(worker)?).await,
            (Route::Pool(..) | Route::Worker(..), Some(query)) => {
                Err(invalid(format!("a call has no parameters beside its body: `{query}`")))
            }
            (Route::Lease(lease, _), query) => {
                let tenant = shared.leases.find(&decoded(lease)?)?;
                let place = place(query, tenant.workers.len())?;
                Ok(Whom::Place(tenant, place))
            }
        }
    }

    /// One that serves: nobody waits for a worker that may never be resumed.
    async fn worker(shared: &Shared, id: &str) -> Result<Self, Problem> {
        let status = match whereabouts::of(shared, id).await? {
            Whereabouts::Here { pool, name, status: Status::Running, .. } => {
                return Ok(Whom::Worker(pool, name));
            }
            Whereabouts::Here { status, .. } => status,
            Whereabouts::Past(past) => past.status,
        };
        let detail = format!("worker `{id}` is {} and takes no calls", status.name());
        let refused = Problem::new(StatusCode::CONFLICT, "worker_not_serving", detail);
        Err(refused.with("worker_status", status.name()).with("started", false))
    }

    fn pool(&self) -> &Pool {
        match self {
            Whom::Pool(pool) | Whom::Worker(pool, _) => pool,
            Whom::Place(tenant, _) => &tenant.pool,
        }
    }

    fn call(&self, call: Call) -> Result<Running, Problem> {
        match self {
            Whom::Pool(pool) => Ok(pool.call(call)),
            Whom::Place(tenant, place) => tenant.call_on(*place, call),
            Whom::Worker(pool, name) => Ok(pool.call(Call { worker: Some(name.clone()), ..call })),
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
    let whom = Whom::of(shared, route, head.uri.query()).await?;
    let (Route::Pool(_, function) | Route::Lease(_, function) | Route::Worker(_, function)) = route;
    let function = decoded(function)?;
    let encoding = upload::encoding(&head.headers)?;
    let max_body = usize::try_from(whom.pool().max_body()).unwrap_or(usize::MAX);
    let limit = shared.max_body.min(max_body);
    if let Some(key) = header_key(&head.headers)? {
        let key = key_of(&head.method, &head.uri, key.to_owned());
        let body = upload::received(incoming, encoding, limit).await?;
        let call = KeyedCall { whom, function, client, head, body };
        return call.once(shared, key, id.get_or_insert_with(|| shared.next_request_id())).await;
    }
    let session = terms::session(&head.headers)?;
    let mut call = terms::described(&head.headers, client, session)?;
    call.function = function;
    call.body = upload::received(incoming, encoding, limit).await?;
    perform(shared, &whom, call, session, &head.headers, id).await
}

async fn perform(
    shared: &Arc<Shared>,
    whom: &Whom,
    mut call: Call,
    session: Option<Named<'_>>,
    headers: &HeaderMap,
    id: &mut Option<HeaderValue>,
) -> Result<Response<Payload>, Problem> {
    let framing = terms::framing(headers);
    call.stream = framing.is_some();
    let pool = whom.pool();
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
    let session = session.and_then(|_| headers.get(SESSION));
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

/// A call with all that belongs to it, so that it can go on without its client.
struct KeyedCall {
    whom: Whom,
    function: String,
    client: u64,
    head: Parts,
    body: Body,
}

impl KeyedCall {
    /// Under a key: what came of it is kept, and given again to whoever asks again.
    async fn once(
        mut self,
        shared: &Arc<Shared>,
        key: Key,
        id: &HeaderValue,
    ) -> Result<Response<Payload>, Problem> {
        if terms::framing(&self.head.headers).is_some() {
            let detail = "a stream is not kept under a key; ask for the whole answer";
            return Err(invalid(detail));
        }
        let fingerprint = fingerprint(&self.head, &self.body.bytes);
        let request_id = id.to_str().unwrap_or_default().to_owned();
        let slip = Slip { key, fingerprint, stored: false, request_id };
        // The call goes by the name that its answer has.
        self.head.headers.insert(REQUEST_ID, id.clone());
        let serving = Arc::clone(shared);
        let work = async move { Ok(self.told(&serving).await?) };
        let never = |_| async { unreachable!("a call leaves nothing in the ledger") };
        let told = once(shared, slip, work, never).await?.map_err(|refusal| refusal.problem)?;
        let mut response = told.into_response().map(Payload::Router);
        response.headers_mut().insert(REQUEST_ID, id.clone());
        Ok(response)
    }

    async fn told(self, shared: &Arc<Shared>) -> Result<Told, Problem> {
        let headers = &self.head.headers;
        let session = terms::session(headers)?;
        let mut call = terms::described(headers, self.client, session)?;
        (call.function, call.body) = (self.function, self.body);
        let mut id = headers.get(REQUEST_ID).cloned();
        let response = perform(shared, &self.whom, call, session, headers, &mut id).await?;
        Told::of(response.map(axum::body::Body::new)).await
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
        assert_eq!(route("/api/workers/py-1/call/f"), Some(Route::Worker("py-1", "f")));
        for path in [
            "/api/pools/py/call/",
            "/api/pools//call/f",
            "/api/pools/a/b/call/f",
            "/api/sessions/a/call/f",
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
