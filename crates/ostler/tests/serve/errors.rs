//! Every error has a status, a code, and what helps.

use std::io::Write;
use std::net::TcpStream;

use super::http::{get, post, request};
use super::server::{Site, until};

const GREET: &str = "/api/pools/work/call/greet";
const HOLD: &str = "/api/pools/work/call/hold";

#[test]
fn what_cannot_be_understood_is_400() {
    let server = Site::new().serve();
    for (name, value) in [
        ("Ostler-Timeout", "soon"),
        ("Ostler-Timeout", "0"),
        ("Ostler-Priority", "200"),
        ("Ostler-Priority", "high"),
        ("Ostler-Idempotent", "perhaps"),
    ] {
        let problem = server.ask(&post(GREET, "").header(name, value)).problem(400, "malformed");
        assert!(problem["detail"].as_str().unwrap().contains(value), "{problem}");
        assert_eq!(problem["retryable"], false);
    }
    server.ask(&post("/api/pools/work/call/gr%zzeet", "")).problem(400, "malformed");
    for path in ["/api/pools/%ff", "/api/workers/%ff", "/api/requests/%ff"] {
        server.ask(&get(path)).problem(400, "malformed");
    }
    for body in ["{", "\u{1}"] {
        server.ask(&post("/api/server/stop", body)).problem(400, "malformed");
    }
    let owner = "x".repeat(129);
    server.ask(&post(GREET, "").header("Ostler-Owner", &owner)).problem(400, "malformed");
    server.ask(&post(GREET, "").header("Ostler-Request-Id", "a b")).problem(400, "malformed");
}

#[test]
fn a_body_that_is_not_json_is_refused_by_name_and_the_worker_lives() {
    let server = Site::new().serve();
    for body in ["{", "nonsense", "[1,", "\u{1}"] {
        let problem = server.ask(&post(GREET, body)).problem(400, "malformed");
        assert_eq!(problem["started"], false, "{body}: {problem}");
    }
    assert_eq!(server.ask(&post(GREET, "")).status, 200);
    assert_eq!(server.pool()["workers"][0]["generation"], 1);
}

#[test]
fn a_foreign_host_or_origin_is_403() {
    let server = Site::new().serve();
    let foreign = post(GREET, "").header("Host", "evil.example");
    server.ask(&foreign).problem(403, "host_not_allowed");
    let page = post(GREET, "").header("Origin", "http://evil.example");
    server.ask(&page).problem(403, "origin_not_allowed");
    let stop = post("/api/server/stop", "").header("Origin", "null");
    server.ask(&stop).problem(403, "origin_not_allowed");
    let own = post(GREET, "").header("Origin", "http://localhost:3000");
    assert_eq!(server.ask(&own).status, 200);
}

#[test]
fn what_is_not_there_is_404_and_what_there_is_is_named() {
    let server = Site::new().serve();
    let problem = server.ask(&post("/api/pools/none/call/f", "")).problem(404, "pool_not_found");
    assert!(problem["detail"].as_str().unwrap().contains("known: work"), "{problem}");
    server.ask(&get("/api/pools/none")).problem(404, "pool_not_found");
    server.ask(&get("/nowhere")).problem(404, "not_found");
    assert_eq!(server.ask(&post(GREET, "")).status, 200);
    let problem =
        server.ask(&post("/api/pools/work/call/grete", "")).problem(404, "function_not_found");
    assert!(problem["detail"].as_str().unwrap().contains("greet"), "{problem}");
}

#[test]
fn a_function_that_is_asked_for_before_the_first_worker_is_ready_is_404_too() {
    let server = Site::new().serve();
    server.ask(&post("/api/pools/work/call/grete", "")).problem(404, "function_not_found");
}

#[test]
fn the_wrong_method_is_405() {
    let server = Site::new().serve();
    for (method, path, allowed) in [
        ("GET", GREET, "POST"),
        ("HEAD", "/api/server/stop", "POST"),
        ("DELETE", "/api/pools", "GET,HEAD"),
        ("PUT", "/api/requests/x/cancel", "POST"),
    ] {
        let mut sent = request(method, path).send(server.address);
        let head = sent.head();
        assert_eq!((head.status, head.header("allow")), (405, Some(allowed)), "{method} {path}");
    }
    server.ask(&get(GREET)).problem(405, "method_not_allowed");
    server.ask(&request("DELETE", "/api/pools")).problem(405, "method_not_allowed");
}

#[test]
fn a_body_over_the_limit_is_413() {
    let server = Site::configured("max_body = \"2 KiB\"", "").serve();
    let large = "x".repeat(4096);
    let problem = server.ask(&post(GREET, &large)).problem(413, "body_too_large");
    assert!(problem["detail"].as_str().unwrap().contains("2048"), "{problem}");
    assert_eq!(server.ask(&post(GREET, "")).status, 200);
}

#[test]
fn arguments_that_do_not_fit_are_422_and_named() {
    let server = Site::new().serve();
    for (body, named) in [(r#"{"nom":"x"}"#, "nom"), (r#"["a","b"]"#, "argument")] {
        let problem = server.ask(&post(GREET, body)).problem(422, "invalid_arguments");
        assert!(problem["detail"].as_str().unwrap().contains(named), "{problem}");
        assert_eq!(problem["started"], false);
    }
    server.ask(&post("/api/server/stop", r#"{"when":"now"}"#)).problem(422, "validation");
}

#[test]
fn an_exception_is_500_with_its_type_and_traceback() {
    let server = Site::new().serve();
    let problem =
        server.ask(&post("/api/pools/work/call/fail", "")).problem(500, "application_error");
    assert_eq!(problem["detail"], "as asked");
    assert_eq!(problem["error_type"], "ValueError");
    let traceback = problem["traceback"].as_str().expect("on loopback there is one");
    assert!(traceback.contains("work.py") && traceback.contains("as asked"), "{traceback}");
    assert_eq!(problem["started"], true);
}

#[test]
fn a_crash_is_502_with_the_exit_and_the_last_words() {
    let server = Site::new().serve();
    let problem = server.ask(&post("/api/pools/work/call/die", "")).problem(502, "worker_crashed");
    assert_eq!(problem["exit"], serde_json::json!({ "class": "exit", "code": 7 }));
    assert_eq!(problem["worker"], "work-1");
    assert_eq!(problem["outcome_unknown"], true);
    assert!(problem["stderr"].as_array().unwrap().contains(&"last words".into()), "{problem}");
    assert_eq!(server.ask(&post(GREET, "")).text(), r#""hello, world""#);
}

#[test]
fn a_full_queue_is_503_with_its_figures_and_when_to_come_back() {
    let server = Site::configured("", "queue_max = 1").serve();
    let mut held = post(HOLD, r#"["held"]"#).send(server.address);
    until("it runs", || server.site.lines("begun").len() == 1);
    let mut waits = post(GREET, "").send(server.address);
    until("the next one waits", || server.pool()["queue_length"] == 1);
    let answer = server.ask(&post(GREET, ""));
    let problem = answer.problem(503, "pool_saturated");
    assert_eq!((&problem["queued"], &problem["busy"]), (&1.into(), &1.into()));
    assert!(problem["oldest_seconds"].is_number(), "{problem}");
    assert_eq!((&problem["retryable"], &problem["started"]), (&true.into(), &false.into()));
    let after = answer.header("retry-after").and_then(|after| after.parse::<u32>().ok());
    assert!(after.is_some_and(|after| after >= 1), "{answer:?}");
    server.site.give("go");
    assert_eq!((held.answer().status, waits.answer().status), (200, 200));
}

#[test]
fn a_wait_that_is_too_long_is_503() {
    let server = Site::configured("", "queue_timeout = \"50 ms\"").serve();
    until("it is ready", || server.ask(&get("/readyz")).status == 200);
    let mut held = post(HOLD, r#"["held"]"#).send(server.address);
    until("it runs", || server.site.lines("begun").len() == 1);
    let problem = server.ask(&post(GREET, "")).problem(503, "queue_timeout");
    assert_eq!((&problem["retryable"], &problem["started"]), (&true.into(), &false.into()));
    server.site.give("go");
    assert_eq!(held.answer().status, 200);
}

#[test]
fn a_deadline_is_504_with_the_phase_that_ran_out() {
    let server = Site::new().serve();
    let held = post(HOLD, r#"["a"]"#).header("Ostler-Timeout", "1s");
    let mut held = held.send(server.address);
    until("it runs", || server.site.lines("begun").len() == 1);
    let waits = server.ask(&post(GREET, "").header("Ostler-Timeout", "50ms"));
    let problem = waits.problem(504, "deadline_exceeded");
    assert_eq!((&problem["phase"], &problem["started"]), (&"queue".into(), &false.into()));
    let problem = held.answer().problem(504, "deadline_exceeded");
    assert_eq!((&problem["phase"], &problem["started"]), (&"running".into(), &true.into()));
    assert_eq!(server.ask(&post(GREET, "")).status, 200);
}

#[test]
fn a_pool_whose_program_is_broken_is_503_with_the_cause() {
    let site = Site::configured("", "restart_max = 1\nbackoff_min = \"1 ms\"");
    std::fs::write(site.path().join("work.py"), "import no_such_module_here\n").unwrap();
    let server = site.serve();
    let answer = server.ask(&post(GREET, ""));
    answer.problem(503, "pool_failed");
    let ready = server.ask(&get("/readyz"));
    assert_eq!(ready.status, 503);
    assert!(ready.text().contains("no_such_module_here"), "{}", ready.text());
}

#[test]
fn something_that_is_not_http_harms_nobody() {
    let server = Site::new().serve();
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.write_all(b"\x16\x03\x01 hello\r\n\r\n").unwrap();
    drop(stream);
    assert_eq!(server.ask(&post(GREET, "")).status, 200);
}
