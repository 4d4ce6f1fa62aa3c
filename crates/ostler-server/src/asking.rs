//! Who asks for something, in which request, under which key: what is written beside a change, so
//! that it can be found again.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use ostler_store::ledger::key::{Asked, Key};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::problem::Problem;
use crate::query::invalid;

/// Who changed something by this API.
pub(crate) const ACTOR: &str = "api";
const REASON_MAX: usize = 500;

/// A request as the door let it in.
#[derive(Debug, Clone)]
pub(crate) struct Visit {
    pub id: HeaderValue,
    /// Over the unix socket, which only its owner can open.
    pub local: bool,
}

/// The key that a request came under, and the id that its body gave, if it did.
#[derive(Debug, Clone)]
pub(crate) struct Keyed {
    pub key: Key,
    pub request_id: Option<String>,
}

/// Why something is ordered, and under which key.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Because {
    /// Kept with the change.
    #[schema(min_length = 1, max_length = 500, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$")]
    pub reason: Option<String>,
    /// An idempotency key, where there is none in the header.
    #[schema(pattern = "^[ -~]{1,255}$")]
    #[expect(dead_code, reason = "read before the body gets here")]
    request_id: Option<String>,
}

/// What a handler is told of its request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asking {
    request_id: String,
    key: Option<Key>,
    local: bool,
}

impl Asking {
    fn found(extensions: &axum::http::Extensions) -> Self {
        let visit = extensions.get::<Visit>();
        let own = visit.and_then(|visit| visit.id.to_str().ok()).unwrap_or_default();
        let keyed = extensions.get::<Keyed>();
        let given = keyed.and_then(|keyed| keyed.request_id.clone());
        Asking {
            request_id: given.unwrap_or_else(|| own.to_owned()),
            key: keyed.map(|keyed| keyed.key.clone()),
            local: visit.is_some_and(|visit| visit.local),
        }
    }

    /// Beside the change that is asked for.
    pub fn because(self, reason: Option<String>) -> Result<Asked, Problem> {
        if let Some(reason) = &reason {
            check_text("reason", reason, REASON_MAX)?;
        }
        let request_id = Some(self.request_id).filter(|id| !id.is_empty());
        Ok(Asked { actor: ACTOR.to_owned(), request_id, reason, key: self.key })
    }

    pub fn plainly(self) -> Asked {
        self.because(None).expect("there is no reason to find fault with")
    }

    /// What reaches beyond the server is not for everybody who can connect to its port.
    pub fn must_be_local(&self) -> Result<(), Problem> {
        if self.local {
            return Ok(());
        }
        let detail = "this is done over the unix socket only; use the ostler command";
        Err(Problem::new(StatusCode::FORBIDDEN, "socket_only", detail))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Asking {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Asking::found(&parts.extensions))
    }
}

/// Text for people: something, not too much, on one line.
pub(crate) fn check_text(field: &str, text: &str, max: usize) -> Result<(), Problem> {
    let length = text.chars().count();
    if (1..=max).contains(&length) && !text.chars().any(char::is_control) {
        return Ok(());
    }
    Err(invalid(format!("`{field}` must have 1 to {max} characters, none of them a control")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_that_the_body_gave_is_the_one_that_is_remembered() {
        let visit = Visit { id: HeaderValue::from_static("r1"), local: false };
        let key = Key { caller: "c".into(), route: "POST /x".into(), key: "k".into() };
        let mut extensions = axum::http::Extensions::new();
        extensions.insert(visit);
        assert_eq!(Asking::found(&extensions).plainly().request_id.as_deref(), Some("r1"));
        extensions.insert(Keyed { key: key.clone(), request_id: None });
        let asked = Asking::found(&extensions).plainly();
        assert_eq!((asked.request_id.as_deref(), asked.key.as_ref()), (Some("r1"), Some(&key)));
        extensions.insert(Keyed { key, request_id: Some("given".into()) });
        assert_eq!(Asking::found(&extensions).plainly().request_id.as_deref(), Some("given"));
    }

    #[test]
    fn a_reason_is_a_line_of_text() {
        let because = |reason: &str| Asking::default().because(Some(reason.to_owned()));
        assert_eq!(because("too slow").unwrap().reason.as_deref(), Some("too slow"));
        let longest = "ü".repeat(REASON_MAX);
        assert!(because(&longest).is_ok());
        for wrong in ["", "two\nlines", &(longest + "ü")] {
            assert_eq!(because(wrong).unwrap_err().status, 422, "{wrong:?}");
        }
    }

    #[test]
    fn what_is_local_is_refused_over_tcp() {
        let refused = Asking::default().must_be_local().unwrap_err();
        assert_eq!((refused.status.as_u16(), refused.code), (403, "socket_only"));
        assert!(Asking { local: true, ..Asking::default() }.must_be_local().is_ok());
    }
}
