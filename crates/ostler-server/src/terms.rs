//! The terms of a call: what its headers ask for.

use std::time::Duration;

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use ostler_runtime::{Affinity, Call, Pool};

use crate::problem::Problem;
use crate::span::Span;
use crate::stream::Framing;

pub(crate) const SESSION: HeaderName = HeaderName::from_static("ostler-session");
const AFFINITY: HeaderName = HeaderName::from_static("ostler-affinity");
const WORKSPACE: HeaderName = HeaderName::from_static("ostler-workspace");
const TIMEOUT: HeaderName = HeaderName::from_static("ostler-timeout");
const IDEMPOTENT: HeaderName = HeaderName::from_static("ostler-idempotent");
const PRIORITY: HeaderName = HeaderName::from_static("ostler-priority");
const OWNER: HeaderName = HeaderName::from_static("ostler-owner");
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("ostler-request-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

const TIMEOUT_MAX: Duration = Duration::from_secs(86_400);

/// The session that a call names, before it is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Named<'h> {
    id: &'h str,
    affinity: Option<Affinity>,
}

impl Named<'_> {
    /// Puts the call into the session; it is made if there is none of that name.
    pub async fn enter(self, pool: &Pool, call: &mut Call) -> Result<(), Problem> {
        let entered = pool.enter(self.id, self.affinity).await;
        call.session = Some(entered.map_err(|error| Problem::of_call(&error, false))?);
        Ok(())
    }
}

/// How the answer is to come, if not as a whole.
pub(crate) fn framing(headers: &HeaderMap) -> Option<Framing> {
    let accept = headers.get(header::ACCEPT)?.to_str().ok()?;
    if accept.contains("text/event-stream") {
        Some(Framing::Sse)
    } else if accept.contains("application/x-ndjson") {
        Some(Framing::Ndjson)
    } else {
        None
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, Problem> {
    match headers.get(name).map(HeaderValue::to_str) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some(text.trim())),
        Some(Err(_)) => Err(Problem::bad_request(format!("{name} is not plain text"))),
    }
}

/// The call without its function and its body.
pub(crate) fn described(
    headers: &HeaderMap,
    client: u64,
    session: Option<Named<'_>>,
) -> Result<Call, Problem> {
    let text = |name: &HeaderName| text(headers, name);
    let idempotent = match text(&IDEMPOTENT)? {
        None | Some("false" | "0") => false,
        Some("true" | "1") => true,
        Some(other) => {
            let detail = format!("Ostler-Idempotent is `{other}`; use true or false");
            return Err(Problem::bad_request(detail));
        }
    };
    let owner = label("Ostler-Owner", text(&OWNER)?)?.or(session.map(|session| session.id));
    Ok(Call {
        timeout: text(&TIMEOUT)?.map(timeout).transpose()?,
        idempotent,
        priority: text(&PRIORITY)?.map_or(Ok(0), priority)?,
        owner: owner.map_or(client, owner_number),
        request_id: text(&REQUEST_ID)?.map(str::to_owned),
        traceparent: trace_context(headers),
        workspace: label("Ostler-Workspace", text(&WORKSPACE)?)?.map(str::to_owned),
        ..Call::default()
    })
}

/// The session that is named, if one is.
pub(crate) fn session(headers: &HeaderMap) -> Result<Option<Named<'_>>, Problem> {
    let affinity = text(headers, &AFFINITY)?.map(affinity).transpose()?;
    match (text(headers, &SESSION)?, affinity) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(Problem::bad_request("Ostler-Affinity needs Ostler-Session")),
        (Some(id), affinity) => {
            let fits = (1..=255).contains(&id.len())
                && id.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/');
            fits.then_some(Some(Named { id, affinity })).ok_or_else(|| {
                let rule = "1 to 255 printable ASCII characters without spaces and `/`";
                Problem::bad_request(format!("Ostler-Session must be {rule}"))
            })
        }
    }
}

fn affinity(text: &str) -> Result<Affinity, Problem> {
    match text {
        "hint" => Ok(Affinity::Hint),
        "strict_queue" => Ok(Affinity::StrictQueue),
        "strict_fail_fast" => Ok(Affinity::StrictFailFast),
        other => Err(Problem::bad_request(format!(
            "Ostler-Affinity is `{other}`; use hint, strict_queue or strict_fail_fast"
        ))),
    }
}

fn priority(text: &str) -> Result<i8, Problem> {
    match text.parse::<i8>() {
        Ok(priority) if (-100..=100).contains(&priority) => Ok(priority),
        _ => {
            let detail = format!("Ostler-Priority is `{text}`; use a number from -100 to 100");
            Err(Problem::bad_request(detail))
        }
    }
}

fn label<'h>(header: &str, given: Option<&'h str>) -> Result<Option<&'h str>, Problem> {
    let printable = |name: &str| name.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    match given {
        Some(name) if name.is_empty() || name.len() > 128 || !printable(name) => {
            let detail = format!("{header} must be 1 to 128 printable ASCII characters");
            Err(Problem::bad_request(detail))
        }
        given => Ok(given),
    }
}

/// The caller's trace. By the rules of trace contexts, one that cannot be read counts as none.
pub(crate) fn trace_context(headers: &HeaderMap) -> Option<String> {
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

fn timeout(text: &str) -> Result<Duration, Problem> {
    match Span::parse(text) {
        Some(Span(span)) if span > Duration::ZERO && span <= TIMEOUT_MAX => Ok(span),
        _ => Err(Problem::bad_request(format!(
            "Ostler-Timeout is `{text}`; use seconds or a unit (30, 1.5s, 200ms, 5m), at most 24h"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(headers: &[(HeaderName, &str)]) -> HeaderMap {
        headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_trace_that_cannot_be_read_is_none() {
        let read = |text: &str| trace_context(&sent(&[(TRACEPARENT, text)]));
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(read(good).as_deref(), Some(good));
        for bad in ["", "{}", "00-1-2-3", &good.to_uppercase(), &good[1..]] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn timeouts_take_units_and_refuse_nonsense() {
        for (text, ms) in [("2", 2_000), ("1.5s", 1_500), ("200ms", 200), ("5m", 300_000)] {
            assert_eq!(timeout(text).unwrap(), Duration::from_millis(ms), "{text}");
        }
        for text in ["", "0", "-1", "1 day", "1e9", "25h", "nan"] {
            assert!(timeout(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sessions_are_named_by_headers_that_stay_in_one_segment_of_a_path() {
        assert_eq!(session(&HeaderMap::new()).unwrap(), None);
        let named = sent(&[(SESSION, "ada"), (AFFINITY, "strict_queue")]);
        let affinity = Some(Affinity::StrictQueue);
        assert_eq!(session(&named).unwrap(), Some(Named { id: "ada", affinity }));
        let longest = "x".repeat(255);
        assert!(session(&sent(&[(SESSION, &longest)])).is_ok());
        let longer = "x".repeat(256);
        for bad in ["", "a b", "a/b", "é", &longer] {
            assert_eq!(session(&sent(&[(SESSION, bad)])).unwrap_err().status, 400, "{bad}");
        }
        assert!(session(&sent(&[(AFFINITY, "hint")])).is_err(), "there is nothing to insist on");
        assert!(session(&sent(&[(SESSION, "ada"), (AFFINITY, "strict")])).is_err());
    }

    #[test]
    fn fairness_is_owed_to_the_owner_else_the_session_else_the_client() {
        let owner = |headers: &[(HeaderName, &str)]| {
            let headers = sent(headers);
            described(&headers, 7, session(&headers).unwrap()).unwrap().owner
        };
        assert_eq!(owner(&[]), 7);
        assert_eq!(owner(&[(SESSION, "ada")]), owner_number("ada"));
        assert_eq!(owner(&[(SESSION, "ada"), (OWNER, "bob")]), owner_number("bob"));
    }
}
