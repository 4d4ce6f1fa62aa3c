//! `ostler call` as a user runs it, against a scripted server.

mod support;

use support::{Answer, Ran, Server, answer, json, ndjson, problem, run_in};

fn ok(out: &str) -> Ran {
    Ran { code: 0, out: out.to_owned(), err: String::new() }
}

fn failed(code: i32, out: &str, err: &str) -> Ran {
    Ran { code, out: out.to_owned(), err: err.to_owned() }
}

#[test]
fn the_result_is_printed_as_it_came() {
    let server = Server::saying(json("{\"b\": 1,  \"a\":\"\\u00e9\"}"));
    let ran = server.run(&["call", "hello", "greet", "{\"name\": \"ann\"}"]);
    assert_eq!(ran, ok("{\"b\": 1,  \"a\":\"\\u00e9\"}\n"));
    let request = server.seen();
    assert_eq!(request.line, "POST /api/pools/hello/call/greet");
    assert_eq!(request.body, "{\"name\": \"ann\"}");
    assert!(request.has("content-type: application/json"), "{request:?}");
    assert!(request.has("host: localhost"), "{request:?}");
    for header in ["ostler-timeout", "ostler-idempotent", "ostler-priority"] {
        assert!(!request.names(header), "{request:?}");
    }
}

#[test]
fn options_become_headers() {
    let server = Server::saying(json("1"));
    let options = ["--timeout=1500ms", "--idempotent", "--priority=-7", "--request-id=abc"];
    let ran = server.run(&[&["call", "p", "f"], &options[..]].concat());
    assert_eq!(ran, ok("1\n"));
    let request = server.seen();
    assert_eq!(request.body, "");
    for header in [
        "ostler-timeout: 1.5",
        "ostler-idempotent: true",
        "ostler-priority: -7",
        "ostler-request-id: abc",
    ] {
        assert!(request.has(header), "{header} in {request:?}");
    }
    assert!(!request.names("content-type"), "{request:?}");
}

#[test]
fn the_payload_comes_from_the_argument_a_file_or_standard_input() {
    let server = Server::saying(json("null"));
    std::fs::write(server.directory().join("in.json"), "[1, 2]\n").expect("written");
    for (argument, input, body) in [
        ("-5", "", "-5"),
        ("\"ann\"", "", "\"ann\""),
        ("@in.json", "", "[1, 2]\n"),
        ("-", " {\"a\": 1}", " {\"a\": 1}"),
        ("-", "", ""),
    ] {
        let ran = server.run_with_input(&["call", "p", "f", argument], input);
        assert_eq!(ran, ok("null\n"), "{argument}");
        assert_eq!(server.seen().body, body, "{argument}");
    }
}

#[test]
fn raw_prints_a_text_without_its_quotes() {
    let server = Server::saying(json("\"a\\nb\""));
    assert_eq!(server.run(&["call", "p", "f", "--raw"]), ok("a\nb"));
    let server = Server::saying(json("[1]"));
    assert_eq!(server.run(&["call", "p", "f", "--raw"]), ok("[1]"));
}

#[test]
fn bytes_that_are_not_json_stay_as_they_are() {
    let server = Server::saying(answer(200, "application/octet-stream", "a\u{1b}b"));
    assert_eq!(server.run(&["call", "p", "f"]), ok("a\u{1b}b"));
}

/// Runs a command on a terminal of its own and passes on what appears there.
const ON_A_TERMINAL: &str = "import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

#[test]
fn a_terminal_gets_control_characters_as_escapes() {
    let server = Server::saying(json("\"a\u{7f}\u{9b}31m\u{202e}\""));
    let output = std::process::Command::new("python3")
        .args(["-c", ON_A_TERMINAL])
        .args([env!("CARGO_BIN_EXE_ostler"), "call", "p", "f"])
        .current_dir(server.directory())
        .stdin(std::process::Stdio::null())
        .output()
        .expect("python3 runs");
    assert!(output.status.success(), "{output:?}");
    let shown = String::from_utf8(output.stdout).expect("text");
    assert_eq!(shown.trim_end(), r#""a\u007f\u009b31m\u202e""#);
}

#[test]
fn a_stream_is_one_chunk_per_line() {
    let lines = "{\"type\":\"message\",\"data\":{\"n\": 0}}\n\
                 {\"type\":\"later\",\"data\":9}\n\n\
                 {\"data\":[1,  2],\"type\":\"message\"}\n\
                 {\"type\":\"complete\",\"data\":null}\n";
    let server = Server::saying(ndjson(lines));
    let ran = server.run(&["call", "p", "count", "[2]", "--stream"]);
    assert_eq!(ran, ok("{\"n\": 0}\n[1,  2]\n"));
    assert!(server.seen().has("accept: application/x-ndjson"));
}

#[test]
fn a_stream_ends_with_the_result_that_is_not_null() {
    let server = Server::saying(ndjson("{\"type\":\"complete\",\"data\":\"x\"}\n"));
    assert_eq!(server.run(&["call", "p", "f", "--stream"]), ok("\"x\"\n"));
}

#[test]
fn a_stream_that_fails_keeps_its_chunks_and_says_why() {
    let lines = "{\"type\":\"message\",\"data\":0}\n\
                 {\"type\":\"error\",\"data\":{\"title\":\"Worker crashed\",\"code\":\"worker_crashed\",\
                 \"status\":502,\"detail\":\"signal 11 after 1 chunk\",\"stderr\":[\"boom\",\"\\u001b[2Jbye\"]}}\n";
    let server = Server::saying(ndjson(lines));
    assert_eq!(
        server.run(&["call", "p", "f", "--stream"]),
        failed(
            1,
            "0\n",
            "ostler: Worker crashed (worker_crashed)\n  signal 11 after 1 chunk\n  stderr:\n    boom\n    \\u001b[2Jbye\n"
        )
    );
}

#[test]
fn a_stream_without_an_outcome_is_a_failure() {
    let server = Server::start(|_| Answer {
        bytes: b"HTTP/1.1 200 X\r\ncontent-type: application/x-ndjson\r\nconnection: close\r\n\r\n\
                 {\"type\":\"message\",\"data\":1}\n{\"type\":"
            .to_vec(),
        last: true,
    });
    assert_eq!(
        server.run(&["call", "p", "f", "--stream"]),
        failed(
            1,
            "1\n",
            "ostler: the stream broke off after 1 chunks without an outcome (the connection closed)\n"
        )
    );
}

#[test]
fn problems_are_shown_in_words_and_decide_the_exit_code() {
    let body = |code: &str| {
        format!(
            "{{\"type\":\"about:blank\",\"title\":\"It went wrong\",\"status\":0,\"code\":\"{code}\",\
             \"detail\":\"because\",\"retryable\":true,\"request_id\":\"r1\",\"traceback\":\"A\\nB\\u0007\\n\"}}"
        )
    };
    for (status, exit) in [(500, 1), (502, 1), (404, 5), (422, 5), (503, 5), (504, 124)] {
        let server = Server::saying(problem(status, &body("some_code")));
        let shown = "ostler: It went wrong (some_code)\n  because\n  request_id: r1\n  \
                     retryable: true\n  traceback:\n    A\n    B\\u0007\n";
        assert_eq!(server.run(&["call", "p", "f"]), failed(exit, "", shown), "{status}");
    }
}

#[test]
fn an_answer_that_is_no_problem_document_is_shown_too() {
    let server = Server::saying(answer(502, "text/html", "<b>\u{1b}Bad\n"));
    assert_eq!(
        server.run(&["call", "p", "f"]),
        failed(1, "", "ostler: the server answered 502 Bad Gateway: <b>\\u001bBad\n")
    );
}

#[test]
fn a_server_that_hangs_up_is_not_mistaken_for_a_refusal() {
    let server = Server::start(|_| Answer { bytes: Vec::new(), last: true });
    let ran = server.run(&["call", "p", "f"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("it may have run"), "{ran:?}");
}

#[test]
fn a_payload_that_is_not_json_is_shown_with_its_place_and_never_sent() {
    let nowhere = tempfile::tempdir().expect("a directory");
    let run = |args: &[&str]| run_in(nowhere.path(), &[&["call", "p", "f"], args].concat(), "");
    assert_eq!(
        run(&["{name: 1}"]),
        failed(
            2,
            "",
            "\
ostler: the payload is not JSON: key must be a string (line 1, column 2)
  |
1 | {name: 1}
  |  ^
  = JSON has double quotes around names and texts; keep them from the shell with single quotes: '{\"name\": \"ann\"}'
"
        )
    );
    assert_eq!(
        run(&["ann"]),
        failed(
            2,
            "",
            "\
ostler: the payload is not JSON: expected value (line 1, column 1)
  |
1 | ann
  | ^
  = a text needs two kinds of quotes: '\"ann\"'; a file is written @FILE
"
        )
    );
    assert_eq!(
        run(&["{a:", "1}"]),
        failed(
            2,
            "",
            "\
ostler: the payload is one argument, and these are 2: {a:  1}
  put it in single quotes: '{\"name\": \"ann\"}'
"
        )
    );
    let missing = run(&["@none.json"]);
    assert_eq!(missing.code, 2, "{missing:?}");
    assert!(missing.err.contains("cannot read none.json"), "{missing:?}");
}

#[test]
fn wrong_arguments_are_usage_errors() {
    let nowhere = tempfile::tempdir().expect("a directory");
    for args in [
        &["call"][..],
        &["call", "p"],
        &["call", "p", "f", "--timeout", "soon"],
        &["call", "p", "f", "--timeout", "0"],
        &["call", "p", "f", "--priority", "101"],
        &["call", "p", "f", "--request-id", "a b"],
        &["call", "p", "f", "--url", "ftp://x"],
        &["call", "p", "f", "--raw", "--stream"],
    ] {
        let ran = run_in(nowhere.path(), args, "");
        assert_eq!(ran.code, 2, "{args:?}: {ran:?}");
        assert_eq!(ran.out, "", "{args:?}");
    }
}
