//! A problem that the server answers with: what it means for the exit code, and how it is shown.

use std::fmt::Write as _;

use hyper::StatusCode;
use serde_json::{Map, Value};

use super::exit::{Exit, Failure};
use crate::text::{one_line, printable};

/// Lines shown of one long member, such as a traceback.
const LINES_MAX: usize = 50;

/// Members that have their own place in the text.
const PLACED: [&str; 6] = ["type", "title", "status", "code", "detail", "instance"];

/// The failure that an answer with this status and body stands for.
pub(super) fn failure(status: StatusCode, body: &[u8]) -> Failure {
    match serde_json::from_slice::<Map<String, Value>>(body) {
        Ok(problem) => of_members(status.as_u16(), &problem),
        Err(_) => Failure::new(exit_of(status.as_u16()), bare(status, body)),
    }
}

/// The same, but what is not there is a failure, not a refusal; `see` lists what is.
pub(super) fn unknown_is_failed(status: StatusCode, body: &[u8], see: &str) -> Failure {
    let failure = failure(status, body);
    match status {
        StatusCode::NOT_FOUND => {
            Failure::failed(format!("{}\n  see those that are: {see}", failure.message()))
        }
        _ => failure,
    }
}

/// A failure of something that has a code, a message and perhaps more: `error` is what a worker or
/// the server said of it.
pub(super) fn told(exit: Exit, title: &str, code: &str, error: Option<&Value>) -> Failure {
    let mut members = error.and_then(Value::as_object).cloned().unwrap_or_default();
    let message = members.remove("message");
    members.insert("title".to_owned(), title.into());
    members.insert("code".to_owned(), code.into());
    members.extend(message.map(|message| ("detail".to_owned(), message)));
    Failure::new(exit, describe(500, &members))
}

/// The failure of a problem that came inside a stream, where it brings its own status.
pub(super) fn failure_in_stream(body: &[u8]) -> Failure {
    let problem: Map<String, Value> = serde_json::from_slice(body).unwrap_or_default();
    let status = problem.get("status").and_then(Value::as_u64);
    let status = status.and_then(|status| u16::try_from(status).ok());
    of_members(status.unwrap_or(500), &problem)
}

fn of_members(status: u16, problem: &Map<String, Value>) -> Failure {
    Failure::new(exit_of(status), describe(status, problem))
}

/// Client errors and 503 say that nothing ran. 499 is a request that was cancelled on its way.
fn exit_of(status: u16) -> Exit {
    match status {
        408 | 504 => Exit::Timeout,
        499 => Exit::Failed,
        400..=499 | 503 => Exit::Refused,
        _ => Exit::Failed,
    }
}

fn describe(status: u16, problem: &Map<String, Value>) -> String {
    let text = |key: &str| problem.get(key).and_then(Value::as_str);
    let title = one_line(text("title").unwrap_or("the server answered with a problem"));
    let code = text("code").map_or_else(|| status.to_string(), one_line);
    let mut out = format!("{title} ({code})");
    if let Some(detail) = text("detail") {
        block(&mut out, "  ", detail.lines());
    }
    let others = problem.iter().filter(|(key, value)| {
        !PLACED.contains(&key.as_str()) && !value.is_null() && **value != Value::Bool(false)
    });
    for (key, value) in others {
        member(&mut out, key, value);
    }
    out
}

fn member(out: &mut String, key: &str, value: &Value) {
    let key = one_line(key);
    match value {
        Value::String(text) if !text.trim_end().contains('\n') => {
            let _ = write!(out, "\n  {key}: {}", one_line(text.trim_end()));
        }
        Value::String(text) => {
            let _ = write!(out, "\n  {key}:");
            block(out, "    ", text.lines());
        }
        Value::Array(items) if items.iter().all(Value::is_string) && !items.is_empty() => {
            let _ = write!(out, "\n  {key}:");
            block(out, "    ", items.iter().filter_map(Value::as_str));
        }
        value => {
            let _ = write!(out, "\n  {key}: {}", one_line(&value.to_string()));
        }
    }
}

/// The last lines matter most: a traceback ends with its error, stderr with the cause of death.
fn block<'a>(out: &mut String, indent: &str, lines: impl Iterator<Item = &'a str>) {
    let lines: Vec<&str> = lines.collect();
    let skipped = lines.len().saturating_sub(LINES_MAX);
    if skipped > 0 {
        let _ = write!(out, "\n{indent}… {skipped} lines before these");
    }
    for line in &lines[skipped..] {
        let _ = write!(out, "\n{indent}{}", printable(line));
    }
}

fn bare(status: StatusCode, body: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(body).chars().take(300).collect();
    let mut out = format!("the server answered {status}");
    if !text.trim().is_empty() {
        let _ = write!(out, ": {}", one_line(text.trim()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_not_a_failure_and_a_deadline_is_neither() {
        for (status, exit) in [
            (404, Exit::Refused),
            (409, Exit::Refused),
            (422, Exit::Refused),
            (429, Exit::Refused),
            (503, Exit::Refused),
            (499, Exit::Failed),
            (500, Exit::Failed),
            (502, Exit::Failed),
            (507, Exit::Failed),
            (504, Exit::Timeout),
        ] {
            assert_eq!(exit_of(status), exit, "{status}");
        }
    }

    #[test]
    fn long_members_keep_their_end() {
        let lines: Vec<String> = (0..60).map(|n| format!("line {n}")).collect();
        let problem = serde_json::json!({ "title": "t", "code": "c", "stderr": lines });
        let shown = describe(500, problem.as_object().expect("an object"));
        assert!(shown.contains("… 10 lines before these"), "{shown}");
        assert!(shown.ends_with("line 59"), "{shown}");
        assert!(!shown.contains("line 9\n"), "{shown}");
    }
}
