//! Which version of a session is meant: `ETag` on the way out, `If-Match` on the way in.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use utoipa::IntoParams;

use crate::problem::Problem;
use crate::query::invalid;

pub(crate) fn etag(version: u64) -> HeaderValue {
    HeaderValue::from_str(&format!("\"{version}\"")).expect("digits in quotes")
}

/// The header, for the description.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only described")]
pub(crate) struct IfMatchHeader {
    /// The session's `ETag`, or `*`.
    #[param(rename = "If-Match", required = false, pattern = r#"^"[0-9]{1,18}"$|^\*$"#)]
    if_match: String,
}

/// What `If-Match` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IfMatch {
    Absent,
    /// Whatever is there.
    Any,
    /// One of these. What is no version of ours is left out: it matches nothing.
    Versions(Vec<u64>),
}

impl IfMatch {
    fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let mut versions = None::<Vec<u64>>;
        for value in headers.get_all(header::IF_MATCH) {
            let text = value.to_str().map_err(|_| unreadable())?;
            let versions = versions.get_or_insert_default();
            // Empty elements of a list mean nothing.
            for tag in text.split(',').map(str::trim).filter(|tag| !tag.is_empty()) {
                if tag == "*" {
                    return Ok(IfMatch::Any);
                }
                let strong = tag.strip_prefix("W/").unwrap_or(tag);
                let inner = strong.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
                let inner = inner.ok_or_else(unreadable)?;
                let known = inner.parse::<u64>().ok().filter(|_| strong == tag);
                versions.extend(known);
            }
        }
        Ok(versions.map_or(IfMatch::Absent, IfMatch::Versions))
    }

    /// The version to insist on, where `current` is the one that is there; none: any.
    pub fn wanted(&self, id: &str, current: u64) -> Result<Option<u64>, Problem> {
        match self {
            IfMatch::Absent | IfMatch::Any => Ok(None),
            IfMatch::Versions(versions) if versions.contains(&current) => Ok(Some(current)),
            IfMatch::Versions(_) => Err(conflict(id, current)),
        }
    }

    /// The same where a version is a must. It may stand in the body instead.
    pub fn required(
        &self,
        id: &str,
        in_body: Option<u64>,
        current: u64,
    ) -> Result<Option<u64>, Problem> {
        match (self, in_body) {
            (IfMatch::Absent, None) => Err(required(id)),
            (IfMatch::Absent | IfMatch::Any, Some(version)) => Ok(Some(version)),
            (IfMatch::Versions(versions), Some(version)) if !versions.contains(&version) => {
                Err(invalid("`version` and `If-Match` say different things"))
            }
            (IfMatch::Versions(_), Some(version)) => Ok(Some(version)),
            (_, None) => self.wanted(id, current),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        IfMatch::of(&parts.headers)
    }
}

fn unreadable() -> Problem {
    Problem::bad_request("If-Match must be an ETag in its quotes, or `*`")
}

fn required(id: &str) -> Problem {
    let detail = format!(
        "say which version of session `{id}` you have seen: send its ETag as If-Match, or \
         `version` in the body"
    );
    Problem::new(StatusCode::PRECONDITION_REQUIRED, "version_required", detail)
}

fn conflict(id: &str, version: u64) -> Problem {
    let error = ostler_store::SessionError::VersionConflict { id: id.to_owned(), version };
    Problem::of_session(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(values: &[&str]) -> IfMatch {
        let values = values.iter().map(|value| (header::IF_MATCH, value.parse().unwrap()));
        let mut headers = HeaderMap::new();
        for (name, value) in values {
            headers.append(name, value);
        }
        IfMatch::of(&headers).unwrap()
    }

    #[test]
    fn only_strong_tags_of_ours_match() {
        assert_eq!(sent(&[]), IfMatch::Absent);
        assert_eq!(sent(&["*"]), IfMatch::Any);
        assert_eq!(sent(&["\"3\""]), IfMatch::Versions(vec![3]));
        assert_eq!(sent(&["\"3\", \"4\"", "\"5\""]), IfMatch::Versions(vec![3, 4, 5]));
        for foreign in ["W/\"3\"", "\"x\"", "\"\""] {
            assert_eq!(sent(&[foreign]), IfMatch::Versions(vec![]), "{foreign}");
        }
        assert_eq!(sent(&["", "\"3\","]), IfMatch::Versions(vec![3]));
        for nonsense in ["3", "\"", "\"3\" x"] {
            let headers = HeaderMap::from_iter([(header::IF_MATCH, nonsense.parse().unwrap())]);
            assert_eq!(IfMatch::of(&headers).unwrap_err().status, 400, "{nonsense}");
        }
        assert_eq!(sent(&[etag(7).to_str().unwrap()]), IfMatch::Versions(vec![7]));
    }

    #[test]
    fn the_current_version_must_be_among_those_named() {
        assert_eq!(sent(&["\"3\", \"4\""]).wanted("s", 4).unwrap(), Some(4));
        assert_eq!(sent(&["*"]).wanted("s", 4).unwrap(), None);
        let problem = sent(&["\"3\""]).wanted("s", 4).unwrap_err();
        assert_eq!((problem.status.as_u16(), problem.code), (412, "version_conflict"));
        assert_eq!(problem.more["version"], 4);
    }

    #[test]
    fn a_version_in_the_body_does_as_well_and_must_not_contradict() {
        let required = |if_match: IfMatch, body| if_match.required("s", body, 4);
        assert_eq!(required(IfMatch::Absent, None).unwrap_err().status.as_u16(), 428);
        assert_eq!(required(IfMatch::Absent, Some(3)).unwrap(), Some(3), "the store decides");
        assert_eq!(required(sent(&["\"4\""]), Some(4)).unwrap(), Some(4));
        assert_eq!(required(sent(&["\"4\""]), Some(3)).unwrap_err().status.as_u16(), 422);
        assert_eq!(required(sent(&["*"]), None).unwrap(), None);
    }
}
