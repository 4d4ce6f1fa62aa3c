//! `ostler bench` against real servers: what it reports and what it leaves. Not how fast anything
//! is.

#[allow(dead_code, reason = "shared with the tests of the server")]
#[path = "serve/http.rs"]
mod http;
#[allow(dead_code, reason = "shared with the tests of the server")]
#[path = "serve/server.rs"]
mod server;

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use server::{Site, until};

/// One caller at a time and two, and a short queue.
const SMALL: [&str; 2] = ["--callers=2", "--queued=50"];

/// Runs a short measurement whose directories are made where they can be counted.
fn bench(site: &Site, args: &[&str]) -> (i32, String, String) {
    let mut command = site.command(&[&["bench", "--duration=100ms", "--json"], args].concat());
    let output = command.env("TMPDIR", site.path()).output().expect("the command runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code().expect("a code"), text(output.stdout), text(output.stderr))
}

fn own_directories(site: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(site).expect("a directory").flatten();
    let paths = entries.map(|entry| entry.path());
    let own = |path: &PathBuf| path.to_string_lossy().contains("ostler-bench-");
    paths.filter(own).collect()
}

fn figures(out: &str) -> Value {
    serde_json::from_str(out).unwrap_or_else(|_| panic!("not JSON: {out}"))
}

fn assert_in_order(times: &Value) {
    let at = |key: &str| times[key].as_f64().unwrap_or_else(|| panic!("no {key}: {times}"));
    assert!(0.0 < at("p50") && at("p50") <= at("p90"), "{times}");
    assert!(at("p90") <= at("p99") && at("p99") <= at("max"), "{times}");
}

#[test]
fn a_running_server_is_measured_with_one_caller_and_with_many() {
    let server = Site::configured("", "").serve();
    let (code, out, err) =
        bench(&server.site, &[&["work", "greet", "{\"name\": \"ann\"}"], &SMALL[..]].concat());
    assert_eq!(code, 0, "{err}");
    let figures = figures(&out);
    assert_eq!(figures["server"]["listen"], server.address.to_string());
    let loads = figures["loads"].as_array().expect("loads");
    let callers: Vec<&Value> = loads.iter().map(|load| &load["callers"]).collect();
    assert_eq!(callers, [1, 2]);
    for load in loads {
        assert!(load["calls"].as_u64().is_some_and(|calls| calls > 0), "{load}");
        assert!(load["per_second"].as_f64().is_some_and(|rate| rate > 0.0), "{load}");
        assert_in_order(&load["latency_seconds"]);
        for whose in ["server", "workers", "bench"] {
            assert!(load["cpu_seconds_per_call"][whose].is_number(), "{whose}: {load}");
        }
        assert_eq!(load["errors"], serde_json::json!({}));
    }
    assert_eq!(figures["control"]["queued"], 50);
    for route in figures["control"]["routes"].as_array().expect("routes") {
        assert_in_order(&route["idle_seconds"]);
        assert_in_order(&route["queued_seconds"]);
        assert!(route["p99_ratio"].as_f64().is_some_and(|ratio| ratio > 0.0), "{route}");
    }
    assert_eq!(own_directories(server.site.path()), [] as [PathBuf; 0]);
    assert_eq!(server.pool()["queue_length"], 0, "its queue was left alone");
}

#[test]
fn without_a_server_one_is_started_from_the_configuration_and_ended() {
    let site = Site::configured("", "");
    let (code, out, err) = bench(&site, &["work", "--callers=1", "--queued=0"]);
    assert_eq!(code, 0, "{err}");
    let figures = figures(&out);
    assert_eq!(figures["function"], "greet", "the first that needs no arguments");
    assert_eq!(figures["loads"].as_array().map(Vec::len), Some(1));
    assert_eq!(figures["control"], Value::Null);
    assert_eq!(own_directories(site.path()), [] as [PathBuf; 0]);
    assert!(!site.socket().exists(), "the configured place is for the configured server");
}

#[test]
fn a_file_is_measured_on_a_server_of_its_own() {
    let site = Site::new();
    let (code, out, err) =
        bench(&site, &[&["work", "add", "[1, 2]", "--serve", "work.py"], &SMALL[..]].concat());
    assert_eq!(code, 0, "{err}");
    assert_eq!(figures(&out)["function"], "add");
    assert_eq!(own_directories(site.path()), [] as [PathBuf; 0]);
}

#[test]
fn what_cannot_be_measured_is_said_before_anything_is() {
    let server = Site::configured("", "").serve();
    for (args, code, words) in [
        (&["nope"][..], 5, "known: work"),
        (&["work", "nope"], 5, "nope"),
        (&["work", "fail"], 1, "as asked"),
        (&["work", "add", "[1]"], 5, "invalid_arguments"),
        (&["work", "add", "{"], 2, "is not JSON"),
    ] {
        let (ended, out, err) = bench(&server.site, args);
        assert_eq!((ended, out.as_str()), (code, ""), "{args:?}: {err}");
        assert!(err.contains(words), "{args:?}: {err}");
    }
    let site = Site::new();
    let (code, _, err) = bench(&site, &["work", "--url", "http://127.0.0.1:1"]);
    assert_eq!(code, 3, "{err}");
}

#[test]
fn the_server_of_a_bench_that_is_killed_ends_by_itself() {
    let site = Site::new();
    let mut command = site.command(&["bench", "work", "greet", "--serve", "work.py"]);
    command.args(["--duration=1h", "--queued=0"]).env("TMPDIR", site.path());
    let mut bench = command.stderr(Stdio::null()).spawn().expect("the command starts");
    let answers = || {
        let directories = own_directories(site.path());
        directories.iter().any(|own| UnixStream::connect(own.join("ostler.sock")).is_ok())
    };
    until("its server listens", answers);
    bench.kill().expect("it runs");
    bench.wait().expect("it ends");
    until("its server is gone", || !answers());
}
