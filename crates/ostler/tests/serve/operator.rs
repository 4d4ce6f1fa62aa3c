//! The command line against a server that runs.

use super::http::post;
use super::server::{Site, all_gone, until};

#[test]
fn call_prints_results_chunks_and_errors() {
    let server = Site::new().serve();
    let (code, out, err) = server.site.run(&["call", "work", "greet", r#"{"name":"Ada"}"#]);
    assert_eq!((code, &*out, &*err), (0, "\"hello, Ada\"\n", ""));
    let (code, out, err) = server.site.run(&["call", "work", "count", "[3]", "--stream"]);
    assert_eq!((code, &*out, &*err), (0, "0\n1\n2\n", ""));
    let (code, out, _) = server.site.run(&["call", "work", "greet", "--raw"]);
    assert_eq!((code, &*out), (0, "hello, world"));
    let (code, _, err) = server.site.run(&["call", "work", "fail"]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("as asked"), "{err}");
    let (code, _, err) = server.site.run(&["call", "work", "grete"]);
    assert_eq!(code, 5, "{err}");
    assert!(err.contains("grete"), "{err}");
    let (code, _, err) =
        server.site.run(&["call", "work", "hold", r#"["x"]"#, "--timeout", "100ms"]);
    assert_eq!(code, 124, "{err}");
}

#[test]
fn status_shows_the_pool_and_its_workers() {
    let server = Site::new().serve();
    assert_eq!(server.site.run(&["call", "work", "greet"]).0, 0);
    let (code, out, err) = server.site.run(&["status"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("work-1#1") && out.contains("RUNNING"), "{out}");
    assert!(out.contains(&server.address.to_string()), "{out}");
    let (code, out, _) = server.site.run(&["status", "--json"]);
    let stats: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((code, &stats["pools"][0]["name"]), (0, &"work".into()));
}

#[test]
fn stop_waits_until_the_server_is_gone() {
    let mut server = Site::new().serve();
    assert_eq!(server.site.run(&["call", "work", "greet"]).0, 0);
    let family = server.family();
    let (code, out, err) = server.site.run(&["stop"]);
    assert_eq!((code, &*out), (0, "stopped\n"), "{err}");
    all_gone(&family);
    assert_eq!(server.ended().code(), Some(0));
    assert!(!server.site.socket().exists(), "the socket is left");
    assert_eq!(server.site.run(&["status"]).0, 3);
}

#[test]
fn stop_now_ends_what_runs() {
    let mut server = Site::new().serve();
    let mut held = post("/api/pools/work/call/hold", r#"["held"]"#).send(server.address);
    until("it runs", || server.site.lines("begun").len() == 1);
    let (code, out, err) = server.site.run(&["stop", "--now"]);
    assert_eq!((code, &*out), (0, "stopped\n"), "{err}");
    held.answer().problem(502, "shutting_down");
    assert_eq!(server.ended().code(), Some(0));
}

#[test]
fn serve_wait_fails_with_the_cause_when_a_worker_cannot_start() {
    let site =
        Site::configured("", "start_timeout = \"2 s\"\nbackoff_min = \"1 ms\"\nrestart_max = 1");
    std::fs::write(site.path().join("work.py"), "import no_such_module_here\n").unwrap();
    let (code, _, err) = site.run(&["serve", "--listen", "127.0.0.1:0", "--wait"]);
    assert_eq!(code, 1, "{err}");
    let last = err.lines().last().unwrap_or_default();
    assert!(last.contains("no_such_module_here"), "{err}");
}
