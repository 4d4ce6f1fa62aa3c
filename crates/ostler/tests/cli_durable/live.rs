//! Commands against the built server: what they print is what came about.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use super::server::{Server, Site, until};

fn served() -> Server {
    Site::new().serve()
}

/// What a command printed, which must succeed.
fn said(server: &Server, args: &[&str]) -> String {
    let (code, out, err) = server.site.run(args);
    assert_eq!((code, &*err), (0, ""), "{args:?}");
    out.trim_end().to_owned()
}

fn job(server: &Server, id: &str) -> Value {
    serde_json::from_str(&said(server, &["jobs", "show", id, "--json"])).expect("JSON")
}

#[test]
fn a_job_is_waited_for_followed_and_shown() {
    let server = served();
    let result = said(&server, &["jobs", "submit", "work", "greet", r#"{"name":"Ada"}"#, "--wait"]);
    assert_eq!(result, "\"hello, Ada\"");
    let told = said(&server, &["jobs", "submit", "work", "report", "[2]", "--follow"]);
    let id = told.lines().next().expect("its id");
    for words in ["SUBMITTED", "PENDING → RUNNING", "runs on work-1", "RUNNING → COMPLETED"] {
        assert!(told.contains(words), "{words} in {told}");
    }
    assert!(told.contains("progress: "), "{told}");
    let again = said(&server, &["jobs", "follow", id]);
    assert_eq!(format!("{id}\n{again}"), told, "the story is kept");
    let shown = said(&server, &["jobs", "show", id]);
    assert!(shown.contains("status      COMPLETED") && shown.contains("work-1"), "{shown}");
    let listed = said(&server, &["jobs", "--status", "completed"]);
    assert_eq!(listed.lines().count(), 3, "{listed}");
}

#[test]
fn a_failed_job_shows_its_error_and_can_be_tried_again() {
    let server = served();
    let (code, out, err) = server.site.run(&["jobs", "submit", "work", "fail", "--wait"]);
    assert_eq!((code, &*out), (1, ""), "{err}");
    assert!(err.contains("(application_error)\n  as asked\n"), "{err}");
    let failed = said(&server, &["jobs", "--json", "--status", "FAILED"]);
    let failed: Value = serde_json::from_str(&failed).expect("JSON");
    let id = failed["items"][0]["id"].as_str().expect("an id");
    let again = said(&server, &["jobs", "retry", id]);
    assert_eq!(server.site.run(&["jobs", "follow", &again]).0, 1);
    assert_eq!(job(&server, &again)["retry_of"], id);
}

#[test]
fn one_key_makes_one_job() {
    let server = served();
    let submit = ["jobs", "submit", "work", "greet", "--key", "order 17"];
    let first = said(&server, &submit);
    assert_eq!(said(&server, &submit), first);
    let (code, _, err) =
        server.site.run(&["jobs", "submit", "work", "greet", "[1]", "--key", "order 17"]);
    assert_eq!(code, 5, "{err}");
    assert_eq!(said(&server, &["jobs"]).lines().count(), 2);
}

#[test]
fn a_running_job_is_cancelled_and_its_trail_fits() {
    let server = served();
    let id = said(&server, &["jobs", "submit", "work", "hold", r#"["x"]"#]);
    until("it runs", || !server.site.lines("begun").is_empty());
    let said_so = said(&server, &["jobs", "cancel", &id, "--reason", "no more"]);
    assert!(said_so.starts_with(&id), "{said_so}");
    let (code, _, err) = server.site.run(&["jobs", "follow", &id]);
    assert_eq!(code, 5, "{err}");
    let trail = said(&server, &["audit", "job", &id]);
    let last = trail.lines().last().expect("a step");
    assert!(last.contains("CANCELED") && last.contains("no more"), "{trail}");
    let (code, _, err) = server.site.run(&["jobs", "cancel", &id]);
    assert_eq!(code, 5, "{err}");
    assert!(said(&server, &["audit", "verify"]).ends_with("all of it fits"));
}

#[test]
fn a_job_out_of_time_ends_with_124() {
    let server = served();
    let submit = ["jobs", "submit", "work", "hold", r#"["x"]"#, "--timeout", "50ms", "--wait"];
    let (code, out, err) = server.site.run(&submit);
    assert_eq!((code, &*out), (124, ""), "{err}");
}

#[test]
fn a_paused_queue_holds_its_jobs() {
    let server = served();
    assert_eq!(said(&server, &["jobs", "pause"]), "default: paused; nothing waits, nothing runs");
    let id = said(&server, &["jobs", "submit", "work", "greet"]);
    let other = ["jobs", "submit", "work", "greet", "--queue", "q", "--wait"];
    assert_eq!(said(&server, &other), "\"hello, world\"");
    assert_eq!(job(&server, &id)["status"], "PENDING");
    let queues = said(&server, &["jobs", "queues"]);
    assert!(queues.lines().nth(1).is_some_and(|line| line.contains("since")), "{queues}");
    said(&server, &["jobs", "resume"]);
    assert!(said(&server, &["jobs", "follow", &id]).ends_with("\"hello, world\""));
}

#[test]
fn a_worker_of_ones_own_lives_by_its_orders() {
    let server = served();
    let name = said(&server, &["workers", "create", "work", "--workspace", "ann"]);
    let (code, _, err) = server.site.run(&["workers", "call", &name, "greet"]);
    assert_eq!(code, 5, "it is not started: {err}");
    assert!(said(&server, &["workers", "start", &name]).starts_with(&format!("{name}: RUNNING")));
    assert_eq!(said(&server, &["workers", "call", &name, "greet"]), "\"hello, world\"");
    let paused = said(&server, &["workers", "pause", &name, "--freeze", "--reason", "a look"]);
    assert_eq!(paused, format!("{name}: PAUSED"));
    let (code, _, err) = server.site.run(&["workers", "complete", &name]);
    assert_eq!(code, 5, "{err}");
    assert!(err.contains("allowed:\n    FAILED\n    RUNNING\n    TERMINATED"), "{err}");
    said(&server, &["workers", "resume", &name]);
    assert_eq!(said(&server, &["workers", "terminate", &name]), format!("{name}: TERMINATED"));
    let trail = said(&server, &["audit", "worker", &name, "--json"]);
    let trail: Value = serde_json::from_str(&trail).expect("JSON");
    let steps = trail["items"].as_array().expect("steps").iter();
    let steps: Vec<&str> = steps.filter_map(|step| step["to"].as_str()).collect();
    assert_eq!(steps, ["IDLE", "RUNNING", "PAUSED", "RUNNING", "TERMINATED"]);
}

/// Another server in the directory of one that is gone; it ends with the test.
struct Next(std::process::Child);

impl Drop for Next {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_job_is_followed_through_the_death_of_its_server() {
    let mut server = served();
    let id = said(&server, &["jobs", "submit", "work", "hold", r#"["x"]"#]);
    until("it runs", || !server.site.lines("begun").is_empty());
    let mut follow = server.site.command(&["jobs", "follow", &id]);
    let mut follow =
        follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(follow.stdout.take().expect("a pipe")).lines();
    let mut told: Vec<String> = Vec::new();
    while !told.iter().any(|line| line.contains("runs on")) {
        told.push(lines.next().expect("it goes on").expect("text"));
    }
    server.signal(Signal::KILL);
    server.ended();
    let mut next = server.site.serve_command();
    let _next = Next(next.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts"));
    until("it runs again", || server.site.lines("begun").len() == 2);
    server.site.give("go");
    told.extend(lines.map(|line| line.expect("text")));
    let ended = follow.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(0), "{told:#?}");
    let count = |words: &str| told.iter().filter(|line| line.contains(words)).count();
    assert_eq!((count("SUBMITTED → PENDING"), count("failed: lost")), (1, 1), "{told:#?}");
    assert_eq!((count("attempt 2 runs on"), count("→ COMPLETED")), (1, 1), "{told:#?}");
    assert_eq!(told.last().map(String::as_str), Some("\"x\""));
}

#[test]
fn a_schedule_submits_its_jobs() {
    let server = served();
    let id = said(
        &server,
        &["schedules", "add", "poll", "@every 1s", "work", "greet", "--max-attempts", "1"],
    );
    let jobs = || said(&server, &["jobs", "--schedule", &id]).lines().count() - 1;
    until("a job of it", || jobs() > 0);
    assert_eq!(said(&server, &["schedules", "pause", "poll"]), "poll: paused");
    let listed = said(&server, &["schedules"]);
    assert!(listed.contains("@every 1s") && listed.contains("paused"), "{listed}");
    let (code, _, err) = server.site.run(&["schedules", "add", "poll", "@daily", "work", "greet"]);
    assert_eq!(code, 5, "{err}");
    let (code, _, err) =
        server.site.run(&["schedules", "add", "bad", "every day", "work", "greet"]);
    assert_eq!(code, 5, "{err}");
    said(&server, &["schedules", "delete", "poll"]);
    assert_eq!(said(&server, &["schedules"]).lines().count(), 1);
}
