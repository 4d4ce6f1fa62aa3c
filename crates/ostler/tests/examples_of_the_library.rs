//! The examples of the library, run as a reader would, and what they print.

use std::process::Command;

/// Examples are built with the tests, beside them.
fn run(example: &str) -> String {
    let tests = std::env::current_exe().expect("the test's own path");
    let built = tests.parent().and_then(|deps| deps.parent()).expect("target/debug/deps");
    let output = Command::new(built.join("examples").join(example)).output();
    let output = output.unwrap_or_else(|error| panic!("cannot run {example}: {error}"));
    let (printed, told) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{example}: {}\n{told}", output.status);
    printed.into_owned()
}

#[test]
fn a_pool_is_embedded_called_streamed_and_watched() {
    let printed = run("embed");
    assert!(printed.starts_with("hello, Ada\nchunk 0\nchunk 1\nchunk 2\n"), "{printed}");
    assert!(printed.contains("worker.ready example-"), "{printed}");
}

#[test]
fn an_own_strategy_decides_who_works() {
    let printed = run("strategy");
    let shares: Vec<&str> = printed.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert_eq!(shares, ["10", "10", "10"], "{printed}");
}

#[test]
fn a_worker_calls_a_function_of_the_program() {
    assert_eq!(run("host_function"), "9\n");
}

#[test]
fn calls_of_one_lease_meet_one_process() {
    let printed = run("lease");
    let pids: Vec<&str> = printed.lines().map(|line| line.split(',').next().unwrap()).collect();
    assert!(pids.len() == 3 && pids.iter().all(|pid| *pid == pids[0]), "{printed}");
    assert!(printed.ends_with("[\"a horse\",\"a stable\",\"an inn\"]]\n"), "{printed}");
}

#[test]
fn each_session_has_its_process_and_takes_its_state_to_the_next_one() {
    let told = ["ada: [\"a horse\"]", "grace: [\"a ship\"]"];
    let both = "ada: [\"a horse\",\"a stable\"]";
    assert_eq!(run("session"), format!("{}\n{}\n{both}\n{both}\n", told[0], told[1]));
}
