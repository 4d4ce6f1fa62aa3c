//! Server-sent events of the routes that are followed: events and logs. A source says what comes
//! next; this writes it, and a comment when there was nothing to say for a while, so that both
//! ends notice when the other is gone.
//!
//! The body is asked only when the client has room. A source keeps a place, not a buffer, and so
//! a client that does not read costs nothing.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::{BufMut, Bytes, BytesMut};
use hyper::body::{Body as HttpBody, Frame};

use crate::problem::Problem;
use crate::query::invalid;

const HEARTBEAT: Duration = Duration::from_secs(15);

/// Where the events of a stream come from.
pub(crate) trait Source: Send + 'static {
    /// Writes what there is, after waiting for something. False: that was the last of it.
    /// Dropped at any `await`, it has lost nothing.
    fn write(&mut self, out: &mut BytesMut) -> impl Future<Output = bool> + Send;
}

/// One event. `data` is JSON, which has no line breaks when it is written compactly.
pub(crate) fn put(out: &mut BytesMut, id: Option<u64>, event: &str, data: &[u8]) {
    if let Some(id) = id {
        out.put_slice(format!("id: {id}\n").as_bytes());
    }
    out.put_slice(b"event: ");
    out.put_slice(event.as_bytes());
    out.put_slice(b"\ndata: ");
    out.put_slice(data);
    out.put_slice(b"\n\n");
}

/// Where a client that comes back has stopped reading.
pub(crate) fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(given) = headers.get("last-event-id") else { return Ok(None) };
    let number = given.to_str().ok().and_then(|text| text.parse().ok());
    number
        .map(Some)
        .ok_or_else(|| invalid("Last-Event-ID is not a number that this stream has given"))
}

pub(crate) fn stream(source: impl Source) -> Response {
    let headers =
        [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    (headers, Body::new(SseBody::of(source, HEARTBEAT))).into_response()
}

type Step<S> = Pin<Box<dyn Future<Output = (Bytes, Option<S>)> + Send>>;

struct SseBody<S> {
    /// `None` after the last event.
    step: Option<Step<S>>,
    heartbeat: Duration,
}

impl<S: Source> SseBody<S> {
    fn of(source: S, heartbeat: Duration) -> Self {
        SseBody { step: Some(Box::pin(step(source, heartbeat))), heartbeat }
    }
}

async fn step<S: Source>(mut source: S, heartbeat: Duration) -> (Bytes, Option<S>) {
    let mut out = BytesMut::new();
    let written = tokio::time::timeout(heartbeat, source.write(&mut out)).await;
    match written {
        Ok(true) => (out.freeze(), Some(source)),
        Ok(false) => (out.freeze(), None),
        Err(_) => (Bytes::from_static(b": heartbeat\n\n"), Some(source)),
    }
}

impl<S: Source> HttpBody for SseBody<S> {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(running) = &mut self.step else { return Poll::Ready(None) };
        let Poll::Ready((bytes, source)) = running.as_mut().poll(cx) else { return Poll::Pending };
        let heartbeat = self.heartbeat;
        self.step = source.map(|source| Box::pin(step(source, heartbeat)) as Step<S>);
        if bytes.is_empty() && self.step.is_none() {
            return Poll::Ready(None);
        }
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    struct Countdown(u64);

    impl Source for Countdown {
        async fn write(&mut self, out: &mut BytesMut) -> bool {
            put(out, Some(self.0), "count", b"{}");
            self.0 -= 1;
            self.0 > 0
        }
    }

    struct Silent;

    impl Source for Silent {
        async fn write(&mut self, _: &mut BytesMut) -> bool {
            std::future::pending().await
        }
    }

    #[tokio::test]
    async fn a_stream_ends_with_its_source() {
        let body = SseBody::of(Countdown(2), HEARTBEAT).collect().await.unwrap().to_bytes();
        assert_eq!(body, "id: 2\nevent: count\ndata: {}\n\nid: 1\nevent: count\ndata: {}\n\n");
    }

    #[tokio::test]
    async fn a_silent_stream_says_that_it_is_there() {
        let mut body = SseBody::of(Silent, Duration::from_millis(1));
        for _ in 0..3 {
            let frame = body.frame().await.unwrap().unwrap();
            assert_eq!(frame.into_data().unwrap(), ": heartbeat\n\n");
        }
    }
}
