//! The body of a call on its way in.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};
use hyper::header::{self, HeaderMap};
use ostler_runtime::{Body, Encoding};
use std::time::Duration;

use crate::given::{BODY_TIMEOUT, too_slow};
use crate::problem::Problem;

/// How much of a body that is too large is read before it is refused.
const OVERFLOW_READ: usize = 1 << 20;
const OVERFLOW_TIME: Duration = Duration::from_millis(500);

/// What the body is. What curl calls a form is JSON that was sent without a thought.
pub(crate) fn encoding(headers: &HeaderMap) -> Result<Encoding, Problem> {
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

/// The whole body, if it comes in time and is not too large.
pub(crate) async fn received(
    incoming: Incoming,
    encoding: Encoding,
    limit: usize,
) -> Result<Body, Problem> {
    // A body that is there already costs no timer.
    let read = tokio::time::timeout(BODY_TIMEOUT, gathered(incoming, limit)).await;
    let bytes = read.unwrap_or_else(|_| Err(too_slow()))?;
    Ok(Body { bytes, encoding })
}

async fn gathered(mut incoming: Incoming, limit: usize) -> Result<Bytes, Problem> {
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
            return Ok(piece);
        }
        gathered.extend_from_slice(&piece);
    }
    Ok(gathered.freeze())
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
