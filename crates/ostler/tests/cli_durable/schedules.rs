//! Schedules as the command line adds, shows and orders them.

use serde_json::{Value, json};

use super::ok;
use super::support::{Answer, Server, answer, json as saying, problem};

fn schedule(paused: bool) -> String {
    json!({
        "id": "s_1", "name": "digest", "workspace_id": "default", "cron": "@daily",
        "timezone": "UTC", "overlap": "skip", "paused": paused,
        "job": { "pool": "mail", "function": "digest" },
        "next_at": null, "last_at": "2026-01-02T03:04:05Z", "last_job_id": "j_1",
    })
    .to_string()
}

#[test]
fn a_schedule_is_added_with_the_job_that_it_submits() {
    let server = Server::saying(answer(201, "application/json", &schedule(false)));
    let ran = server.run(&["schedules", "add", "digest", "@daily", "mail", "digest"]);
    assert_eq!(ran, ok("s_1\n"));
    let request = server.seen();
    assert_eq!(request.line, "POST /api/schedules");
    let sent: Value = serde_json::from_str(&request.body).expect("JSON");
    let job = json!({ "pool": "mail", "function": "digest" });
    assert_eq!(sent, json!({ "name": "digest", "cron": "@daily", "job": job }));

    let args = [
        "schedules",
        "add",
        "n",
        "*/5 * * * *",
        "mail",
        "digest",
        "[1]",
        "--timezone",
        "Europe/Berlin",
        "--overlap",
        "allow",
        "--paused",
        "--workspace",
        "w",
        "--queue",
        "q",
        "--key",
        "k",
        "--json",
    ];
    assert_eq!(server.run(&args), ok(&format!("{}\n", schedule(false))));
    let request = server.seen();
    assert!(request.has("idempotency-key: k"), "{request:?}");
    let sent: Value = serde_json::from_str(&request.body).expect("JSON");
    let expected = json!({
        "name": "n", "cron": "*/5 * * * *", "timezone": "Europe/Berlin", "overlap": "allow",
        "paused": true, "workspace_id": "w",
        "job": { "pool": "mail", "function": "digest", "payload": [1], "queue": "q",
                 "workspace_id": "w" },
    });
    assert_eq!(sent, expected);
}

#[test]
fn schedules_are_listed_and_shown() {
    let page = format!(r#"{{"items":[{}],"next_cursor":null}}"#, schedule(true));
    let server = Server::start(move |request| match request.line.contains('?') {
        true => saying(&page),
        false => saying(&schedule(true)),
    });
    let table = "\
SCHEDULE  WHEN    ZONE  FUNCTION     NEXT    LAST                      LAST JOB  ID
digest    @daily  UTC   mail.digest  paused  2026-01-02T03:04:05.000Z  j_1       s_1
";
    for args in [&["schedules"][..], &["schedules", "list"]] {
        assert_eq!(server.run(args), ok(table));
        assert_eq!(server.seen().line, "GET /api/schedules?limit=100");
    }
    let ran = server.run(&["schedules", "show", "digest"]);
    assert!(ran.out.starts_with("schedule   digest\nid         s_1\n"), "{ran:?}");
    let ran = server.run(&["schedules", "show", "digest", "--json"]);
    assert_eq!(ran, ok(&format!("{}\n", schedule(true))));
}

#[test]
fn a_schedule_is_paused_resumed_and_removed() {
    let server = Server::start(|request| match request.line.split(['/', ' ']).next_back() {
        Some("pause") => saying(&schedule(true)),
        Some("resume") => saying(&schedule(false)),
        _ => Answer { bytes: b"HTTP/1.1 204 X\r\n\r\n".to_vec(), last: false },
    });
    assert_eq!(server.run(&["schedules", "pause", "digest"]), ok("digest: paused\n"));
    assert_eq!(server.seen().line, "POST /api/schedules/digest/pause");
    let ran = server.run(&["schedules", "resume", "digest"]);
    assert_eq!(ran, ok("digest: the next job comes -\n"));
    let ran = server.run(&["schedules", "delete", "digest"]);
    assert_eq!(ran, ok("digest: removed; its jobs go on\n"));
    assert_eq!(server.seen().line, "POST /api/schedules/digest/resume");
    assert_eq!(server.seen().line, "DELETE /api/schedules/digest");
}

#[test]
fn a_schedule_that_is_not_there_is_a_failure_and_one_too_many_a_refusal() {
    let unknown = r#"{"title":"Not Found","code":"schedule_not_found","status":404,"detail":"there is no schedule `x`"}"#;
    let server = Server::saying(problem(404, unknown));
    for verb in ["show", "pause", "resume", "delete"] {
        let ran = server.run(&["schedules", verb, "x"]);
        assert_eq!(ran.code, 1, "{verb}: {ran:?}");
        assert!(ran.err.ends_with("see those that are: ostler schedules\n"), "{verb}: {ran:?}");
    }
    let there = r#"{"title":"Conflict","code":"schedule_exists","status":409,"detail":"a schedule `x` exists; change that one, or use another name"}"#;
    let ran =
        Server::saying(problem(409, there)).run(&["schedules", "add", "x", "@daily", "p", "f"]);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.err.contains("use another name"), "{ran:?}");
}
