//! `ostler sessions`, and calls that belong to one, as a user runs them, against a scripted server.

mod support;

use support::{Answer, Ran, Server, answer, json, problem};

fn ok(out: &str) -> Ran {
    Ran { code: 0, out: out.to_owned(), err: String::new() }
}

const ANN: &str = r#"{"id":"ann","metadata":{"name":"Ann"},"programs":[{"name":"notes","bytes":12,"content_type":"application/json"}],"version":3,"created_at":"2026-01-02T03:04:05Z","last_accessed":"2026-01-02T03:04:05Z","ttl":null,"expires_at":null,"last_worker":"agent-2"}"#;

const UNKNOWN: &str = r#"{"title":"Not Found","code":"session_not_found","status":404,"detail":"there is no session `ann`"}"#;

#[test]
fn sessions_are_listed_page_by_page() {
    let server = Server::start(|request| match request.line.contains("cursor=ann") {
        false => json(&format!(r#"{{"items":[{ANN}],"next_cursor":"ann"}}"#)),
        true => json(r#"{"items":[{"id":"b\u001b[2Job"}],"next_cursor":null}"#),
    });
    for args in [&["sessions"][..], &["sessions", "list"]] {
        let ran = server.run(args);
        assert_eq!(ran.code, 0, "{ran:?}");
        let mut lines = ran.out.lines();
        let heading: Vec<&str> = lines.next().expect("a heading").split_whitespace().collect();
        assert_eq!(heading[0], "SESSION");
        let ann = lines.next().expect("ann");
        assert!(ann.starts_with("ann ") && ann.ends_with(" agent-2"), "{ann}");
        assert!(lines.next().expect("bob").starts_with("b\\u001b[2Job "), "{ran:?}");
        assert_eq!(server.seen().line, "GET /api/sessions?limit=100");
        assert_eq!(server.seen().line, "GET /api/sessions?limit=99&cursor=ann");
    }
    let ran = server.run(&["sessions", "-n", "1"]);
    assert!(ran.out.ends_with("there are more; -n shows them\n"), "{ran:?}");
    let ran = server.run(&["sessions", "--json"]);
    assert!(ran.out.starts_with(r#"{"items":[{"#) && ran.out.ends_with("\"next_cursor\":null}\n"));
}

#[test]
fn one_session_is_shown_with_what_it_holds() {
    let server = Server::saying(json(ANN));
    let ran = server.run(&["sessions", "show", "a n/n"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for words in ["session    ann\n", "\"name\": \"Ann\"", "notes    12     application/json"] {
        assert!(ran.out.contains(words), "{words} in {}", ran.out);
    }
    assert_eq!(server.seen().line, "GET /api/sessions/a%20n%2Fn");
    assert_eq!(server.run(&["sessions", "show", "ann", "--json"]), ok(&format!("{ANN}\n")));
}

#[test]
fn a_session_that_is_not_there_is_a_failure_with_the_way_to_those_that_are() {
    let server = Server::saying(problem(404, UNKNOWN));
    for args in [["sessions", "show", "ann"], ["sessions", "delete", "ann"]] {
        let ran = server.run(&args);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
        assert!(ran.err.contains("there is no session `ann`"), "{ran:?}");
        assert!(ran.err.ends_with("see those that are: ostler sessions\n"), "{ran:?}");
    }
}

#[test]
fn a_new_session_gets_what_was_asked_for_and_its_id_is_printed() {
    let server = Server::saying(answer(201, "application/json", ANN));
    assert_eq!(server.run(&["sessions", "create"]), ok("ann\n"));
    let request = server.seen();
    let seen = (request.line.as_str(), request.body.as_str());
    assert_eq!(seen, ("POST /api/sessions", "{}"));
    let ran = server.run_with_input(
        &[
            "sessions",
            "create",
            "ann",
            "--ttl",
            "1d",
            "--expires-at",
            "2030-01-31T12:00:00+01:00",
            "--metadata",
            "-",
        ],
        "{\"name\": \"Ann\"}",
    );
    assert_eq!(ran, ok("ann\n"));
    let body: serde_json::Value = serde_json::from_str(&server.seen().body).expect("JSON");
    let expected = serde_json::json!({
        "id": "ann", "ttl": 86400.0, "expires_at": "2030-01-31T11:00:00Z",
        "metadata": { "name": "Ann" },
    });
    assert_eq!(body, expected);
}

#[test]
fn what_cannot_be_a_session_is_a_usage_error() {
    let server = Server::saying(json("{}"));
    for (args, words) in [
        (&["create", "a b"][..], "1 to 255 printable characters"),
        (&["create", "a/b"], "without spaces and `/`"),
        (&["create", "--metadata", "[1]"], "--metadata must be a JSON object"),
        (&["create", "--metadata", "{name: 1}"], "is not JSON"),
        (&["create", "--expires-at", "tomorrow"], "2030-01-31T12:00:00Z"),
        (&["create", "--ttl", "0"], "longer than nothing"),
        (&["vanish"], "unrecognized subcommand"),
    ] {
        let ran = server.run(&[&["sessions"], args].concat());
        assert_eq!(ran.code, 2, "{args:?}: {ran:?}");
        assert!(ran.err.contains(words), "{args:?}: {ran:?}");
    }
}

#[test]
fn a_quota_that_is_reached_is_a_refusal() {
    let full = r#"{"title":"Too Many Requests","code":"session_quota_exceeded","status":429,"detail":"there are 10000 sessions, the most there may be"}"#;
    let ran = Server::saying(problem(429, full)).run(&["sessions", "create"]);
    assert_eq!((ran.code, ran.out.as_str()), (5, ""), "{ran:?}");
    assert!(ran.err.contains("session_quota_exceeded"), "{ran:?}");
}

#[test]
fn a_session_is_removed_if_it_is_still_the_version_that_was_seen() {
    let server =
        Server::saying(Answer { bytes: b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(), last: false });
    assert_eq!(server.run(&["sessions", "delete", "ann"]), ok("ann: removed\n"));
    let request = server.seen();
    assert_eq!(request.line, "DELETE /api/sessions/ann");
    assert!(!request.names("if-match"), "{request:?}");
    server.run(&["sessions", "delete", "ann", "--version", "3"]);
    assert!(server.seen().has("if-match: \"3\""));
    let other =
        r#"{"title":"Precondition Failed","code":"version_conflict","status":412,"version":4}"#;
    let ran = Server::saying(problem(412, other)).run(&["sessions", "delete", "ann"]);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.err.contains("version: 4"), "{ran:?}");
}

#[test]
fn a_sweep_says_how_many_went() {
    for (removed, words) in [
        (0, "no session had expired\n"),
        (1, "1 session had expired and is removed\n"),
        (7, "7 sessions had expired and are removed\n"),
    ] {
        let server = Server::saying(json(&format!("{{\"removed\":{removed}}}")));
        assert_eq!(server.run(&["sessions", "sweep"]), ok(words));
        assert_eq!(server.seen().line, "POST /api/sessions/sweep");
    }
}

#[test]
fn the_figures_of_all_sessions_are_shown() {
    let server = Server::saying(json(r#"{"current":2,"memory_bytes":2048}"#));
    let ran = server.run(&["sessions", "stats"]);
    assert_eq!(ran, ok("current       2\nmemory bytes  2 KiB\n"));
    assert_eq!(server.seen().line, "GET /api/stats/sessions");
}

#[test]
fn a_call_names_its_session_its_affinity_and_its_workspace() {
    let server = Server::saying(json("1"));
    let options = ["--session=ann", "--affinity=strict_queue", "--workspace=lab"];
    assert_eq!(server.run(&[&["call", "p", "f"], &options[..]].concat()), ok("1\n"));
    let request = server.seen();
    for header in ["ostler-session: ann", "ostler-affinity: strict_queue", "ostler-workspace: lab"]
    {
        assert!(request.has(header), "{header} in {request:?}");
    }
    server.run(&["call", "p", "f"]);
    let request = server.seen();
    for header in ["ostler-session", "ostler-affinity", "ostler-workspace"] {
        assert!(!request.names(header), "{request:?}");
    }
    for (args, words) in [
        (&["--affinity=hint"][..], "--session"),
        (&["--session=ann", "--affinity=strict"], "strict_fail_fast"),
        (&["--session="], "1 to 255 printable characters"),
    ] {
        let ran = server.run(&[&["call", "p", "f"], args].concat());
        assert_eq!(ran.code, 2, "{args:?}: {ran:?}");
        assert!(ran.err.contains(words), "{args:?}: {ran:?}");
    }
}

#[test]
fn a_session_that_began_anew_is_told_beside_the_result() {
    let saying = |continuity: &str| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1\r\n";
        let bytes = format!("{head}ostler-session-continuity: {continuity}\r\n\r\n1");
        Server::saying(Answer { bytes: bytes.into_bytes(), last: false })
    };
    let ran = saying("restarted").run(&["call", "p", "f", "--session", "ann"]);
    let err = "ostler: the worker of session ann was replaced; it began anew\n";
    assert_eq!(ran, Ran { err: err.to_owned(), ..ok("1\n") });
    for quiet in ["bound", "same", "elsewhere", "restored"] {
        assert_eq!(saying(quiet).run(&["call", "p", "f", "--session", "ann"]), ok("1\n"));
    }
}
