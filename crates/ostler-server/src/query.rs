//! What stands behind the question mark. A parameter that nobody knows is a mistake, and it is
//! told: a filter that is silently ignored shows too much.

use axum::extract::{FromRequestParts, Query};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::problem::Problem;

/// The query, as a type that denies unknown fields.
#[derive(Debug)]
pub(crate) struct Params<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(query)) => Ok(Params(query)),
            Err(rejection) => Err(invalid(rejection.body_text())),
        }
    }
}

/// No parameters at all.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

pub(crate) fn invalid(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "validation", detail)
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    async fn asked<T: DeserializeOwned>(uri: &str) -> Result<T, Problem> {
        let (mut parts, ()) = Request::get(uri).body(()).unwrap().into_parts();
        Params::from_request_parts(&mut parts, &()).await.map(|Params(query)| query)
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Known {
        limit: Option<usize>,
    }

    #[tokio::test]
    async fn a_parameter_that_nobody_knows_is_told() {
        assert_eq!(asked::<Known>("/x?limit=3").await.unwrap().limit, Some(3));
        assert_eq!(asked::<Known>("/x").await.unwrap().limit, None);
        for uri in ["/x?limt=3", "/x?limit=three"] {
            let problem = asked::<Known>(uri).await.unwrap_err();
            assert_eq!(problem.status, StatusCode::UNPROCESSABLE_ENTITY, "{uri}");
            assert!(problem.detail.contains("lim"), "{}", problem.detail);
        }
        assert!(asked::<Nothing>("/x").await.is_ok());
        assert!(asked::<Nothing>("/x?anything").await.is_err());
    }
}
