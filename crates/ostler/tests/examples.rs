//! The workers of `examples/workers`, served by real pools, called over HTTP.

#[allow(dead_code, reason = "shared with the tests of the server")]
#[path = "serve/http.rs"]
mod http;
#[allow(dead_code, reason = "shared with the tests of the server")]
#[path = "serve/server.rs"]
mod server;

use std::path::Path;

use http::{Request, get, post};
use rustix::process::Signal;
use server::{Server, Site, until};

/// Prints as long as the worker lives, and nothing of it is a message to the server.
const NOISE: &str = r#"while echo '{"type":"shutdown_ack"}'; do sleep 0.02; done & exec "$@""#;

/// The example's directory as it is, served from a copy.
fn site() -> Site {
    let site = Site::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/workers");
    for entry in std::fs::read_dir(examples).expect("the examples").flatten() {
        if entry.path().is_file() {
            std::fs::copy(entry.path(), site.path().join(entry.file_name())).expect("copied");
        }
    }
    site
}

/// One pool with the named program, in the midst of noise.
fn noisy(pool: &str, socket: &str, command: &[&str]) -> Server {
    let words = [&["sh", "-c", NOISE, "noise"], command].concat();
    let command: Vec<String> = words.iter().map(|word| format!("'''{word}'''")).collect();
    let site = site();
    let text = format!(
        "version = 1\n[pools.{pool}]\ncommand = [{}]\nsize = 1\nsocket = \"{socket}\"\n",
        command.join(", ")
    );
    std::fs::write(site.path().join("ostler.toml"), text).expect("written");
    site.serve()
}

/// A server that is killed cannot remove the directories of its named sockets.
fn leave(server: &mut Server) {
    server.signal(Signal::TERM);
    assert!(server.ended().success());
}

fn result(server: &Server, pool: &str, function: &str, payload: &str) -> serde_json::Value {
    let answer = server.ask(&post(&format!("/api/pools/{pool}/call/{function}"), payload));
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn lines(server: &Server, pool: &str, function: &str, payload: &str) -> Vec<serde_json::Value> {
    let request = post(&format!("/api/pools/{pool}/call/{function}"), payload);
    let answer = server.ask(&request.header("Accept", "application/x-ndjson"));
    let text = answer.text();
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The noise was heard, and it is still the first process that answers.
fn undisturbed(server: &Server, pool: &str) {
    until("the noise is in the log", || {
        server.log().iter().any(|line| line.contains("shutdown_ack"))
    });
    let pool = server.ask(&get(&format!("/api/pools/{pool}"))).json();
    assert_eq!(pool["workers"][0]["generation"], 1, "{pool:#}");
}

#[test]
fn the_node_worker_is_served_over_both_sockets() {
    for socket in ["inherited", "named"] {
        let mut server = noisy("node", socket, &["node", "node.mjs"]);
        assert_eq!(
            result(&server, "node", "echo", r#"{"a":[1,"é"]}"#),
            serde_json::json!({"a": [1, "é"]})
        );
        let streamed = lines(&server, "node", "count", "3");
        let kinds: Vec<_> = streamed.iter().map(|line| line["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["message", "message", "message", "complete"], "{socket}");
        let unknown = server.ask(&post("/api/pools/node/call/nobody", ""));
        unknown.problem(404, "function_not_found");
        undisturbed(&server, "node");
        leave(&mut server);
    }
}

#[test]
fn the_shell_worker_is_served_over_its_inherited_socket() {
    let server = noisy("shell", "inherited", &["sh", "shell.sh"]);
    let payload = r#"{"type":"shutdown","text":"a \"b\" {c}"}"#;
    let expected: serde_json::Value = serde_json::from_str(payload).expect("JSON");
    assert_eq!(result(&server, "shell", "echo", payload), expected);
    assert_eq!(lines(&server, "shell", "count", "").len(), 4);
    let unknown = server.ask(&post("/api/pools/shell/call/nobody", ""));
    unknown.problem(404, "function_not_found");
    undisturbed(&server, "shell");
}

#[test]
fn the_worker_of_base_messages_is_served_over_both_sockets() {
    for socket in ["inherited", "named"] {
        let mut server = noisy("basic", socket, &["python3", "basic.py"]);
        assert_eq!(
            result(&server, "basic", "any", r#"{"a":null}"#),
            serde_json::json!({"a": null})
        );
        let streamed = lines(&server, "basic", "any", r#"{"count":2}"#);
        assert_eq!(streamed.len(), 3, "{socket}: {streamed:?}");
        undisturbed(&server, "basic");
        leave(&mut server);
    }
}

#[test]
fn the_examples_own_configuration_serves_all_three() {
    let server = site().serve();
    for (pool, function) in [("node", "echo"), ("shell", "echo"), ("basic", "any")] {
        assert_eq!(
            result(&server, pool, function, r#"[1,2]"#),
            serde_json::json!([1, 2]),
            "{pool}"
        );
    }
}

/// The configuration of `examples/agent`, beside its worker.
fn agents() -> Server {
    let site = site();
    let text = include_str!("../../../examples/agent/ostler.toml").replace("../workers/", "");
    std::fs::write(site.path().join("ostler.toml"), text).expect("written");
    site.serve()
}

fn of(session: &str, function: &str, payload: &str) -> Request {
    post(&format!("/api/pools/agent/call/{function}"), payload).header("Ostler-Session", session)
}

fn turn(server: &Server, request: Request) -> Vec<serde_json::Value> {
    let answer = server.ask(&request.header("Accept", "application/x-ndjson"));
    answer.text().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn history(server: &Server, session: &str) -> serde_json::Value {
    let answer = server.ask(&of(session, "history", ""));
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// The process of a session's worker.
fn process_of(server: &Server, session: &str) -> i32 {
    let workers = server.ask(&get("/api/workers?pool=agent")).json();
    let mut workers = workers["items"].as_array().expect("a list").iter();
    let its = workers.find(|worker| worker["sessions"] == serde_json::json!([session]));
    its.and_then(|worker| worker["pid"].as_i64()).expect("a process") as i32
}

#[test]
fn the_agent_streams_tools_in_a_process_of_each_conversation() {
    let server = agents();
    let told = turn(&server, of("ann", "turn", r#"["calculate 6 * 7; remember milk: two"]"#));
    let kinds: Vec<&str> = told.iter().filter_map(|line| line["data"]["type"].as_str()).collect();
    assert_eq!(kinds, ["tool_use", "tool_result", "tool_use", "tool_result"], "{told:#?}");
    assert_eq!(told[1]["data"]["content"], 42);
    assert_eq!(told.last().expect("an end")["type"], "complete");
    assert_eq!(history(&server, "ben"), serde_json::json!([]), "another process");
    assert_ne!(process_of(&server, "ann"), process_of(&server, "ben"));
    let note = server.ask(&get("/api/sessions/ann/programs"));
    assert_eq!(note.json()["items"].as_array().map(Vec::len), Some(1), "{}", note.text());
}

#[test]
fn a_turn_of_the_agent_is_cancelled_and_the_conversation_goes_on() {
    let server = agents();
    let long = of("ann", "turn", r#"["think for 60 seconds"]"#);
    let told = std::thread::scope(|scope| {
        let long = long.header("Ostler-Request-Id", "long-one");
        let streaming = scope.spawn(|| turn(&server, long));
        until("the turn streams", || {
            server.ask(&get("/api/requests/long-one")).json()["state"] == "STREAMING"
        });
        let cancelled = server.ask(&post("/api/requests/long-one/cancel", ""));
        assert!(cancelled.status < 300, "{}", cancelled.text());
        streaming.join().expect("it ends")
    });
    assert_eq!(told.last().expect("an end")["type"], "cancelled", "{told:#?}");
    let kept = history(&server, "ann");
    assert_eq!(kept[1]["content"][0]["text"], "Let me think.", "{kept:#}");
    assert_eq!(kept[1]["finished"], false);
}

#[test]
fn a_conversation_of_the_agent_survives_its_worker_but_not_its_death() {
    let server = agents();
    turn(&server, of("ann", "turn", r#"["hello"]"#));
    let (before, first) = (history(&server, "ann"), process_of(&server, "ann"));
    assert_eq!(server.ask(&post("/api/pools/agent/recycle", "")).status, 202);
    until("another process has the conversation", || {
        let answer = server.ask(&of("ann", "history", ""));
        assert_eq!((answer.status, answer.json()), (200, before.clone()));
        process_of(&server, "ann") != first
    });
    let pid = rustix::process::Pid::from_raw(process_of(&server, "ann")).expect("a pid");
    rustix::process::kill_process(pid, Signal::KILL).expect("it lives");
    until("the death is told", || {
        let answer = server.ask(&of("ann", "history", ""));
        answer.status == 409 && answer.json()["code"] == "session_worker_lost"
    });
    assert_eq!(history(&server, "ann"), serde_json::json!([]), "told once, then anew");
}
