//! `POST /api/pools/{pool}/call/{function}`: the one route that must be fast.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use ostler_runtime::{Body, Call, Encoding, OnDisconnect, Running};

use crate::payload::Payload;
use crate::problem::Problem;
use crate::query::invalid;
use crate::segment::decoded;
use crate::server::Shared;
use crate::stream::{Framing, StreamBody};

const TIMEOUT: HeaderName = HeaderName::from_static("ostler-timeout");
const IDEMPOTENT: HeaderName = HeaderName::from_static("ostler-idempotent");
const PRIORITY: HeaderName = HeaderName::from_static("ostler-priority");
const OWNER: HeaderName = HeaderName::from_static("ostler-owner");
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("ostler-request-id");
const WORKER: HeaderName = HeaderName::from_static("ostler-worker");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// A client that has not sent its body by then is not going to.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);
/// How much of a body that is too large is read before it is refused.
const OVERFLOW_READ: usize = 1 << 20;
const OVERFLOW_TIME: Duration = Duration::from_millis(500);

/// The pool and function that a path names, if it names a call.
pub(crate) fn route(path: &str) -> Option<(&str, &str)> {
    let rest = path.strip_prefix("/api/pools/")?;
    let (pool, function) = rest.split_once("/call/")?;
    (!pool.is_empty() && !pool.contains('/') && !function.is_empty() && !function.contains('/'))
        .then_some((pool, function))
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

async fn answer(
    shared: &Arc<Shared>,
    request: Request<Incoming>,
    client: u64,
    id: &mut Option<HeaderValue>,
) -> Result<Response<Payload>, Problem> {
    if let Some(query) = request.uri().query().filter(|query| !query.is_empty()) {
        return Err(invalid(format!("a call has no parameters beside its body: `{query}`")));
    }
    let (pool, function) = route(request.uri().path()).expect("routed here by its path");
    let (pool, function) = (shared.pool(&decoded(pool)?)?.clone(), decoded(function)?);
    let framing = framing(request.headers());
    let mut call = described(request.headers(), client)?;
    call.function = function;
    call.stream = framing.is_some();
    let encoding = encoding(request.headers())?;
    let limit = shared.max_body.min(usize::try_from(pool.max_body()).unwrap_or(usize::MAX));
    // A body that is there already costs no timer.
    let body = tokio::time::timeout(BODY_TIMEOUT, body(request, encoding, limit)).await;
    call.body = body.unwrap_or_else(|_| Err(too_slow()))?;
    let mut running = pool.call(call);
    if pool.on_disconnect() == OnDisconnect::Continue {
        running.continue_when_dropped();
    }
    let name = running.id();
    let id = id.get_or_insert_with(|| HeaderValue::from_str(&name).expect("hex digits"));
    match framing {
        None => whole(shared, running, id).await,
        Some(framing) => Ok(streamed(shared, running, framing, &name, id)),
    }
}

fn too_slow() -> Problem {
    let detail = format!("the body did not come within {} s", BODY_TIMEOUT.as_secs());
    Problem::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", detail).retryable(None)
}

async fn whole(
    shared: &Shared,
    running: Running,
    id: &HeaderValue,
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
    if let Some(worker) = answered.worker.and_then(|name| HeaderValue::from_str(&name).ok()) {
        headers.insert(WORKER, worker);
    }
    Ok(response)
}

fn streamed(
    shared: &Shared,
    running: Running,
    framing: Framing,
    name: &str,
    id: &HeaderValue,
) -> Response<Payload> {
    let stream = StreamBody::new(running, framing, shared.tracebacks, name.to_owned());
    let mut response = Response::new(Payload::Stream(Box::new(stream)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(framing.content_type()));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REQUEST_ID, id.clone());
    response
}

fn framing(headers: &HeaderMap) -> Option<Framing> {
    let accept = headers.get(header::ACCEPT)?.to_str().ok()?;
    if accept.contains("text/event-stream") {
        Some(Framing::Sse)
    } else if accept.contains("application/x-ndjson") {
        Some(Framing::Ndjson)
    } else {
        None
    }
}

fn described(headers: &HeaderMap, client: u64) -> Result<Call, Problem> {
    let text = |name: &HeaderName| match headers.get(name).map(HeaderValue::to_str) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some(text.trim())),
        Some(Err(_)) => Err(Problem::bad_request(format!("{name} is not plain text"))),
    };
    let timeout = match text(&TIMEOUT)? {
        None => None,
        Some(text) => Some(parse_timeout(text)?),
    };
    let idempotent = match text(&IDEMPOTENT)? {
        None | Some("false" | "0") => false,
        Some("true" | "1") => true,
        Some(other) => {
            let detail = format!("Ostler-Idempotent is `{other}`; use true or false");
            return Err(Problem::bad_request(detail));
        }
    };
    let priority = match text(&PRIORITY)?.map(|text| (text, text.parse::<i8>())) {
        None => 0,
        Some((_, Ok(priority))) if (-100..=100).contains(&priority) => priority,
        Some((text, _)) => {
            let detail = format!("Ostler-Priority is `{text}`; use a number from -100 to 100");
            return Err(Problem::bad_request(detail));
        }
    };
    Ok(Call {
        timeout,
        idempotent,
        priority,
        owner: owner(text(&OWNER)?)?.map_or(client, owner_number),
        request_id: text(&REQUEST_ID)?.map(str::to_owned),
        traceparent: trace_context(headers),
        ..Call::default()
    })
}

fn owner(given: Option<&str>) -> Result<Option<&str>, Problem> {
    let printable = |name: &str| name.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    match given {
        Some(name) if name.is_empty() || name.len() > 128 || !printable(name) => {
            Err(Problem::bad_request("Ostler-Owner must be 1 to 128 printable ASCII characters"))
        }
        given => Ok(given),
    }
}

/// The caller's trace. By the rules of trace contexts, one that cannot be read counts as none.
fn trace_context(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(TRACEPARENT)?.to_str().ok()?.trim();
    let mut parts = text.split('-').map(|part| {
        let hex = part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (part.len(), hex)
    });
    let known = [2, 32, 16, 2].into_iter().all(|length| parts.next() == Some((length, true)));
    known.then(|| text.to_owned())
}

/// Owners are only compared with each other.
pub(crate) fn owner_number(owner: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    owner.hash(&mut hasher);
    hasher.finish()
}

/// Seconds, or a number with its unit.
fn parse_timeout(text: &str) -> Result<Duration, Problem> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let scale = match unit.trim() {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" => 60.0,
        "h" => 3_600.0,
        _ => 0.0,
    };
    let seconds = number.parse::<f64>().ok().map(|number| number * scale);
    match seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
        Some(span) if span > Duration::ZERO && span <= Duration::from_secs(86_400) => Ok(span),
        _ => Err(Problem::bad_request(format!(
            "Ostler-Timeout is `{text}`; use seconds or a unit (30, 1.5s, 200ms, 5m), at most 24h"
        ))),
    }
}

/// What the body is. What curl calls a form is JSON that was sent without a thought.
fn encoding(headers: &HeaderMap) -> Result<Encoding, Problem> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(Encoding::Json) };
    let Ok(text) = value.to_str() else {
        return Err(Problem::bad_request("Content-Type is not plain text"));
    };
    let essence = text.split(';').next().unwrap_or_default().trim();
    let is = |known: &str| essence.eq_ignore_ascii_case(known);
    if is("application/json") || is("application/x-www-form-urlencoded") {
        return Ok(Encoding::Json);
    }
    // What is meant where nothing is said need not be said.
    let content_type = (!is("application/octet-stream")).then(|| text.to_owned());
    Ok(Encoding::Raw { content_type })
}

async fn body(
    request: Request<Incoming>,
    encoding: Encoding,
    limit: usize,
) -> Result<Body, Problem> {
    let mut incoming = request.into_body();
    if incoming.size_hint().lower() > limit as u64 {
        return Err(too_large(limit));
    }
    let mut read = 0;
    let mut gathered = BytesMut::new();
    while let Some(frame) = incoming.frame().await {
        let frame = frame
            .map_err(|error| Problem::bad_request(format!("cannot read the body: {error}")))?;
        let Ok(piece) = frame.into_data() else { continue };
        read += piece.len();
        if read > limit {
            let rest = tokio::time::timeout(OVERFLOW_TIME, read_over(incoming));
            drop(rest.await);
            return Err(too_large(limit));
        }
        // Nearly every body comes in one piece, which is then not copied.
        if incoming.is_end_stream() && gathered.is_empty() {
            return Ok(Body { bytes: piece, encoding });
        }
        gathered.extend_from_slice(&piece);
    }
    Ok(Body { bytes: gathered.freeze(), encoding })
}

/// A client that is still writing does not read: some of the rest is taken off its hands, so that
/// it gets to see the answer.
async fn read_over(mut rest: Incoming) {
    let mut spared = 0;
    while spared < OVERFLOW_READ {
        match rest.frame().await {
            Some(Ok(frame)) => spared += frame.data_ref().map_or(0, Bytes::len),
            Some(Err(_)) | None => break,
        }
    }
}

fn too_large(limit: usize) -> Problem {
    let detail = format!("the body is larger than max_body ({limit} bytes)");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_call_paths_are_calls() {
        assert_eq!(route("/api/pools/py/call/f"), Some(("py", "f")));
        for path in ["/api/pools/py/call/", "/api/pools//call/f", "/api/pools/a/b/call/f", "/api"] {
            assert_eq!(route(path), None, "{path}");
        }
    }

    #[test]
    fn a_trace_that_cannot_be_read_is_none() {
        let read = |text: &str| {
            let headers = HeaderMap::from_iter([(TRACEPARENT, text.parse().unwrap())]);
            trace_context(&headers)
        };
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(read(good).as_deref(), Some(good));
        for bad in ["", "{}", "00-1-2-3", &good.to_uppercase(), &good[1..]] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn timeouts_take_units_and_refuse_nonsense() {
        for (text, ms) in [("2", 2_000), ("1.5s", 1_500), ("200ms", 200), ("5m", 300_000)] {
            assert_eq!(parse_timeout(text).unwrap(), Duration::from_millis(ms), "{text}");
        }
        for text in ["", "0", "-1", "1 day", "1e9", "25h", "nan"] {
            assert!(parse_timeout(text).is_err(), "{text}");
        }
    }
}
