//! `Prefer: wait=30`: a client that would rather have the end than the beginning (RFC 7240). What is
//! not understood is not meant for us.

use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use utoipa::IntoParams;

pub(crate) const APPLIED: HeaderName = HeaderName::from_static("preference-applied");
const PREFER: HeaderName = HeaderName::from_static("prefer");
/// Longer than this nobody waits in one request.
const WAIT_MAX: Duration = Duration::from_secs(300);

/// The header, for the description.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only described")]
pub(crate) struct PreferHeader {
    /// `wait=30`: answer when the job has its end, or after so many seconds, at most 300.
    #[param(rename = "Prefer", required = false)]
    prefer: String,
}

/// How long to wait for an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Patience(pub Option<Duration>);

impl Patience {
    fn of(headers: &HeaderMap) -> Self {
        let values = headers.get_all(PREFER).iter().filter_map(|value| value.to_str().ok());
        let wait = values.flat_map(|value| value.split(',')).find_map(seconds);
        Patience(wait.map(|seconds| Duration::from_secs(seconds).min(WAIT_MAX)))
    }

    pub fn applied(self) -> Option<(HeaderName, HeaderValue)> {
        let text = format!("wait={}", self.0?.as_secs());
        Some((APPLIED, HeaderValue::from_str(&text).expect("plain text")))
    }
}

fn seconds(preference: &str) -> Option<u64> {
    // Parameters of a preference stand behind semicolons.
    let (name, value) = preference.split(';').next()?.split_once('=')?;
    let value = value.trim().trim_matches('"');
    if name.trim().eq_ignore_ascii_case("wait") { value.parse().ok() } else { None }
}

impl<S: Send + Sync> FromRequestParts<S> for Patience {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Patience::of(&parts.headers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_is_found_among_other_preferences() {
        let patience = |text: &str| {
            let headers = HeaderMap::from_iter([(PREFER, text.parse().unwrap())]);
            Patience::of(&headers).0.map(|time| time.as_secs())
        };
        assert_eq!(patience("wait=30"), Some(30));
        assert_eq!(patience("respond-async, Wait = \"5\"; x=1"), Some(5));
        assert_eq!(patience("wait=100000"), Some(300));
        for other in ["", "wait", "wait=soon", "wait=-1", "return=minimal"] {
            assert_eq!(patience(other), None, "{other}");
        }
    }
}
