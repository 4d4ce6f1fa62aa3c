//! An event in plain words. A kind of a later version is told by its name and its reason.

use std::time::Duration;

use serde_json::Value;

use super::super::cells::span;
use super::Event;

/// Whom it is about: a process, a worker, a pool, or all of them.
pub(super) fn subject(event: &Event) -> String {
    match (&event.worker, event.generation) {
        (Some(worker), Some(generation)) => format!("{worker}#{generation}"),
        (Some(worker), None) => worker.clone(),
        (None, _) if event.pool.is_empty() => "ostler".to_owned(),
        (None, _) => event.pool.clone(),
    }
}

pub(super) fn account(event: &Event) -> String {
    let text = match event.kind.as_str() {
        "worker.spawned" => match reason(event) {
            "restart" => "started again".to_owned(),
            _ => "started".to_owned(),
        },
        "worker.ready" => format!("ready{}", lasting(event, " after ")),
        "worker.busy" => "busy: its load has reached its capacity".to_owned(),
        "worker.idle" => "has room again".to_owned(),
        "worker.degraded" => format!("degraded, gets no work: {}", plain(reason(event))),
        "worker.recovered" => format!("well again: {}", plain(reason(event))),
        "worker.unresponsive" => "silent while it works; left to its deadlines".to_owned(),
        "worker.stopping" => format!("told to end: {}", plain(reason(event))),
        "worker.crashed" => crashed(event),
        "worker.terminated" => terminated(event),
        "worker.transition" => transition(event),
        "worker.restart_delayed" => {
            format!("its next process waits {}", detail_span(event, "delay_seconds"))
        }
        "worker.retiring" => format!("is to go: {}", plain(reason(event))),
        "pool.ready" => "the first worker is ready".to_owned(),
        "pool.all_ready" => "all workers are ready".to_owned(),
        "pool.failed" => format!("failed: {}", plain(reason(event))),
        "pool.recovered" => "well again, it refills".to_owned(),
        "pool.draining" => format!("takes no new requests: {}", plain(reason(event))),
        "pool.stopped" => "stopped, no process is left".to_owned(),
        "pool.paused" => "paused: its workers get nothing new".to_owned(),
        "pool.resumed" => "resumed".to_owned(),
        "pool.drained" => "drained: nothing waits or runs".to_owned(),
        "pool.scaled" => scaled(event),
        "pool.growth_held" => format!("does not grow: {}", plain(reason(event))),
        "pool.reloading" => "tries one worker of a new kind".to_owned(),
        "pool.reloaded" => "the new kind is well; the other workers are replaced".to_owned(),
        "pool.reload_failed" => "the new kind did not become ready; all is as it was".to_owned(),
        "pool.alarm" => format!("found and mended what should not be: {}", found(event)),
        "request.completed" => format!("{} answered{}", call(event), lasting(event, " after ")),
        "request.failed" => format!("{} failed: {}", call(event), plain(reason(event))),
        "request.cancelled" => format!("{} cancelled: {}", call(event), by_whom(event)),
        "request.rejected" => format!("{} refused: {}", call(event), plain(reason(event))),
        "request.retried" => format!("{} is tried again: {}", call(event), plain(reason(event))),
        "request.progress" => format!("{} says: {}", call(event), progress(event)),
        kind if kind.starts_with("session.") => session(event),
        kind if kind.starts_with("job.") => job(event),
        _ => unknown(event),
    };
    match (&event.request_id, event.kind.starts_with("request.")) {
        (Some(id), false) => format!("{text} (request {id})"),
        _ => text,
    }
}

fn reason(event: &Event) -> &str {
    event.reason.as_deref().unwrap_or("no reason given")
}

/// Names of reasons are words with underscores.
fn plain(name: &str) -> String {
    name.replace('_', " ")
}

fn lasting(event: &Event, before: &str) -> String {
    let seconds = event.seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.map_or_else(String::new, |seconds| format!("{before}{}", span(seconds)))
}

fn detail_span(event: &Event, key: &str) -> String {
    let seconds = event.detail.get(key).and_then(Value::as_f64);
    let seconds = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.map_or_else(|| "a while".to_owned(), span)
}

fn crashed(event: &Event) -> String {
    let how = match (event.detail.get("code"), event.detail.get("signal")) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(Value::String(signal))) => format!("{}, {signal}", plain(reason(event))),
        (None, _) => plain(reason(event)),
    };
    let last_words = match event.detail.get("stderr") {
        Some(Value::Array(lines)) => lines.iter().rev().find_map(Value::as_str),
        Some(Value::String(text)) => text.lines().next_back(),
        _ => None,
    };
    let last_words = last_words.filter(|words| !words.trim().is_empty());
    let last_words =
        last_words.map_or_else(String::new, |words| format!("; it last said: {words}"));
    format!("crashed: {how}{last_words}")
}

fn terminated(event: &Event) -> String {
    let planned = event.detail.get("planned").and_then(Value::as_bool).unwrap_or_default();
    let manner = if planned { "as planned" } else { "unplanned" };
    let lived = lasting(event, ", lived ");
    let requests = event.detail.get("requests").and_then(Value::as_u64);
    let requests = requests.map_or_else(String::new, |n| format!(", {n} requests ended"));
    format!("gone {manner}: {}{lived}{requests}", plain(reason(event)))
}

fn transition(event: &Event) -> String {
    let to = event.to.as_deref().unwrap_or("?");
    match &event.from {
        Some(from) => format!("{from} → {to}: {}", plain(reason(event))),
        None => format!("{to}: {}", plain(reason(event))),
    }
}

/// The call that a request is: its function, and its id to find it again.
fn call(event: &Event) -> String {
    let function = event.detail.get("function").and_then(Value::as_str);
    let id = event.request_id.as_deref().unwrap_or("?");
    match function {
        Some(function) => format!("{function} {id}"),
        None => format!("request {id}"),
    }
}

fn by_whom(event: &Event) -> &str {
    match reason(event) {
        "caller" => "its caller asked for it",
        "disconnected" => "its caller went away",
        "order" => "an operator asked for it",
        other => other,
    }
}

fn scaled(event: &Event) -> String {
    let workers =
        |key: &str| event.detail.get(key).map_or_else(|| "?".to_owned(), Value::to_string);
    format!(
        "{}: {} → {} workers",
        plain(reason(event)),
        workers("from_workers"),
        workers("to_workers")
    )
}

fn found(event: &Event) -> &str {
    event.detail.get("found").and_then(Value::as_str).unwrap_or("it is not said what")
}

fn session(event: &Event) -> String {
    let id = event.detail.get("session").and_then(Value::as_str).unwrap_or("?");
    let what = match event.kind.as_str() {
        "session.created" => "begins",
        "session.deleted" => "is deleted",
        "session.expired" => "has expired",
        "session.bound" => "is bound to this process",
        "session.rebound" => return format!("session {id} is here now: {}", plain(reason(event))),
        "session.saved" => "is saved: its process leaves",
        "session.released" => "is let go: its process leaves",
        "session.lost" => "has lost its process, and what that kept",
        "session.unbound" => "is bound no more",
        "session.quota" => return quota(event),
        _ => return unknown(event),
    };
    format!("session {id} {what}")
}

fn job(event: &Event) -> String {
    let text = |key: &str| event.detail.get(key).and_then(Value::as_str);
    let job = match (text("function"), text("job")) {
        (Some(function), Some(id)) => format!("job {id} ({function})"),
        (None, Some(id)) => format!("job {id}"),
        _ => "a job".to_owned(),
    };
    match event.kind.as_str() {
        "job.submitted" => format!("{job} is stored"),
        "job.started" => format!("{job} runs"),
        "job.retried" => format!("{job} is tried again: {}", plain(reason(event))),
        "job.completed" => format!("{job} has completed"),
        "job.failed" => format!("{job} failed: {}", plain(reason(event))),
        "job.canceled" => format!("{job} was cancelled: {}", plain(reason(event))),
        _ => unknown(event),
    }
}

fn quota(event: &Event) -> String {
    let figure = |key: &str| event.detail.get(key).map_or_else(|| "?".to_owned(), Value::to_string);
    format!("{} of {} sessions are there", figure("current"), figure("max"))
}

fn progress(event: &Event) -> String {
    event.detail.get("progress").map_or_else(|| "nothing".to_owned(), Value::to_string)
}

fn unknown(event: &Event) -> String {
    match &event.reason {
        Some(reason) => format!("{}: {}", event.kind, plain(reason)),
        None => event.kind.clone(),
    }
}

#[cfg(test)]
mod tests {
    use ostler_runtime::EventKind;
    use serde_json::json;

    use super::*;

    fn event(value: Value) -> Event {
        serde_json::from_value(value).expect("an event")
    }

    #[test]
    fn every_kind_has_words_of_its_own() {
        for kind in EventKind::ALL {
            let told = account(&Event { kind: kind.name().to_owned(), ..Event::default() });
            assert!(!told.contains(kind.name()), "{} has no words: {told}", kind.name());
        }
    }

    #[test]
    fn a_crash_is_told_with_its_cause_and_its_last_words() {
        let by_code = event(json!({
            "kind": "worker.crashed", "worker": "py-1", "generation": 3, "request_id": "r1",
            "reason": "exit", "detail": {"code": 7, "stderr": ["first", "last words"]},
        }));
        assert_eq!(subject(&by_code), "py-1#3");
        let told = "crashed: exit code 7; it last said: last words (request r1)";
        assert_eq!(account(&by_code), told);
        let by_signal = event(json!({
            "kind": "worker.crashed", "reason": "segfault", "detail": {"signal": "SIGSEGV", "stderr": []},
        }));
        assert_eq!(account(&by_signal), "crashed: segfault, SIGSEGV");
    }

    #[test]
    fn an_end_is_told_with_its_life() {
        let gone = event(json!({
            "kind": "worker.terminated", "reason": "shutdown", "seconds": 12.0,
            "detail": {"planned": true, "requests": 5},
        }));
        assert_eq!(account(&gone), "gone as planned: shutdown, lived 12.0 s, 5 requests ended");
    }

    #[test]
    fn sessions_jobs_and_scaling_are_told_with_their_figures() {
        for (value, who, told) in [
            (
                json!({ "kind": "session.bound", "pool": "py", "worker": "py-1", "generation": 2,
                        "detail": { "session": "ann" } }),
                "py-1#2",
                "session ann is bound to this process",
            ),
            (
                json!({ "kind": "session.quota", "reason": "near_limit",
                        "detail": { "current": 8, "max": 10 } }),
                "ostler",
                "8 of 10 sessions are there",
            ),
            (
                json!({ "kind": "job.retried", "pool": "py", "reason": "crashed",
                        "detail": { "job": "j_1", "function": "f", "attempt": 1 } }),
                "py",
                "job j_1 (f) is tried again: crashed",
            ),
            (
                json!({ "kind": "pool.scaled", "pool": "py", "reason": "grown",
                        "detail": { "from_workers": 1, "to_workers": 3 } }),
                "py",
                "grown: 1 → 3 workers",
            ),
        ] {
            let event = event(value);
            assert_eq!((subject(&event).as_str(), account(&event).as_str()), (who, told));
        }
    }

    #[test]
    fn a_kind_of_a_later_version_is_told_by_its_name() {
        let later = event(json!({ "kind": "job.lost", "pool": "py", "reason": "server_died" }));
        assert_eq!(
            (subject(&later).as_str(), account(&later).as_str()),
            ("py", "job.lost: server died")
        );
    }
}
