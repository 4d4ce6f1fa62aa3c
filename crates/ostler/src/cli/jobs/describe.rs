//! Jobs in words: a table of them, and one in full.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::super::cells::{between, moment, or_dash, since, span};
use super::super::table::Table;
use super::progress::Progress;
use super::story::plain;
use super::{Attempt, Job, Step};
use crate::config::units::show_duration;
use crate::text::{one_line, printable};

/// Characters shown of what a job says in a cell.
const CELL_MAX: usize = 40;

/// Lines shown of a payload or a result. `--json` has all of it.
const LINES_MAX: usize = 40;

pub(super) fn table(jobs: &[Job], now: Timestamp) -> String {
    let mut table =
        Table::new(["JOB", "STATUS", "POOL", "FUNCTION", "QUEUE", "TRY", "AGE", "TOOK", "SAYS"]);
    for job in jobs {
        table.row([
            job.id.clone(),
            job.status.clone(),
            job.pool.clone(),
            job.function.clone(),
            job.queue.clone(),
            format!("{}/{}", job.attempts, job.max_attempts),
            or_dash(since(&job.created_at, now)),
            or_dash(job.took(now).map(span)),
            or_dash(Some(short(&job.says()))),
        ]);
    }
    table.render()
}

fn short(text: &str) -> String {
    match text.chars().count() <= CELL_MAX {
        true => text.to_owned(),
        false => text.chars().take(CELL_MAX - 1).chain(['…']).collect(),
    }
}

impl Job {
    /// From its first start.
    fn took(&self, now: Timestamp) -> Option<Duration> {
        let ended = self.completed_at.as_deref().and_then(|at| at.parse().ok());
        Some(between(self.started_at.as_deref()?.parse().ok()?, ended.unwrap_or(now)))
    }

    /// What matters most about it just then.
    fn says(&self) -> String {
        if let Some(reason) = &self.reason {
            return plain(reason);
        }
        if self.cancel.is_some() {
            return "to be cancelled".to_owned();
        }
        if self.waiting {
            return match self.open_children {
                1 => "waits for 1 child".to_owned(),
                n => format!("waits for {n} children"),
            };
        }
        let progress = self.progress.as_ref().filter(|_| self.completed_at.is_none());
        progress.map(|progress| Progress::of(progress).words()).unwrap_or_default()
    }
}

/// What became of the order to end it.
pub(super) fn cancelled(job: &Job) -> String {
    match job.status.as_str() {
        "CANCELED" => format!("{}: CANCELED", job.id),
        status => format!("{}: {status}; it is CANCELED once its work has let go", job.id),
    }
}

pub(super) fn one(job: &Job, attempts: &[Attempt], now: Timestamp) -> String {
    let mut out = String::new();
    for (name, value) in facts(job, now) {
        out.push_str(&one_line(&format!("{name:11} {value}")));
        out.push('\n');
    }
    block(&mut out, "payload", job.payload.as_ref());
    block(&mut out, "result", job.result.as_ref());
    block(&mut out, "error", job.error.as_ref());
    if !attempts.is_empty() {
        out.push('\n');
        out.push_str(&attempts_table(attempts, now));
    }
    out.push('\n');
    out.push_str(&steps(&job.state_history));
    out
}

fn facts(job: &Job, now: Timestamp) -> Vec<(&'static str, String)> {
    let ago = |at: &str| match since(at, now) {
        Some(age) => format!("{}, {age} ago", moment(at)),
        None => moment(at),
    };
    let says = job.says();
    let status =
        if says.is_empty() { job.status.clone() } else { format!("{} ({says})", job.status) };
    let tags: Vec<String> = job.tags.iter().map(|(name, value)| tag(name, value)).collect();
    let timeout = job.timeout.and_then(|timeout| Duration::try_from_secs_f64(timeout).ok());
    let concurrency = job
        .concurrency_key
        .as_ref()
        .map(|key| format!("{key}, {} at a time", job.concurrency_limit));
    let workers = (job.worker_count > 1).then(|| job.worker_count.to_string());
    let not_before = job.run_at.as_deref().filter(|at| **at != job.created_at);
    let dropped = (job.events_dropped > 0).then(|| job.events_dropped.to_string());
    let cancel = job.cancel.as_ref().map(|cancel| {
        format!("asked for by {} at {}: {}", cancel.by, moment(&cancel.at), plain(&cancel.reason))
    });
    let facts = [
        ("job", Some(job.id.clone())),
        ("status", Some(status)),
        ("function", Some(format!("{}.{}", job.pool, job.function))),
        ("about", job.task_description.clone()),
        ("queue", Some(format!("{}, priority {}", job.queue, job.priority))),
        ("workspace", Some(job.workspace_id.clone()).filter(|name| name != "default")),
        ("session", job.session.clone()),
        ("workers", workers),
        ("attempts", Some(format!("{} of {}", job.attempts, job.max_attempts))),
        ("timeout", timeout.map(show_duration)),
        ("unique key", job.unique_key.clone()),
        ("concurrency", concurrency),
        ("tags", Some(tags.join(", ")).filter(|tags| !tags.is_empty())),
        ("parent", job.parent_job_id.as_ref().map(|id| format!("{id}, depth {}", job.depth))),
        ("retry of", job.retry_of.clone()),
        ("schedule", job.schedule_id.clone()),
        ("cancel", cancel),
        ("submitted", Some(ago(&job.created_at))),
        ("not before", not_before.map(moment)),
        ("started", job.started_at.as_deref().map(ago)),
        ("ended", job.completed_at.as_deref().map(ago)),
        ("took", job.took(now).map(span)),
        ("not kept", dropped.map(|n| format!("{n} messages and log lines"))),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn tag(name: &str, value: &Value) -> String {
    match value {
        Value::String(value) => format!("{name}={value}"),
        value => format!("{name}={value}"),
    }
}

fn block(out: &mut String, title: &str, value: Option<&Value>) {
    let Some(value) = value.filter(|value| !value.is_null()) else { return };
    let pretty = format!("{value:#}");
    let lines: Vec<&str> = pretty.lines().collect();
    out.push_str(&format!("\n{title}\n"));
    for line in lines.iter().take(LINES_MAX) {
        out.push_str(&format!("  {}\n", printable(line)));
    }
    if lines.len() > LINES_MAX {
        out.push_str(&format!("  … {} lines more; --json shows them\n", lines.len() - LINES_MAX));
    }
}

fn attempts_table(attempts: &[Attempt], now: Timestamp) -> String {
    let mut table = Table::new(["TRY", "BEGAN", "TOOK", "OUTCOME", "WORKERS", "ERROR"]);
    for attempt in attempts {
        let began = attempt.started_at.parse::<Timestamp>().ok();
        let ended = attempt.ended_at.as_deref().and_then(|at| at.parse().ok());
        let message = attempt.error.as_ref().and_then(|error| error["message"].as_str());
        table.row([
            attempt.attempt.to_string(),
            moment(&attempt.started_at),
            or_dash(began.map(|began| span(between(began, ended.unwrap_or(now))))),
            attempt.outcome.as_deref().map_or_else(|| "runs".to_owned(), plain),
            or_dash(Some(attempt.workers.join(", "))),
            or_dash(message.map(|message| short(message.lines().next().unwrap_or_default()))),
        ]);
    }
    table.render()
}

/// The trail of a job or a worker.
pub(in super::super) fn steps(steps: &[Step]) -> String {
    let mut table = Table::new(["#", "AT", "FROM", "TO", "TRIGGER", "REASON", "BY", "REQUEST"]);
    for step in steps {
        table.row([
            or_dash(step.seq.map(|seq| seq.to_string())),
            moment(&step.at),
            or_dash(step.from.clone()),
            step.to.clone(),
            or_dash(step.trigger.clone()),
            or_dash(step.reason.clone()),
            or_dash(step.actor.clone()),
            or_dash(step.request_id.clone()),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn job(value: Value) -> Job {
        serde_json::from_value(value).expect("a job")
    }

    fn now() -> Timestamp {
        "2026-01-02T03:04:05Z".parse().expect("a time")
    }

    #[test]
    fn a_job_says_what_matters_most_just_then() {
        let cancel = json!({ "at": "", "reason": "cancelled", "by": "api" });
        for (value, says) in [
            (json!({ "progress": 0.5 }), "50 %"),
            (
                json!({ "progress": 0.5, "waiting": true, "open_children": 2 }),
                "waits for 2 children",
            ),
            (json!({ "waiting": true, "open_children": 1, "cancel": cancel }), "to be cancelled"),
            (
                json!({ "progress": 1, "reason": "worker_crashed", "cancel": cancel }),
                "worker crashed",
            ),
            (json!({ "progress": 1, "completed_at": "2026-01-02T03:04:05Z" }), ""),
        ] {
            assert_eq!(job(value.clone()).says(), says, "{value}");
        }
    }

    #[test]
    fn one_job_is_told_in_full_and_drives_no_terminal() {
        let job = job(json!({
            "id": "j_1", "status": "FAILED", "pool": "py", "function": "f", "queue": "default",
            "workspace_id": "default", "priority": 0, "attempts": 2, "max_attempts": 3,
            "worker_count": 1, "tags": { "a": "b" }, "payload": { "x": "\u{9b}" }, "timeout": 3600,
            "reason": "application_error", "error": { "message": "no" },
            "created_at": "2026-01-02T02:04:05Z", "run_at": "2026-01-02T02:04:05Z",
            "started_at": "2026-01-02T03:04:00Z", "completed_at": "2026-01-02T03:04:01Z",
            "state_history": [{
                "seq": 1, "from": null, "to": "SUBMITTED", "trigger": "submit", "reason": null,
                "actor": "api", "request_id": "r", "at": "2026-01-02T02:04:05Z",
            }],
        }));
        let attempt = json!({
            "attempt": 1, "workers": ["py-1"], "started_at": "2026-01-02T03:04:00Z",
            "ended_at": "2026-01-02T03:04:01Z", "outcome": "error", "error": { "message": "no\nx" },
        });
        let attempt = serde_json::from_value(attempt).expect("an attempt");
        let expected = r#"job         j_1
status      FAILED (application error)
function    py.f
queue       default, priority 0
attempts    2 of 3
timeout     1h
tags        a=b
submitted   2026-01-02T02:04:05.000Z, 1h 0m ago
started     2026-01-02T03:04:00.000Z, 5s ago
ended       2026-01-02T03:04:01.000Z, 4s ago
took        1.00 s

payload
  {
    "x": "\u009b"
  }

error
  {
    "message": "no"
  }

TRY  BEGAN                     TOOK    OUTCOME  WORKERS  ERROR
1    2026-01-02T03:04:00.000Z  1.00 s  error    py-1     no

#  AT                        FROM  TO         TRIGGER  REASON  BY   REQUEST
1  2026-01-02T02:04:05.000Z  -     SUBMITTED  submit   -       api  r
"#;
        assert_eq!(one(&job, &[attempt], now()), expected);
    }

    #[test]
    fn a_long_value_is_cut_and_says_so() {
        let mut out = String::new();
        block(&mut out, "result", Some(&json!((0..100).collect::<Vec<_>>())));
        assert!(out.ends_with("  … 62 lines more; --json shows them\n"), "{out}");
        assert_eq!(short(&"x".repeat(41)).chars().count(), CELL_MAX);
    }
}
