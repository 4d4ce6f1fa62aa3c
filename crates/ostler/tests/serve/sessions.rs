//! Sessions over HTTP: made and changed by hand, entered by calls, bound to processes.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::http::{Answer, Request, get, post, request};
use super::server::{Server, Site, until};

/// A server whose pool `state` has these settings.
fn stateful(pool: &str, more: &str) -> Site {
    let table = "[pools.state]\npython = \"stateful.py\"\n";
    let site = Site::with_pools(&format!("{table}{pool}\n{more}\n"));
    let functions = include_str!("stateful.py");
    std::fs::write(site.path().join("stateful.py"), functions).expect("written");
    site
}

fn call(function: &str, body: &str) -> Request {
    post(&format!("/api/pools/state/call/{function}"), body)
}

fn of(session: &str, function: &str, body: &str) -> Request {
    call(function, body).header("Ostler-Session", session)
}

fn continuity(answer: &Answer) -> &str {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.header("ostler-session-continuity").expect("what the session found")
}

/// Whether nothing is answered, as is right when something was removed.
fn removed(server: &Server, request: &Request) -> u16 {
    request.send(server.address).head().status
}

#[test]
fn a_session_is_made_changed_by_those_who_saw_it_and_ended() {
    let server = stateful("size = 1", "").serve();
    let made = server.ask(&post("/api/sessions", r#"{"id":"ada","metadata":{"a":1,"b":2}}"#));
    assert_eq!(made.status, 201, "{}", made.text());
    assert_eq!(made.header("location"), Some("/api/sessions/ada"));
    let tag = made.header("etag").expect("a tag").to_owned();
    assert_eq!(tag, format!("\"{}\"", made.json()["version"]));
    server.ask(&post("/api/sessions", r#"{"id":"ada"}"#)).problem(409, "session_exists");

    let patch = |body: &str| request("PATCH", "/api/sessions/ada").body(body);
    let change = r#"{"metadata":{"a":null,"c":{"d":3}},"ttl":"2d"}"#;
    server.ask(&patch(change)).problem(428, "version_required");
    let changed = server.ask(&patch(change).header("If-Match", &tag));
    assert_eq!(changed.status, 200, "{}", changed.text());
    let session = changed.json();
    assert_eq!(session["metadata"], json!({"b": 2, "c": {"d": 3}}));
    assert_eq!(session["ttl"], 172_800.0);
    let version = session["version"].as_u64().expect("a version");

    let stale = server.ask(&patch(change).header("If-Match", &tag));
    assert_eq!(stale.problem(412, "version_conflict")["version"], version);
    let said = format!(r#"{{"version":{version},"metadata":{{"e":1}}}}"#);
    assert_eq!(server.ask(&patch(&said)).status, 200, "the body may say it instead");
    server.ask(&patch(&said)).problem(412, "version_conflict");
    let seen = server.ask(&get("/api/sessions/ada"));
    assert_eq!(seen.json()["metadata"]["e"], 1);

    let end = request("DELETE", "/api/sessions/ada");
    let end_of = |tag: &str| request("DELETE", "/api/sessions/ada").header("If-Match", tag);
    server.ask(&end_of(&tag)).problem(412, "version_conflict");
    assert_eq!(removed(&server, &end), 204);
    server.ask(&end).problem(404, "session_not_found");
    server.ask(&get("/api/sessions/ada")).problem(404, "session_not_found");
}

#[test]
fn what_does_not_fit_a_session_is_refused_and_named() {
    let server = stateful("size = 1", "[sessions]\nmetadata_max = \"1 KiB\"").serve();
    for (body, status, code) in [
        ("{", 400, "malformed"),
        ("[]", 422, "validation"),
        (r#"{"idd":"x"}"#, 422, "validation"),
        (r#"{"ttl":-1}"#, 422, "validation"),
        (r#"{"expires_at":"tomorrow"}"#, 422, "validation"),
        (r#"{"id":"a/b"}"#, 422, "invalid_session"),
        (r#"{"metadata":[1]}"#, 422, "invalid_session"),
    ] {
        server.ask(&post("/api/sessions", body)).problem(status, code);
    }
    let large = format!(r#"{{"metadata":{{"x":"{}"}}}}"#, "x".repeat(1024));
    server.ask(&post("/api/sessions", &large)).problem(413, "metadata_too_large");
    let text = post("/api/sessions", "{}").header("Content-Type", "text/plain");
    server.ask(&text).problem(415, "unsupported_media_type");
    for (name, value) in [
        ("Ostler-Session", "a/b"),
        ("Ostler-Session", "a b"),
        ("Ostler-Affinity", "hint"),
        ("Ostler-Workspace", ""),
    ] {
        server.ask(&call("pid", "").header(name, value)).problem(400, "malformed");
    }
    server.ask(&of("a", "pid", "").header("Ostler-Affinity", "firm")).problem(400, "malformed");
}

#[test]
fn sessions_are_listed_page_by_page_in_order() {
    let server = stateful("size = 1", "").serve();
    for id in ["c", "a", "b"] {
        server.ask(&post("/api/sessions", &format!(r#"{{"id":"{id}"}}"#)));
    }
    let (mut path, mut seen) = ("/api/sessions?limit=2".to_owned(), Vec::new());
    loop {
        let page = server.ask(&get(&path)).json();
        let items = page["items"].as_array().expect("a list");
        seen.extend(items.iter().map(|session| session["id"].as_str().unwrap().to_owned()));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/api/sessions?limit=2&cursor={cursor}");
    }
    assert_eq!(seen, ["a", "b", "c"]);
    server.ask(&get("/api/sessions?limit=0")).problem(422, "validation");
    let stats = server.ask(&get("/api/stats/sessions")).json();
    assert_eq!((&stats["current"], &stats["created"]), (&json!(3), &json!(3)));
    let swept = server.ask(&request("POST", "/api/sessions/sweep").body("")).json();
    assert_eq!(swept, json!({ "removed": 0 }));
    let figures = server.ask(&get("/api/sessions/a/stats")).json();
    assert!(figures["age_seconds"].as_f64().is_some_and(|age| age >= 0.0), "{figures}");
}

#[test]
fn programs_come_back_as_they_were_put() {
    let server = stateful("size = 1", "[sessions]\nprograms_max = 2").serve();
    server.ask(&post("/api/sessions", r#"{"id":"ada"}"#));
    let path = |name: &str| format!("/api/sessions/ada/programs/{name}");
    let put = |name: &str, body: &str| request("PUT", &path(name)).body(body);

    let json_put = server.ask(&put("plan", r#"{"steps": [1, 2]}"#));
    assert_eq!(json_put.status, 200, "{}", json_put.text());
    let bytes = put("blob", "\u{1}\u{2}").header("Content-Type", "application/x-thing");
    assert_eq!(server.ask(&bytes).json()["content_type"], "application/x-thing");
    server.ask(&put("third", "1")).problem(422, "program_quota_exceeded");
    server.ask(&put("plan", "{")).problem(400, "malformed");

    let plan = server.ask(&get(&path("plan")));
    assert_eq!(plan.header("content-type"), Some("application/json"));
    assert_eq!(plan.text(), r#"{"steps": [1, 2]}"#);
    assert_eq!(plan.header("content-security-policy"), Some("default-src 'none'; sandbox"));
    let blob = server.ask(&get(&path("blob")));
    assert_eq!(blob.header("content-type"), Some("application/x-thing"));
    assert_eq!(blob.body, [1, 2]);
    let listed = server.ask(&get("/api/sessions/ada/programs")).json();
    assert_eq!(listed["items"][0]["name"], "blob");
    assert_eq!(listed["items"][0]["bytes"], 2);

    let tag = blob.header("etag").expect("a tag").to_owned();
    let again = server.ask(&put("plan", "2").header("If-Match", &tag));
    assert_eq!(again.status, 200, "{}", again.text());
    server.ask(&put("plan", "3").header("If-Match", &tag)).problem(412, "version_conflict");
    assert_eq!(removed(&server, &request("DELETE", &path("plan"))), 204);
    server.ask(&get(&path("plan"))).problem(404, "program_not_found");
}

#[test]
fn a_call_makes_its_session_and_the_next_one_finds_its_process() {
    let server = stateful("size = 2", "").serve();
    let first = server.ask(&of("ada", "remember", "[42]"));
    assert_eq!(continuity(&first), "bound");
    assert_eq!(first.header("ostler-session"), Some("ada"));
    let second = server.ask(&of("ada", "recall", ""));
    assert_eq!((continuity(&second), second.json()), ("same", json!(42)));
    let worker = first.header("ostler-worker").expect("a worker");
    let bound = server.ask(&get("/api/sessions/ada/binding")).json();
    assert_eq!(bound, json!({ "bindings": [{ "pool": "state", "worker": worker }] }));
    assert_eq!(server.ask(&get("/api/sessions/ada")).json()["last_worker"], worker);
    let shown = server.ask(&get(&format!("/api/workers/{worker}"))).json();
    assert_eq!(shown["sessions"], json!(["ada"]));
    let metrics = server.ask(&get("/metrics")).text();
    assert!(metrics.contains("ostler_affinity_hits_total{pool=\"state\"} 1\n"), "{metrics}");
    assert!(metrics.contains("ostler_sessions 1\n"), "{metrics}");

    let plain = server.ask(&call("pid", ""));
    assert_eq!(plain.header("ostler-session"), None);
    assert_eq!(plain.header("ostler-session-continuity"), None);
}

#[test]
fn a_stream_says_what_its_session_found() {
    let server = stateful("size = 1", "").serve();
    for expected in ["bound", "same"] {
        let stream = of("ada", "pids", "[3]").header("Accept", "application/x-ndjson");
        let answer = server.ask(&stream);
        assert_eq!(continuity(&answer), expected);
        assert!(answer.header("ostler-worker").is_some());
        let kinds: Vec<Value> = answer
            .text()
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["type"].clone())
            .collect();
        assert_eq!(kinds, ["message", "message", "message", "complete"]);
    }
    let unknown = of("ada", "no_such", "").header("Accept", "application/x-ndjson");
    let answer = server.ask(&unknown);
    assert_eq!(answer.header("ostler-session"), Some("ada"));
    assert!(answer.text().contains("function_not_found"), "{}", answer.text());
}

#[test]
fn handlers_write_into_the_session_that_their_caller_reads() {
    let server = stateful("size = 1", "").serve();
    let noted = server.ask(&of("ada", "note", r#"["colour","red"]"#));
    assert_eq!(noted.status, 200, "{}", noted.text());
    let session = server.ask(&get("/api/sessions/ada")).json();
    assert_eq!(session["metadata"], json!({ "colour": "red" }));
}

#[test]
fn a_strict_session_is_told_once_that_its_process_is_gone() {
    let server = stateful("size = 2\naffinity = \"strict_queue\"", "").serve();
    server.ask(&of("ada", "remember", "[1]"));
    server.ask(&of("ada", "die", "")).problem(502, "worker_crashed");
    let told = server.ask(&of("ada", "recall", "")).problem(409, "session_worker_lost");
    assert_eq!((&told["retryable"], &told["started"]), (&json!(true), &json!(false)));
    let anew = server.ask(&of("ada", "recall", ""));
    assert_eq!((continuity(&anew), anew.json()), ("bound", Value::Null));
}

#[test]
fn a_session_that_does_not_wait_is_told_that_its_worker_is_busy() {
    let server = stateful("size = 2", "").serve();
    let mut held = of("ada", "hold", r#"["held"]"#).send(server.address);
    until("it runs", || server.site.lines("begun").len() == 1);
    let at_once = of("ada", "pid", "").header("Ostler-Affinity", "strict_fail_fast");
    server.ask(&at_once).problem(409, "worker_busy");
    let elsewhere = server.ask(&of("ada", "pid", ""));
    assert_eq!(continuity(&elsewhere), "elsewhere");
    server.site.give("go");
    let held = held.answer();
    assert_ne!(held.json(), elsewhere.json());
}

#[test]
fn each_session_has_a_worker_of_its_own_in_a_pool_that_is_keyed_by_sessions() {
    let server = stateful("key = \"session\"\nmax = 2", "").serve();
    server.ask(&call("pid", "")).problem(422, "session_required");
    let pid = |session: &str| server.ask(&of(session, "pid", "")).json();
    let (ada, bob) = (pid("ada"), pid("bob"));
    assert!(ada.is_u64() && ada != bob, "{ada} {bob}");
    assert_eq!([pid("ada"), pid("bob")], [ada, bob]);
    let pool = server.ask(&get("/api/pools/state")).json();
    assert_eq!((&pool["key"], &pool["occupancy"]), (&json!("session"), &json!("at_capacity")));
    let order = r#"{"worker":"state-1"}"#;
    let bind = request("PUT", "/api/sessions/ada/binding").body(order);
    server.ask(&bind).problem(409, "not_in_keyed_pool");
}

#[test]
fn a_session_is_bound_and_unbound_by_hand() {
    let server = stateful("size = 2", "").serve();
    let workers = || server.ask(&get("/api/workers?phase=ready")).json()["items"].clone();
    until("both are ready", || workers().as_array().is_some_and(|all| all.len() == 2));
    server.ask(&post("/api/sessions", r#"{"id":"ada"}"#));
    for worker in ["state-2", "state-1", "state-2"] {
        let order = format!(r#"{{"worker":"{worker}"}}"#);
        let bound = server.ask(&request("PUT", "/api/sessions/ada/binding").body(&order));
        let expected = json!({ "bindings": [{ "pool": "state", "worker": worker }] });
        assert_eq!(bound.json()["bindings"][0]["pool"], "state", "{}", bound.text());
        assert_eq!(bound.json(), expected);
        let called = server.ask(&of("ada", "pid", ""));
        assert_eq!(called.header("ostler-worker"), Some(worker), "it goes where it is bound");
    }
    let nowhere = request("PUT", "/api/sessions/ada/binding").body(r#"{"worker":"state-9"}"#);
    server.ask(&nowhere).problem(404, "worker_not_found");
    let nobody = request("PUT", "/api/sessions/eve/binding").body(r#"{"worker":"state-1"}"#);
    server.ask(&nobody).problem(404, "session_not_found");
    let unbind = request("DELETE", "/api/sessions/ada/binding?pool=state");
    assert_eq!(removed(&server, &unbind), 204);
    let bound = server.ask(&get("/api/sessions/ada/binding")).json();
    assert_eq!(bound, json!({ "bindings": [] }));
}

#[test]
fn more_sessions_than_there_may_be_are_refused_until_one_ends() {
    let server = stateful("size = 1", "[sessions]\nmax = 2").serve();
    for id in ["a", "b"] {
        assert_eq!(continuity(&server.ask(&of(id, "pid", ""))), "bound");
    }
    server.ask(&of("c", "pid", "")).problem(429, "session_quota_exceeded");
    server.ask(&post("/api/sessions", "{}")).problem(429, "session_quota_exceeded");
    assert_eq!(removed(&server, &request("DELETE", "/api/sessions/a")), 204);
    assert_eq!(server.ask(&of("c", "pid", "")).status, 200);
}

#[test]
fn an_unknown_session_is_not_made_where_that_is_not_wanted() {
    let server = stateful("size = 1", "[sessions]\nauto_create = false").serve();
    server.ask(&of("ada", "pid", "")).problem(404, "session_not_found");
    server.ask(&post("/api/sessions", r#"{"id":"ada"}"#));
    assert_eq!(continuity(&server.ask(&of("ada", "pid", ""))), "bound");
}

#[test]
fn sessions_outlive_their_server_and_those_that_insisted_are_told_of_their_loss() {
    let mut server = stateful("size = 1", "").serve();
    server.ask(&of("hint", "note", r#"["colour","red"]"#));
    let strict = |function: &str, body: &str| {
        of("strict", function, body).header("Ostler-Affinity", "strict_queue")
    };
    assert_eq!(server.ask(&strict("remember", "[1]")).status, 200);
    server.signal(Signal::TERM);
    assert!(server.ended().success());

    let site = std::mem::replace(&mut server.site, Site::new());
    let server = site.serve();
    let kept = server.ask(&get("/api/sessions/hint")).json();
    assert_eq!(kept["metadata"], json!({ "colour": "red" }));
    let hint = server.ask(&of("hint", "pid", ""));
    assert_eq!(continuity(&hint), "bound");
    server.ask(&strict("recall", "")).problem(409, "session_worker_lost");
    assert_eq!(continuity(&server.ask(&strict("recall", ""))), "bound");
}
