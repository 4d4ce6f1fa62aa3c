//! Jobs that are followed to their end, also over connections that break.

use super::ok;
use super::support::{Answer, Server, answer, json, problem};

const AT: &str = "2026-01-02T03:04:05Z";

/// One event of a story.
fn line(seq: u64, kind: &str, data: &str) -> String {
    let body = format!(r#"{{"seq":{seq},"at":"{AT}","kind":"{kind}","data":{data}}}"#);
    format!("id: {seq}\nevent: {kind}\ndata: {body}\n\n")
}

fn status(seq: u64, from: &str, to: &str) -> String {
    line(seq, "status", &format!(r#"{{"from":{from},"to":"{to}","reason":null}}"#))
}

fn end(seq: u64, data: &str) -> String {
    format!("id: {seq}\nevent: end\ndata: {data}\n\n")
}

fn stream(text: &str) -> Answer {
    answer(200, "text/event-stream", text)
}

const COMPLETED: &str = r#"{"status":"COMPLETED","reason":null,"error":null,"attempts":1}"#;

/// A server that tells the parts of a story one by one, and has a result.
fn telling(mut parts: Vec<String>) -> Server {
    parts.reverse();
    Server::start(move |request| match request.line.split('/').next_back() {
        Some("events") => stream(&parts.pop().expect("it does not ask again")),
        Some("result") => json(r#"{"frames": 9}"#),
        _ => answer(202, "application/json", r#"{"id":"j_1","status":"PENDING"}"#),
    })
}

#[test]
fn a_story_is_told_line_by_line_and_the_result_is_last() {
    let story = [
        status(1, "null", "SUBMITTED"),
        status(2, r#""PENDING""#, "RUNNING"),
        line(3, "attempt", r#"{"attempt":1,"shard":0,"worker":"py-1"}"#),
        line(4, "progress", r#"{"done":1,"total":4}"#),
        line(5, "log", r#"{"level":"warning","text":"slow\u001b[2J"}"#),
        line(6, "message", r#"{"frame":1}"#),
        status(7, r#""RUNNING""#, "COMPLETED"),
        end(7, COMPLETED),
    ];
    let server = telling(vec![story.concat()]);
    let expected = "\
2026-01-02T03:04:05.000Z  SUBMITTED
2026-01-02T03:04:05.000Z  PENDING → RUNNING
2026-01-02T03:04:05.000Z  attempt 1 runs on py-1
2026-01-02T03:04:05.000Z  progress: 25 %, 1 of 4
2026-01-02T03:04:05.000Z  warning: slow\\u001b[2J
2026-01-02T03:04:05.000Z  says: {\"frame\":1}
2026-01-02T03:04:05.000Z  RUNNING → COMPLETED
{\"frames\": 9}
";
    assert_eq!(server.run(&["jobs", "follow", "j_1"]), ok(expected));
    let request = server.seen();
    assert_eq!(request.line, "GET /api/jobs/j_1/events");
    assert!(!request.names("last-event-id"), "{request:?}");
}

#[test]
fn a_lost_connection_is_made_anew_behind_the_last_line() {
    let first = [status(1, "null", "SUBMITTED"), status(2, r#""SUBMITTED""#, "PENDING")].concat();
    let broken = "id: 3\nevent: status\nda".to_owned();
    let rest = [status(3, r#""PENDING""#, "RUNNING"), end(3, COMPLETED)].concat();
    let server = telling(vec![first, broken, rest]);
    let ran = server.run(&["jobs", "follow", "j_1"]);
    let expected = "\
2026-01-02T03:04:05.000Z  SUBMITTED
2026-01-02T03:04:05.000Z  SUBMITTED → PENDING
2026-01-02T03:04:05.000Z  PENDING → RUNNING
{\"frames\": 9}
";
    assert_eq!(ran, ok(expected));
    assert!(!server.seen().names("last-event-id"));
    for again in [server.seen(), server.seen()] {
        assert_eq!(again.line, "GET /api/jobs/j_1/events");
        assert!(again.has("last-event-id: 2"), "{again:?}");
    }
}

#[test]
fn a_server_that_stops_is_waited_for() {
    let mut answers = vec![
        stream(&[status(1, r#""PENDING""#, "RUNNING"), end(1, COMPLETED)].concat()),
        problem(503, r#"{"title":"Unavailable","code":"shutting_down","status":503}"#),
        stream(""),
    ];
    let server = Server::start(move |request| match request.line.ends_with("/result") {
        true => json("null"),
        false => answers.pop().expect("it does not ask again"),
    });
    let ran = server.run(&["jobs", "follow", "j_1"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "2026-01-02T03:04:05.000Z  PENDING → RUNNING\n"));
    assert!(ran.err.contains("the server is away; the job is kept"), "{ran:?}");
}

#[test]
fn a_command_ends_as_its_job_does() {
    let failed = r#"{"status":"FAILED","reason":"application_error","error":{"code":"application_error","message":"as asked","traceback":"line 1\nline 2"},"attempts":1}"#;
    for (data, code, words) in [
        (failed, 1, "ostler: job j_1 failed (application_error)\n  as asked\n"),
        (
            r#"{"status":"CANCELED","reason":"parent_cancelled","error":null}"#,
            5,
            "ostler: job j_1 was cancelled (parent_cancelled)\n",
        ),
        (
            r#"{"status":"CANCELED","reason":"timeout","error":null}"#,
            124,
            "ostler: job j_1 ran out of time (timeout)\n",
        ),
    ] {
        for args in [
            &["jobs", "follow", "j_1"][..],
            &["jobs", "submit", "py", "f", "--wait"],
            &["jobs", "submit", "py", "f", "--follow"],
        ] {
            let ran = telling(vec![end(1, data)]).run(args);
            assert_eq!(ran.code, code, "{args:?}: {ran:?}");
            assert!(ran.err.starts_with(words), "{args:?}: {ran:?}");
        }
        let ran = telling(vec![end(1, data)]).run(&["jobs", "follow", "j_1", "--json"]);
        let expected = (code, format!("{data}\n"), String::new());
        assert_eq!((ran.code, ran.out, ran.err), expected);
    }
}

#[test]
fn waiting_prints_the_result_and_nothing_else() {
    let story = || vec![[status(1, "null", "SUBMITTED"), end(1, COMPLETED)].concat()];
    let ran = telling(story()).run(&["jobs", "submit", "py", "f", "--wait"]);
    assert_eq!(ran, ok("{\"frames\": 9}\n"));
    let ran = telling(story()).run(&["jobs", "submit", "py", "f", "--wait=1h"]);
    assert_eq!(ran, ok("{\"frames\": 9}\n"));
    let ran = telling(story()).run(&["jobs", "submit", "py", "f", "--follow"]);
    let told = "j_1\n2026-01-02T03:04:05.000Z  SUBMITTED\n{\"frames\": 9}\n";
    assert_eq!(ran, ok(told), "its id is said first");
}

#[test]
fn a_job_without_an_end_in_time_is_124_and_goes_on() {
    // No stream ever says that it has ended.
    let server = Server::start(|request| match request.line.ends_with("/events") {
        true => stream(""),
        false => answer(202, "application/json", r#"{"id":"j_1","status":"PENDING"}"#),
    });
    let ran = server.run(&["jobs", "submit", "py", "f", "--wait=10ms"]);
    assert_eq!((ran.code, ran.out.as_str()), (124, ""), "{ran:?}");
    let words =
        "job j_1 has no end after 10ms; it goes on\n  follow it with: ostler jobs follow j_1";
    assert!(ran.err.contains(words), "{ran:?}");
}

#[test]
fn a_story_that_is_gone_says_so() {
    let gone = "id: 1\nevent: gone\ndata: {\"code\":\"job_not_found\",\"detail\":\"pruned\"}\n\n";
    let ran = telling(vec![gone.to_owned()]).run(&["jobs", "follow", "j_1"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
    assert!(ran.err.contains("the story of job j_1 ends here: pruned"), "{ran:?}");
}
