//! `ostler pause`, `resume`, `drain`, `scale`, `recycle`, `reload` and `sessions` against the built
//! server with real workers.

#[allow(dead_code, reason = "shared with the tests of the server")]
#[path = "serve/http.rs"]
mod http;
#[allow(dead_code, reason = "shared with the tests of the server")]
#[path = "serve/server.rs"]
mod server;

use std::process::{Child, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use http::post;
use server::{Server, Site, until};

/// Runs a command that must end with this code: what it printed, and what it said beside that.
fn run(site: &Site, code: i32, args: &[&str]) -> (String, String) {
    let (ended, out, err) = site.run(args);
    assert_eq!(ended, code, "{args:?}: {out}{err}");
    (out, err)
}

/// The names of the workers that serve.
fn serving(site: &Site) -> Vec<String> {
    let (out, _) = run(site, 0, &["workers", "--json"]);
    let page: Value = serde_json::from_str(&out).expect("JSON");
    let items = page["items"].as_array().expect("items").iter();
    let serving = items.filter(|item| item["status"] == "RUNNING" && item["phase"] == "ready");
    serving.map(|item| item["name"].as_str().expect("a name").to_owned()).collect()
}

/// A command that goes on beside the test.
struct Beside(Child);

impl Beside {
    fn start(site: &Site, args: &[&str]) -> Beside {
        let mut command = site.command(args);
        Beside(command.stdout(Stdio::piped()).spawn().expect("the command starts"))
    }

    fn runs(&mut self) -> bool {
        self.0.try_wait().expect("waited for").is_none()
    }

    fn ended(mut self) -> (Option<i32>, String) {
        until("the command ends", || !self.runs());
        let mut out = String::new();
        let stdout = self.0.stdout.as_mut().expect("a pipe");
        std::io::Read::read_to_string(stdout, &mut out).expect("text");
        (self.0.wait().expect("waited for").code(), out)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_paused_pool_holds_calls_back_until_it_is_resumed() {
    let server = Site::new().serve();
    let site = &server.site;
    run(site, 0, &["pause", "work"]);
    let mut held_back = post("/api/pools/work/call/greet", "\"ann\"").send(server.address);
    until("it waits", || server.pool()["queue_length"] == 1);
    let (out, _) = run(site, 0, &["status"]);
    assert!(out.contains(", paused "), "{out}");
    let (out, _) = run(site, 0, &["pause", "work"]);
    assert_eq!(out, "work: paused; 1 request waits, nothing runs\n");
    run(site, 0, &["resume", "work"]);
    assert_eq!(held_back.answer().status, 200);
}

#[test]
fn drain_waits_for_the_call_that_runs_and_lets_nobody_in() {
    let server = Site::new().serve();
    let site = &server.site;
    let mut running = post("/api/pools/work/call/hold", "\"a\"").send(server.address);
    until("it runs", || site.lines("begun") == ["a"]);
    let mut draining = Beside::start(site, &["drain", "work"]);
    until("the pool drains", || server.pool()["lifecycle"] == "draining");
    let (_, err) = run(site, 5, &["call", "work", "greet"]);
    assert!(err.contains("pool_draining"), "{err}");
    let (_, err) = run(site, 124, &["drain", "work", "--timeout", "1ms"]);
    assert!(err.contains("nothing waits, 1 runs"), "{err}");
    assert!(draining.runs(), "its call still runs");
    site.give("go");
    assert_eq!(draining.ended(), (Some(0), "work: drained, nothing waits or runs\n".to_owned()));
    assert_eq!(running.answer().status, 200);
    run(site, 0, &["resume", "work"]);
    run(site, 0, &["call", "work", "greet"]);
}

#[test]
fn a_pool_is_scaled_up_and_down() {
    let server = Site::new().serve();
    let site = &server.site;
    run(site, 0, &["scale", "work", "3"]);
    until("three serve", || serving(site).len() == 3);
    run(site, 0, &["scale", "work", "1..2"]);
    until("two are too many", || serving(site).len() <= 2);
    let (out, _) = run(site, 0, &["scale", "work", "1", "--json"]);
    let pool: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&pool["min"], &pool["max"]), (&1.into(), &1.into()), "{out}");
    until("one is left", || serving(site).len() == 1);
}

#[test]
fn a_rolling_recycle_ends_when_every_worker_is_another_one() {
    let site = Site::with_pools("[pools.work]\npython = \"work.py\"\nsize = 2\n");
    let server = site.serve();
    let site = &server.site;
    until("both serve", || serving(site).len() == 2);
    let before = serving(site);
    let (out, _) = run(site, 0, &["recycle", "work", "--rolling"]);
    assert!(out.starts_with("work: 2 workers are being replaced: work-1, work-2\n"), "{out}");
    assert!(out.contains("is replaced, 1 of 2\n"), "{out}");
    assert!(out.ends_with("is replaced, 2 of 2\n"), "{out}");
    let after = serving(site);
    assert!(!after.iter().any(|name| before.contains(name)), "{before:?} {after:?}");
    let (out, _) = run(site, 0, &["recycle", &after[0]]);
    assert_eq!(out, format!("work: {} is being replaced\n", after[0]));
    let (_, err) = run(site, 1, &["recycle", "nobody"]);
    assert!(err.contains("there is no pool and no worker `nobody`"), "{err}");
}

#[test]
fn a_reload_brings_new_code_and_a_broken_one_changes_nothing() {
    let server = Site::configured("", "").serve();
    let site = &server.site;
    let file = site.path().join("work.py");
    let code = std::fs::read_to_string(&file).expect("the functions");
    run(site, 5, &["call", "work", "newest"]);
    let newest = "\n@ostler.function\ndef newest():\n    return 1\n";
    std::fs::write(&file, format!("{code}{newest}")).expect("written");
    run(site, 0, &["reload"]);
    assert_eq!(run(site, 0, &["call", "work", "newest"]).0, "1\n");

    let config = site.path().join("ostler.toml");
    let written = std::fs::read_to_string(&config).expect("the configuration");
    std::fs::write(&config, format!("{written}queue_max = 5\n")).expect("written");
    let (out, _) = run(site, 0, &["reload", "work"]);
    assert!(out.lines().any(|line| line.starts_with("work  changed  queue_max ")), "{out}");

    std::fs::write(&config, format!("{written}queue_maxx = 5\n")).expect("written");
    let (out, err) = run(site, 1, &["reload"]);
    assert_eq!(out, "");
    assert!(err.contains("did you mean `queue_max`?"), "{err}");
    std::fs::write(&config, &written).expect("written");

    std::fs::write(&file, "def (").expect("written");
    let (out, err) = run(site, 1, &["reload"]);
    assert_eq!(out, "");
    assert!(err.contains("pool `work` stays as it was"), "{err}");
    assert!(err.contains("SyntaxError"), "{err}");
    assert_eq!(run(site, 0, &["call", "work", "newest"]).0, "1\n");
    let (_, err) = run(site, 5, &["reload", "nothing"]);
    assert!(err.contains("pool_not_found"), "{err}");
}

/// Ends a server in peace and starts another one at the same place.
fn again(mut server: Server) -> Server {
    server.signal(Signal::TERM);
    assert!(server.ended().success());
    let command = server.site.serve_command();
    let site = std::mem::replace(&mut server.site, Site::new());
    drop(server);
    site.serve_by(command)
}

#[test]
fn a_session_is_made_by_a_call_and_outlives_the_server() {
    let server = Site::new().serve();
    let site = &server.site;
    run(site, 0, &["call", "work", "greet", "--session", "ann"]);
    let (out, _) = run(site, 0, &["sessions", "create", "--metadata", "{\"name\": \"Bob\"}"]);
    let bob = out.trim_end().to_owned();
    let (out, _) = run(site, 0, &["sessions"]);
    let ids: Vec<&str> =
        out.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(ids, ["ann", &bob]);
    let (_, err) = run(site, 5, &["sessions", "create", "ann"]);
    assert!(err.contains("session_exists"), "{err}");

    let server = again(server);
    let site = &server.site;
    let (out, _) = run(site, 0, &["sessions", "show", &bob]);
    assert!(out.contains("\"name\": \"Bob\""), "{out}");
    let (out, _) = run(site, 0, &["sessions", "show", "ann", "--json"]);
    let version = serde_json::from_str::<Value>(&out).expect("JSON")["version"].clone();
    run(site, 5, &["sessions", "delete", "ann", "--version", "999"]);
    let (out, _) = run(site, 0, &["sessions", "delete", "ann", "--version", &version.to_string()]);
    assert_eq!(out, "ann: removed\n");
    run(site, 1, &["sessions", "show", "ann"]);
    let (out, _) = run(site, 0, &["sessions", "stats", "--json"]);
    let stats: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(stats["current"], 1, "{out}");
    assert_eq!(run(site, 0, &["sessions", "sweep"]).0, "no session had expired\n");
}

#[test]
fn a_strict_session_whose_process_died_is_told_once() {
    let server = Site::new().serve();
    let site = &server.site;
    let strict =
        |function| ["call", "work", function, "--session", "ann", "--affinity", "strict_queue"];
    run(site, 0, &strict("greet"));
    run(site, 1, &strict("die"));
    let (_, err) = run(site, 5, &strict("greet"));
    assert!(err.contains("session_worker_lost"), "{err}");
    run(site, 0, &strict("greet"));
}
