//! `ostler check` and `ostler completions` as a user runs them.

mod support;

use std::path::Path;

use serde_json::Value;
use support::{Ran, run_in};

const WORKER: &str = "\
import ostler

@ostler.function
def add(a: int, b: int) -> int:
    \"\"\"Add.\"\"\"
    return a + b

@ostler.on_stop
def stopped():
    open('stopped', 'w').close()
";

/// A directory with a worker and a configuration of these pools.
fn site(pools: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), "work.py", WORKER);
    write(directory.path(), "ostler.toml", &format!("version = 1\n{pools}"));
    directory
}

fn write(directory: &Path, file: &str, text: &str) {
    std::fs::write(directory.join(file), text).expect("written");
}

fn check(site: &tempfile::TempDir, args: &[&str]) -> Ran {
    run_in(site.path(), &[&["check"], args].concat(), "")
}

fn report(site: &tempfile::TempDir, args: &[&str]) -> (i32, Value) {
    let ran = check(site, &[args, &["--json"]].concat());
    (ran.code, serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}")))
}

#[test]
fn every_pool_shows_its_functions() {
    let site = site("[pools.work]\npython = \"work.py\"\nsize = 3\n");
    let ran = check(&site, &[]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    let lines: Vec<&str> = ran.out.lines().collect();
    let file = site.path().join("ostler.toml");
    assert_eq!(lines[0], format!("{} is valid, pools: work", file.display()));
    assert!(lines[1].starts_with("work: ready after "), "{ran:?}");
    assert!(lines[1].ends_with(" s, functions: add"), "{ran:?}");
    let store = site.path().join(".ostler/ostler.db");
    let store = format!("store: made at the first start: {}", store.display());
    assert_eq!(lines[2..], [&store, "every pool starts"]);
    assert!(!site.path().join(".ostler").exists(), "nothing is made");
    assert!(site.path().join("stopped").exists(), "its worker was let go in peace");
}

#[test]
fn programs_read_the_findings_as_json() {
    let site =
        site("[pools.work]\npython = \"work.py\"\n[pools.gone]\ncommand = [\"/bin/true\"]\n");
    let (code, report) = report(&site, &[]);
    assert_eq!(code, 1, "{report}");
    assert_eq!(report["ok"], false);
    assert_eq!(report["problems"], Value::Array(Vec::new()));
    let [work, gone] = &report["pools"].as_array().expect("pools")[..] else {
        panic!("{report}");
    };
    assert_eq!((&work["name"], &work["verdict"]), (&"work".into(), &"ready".into()));
    assert_eq!(work["functions"][0]["name"], "add");
    assert_eq!(work["functions"][0]["doc"], "Add.");
    assert!(work["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{report}");
    assert_eq!((&gone["name"], &gone["verdict"]), (&"gone".into(), &"failed".into()));
    let error = gone["error"].as_str().expect("an error");
    assert!(error.contains("exited with code 0 before it was ready"), "{report}");
    assert!(gone["advice"].as_str().is_some_and(|advice| advice.contains("PROTOCOL.md")));
}

#[test]
fn broken_python_is_shown_by_the_end_of_its_traceback_and_what_to_do() {
    let site = site("[pools.a]\npython = \"a.py\"\n[pools.work]\npython = \"work.py\"\n");
    write(site.path(), "a.py", "import surely_not_installed\n");
    let ran = check(&site, &[]);
    assert_eq!(ran.code, 1, "{ran:?}");
    for words in [
        "a: failed after ",
        "line 1, in <module>",
        "\n    ModuleNotFoundError: No module named 'surely_not_installed'\n",
        "\n  = install it with `python3 -m pip install surely_not_installed`, or set `interpreter` in [pools.a]",
        "\nwork: ready after ",
        "\n1 of 2 pools did not start\n",
    ] {
        assert!(ran.out.contains(words), "{words:?} in {}", ran.out);
    }
}

#[test]
fn a_worker_that_does_not_get_ready_is_given_its_start_timeout() {
    let site = site("[pools.slow]\npython = \"slow.py\"\nstart_timeout = \"100ms\"\n");
    write(site.path(), "slow.py", "print('loading', flush=True)\nimport signal\nsignal.pause()\n");
    let (code, report) = report(&site, &[]);
    assert_eq!(code, 1, "{report}");
    let pool = &report["pools"][0];
    let error = pool["error"].as_str().expect("an error");
    assert!(error.starts_with("not ready after 100ms"), "{report}");
    assert!(pool["advice"].as_str().is_some_and(|advice| advice.contains("`start_timeout`")));
}

#[test]
fn an_invalid_file_starts_nothing() {
    let site = site("[pools.work]\npython = \"work.py\"\nthreads = 2\n");
    let ran = check(&site, &[]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
    assert!(ran.err.contains("ostler.toml:4:11: `threads` has no meaning"), "{ran:?}");
    let (code, report) = report(&site, &[]);
    assert_eq!(code, 1);
    assert_eq!(report["ok"], false);
    let problem = &report["problems"][0];
    assert_eq!((&problem["line"], &problem["column"]), (&4.into(), &11.into()), "{report}");
    assert!(problem["help"].as_str().is_some_and(|help| help.contains("profile")), "{report}");
    assert_eq!(report["pools"], Value::Array(Vec::new()));
}

#[test]
fn without_a_start_only_the_file_is_read() {
    let site = site("[pools.gone]\ncommand = [\"/no/such/program\"]\n");
    let ran = check(&site, &["--no-start"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.ends_with("is valid, pools: gone\nnothing was started\n"), "{ran:?}");
    let (code, report) = report(&site, &["--no-start"]);
    assert_eq!((code, &report["ok"]), (0, &true.into()), "{report}");
    assert_eq!(check(&site, &[]).code, 1);
}

#[test]
fn a_file_that_is_not_there_is_a_mistake_in_the_arguments() {
    let directory = tempfile::tempdir().expect("a directory");
    for (args, words) in [
        (&["check"][..], "write a first one with: ostler init"),
        (&["check", "--config", "none.toml"], "cannot read the configuration none.toml"),
        (&["check", "--schema", "--json"], "cannot be used with"),
    ] {
        let ran = run_in(directory.path(), args, "");
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.err.contains(words), "{ran:?}");
    }
}

#[test]
fn the_schema_needs_no_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let ran = run_in(directory.path(), &["check", "--schema"], "");
    let schema: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(schema["properties"]["version"]["const"], 1);
}

#[test]
fn each_shell_gets_completions_that_know_the_commands() {
    let directory = tempfile::tempdir().expect("a directory");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = run_in(directory.path(), &["completions", shell], "");
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{shell}");
        for word in ["completions", "check", "no-start", "force"] {
            assert!(ran.out.contains(word), "{shell} knows {word}");
        }
    }
    assert_eq!(run_in(directory.path(), &["completions", "tcsh"], "").code, 2);
}

#[test]
fn a_store_that_cannot_be_used_is_found() {
    let site = site("[pools.work]\npython = \"work.py\"\n[store]\npath = \"work.py/x.db\"\n");
    let ran = check(&site, &[]);
    assert_eq!((ran.code, ran.err.as_str()), (1, ""), "{ran:?}");
    assert!(ran.out.contains("store: failed: ") && ran.out.contains("work.py"), "{ran:?}");
    write(site.path(), "other.db", "this is no database, it is a text of some length");
    let pool = "[pools.work]\npython = \"work.py\"\n";
    write(
        site.path(),
        "ostler.toml",
        &format!("version = 1\n{pool}[store]\npath = \"other.db\"\n"),
    );
    let (code, report) = report(&site, &[]);
    assert_eq!((code, &report["store"]["ok"]), (1, &false.into()), "{report}");
    assert_eq!(report["pools"][0]["verdict"], "ready", "{report}");
}

#[test]
fn a_database_that_does_not_answer_is_named_without_its_password() {
    let url = "postgres://ostler:hunter2@localhost/jobs?host=/nonexistent";
    let site = site(&format!("[pools.work]\npython = \"work.py\"\n[store]\nurl = \"{url}\"\n"));
    let ran = check(&site, &[]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.out.contains("store: failed: cannot use the database"), "{ran:?}");
    assert!(!format!("{ran:?}").contains("hunter2"), "{ran:?}");
    let ran = run_in(site.path(), &["doctor"], "");
    assert!(!format!("{ran:?}").contains("hunter2"), "{ran:?}");
    assert!(ran.out.contains("postgres://ostler:***@localhost/jobs"), "{ran:?}");
    let ran = run_in(site.path(), &["store", "check"], "");
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("change `url` in [store]"), "{ran:?}");
    assert!(!format!("{ran:?}").contains("hunter2"), "{ran:?}");
}
