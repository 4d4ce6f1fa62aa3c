//! A change that is asked of the server: with what belongs to it, why, under which key.
//!
//! Separate because the same order given twice must be the same everywhere: the key goes with the
//! request, and a connection that breaks says how to ask again.

use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use serde::Serialize;
use serde_json::{Map, Value};

use super::args::OrderArg;
use super::client::{CONTROL_TIMEOUT, Client};
use super::exit::Failure;
use super::problem;

/// The header that makes an order one, however often it is sent.
const KEY: &str = "Idempotency-Key";

#[derive(Debug)]
pub(super) struct Change<'a> {
    method: Method,
    path: String,
    body: Bytes,
    key: Option<&'a str>,
    patience: Duration,
    /// The command that shows what can be changed, where one thing is named.
    see: Option<&'a str>,
}

impl<'a> Change<'a> {
    pub fn post(path: impl Into<String>) -> Self {
        let (path, patience) = (path.into(), CONTROL_TIMEOUT);
        Self { method: Method::POST, path, body: Bytes::new(), key: None, patience, see: None }
    }

    pub fn delete(path: impl Into<String>) -> Self {
        Self { method: Method::DELETE, ..Self::post(path) }
    }

    /// Of one of those that `see` shows. One that is not there is a failure, not a refusal.
    pub fn one_of(self, see: &'a str) -> Self {
        Self { see: Some(see), ..self }
    }

    pub fn with(self, body: &impl Serialize) -> Self {
        let body = serde_json::to_vec(body).expect("plain data with text keys");
        Self { body: body.into(), ..self }
    }

    /// An order with its reason and its key, and nothing else to say than `more`.
    pub fn ordered(self, order: &'a OrderArg, mut more: Map<String, Value>) -> Self {
        more.extend(order.reason.clone().map(|reason| ("reason".to_owned(), reason.into())));
        let change = self.under(order.key.as_deref());
        match more.is_empty() {
            true => change,
            false => change.with(&more),
        }
    }

    pub fn under(self, key: Option<&'a str>) -> Self {
        Self { key, ..self }
    }

    /// How long it may take until it has come about.
    pub fn within(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The answer, as it came.
    pub async fn ask(self, client: &mut Client) -> Result<Bytes, Failure> {
        let mut request = client.request(self.method, &self.path);
        if let Some(key) = self.key {
            request = request.header(KEY, key);
        }
        let answer = client.ask_by(request, self.body, self.patience).await;
        let (status, body) = answer.map_err(|failure| ask_again(failure, self.key))?;
        match (status.is_success(), self.see) {
            (true, _) => Ok(body),
            (false, Some(see)) => Err(problem::unknown_is_failed(status, &body, see)),
            (false, None) => Err(problem::failure(status, &body)),
        }
    }
}

/// Without an answer it may have come about. With a key that does not matter.
fn ask_again(failure: Failure, key: Option<&str>) -> Failure {
    match key {
        Some(key) => Failure::new(
            failure.exit,
            format!("{}\n  run it again with --key {key}: it is done once", failure.message()),
        ),
        None => failure,
    }
}
