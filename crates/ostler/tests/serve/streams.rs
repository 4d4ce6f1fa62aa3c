//! Streams as they flow: chunks in time, clients that do not read, and how streams break.

use serde_json::Value;

use super::http::{Sent, get, post};
use super::server::{Server, Site, until};
use super::sse::Stream;

const GREET: &str = "/api/pools/work/call/greet";
const COUNT: &str = "/api/pools/work/call/count";
const FRAMINGS: [&str; 2] = ["text/event-stream", "application/x-ndjson"];

fn streamed(server: &Server, function: &str, body: &str, framing: &str) -> Sent {
    let call = post(&format!("/api/pools/work/call/{function}"), body);
    let mut sent = call.header("Accept", framing).send(server.address);
    let head = sent.head();
    assert_eq!((head.status, head.header("content-type")), (200, Some(framing)));
    sent
}

#[test]
fn the_first_chunk_arrives_while_the_function_is_still_at_the_second() {
    for framing in FRAMINGS {
        let server = Site::new().serve();
        let mut sent = streamed(&server, "first_then_wait", "", framing);
        let first = String::from_utf8(sent.chunk().expect("a piece")).expect("text");
        assert!(first.contains(r#""first""#) && !first.contains("second"), "{first}");
        server.site.give("go");
        let rest: Vec<u8> = std::iter::from_fn(|| sent.chunk()).flatten().collect();
        let rest = String::from_utf8(rest).expect("text");
        assert!(rest.contains(r#""second""#) && rest.contains("complete"), "{rest}");
    }
}

#[test]
fn a_stream_whose_worker_dies_names_how_many_chunks_there_were() {
    let server = Site::new().serve();
    let broken = post("/api/pools/work/call/break_after", "[3]");
    let mut stream = Stream::open(&server, &broken.header("Accept", "text/event-stream"));
    for number in 0..3 {
        assert_eq!(stream.next(), Some(("message".to_owned(), number.into())));
    }
    let (name, problem) = stream.next().expect("an end");
    assert_eq!((&*name, &problem["code"]), ("error", &"worker_crashed".into()), "{problem}");
    assert_eq!((&problem["chunks"], &problem["outcome_unknown"]), (&3.into(), &true.into()));
    assert!(stream.next().is_none());
    assert_eq!(server.ask(&post(GREET, "")).status, 200);
}

/// What one worker with two places does for one caller while another does not read.
#[test]
fn a_client_that_does_not_read_a_million_chunks_holds_up_nobody() {
    for framing in FRAMINGS {
        let server = Site::configured("", "profile = \"thread\"\nthreads = 2").serve();
        let call = post(COUNT, "[1000000]").header("Ostler-Request-Id", "stalled");
        let mut stalled = call.header("Accept", framing).send(server.address);
        assert_eq!(stalled.head().status, 200);
        let request = || server.ask(&get("/api/requests/stalled")).json();
        let mut seen = Value::Null;
        until("it stands still", || {
            // Fifty answers of the same process lie between two looks.
            for number in 0..50 {
                let answer = server.ask(&post(GREET, &format!("[\"{number}\"]")));
                assert_eq!(answer.text(), format!("\"hello, {number}\""));
            }
            let before = std::mem::replace(&mut seen, request()["chunks"].clone());
            seen == before && seen.as_u64().is_some_and(|chunks| chunks > 0)
        });
        assert!(seen.as_u64().is_some_and(|chunks| chunks < 1_000_000), "{seen}");
        assert_eq!(request()["state"], "STREAMING");
        drop(stalled);
        until("it is given up", || request()["state"] == "CANCELLED");
        assert_eq!(server.ask(&post(GREET, "")).status, 200);
        assert_eq!(server.pool()["workers"][0]["generation"], 1);
    }
}

#[test]
fn a_stream_that_was_stalled_goes_on_to_its_end() {
    let server = Site::new().serve();
    let mut sent = streamed(&server, "count", "[300000]", "application/x-ndjson");
    until("it has filled what lies between", || {
        let list = server.ask(&get("/api/requests?state=STREAMING")).json();
        list["items"][0]["chunks"].as_u64().is_some_and(|chunks| chunks > 10_000)
    });
    let whole: Vec<u8> = std::iter::from_fn(|| sent.chunk()).flatten().collect();
    let whole = String::from_utf8(whole).expect("text");
    for (number, line) in whole.lines().take(300_000).enumerate() {
        assert_eq!(line, format!(r#"{{"type":"message","data":{number}}}"#));
    }
    assert_eq!(whole.lines().nth(300_000), Some(r#"{"type":"complete","data":null}"#));
    assert_eq!(whole.lines().count(), 300_001);
}

#[test]
fn a_reader_of_events_that_falls_behind_is_told_and_cut_off_and_comes_back() {
    let server = Site::new().serve();
    let path = "/api/events?kind=request.progress";
    let mut slow = Stream::open(&server, &get(path));
    let report = server.ask(&post("/api/pools/work/call/report", "[12000]"));
    assert_eq!(report.status, 200, "a reader that does not read holds up nobody");

    let mut last = None;
    while let Some(told) = slow.told() {
        last = Some(told);
    }
    let last = last.expect("some events");
    assert_eq!(last.name, "lagged", "{:?}", last.data);
    assert!(last.data["missed"].as_u64().is_some_and(|missed| missed > 0), "{:?}", last.data);

    let from = last.id.expect("where to go on");
    let again = get(&format!("{path}&follow=false")).header("Last-Event-ID", &from);
    let mut again = Stream::open(&server, &again);
    let number = |data: &Value| data["seq"].as_u64().expect("a number");
    let mut seen = from.parse::<u64>().expect("a number");
    let mut kept = 0;
    while let Some((_, data)) = again.next() {
        assert_eq!(number(&data), seen + 1, "nothing is missing from there on");
        (seen, kept) = (number(&data), kept + 1);
    }
    assert!(kept > 1000, "{kept}");
}
