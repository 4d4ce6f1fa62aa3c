//! Sessions: made, looked at, changed and ended by hand. Calls make and use them, too.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use ostler_store::{NewSession, Patch, ProgramInfo, Session, SessionError};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::answer::{Answer, ok};
use crate::given::{Given, Perhaps, present};
use crate::list::{self, Page};
use crate::problem::Problem;
use crate::query::{Nothing, Params, invalid};
use crate::segment::{Segment, encoded};
use crate::server::Shared;
use crate::span::Span;
use crate::time::rfc3339;
use crate::version::{IfMatch, IfMatchHeader, etag};

/// One session.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionBody {
    #[schema(example = "ada")]
    pub id: String,
    #[schema(value_type = Object)]
    pub metadata: Box<RawValue>,
    /// By name.
    pub programs: Vec<ProgramBody>,
    #[schema(format = DateTime)]
    pub created_at: String,
    #[schema(format = DateTime)]
    pub last_accessed: String,
    /// Seconds without use after which it is gone.
    pub ttl: f64,
    /// When it is gone, used or not.
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// Who served it last.
    pub last_worker: Option<String>,
    /// Rises with each change. The `ETag` says the same.
    pub version: u64,
    /// What it takes of the memory for sessions.
    pub bytes: u64,
    /// The state that its last process handed over waits for the next one.
    pub saved: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProgramBody {
    pub name: String,
    pub content_type: String,
    pub bytes: u64,
    /// The version that the session had when the program was put.
    pub version: u64,
}

impl SessionBody {
    fn of(session: &Session) -> Self {
        SessionBody {
            id: session.id.to_string(),
            metadata: session.metadata.as_ref().to_owned(),
            programs: session.programs.iter().map(ProgramBody::of).collect(),
            created_at: rfc3339(session.created_at),
            last_accessed: rfc3339(session.last_accessed),
            ttl: session.ttl.as_secs_f64(),
            expires_at: session.expires_at.map(rfc3339),
            last_worker: session.last_worker.as_ref().map(ToString::to_string),
            version: session.version,
            bytes: session.bytes,
            saved: session.saved,
        }
    }
}

impl ProgramBody {
    pub fn of(program: &ProgramInfo) -> Self {
        ProgramBody {
            name: program.name.to_string(),
            content_type: program.content_type.to_string(),
            bytes: program.bytes,
            version: program.version,
        }
    }
}

fn shown(status: StatusCode, session: &Session) -> Response {
    let tag = [(header::ETAG, etag(session.version))];
    (tag, Answer(status, SessionBody::of(session))).into_response()
}

/// Without using it.
pub(crate) fn peek(shared: &Shared, id: &str) -> Result<Session, Problem> {
    let found = shared.sessions.peek(id);
    found.ok_or_else(|| Problem::of_session(SessionError::NotFound { id: id.to_owned() }))
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionMaking {
    /// 1 to 255 printable ASCII characters without `/`; made if there is none.
    #[schema(pattern = "^[!-.0-~]{1,255}$")]
    id: Option<String>,
    #[schema(value_type = Option<Object>)]
    metadata: Option<Box<RawValue>>,
    /// Without use it is gone after this time; the server's `ttl` for 0 or none.
    ttl: Option<Span>,
    /// It is gone then, used or not.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
}

/// Makes a session.
#[utoipa::path(post, path = "/api/sessions", tag = "sessions", operation_id = "sessions.create",
    request_body = Option<SessionMaking>,
    responses((status = 201, body = SessionBody,
               headers(("Location" = String), ("ETag" = String)))))]
pub(crate) async fn create(
    State(shared): State<Arc<Shared>>,
    Params(Nothing {}): Params<Nothing>,
    Perhaps(making): Perhaps<SessionMaking>,
) -> Result<Response, Problem> {
    let SessionMaking { id, metadata, ttl, expires_at } = making;
    let new = NewSession { id, metadata, ttl: ttl.map(|Span(ttl)| ttl), expires_at };
    let session = shared.sessions.create(new).await.map_err(Problem::of_session)?;
    let location = format!("/api/sessions/{}", encoded(&session.id));
    let body = shown(StatusCode::CREATED, &session);
    Ok(([(header::LOCATION, location)], body).into_response())
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SessionQuery {
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// All sessions in the order of their ids. Looking at them does not keep them alive.
#[utoipa::path(get, path = "/api/sessions", tag = "sessions", operation_id = "sessions.list",
    params(SessionQuery), responses((status = 200, body = Page<SessionBody>)))]
pub(crate) async fn list(
    State(shared): State<Arc<Shared>>,
    Params(query): Params<SessionQuery>,
) -> Result<Answer<Page<SessionBody>>, Problem> {
    let limit = list::limit(query.limit)?;
    let mut found = shared.sessions.list(query.cursor.as_deref(), limit);
    // The store gives no more than the largest page: whether there is more, the last of them knows.
    let more = match found.last() {
        Some(last) if found.len() == limit => !shared.sessions.list(Some(&last.id), 1).is_empty(),
        _ => false,
    };
    let next_cursor = found.last().filter(|_| more).map(|last| last.id.to_string());
    let items = found.drain(..).map(|session| SessionBody::of(&session)).collect();
    Ok(ok(Page { items, next_cursor }))
}

/// One session. Looking at it keeps it alive.
#[utoipa::path(get, path = "/api/sessions/{id}", tag = "sessions", operation_id = "sessions.get",
    params(("id" = String, Path)),
    responses((status = 200, body = SessionBody, headers(("ETag" = String)))))]
pub(crate) async fn one(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Response, Problem> {
    let session = shared.sessions.get(&id).await.map_err(Problem::of_session)?;
    Ok(shown(StatusCode::OK, &session))
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionPatch {
    /// A merge patch (RFC 7396): members that are null go, others are put.
    #[schema(value_type = Object)]
    #[serde(default, deserialize_with = "present")]
    metadata: Option<Option<Box<RawValue>>>,
    /// Null or 0: the server's.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Span>)]
    ttl: Option<Option<Span>>,
    /// Null: none any more.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Option<Timestamp>>,
    /// The version that was seen, if `If-Match` does not say it.
    version: Option<u64>,
}

impl SessionPatch {
    fn meant(self, version: Option<u64>) -> Result<Patch, Problem> {
        let metadata = match self.metadata {
            None => None,
            Some(Some(patch)) => Some(patch),
            Some(None) => return Err(invalid("`metadata` is null; it must be an object")),
        };
        let ttl = self.ttl.map(|ttl| ttl.map(|Span(ttl)| ttl));
        Ok(Patch { metadata, ttl, expires_at: self.expires_at, version })
    }
}

/// Changes a session. The version that was seen must be named, so that nobody undoes what they
/// have not seen: `If-Match`, or `version` in the body.
#[utoipa::path(patch, path = "/api/sessions/{id}", tag = "sessions", operation_id = "sessions.patch",
    params(("id" = String, Path), IfMatchHeader),
    request_body(content((SessionPatch = "application/merge-patch+json"), (SessionPatch = "application/json"))),
    responses((status = 200, body = SessionBody, headers(("ETag" = String)))))]
pub(crate) async fn patch(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
    if_match: IfMatch,
    Given(patch): Given<SessionPatch>,
) -> Result<Response, Problem> {
    let current = peek(&shared, &id)?.version;
    let version = if_match.required(&id, patch.version, current)?;
    let patch = patch.meant(version)?;
    let session = shared.sessions.patch(&id, patch).await.map_err(Problem::of_session)?;
    Ok(shown(StatusCode::OK, &session))
}

/// Ends a session. It is bound to no process any more; in a pool with `key = "session"` its worker
/// leaves.
#[utoipa::path(delete, path = "/api/sessions/{id}", tag = "sessions", operation_id = "sessions.delete",
    params(("id" = String, Path), IfMatchHeader),
    responses((status = 204, description = "It is gone")))]
pub(crate) async fn delete(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
    if_match: IfMatch,
) -> Result<StatusCode, Problem> {
    let version = if_match.wanted(&id, peek(&shared, &id)?.version)?;
    shared.sessions.delete(&id, version).await.map_err(Problem::of_session)?;
    Ok(StatusCode::NO_CONTENT)
}
