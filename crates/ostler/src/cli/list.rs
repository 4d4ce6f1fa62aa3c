//! Questions of the control plane whose answer is a list, read page by page to its end.

use bytes::Bytes;
use hyper::{Method, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::call::path_segment;
use super::client::Client;
use super::exit::Failure;
use super::problem;

/// The most that the server puts on one page.
pub(super) const PAGE_MAX: usize = 1_000;

/// What is asked for: a path and the parameters behind it.
#[derive(Debug, Clone)]
pub(super) struct Query {
    text: String,
    separator: char,
}

impl Query {
    pub fn of(path: &str) -> Self {
        Self { text: path.to_owned(), separator: '?' }
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.text.push(self.separator);
        self.text.push_str(name);
        self.text.push('=');
        self.text.push_str(&path_segment(value));
        self.separator = '&';
        self
    }

    pub fn with_if(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Page {
    pub items: Vec<Value>,
    pub next_cursor: Option<String>,
}

/// One answer, as it came.
pub(super) async fn get(client: &mut Client, path: &str) -> Result<Bytes, Failure> {
    answered(client, path, problem::failure).await
}

async fn answered(
    client: &mut Client,
    path: &str,
    failure: impl Fn(StatusCode, &[u8]) -> Failure,
) -> Result<Bytes, Failure> {
    let (status, body) = client.ask(Method::GET, path, Bytes::new()).await?;
    match status.is_success() {
        true => Ok(body),
        false => Err(failure(status, &body)),
    }
}

/// At most `wanted` items, from as many pages as they fill.
pub(super) async fn read(
    client: &mut Client,
    query: &Query,
    wanted: usize,
) -> Result<Page, Failure> {
    pages(client, query, wanted, problem::failure).await
}

/// The same of one thing among those that `see` shows. One that is not there is a failure.
pub(super) async fn read_one_of(
    client: &mut Client,
    query: &Query,
    wanted: usize,
    see: &str,
) -> Result<Page, Failure> {
    pages(client, query, wanted, |status, body| problem::unknown_is_failed(status, body, see)).await
}

async fn pages(
    client: &mut Client,
    query: &Query,
    wanted: usize,
    failure: impl Fn(StatusCode, &[u8]) -> Failure,
) -> Result<Page, Failure> {
    let mut items = Vec::new();
    let mut next_cursor = None;
    loop {
        let limit = (wanted - items.len()).min(PAGE_MAX).to_string();
        let query = query.clone().with("limit", &limit).with_if("cursor", next_cursor.as_deref());
        let body = answered(client, query.as_str(), &failure).await?;
        let page: Page = understood(serde_json::from_slice(&body))?;
        // A page without items leads nowhere, whatever its cursor says.
        let more = !page.items.is_empty() && page.next_cursor.is_some();
        items.extend(page.items);
        next_cursor = page.next_cursor.filter(|_| more);
        if !more || items.len() >= wanted {
            return Ok(Page { items, next_cursor });
        }
    }
}

/// The items as what they are.
pub(super) fn parse<T: DeserializeOwned>(items: &[Value]) -> Result<Vec<T>, Failure> {
    items.iter().map(|item| understood(T::deserialize(item))).collect()
}

pub(super) fn understood<T>(parsed: serde_json::Result<T>) -> Result<T, Failure> {
    parsed.map_err(|error| {
        Failure::failed(format!(
            "the server's answer is not understood ({error}); \
             is it of another version? compare: ostler --version, ostler status --json"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_spelled_so_that_none_becomes_two() {
        let query = Query::of("/x").with("a", "1&b=2").with_if("c", None).with("d", "é");
        assert_eq!(query.as_str(), "/x?a=1%26b%3D2&d=%C3%A9");
    }
}
