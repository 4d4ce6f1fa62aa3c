//! Sessions where pools meet them: entered by calls, read and written by the workers that serve
//! them, handed over when a worker leaves.

use std::sync::Arc;

use ostler_core::{Affinity, Continuity, Event, ProcessId, Refusal, SessionId};
use ostler_proto::{Body, Encoding};
use ostler_store::{Content, Patch, Saved, Session, SessionNotice, Sessions};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::driver::Driver;
use crate::events::{EventDraft, EventKind, EventLog};
use crate::exchange::Exchange;
use crate::failure::{CallError, Refused};
use crate::link::Link;
use crate::pool::Pool;

/// What a pool's workers belong to, where each has an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyedBy {
    Session,
    Workspace,
}

/// A session that a call belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSession {
    pub id: Arc<str>,
    /// As pools know it.
    pub number: u64,
    pub affinity: Affinity,
}

impl Pool {
    /// Enters a session for calls to this pool: it is made if it is unknown, and used. Without a
    /// mode the pool's own counts.
    ///
    /// # Errors
    /// What the store says; and once, that the process it was bound to went with an earlier server.
    pub async fn enter(
        &self,
        id: &str,
        affinity: Option<Affinity>,
    ) -> Result<CallSession, CallError> {
        let affinity = affinity.unwrap_or_else(|| self.affinity());
        let strict = affinity.strict().then(|| self.name());
        let entered = self.directory().sessions().enter(id, strict).await;
        let entered = entered.map_err(Refused::Session)?;
        if entered.lost {
            return Err(Refused::Pool(Refusal::SessionWorkerLost).into());
        }
        Ok(CallSession { id: entered.id, number: entered.number, affinity })
    }

    /// The worker that a session is bound to in this pool.
    pub fn binding(&self, session: u64) -> Option<Arc<str>> {
        let driver = self.driver();
        let process = driver.look(|core, _| core.binding(SessionId(session)))?;
        Some(driver.launcher.name(process).into())
    }
}

impl Driver {
    pub(crate) fn session_id(&self, session: SessionId) -> Option<Arc<str>> {
        self.directory.sessions().id_of(session.0)
    }

    /// A request of a session goes to a worker: what does it find there? The core does not know what
    /// an earlier server's worker has saved.
    pub(crate) fn meet(&self, exchange: &Exchange, link: &Link, found: Continuity) -> Continuity {
        let Some(details) = exchange.details.as_ref().filter(|of| of.session.is_some()) else {
            return found;
        };
        let (sessions, number) = (self.directory.sessions(), details.session_number);
        sessions.note_worker(number, &link.name);
        let saved = || self.has_saved(number);
        match found {
            // Or it came after its time, and is there all the same.
            Continuity::Bound | Continuity::Restarted if saved() => Continuity::Restored,
            found => found,
        }
    }

    /// Whether there is something that a worker of this pool can take up.
    fn has_saved(&self, session: u64) -> bool {
        self.directory.sessions().has_saved(session, self.launcher.pool()).unwrap_or(false)
    }

    /// A worker handed over what it kept of a session: it has left only when that is on the disk.
    pub(crate) fn keep_state(&self, process: ProcessId, session: SessionId, state: Option<Body>) {
        let me = self.me();
        self.run(async move {
            let saved = match state {
                // It never began with that session: what an earlier one saved is still there.
                None => me.has_saved(session.0),
                Some(state) => {
                    let pool = me.launcher.pool();
                    let kept =
                        me.directory.sessions().save_state(session.0, pool, content(&state)).await;
                    if let Err(error) = &kept {
                        tracing::warn!(%process, "the state of a session cannot be kept: {error}");
                    }
                    kept.is_ok()
                }
            };
            me.report(Event::SessionSaved { process, session, saved });
        });
    }

    /// What happened to a session, as far as it concerns this pool.
    pub(crate) fn on_session_notice(&self, notice: &SessionNotice) {
        let (SessionNotice::Deleted { number, .. } | SessionNotice::Expired { number, .. }) =
            notice
        else {
            return;
        };
        self.report(Event::SessionEnded { session: SessionId(*number) });
        if self.manner().keyed_by == Some(KeyedBy::Session) {
            self.report(Event::KeyEnded { key: ostler_core::KeyId(*number) });
        }
    }
}

/// Publishes what happens to sessions themselves, whatever pool they are used with.
pub fn tell_of_sessions(sessions: &Sessions, log: &Arc<EventLog>) {
    let log = Arc::clone(log);
    let nowhere: Arc<str> = "".into();
    sessions.watch(move |notice| {
        let draft = |kind| EventDraft::new(kind, &nowhere);
        let draft = match notice {
            SessionNotice::Created { id, .. } => {
                draft(EventKind::SessionCreated).detail("session", &**id)
            }
            SessionNotice::Deleted { id, .. } => {
                draft(EventKind::SessionDeleted).detail("session", &**id)
            }
            SessionNotice::Expired { id, .. } => {
                draft(EventKind::SessionExpired).detail("session", &**id)
            }
            SessionNotice::QuotaWarning { current, max } => {
                let draft = draft(EventKind::SessionQuota).reason("near_limit");
                draft.detail("current", *current).detail("max", *max)
            }
            SessionNotice::Updated { .. } | SessionNotice::Swept { .. } => return,
        };
        log.publish(draft);
    });
}

const OPERATIONS: [&str; 6] = [
    "session.get",
    "session.patch",
    "session.take",
    "session.program.get/NAME",
    "session.program.put/NAME",
    "session.program.delete/NAME",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PatchBody {
    patch: Box<RawValue>,
    version: Option<u64>,
}

/// An operation of a worker on the session of the request that it works on, and on no other.
pub(crate) async fn operate(
    sessions: &Sessions,
    pool: &str,
    operation: &str,
    body: &Body,
    parent: Option<&Exchange>,
) -> Result<Body, CallError> {
    let details = parent.and_then(|parent| parent.details.as_ref());
    let session = details.and_then(|details| Some((details.session.as_ref()?, details)));
    let Some((id, details)) = session else { return Err(Refused::SessionRequired.into()) };
    let answered = match operation.split_once('/') {
        None => match operation {
            "session.get" => sessions.get(id).await.map(|session| shown(&session)),
            "session.patch" => {
                let PatchBody { patch, version } = patch_body(body)?;
                let patch = Patch { metadata: Some(patch), version, ..Patch::default() };
                sessions.patch(id, patch).await.map(|session| shown(&session))
            }
            "session.take" => {
                let taken = sessions.take_state(details.session_number, pool).await;
                taken.map(|state| state.map_or_else(|| Body::json("null"), |state| of(&state)))
            }
            _ => return Err(unknown(operation).into()),
        },
        Some(("session.program.get", name)) => {
            sessions.get_program(id, name).await.map(|program| of(&program.content))
        }
        Some(("session.program.put", name)) => {
            let put = sessions.put_program(id, name, content(body), None).await;
            put.map(|info| {
                spelled(&json!({
                    "name": &*info.name, "bytes": info.bytes,
                    "content_type": &*info.content_type, "version": info.version,
                }))
            })
        }
        Some(("session.program.delete", name)) => {
            let deleted = sessions.delete_program(id, name, None).await;
            deleted.map(|_| Body::json("null"))
        }
        Some(_) => return Err(unknown(operation).into()),
    };
    answered.map_err(|error| Refused::Session(error).into())
}

fn unknown(operation: &str) -> Refused {
    let known = OPERATIONS.map(str::to_owned).to_vec();
    Refused::OperationNotFound { operation: operation.to_owned(), known }
}

fn patch_body(body: &Body) -> Result<PatchBody, CallError> {
    serde_json::from_slice(&body.to_json()).map_err(|error| {
        let why = format!("session.patch takes {{patch, version?}}: {error}");
        Refused::Session(ostler_store::SessionError::Invalid(why)).into()
    })
}

fn shown(session: &Session) -> Body {
    let programs = session.programs.iter().map(|program| {
        json!({
            "name": &*program.name, "bytes": program.bytes,
            "content_type": &*program.content_type,
        })
    });
    spelled(&json!({
        "id": &*session.id,
        "metadata": &*session.metadata,
        "programs": programs.collect::<Vec<_>>(),
        "version": session.version,
        "created_at": session.created_at.to_string(),
        "last_accessed": session.last_accessed.to_string(),
        "ttl": session.ttl.as_secs_f64(),
        "expires_at": session.expires_at.map(|at| at.to_string()),
    }))
}

fn spelled(value: &Value) -> Body {
    Body::json(value.to_string())
}

const JSON: &str = "application/json";

fn content(body: &Body) -> Saved {
    match &body.encoding {
        Encoding::Json => Content::new(JSON, body.value()),
        Encoding::Raw { content_type } => {
            let kind = content_type.as_deref().unwrap_or("application/octet-stream");
            Content::new(kind, body.bytes.clone())
        }
    }
}

fn of(content: &Content) -> Body {
    match &*content.content_type {
        JSON => Body::json(content.bytes.clone()),
        kind => Body {
            bytes: content.bytes.clone(),
            encoding: Encoding::Raw { content_type: Some(kind.to_owned()) },
        },
    }
}
