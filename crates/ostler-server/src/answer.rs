//! How routes answer: a typed body as JSON, or a problem.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::problem::Problem;

/// A body as JSON.
#[derive(Debug)]
pub(crate) struct Answer<T>(pub StatusCode, pub T);

pub(crate) fn ok<T>(body: T) -> Answer<T> {
    Answer(StatusCode::OK, body)
}

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.1).expect("bodies are plain data with text keys");
        (self.0, [(header::CONTENT_TYPE, "application/json")], body).into_response()
    }
}

/// Left for the server to spell, which knows the request's id.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}
