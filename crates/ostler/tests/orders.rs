//! `ostler pause`, `resume`, `drain`, `scale`, `recycle` and `reload` as a user runs them, against
//! a scripted server.

mod support;

use std::io::{BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread::JoinHandle;

use support::{Answer, Ran, Server, answer, json, problem, read, run_in};

fn ok(out: &str) -> Ran {
    Ran { code: 0, out: out.to_owned(), err: String::new() }
}

fn pool(lifecycle: &str, queued: u32, running: u32) -> String {
    format!(
        r#"{{"name":"hello","lifecycle":"{lifecycle}","paused":false,"queue_length":{queued},"running":{running},"workers":[{{"name":"hello-1"}}]}}"#
    )
}

const NO_POOL: &str = r#"{"title":"Not Found","code":"pool_not_found","status":404,"detail":"there is no pool `hello`; known: py"}"#;

#[test]
fn pause_and_resume_say_what_the_pool_holds() {
    let server = Server::saying(json(&pool("running", 3, 1)));
    let ran = server.run(&["pause", "hello"]);
    assert_eq!(ran, ok("hello: paused; 3 requests wait, 1 runs\n"));
    let request = server.seen();
    let seen = (request.line.as_str(), request.body.as_str());
    assert_eq!(seen, ("POST /api/pools/hello/pause", ""));
    let ran = server.run(&["resume", "hello"]);
    assert_eq!(ran, ok("hello: running again; 3 requests wait, 1 runs\n"));
    assert_eq!(server.seen().line, "POST /api/pools/hello/resume");
}

#[test]
fn every_order_prints_the_servers_answer_as_json_where_it_is_asked_to() {
    let body = pool("draining", 0, 0);
    let server = Server::saying(json(&body));
    for args in [
        &["pause", "hello"][..],
        &["resume", "hello"],
        &["drain", "hello"],
        &["drain", "hello", "--no-wait"],
        &["scale", "hello", "3"],
        &["reload", "hello"],
    ] {
        let ran = server.run(&[args, &["--json"]].concat());
        assert_eq!(ran, ok(&format!("{body}\n")), "{args:?}");
    }
}

#[test]
fn an_unknown_pool_is_refused_with_those_that_are_known() {
    let server = Server::saying(problem(404, NO_POOL));
    for args in [
        &["pause", "hello"][..],
        &["resume", "hello"],
        &["drain", "hello"],
        &["scale", "hello", "1"],
    ] {
        let ran = server.run(args);
        assert_eq!((ran.code, ran.out.as_str()), (5, ""), "{args:?}: {ran:?}");
        assert!(ran.err.contains("known: py"), "{args:?}: {ran:?}");
    }
}

#[test]
fn a_server_that_is_not_there_is_3_for_every_order() {
    let nowhere = tempfile::tempdir().expect("a directory");
    std::fs::write(nowhere.path().join("ostler.toml"), "").expect("written");
    for args in [
        &["pause", "p"][..],
        &["resume", "p"],
        &["drain", "p"],
        &["scale", "p", "1"],
        &["recycle", "p"],
        &["recycle", "p", "--rolling"],
        &["reload"],
        &["sessions"],
    ] {
        assert_eq!(run_in(nowhere.path(), args, "").code, 3, "{args:?}");
    }
}

#[test]
fn drain_waits_until_nothing_is_queued_or_running() {
    let mut left = vec![(0, 0), (0, 1), (1, 1)];
    let server = Server::start(move |_| {
        let (queued, running) = left.pop().expect("it does not ask again");
        json(&pool("draining", queued, running))
    });
    let ran = server.run(&["drain", "hello"]);
    assert_eq!(ran, ok("hello: drained, nothing waits or runs\n"));
    assert_eq!(server.seen().line, "POST /api/pools/hello/drain");
    assert_eq!(server.seen().line, "GET /api/pools/hello");
    assert_eq!(server.seen().line, "GET /api/pools/hello");
}

#[test]
fn drain_does_not_wait_where_it_is_told_not_to() {
    let server = Server::saying(json(&pool("draining", 2, 5)));
    let ran = server.run(&["drain", "hello", "--no-wait"]);
    assert_eq!(ran, ok("hello: draining; 2 requests wait, 5 run\n"));
}

#[test]
fn drain_gives_up_after_its_time_and_says_what_is_left() {
    let server = Server::saying(json(&pool("draining", 0, 1)));
    let ran = server.run(&["drain", "hello", "--timeout", "1ms"]);
    assert_eq!((ran.code, ran.out.as_str()), (124, ""), "{ran:?}");
    let words = "hello is not empty after 1ms: nothing waits, 1 runs";
    assert!(ran.err.contains(words), "{ran:?}");
    assert!(ran.err.contains("ostler resume hello"), "{ran:?}");
}

#[test]
fn a_drain_that_somebody_undid_is_a_failure() {
    let server = Server::start(|request| match request.line.starts_with("POST") {
        true => json(&pool("draining", 0, 1)),
        false => json(&pool("running", 0, 1)),
    });
    let ran = server.run(&["drain", "hello"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("did somebody resume it?"), "{ran:?}");
}

#[test]
fn scale_takes_a_number_or_a_range() {
    let server = Server::saying(json(&pool("running", 0, 0)));
    for (bounds, body, words) in
        [("4", r#"{"size":4}"#, "4 workers"), ("1..8", r#"{"max":8,"min":1}"#, "1 to 8 workers")]
    {
        let ran = server.run(&["scale", "hello", bounds]);
        assert_eq!(ran, ok(&format!("hello: {words} from now on, 1 at the moment\n")));
        let request = server.seen();
        let seen = (request.line.as_str(), request.body.as_str());
        assert_eq!(seen, ("POST /api/pools/hello/scale", body));
    }
    let ran = server.run(&["scale", "hello", "9..2"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("9 is more than 2"), "{ran:?}");
}

#[test]
fn recycle_takes_a_pool_or_else_a_worker() {
    let of_pool = r#"{"pool":"hello","workers":["hello-1","hello-2"]}"#;
    let server = Server::saying(answer(202, "application/json", of_pool));
    let ran = server.run(&["recycle", "hello"]);
    assert_eq!(ran, ok("hello: 2 workers are being replaced: hello-1, hello-2\n"));
    assert_eq!(server.seen().line, "POST /api/pools/hello/recycle");
    assert_eq!(server.run(&["recycle", "hello", "--json"]), ok(&format!("{of_pool}\n")));

    let server = Server::start(|request| match request.line.contains("/pools/") {
        true => problem(404, NO_POOL),
        false => answer(202, "application/json", r#"{"name":"hello-2","pool":"hello"}"#),
    });
    let ran = server.run(&["recycle", "hello-2"]);
    assert_eq!(ran, ok("hello: hello-2 is being replaced\n"));
    assert_eq!(server.seen().line, "POST /api/pools/hello-2/recycle");
    assert_eq!(server.seen().line, "POST /api/supervisor/workers/hello-2/recycle");

    let server = Server::saying(problem(404, NO_POOL));
    let ran = server.run(&["recycle", "hallo"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let words = "there is no pool and no worker `hallo`; see: ostler workers";
    assert!(ran.err.contains(words), "{ran:?}");
}

/// Serves one connection after the other with one answer each, at the place of the server.
fn scripted(directory: &Path, answers: Vec<Answer>) -> JoinHandle<Vec<String>> {
    let socket = directory.join(".ostler/ostler.sock");
    std::fs::create_dir(socket.parent().expect("a parent")).expect("a directory");
    let listener = UnixListener::bind(&socket).expect("a socket");
    std::thread::spawn(move || {
        let served = answers.into_iter().map(|answer| {
            let mut reader = BufReader::new(listener.accept().expect("a client").0);
            let request = read(&mut reader).expect("a request");
            reader.get_mut().write_all(&answer.bytes).expect("sent");
            request.line
        });
        served.collect()
    })
}

fn events(events: &[&str]) -> Answer {
    let numbered = events.iter().enumerate();
    let text: String = numbered
        .map(|(number, data)| {
            let kind = data.split('"').nth(3).expect("its kind is first");
            format!("id: {number}\nevent: {kind}\ndata: {data}\n\n")
        })
        .collect();
    answer(200, "text/event-stream", &text)
}

const AT: &str = r#""at":"2026-01-02T03:04:05.000Z","pool":"hello""#;

fn spawned(worker: &str) -> String {
    format!(
        r#"{{"kind":"worker.spawned",{AT},"worker":"{worker}","generation":1,"reason":"first"}}"#
    )
}

fn completed(worker: &str) -> String {
    format!(r#"{{"kind":"worker.transition",{AT},"worker":"{worker}","to":"COMPLETED"}}"#)
}

const TWO: &str = r#"{"pool":"hello","workers":["hello-1","hello-2"]}"#;

#[test]
fn a_rolling_recycle_is_shown_to_the_last_replacement() {
    let here = tempfile::tempdir().expect("a directory");
    let lagged = r#"{"kind":"lagged","missed":2}"#;
    let first: [&str; 3] = [&spawned("hello-3"), &completed("hello-1"), lagged];
    let second: [&str; 3] = [&spawned("hello-4"), &completed("hello-2"), &spawned("hello-5")];
    let answers = vec![events(&first), answer(202, "application/json", TWO), events(&second)];
    let server = scripted(here.path(), answers);
    let ran = run_in(here.path(), &["recycle", "hello", "--rolling"], "");
    let expected = "\
hello: 2 workers are being replaced: hello-1, hello-2
2026-01-02T03:04:05.000Z  hello-3#1  started
hello-1 is replaced, 1 of 2
2026-01-02T03:04:05.000Z  hello-4#1  started
hello-2 is replaced, 2 of 2
";
    assert_eq!(ran, ok(expected));
    let asked = server.join().expect("it served");
    let expected = [
        "GET /api/events?kind=worker%2Cpool",
        "POST /api/pools/hello/recycle",
        "GET /api/events?kind=worker%2Cpool&after=2",
    ];
    assert_eq!(asked, expected, "the events are followed before the order is given");
}

#[test]
fn a_rolling_recycle_ends_with_the_pool_or_the_server_that_fails() {
    let failed = format!(r#"{{"kind":"pool.failed",{AT},"reason":"restart_budget_spent"}}"#);
    let one_done = completed("hello-1");
    for (stream, words) in [
        (vec![one_done.as_str(), &failed], "pool `hello` has failed; not replaced: hello-2"),
        (vec![&one_done], "the server has ended; not replaced: hello-2"),
    ] {
        let here = tempfile::tempdir().expect("a directory");
        let answers = vec![events(&stream), answer(202, "application/json", TWO)];
        let server = scripted(here.path(), answers);
        let ran = run_in(here.path(), &["recycle", "hello", "--rolling"], "");
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.err.contains(words), "{ran:?}");
        server.join().expect("it served");
    }
}

#[test]
fn reload_shows_the_difference_and_what_comes_of_it() {
    let body = r#"{"changes":[{"pool":"a","what":"changed","keys":["env"],"rolled":true},
        {"pool":"b","what":"unchanged","keys":[],"rolled":false}],"restart_needed":[]}"#;
    let server = Server::saying(json(body));
    let ran = server.run(&["reload", "a", "b"]);
    let expected = "\
POOL             KEYS  WHAT HAPPENS
a     changed    env   its workers are being replaced
b     unchanged
";
    assert_eq!(ran, ok(expected));
    let request = server.seen();
    let seen = (request.line.as_str(), request.body.as_str());
    assert_eq!(seen, ("POST /api/reload", r#"{"pools":["a","b"]}"#));
    server.run(&["reload"]);
    assert_eq!(server.seen().body, "{}");
}

#[test]
fn a_reload_that_is_refused_ends_with_1_and_the_reason() {
    let broken = r#"{"code":"reload_failed","status":409,"title":"Conflict","pool":"py","detail":"exit code 1; it last said: SyntaxError"}"#;
    let ran = Server::saying(problem(409, broken)).run(&["reload"]);
    let err =
        "ostler: not reloaded, pool `py` stays as it was: exit code 1; it last said: SyntaxError\n";
    assert_eq!(ran, Ran { code: 1, out: String::new(), err: err.to_owned() });
    let invalid = r#"{"code":"invalid_configuration","status":422,"detail":"ostler.toml:2:1: unknown key `sise`\n"}"#;
    let ran = Server::saying(problem(422, invalid)).run(&["reload"]);
    let err = "ostler: the configuration is not valid; everything stays as it was\nostler.toml:2:1: unknown key `sise`\n";
    assert_eq!(ran, Ran { code: 1, out: String::new(), err: err.to_owned() });
}
