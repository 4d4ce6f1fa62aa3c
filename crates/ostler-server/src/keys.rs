//! Which key a request has, and what it is known by when it comes again.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, Uri, header};
use ostler_store::ledger::key::Key;
use serde::Deserialize;

use crate::problem::Problem;
use crate::query::invalid;
use crate::terms::SESSION;

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const KEY_MAX: usize = 255;
/// Nobody has a name here yet: all callers are one.
const CALLER: &str = "local";

/// What a path is about, as far as keys go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteKind {
    /// Jobs, queues, schedules, and the status of workers: key and effect are stored together.
    Stored,
    /// Of a worker, but not its status.
    OfAWorker,
    Other,
}

impl RouteKind {
    pub fn of(uri: &Uri) -> Self {
        let path = uri.path();
        let within = |prefix: &str| {
            path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if within("/api/supervisor/workers") && path.ends_with("/recycle") {
            return RouteKind::OfAWorker;
        }
        let stored =
            ["/api/jobs", "/api/queues", "/api/schedules", "/api/workers", "/api/supervisor"];
        if stored.into_iter().any(within) { RouteKind::Stored } else { RouteKind::Other }
    }

    pub fn names_keys_in_its_body(self) -> bool {
        self != RouteKind::Other
    }
}

pub(crate) fn key_of(method: &Method, uri: &Uri, key: String) -> Key {
    Key { caller: CALLER.to_owned(), route: format!("{method} {}", uri.path()), key }
}

/// The key that the header gives, if it gives one.
pub(crate) fn header_key(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let mut given = headers.get_all(KEY).iter();
    let Some(key) = given.next() else { return Ok(None) };
    let text = key.to_str().ok().filter(|text| fits(text) && given.next().is_none());
    text.map(Some).ok_or_else(|| {
        let rule = format!("one key of 1 to {KEY_MAX} printable ASCII characters");
        Problem::bad_request(format!("Idempotency-Key must be {rule}"))
    })
}

fn fits(key: &str) -> bool {
    (1..=KEY_MAX).contains(&key.len()) && key.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// The key that the body gives. What else is wrong with the body is told by whoever reads it.
pub(crate) fn request_id(body: &[u8]) -> Result<Option<String>, Problem> {
    #[derive(Deserialize)]
    struct Named {
        request_id: Option<String>,
    }
    const NAME: &[u8] = b"\"request_id\"";
    let perhaps = body.windows(NAME.len()).any(|window| window == NAME);
    let object = body.trim_ascii_start().starts_with(b"{");
    let named = (perhaps && object).then(|| serde_json::from_slice::<Named>(body).ok()).flatten();
    match named.and_then(|named| named.request_id) {
        Some(id) if !fits(&id) => Err(invalid(format!(
            "`request_id` must have 1 to {KEY_MAX} printable ASCII characters"
        ))),
        id => Ok(id),
    }
}

pub(crate) fn one_key(
    header: Option<String>,
    body: Option<&str>,
) -> Result<Option<String>, Problem> {
    match (header, body) {
        (Some(header), Some(body)) if header != body => {
            Err(Problem::bad_request("Idempotency-Key and `request_id` say different things"))
        }
        (header, body) => Ok(header.or_else(|| body.map(str::to_owned))),
    }
}

/// Of what makes a request this one and no other. It must be the same after a restart.
pub(crate) fn fingerprint(head: &Parts, body: &[u8]) -> u64 {
    let text = |name| head.headers.get(name).map_or(&b""[..], |value| value.as_bytes());
    let (kind, session) = (text(header::CONTENT_TYPE), text(SESSION));
    let query = head.uri.query().unwrap_or_default();
    let parts = [
        head.method.as_str().as_bytes(),
        head.uri.path().as_bytes(),
        query.as_bytes(),
        kind,
        session,
        body,
    ];
    // FNV-1a; each part behind its length, so that none can pass for two.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        for byte in (part.len() as u64).to_le_bytes().iter().chain(part) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use axum::extract::Request;

    use super::*;

    fn head(method: &str, uri: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn keys_are_printable_and_single() {
        let longest = "x".repeat(KEY_MAX);
        let given = |key: &str| head("POST", "/", &[(KEY.as_str(), key)]);
        assert_eq!(header_key(&given("a b").headers).unwrap(), Some("a b"));
        assert!(header_key(&given(&longest).headers).is_ok());
        assert_eq!(header_key(&head("POST", "/", &[]).headers).unwrap(), None);
        for wrong in ["", "é", &format!("{longest}x")] {
            assert_eq!(header_key(&given(wrong).headers).unwrap_err().status, 400, "{wrong}");
        }
        assert!(
            header_key(&head("POST", "/", &[(KEY.as_str(), "a"), (KEY.as_str(), "a")]).headers)
                .is_err()
        );
    }

    #[test]
    fn a_body_may_name_the_key_and_must_not_contradict() {
        assert_eq!(request_id(br#"{"request_id":"a"}"#).unwrap().as_deref(), Some("a"));
        for without in [&b""[..], b"{}", b"[\"request_id\"]", br#"{"x":"request_id"}"#, b"{"] {
            assert_eq!(request_id(without).unwrap(), None);
        }
        assert_eq!(request_id(br#"{"request_id":7}"#).unwrap(), None, "told by its reader");
        assert_eq!(request_id(br#"{"request_id":""}"#).unwrap_err().status, 422);
        let both = |header: &str, body| one_key(Some(header.to_owned()), body);
        assert_eq!(both("a", Some("a")).unwrap().as_deref(), Some("a"));
        assert_eq!(both("a", Some("b")).unwrap_err().status, 400);
        assert_eq!(one_key(None, Some("b")).unwrap().as_deref(), Some("b"));
    }

    #[test]
    fn a_request_is_told_from_every_other_one() {
        let json = [("content-type", "application/json")];
        let one = fingerprint(&head("POST", "/a?b=c", &json), b"d");
        assert_eq!(one, fingerprint(&head("POST", "/a?b=c", &json), b"d"));
        for (head, body) in [
            (head("PUT", "/a?b=c", &json), "d"),
            (head("POST", "/a?b=d", &json), "d"),
            (head("POST", "/a?b=", &json), "cd"),
            (head("POST", "/ab?=c", &json), "d"),
            (head("POST", "/a?b=c", &[]), "d"),
            (head("POST", "/a?b=c", &[json[0], ("ostler-session", "s")]), "d"),
            (head("POST", "/a?b=c", &json), "dd"),
        ] {
            assert_ne!(one, fingerprint(&head, body.as_bytes()), "{head:?} {body}");
        }
        let fixed = fingerprint(&head("POST", "/", &[]), b"");
        assert_eq!(fixed, 0x706e_f9fa_0dac_b847, "it must not change from one version to the next");
    }

    #[test]
    fn jobs_queues_schedules_and_statuses_are_stored_with_their_keys() {
        let kind = |path: &str| RouteKind::of(&path.parse().unwrap());
        for path in
            ["/api/jobs", "/api/jobs/j_1/cancel", "/api/workers/py-1/start", "/api/queues/a/pause"]
        {
            assert_eq!(kind(path), RouteKind::Stored, "{path}");
        }
        assert_eq!(kind("/api/supervisor/workers/py-1/pause"), RouteKind::Stored);
        assert_eq!(kind("/api/supervisor/workers/py-1/recycle"), RouteKind::OfAWorker);
        for path in ["/api/sessions", "/api/jobsters", "/api/pools/jobs/pause"] {
            assert_eq!(kind(path), RouteKind::Other, "{path}");
        }
    }
}
