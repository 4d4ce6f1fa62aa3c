//! Requests that are given up: by their id, wherever they are, and by clients that leave.

use serde_json::{Value, json};

use super::http::{Answer, Sent, get, post, request};
use super::server::{Server, Site, until};
use super::sse::Stream;

const GREET: &str = "/api/pools/work/call/greet";
const HOLD: &str = "/api/pools/work/call/hold";
const COUNT: &str = "/api/pools/work/call/count";

/// A call under an id of its own, which is its argument too.
fn hold(server: &Server, id: &str) -> Sent {
    let call = post(HOLD, &json!([id]).to_string()).header("Ostler-Request-Id", id);
    call.send(server.address)
}

fn held(server: &Server, id: &str) -> Sent {
    let sent = hold(server, id);
    until("it runs", || server.site.lines("begun").iter().any(|line| line == id));
    sent
}

fn cancel(server: &Server, id: &str) -> Answer {
    server.ask(&request("POST", &format!("/api/requests/{id}/cancel")).body(""))
}

fn request_of(server: &Server, id: &str) -> Value {
    server.ask(&get(&format!("/api/requests/{id}"))).json()
}

fn states(request: &Value) -> Vec<&str> {
    let history = request["state_history"].as_array().expect("a list");
    history.iter().map(|step| step["state"].as_str().expect("a state")).collect()
}

/// Cancels `waits`, which waits behind `held`: its caller is told at once, and it never runs.
fn cancelled_while_it_waits(server: &Server, mut held: Sent, mut waits: Sent) {
    assert_eq!(request_of(server, "waits")["state"], "PENDING");
    let answer = cancel(server, "waits");
    assert_eq!((answer.status, &answer.json()["state"]), (202, &"CANCELLED".into()));
    waits.answer().problem(499, "cancelled");
    let ended = request_of(server, "waits");
    assert_eq!(states(&ended), ["PENDING", "CANCELLED"]);
    assert_eq!((&ended["code"], &ended["started_at"]), (&"cancelled".into(), &Value::Null));
    cancel(server, "waits").problem(409, "request_ended");

    server.site.give("go");
    assert_eq!(held.answer().text(), r#""held""#);
    assert_eq!(server.ask(&post(GREET, "")).status, 200);
    assert_eq!(server.site.lines("begun"), ["held"]);
    assert_eq!(server.pool()["workers"][0]["generation"], 1);
}

#[test]
fn a_queued_request_is_cancelled_by_its_id() {
    let server = Site::configured("", "prefetch = 0").serve();
    let held = held(&server, "held");
    let waits = hold(&server, "waits");
    until("it is queued", || server.pool()["queue_length"] == 1);
    cancelled_while_it_waits(&server, held, waits);
}

#[test]
fn a_request_in_a_workers_stream_is_cancelled_by_its_id() {
    let server = Site::new().serve();
    let prefetched = || server.pool()["requests"]["prefetched"].as_u64().expect("a number");
    // Its worker has to show that calls are short before others are sent ahead.
    until("calls are sent ahead", || {
        let mut burst = [(); 8].map(|()| post(GREET, "").send(server.address));
        assert!(burst.iter_mut().all(|sent| sent.answer().status == 200));
        prefetched() > 0
    });
    let before = prefetched();
    let held = held(&server, "held");
    let waits = hold(&server, "waits");
    until("it is sent ahead", || prefetched() == before + 1);
    cancelled_while_it_waits(&server, held, waits);
}

#[test]
fn a_running_request_is_cancelled_by_its_id_and_its_function_hears_of_it() {
    let server = Site::new().serve();
    let mut sent = held(&server, "mine");
    assert_eq!(cancel(&server, "mine").status, 202);
    let problem = sent.answer().problem(499, "cancelled");
    assert_eq!(problem["started"], true);
    assert_eq!(states(&request_of(&server, "mine")), ["PENDING", "PROCESSING", "CANCELLED"]);
    until("the function hears of it", || server.site.lines("interrupted").len() == 1);
    assert_eq!(server.ask(&post(GREET, "")).status, 200);
    assert_eq!(server.pool()["workers"][0]["generation"], 1);
}

#[test]
fn a_streaming_request_is_cancelled_by_its_id_and_its_stream_says_so() {
    let server = Site::new().serve();
    let many = post(COUNT, "[1000000000]").header("Ostler-Request-Id", "mine");
    let mut stream = Stream::open(&server, &many.header("Accept", "text/event-stream"));
    assert_eq!(stream.next(), Some(("message".to_owned(), 0.into())));
    assert_eq!(request_of(&server, "mine")["state"], "STREAMING");
    assert_eq!(cancel(&server, "mine").status, 202);
    assert_eq!(stream.until("cancelled")["started"], true);
    assert!(stream.next().is_none(), "there is one end");
    let ended = request_of(&server, "mine");
    assert_eq!(states(&ended), ["PENDING", "PROCESSING", "STREAMING", "CANCELLED"]);
    assert!(ended["chunks"].as_u64().is_some_and(|chunks| chunks > 0), "{ended}");
    assert_eq!(server.ask(&post(GREET, "")).status, 200);
    assert_eq!(server.pool()["workers"][0]["generation"], 1);
}

#[test]
fn a_cancelled_stream_of_lines_says_so_too() {
    let server = Site::new().serve();
    let many = post(COUNT, "[1000000000]").header("Ostler-Request-Id", "mine");
    let mut sent = many.header("Accept", "application/x-ndjson").send(server.address);
    assert_eq!(sent.head().status, 200);
    sent.chunk().expect("it streams");
    assert_eq!(cancel(&server, "mine").status, 202);
    let rest: Vec<u8> = std::iter::from_fn(|| sent.chunk()).flatten().collect();
    let rest = String::from_utf8(rest).expect("text");
    let last: Value = serde_json::from_str(rest.lines().last().expect("an end")).expect("JSON");
    assert_eq!(last, json!({ "type": "cancelled", "data": { "started": true } }));
}

/// Whether the server's end of a client's connection is still there.
fn is_connected(server: &Server, port: u16) -> bool {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("a table");
    let ends = format!(":{:04X} 0100007F:{port:04X} ", server.address.port());
    // 06 is what the kernel alone still remembers.
    table
        .lines()
        .any(|line| line.split_once(&ends).is_some_and(|(_, rest)| !rest.starts_with("06")))
}

#[test]
fn a_call_whose_client_leaves_goes_on_where_the_pool_says_so() {
    let server = Site::configured("", "on_disconnect = \"continue\"").serve();
    let sent = held(&server, "left");
    let port = sent.port();
    assert!(is_connected(&server, port));
    drop(sent);
    until("the server has seen it leave", || !is_connected(&server, port));
    assert_eq!(request_of(&server, "left")["state"], "PROCESSING");
    server.site.give("go");
    until("it is done", || request_of(&server, "left")["state"] == "COMPLETE");
    assert!(server.site.lines("interrupted").is_empty());
}

#[test]
fn a_queued_call_whose_client_leaves_runs_all_the_same_where_the_pool_says_so() {
    let server = Site::configured("", "on_disconnect = \"continue\"\nprefetch = 0").serve();
    let mut held = held(&server, "held");
    let waits = hold(&server, "waits");
    until("it is queued", || server.pool()["queue_length"] == 1);
    let port = waits.port();
    drop(waits);
    until("the server has seen it leave", || !is_connected(&server, port));
    server.site.give("go");
    assert_eq!(held.answer().status, 200);
    until("it is done", || request_of(&server, "waits")["state"] == "COMPLETE");
    assert_eq!(server.site.lines("begun"), ["held", "waits"]);
}

#[test]
fn of_two_requests_under_one_id_the_one_that_lives_is_cancelled() {
    let pools = "[pools.other]\npython = \"work.py\"\nsize = 1\n[pools.work]\npython = \"work.py\"\nsize = 1\n";
    let server = Site::with_pools(pools).serve();
    let same = |path: &str, body: &str| post(path, body).header("Ostler-Request-Id", "same");
    assert_eq!(server.ask(&same("/api/pools/other/call/greet", "")).status, 200);
    let mut held = held(&server, "same");
    assert_eq!(request_of(&server, "same")["state"], "PROCESSING");
    assert_eq!(cancel(&server, "same").status, 202);
    held.answer().problem(499, "cancelled");
}
