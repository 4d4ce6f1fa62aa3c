//! Orders to single workers.

use super::ok;
use super::support::{Server, answer, json, problem};

fn worker(status: &str, load: u32) -> String {
    format!(
        r#"{{"id":"w_1_7","name":"hello-7","pool":"hello","status":"{status}","load":{load},"pid":42}}"#
    )
}

#[test]
fn a_worker_of_ones_own_is_made_and_named() {
    let server = Server::saying(answer(201, "application/json", &worker("IDLE", 0)));
    assert_eq!(server.run(&["workers", "create"]), ok("hello-7\n"));
    let request = server.seen();
    assert_eq!((request.line.as_str(), request.body.as_str()), ("POST /api/workers", "{}"));
    server.run(&["workers", "create", "hello", "--workspace", "ann", "--key", "k"]);
    let request = server.seen();
    assert_eq!(request.body, r#"{"pool":"hello","workspace_id":"ann"}"#);
    assert!(request.has("idempotency-key: k"), "{request:?}");
    let ran = server.run(&["workers", "create", "--json"]);
    assert_eq!(ran, ok(&format!("{}\n", worker("IDLE", 0))));
}

#[test]
fn every_order_goes_where_it_belongs_and_tells_the_worker() {
    for (args, status, line, body, words) in [
        (
            &["start", "hello-7"][..],
            "RUNNING",
            "POST /api/workers/hello-7/start",
            "",
            "hello-7: RUNNING, process 42",
        ),
        (
            &["pause", "hello-7", "--reason", "a look"],
            "PAUSED",
            "POST /api/supervisor/workers/hello-7/pause",
            r#"{"reason":"a look"}"#,
            "hello-7: PAUSED; 1 request runs on",
        ),
        (
            &["pause", "hello-7", "--freeze"],
            "PAUSED",
            "POST /api/supervisor/workers/hello-7/pause",
            r#"{"freeze":true}"#,
            "hello-7: PAUSED; 1 request runs on",
        ),
        (
            &["resume", "w_1_7"],
            "RUNNING",
            "POST /api/supervisor/workers/w_1_7/resume",
            "",
            "hello-7: RUNNING, process 42",
        ),
        (
            &["complete", "hello-7"],
            "COMPLETED",
            "POST /api/supervisor/workers/hello-7/complete",
            "",
            "hello-7: COMPLETED",
        ),
        (
            &["terminate", "hello-7", "--key", "k"],
            "TERMINATED",
            "POST /api/supervisor/workers/hello-7/terminate",
            "",
            "hello-7: TERMINATED",
        ),
    ] {
        let server = Server::saying(json(&worker(status, 1)));
        let ran = server.run(&[&["workers"], args].concat());
        assert_eq!(ran, ok(&format!("{words}\n")), "{args:?}");
        let request = server.seen();
        assert_eq!((request.line.as_str(), request.body.as_str()), (line, body), "{args:?}");
        assert_eq!(request.has("idempotency-key: k"), args.contains(&"--key"), "{request:?}");
        let ran = server.run(&[&["workers"], args, &["--json"]].concat());
        assert_eq!(ran, ok(&format!("{}\n", worker(status, 1))), "{args:?}");
    }
}

#[test]
fn a_change_that_is_not_allowed_is_5_with_those_that_are() {
    let illegal = r#"{"title":"Conflict","code":"illegal_transition","status":409,"detail":"`hello-7` is IDLE and cannot become PAUSED","from":"IDLE","to":"PAUSED","allowed":["FAILED","RUNNING","TERMINATED"]}"#;
    let ran = Server::saying(problem(409, illegal)).run(&["workers", "pause", "hello-7"]);
    assert_eq!((ran.code, ran.out.as_str()), (5, ""), "{ran:?}");
    assert!(ran.err.contains("cannot become PAUSED"), "{ran:?}");
    assert!(ran.err.contains("allowed:\n    FAILED\n    RUNNING\n    TERMINATED"), "{ran:?}");
}

#[test]
fn a_worker_that_is_not_there_is_a_failure_and_an_unknown_pool_a_refusal() {
    let unknown = r#"{"title":"Not Found","code":"worker_not_found","status":404,"detail":"there is no worker `x`"}"#;
    let server = Server::saying(problem(404, unknown));
    for verb in ["start", "pause", "resume", "complete", "terminate"] {
        let ran = server.run(&["workers", verb, "x"]);
        assert_eq!(ran.code, 1, "{verb}: {ran:?}");
        assert!(ran.err.ends_with("see those that are: ostler workers\n"), "{verb}: {ran:?}");
    }
    let no_pool = r#"{"title":"Not Found","code":"pool_not_found","status":404,"detail":"there is no pool `x`; known: py"}"#;
    let ran = Server::saying(problem(404, no_pool)).run(&["workers", "create", "x"]);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.err.contains("known: py"), "{ran:?}");
}

#[test]
fn a_call_to_one_worker_is_a_call() {
    let server = Server::saying(json("\"hi\""));
    let args = ["workers", "call", "hello-7", "greet", "[1]", "--timeout", "2s", "--raw"];
    assert_eq!(server.run(&args), ok("hi"));
    let request = server.seen();
    assert_eq!(request.line, "POST /api/workers/hello-7/call/greet");
    assert_eq!(request.body, "[1]");
    assert!(request.has("ostler-timeout: 2"), "{request:?}");
}

#[test]
fn without_an_order_they_are_listed_as_before() {
    let page = format!(r#"{{"items":[{}],"next_cursor":null}}"#, worker("RUNNING", 0));
    let server = Server::saying(json(&page));
    for args in [&["workers", "hello"][..], &["workers", "list", "hello"]] {
        let ran = server.run(args);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.out.starts_with("WORKER ") && ran.out.contains("hello-7"), "{ran:?}");
        assert_eq!(server.seen().line, "GET /api/workers?pool=hello&limit=1000");
    }
}
