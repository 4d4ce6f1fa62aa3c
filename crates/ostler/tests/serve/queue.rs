//! Pools with more to do than they can: who may wait, and what answers meanwhile.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::http::{Sent, get, post};
use super::server::{Server, Site, until};

const GREET: &str = "/api/pools/work/call/greet";
const HOLD: &str = "/api/pools/work/call/hold";

fn held(server: &Server) -> Sent {
    let sent = post(HOLD, r#"["held"]"#).send(server.address);
    until("it runs", || server.site.lines("begun").len() == 1);
    sent
}

#[test]
fn a_deadline_that_cannot_be_met_is_refused_at_once_where_the_pool_says_so() {
    let server = Site::configured("", "admission = \"deadline\"\nprefetch = 0").serve();
    let nap = server.ask(&post("/api/pools/work/call/nap", "[0.8]"));
    assert_eq!(nap.status, 200, "now the pool knows how long its calls take");
    let mut held = held(&server);

    let answer = server.ask(&post(GREET, "").header("Ostler-Timeout", "50ms"));
    let problem = answer.problem(503, "deadline_unreachable");
    assert_eq!((&problem["retryable"], &problem["started"]), (&true.into(), &false.into()));
    assert_eq!(problem["queued"], 0);
    assert!(problem["estimate_seconds"].as_f64().is_some_and(|s| s > 0.05), "{problem}");
    assert!(answer.header("retry-after").is_some());

    let mut patient = post(GREET, "").header("Ostler-Timeout", "1h").send(server.address);
    until("one that has time waits", || server.pool()["queue_length"] == 1);
    server.site.give("go");
    assert_eq!((held.answer().status, patient.answer().status), (200, 200));
}

/// This test alone needs more descriptors than a process may have at first.
fn want_descriptors(number: u64) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < number) {
        let wanted = Rlimit { current: Some(number), maximum: limit.maximum };
        setrlimit(Resource::Nofile, wanted).expect("the hard limit allows it");
    }
}

#[test]
fn everything_but_calls_answers_while_a_thousand_are_queued() {
    want_descriptors(4096);
    let settings =
        "prefetch = 0\nqueue_max = 1000\nqueue_timeout = \"10m\"\nrequest_timeout = \"10m\"";
    let server = Site::configured("", settings).serve();
    let mut held = held(&server);
    let mut crowd: Vec<Sent> = (0..1000).map(|_| post(GREET, "").send(server.address)).collect();
    until("all of them wait", || server.pool()["queue_length"] == 1000);

    for path in [
        "/livez",
        "/readyz",
        "/metrics",
        "/openapi.json",
        "/docs",
        "/api/stats",
        "/api/pools",
        "/api/workers",
        "/api/workers/work-1/transitions",
        "/api/workers/work-1/logs",
        "/api/events?follow=false",
    ] {
        assert_eq!(server.ask(&get(path)).status, 200, "{path}");
    }
    let pending = server.ask(&get("/api/requests?state=PENDING&limit=1000")).json();
    assert_eq!(pending["items"].as_array().map(Vec::len), Some(1000));
    let problem = server.ask(&post(GREET, "")).problem(503, "pool_saturated");
    assert_eq!((&problem["queued"], &problem["busy"]), (&1000.into(), &1.into()));

    server.site.give("go");
    assert_eq!(held.answer().status, 200);
    for sent in &mut crowd {
        assert_eq!(sent.answer().text(), r#""hello, world""#);
    }
}
