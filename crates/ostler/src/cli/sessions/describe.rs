//! Sessions in words: a table of them, one in full, and what the store says of all.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::super::cells::{age, memory, moment, or_dash, since};
use super::super::table::Table;
use super::{Program, Session};
use crate::config::units::show_duration;
use crate::text::{one_line, printable};

pub(super) fn table(sessions: &[Session], now: Timestamp) -> String {
    let mut table = Table::new([
        "SESSION",
        "AGE",
        "LAST USED",
        "ENDS IN",
        "ITEMS",
        "PROGRAMS",
        "BYTES",
        "VERSION",
        "WORKER",
    ]);
    for session in sessions {
        table.row([
            session.id.clone(),
            or_dash(since(&session.created_at, now)),
            or_dash(since(&session.last_accessed, now).map(|age| format!("{age} ago"))),
            or_dash(ends_in(session, now)),
            session.metadata.len().to_string(),
            session.programs.len().to_string(),
            bytes(session.programs.iter().map(|program| program.bytes).sum()),
            session.version.to_string(),
            or_dash(session.last_worker.clone()),
        ]);
    }
    table.render()
}

/// What is left of it if nobody uses it again.
fn ends_in(session: &Session, now: Timestamp) -> Option<String> {
    let idle = session.ttl.zip(session.last_accessed.parse::<Timestamp>().ok());
    let idle = idle.map(|(ttl, used)| used.duration_since(now).as_secs_f64() + ttl);
    let fixed = session.expires_at.as_deref().and_then(|at| at.parse::<Timestamp>().ok());
    let fixed = fixed.map(|at| at.duration_since(now).as_secs_f64());
    match (idle, fixed) {
        (Some(idle), Some(fixed)) => Some(age(idle.min(fixed))),
        (left, None) | (None, left) => left.map(age),
    }
}

pub(super) fn one(session: &Session, now: Timestamp) -> String {
    let ago = |at: &str| match since(at, now) {
        Some(age) => format!("{}, {age} ago", moment(at)),
        None => moment(at),
    };
    let ttl = session.ttl.and_then(|ttl| Duration::try_from_secs_f64(ttl).ok());
    let lines = [
        format!("session    {}", session.id),
        format!("version    {}", session.version),
        format!("created    {}", ago(&session.created_at)),
        format!("last used  {}", ago(&session.last_accessed)),
        format!("idle ttl   {}", or_dash(ttl.map(show_duration))),
        format!("expires    {}", or_dash(session.expires_at.as_deref().map(moment))),
        format!("worker     {}", or_dash(session.last_worker.clone())),
    ];
    let mut out: String = lines.iter().map(|line| format!("{}\n", one_line(line))).collect();
    out.push_str(&metadata(&session.metadata));
    out.push_str(&programs(&session.programs));
    out
}

fn metadata(metadata: &Map<String, Value>) -> String {
    if metadata.is_empty() {
        return String::new();
    }
    let pretty = format!("{:#}", Value::Object(metadata.clone()));
    format!("\n{}\n", printable(&pretty))
}

fn programs(programs: &[Program]) -> String {
    if programs.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["PROGRAM", "BYTES", "TYPE"]);
    for program in programs {
        table.row([
            program.name.clone(),
            program.bytes.to_string(),
            or_dash(program.content_type.clone()),
        ]);
    }
    format!("\n{}", table.render())
}

/// Every figure by its name: those of a later version are shown as well.
pub(super) fn stats(stats: &Map<String, Value>) -> String {
    let width = stats.keys().map(|key| key.chars().count()).max().unwrap_or_default();
    let mut out = String::new();
    for (key, value) in stats {
        let shown = match (key.starts_with("memory"), value.as_u64()) {
            (true, Some(memory)) => bytes(memory),
            _ => value.to_string(),
        };
        let name = key.replace('_', " ");
        out.push_str(&one_line(&format!("{name:width$}  {shown}")));
        out.push('\n');
    }
    out
}

fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        _ => memory(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn session(value: Value) -> Session {
        serde_json::from_value(value).expect("a session")
    }

    fn now() -> Timestamp {
        "2026-01-02T03:04:05Z".parse().expect("a time")
    }

    #[test]
    fn a_session_ends_at_the_nearer_of_its_two_ends() {
        let ends = |value: Value| ends_in(&session(value), now());
        let used = "2026-01-02T03:03:05Z";
        assert_eq!(ends(json!({ "last_accessed": used, "ttl": 3600 })).as_deref(), Some("59m 0s"));
        let both =
            json!({ "last_accessed": used, "ttl": 3600, "expires_at": "2026-01-02T03:05:05Z" });
        assert_eq!(ends(both).as_deref(), Some("1m 0s"));
        let fixed = json!({ "last_accessed": used, "expires_at": "2026-01-03T03:04:05Z" });
        assert_eq!(ends(fixed).as_deref(), Some("1d 0h"));
        assert_eq!(ends(json!({ "last_accessed": used })), None);
    }

    #[test]
    fn one_session_is_told_in_full_and_drives_no_terminal() {
        let session = session(json!({
            "id": "ann", "version": 3, "ttl": 3600, "expires_at": null, "last_worker": "agent-2",
            "created_at": "2026-01-02T02:04:05Z", "last_accessed": "2026-01-02T03:04:00Z",
            "metadata": { "name": "A\u{9b}nn" },
            "programs": [{ "name": "notes", "bytes": 12, "content_type": "application/json" }],
        }));
        let expected = r#"session    ann
version    3
created    2026-01-02T02:04:05.000Z, 1h 0m ago
last used  2026-01-02T03:04:00.000Z, 5s ago
idle ttl   1h
expires    -
worker     agent-2

{
  "name": "A\u009bnn"
}

PROGRAM  BYTES  TYPE
notes    12     application/json
"#;
        assert_eq!(one(&session, now()), expected);
    }

    #[test]
    fn figures_are_told_by_their_names_whatever_they_are() {
        let figures = json!({ "current": 2, "memory_bytes": 2048, "later": { "x": 1 } });
        let shown = stats(figures.as_object().expect("an object"));
        let expected = "current       2\nlater         {\"x\":1}\nmemory bytes  2 KiB\n";
        assert_eq!(shown, expected);
    }
}
