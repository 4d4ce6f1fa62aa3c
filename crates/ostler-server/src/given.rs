//! The body of a request to a route, as a type that denies unknown fields. What cannot be read is
//! malformed; what can be read and does not fit is told as such.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, IgnoredAny};

use crate::problem::Problem;
use crate::query::invalid;

/// A client that has not sent its body by then is not going to.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// A body of JSON.
#[derive(Debug)]
pub(crate) struct Given<T>(pub T);

/// A body of JSON, or none.
#[derive(Debug)]
pub(crate) struct Perhaps<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Given<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        parse(&text(request, state).await?).map(Given)
    }
}

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for Perhaps<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let text = text(request, state).await?;
        if text.trim_ascii().is_empty() {
            return Ok(Perhaps(T::default()));
        }
        parse(&text).map(Perhaps)
    }
}

async fn text<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Problem> {
    if !is_json(request.headers()) {
        let detail = "the body must be application/json";
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(Problem::new(status, "unsupported_media_type", detail));
    }
    let Raw(bytes) = Raw::from_request(request, state).await?;
    Ok(bytes)
}

/// A body as it is.
#[derive(Debug)]
pub(crate) struct Raw(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for Raw {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let read = tokio::time::timeout(BODY_TIMEOUT, Bytes::from_request(request, state)).await;
        match read.map_err(|_| too_slow())? {
            Ok(bytes) => Ok(Raw(bytes)),
            Err(rejection) => Err(unread(&rejection)),
        }
    }
}

fn unread(rejection: &BytesRejection) -> Problem {
    match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            let detail = "the body is larger than max_body";
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
        }
        _ => Problem::bad_request(rejection.body_text()),
    }
}

pub(crate) fn too_slow() -> Problem {
    let detail = format!("the body did not come within {} s", BODY_TIMEOUT.as_secs());
    Problem::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", detail).retryable(None)
}

fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, Problem> {
    let text = text.trim_ascii();
    // A list would be taken for the fields in their order.
    if !text.starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(text).is_ok() {
        return Err(invalid("the body must be a JSON object"));
    }
    serde_json::from_slice(text).map_err(|error| {
        let detail = format!("the body does not fit: {error}");
        if error.is_data() { invalid(detail) } else { Problem::bad_request(detail) }
    })
}

/// Tells what is null from what is not there.
pub(crate) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// What kind of body it is, without parameters; none if nothing is said.
pub(crate) fn media_type(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(header::CONTENT_TYPE)?.to_str().unwrap_or_default();
    Some(text.split(';').next().unwrap_or_default().trim())
}

/// JSON, a merge patch, or what is sent without a thought.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    const KNOWN: [&str; 3] =
        ["application/json", "application/merge-patch+json", "application/x-www-form-urlencoded"];
    let given = media_type(headers);
    given.is_none_or(|given| KNOWN.iter().any(|known| known.eq_ignore_ascii_case(given)))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Known {
        size: Option<u32>,
    }

    #[test]
    fn what_cannot_be_read_differs_from_what_does_not_fit() {
        let status = |body: &str| parse::<Known>(body.as_bytes()).unwrap_err().status.as_u16();
        assert_eq!(parse::<Known>(br#"{"size":3}"#).unwrap().size, Some(3));
        assert_eq!([status("{"), status("nonsense"), status(" ")], [400; 3]);
        for body in [r#"{"size":-1}"#, r#"{"seize":1}"#, "[1]", "3", "null"] {
            assert_eq!(status(body), 422, "{body}");
        }
    }

    #[test]
    fn a_body_of_another_kind_is_not_json() {
        let headers =
            |kind: &str| HeaderMap::from_iter([(header::CONTENT_TYPE, kind.parse().unwrap())]);
        assert!(is_json(&HeaderMap::new()));
        assert!(is_json(&headers("Application/JSON; charset=utf-8")));
        assert!(is_json(&headers("application/merge-patch+json")));
        assert!(!is_json(&headers("text/plain")) && !is_json(&headers("application/jsonp")));
    }
}
