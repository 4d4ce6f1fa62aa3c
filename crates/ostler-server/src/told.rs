//! An answer as a whole, so that it can be given again: what is kept of it under a key, and which
//! problems are no answer at all because nothing was done.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use jiff::Timestamp;
use ostler_store::ledger::key::Answer;

use crate::problem::Problem;
use crate::terms::REQUEST_ID;

/// A larger answer is not kept.
pub(crate) const ANSWER_MAX: usize = 1 << 20;
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Told {
    /// What a route answered, once it is known as a whole.
    pub async fn of(response: Response) -> Result<Self, Problem> {
        let (head, body) = response.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await;
        let body = body.map_err(|error| {
            let detail = format!("the answer broke off: {error}");
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
        })?;
        Ok(Told { status: head.status, headers: head.headers, body })
    }

    pub fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }

    /// What is kept of it.
    pub fn kept(&self) -> Answer {
        if self.body.len() > ANSWER_MAX {
            let problem = not_kept(self.status, self.body.len());
            return kept_problem(&problem, "");
        }
        let names = self.headers.iter().filter(|(name, _)| lasts(name));
        let headers = names.filter_map(|(name, value)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        });
        Answer {
            status: self.status.as_u16(),
            headers: headers.collect(),
            body: self.body.clone(),
            at: Timestamp::now(),
        }
    }

    /// The same again.
    pub fn again(answer: Answer) -> Self {
        let headers = answer.headers.iter().filter_map(|(name, value)| {
            Some((name.parse::<HeaderName>().ok()?, HeaderValue::from_str(value).ok()?))
        });
        let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
        Told { status, headers: headers.collect(), body: answer.body }.replayed()
    }

    pub fn replayed(mut self) -> Self {
        self.headers.insert(REPLAYED, HeaderValue::from_static("true"));
        self
    }
}

/// Each request has an id of its own; the length is counted anew.
fn lasts(name: &HeaderName) -> bool {
    *name != REQUEST_ID && *name != header::CONTENT_LENGTH && *name != header::DATE
}

/// A problem that is an answer: something may have run, and asking again must not run it again.
pub(crate) fn kept_problem(problem: &Problem, request_id: &str) -> Answer {
    Answer {
        status: problem.status.as_u16(),
        headers: vec![(header::CONTENT_TYPE.to_string(), "application/problem+json".to_owned())],
        body: problem.to_json(request_id).to_string().into(),
        at: Timestamp::now(),
    }
}

/// Nothing was done, so the key is as good as unused.
pub(crate) fn frees_its_key(problem: &Problem) -> bool {
    match problem.more.get("started") {
        Some(started) => *started == false,
        // A doubtful change has marked its key, if it came about.
        None if problem.code == "store_doubtful" => true,
        None => {
            let status = problem.status.as_u16();
            status < 500 || matches!(status, 501 | 503 | 507)
        }
    }
}

fn not_kept(status: StatusCode, bytes: usize) -> Problem {
    let detail = format!(
        "this was done and answered with {bytes} bytes, of which at most {ANSWER_MAX} are kept \
         under a key"
    );
    Problem::new(StatusCode::CONFLICT, "answer_not_kept", detail)
        .with("answered", status.as_u16())
        .with("bytes", bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(body: impl Into<Bytes>) -> Told {
        let headers = [(header::LOCATION, "/api/jobs/j_1"), (REQUEST_ID, "r1")];
        let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
        Told {
            status: StatusCode::ACCEPTED,
            headers: headers.into_iter().collect(),
            body: body.into(),
        }
    }

    #[test]
    fn an_answer_comes_again_as_it_was_under_an_id_of_its_own() {
        let again = Told::again(told("{}").kept());
        assert_eq!((again.status, &*again.body), (StatusCode::ACCEPTED, &b"{}"[..]));
        assert_eq!(again.headers[header::LOCATION], "/api/jobs/j_1");
        assert_eq!(again.headers[REPLAYED], "true");
        assert!(!again.headers.contains_key(REQUEST_ID));
    }

    #[test]
    fn of_an_answer_that_is_too_large_only_that_is_kept() {
        assert_eq!(told(vec![b' '; ANSWER_MAX]).kept().status, 202);
        let again = Told::again(told(vec![b' '; ANSWER_MAX + 1]).kept());
        assert_eq!(again.status, StatusCode::CONFLICT);
        let problem: serde_json::Value = serde_json::from_slice(&again.body).unwrap();
        assert_eq!(
            (&problem["code"], &problem["answered"]),
            (&"answer_not_kept".into(), &202.into())
        );
    }

    #[test]
    fn what_changed_nothing_frees_its_key() {
        let problem = |status: u16| Problem::new(StatusCode::from_u16(status).unwrap(), "x", "");
        for status in [400, 403, 404, 409, 412, 413, 415, 422, 428, 429, 501, 503, 507] {
            assert!(frees_its_key(&problem(status)), "{status}");
        }
        for status in [500, 502, 504] {
            assert!(!frees_its_key(&problem(status)), "{status}");
        }
        assert!(frees_its_key(&problem(504).with("started", false)), "its deadline met it queued");
        assert!(!frees_its_key(&problem(499).with("started", true)));
        assert!(!frees_its_key(&problem(502).with("started", "unknown")));
    }
}
