//! `ostler status`, `stop`, `doctor`, `serve` and how a server is found, as a user runs them.

mod support;

use std::io::{BufReader, Write as _};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use support::{Answer, Ran, Server, answer, command_in, json, problem, ran, read, run_in};

const STATS: &str = r#"{
  "server": {"version": "9.9", "uptime_seconds": 3725.5, "pid": 1, "listen": "127.0.0.1:6785"},
  "pools": [
    {"name": "hello", "lifecycle": "running", "occupancy": "active",
     "containment": {"level": "C1", "detail": "shims"},
     "size": 2, "queue_length": 3, "running": 1, "later": {},
     "workers": [
       {"id": "w_1", "name": "hello-1", "status": "RUNNING", "phase": "busy", "health": "healthy",
        "generation": 7, "pid": 4243, "capacity": 1, "load": 1,
        "requests": {"completed": 40, "failed": 2}, "started_at": null, "memory": 33554432},
       {"id": "w_2", "name": "hello-\u001b[31m2", "status": "RUNNING", "phase": "PHASE", "health": "unknown",
        "generation": 1, "pid": null, "capacity": 1, "load": 0, "requests": {}}
     ]}
  ]
}"#;

fn stats(phase: &str) -> String {
    STATS.replace("PHASE", phase)
}

#[test]
fn status_is_a_table_with_nothing_that_drives_the_terminal() {
    let server = Server::saying(json(&stats("starting")));
    let ran = server.run(&["status"]);
    let expected = r"ostler 9.9  http://127.0.0.1:6785  pid 1  up 1h 2m

POOL   STATE    OCCUPANCY  WORKERS  RUNNING  QUEUED  CONTAINMENT
hello  running  active     1/2      1        3       C1

WORKER               STATUS   PHASE     HEALTH   PID   LOAD  REQUESTS  MEMORY  UP
hello-1#7            RUNNING  busy      healthy  4243  1/1   42        32 MiB  -
hello-\u001b[31m2#1  RUNNING  starting  unknown  -     0/1   0         -       -
"
    .replace("\\\\", "\\");
    assert_eq!(ran, Ran { code: 0, out: expected, err: String::new() });
    assert_eq!(server.seen().line, "GET /api/stats");
}

#[test]
fn status_of_a_degraded_pool_ends_with_4_and_says_which() {
    let server = Server::saying(json(&stats("degraded")));
    let ran = server.run(&["status"]);
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(ran.out.ends_with("\nhello: 1 of 2 workers are degraded\n"), "{ran:?}");
    let failed = stats("ready").replace(
        "\"lifecycle\": \"running\"",
        "\"lifecycle\": \"failed\", \"reason\": \"8 restarts in 30 s\"",
    );
    let server = Server::saying(json(&failed));
    let ran = server.run(&["status"]);
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(ran.out.ends_with("\nhello: the pool is failed: 8 restarts in 30 s\n"), "{ran:?}");
}

#[test]
fn status_as_json_is_the_servers_own_answer() {
    let server = Server::saying(json(&stats("ready")));
    let ran = server.run(&["status", "--json"]);
    assert_eq!(ran.out, format!("{}\n", stats("ready")));
    assert_eq!(ran.code, 0);
}

#[test]
fn status_says_when_the_answer_is_strange_or_a_problem() {
    let server = Server::saying(json("[1]"));
    let ran = server.run(&["status"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("is not understood"), "{ran:?}");
    let refusal = "{\"title\":\"Shutting down\",\"code\":\"shutting_down\",\"status\":503}";
    let server = Server::saying(problem(503, refusal));
    let ran = server.run(&["status"]);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert_eq!(ran.err, "ostler: Shutting down (shutting_down)\n");
}

#[test]
fn a_server_that_is_not_there_is_3_with_the_next_step() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(
        directory.path().join("ostler.toml"),
        "[server]\nsocket = \"run/x.sock\"\n[pools.not-even-valid]\n",
    )
    .expect("written");
    let socket = directory.path().join("run/x.sock");
    for args in [&["status"][..], &["call", "p", "f"], &["stop"]] {
        let ran = run_in(directory.path(), args, "");
        let err = format!(
            "ostler: no server answers at {}; start one with: ostler serve FILE.py\n",
            socket.display()
        );
        let expected = Ran { code: 3, out: String::new(), err };
        assert_eq!(ran, expected, "{args:?}");
    }
}

#[test]
fn the_server_is_found_from_below_its_configuration_and_by_its_url() {
    let server = Server::saying(json(&stats("ready")));
    std::fs::write(server.directory().join("ostler.toml"), "").expect("written");
    let below = server.directory().join("a/b");
    std::fs::create_dir_all(&below).expect("directories");
    assert_eq!(run_in(&below, &["status"], "").code, 0);

    // A port that was just given back: nobody listens there.
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a port")
        .port();
    let url = format!("http://127.0.0.1:{port}");
    let ran = run_in(server.directory(), &["status", "--url", &url], "");
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.err.contains(&url), "{ran:?}");
}

#[test]
fn a_url_reaches_the_server_over_tcp() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = std::thread::spawn(move || {
        let mut reader = BufReader::new(listener.accept().expect("a client").0);
        let request = read(&mut reader).expect("a request");
        let answer = json(&stats("ready"));
        reader.get_mut().write_all(&answer.bytes).expect("sent");
        request
    });
    let nowhere = tempfile::tempdir().expect("a directory");
    let url = format!("http://{address}/");
    let ran = run_in(nowhere.path(), &["status", "--url", &url], "");
    assert_eq!(ran.code, 0, "{ran:?}");
    let request = server.join().expect("it served");
    assert!(request.has(&format!("host: {address}")), "{request:?}");
}

#[test]
fn the_configuration_may_be_named_by_the_environment() {
    let server = Server::saying(json(&stats("ready")));
    let file = server.directory().join("site.toml");
    std::fs::write(&file, "").expect("written");
    let elsewhere = tempfile::tempdir().expect("a directory");
    let output = command_in(elsewhere.path(), &["status"])
        .env("OSTLER_CONFIG", &file)
        .output()
        .expect("the command ends");
    let ran = ran(output);
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn a_configuration_whose_server_cannot_be_read_is_a_usage_error() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("x.toml"), "[server]\nsokket = 1\n").expect("written");
    let ran = run_in(directory.path(), &["status", "--config", "x.toml"], "");
    let err = "\
ostler: x.toml:2:1: unknown key `sokket` in [server]
  |
2 | sokket = 1
  | ^^^^^^
  = did you mean `socket`?

x.toml: 1 problem
";
    assert_eq!(ran, Ran { code: 2, out: String::new(), err: err.to_owned() });
}

/// Stands in for the server's process: it lives until its input ends.
fn process() -> Child {
    Command::new("cat").stdin(Stdio::piped()).spawn().expect("cat runs")
}

#[test]
fn stop_asks_and_returns_when_the_process_and_its_socket_are_gone() {
    let mut process = process();
    let pid = process.id();
    let server = Server::start(move |request| match request.line.as_str() {
        "GET /api/stats" => json(&format!("{{\"server\":{{\"pid\":{pid}}}}}")),
        _ => {
            drop(process.stdin.take());
            process.wait().expect("cat ends");
            Answer { last: true, ..answer(202, "application/json", "{}") }
        }
    });
    let ran = server.run(&["stop", "--now"]);
    let expected = Ran { code: 0, out: "stopped\n".to_owned(), err: String::new() };
    assert_eq!(ran, expected);
    assert_eq!(server.seen().line, "GET /api/stats");
    let stop = server.seen();
    assert_eq!(stop.line, "POST /api/server/stop");
    assert_eq!(stop.body, "{\"now\":true}");
}

#[test]
fn stop_works_on_a_server_that_cannot_tell_how_it_is() {
    let server = Server::start(|request| match request.line.as_str() {
        "GET /api/stats" => problem(500, "{}"),
        _ => Answer { last: true, ..answer(202, "application/json", "{}") },
    });
    let ran = server.run(&["stop"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "stopped\n"), "{ran:?}");
}

#[test]
fn stop_gives_up_on_a_process_that_stays() {
    let mut process = process();
    let pid = process.id();
    let server = Server::start(move |request| match request.line.as_str() {
        "GET /api/stats" => json(&format!("{{\"server\":{{\"pid\":{pid}}}}}")),
        _ => Answer { last: true, ..answer(202, "application/json", "{}") },
    });
    let ran = server.run(&["stop", "--timeout", "50ms"]);
    drop(process.stdin.take());
    process.wait().expect("cat ends");
    assert_eq!(ran.code, 124, "{ran:?}");
    assert!(ran.err.contains("ostler stop --now"), "{ran:?}");
}

#[test]
fn doctor_names_every_check_with_its_verdict() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(
        directory.path().join("ostler.toml"),
        "version = 1\n[pools.x]\ncommand = [\"/no/such/program\"]\n",
    )
    .expect("written");
    let ran = run_in(directory.path(), &["doctor", "--json"], "");
    let report: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    let verdict = |name: &str| {
        let checks = report["checks"].as_array().expect("checks");
        let check = checks.iter().find(|check| check["name"] == name);
        check.map(|check| check["verdict"].as_str().unwrap_or("?").to_owned())
    };
    assert_eq!(verdict("configuration").as_deref(), Some("ok"));
    assert_eq!(verdict("server").as_deref(), Some("ok"));
    assert_eq!(verdict("command").as_deref(), Some("problem"));
    assert_eq!(verdict("python"), None, "no pool needs it");
    for name in
        ["socket", "open files", "kernel", "pidfd", "subreaper", "PID namespaces", "containment"]
    {
        assert!(verdict(name).is_some(), "{name}");
    }
    assert_eq!(ran.code, 1, "a problem is a failure");

    let shown = run_in(directory.path(), &["doctor"], "");
    assert_eq!(shown.code, 1, "{shown:?}");
    assert!(
        shown.out.contains("problem  command         /no/such/program is not there"),
        "{}",
        shown.out
    );
}

#[test]
fn doctor_shows_a_broken_configuration_in_full() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("ostler.toml"), "versoin = 1\n").expect("written");
    let ran = run_in(directory.path(), &["doctor"], "");
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.out.contains("did you mean `version`?"), "{}", ran.out);
    assert!(ran.out.contains("^^^^^^^"), "{}", ran.out);
}

#[test]
fn serve_refuses_what_it_cannot_serve() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("w.py"), "").expect("written");
    for (args, words) in [
        (&["serve"][..], "nothing to serve"),
        (&["serve", "none.py"], "there is no file"),
        (&["serve", "ostler.toml"], "--config ostler.toml"),
        (&["serve", "--config", "none.toml"], "cannot read the configuration none.toml"),
        (&["serve", "w.py", "--config", "x.toml"], "cannot be used with"),
        (&["serve", "w.py", "--size", "0"], "0 is not in 1..=1000"),
        (&["serve", "w.py", "--listen", "0.0.0.0:1"], "from other machines"),
        (&["serve", "w.py", "--listen", "x"], "not an address"),
    ] {
        let ran = run_in(directory.path(), args, "");
        assert_eq!(ran.code, 2, "{args:?}: {ran:?}");
        assert!(ran.err.contains(words), "{args:?}: {ran:?}");
    }
}

#[test]
fn help_and_version_are_answers_and_no_command_is_a_usage_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let run = |args: &[&str]| run_in(directory.path(), args, "");
    for args in [&["--help"][..], &["--version"], &["call", "--help"], &["serve", "-h"]] {
        let ran = run(args);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}");
        assert!(!ran.out.is_empty(), "{args:?}");
    }
    assert_eq!(run(&[]).code, 2);
    let ran = run(&["stats"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("'status'"), "{ran:?}");
}
