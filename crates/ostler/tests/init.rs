//! `ostler init` as a user runs it, and what it wrote as it runs.

mod support;

use std::path::Path;
use std::process::Command;

use support::{Ran, ran, run_in};

const FILES: [&str; 3] = ["hello.py", "ostler.toml", "test_hello.py"];

fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory").flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn unittest(directory: &Path) -> Ran {
    unittest_with(directory, env!("CARGO_BIN_EXE_ostler"))
}

fn unittest_with(directory: &Path, ostler: &str) -> Ran {
    let output = Command::new("python3")
        .args(["-B", "-m", "unittest"])
        .current_dir(directory)
        .env("OSTLER", ostler)
        .output();
    ran(output.expect("python3 runs"))
}

#[test]
fn what_was_written_passes_its_own_test_and_the_check() {
    let directory = tempfile::tempdir().expect("a directory");
    let ran = run_in(directory.path(), &["init"], "");
    let expected = "\
wrote hello.py, ostler.toml, test_hello.py

Next:
  ostler serve
  ostler call hello greet '{\"name\": \"Ada\"}'     # in another terminal
  python3 -m unittest
";
    assert_eq!(ran, Ran { code: 0, out: expected.to_owned(), err: String::new() });
    assert_eq!(names_in(directory.path()), FILES);

    let tested = unittest(directory.path());
    assert_eq!(tested.code, 0, "{tested:?}");
    assert!(tested.err.contains("Ran 3 tests"), "{tested:?}");

    let checked = run_in(directory.path(), &["check"], "");
    assert_eq!(checked.code, 0, "{checked:?}");
    assert!(checked.out.contains("functions: greet, count (streams)"), "{checked:?}");
}

/// A test that passes whatever the worker does would be worth nothing.
#[test]
fn the_written_test_fails_when_something_is_broken() {
    let directory = tempfile::tempdir().expect("a directory");
    assert_eq!(run_in(directory.path(), &["init"], "").code, 0);
    let worker = directory.path().join("hello.py");
    let text = std::fs::read_to_string(&worker).expect("it was written");
    std::fs::write(&worker, text.replace("hello, {name}", "bye, {name}")).expect("written");
    let tested = unittest(directory.path());
    assert_eq!(tested.code, 1, "{tested:?}");
    assert!(tested.err.contains("'bye, Ada'"), "{tested:?}");

    let tested = unittest_with(directory.path(), "/no/such/ostler");
    assert_eq!(tested.code, 1, "{tested:?}");
    assert!(tested.err.contains("put it in PATH, or set OSTLER"), "{tested:?}");

    std::fs::remove_file(directory.path().join("ostler.toml")).expect("it was written");
    let tested = unittest(directory.path());
    assert_eq!(tested.code, 1, "{tested:?}");
    assert!(tested.err.contains("the server does not answer"), "{tested:?}");
}

#[test]
fn another_name_and_directory_are_used_throughout() {
    let directory = tempfile::tempdir().expect("a directory");
    let ran = run_in(directory.path(), &["init", "the models/a", "--name", "my-model"], "");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("\n  cd 'the models/a' && ostler serve\n"), "{ran:?}");
    assert!(ran.out.contains("ostler call my-model greet"), "{ran:?}");
    let made = directory.path().join("the models/a");
    assert_eq!(names_in(&made), ["my_model.py", "ostler.toml", "test_my_model.py"]);
    let tested = unittest(&made);
    assert_eq!(tested.code, 0, "{tested:?}");
}

#[test]
fn files_that_are_there_are_named_and_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let mine = directory.path().join("hello.py");
    std::fs::write(&mine, "mine").expect("written");
    let ran = run_in(directory.path(), &["init"], "");
    let err = "\
ostler: nothing was written, these files are there already:
  ./hello.py
write elsewhere with: ostler init DIR, or replace them with: --force
";
    assert_eq!(ran, Ran { code: 1, out: String::new(), err: err.to_owned() });
    assert_eq!(names_in(directory.path()), ["hello.py"]);
    assert_eq!(std::fs::read_to_string(&mine).expect("still there"), "mine");

    assert_eq!(run_in(directory.path(), &["init", "--force"], "").code, 0);
    assert_eq!(names_in(directory.path()), FILES);
    assert_ne!(std::fs::read_to_string(&mine).expect("still there"), "mine");
}

#[test]
fn what_cannot_be_written_is_said_with_the_way_out() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("file"), "").expect("written");
    let ran = run_in(directory.path(), &["init", "file/below"], "");
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("cannot make") && ran.err.contains("ostler init DIR"), "{ran:?}");
    let ran = run_in(directory.path(), &["init", "--name", "My Pool"], "");
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("`my-pool` would do"), "{ran:?}");
}
