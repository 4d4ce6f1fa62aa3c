//! Jobs as the command line submits, lists, shows and orders them.

use serde_json::{Value, json};

use super::ok;
use super::support::{Server, answer, json as saying, problem};

const ID: &str = "j_019a8f0c4a7b7c3e9d1f2a3b4c5d6e7f";

fn job(status: &str) -> String {
    json!({
        "id": ID, "status": status, "pool": "py", "function": "f", "queue": "default",
        "workspace_id": "default", "attempts": 1, "max_attempts": 3, "priority": 0,
        "worker_count": 1, "created_at": "2026-01-02T03:04:05Z", "progress": 0.5,
        "state_history": [{ "seq": 1, "from": null, "to": "SUBMITTED", "trigger": "submit",
                            "actor": "api", "at": "2026-01-02T03:04:05Z" }],
    })
    .to_string()
}

const UNKNOWN: &str = r#"{"title":"Not Found","code":"job_not_found","status":404,"detail":"there is no job `j_1`; it may have been pruned after its end"}"#;
const ENDED: &str = r#"{"title":"Conflict","code":"illegal_transition","status":409,"detail":"job `j_1` is COMPLETED and cannot become CANCELED","from":"COMPLETED","to":"CANCELED","allowed":[]}"#;

fn body(server: &Server) -> (String, Value) {
    let request = server.seen();
    let body = serde_json::from_str(&request.body).unwrap_or_else(|_| panic!("{request:?}"));
    (request.line, body)
}

#[test]
fn a_job_is_submitted_with_what_was_said_and_nothing_else() {
    let server = Server::saying(answer(202, "application/json", &job("PENDING")));
    assert_eq!(server.run(&["jobs", "submit", "py", "f"]), ok(&format!("{ID}\n")));
    let plain = ("POST /api/jobs".to_owned(), json!({ "pool": "py", "function": "f" }));
    assert_eq!(body(&server), plain);
    let ran = server.run(&["jobs", "submit", "py", "f", r#"{"n": 1e400}"#, "--json"]);
    assert_eq!(ran, ok(&format!("{}\n", job("PENDING"))));
    let sent = server.seen().body;
    assert!(sent.contains(r#""payload":{"n": 1e400}"#), "every digit arrives: {sent}");
}

#[test]
fn every_option_of_a_job_reaches_the_server() {
    let server = Server::saying(answer(202, "application/json", &job("PENDING")));
    let args = [
        "jobs",
        "submit",
        "py",
        "f",
        "-",
        "--queue",
        "q",
        "--priority",
        "-5",
        "--timeout",
        "2m",
        "--max-attempts",
        "7",
        "--retry-on-error",
        "--backoff",
        "1s..1m",
        "--workers",
        "4",
        "--unique-key",
        "u",
        "--concurrency-key",
        "c",
        "--concurrency-limit",
        "2",
        "--tag",
        "a=b",
        "--tag",
        "c=d=e",
        "--description",
        "a word",
        "--session",
        "ann",
        "--workspace",
        "w",
        "--ignore-children",
        "--run-at",
        "2030-01-31T12:00:00Z",
        "--parent",
        "j_2",
        "--key",
        "k 1",
    ];
    let ran = server.run_with_input(&args, "[1, 2]");
    assert_eq!(ran, ok(&format!("{ID}\n")));
    let request = server.seen();
    assert!(request.has("idempotency-key: k 1"), "{request:?}");
    let expected = json!({
        "pool": "py", "function": "f", "payload": [1, 2], "queue": "q", "priority": -5,
        "timeout": 120.0, "max_attempts": 7, "retry_on": ["error"],
        "backoff": { "initial": 1.0, "max": 60.0 }, "worker_count": 4, "unique_key": "u",
        "concurrency_key": "c", "concurrency_limit": 2, "tags": { "a": "b", "c": "d=e" },
        "task_description": "a word", "session": "ann", "workspace_id": "w", "children": "ignore",
        "run_at": "2030-01-31T12:00:00Z", "parent_job_id": "j_2",
    });
    let sent: Value = serde_json::from_str(&request.body).expect("JSON");
    assert_eq!(sent, expected);
}

#[test]
fn a_job_that_was_there_by_its_key_is_said_to_be() {
    let known = job("RUNNING").replacen('{', r#"{"known":true,"#, 1);
    let server = Server::saying(saying(&known));
    let ran = server.run(&["jobs", "submit", "py", "f", "--unique-key", "u"]);
    assert_eq!((ran.code, ran.out), (0, format!("{ID}\n")));
    assert!(ran.err.contains("unique key"), "{}", ran.err);
}

#[test]
fn a_submission_that_is_refused_is_5_with_the_reason() {
    let refused = r#"{"title":"Unprocessable","code":"validation","status":422,"detail":"`worker_count` is 4, the pool has 2","field":"worker_count"}"#;
    let ran = Server::saying(problem(422, refused)).run(&["jobs", "submit", "py", "f"]);
    assert_eq!((ran.code, ran.out.as_str()), (5, ""), "{ran:?}");
    assert!(ran.err.contains("the pool has 2"), "{ran:?}");
}

#[test]
fn a_lost_answer_says_how_to_ask_again() {
    let lost = || Server::start(|_| super::support::Answer { bytes: Vec::new(), last: true });
    let ran = lost().run(&["jobs", "submit", "py", "f", "--key", "k"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.ends_with("run it again with --key k: it is done once\n"), "{ran:?}");
    let ran = lost().run(&["jobs", "submit", "py", "f"]);
    assert!(!ran.err.contains("--key"), "{ran:?}");
}

#[test]
fn jobs_are_listed_page_by_page_by_what_was_asked() {
    let server = Server::start(|request| match request.line.contains("cursor=") {
        false => saying(&format!(r#"{{"items":[{}],"next_cursor":"{ID}"}}"#, job("RUNNING"))),
        true => saying(
            r#"{"items":[{"id":"j\u001b2","status":"FAILED","reason":"lost"}],"next_cursor":null}"#,
        ),
    });
    for args in [&["jobs"][..], &["jobs", "list"]] {
        let ran = server.run(args);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
        let lines: Vec<Vec<&str>> =
            ran.out.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0][..4], ["JOB", "STATUS", "POOL", "FUNCTION"]);
        assert_eq!(lines[1][..6], [ID, "RUNNING", "py", "f", "default", "1/3"]);
        assert!(ran.out.lines().nth(1).is_some_and(|line| line.ends_with("50 %")), "{ran:?}");
        assert_eq!(lines[2][0], "j\\u001b2");
        assert_eq!(server.seen().line, "GET /api/jobs?limit=50");
        assert_eq!(server.seen().line, format!("GET /api/jobs?limit=49&cursor={ID}"));
    }
    let filters = [
        "jobs",
        "--status",
        "running",
        "--pool",
        "py",
        "--queue",
        "q",
        "--function",
        "f",
        "--workspace",
        "w",
        "--parent",
        "j_1",
        "--root",
        "j_2",
        "--schedule",
        "s_1",
        "--tag",
        "a=b",
        "-n",
        "1",
        "--json",
    ];
    let ran = server.run(&filters);
    assert!(ran.out.starts_with(r#"{"items":[{"#), "{ran:?}");
    assert_eq!(
        server.seen().line,
        "GET /api/jobs?status=RUNNING&pool=py&queue=q&function=f&workspace_id=w&parent_job_id=j_1\
         &root_job_id=j_2&schedule_id=s_1&tag=a%3Ab&limit=1"
    );
}

#[test]
fn one_job_is_shown_with_its_attempts_and_its_history() {
    let attempts = r#"{"items":[{"attempt":1,"workers":["py-1"],"started_at":"2026-01-02T03:04:05Z","ended_at":"2026-01-02T03:04:06Z","outcome":"crashed","error":{"message":"exit 7"}}],"next_cursor":null}"#;
    let server = Server::start(move |request| match request.line.ends_with("/attempts") {
        true => saying(attempts),
        false => saying(&job("RUNNING")),
    });
    let ran = server.run(&["jobs", "show", ID]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    for words in ["status      RUNNING (50 %)\n", "py.f", "crashed", "exit 7", "SUBMITTED"] {
        assert!(ran.out.contains(words), "{words} in {}", ran.out);
    }
    assert_eq!(server.seen().line, format!("GET /api/jobs/{ID}"));
    assert_eq!(server.seen().line, format!("GET /api/jobs/{ID}/attempts"));
    let ran = server.run(&["jobs", "show", ID, "--json"]);
    let shown: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!((&shown["id"], &shown["attempts"]), (&ID.into(), &1.into()));
    assert_eq!(shown["attempt_history"][0]["outcome"], "crashed");
    assert_eq!(shown["state_history"][0]["to"], "SUBMITTED");
}

#[test]
fn a_job_that_is_not_there_is_a_failure_with_the_way_to_those_that_are() {
    let server = Server::saying(problem(404, UNKNOWN));
    for verb in ["show", "follow", "cancel", "retry"] {
        let ran = server.run(&["jobs", verb, "j_1"]);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{verb}: {ran:?}");
        assert!(ran.err.contains("there is no job `j_1`"), "{verb}: {ran:?}");
        assert!(ran.err.ends_with("see those that are: ostler jobs\n"), "{verb}: {ran:?}");
    }
}

#[test]
fn a_cancel_says_whether_it_has_come_about() {
    let server = Server::saying(saying(&job("CANCELED")));
    let ran = server.run(&["jobs", "cancel", ID, "--reason", "wrong file", "--key", "k"]);
    assert_eq!(ran, ok(&format!("{ID}: CANCELED\n")));
    let request = server.seen();
    assert_eq!(request.line, format!("POST /api/jobs/{ID}/cancel"));
    assert_eq!(request.body, r#"{"reason":"wrong file"}"#);
    assert!(request.has("idempotency-key: k"), "{request:?}");
    let server = Server::saying(answer(202, "application/json", &job("RUNNING")));
    let ran = server.run(&["jobs", "cancel", ID]);
    assert_eq!(ran, ok(&format!("{ID}: RUNNING; it is CANCELED once its work has let go\n")));
    assert_eq!(server.seen().body, "");
    let ran = Server::saying(problem(409, ENDED)).run(&["jobs", "cancel", "j_1"]);
    assert_eq!((ran.code, ran.out.as_str()), (5, ""), "{ran:?}");
    assert!(ran.err.contains("cannot become CANCELED"), "{ran:?}");
}

#[test]
fn a_retry_prints_the_id_of_the_new_job() {
    let server = Server::saying(answer(202, "application/json", &job("PENDING")));
    assert_eq!(server.run(&["jobs", "retry", "j_1"]), ok(&format!("{ID}\n")));
    assert_eq!(server.seen().line, "POST /api/jobs/j_1/retry");
}

#[test]
fn queues_are_paused_resumed_and_listed() {
    let queue = |paused: bool| {
        let at = if paused { r#""2026-01-02T03:04:05Z""# } else { "null" };
        format!(
            r#"{{"name":"default","paused":{paused},"paused_at":{at},"waiting":2,"running":1}}"#
        )
    };
    let server = Server::start(move |request| match request.line.as_str() {
        "GET /api/queues?limit=1000" => {
            saying(&format!(r#"{{"items":[{}],"next_cursor":null}}"#, queue(true)))
        }
        line => saying(&queue(line.ends_with("/pause"))),
    });
    assert_eq!(server.run(&["jobs", "pause"]), ok("default: paused; 2 jobs wait, 1 runs\n"));
    assert_eq!(server.seen().line, "POST /api/queues/default/pause");
    let ran = server.run(&["jobs", "resume", "a/b", "--reason", "r"]);
    assert_eq!(ran, ok("default: open; 2 jobs wait, 1 runs\n"));
    let request = server.seen();
    assert_eq!(request.line, "POST /api/queues/a%2Fb/resume");
    assert_eq!(request.body, r#"{"reason":"r"}"#);
    let ran = server.run(&["jobs", "queues"]);
    let table = "QUEUE    WAITING  RUNNING  PAUSED\n\
                 default  2        1        since 2026-01-02T03:04:05.000Z\n";
    assert_eq!(ran, ok(table));
    assert_eq!(server.run(&["jobs", "pause", "--json"]), ok(&format!("{}\n", queue(true))));
}
