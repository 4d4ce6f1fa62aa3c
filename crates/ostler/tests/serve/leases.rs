//! Leases over HTTP: places held for several calls, and how they come back.

use serde_json::{Value, json};

use super::http::{Request, get, post, request};
use super::server::{Server, Site, until};

fn lending(size: u32, settings: &str) -> Server {
    let table = "[pools.state]\npython = \"stateful.py\"\n";
    let site = Site::with_pools(&format!("{table}size = {size}\n{settings}\n"));
    let functions = include_str!("stateful.py");
    std::fs::write(site.path().join("stateful.py"), functions).expect("written");
    site.serve()
}

const LEASES: &str = "/api/pools/state/leases";

fn lease(server: &Server, order: &str) -> Value {
    let granted = server.ask(&post(LEASES, order));
    assert_eq!(granted.status, 201, "{}", granted.text());
    let lease = granted.json();
    let id = lease["id"].as_str().expect("an id");
    assert_eq!(granted.header("location"), Some(&*format!("/api/leases/{id}")));
    lease
}

fn on(lease: &Value, function: &str, body: &str) -> Request {
    let id = lease["id"].as_str().expect("an id");
    post(&format!("/api/leases/{id}/call/{function}"), body)
}

fn about(lease: &Value, method: &str, rest: &str) -> Request {
    let id = lease["id"].as_str().expect("an id");
    request(method, &format!("/api/leases/{id}{rest}"))
}

fn give_back(server: &Server, lease: &Value, rest: &str) {
    let head = about(lease, "DELETE", rest).send(server.address).head();
    assert_eq!(head.status, 204);
}

fn held(server: &Server) -> usize {
    server.ask(&get(LEASES)).json()["items"].as_array().map_or(0, Vec::len)
}

#[test]
fn a_held_place_serves_its_holder_and_nobody_else() {
    let server = lending(2, "");
    let mine = lease(&server, "");
    let worker = mine["workers"][0].as_str().expect("a worker");
    let remembered = server.ask(&on(&mine, "remember", "[7]"));
    assert_eq!(remembered.header("ostler-worker"), Some(worker));
    assert_eq!(server.ask(&on(&mine, "recall", "")).json(), 7);
    for _ in 0..8 {
        let other = server.ask(&post("/api/pools/state/call/pid", ""));
        assert_ne!(other.header("ostler-worker"), Some(worker));
    }
    let chunks = on(&mine, "pids", "[2]").header("Accept", "application/x-ndjson");
    assert_eq!(server.ask(&chunks).text().lines().count(), 3);
    assert_eq!(held(&server), 1);
    assert_eq!(server.ask(&about(&mine, "GET", "")).json()["workers"], mine["workers"]);

    give_back(&server, &mine, "");
    let gone = server.ask(&on(&mine, "pid", "")).problem(404, "lease_not_found");
    assert_eq!(gone["ended"], "released");
    assert_eq!(held(&server), 0);
    server.ask(&get("/api/leases/l_0")).problem(404, "lease_not_found");
}

#[test]
fn several_places_are_granted_together_and_called_by_their_index() {
    let server = lending(2, "");
    let both = lease(&server, r#"{"workers":2,"ttl":"5m"}"#);
    let names: Vec<&str> =
        both["workers"].as_array().unwrap().iter().flat_map(Value::as_str).collect();
    assert!(names.len() == 2 && names[0] != names[1], "{both}");
    for (place, name) in names.iter().enumerate() {
        let answer = server.ask(&on(&both, &format!("pid?place={place}"), ""));
        assert_eq!(answer.header("ostler-worker"), Some(*name));
    }
    server.ask(&on(&both, "pid?place=2", "")).problem(422, "validation");
    let third = r#"{"timeout":"20ms"}"#;
    server.ask(&post(LEASES, third)).problem(503, "lease_timeout");
    server.ask(&post(LEASES, r#"{"workers":3}"#)).problem(422, "too_many_workers");
}

#[test]
fn a_lease_comes_back_by_itself_and_says_so() {
    let server = lending(1, "");
    let short = lease(&server, r#"{"ttl":"300ms"}"#);
    // Waits for the place, which comes when the time is up.
    let other = server.ask(&post("/api/pools/state/call/pid", ""));
    assert_eq!(other.status, 200, "{}", other.text());
    let gone =
        server.ask(&about(&short, "POST", "/renew").body("")).problem(404, "lease_not_found");
    assert_eq!(gone["ended"], "expired");
}

#[test]
fn a_renewed_lease_lasts_from_then_on() {
    let server = lending(1, "");
    let mine = lease(&server, r#"{"ttl":5}"#);
    let renewed = server.ask(&about(&mine, "POST", "/renew").body(r#"{"ttl":"1h"}"#));
    assert_eq!(renewed.status, 200, "{}", renewed.text());
    let (before, after) = (&mine["expires_at"], &renewed.json()["expires_at"]);
    assert!(before.as_str() < after.as_str(), "{before} {after}");
    for order in [r#"{"ttl":"61m"}"#, r#"{"ttl":0}"#, r#"{"tll":1}"#] {
        let wrong = about(&mine, "POST", "/renew").body(order);
        server.ask(&wrong).problem(422, "validation");
    }
    assert_eq!(server.ask(&on(&mine, "pid", "")).status, 200);
}

#[test]
fn closing_a_lease_has_its_worker_replaced_and_other_ends_do_not() {
    let server = lending(1, "");
    let pid = || server.ask(&post("/api/pools/state/call/pid", "")).json();
    let first = pid();
    for end in ["?outcome=ok", "?outcome=error"] {
        give_back(&server, &lease(&server, ""), end);
        assert_eq!(pid(), first);
    }
    let wrong = lease(&server, "");
    server.ask(&about(&wrong, "DELETE", "?outcome=well")).problem(422, "validation");
    let said = about(&wrong, "DELETE", "").body(r#"{"outcome":"close"}"#);
    assert_eq!(said.send(server.address).head().status, 204);
    assert_ne!(pid(), first);
}

#[test]
fn a_lease_whose_worker_dies_is_lost() {
    let server = lending(1, "");
    let mine = lease(&server, "");
    server.ask(&on(&mine, "die", "")).problem(502, "worker_crashed");
    until("the lease is gone", || server.ask(&about(&mine, "GET", "")).status == 404);
    let gone = server.ask(&about(&mine, "GET", "")).problem(404, "lease_not_found");
    assert_eq!(gone["ended"], "lost");
}

#[test]
fn a_client_that_goes_away_while_it_waits_holds_nothing() {
    let server = lending(1, "");
    let mine = lease(&server, "");
    let waiting = post(LEASES, r#"{"timeout":"1h"}"#).send(server.address);
    let leases = || server.ask(&get("/api/pools/state")).json()["leases"].clone();
    until("it waits", || leases() == json!(2));
    drop(waiting);
    until("it waits no longer", || leases() == json!(1));
    give_back(&server, &mine, "");
    assert_eq!(server.ask(&post("/api/pools/state/call/pid", "")).status, 200);
}

#[test]
fn workers_of_a_keyed_pool_are_not_lent() {
    let table = "[pools.state]\npython = \"stateful.py\"\nkey = \"session\"\nmax = 1\n";
    let site = Site::with_pools(table);
    std::fs::write(site.path().join("stateful.py"), include_str!("stateful.py")).expect("written");
    let server = site.serve();
    server.ask(&post(LEASES, "")).problem(409, "not_in_keyed_pool");
}
