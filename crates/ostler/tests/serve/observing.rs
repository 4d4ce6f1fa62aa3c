//! What the server tells about itself: requests, workers, events, logs, metrics, its own API.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::http::{Sent, get, post, request};
use super::server::{Server, Site, until};
use super::sse::Stream;

const GREET: &str = "/api/pools/work/call/greet";
const HOLD: &str = "/api/pools/work/call/hold";

fn ask(server: &Server, path: &str) -> Value {
    let answer = server.ask(&get(path));
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer.json()
}

/// A call that runs and waits for its sign.
fn held(server: &Server, id: &str) -> Sent {
    let body = format!(r#"["{id}"]"#);
    let sent = post(HOLD, &body).header("Ostler-Request-Id", id).send(server.address);
    until("it runs", || server.site.lines("begun").iter().any(|line| line == id));
    sent
}

fn states(request: &Value) -> Vec<&str> {
    let history = request["state_history"].as_array().expect("a list");
    history.iter().map(|step| step["state"].as_str().expect("a state")).collect()
}

#[test]
fn a_request_is_found_by_the_id_that_its_answer_carried() {
    let server = Site::new().serve();
    let answer = server.ask(&post(GREET, ""));
    let id = answer.header("ostler-request-id").expect("an id").to_owned();
    let request = ask(&server, &format!("/api/requests/{id}"));
    assert_eq!((&request["id"], &request["state"]), (&id.into(), &"COMPLETE".into()));
    assert_eq!(request["worker"].as_str(), answer.header("ostler-worker"));
    assert_eq!(states(&request), ["PENDING", "PROCESSING", "COMPLETE"]);
    server.ask(&get("/api/requests/nobody")).problem(404, "request_not_found");
}

#[test]
fn a_running_request_is_seen_and_cancelled_by_its_id() {
    let server = Site::new().serve();
    let mut sent = held(&server, "mine");
    let running = ask(&server, "/api/requests/mine");
    assert_eq!((&running["state"], &running["ended_at"]), (&"PROCESSING".into(), &Value::Null));
    let worker = &ask(&server, "/api/workers")["items"][0];
    assert_eq!(worker["current_requests"], serde_json::json!(["mine"]));

    let cancel = request("POST", "/api/requests/mine/cancel").body("");
    let cancelled = server.ask(&cancel);
    assert_eq!(cancelled.status, 202, "{}", cancelled.text());
    sent.answer().problem(499, "cancelled");
    let problem = server.ask(&cancel).problem(409, "request_ended");
    assert_eq!(problem["state"], "CANCELLED");
    let nobody = request("POST", "/api/requests/nobody/cancel").body("");
    server.ask(&nobody).problem(404, "request_not_found");
}

#[test]
fn requests_are_listed_by_page_and_filtered() {
    let server = Site::new().serve();
    for n in 0..5 {
        let id = format!("r{n}");
        let answer = server.ask(&post(GREET, "").header("Ostler-Request-Id", &id));
        assert_eq!(answer.status, 200);
    }
    server.ask(&post("/api/pools/work/call/fail", "")).problem(500, "application_error");
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = ask(&server, &format!("/api/requests?function=greet&limit=2{cursor}"));
        let items = page["items"].as_array().expect("a list");
        seen.extend(items.iter().map(|item| item["id"].as_str().expect("an id").to_owned()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(seen, ["r4", "r3", "r2", "r1", "r0"]);
    let failed = ask(&server, "/api/requests?state=ERROR&pool=work");
    assert_eq!(failed["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(failed["items"][0]["code"], "application_error");
}

#[test]
fn a_parameter_that_nobody_knows_is_refused() {
    let server = Site::new().serve();
    for path in [
        "/api/requests?stat=ERROR",
        "/api/requests?state=BAD",
        "/api/requests?cursor=x",
        "/api/workers?phase=sleepy",
        "/api/workers?limit=0",
        "/api/workers/work-1?x=1",
        "/api/workers/work-1/logs?tail=3",
        "/api/events?kind=worker.redy",
        "/api/pools?x",
        "/api/stats?verbose=1",
        "/api/events?kind=",
        "/readyz?verbose",
        "/metrics?pool=work",
    ] {
        let answer = server.ask(&get(path));
        assert_eq!(answer.status, 422, "{path}: {}", answer.text());
        answer.problem(422, "validation");
    }
    server.ask(&post("/api/pools/work/call/greet?name=Ada", "")).problem(422, "validation");
    server.ask(&get("/api/workers?pool=other")).problem(404, "pool_not_found");
    server.ask(&get("/api/events?pool=other")).problem(404, "pool_not_found");
}

#[test]
fn a_worker_is_found_by_id_and_by_name_and_tells_its_way() {
    let server = Site::new().serve();
    assert_eq!(server.ask(&post(GREET, "")).status, 200);
    let by_name = ask(&server, "/api/workers/work-1");
    let id = by_name["id"].as_str().expect("an id");
    assert!(id.starts_with("w_"), "{id}");
    assert_eq!(ask(&server, &format!("/api/workers/{id}"))["name"], "work-1");
    assert_eq!(by_name["workspace_id"], "default");
    assert_eq!((&by_name["sessions"], &by_name["taint"]), (&json!([]), &false.into()));
    assert_eq!((&by_name["metadata"], &by_name["connection"]), (&json!({}), &"connected".into()));
    assert_eq!(by_name["pgid"], by_name["pid"], "a worker leads a group of its own");
    server.ask(&get("/api/workers/work-99")).problem(404, "worker_not_found");

    let way = ask(&server, &format!("/api/workers/{id}/transitions"));
    let rows = way["items"].as_array().expect("a list");
    let members =
        ["seq", "from", "to", "trigger", "reason", "actor", "request_id", "at", "metadata"];
    for row in rows {
        assert!(members.iter().all(|member| row.get(member).is_some()), "{row}");
    }
    assert_eq!((&rows[1]["seq"], &rows[1]["actor"]), (&2.into(), &"system".into()));
    let steps = rows.iter();
    let steps: Vec<_> = steps.map(|step| step["to"].as_str().expect("a state")).collect();
    assert_eq!(steps, ["IDLE", "RUNNING", "starting", "ready"]);
}

#[test]
fn the_words_of_a_dead_process_are_kept() {
    let server = Site::new().serve();
    server.ask(&post("/api/pools/work/call/die", "")).problem(502, "worker_crashed");
    let logs = ask(&server, "/api/workers/work-1/logs");
    let lines = logs["items"].as_array().expect("a list");
    let last = lines.iter().find(|line| line["text"] == "last words").expect("kept");
    assert_eq!((&last["stream"], &last["generation"]), (&"stderr".into(), &1.into()));
    let mut following = Stream::open(&server, &get("/api/workers/work-1/logs?follow=true"));
    assert_eq!(following.until("line")["number"], lines[0]["number"]);
}

#[test]
fn events_are_followed_live_and_resumed_by_their_ids() {
    let server = Site::new().serve();
    let mut events = Stream::open(&server, &get("/api/events?after=0"));
    let ready = events.until("pool.ready");
    server.ask(&post("/api/pools/work/call/die", "")).problem(502, "worker_crashed");
    let crashed = events.until("worker.crashed");
    assert_eq!((&crashed["worker"], &crashed["reason"]), (&"work-1".into(), &"exit".into()));
    assert_eq!(crashed["detail"]["stderr"], serde_json::json!(["last words"]));

    let last = ready["seq"].to_string();
    let resumed = get("/api/events?kind=worker.crashed").header("Last-Event-ID", &last);
    let mut resumed = Stream::open(&server, &resumed);
    assert_eq!(resumed.until("worker.crashed")["seq"], crashed["seq"]);
}

#[test]
fn plain_successes_are_told_to_those_who_ask() {
    let server = Site::new().serve();
    let mut all = Stream::open(&server, &get("/api/events?kind=request.completed"));
    let mut rare = Stream::open(&server, &get("/api/events?kind=request"));
    let greet = post(GREET, "").header("Ostler-Request-Id", "told");
    assert_eq!(server.ask(&greet).status, 200);
    assert_eq!(all.until("request.completed")["request_id"], "told");
    server.ask(&post("/api/pools/work/call/fail", "")).problem(500, "application_error");
    let (kind, _) = rare.next().expect("an event");
    assert_eq!(kind, "request.failed", "the success before it is not told here");
}

#[test]
fn open_streams_end_with_the_server() {
    let mut server = Site::new().serve();
    assert_eq!(server.ask(&post(GREET, "")).status, 200, "its worker is there");
    let mut events = Stream::open(&server, &get("/api/events"));
    let mut logs = Stream::open(&server, &get("/api/workers/work-1/logs?follow=true"));
    server.signal(Signal::TERM);
    events.until("pool.stopped");
    assert!(events.next().is_none());
    while logs.next().is_some() {}
    assert_eq!(server.ended().code(), Some(0));
}

#[test]
fn metrics_count_what_happened() {
    let server = Site::new().serve();
    assert_eq!(server.ask(&post(GREET, "")).status, 200);
    server.ask(&post("/api/pools/work/call/fail", "")).problem(500, "application_error");
    let answer = server.ask(&get("/metrics"));
    assert!(answer.header("content-type").is_some_and(|kind| kind.starts_with("text/plain")));
    let text = answer.text();
    for line in [
        "# TYPE ostler_requests_total counter",
        "ostler_requests_total{pool=\"work\",code=\"ok\"} 1",
        "ostler_requests_total{pool=\"work\",code=\"application_error\"} 1",
        "ostler_queue_wait_seconds_count{pool=\"work\"} 2",
        "ostler_pool_lifecycle{pool=\"work\",lifecycle=\"running\"} 1",
        "ostler_phase_transitions_total{pool=\"work\",from=\"starting\",to=\"ready\"} 1",
    ] {
        assert!(text.lines().any(|known| known == line), "{line} is not in\n{text}");
    }
    let families = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let mut names: Vec<&str> = families.filter_map(|line| line.split(' ').next()).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "each family once");
    assert!(names.iter().all(|name| name.starts_with("ostler_")), "{names:?}");
}

#[test]
fn the_api_is_described_with_the_functions_of_the_pools() {
    let server = Site::new().serve();
    assert_eq!(server.ask(&post(GREET, "")).status, 200);
    let api = ask(&server, "/openapi.json");
    assert!(api["openapi"].as_str().is_some_and(|version| version.starts_with("3.1")));
    let add = &api["paths"]["/api/pools/work/call/add"]["post"];
    let schema = &add["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(schema["properties"]["a"]["type"], "integer", "{add}");
    for (path, methods) in api["paths"].as_object().expect("paths") {
        if methods.get("get").is_some() && !path.contains('{') && path != "/api/events" {
            assert_eq!(server.ask(&get(path)).status, 200, "{path} is described and not there");
        }
    }
    let page = server.ask(&get("/docs"));
    assert!(page.text().contains("openapi.json"));
    assert!(page.header("content-security-policy").is_some());
}
