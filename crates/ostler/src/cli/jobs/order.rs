//! A job as the command line describes it, in the words of the API.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use super::super::args::JobArgs;
use super::super::exit::Failure;
use super::super::payload;
use crate::config::units;

/// What is left out is the server's to decide.
#[derive(Debug, Serialize)]
pub(in super::super) struct Order<'a> {
    pool: &'a str,
    function: &'a str,
    /// As it was given: no digit of a number is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<i8>,
    /// In seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_attempts: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    retry_on: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backoff: Option<Backoff>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker_count: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unique_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    concurrency_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    concurrency_limit: Option<u32>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tags: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    children: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_job_id: Option<&'a str>,
}

impl<'a> Order<'a> {
    pub fn of(pool: &'a str, args: &'a JobArgs) -> Result<Self, Failure> {
        let payload = payload::read(&args.payload)?;
        Ok(Self {
            pool,
            function: &args.function,
            payload: raw(&payload),
            task_description: args.description.as_deref(),
            queue: args.queue.as_deref(),
            priority: args.priority,
            timeout: args.timeout.map(|timeout| timeout.as_secs_f64()),
            max_attempts: args.max_attempts,
            retry_on: if args.retry_on_error { vec!["error"] } else { Vec::new() },
            backoff: args.backoff,
            worker_count: args.workers,
            unique_key: args.unique_key.as_deref(),
            concurrency_key: args.concurrency_key.as_deref(),
            concurrency_limit: args.concurrency_limit,
            tags: args.tags.iter().map(|(name, value)| (&**name, &**value)).collect(),
            session: args.session.as_deref(),
            workspace_id: args.workspace.as_deref(),
            children: args.ignore_children.then_some("ignore"),
            run_at: None,
            parent_job_id: None,
        })
    }
}

/// Nothing at all is no argument.
fn raw(payload: &Bytes) -> Option<Box<RawValue>> {
    if payload.is_empty() {
        return None;
    }
    Some(serde_json::from_slice(payload).expect("it was found to be JSON when it was read"))
}

/// How long to wait before the next attempt, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(in super::super) struct Backoff {
    initial: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<f64>,
}

pub(in super::super) fn parse_backoff(text: &str) -> Result<Backoff, String> {
    let time = |text: &str| {
        let time = units::duration(text);
        time.map_err(|error| format!("{error}; write for example 1s..5m"))
    };
    let (initial, max) = match text.split_once("..") {
        Some((initial, max)) => (time(initial)?, Some(time(max)?)),
        None => (time(text)?, None),
    };
    if max.is_some_and(|max| max < initial) {
        return Err("the first wait is longer than the longest".to_owned());
    }
    let seconds = |time: Duration| time.as_secs_f64();
    Ok(Backoff { initial: seconds(initial), max: max.map(seconds) })
}

pub(in super::super) fn parse_tag(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

/// A moment, or a time from now.
pub(in super::super) fn parse_when(text: &str) -> Result<Timestamp, String> {
    if let Ok(moment) = text.parse() {
        return Ok(moment);
    }
    let wrong = || "write it as 2030-01-31T12:00:00Z, or from now on as 10m".to_owned();
    let time = units::duration(text).map_err(|_| wrong())?;
    Timestamp::now().checked_add(time).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backoff_is_one_time_or_two_that_grow() {
        assert_eq!(parse_backoff("200ms"), Ok(Backoff { initial: 0.2, max: None }));
        assert_eq!(parse_backoff("1s..5m"), Ok(Backoff { initial: 1.0, max: Some(300.0) }));
        for wrong in ["", "..", "1s..", "5m..1s", "soon"] {
            assert!(parse_backoff(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_tag_has_a_name_and_perhaps_an_empty_value() {
        assert_eq!(parse_tag("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(parse_tag("a="), Ok(("a".to_owned(), String::new())));
        assert!(parse_tag("a").is_err() && parse_tag("=b").is_err());
    }

    #[test]
    fn when_is_a_moment_or_a_time_from_now() {
        assert_eq!(parse_when("2030-01-31T12:00:00Z"), Ok("2030-01-31T12:00:00Z".parse().unwrap()));
        let before = Timestamp::now();
        let soon = parse_when("10m").expect("a time");
        assert!(soon >= before + Duration::from_secs(600), "{soon}");
        assert!(parse_when("tomorrow").is_err());
    }
}
