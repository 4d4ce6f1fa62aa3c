//! The store as the command line checks and copies it, beside a server and without one.

use std::path::Path;

use serde_json::Value;

use super::server::{Server, Site};

/// A server that has ended, with a job in its store.
fn served() -> Server {
    let server = Site::new().serve();
    let (code, out, err) = server.site.run(&["jobs", "submit", "work", "greet", "--wait"]);
    assert_eq!((code, &*out), (0, "\"hello, world\"\n"), "{err}");
    let copied = server.site.run(&["store", "backup", "beside.db"]);
    assert_eq!(copied.0, 0, "{copied:?}");
    let (code, out, err) = server.site.run(&["store", "check"]);
    assert_eq!(code, 0, "beside the server: {out}{err}");
    let (code, _, err) = server.site.run(&["stop"]);
    assert_eq!(code, 0, "{err}");
    server
}

#[test]
fn a_store_is_checked_and_copied_with_a_server_and_without() {
    let server = served();
    let site = &server.site;
    let (code, out, err) = site.run(&["store", "check", "--json"]);
    assert_eq!(code, 0, "{err}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&report["ok"], &report["jobs"]), (&true.into(), &1.into()), "{report}");
    let (code, out, _) = site.run(&["store", "check", "--store", "beside.db"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains(" jobs 1, ") && out.ends_with("all of it fits\n"), "{out}");
    let (code, _, err) = site.run(&["store", "backup", "beside.db"]);
    assert_eq!(code, 1);
    assert!(err.contains("name a file that does not"), "{err}");
    let (code, out, err) = site.run(&["store", "backup", "after.db", "--json"]);
    assert_eq!(code, 0, "{err}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    let copy = Path::new(report["path"].as_str().expect("a path"));
    let bytes = copy.metadata().expect("it is there").len();
    assert_eq!(report["bytes"], bytes, "{report}");
}

#[test]
fn a_store_that_is_not_there_is_not_made() {
    let site = Site::new();
    for args in [&["store", "check"][..], &["store", "backup", "x.db"]] {
        let (code, out, err) = site.run(args);
        assert_eq!((code, &*out), (1, ""), "{err}");
        assert!(err.contains("there is no store at"), "{err}");
    }
    assert!(!site.path().join(".ostler").exists() && !site.path().join("x.db").exists());
}

#[test]
fn a_damaged_store_is_found() {
    let server = served();
    let site = &server.site;
    let file = site.path().join("beside.db");
    let mut bytes = std::fs::read(&file).expect("a copy");
    // All but the first page, which says what the file is.
    bytes[4_096..].fill(0xa5);
    std::fs::write(&file, bytes).expect("written");
    let (code, out, err) = site.run(&["store", "check", "--store", "beside.db"]);
    assert_eq!(code, 1, "{out}{err}");
}
