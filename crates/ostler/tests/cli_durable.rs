//! `ostler jobs`, `schedules`, `audit`, `store` and the orders of `ostler workers`, as a user runs
//! them: against a scripted server, and against the built one.

#[path = "cli_durable/follow.rs"]
mod follow;
#[allow(dead_code, reason = "the rig of other tests, of which this needs a part")]
#[path = "serve/http.rs"]
mod http;
#[path = "cli_durable/jobs.rs"]
mod jobs;
#[path = "cli_durable/live.rs"]
mod live;
#[path = "cli_durable/schedules.rs"]
mod schedules;
#[allow(dead_code, reason = "the rig of other tests, of which this needs a part")]
#[path = "serve/server.rs"]
mod server;
#[path = "cli_durable/store.rs"]
mod store;
#[path = "cli_durable/trail.rs"]
mod trail;
#[path = "cli_durable/workers.rs"]
mod workers;

mod support;

use support::Ran;

fn ok(out: &str) -> Ran {
    Ran { code: 0, out: out.to_owned(), err: String::new() }
}

#[test]
fn a_server_that_is_not_there_is_3_for_every_command() {
    let nowhere = tempfile::tempdir().expect("a directory");
    std::fs::write(nowhere.path().join("ostler.toml"), "").expect("written");
    for args in [
        &["jobs"][..],
        &["jobs", "submit", "p", "f"],
        &["jobs", "submit", "p", "f", "--wait"],
        &["jobs", "show", "j_1"],
        &["jobs", "follow", "j_1"],
        &["jobs", "cancel", "j_1"],
        &["jobs", "retry", "j_1"],
        &["jobs", "pause"],
        &["jobs", "resume", "q"],
        &["jobs", "queues"],
        &["workers", "create"],
        &["workers", "start", "w"],
        &["workers", "pause", "w", "--freeze"],
        &["workers", "terminate", "w"],
        &["workers", "call", "w", "f"],
        &["schedules"],
        &["schedules", "add", "n", "@daily", "p", "f"],
        &["schedules", "delete", "n"],
        &["audit", "worker", "w"],
        &["audit", "verify"],
    ] {
        let ran = support::run_in(nowhere.path(), args, "");
        assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{args:?}: {ran:?}");
        assert!(ran.err.contains("start one with: ostler serve"), "{args:?}: {ran:?}");
    }
}

#[test]
fn what_cannot_be_meant_is_refused_before_anything_is_asked() {
    let nowhere = tempfile::tempdir().expect("a directory");
    for (args, words) in [
        (&["jobs", "submit", "p", "f", "--priority", "101"][..], "101"),
        (&["jobs", "submit", "p", "f", "--workers", "11"], "11"),
        (&["jobs", "submit", "p", "f", "--tag", "x"], "NAME=VALUE"),
        (&["jobs", "submit", "p", "f", "--run-at", "soon"], "from now"),
        (&["jobs", "submit", "p", "f", "--wait", "--follow"], "cannot be used with"),
        (&["jobs", "submit", "p", "f", "--concurrency-limit", "2"], "--concurrency-key"),
        (&["jobs", "submit", "p", "f", "--key", "a\tb"], "printable"),
        (&["jobs", "submit", "p", "f", "{name: 1}"], "is not JSON"),
        (&["jobs", "--json", "show", "x"], "cannot be used with"),
        (&["workers", "call", "w"], "<FUNCTION>"),
        (&["schedules", "add", "n", "@daily", "p"], "<FUNCTION>"),
        (&["schedules", "add", "n", "c", "p", "f", "--overlap", "x"], "skip"),
        (&["audit"], "Usage"),
    ] {
        let ran = support::run_in(nowhere.path(), args, "");
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}: {ran:?}");
        assert!(ran.err.contains(words), "{words} for {args:?}: {ran:?}");
    }
}
