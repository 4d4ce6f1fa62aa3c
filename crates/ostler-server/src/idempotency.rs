//! One request, one effect: what comes again under the same key is answered as it was the first
//! time.
//!
//! ```text
//!  request ──key?──▶ begin ──Fresh──▶ the handler, with the key beside it ──▶ the answer is kept
//!                      │                                  └──nothing was done──▶ the key is free
//!                      ├── Replay: the answer again · Applied: an answer made of what is there
//!                      └── 409 key_in_flight, outcome_unknown · 422 key_reused
//! ```
//!
//! Once the key is looked at, all of it happens as an errand: a client that goes away changes
//! nothing. Which key a request has is found out in `keys.rs`, which problems free it is told in
//! `told.rs`, and what an answer is made of again in `remade.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::{FromRequest, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use ostler_store::ledger::LedgerError;
use ostler_store::ledger::key::{Answer, Begun, Key};

use crate::asking::{Keyed, Visit};
use crate::given::Raw;
use crate::key_desk::Presence;
use crate::keys::{RouteKind, fingerprint, header_key, key_of, one_key, request_id};
use crate::problem::Problem;
use crate::remade;
use crate::server::Shared;
use crate::told::{Told, frees_its_key, kept_problem};

/// Until whoever is at it may be done.
const SOON: Duration = Duration::from_secs(1);
/// A store that fails may be back after a while.
const TRIES: u32 = 8;
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// What came of keys, counted.
#[derive(Debug, Default)]
pub(crate) struct KeyCounts {
    counts: [AtomicU64; 6],
}

impl KeyCounts {
    pub const NAMES: [&'static str; 6] =
        ["fresh", "replayed", "remade", "in_flight", "reused", "unknown"];

    fn note(&self, begun: &Begun) {
        let place = match begun {
            Begun::Fresh => 0,
            Begun::Replay(_) => 1,
            Begun::Applied { .. } => 2,
            Begun::InFlight => 3,
            Begun::Mismatch => 4,
            Begun::Unknown => 5,
        };
        self.counts[place].fetch_add(1, Ordering::Relaxed);
    }

    pub fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        Self::NAMES.into_iter().zip(counts)
    }
}

/// What a request is known by when it comes again.
#[derive(Debug, Clone)]
pub(crate) struct Slip {
    pub key: Key,
    /// Of what is asked for under the key.
    pub fingerprint: u64,
    /// What the route does is in the ledger.
    pub stored: bool,
    /// Of the request that brings it.
    pub request_id: String,
}

/// What came of a request.
pub(crate) type Outcome = Result<Told, Box<Refusal>>;

/// A problem, with the headers that belong to it.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub problem: Problem,
    headers: HeaderMap,
}

impl From<Problem> for Box<Refusal> {
    fn from(problem: Problem) -> Self {
        Box::new(Refusal { problem, headers: HeaderMap::new() })
    }
}

/// Every route that changes something passes here.
pub(crate) async fn guard(
    State(shared): State<Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    match attend(shared, request, next).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    }
}

async fn attend(shared: Arc<Shared>, request: Request, next: Next) -> Result<Response, Problem> {
    let given = header_key(request.headers())?.map(str::to_owned);
    let route = RouteKind::of(request.uri());
    if given.is_none() && !route.names_keys_in_its_body() {
        return Ok(next.run(request).await);
    }
    let (head, body) = read(request).await?;
    let in_body = if route.names_keys_in_its_body() { request_id(&body)? } else { None };
    let Some(key) = one_key(given, in_body.as_deref())? else {
        return Ok(next.run(Request::from_parts(head, body.into())).await);
    };
    let slip = Slip {
        key: key_of(&head.method, &head.uri, key),
        fingerprint: fingerprint(&head, &body),
        stored: route == RouteKind::Stored,
        request_id: visit_id(&head),
    };
    let (method, path) = (head.method.clone(), head.uri.path().to_owned());
    let mut request = Request::from_parts(head, body.into());
    request.extensions_mut().insert(Keyed { key: slip.key.clone(), request_id: in_body });
    let work = async move { outcome(next.run(request).await).await };
    let again = Arc::clone(&shared);
    let remake = move |resource: String| async move {
        remade::answer(&again, &method, &path, &resource).await
    };
    match once(&shared, slip, work, remake).await? {
        Ok(told) => Ok(told.into_response()),
        Err(refusal) => {
            let mut response = refusal.problem.into_response();
            response.headers_mut().extend(refusal.headers);
            Ok(response)
        }
    }
}

/// Does the work unless it was done, and keeps what came of it.
pub(crate) async fn once<W, R, A>(
    shared: &Arc<Shared>,
    slip: Slip,
    work: W,
    remake: R,
) -> Result<Outcome, Problem>
where
    W: Future<Output = Outcome> + Send + 'static,
    R: FnOnce(String) -> A + Send + 'static,
    A: Future<Output = Result<Told, Problem>> + Send + 'static,
{
    let of = Arc::clone(shared);
    shared.errands.run(async move { under_key(&of, slip, work, remake).await }).await
}

async fn under_key<W, R, A>(shared: &Shared, slip: Slip, work: W, remake: R) -> Outcome
where
    W: Future<Output = Outcome> + Send,
    R: FnOnce(String) -> A + Send,
    A: Future<Output = Result<Told, Problem>> + Send,
{
    let present = shared.key_desk.come(&slip.key);
    let begun = match begin(shared, &slip, &present).await {
        Ok(begun) => begun,
        Err(error) => return Err(Problem::of_ledger(error).into()),
    };
    shared.keys.note(&begun);
    match begun {
        Begun::Fresh => {}
        Begun::Replay(answer) => return Ok(Told::again(answer)),
        Begun::Applied { resource } => return applied(shared, &slip, remake(resource).await).await,
        Begun::InFlight => return Err(in_flight(&slip.key).into()),
        Begun::Mismatch => return Err(reused(&slip.key).into()),
        Begun::Unknown => return Err(unknown(&slip.key).into()),
    }
    let outcome = work.await;
    match &outcome {
        Ok(told) => keep(shared, &slip.key, told.kept()).await,
        Err(refusal) if frees_its_key(&refusal.problem) => {
            if let Err(error) = shared.jobs.ledger().abandon_key(&slip.key).await {
                tracing::warn!(key = slip.key.key, "it is not free yet: {error}");
                present.leave_idle();
            }
        }
        Err(refusal) => {
            keep(shared, &slip.key, kept_problem(&refusal.problem, &slip.request_id)).await;
        }
    }
    outcome
}

/// What the key is, where one that is only said to be in progress is free.
async fn begin(shared: &Shared, slip: &Slip, present: &Presence<'_>) -> Result<Begun, LedgerError> {
    let ledger = shared.jobs.ledger();
    let mut begun = ledger.begin_key(&slip.key, slip.fingerprint, slip.stored).await;
    if matches!(begun, Ok(Begun::InFlight | Begun::Mismatch)) && present.take_idle() {
        begun = match ledger.abandon_key(&slip.key).await {
            Ok(()) => ledger.begin_key(&slip.key, slip.fingerprint, slip.stored).await,
            Err(error) => Err(error),
        };
        if begun.is_err() {
            present.leave_idle();
        }
    } else if matches!(begun, Err(LedgerError::Doubtful { .. })) {
        present.leave_idle();
    }
    begun
}

/// The effect was there before its answer: this one is kept in its stead.
async fn applied(shared: &Shared, slip: &Slip, remade: Result<Told, Problem>) -> Outcome {
    let told = remade?;
    keep(shared, &slip.key, told.kept()).await;
    Ok(told.replayed())
}

/// The answer is known whatever becomes of this; without it the key says that it was applied, or
/// is in doubt.
async fn keep(shared: &Shared, key: &Key, answer: Answer) {
    let mut pause = FIRST_PAUSE;
    for _ in 0..TRIES {
        match shared.jobs.ledger().finish_key(key, answer.clone()).await {
            Ok(()) => return,
            Err(error) => tracing::warn!(key = key.key, "its answer is not kept yet: {error}"),
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
}

/// What a handler answered, as a whole.
async fn outcome(mut response: Response) -> Outcome {
    match response.extensions_mut().remove::<Problem>() {
        Some(problem) => {
            let headers = std::mem::take(response.headers_mut());
            Err(Box::new(Refusal { problem, headers }))
        }
        None => Ok(Told::of(response).await?),
    }
}

async fn read(request: Request) -> Result<(Parts, Bytes), Problem> {
    let (head, body) = request.into_parts();
    let mut reading = Request::new(body);
    // The bound on bodies is among them.
    *reading.extensions_mut() = head.extensions.clone();
    *reading.headers_mut() = head.headers.clone();
    let Raw(bytes) = Raw::from_request(reading, &()).await?;
    Ok((head, bytes))
}

fn visit_id(head: &Parts) -> String {
    let visit = head.extensions.get::<Visit>();
    visit.and_then(|visit| visit.id.to_str().ok()).unwrap_or_default().to_owned()
}

fn in_flight(key: &Key) -> Problem {
    let detail = format!("a request with the key `{}` is under way; ask again", key.key);
    Problem::new(StatusCode::CONFLICT, "key_in_flight", detail).retryable(Some(SOON))
}

fn reused(key: &Key) -> Problem {
    let detail = format!("the key `{}` was used for another request; use a new one", key.key);
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "key_reused", detail)
}

fn unknown(key: &Key) -> Problem {
    let detail = format!(
        "the server ended while it worked on `{}`, and what came of it is not known; look, and \
         use a new key",
        key.key
    );
    Problem::new(StatusCode::CONFLICT, "outcome_unknown", detail)
}
