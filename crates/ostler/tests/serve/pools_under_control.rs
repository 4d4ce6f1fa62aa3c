//! Pools that are held, emptied, resized, renewed and reloaded while they serve.

use serde_json::{Value, json};

use super::http::{Answer, get, post, request};
use super::server::{Server, Site, until};

const GREET: &str = "/api/pools/work/call/greet";
const HOLD: &str = "/api/pools/work/call/hold";

fn order(server: &Server, what: &str) -> Answer {
    server.ask(&post(&format!("/api/pools/work/{what}"), ""))
}

fn ordered(server: &Server, what: &str, body: &str) -> Value {
    let answer = server.ask(&post(&format!("/api/pools/work/{what}"), body));
    assert!((200..300).contains(&answer.status), "{what}: {}", answer.text());
    answer.json()
}

fn workers(server: &Server) -> Vec<(String, u64)> {
    let all = server.ask(&get("/api/workers?pool=work&phase=ready")).json();
    let all = all["items"].as_array().expect("a list");
    let name = |worker: &Value| worker["name"].as_str().expect("a name").to_owned();
    all.iter().map(|worker| (name(worker), worker["edition"].as_u64().expect("one"))).collect()
}

#[test]
fn a_paused_pool_lets_calls_wait_until_it_is_resumed() {
    let server = Site::new().serve();
    assert_eq!(server.ask(&post(GREET, "")).status, 200);
    assert_eq!(ordered(&server, "pause", "")["paused"], true);
    let mut waits = post(GREET, "").send(server.address);
    until("it waits", || server.pool()["queue_length"] == 1);
    assert_eq!(ordered(&server, "pause", "")["paused"], true, "once more changes nothing");
    assert_eq!(ordered(&server, "resume", "")["paused"], false);
    assert_eq!(waits.answer().status, 200);
}

#[test]
fn a_drained_pool_serves_those_inside_and_lets_nobody_in() {
    let server = Site::new().serve();
    let mut inside = post(HOLD, r#"["inside"]"#).send(server.address);
    until("it runs", || server.site.lines("begun").len() == 1);
    let draining = ordered(&server, "drain", "");
    assert_eq!((&draining["lifecycle"], &draining["drained"]), (&"draining".into(), &false.into()));
    let refused = server.ask(&post(GREET, ""));
    assert!(refused.header("retry-after").is_some());
    refused.problem(503, "pool_draining");
    server.site.give("go");
    assert_eq!(inside.answer().status, 200);
    until("nobody is left", || server.pool()["drained"] == true);
    assert_eq!(ordered(&server, "resume", "")["lifecycle"], "running");
    assert_eq!(server.ask(&post(GREET, "")).status, 200);
}

#[test]
fn a_pool_is_resized_while_it_runs() {
    let server = Site::new().serve();
    until("it has its worker", || workers(&server).len() == 1);
    let scaled = ordered(&server, "scale", r#"{"size":3}"#);
    assert_eq!((&scaled["min"], &scaled["max"]), (&3.into(), &3.into()));
    until("it has three", || workers(&server).len() == 3);
    let scaled = ordered(&server, "scale", r#"{"min":1,"max":1}"#);
    assert_eq!(scaled["size"], 1);
    until("it has one", || server.pool()["workers"].as_array().map(Vec::len) == Some(1));
    assert_eq!(server.ask(&post(GREET, "")).status, 200);
    for wrong in [r#"{"size":0}"#, r#"{"min":2,"max":1}"#, r#"{"size":1,"max":2}"#, "{}", "[1]"] {
        let path = "/api/pools/work/scale";
        server.ask(&post(path, wrong)).problem(422, "validation");
    }
    server.ask(&post("/api/pools/nobody/scale", r#"{"size":1}"#)).problem(404, "pool_not_found");
    order(&server, "shrink").problem(404, "not_found");
}

#[test]
fn a_recycled_pool_gets_other_workers_without_a_lost_call() {
    let server = Site::configured("", "").serve();
    until("it has its worker", || workers(&server).len() == 1);
    let before = workers(&server);
    let answer = order(&server, "recycle");
    assert_eq!(answer.status, 202, "{}", answer.text());
    assert_eq!(answer.json(), json!({ "pool": "work", "workers": [before[0].0] }));
    until("another is there instead", || {
        assert_eq!(server.ask(&post(GREET, "")).status, 200);
        let now = workers(&server);
        now.len() == 1 && now != before
    });
    let metrics = server.ask(&get("/metrics")).text();
    let counted = "ostler_worker_retirements_total{pool=\"work\",reason=\"ordered\"} 1\n";
    assert!(metrics.contains(counted), "{metrics}");

    let (name, _) = workers(&server).remove(0);
    let recycle = request("POST", &format!("/api/supervisor/workers/{name}/recycle")).body("");
    let answer = server.ask(&recycle);
    assert_eq!(answer.status, 202, "{}", answer.text());
    assert_eq!(answer.json()["name"], *name);
    until("it is gone", || {
        assert_eq!(server.ask(&post(GREET, "")).status, 200);
        !workers(&server).iter().any(|(known, _)| *known == name)
    });
    let nobody = request("POST", "/api/supervisor/workers/work-99/recycle").body("");
    server.ask(&nobody).problem(404, "worker_not_found");
}

fn rewrite(server: &Server, file: &str, from: &str, to: &str) {
    let path = server.site.path().join(file);
    let text = std::fs::read_to_string(&path).expect("read");
    assert!(text.contains(from), "{text}");
    std::fs::write(path, text.replace(from, to)).expect("written");
}

#[test]
fn a_reload_takes_over_what_has_proved_itself_and_nothing_else() {
    let server = Site::configured("", "").serve();
    assert_eq!(server.ask(&post(GREET, "")).json(), "hello, world");
    let reload = || server.ask(&post("/api/reload", ""));

    rewrite(&server, "ostler.toml", "size = 1", "size = 1\nmax_requests = 1000");
    rewrite(&server, "work.py", "hello, ", "goodbye, ");
    let done = reload();
    assert_eq!(done.status, 200, "{}", done.text());
    let change = &done.json()["changes"][0];
    assert_eq!((&change["pool"], &change["what"]), (&"work".into(), &"changed".into()));
    assert_eq!(change["keys"], json!(["max_requests"]));
    until("the new kind serves", || server.ask(&post(GREET, "")).json() == "goodbye, world");

    rewrite(&server, "work.py", "import os", "import os, no_such_module_here");
    rewrite(&server, "ostler.toml", "max_requests = 1000", "max_requests = 2000");
    let problem = reload().problem(409, "reload_failed");
    assert_eq!(problem["pool"], "work");
    let detail = problem["detail"].as_str().expect("a reason");
    assert!(detail.contains("no_such_module_here"), "{detail}");
    rewrite(&server, "ostler.toml", "max_requests", "max_request");
    let problem = reload().problem(422, "invalid_configuration");
    assert!(problem["detail"].as_str().is_some_and(|it| it.contains("max_request")), "{problem}");
    assert_eq!(server.ask(&post(GREET, "")).json(), "goodbye, world");
}

#[test]
fn pools_come_and_go_with_a_reload() {
    let server = Site::configured("", "").serve();
    rewrite(
        &server,
        "ostler.toml",
        "[pools.work]",
        "[pools.more]\npython = \"work.py\"\nsize = 1\n[pools.work]",
    );
    let done = server.ask(&post("/api/reload", ""));
    assert_eq!(done.status, 200, "{}", done.text());
    let more = "/api/pools/more/call/greet";
    assert_eq!(server.ask(&post(more, "")).status, 200);
    let text = std::fs::read_to_string(server.site.path().join("ostler.toml")).expect("read");
    let kept = text.replace("[pools.more]\npython = \"work.py\"\nsize = 1\n", "");
    std::fs::write(server.site.path().join("ostler.toml"), kept).expect("written");
    let done = server.ask(&post("/api/reload", "")).json();
    let removed = done["changes"].as_array().expect("a list").iter();
    let removed: Vec<&Value> = removed.filter(|change| change["what"] == "removed").collect();
    assert_eq!(removed.len(), 1, "{done}");
    server.ask(&post(more, "")).problem(404, "pool_not_found");
    let nobody = post("/api/reload", r#"{"pools":["more"]}"#);
    server.ask(&nobody).problem(404, "pool_not_found");
    assert_eq!(server.ask(&post(GREET, "")).status, 200);
}
