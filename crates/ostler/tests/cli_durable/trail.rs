//! The audit trail as the command line shows and proves it.

use super::ok;
use super::support::{Server, json, problem};

const STEP: &str = r#"{"machine":"status","seq":1,"from":null,"to":"IDLE","trigger":"create","reason":null,"actor":"api","request_id":"r1","at":"2026-01-02T03:04:05Z"}"#;
const PHASE: &str =
    r#"{"machine":"phase","seq":null,"from":null,"to":"starting","at":"2026-01-02T03:04:06Z"}"#;

#[test]
fn the_trail_of_a_worker_has_its_statuses_only() {
    let page = format!(r#"{{"items":[{STEP},{PHASE}],"next_cursor":null}}"#);
    let server = Server::saying(json(&page));
    let table = "\
#  AT                        FROM  TO    TRIGGER  REASON  BY   REQUEST
1  2026-01-02T03:04:05.000Z  -     IDLE  create   -       api  r1
";
    assert_eq!(server.run(&["audit", "worker", "py-1"]), ok(table));
    assert_eq!(server.seen().line, "GET /api/workers/py-1/transitions?limit=1000");
    let ran = server.run(&["audit", "worker", "py-1", "--json"]);
    assert!(ran.out.contains("\"IDLE\"") && !ran.out.contains("starting"), "{ran:?}");
}

#[test]
fn the_trail_of_a_job_is_read_to_its_end() {
    let step = STEP.replacen(r#""machine":"status","#, "", 1);
    let second = step.replacen(r#""seq":1"#, r#""seq":2"#, 1);
    let server = Server::start(move |request| match request.line.contains("cursor=1") {
        false => json(&format!(r#"{{"items":[{step}],"next_cursor":"1"}}"#)),
        true => json(&format!(r#"{{"items":[{second}],"next_cursor":null}}"#)),
    });
    let ran = server.run(&["audit", "job", "j_1"]);
    assert_eq!(ran.out.lines().count(), 3, "{ran:?}");
    assert_eq!(server.seen().line, "GET /api/jobs/j_1/transitions?limit=1000");
    let ran = server.run(&["audit", "job", "j_1", "-n", "1"]);
    assert!(ran.out.ends_with("there are more; -n shows them\n"), "{ran:?}");
}

#[test]
fn who_is_not_there_has_no_trail() {
    let unknown = r#"{"title":"Not Found","code":"x","status":404,"detail":"there is none"}"#;
    let server = Server::saying(problem(404, unknown));
    for (of, see) in [("worker", "ostler workers"), ("job", "ostler jobs")] {
        let ran = server.run(&["audit", of, "x"]);
        assert_eq!(ran.code, 1, "{of}: {ran:?}");
        assert!(ran.err.ends_with(&format!("see those that are: {see}\n")), "{of}: {ran:?}");
    }
}

#[test]
fn a_proof_ends_with_1_where_something_does_not_fit() {
    let whole =
        r#"{"ok":true,"jobs":3,"workers":2,"transitions":11,"findings":[],"findings_total":0}"#;
    let server = Server::saying(json(whole));
    let words = "jobs 3, workers 2, changes of status 11: all of it fits\n";
    assert_eq!(server.run(&["audit", "verify"]), ok(words));
    assert_eq!(server.seen().line, "GET /api/audit/verify");
    assert_eq!(server.run(&["audit", "verify", "--json"]), ok(&format!("{whole}\n")));
    let torn = r#"{"ok":false,"jobs":3,"workers":2,"transitions":11,"findings":[{"entity":"job","id":"j_1","what":"seq 2 is missing"}],"findings_total":1}"#;
    let ran = Server::saying(json(torn)).run(&["audit", "verify"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.out.ends_with("does not fit: 1\njob j_1: seq 2 is missing\n"), "{ran:?}");
}
