//! How calls and servers end: a client that leaves, signals, and what is left behind.

use std::os::unix::net::UnixListener;

use rustix::process::Signal;

use super::http::{get, post};
use super::server::{Server, Site, all_gone, until};

const GREET: &str = "/api/pools/work/call/greet";
const HOLD: &str = "/api/pools/work/call/hold";

/// Requests that have not begun, here or in the stream of the worker.
fn waiting(server: &Server) -> u64 {
    let pool = server.pool();
    let queued = pool["queue_length"].as_u64().expect("a number");
    queued + pool["requests"]["prefetched"].as_u64().expect("a number")
}

/// A server whose worker has shown that its calls are short, so that the next ones are sent ahead.
fn ready() -> Server {
    let server = Site::new().serve();
    assert_eq!(server.ask(&post(GREET, "")).status, 200);
    server
}

#[test]
fn a_client_that_leaves_cancels_its_call_and_the_worker_is_kept() {
    let server = ready();
    let sent = post(HOLD, r#"["left"]"#).send(server.address);
    until("it runs", || server.site.lines("begun").len() == 1);
    drop(sent);
    until("the function hears of it", || server.site.lines("interrupted").len() == 1);
    assert_eq!(server.ask(&post(GREET, "")).status, 200);
    assert_eq!(server.pool()["workers"][0]["generation"], 1);
}

#[test]
fn a_client_that_leaves_a_stream_cancels_it() {
    let server = ready();
    let many = post("/api/pools/work/call/count", "[1000000000]");
    let mut sent = many.header("Accept", "text/event-stream").send(server.address);
    assert_eq!(sent.head().status, 200);
    sent.chunk().expect("it streams");
    drop(sent);
    assert_eq!(server.ask(&post(GREET, "")).status, 200);
    assert_eq!(server.pool()["workers"][0]["generation"], 1);
}

#[test]
fn a_client_that_leaves_the_queue_is_not_served() {
    a_client_leaves_the_queue(&Site::new().serve());
}

#[test]
fn a_client_whose_request_lies_in_a_workers_stream_may_leave_too() {
    a_client_leaves_the_queue(&ready());
}

fn a_client_leaves_the_queue(server: &Server) {
    let mut held = post(HOLD, r#"["held"]"#).send(server.address);
    until("it runs", || server.site.lines("begun").len() == 1);
    let resolved = server.pool()["requests"]["resolved"].as_u64().expect("a number");
    let queued = post(HOLD, r#"["left"]"#).send(server.address);
    until("it waits", || waiting(server) == 1);
    drop(queued);
    until("it has left", || server.pool()["requests"]["resolved"] == resolved + 1);
    server.site.give("go");
    assert_eq!(held.answer().status, 200);
    assert_eq!(server.ask(&post(GREET, "")).status, 200);
    assert_eq!(server.site.lines("begun"), ["held"]);
}

#[test]
fn sigterm_lets_what_runs_finish_refuses_what_waits_and_leaves_nothing() {
    sigterm_drains(Site::new().serve());
}

#[test]
fn sigterm_refuses_what_lies_in_a_workers_stream_too() {
    sigterm_drains(ready());
}

fn sigterm_drains(mut server: Server) {
    let mut held = post(HOLD, r#"["held"]"#).send(server.address);
    until("it runs", || server.site.lines("begun").len() == 1);
    let mut queued = post(GREET, "").send(server.address);
    until("it waits", || waiting(&server) == 1);
    let mut open = get("/livez").send(server.address);
    assert_eq!(open.answer().status, 200);
    let family = server.family();
    assert!(family.len() >= 3, "a worker, its shim and the root shim: {family:?}");

    server.signal(Signal::TERM);
    let answer = queued.answer();
    let problem = answer.problem(503, "shutting_down");
    assert_eq!((&problem["retryable"], &problem["started"]), (&true.into(), &false.into()));
    assert!(answer.header("retry-after").is_some());
    open.then(&post(GREET, ""));
    open.answer().problem(503, "shutting_down");
    server.site.give("go");
    let answer = held.answer();
    assert_eq!((answer.status, &*answer.text()), (200, r#""held""#));

    assert_eq!(server.ended().code(), Some(0));
    assert!(!server.site.socket().exists(), "the socket is left");
    all_gone(&family);
}

#[test]
fn a_server_that_drains_takes_no_new_connection_and_says_that_it_is_not_ready() {
    let server = ready();
    let mut held = post(HOLD, r#"["held"]"#).send(server.address);
    until("it runs", || server.site.lines("begun").len() == 1);
    let mut open = get("/livez").send(server.address);
    open.answer();
    server.signal(Signal::TERM);
    until("it is not ready", || {
        open.then(&get("/readyz"));
        open.answer().status == 503
    });
    let mut late = post(GREET, "").send(server.address);
    server.site.give("go");
    assert_eq!(held.answer().status, 200);
    assert!(late.is_over(), "it was served");
}

#[test]
fn a_second_signal_kills_at_once() {
    let mut server = ready();
    let mut held = post(HOLD, r#"["held"]"#).send(server.address);
    until("it runs", || server.site.lines("begun").len() == 1);
    let mut open = get("/livez").send(server.address);
    open.answer();
    let family = server.family();
    server.signal(Signal::TERM);
    until("it drains", || {
        open.then(&get("/readyz"));
        open.answer().status == 503
    });
    server.signal(Signal::INT);
    held.answer().problem(502, "shutting_down");
    assert_eq!(server.ended().code(), Some(0));
    assert!(!server.site.socket().exists(), "the socket is left");
    all_gone(&family);
}

#[test]
fn sigterm_during_the_start_leaves_nothing() {
    let site = Site::new();
    std::fs::write(site.path().join("work.py"), "import time\ntime.sleep(600)\n").unwrap();
    let mut server = site.serve();
    until("a worker starts", || server.family().len() >= 3);
    let family = server.family();
    server.signal(Signal::TERM);
    assert_eq!(server.ended().code(), Some(0));
    all_gone(&family);
}

#[test]
fn kill_9_of_the_server_leaves_no_process() {
    let mut server = ready();
    let _held = post(HOLD, r#"["held"]"#).send(server.address);
    until("it runs", || server.site.lines("begun").len() == 1);
    let family = server.family();
    server.signal(Signal::KILL);
    assert_eq!(server.ended().code(), None);
    all_gone(&family);
}

#[test]
fn a_socket_that_nobody_answers_at_is_replaced() {
    let site = Site::new();
    std::fs::create_dir(site.path().join(".ostler")).unwrap();
    drop(UnixListener::bind(site.socket()).expect("a socket is left"));
    let server = site.serve();
    assert_eq!(server.ask(&post(GREET, "")).status, 200);
    let (code, out, err) = server.site.run(&["call", "work", "greet"]);
    assert_eq!((code, out.trim()), (0, r#""hello, world""#), "{err}");
}

#[test]
fn a_second_server_on_the_same_socket_is_refused_and_the_first_one_serves_on() {
    let server = ready();
    let (code, _, err) =
        server.site.run(&["serve", "work.py", "--size", "1", "--listen", "127.0.0.1:0"]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("answers at") && err.contains("ostler stop"), "{err}");
    assert_eq!(server.site.run(&["call", "work", "greet"]).0, 0);
    assert_eq!(server.ask(&post(GREET, "")).status, 200);
}

#[test]
fn a_second_server_on_the_same_port_is_refused_and_leaves_no_socket() {
    let server = ready();
    let other = Site::new();
    let listen = server.address.to_string();
    let (code, _, err) = other.run(&["serve", "work.py", "--size", "1", "--listen", &listen]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains(&listen), "{err}");
    assert!(!other.socket().exists(), "the socket is left");
}
