//! The bodies of answers: one piece, or a stream.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::Response;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use hyper::header::{self, HeaderValue};

use crate::problem::Problem;
use crate::stream::StreamBody;
use crate::terms::REQUEST_ID;

#[derive(Debug)]
pub enum Payload {
    Whole(Option<Bytes>),
    Stream(Box<StreamBody>),
    Router(axum::body::Body),
}

impl Payload {
    pub fn whole(bytes: Bytes) -> Self {
        Payload::Whole(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }
}

impl HttpBody for Payload {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match &mut *self {
            Payload::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Payload::Stream(stream) => {
                stream.poll_write(cx).map(|written| written.map(|bytes| Ok(Frame::data(bytes))))
            }
            Payload::Router(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Payload::Whole(bytes) => bytes.is_none(),
            Payload::Stream(_) => false,
            Payload::Router(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Payload::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Payload::Stream(_) => SizeHint::default(),
            Payload::Router(body) => body.size_hint(),
        }
    }
}

pub fn problem(problem: &Problem, request_id: &HeaderValue) -> Response<Payload> {
    let body = problem.to_json(request_id.to_str().unwrap_or_default()).to_string();
    let mut response = Response::new(Payload::whole(body.into()));
    *response.status_mut() = problem.status;
    let headers = response.headers_mut();
    let content_type = HeaderValue::from_static("application/problem+json");
    headers.insert(header::CONTENT_TYPE, content_type);
    headers.insert(REQUEST_ID, request_id.clone());
    if let Some(after) = problem.retry_after {
        headers.insert(header::RETRY_AFTER, after.as_secs().max(1).into());
    }
    response
}
