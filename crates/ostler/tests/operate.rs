//! `ostler workers`, `logs`, `events`, `requests` and `cancel` against the built server with real
//! workers.

#[allow(dead_code, reason = "shared with the tests of the server")]
#[path = "serve/http.rs"]
mod http;
#[allow(dead_code, reason = "shared with the tests of the server")]
#[path = "serve/server.rs"]
mod server;
mod support;

use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use http::{Sent, post};
use server::{Server, Site, until};

const TALK: &str = r#"
import os
import time

import ostler

@ostler.function
def say(text: str):
    print(text, flush=True)
    return text

@ostler.function
def say_and_wait(text: str):
    print(text, flush=True)
    while not os.path.exists("go"):
        time.sleep(0.002)
"#;

/// Two pools of one worker: `work` with the usual functions, `talk` that prints.
fn serve() -> Server {
    let site = Site::with_pools(
        "[pools.work]\npython = \"work.py\"\nsize = 1\n[pools.talk]\npython = \"talk.py\"\nsize = 1\n",
    );
    std::fs::write(site.path().join("talk.py"), TALK).expect("written");
    site.serve()
}

fn call(server: &Server, pool: &str, function: &str, body: &str) -> u16 {
    server.ask(&post(&format!("/api/pools/{pool}/call/{function}"), body)).status
}

/// A call of `hold` under this id, which is its argument too.
fn hold(server: &Server, id: &str) -> Sent {
    let call = post("/api/pools/work/call/hold", &format!("\"{id}\""));
    call.header("Ostler-Request-Id", id).send(server.address)
}

fn until_begun(server: &Server, id: &str) {
    until(&format!("{id} runs"), || server.site.lines("begun").iter().any(|line| line == id));
}

fn until_shown(server: &Server, args: &[&str], words: &str) -> String {
    let mut shown = String::new();
    until(words, || {
        let (code, out, err) = server.site.run(args);
        assert_eq!(code, 0, "{err}");
        shown = out;
        shown.contains(words)
    });
    shown
}

/// A command that goes on, and what it prints.
struct Following {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Following {
    fn start(server: &Server, args: &[&str]) -> Following {
        let mut command = server.site.command(args);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.expect("the command starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Following { child, lines }
    }

    /// Reads on to the line with these words.
    fn reads(&mut self, words: &str) -> String {
        let found = self.lines.by_ref().map_while(Result::ok).find(|line| line.contains(words));
        found.unwrap_or_else(|| panic!("it ended without `{words}`"))
    }

    fn ended(&mut self) -> Option<i32> {
        self.child.wait().expect("waited for").code()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn workers_shows_who_works_on_what() {
    let server = serve();
    let _held = hold(&server, "held-1");
    until_begun(&server, "held-1");
    let (code, out, err) = server.site.run(&["workers", "work"]);
    assert_eq!(code, 0, "{err}");
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), 2, "a heading and one worker of the pool: {out}");
    let expected = ["work-1#1", "work", "RUNNING", "busy", "healthy"];
    assert_eq!(rows[1][..5], expected, "{out}");
    assert_eq!(rows[1][6], "1/1", "{out}");
    assert!(out.ends_with("hold held-1\n"), "{out}");

    let (_, out, _) = server.site.run(&["workers", "--json"]);
    let page: Value = serde_json::from_str(&out).expect("JSON");
    let items = page["items"].as_array().expect("items");
    let busy = items.iter().find(|item| item["name"] == "work-1").expect("the worker");
    assert_eq!(items.len(), 2, "{out}");
    assert_eq!(busy["current_requests"], serde_json::json!(["held-1"]), "{out}");

    let (code, _, err) = server.site.run(&["workers", "nope"]);
    assert_eq!(code, 5, "{err}");
    assert!(err.contains("known: work, talk"), "{err}");
}

#[test]
fn workers_are_read_to_the_last_page() {
    let server = support::Server::start(|request| match request.line.as_str() {
        "GET /api/workers?limit=1000" => {
            support::json(r#"{"items": [{"name": "py-1"}], "next_cursor": "a&b"}"#)
        }
        "GET /api/workers?limit=1000&cursor=a%26b" => {
            support::json(r#"{"items": [{"name": "py-2"}], "next_cursor": null}"#)
        }
        other => panic!("{other}"),
    });
    let ran = server.run(&["workers"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let names: Vec<_> = ran.out.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["WORKER", "py-1", "py-2"]);
}

#[test]
fn watched_workers_are_drawn_again_until_the_server_is_gone() {
    let mut server = serve();
    let mut watch = Following::start(&server, &["workers", "--watch"]);
    watch.reads("WORKER");
    watch.reads("WORKER");
    server.signal(Signal::TERM);
    server.ended();
    for _ in watch.lines.by_ref().map_while(Result::ok) {}
    assert_eq!(watch.ended(), Some(3));
}

#[test]
fn logs_show_lines_with_their_request_and_drive_no_terminal() {
    let server = serve();
    let say = post("/api/pools/talk/call/say_and_wait", r#""\u001b[31mred""#);
    // It runs until its line is there: a line is its request's as long as that one runs.
    let mut said = say.header("Ostler-Request-Id", "loud").send(server.address);
    until_shown(&server, &["logs", "talk"], "red");
    server.site.give("go");
    assert_eq!(said.answer().status, 200);
    assert_eq!(call(&server, "talk", "say", "\"second\""), 200);
    let shown = until_shown(&server, &["logs", "talk"], "second");
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 2, "{shown}");
    assert!(lines[0].ends_with(r"  talk-1  stdout   loud  \u001b[31mred"), "{shown}");

    let (_, out, _) = server.site.run(&["logs", "talk-1", "-n", "1", "--json"]);
    let line: Value = serde_json::from_str(&out).expect("one line of JSON");
    assert_eq!((&line["worker"], &line["text"]), (&"talk-1".into(), &"second".into()), "{out}");

    assert_eq!(server.site.run(&["logs", "work"]).1, "", "another pool's lines are not its own");
    let (code, _, err) = server.site.run(&["logs", "nobody"]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("ostler workers"), "{err}");
}

#[test]
fn logs_are_followed_through_a_crash_to_the_end_of_the_server() {
    let mut server = serve();
    assert_eq!(call(&server, "talk", "say", "\"before\""), 200);
    until_shown(&server, &["logs"], "before");
    let mut logs = Following::start(&server, &["logs", "-f"]);
    logs.reads("before");
    assert_eq!(call(&server, "work", "die", ""), 502);
    logs.reads("last words");
    assert_eq!(call(&server, "work", "greet", ""), 200, "it has its next process");
    assert_eq!(call(&server, "work", "die", ""), 502);
    logs.reads("last words");
    assert_eq!(call(&server, "talk", "say", "\"after\""), 200);
    logs.reads("after");
    server.signal(Signal::TERM);
    server.ended();
    assert_eq!(logs.ended(), Some(0));
}

#[test]
fn events_are_told_in_plain_words() {
    let server = serve();
    assert_eq!(call(&server, "work", "die", ""), 502);
    let told = until_shown(&server, &["events", "--kind", "worker.crashed"], "crashed");
    let words = "work-1#1  crashed: exit code 7; it last said: last words";
    assert!(told.lines().count() == 1 && told.contains(words), "{told}");

    let (_, out, _) = server.site.run(&["events", "--pool", "talk", "--json"]);
    let events: Vec<Value> =
        out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(!events.is_empty() && events.iter().all(|event| event["pool"] == "talk"), "{out}");

    let (code, _, err) = server.site.run(&["events", "--kind", "worker.crahsed"]);
    assert_eq!(code, 5, "{err}");
    assert!(err.contains("worker.crashed"), "{err}");
}

#[test]
fn events_of_every_call_are_followed_to_the_end_of_the_server() {
    let mut server = serve();
    let mut events = Following::start(&server, &["events", "-f", "--all", "--pool", "work"]);
    events.reads("work-1#1  ready");
    let greet = post("/api/pools/work/call/greet", "");
    assert_eq!(server.ask(&greet.header("Ostler-Request-Id", "seen-1")).status, 200);
    events.reads("greet seen-1 answered");
    server.signal(Signal::TERM);
    events.reads("takes no new requests");
    server.ended();
    for _ in events.lines.by_ref().map_while(Result::ok) {}
    assert_eq!(events.ended(), Some(0));
}

#[test]
fn a_request_is_found_and_cancelled_wherever_it_is() {
    let server = serve();
    let mut running = hold(&server, "runs");
    until_begun(&server, "runs");
    let mut waiting = hold(&server, "waits");
    let pending = ["requests", "--state", "pending"];
    let shown = until_shown(&server, &pending, "waits");
    assert!(!shown.contains("runs"), "{shown}");

    let (code, out, err) = server.site.run(&["cancel", "waits"]);
    assert_eq!(
        (code, out.as_str()),
        (0, "waits: cancelled while it waited; nothing ran\n"),
        "{err}"
    );
    waiting.answer().problem(499, "cancelled");
    let (code, out, err) = server.site.run(&["cancel", "runs"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("runs: cancelled while work-1 worked on it"), "{out}");
    running.answer().problem(499, "cancelled");

    let (code, out, err) = server.site.run(&["requests", "runs"]);
    assert_eq!(code, 0, "{err}");
    let steps = out.lines().skip_while(|line| !line.starts_with("STATE")).skip(1);
    let states: Vec<&str> = steps.filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(states, ["PENDING", "PROCESSING", "CANCELLED"], "{out}");

    let (code, _, err) = server.site.run(&["cancel", "runs"]);
    assert_eq!(code, 5, "it had ended: {err}");
    assert!(err.contains("CANCELLED"), "{err}");
    for command in [["cancel", "nobody"], ["requests", "nobody"]] {
        let (code, _, err) = server.site.run(&command);
        assert_eq!(code, 1, "{err}");
        assert!(err.contains("ostler requests"), "{err}");
    }
}

#[test]
fn without_a_server_every_command_ends_with_3() {
    let site = Site::new();
    std::fs::write(site.path().join("ostler.toml"), "[server]\nsocket = \"none.sock\"\n")
        .expect("written");
    for args in [
        &["workers"][..],
        &["workers", "-w"],
        &["logs"],
        &["logs", "-f"],
        &["events"],
        &["events", "-f"],
        &["requests"],
        &["cancel", "x"],
    ] {
        let (code, out, err) = site.run(args);
        assert_eq!((code, out.as_str()), (3, ""), "{args:?}: {err}");
        assert!(err.contains("ostler serve"), "{args:?}: {err}");
    }
}
