//! `ostler conform` as its users meet it: good workers pass, and each vice fails its own check.

mod support;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

use support::{Ran, command_in, run_in};

/// Never reached.
const PATIENT: [&str; 2] = ["--timeout", "60s"];
/// Reached by workers that are silent, which are therefore such as answer at once or never.
const BRIEF: [&str; 2] = ["--timeout", "5s"];
/// What the functions of `conform_workers/base.py` are for.
const BASE: [&str; 6] =
    ["--slow-function", "slow", "--stream-function", "count", "--stream-payload", "300"];

fn directory(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}

fn vices() -> PathBuf {
    directory("tests/conform_workers")
}

fn examples() -> PathBuf {
    directory("../../examples/workers")
}

/// The interpreter itself, since a version manager in front of it costs more than it does.
fn python() -> &'static str {
    static PYTHON: OnceLock<String> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let mut asking = Command::new("python3");
        asking.args(["-c", "import sys; print(sys.executable)"]);
        let output = asking.output().expect("there is a python3");
        String::from_utf8(output.stdout).expect("a path").trim().to_owned()
    })
}

/// Runs the tester over `command` and reads its findings.
fn conform(directory: &Path, options: &[&str], command: &[&str]) -> (Ran, Vec<Value>) {
    let args = [&["conform", "--json"], options, &["--"], command].concat();
    let ran = run_in(directory, &args, "");
    let findings: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"));
    let checks = findings["checks"].as_array().expect("checks").clone();
    (ran, checks)
}

fn named<'a>(checks: &'a [Value], verdict: &str) -> Vec<&'a str> {
    let chosen = checks.iter().filter(|check| check["verdict"] == verdict);
    chosen.map(|check| check["check"].as_str().expect("a name")).collect()
}

/// Everything passes, and what is skipped is exactly what the worker does not have.
fn passes(directory: &Path, options: &[&str], command: &[&str], skipped: &[&str]) {
    let (ran, checks) = conform(directory, &[&PATIENT, options].concat(), command);
    let failed: Vec<_> = checks.iter().filter(|check| check["verdict"] == "fail").collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(named(&checks, "skip"), skipped);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
}

#[test]
fn a_worker_with_every_option_passes_every_check() {
    let command = [python(), "-B", "-S", "-E", "base.py"];
    passes(&vices(), &BASE, &command, &["token"]);
}

#[test]
fn the_worker_of_base_messages_passes_over_both_sockets() {
    let options = ["--stream-payload", r#"{"count": 300}"#];
    let optional = ["capacity", "overlap", "credit", "withdraw", "ping", "end-of-control"];
    let skipped = [&["token"], &optional[..], &optional].concat();
    passes(&examples(), &options, &[python(), "basic.py"], &skipped);
}

#[test]
fn the_node_worker_passes_over_both_sockets() {
    let slow = ["--slow-function", "wait", "--slow-payload", "600"];
    let options = [&slow[..], &["--stream-payload", "300"]].concat();
    let optional = ["credit", "withdraw", "ping", "end-of-control"];
    let skipped = [&["token"], &optional[..], &optional].concat();
    passes(&examples(), &options, &["node", "node.mjs"], &skipped);
}

#[test]
fn the_shell_worker_passes_over_its_inherited_socket() {
    let skipped = ["token", "capacity", "overlap", "credit", "withdraw", "ping", "end-of-control"];
    passes(&examples(), &["--transport", "inherited"], &["sh", "shell.sh"], &skipped);
}

#[test]
fn a_file_of_functions_passes_over_both_sockets() {
    let skipped = ["token", "capacity", "overlap", "capacity", "overlap"];
    passes(&directory("../../examples"), &[], &["hello.py"], &skipped);
}

/// One vice, one failed check, and the command says so.
fn fails(script: &str, check: &str) {
    let transport = if matches!(script, "wrong-token" | "claims-a-control-stream") {
        "named"
    } else {
        "inherited"
    };
    let options = [&BRIEF, &BASE[..], &["--transport", transport]].concat();
    let script = format!("{script}.py");
    let (ran, checks) = conform(&vices(), &options, &[python(), "-B", "-S", "-E", &script]);
    let failed: Vec<_> = checks.iter().filter(|check| check["verdict"] == "fail").collect();
    assert_eq!(named(&checks, "fail"), [check], "{failed:#?}");
    assert_eq!(ran.code, 1);
}

macro_rules! vices {
    ($($test:ident: $script:literal fails $check:literal,)*) => {
        $(#[test]
        fn $test() {
            fails($script, $check);
        })*

        const SHOWN: &[&str] = &[$($check),*];
        const SCRIPTS: &[&str] = &[$($script),*];
    };
}

vices! {
    a_word_before_ready_is_found: "speaks-before-ready" fails "ready-first",
    a_worker_that_never_becomes_ready_is_found: "never-ready" fails "ready-first",
    a_capacity_of_nothing_is_found: "announces-nothing-to-do" fails "ready-valid",
    a_name_for_two_functions_is_found: "announces-a-name-twice" fails "ready-valid",
    a_missing_control_stream_is_found: "claims-a-control-stream" fails "ready-valid",
    a_wrong_token_is_found: "wrong-token" fails "token",
    a_wire_that_was_not_offered_is_found: "binary-regardless" fails "wire-offered",
    printing_on_the_stream_is_found: "prints-on-its-stream" fails "stream-clean",
    a_second_answer_is_found: "answers-twice" fails "answered-once",
    a_call_without_an_answer_is_found_once: "never-answers" fails "answered-once",
    an_end_after_some_calls_is_found: "leaves-after-five" fails "in-sequence",
    rounded_ids_are_found: "takes-ids-for-doubles" fails "ids-echoed",
    too_high_a_capacity_is_found: "overrates-itself" fails "capacity",
    calls_that_do_not_overlap_are_found: "one-after-the-other" fails "overlap",
    success_without_a_function_is_found: "knows-every-function" fails "unknown-function",
    infinity_on_the_stream_is_found: "echoes-infinity" fails "bad-payload",
    a_schema_that_is_not_kept_is_found: "takes-any-argument" fails "bad-payload",
    a_chunk_after_the_end_is_found: "a-chunk-too-late" fails "chunks",
    a_wrong_count_of_chunks_is_found: "miscounts-chunks" fails "chunks",
    chunks_beyond_the_credit_are_found: "ignores-credit" fails "credit",
    a_second_answer_to_a_cancel_is_found: "answers-a-cancel-twice" fails "cancel-running",
    a_death_by_a_cancelled_stream_is_found: "dies-of-a-cancelled-stream" fails "cancel-stream",
    a_death_by_a_late_cancel_is_found: "trips-over-a-late-cancel" fails "cancel-unknown",
    a_withdrawn_call_that_began_is_found: "began-what-it-gives-back" fails "withdraw",
    silence_to_a_health_check_is_found: "deaf-to-health-checks" fails "health-check",
    a_rounded_nonce_is_found: "rounds-the-nonce" fails "ping",
    an_end_without_acknowledgement_is_found: "leaves-without-a-word" fails "graceful",
    an_end_with_an_error_is_found: "leaves-with-an-error" fails "graceful",
    a_call_dropped_at_the_end_is_found: "drops-what-runs" fails "finishes",
    a_leisurely_end_is_found: "never-hurries" fails "immediate",
    a_life_after_the_stream_is_found: "outlives-its-stream" fails "end-of-stream",
    a_life_after_the_control_stream_is_found: "outlives-its-control-stream" fails "end-of-control",
    a_death_by_an_unknown_type_is_found: "knows-its-types-only" fails "unknown-type",
    a_death_by_an_unknown_key_is_found: "knows-its-keys-only" fails "unknown-keys",
    a_read_taken_for_a_line_is_found: "takes-a-read-for-a-line" fails "split-message",
    a_line_lost_behind_another_is_found: "reads-one-line-at-a-time" fails "joined-messages",
    messages_found_by_their_words_are_found: "looks-for-words" fails "resemblance",
    a_limit_below_the_limit_is_found: "refuses-large-messages" fails "large-message",
}

#[test]
fn every_check_has_a_vice_and_every_script_is_one() {
    let (_, checks) = conform(&vices(), &["--transport", "inherited"], &["false"]);
    let names: Vec<&str> = checks.iter().map(|check| check["check"].as_str().unwrap()).collect();
    let unshown: Vec<_> = names.iter().filter(|name| !SHOWN.contains(name)).collect();
    assert!(unshown.is_empty(), "{unshown:?} cannot be seen to fail");
    for entry in std::fs::read_dir(vices()).expect("the directory").flatten() {
        let path = entry.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
        let known = stem == "base" || SCRIPTS.contains(&stem);
        assert!(known, "{stem} is not used");
    }
}

#[test]
fn a_program_that_does_not_speak_is_told_with_its_last_words() {
    let here = tempfile::tempdir().expect("a directory");
    let command = ["sh", "-c", "echo no licence >&2; exit 3"];
    let (ran, checks) = conform(here.path(), &["--transport", "inherited"], &command);
    let heard = checks[0]["found"].as_str().expect("a text");
    assert!(heard.contains("it exited with code 3") && heard.contains("no licence"), "{heard}");
    assert_eq!((named(&checks, "fail"), ran.code), (vec!["ready-first"], 1));
}

#[test]
fn what_cannot_be_run_is_an_error_of_usage() {
    let here = tempfile::tempdir().expect("a directory");
    for (args, told) in [
        (&["conform"][..], "COMMAND"),
        (&["conform", "no-such-program"], "no-such-program"),
        (&["conform", "no-such-file.py"], "there is no file"),
        (&["conform", "--payload", "{", "true"], "not JSON"),
        (&["conform", "--transport", "pigeon", "true"], "pigeon"),
    ] {
        let ran = run_in(here.path(), args, "");
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}: {}", ran.err);
        assert!(ran.err.contains(told), "{args:?}: {}", ran.err);
    }
}

#[test]
fn people_get_a_line_per_check_under_its_group() {
    let args = ["conform", "--transport", "inherited", "--", python(), "basic.py"];
    let ran = run_in(&examples(), &args, "");
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines[0], "opening (inherited socket)");
    let words = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    assert_eq!(words(lines[1]), "pass ready-first");
    assert_eq!(words(lines[3]), "skip token");
    assert!(lines.contains(&"robustness (inherited socket)"), "{}", ran.out);
    assert!(lines.last().is_some_and(|line| line.contains(" passed, 0 failed, ")), "{}", ran.out);
}

/// What a worker starts is gone with the tester, also when the tester is told to stop.
#[test]
fn nothing_is_left_after_an_interruption() {
    let here = tempfile::tempdir().expect("a directory");
    let fifo = here.path().join("pids");
    let made = Command::new("mkfifo").arg(&fifo).status().expect("there is mkfifo");
    assert!(made.success());
    let script = r#"sleep 1000 & echo "$$ $!" >pids; wait"#;
    for signal in [Signal::INT, Signal::TERM] {
        let args = ["conform", "--timeout", "10m", "--", "sh", "-c", script];
        let mut tester = command_in(here.path(), &args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let mut line = String::new();
        let pipe = std::fs::File::open(&fifo).expect("the worker has started");
        BufReader::new(pipe).read_line(&mut line).expect("its processes");
        kill_process(Pid::from_child(&tester), signal).expect("it is there");
        let ended = tester.wait().expect("waited for");
        assert_eq!(ended.code(), Some(1), "{signal:?}");
        for pid in line.split_whitespace() {
            let pid = Pid::from_raw(pid.parse().expect("a number")).expect("not zero");
            assert!(test_kill_process(pid).is_err(), "{pid:?} lives after {signal:?}");
        }
    }
}
