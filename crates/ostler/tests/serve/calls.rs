//! Calls that succeed: whole, streamed, raw.

use super::http::{get, post, request};
use super::server::Site;

const GREET: &str = "/api/pools/work/call/greet";
const COUNT: &str = "/api/pools/work/call/count";

#[test]
fn a_call_answers_with_the_result_and_who_made_it() {
    let server = Site::new().serve();
    let answer = server.ask(&post(GREET, r#"{"name": "Ada"}"#));
    assert_eq!((answer.status, &*answer.text()), (200, r#""hello, Ada""#));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("ostler-worker"), Some("work-1"));
    assert!(answer.header("ostler-request-id").is_some_and(|id| id.starts_with("r_")));
}

#[test]
fn every_form_of_arguments_reaches_the_function() {
    let server = Site::new().serve();
    for (body, wanted) in [
        ("", r#""hello, world""#),
        ("{}", r#""hello, world""#),
        (r#"["Bo"]"#, r#""hello, Bo""#),
        (r#""Cy""#, r#""hello, Cy""#),
        (r#"{"name":"D\u00e9"}"#, r#""hello, Dé""#),
    ] {
        let answer = server.ask(&post(GREET, body).header("Content-Type", "application/json"));
        assert_eq!(
            answer.json(),
            serde_json::from_str::<serde_json::Value>(wanted).unwrap(),
            "{body}"
        );
    }
    let sum = server.ask(&post("/api/pools/work/call/add", r#"{"a": 2, "b": 3}"#));
    assert_eq!(sum.text(), "5");
}

#[test]
fn what_curl_sends_without_a_thought_is_json() {
    let server = Site::new().serve();
    let form = "application/x-www-form-urlencoded";
    let answer = server.ask(&post(GREET, r#"{"name":"Ada"}"#).header("Content-Type", form));
    assert_eq!(answer.text(), r#""hello, Ada""#);
}

#[test]
fn a_generator_is_a_list_unless_a_stream_is_wanted() {
    let server = Site::new().serve();
    assert_eq!(server.ask(&post(COUNT, "[3]")).text(), "[0,1,2]");
    let events = server.ask(&post(COUNT, "[2]").header("Accept", "text/event-stream"));
    assert_eq!(events.header("content-type"), Some("text/event-stream"));
    assert_eq!(
        events.text(),
        "event: message\ndata: 0\n\nevent: message\ndata: 1\n\nevent: complete\ndata: null\n\n"
    );
    let lines = server.ask(&post(COUNT, "[2]").header("Accept", "application/x-ndjson"));
    assert_eq!(lines.header("content-type"), Some("application/x-ndjson"));
    assert_eq!(
        lines.text(),
        "{\"type\":\"message\",\"data\":0}\n{\"type\":\"message\",\"data\":1}\n\
         {\"type\":\"complete\",\"data\":null}\n"
    );
    let whole = server.ask(&post(GREET, "").header("Accept", "application/x-ndjson"));
    assert_eq!(whole.text(), "{\"type\":\"complete\",\"data\":\"hello, world\"}\n");
}

#[test]
fn a_chunk_does_not_wait_for_the_next_one() {
    let server = Site::new().serve();
    let many = post(COUNT, "[1000000000]").header("Accept", "application/x-ndjson");
    let mut sent = many.send(server.address);
    assert_eq!(sent.head().status, 200);
    let first = sent.chunk().expect("a piece before the end");
    assert!(first.starts_with(b"{\"type\":\"message\",\"data\":0}\n"));
}

#[test]
fn a_stream_that_breaks_says_so_at_its_end() {
    let server = Site::new().serve();
    let broken = post("/api/pools/work/call/break_after", "[3]");
    let answer = server.ask(&broken.header("Accept", "application/x-ndjson"));
    let text = answer.text();
    let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!((text.lines().count(), &last["type"]), (4, &"error".into()), "{text}");
    assert_eq!(last["data"]["code"], "worker_crashed", "{last}");
    assert_eq!(last["data"]["chunks"], 3, "{last}");
    assert_eq!(last["data"]["request_id"].as_str(), answer.header("ostler-request-id"));
}

#[test]
fn bytes_go_in_and_out_as_they_are() {
    let server = Site::new().serve();
    let bytes: Vec<u8> = (0..=255).cycle().take(200_000).collect();
    let raw = request("POST", "/api/pools/work/call/reverse")
        .header("Content-Type", "application/octet-stream")
        .body(&bytes);
    let answer = server.ask(&raw);
    assert_eq!(answer.header("content-type"), Some("application/octet-stream"));
    assert!(answer.body.iter().eq(bytes.iter().rev()), "the bytes were changed");
}

#[test]
fn a_request_id_is_given_back_and_reaches_the_function() {
    let server = Site::new().serve();
    let named = post("/api/pools/work/call/request_id", "").header("Ostler-Request-Id", "mine-1");
    let answer = server.ask(&named);
    assert_eq!(answer.header("ostler-request-id"), Some("mine-1"));
    assert_eq!(answer.text(), r#""mine-1""#);
}

#[test]
fn a_connection_serves_one_request_after_the_other() {
    let server = Site::new().serve();
    let mut sent = post(GREET, r#"["a"]"#).send(server.address);
    assert_eq!(sent.answer().text(), r#""hello, a""#);
    sent.then(&post("/api/pools/work/call/fail", ""));
    assert_eq!(sent.answer().status, 500);
    sent.then(&post(GREET, r#"["b"]"#));
    assert_eq!(sent.answer().text(), r#""hello, b""#);
}

#[test]
fn the_pages_about_the_server_answer_while_all_workers_are_busy() {
    let server = Site::new().serve();
    let _held = post("/api/pools/work/call/hold", r#"["busy"]"#).send(server.address);
    super::server::until("it runs", || server.site.lines("begun").len() == 1);
    assert_eq!(server.ask(&get("/livez")).status, 200);
    let ready = server.ask(&get("/readyz"));
    assert_eq!((ready.status, &ready.json()["ready"]), (200, &true.into()));
    let pool = server.pool();
    assert_eq!(
        (&pool["running"], &pool["occupancy"]),
        (&1.into(), &"at_capacity".into()),
        "{pool}"
    );
    let functions: Vec<_> =
        pool["functions"].as_array().unwrap().iter().map(|f| f["name"].clone()).collect();
    assert!(functions.contains(&"greet".into()), "{functions:?}");
    let stats = server.ask(&get("/api/stats")).json();
    assert_eq!(stats["server"]["listen"], server.address.to_string());
    assert_eq!(stats["pools"][0]["name"], "work");
    assert_eq!(server.ask(&get("/api/pools")).json()["items"][0]["name"], "work");
}
