//! Programs of sessions: named values, JSON or bytes, given back as they were put.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use ostler_store::Content;
use serde::de::IgnoredAny;

use crate::answer::{Answer, ok};
use crate::given::{Raw, is_json};
use crate::list::Page;
use crate::problem::Problem;
use crate::query::{Nothing, Params};
use crate::segment::{Segment, Segments};
use crate::server::Shared;
use crate::sessions::{ProgramBody, peek};
use crate::version::{IfMatch, IfMatchHeader, etag};

const JSON: &str = "application/json";

/// What callers put there must not run in a browser under the name of this server.
pub(crate) const HARMLESS: [(HeaderName, &str); 2] = [
    (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
];

/// The programs of a session, without what is in them.
#[utoipa::path(get, path = "/api/sessions/{id}/programs", tag = "sessions",
    operation_id = "programs.list", params(("id" = String, Path)),
    responses((status = 200, body = Page<ProgramBody>, headers(("ETag" = String)))))]
pub(crate) async fn list(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Response, Problem> {
    let session = shared.sessions.get(&id).await.map_err(Problem::of_session)?;
    let programs = session.programs.iter().map(ProgramBody::of).collect();
    let tag = [(header::ETAG, etag(session.version))];
    Ok((tag, ok(Page::whole(programs))).into_response())
}

/// A program as it was put.
#[utoipa::path(get, path = "/api/sessions/{id}/programs/{name}", tag = "sessions",
    operation_id = "programs.get", params(("id" = String, Path), ("name" = String, Path)),
    responses((status = 200, description = "Under its own content type", content_type = "*/*",
               headers(("ETag" = String)))))]
pub(crate) async fn one(
    State(shared): State<Arc<Shared>>,
    Segments((id, name)): Segments,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Response, Problem> {
    // Looked at before: a tag that is too old refuses a change, one too new would let it through.
    let version = peek(&shared, &id)?.version;
    let program = shared.sessions.get_program(&id, &name).await.map_err(Problem::of_session)?;
    let content = program.content;
    let kind = HeaderValue::from_str(&content.content_type);
    let kind = kind.unwrap_or(HeaderValue::from_static("application/octet-stream"));
    let headers = [(header::CONTENT_TYPE, kind), (header::ETAG, etag(version))];
    Ok((headers, HARMLESS, content.bytes).into_response())
}

/// Puts a program in place of the one of that name.
#[utoipa::path(put, path = "/api/sessions/{id}/programs/{name}", tag = "sessions",
    operation_id = "programs.put",
    params(("id" = String, Path), ("name" = String, Path),
           IfMatchHeader),
    request_body(content((Value = "application/json"), ("application/octet-stream"))),
    responses((status = 200, body = ProgramBody, headers(("ETag" = String)))))]
pub(crate) async fn put(
    State(shared): State<Arc<Shared>>,
    Segments((id, name)): Segments,
    Params(Nothing {}): Params<Nothing>,
    if_match: IfMatch,
    headers: HeaderMap,
    Raw(body): Raw,
) -> Result<Response, Problem> {
    let content = content(&headers, body)?;
    let version = if_match.wanted(&id, peek(&shared, &id)?.version)?;
    let put = shared.sessions.put_program(&id, &name, content, version).await;
    let put = put.map_err(Problem::of_session)?;
    let tag = [(header::ETAG, etag(put.version))];
    Ok((tag, Answer(StatusCode::OK, ProgramBody::of(&put))).into_response())
}

fn content(headers: &HeaderMap, body: Bytes) -> Result<Content, Problem> {
    if !is_json(headers) {
        let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.ok_or_else(|| Problem::bad_request("Content-Type is not plain text"))?;
        return Ok(Content::new(kind, body));
    }
    serde_json::from_slice::<IgnoredAny>(&body).map_err(|error| {
        let detail = format!("the program is not JSON: {error}; give bytes a content type");
        Problem::bad_request(detail)
    })?;
    Ok(Content::new(JSON, body))
}

/// Removes a program.
#[utoipa::path(delete, path = "/api/sessions/{id}/programs/{name}", tag = "sessions",
    operation_id = "programs.delete",
    params(("id" = String, Path), ("name" = String, Path),
           IfMatchHeader),
    responses((status = 204, description = "It is gone", headers(("ETag" = String)))))]
pub(crate) async fn delete(
    State(shared): State<Arc<Shared>>,
    Segments((id, name)): Segments,
    Params(Nothing {}): Params<Nothing>,
    if_match: IfMatch,
) -> Result<Response, Problem> {
    let version = if_match.wanted(&id, peek(&shared, &id)?.version)?;
    let version = shared.sessions.delete_program(&id, &name, version).await;
    let version = version.map_err(Problem::of_session)?;
    Ok((StatusCode::NO_CONTENT, [(header::ETAG, etag(version))]).into_response())
}
