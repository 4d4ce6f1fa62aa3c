//! Workers that a fork server forks: contained, and told apart from spawned ones by nothing.

#[path = "containment/support.rs"]
mod support;

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use ostler_runtime::containment::{
    Cause, Contained, Containment, ForkServer, Proof, Report, SpawnError, SpawnSpec,
};
use support::*;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

ostler_runtime::enter_before_main!();

/// The interpreter itself: a launcher script in its place would hide a failing start.
fn python() -> OsString {
    let found = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .expect("python3 is installed");
    String::from_utf8(found.stdout).unwrap().trim().into()
}

fn fork_server_spec(arguments: &[&str]) -> SpawnSpec {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/python");
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/containment");
    let path = std::env::join_paths([package, tests]).unwrap();
    let mut argv = vec![python(), "-u".into(), "-m".into(), "ostler.forkserver".into()];
    argv.extend(arguments.iter().map(OsString::from));
    SpawnSpec {
        env: vec![("PYTHONPATH".into(), path), ("PYTHONDONTWRITEBYTECODE".into(), "1".into())],
        ..SpawnSpec::new("test-forks", argv)
    }
}

const TARGET: [&str; 2] = ["--target", "forked_worker:echo"];

async fn fork(server: &ForkServer, name: &str) -> (Contained, UnixStream, String) {
    let spec = SpawnSpec {
        env: vec![("ONLY".into(), "this".into())],
        cwd: Some("/".into()),
        control: true,
        ..SpawnSpec::new(name, vec!["worker".into(), "argument".into()])
    };
    let mut process = server.fork(spec).await.expect("forked");
    let mut stream = data(&mut process);
    let about = read_line(&mut stream).await;
    (process, stream, about)
}

async fn forked_workers_are_like_spawned_ones(containment: Containment) {
    let root = root(containment).await;
    if containment == Containment::Namespace && root.level().namespaces.is_none() {
        eprintln!("skipped: {}", root.level().reason);
        return;
    }
    let server = root.start_fork_server(fork_server_spec(&TARGET)).await.expect("preloaded");
    for name in ["test-1", "test-2"] {
        let (mut process, mut stream, about) = fork(&server, name).await;
        let pid = if containment == Containment::Shim { process.pid } else { 2 };
        let expected = format!(
            "{{'pid': {pid}, 'descriptors': [0, 1, 2, 3, 4], 'environment': ['ONLY'], \
             'argv': ['worker', 'argument'], 'group': {pid}, 'directory': '/'}}"
        );
        assert_eq!(about, expected);
        stream.write_all(b"hello\n").await.unwrap();
        assert_eq!(read_line(&mut stream).await, "hello");
        drop(stream);
        let all = reports(&mut process).await;
        assert_eq!(exits(&all), [Cause::Code(5)]);
        assert_eq!(all.last(), Some(&Report::Clean(Proof::Shim)));
    }
    root.close().await;
}

#[tokio::test]
async fn a_forked_worker_is_like_a_spawned_one() {
    forked_workers_are_like_spawned_ones(Containment::Shim).await;
}

#[tokio::test]
async fn a_worker_forked_into_a_namespace_is_like_a_spawned_one() {
    forked_workers_are_like_spawned_ones(Containment::Namespace).await;
}

#[tokio::test]
async fn forked_workers_outlive_their_fork_server_but_not_the_root_shim() {
    let root = root(Containment::Shim).await;
    let server = root.start_fork_server(fork_server_spec(&TARGET)).await.expect("preloaded");
    let (process, mut stream, _) = fork(&server, "test-1").await;
    kill(server.pid().expect("it runs"));
    let cause = tokio::time::timeout(LIMIT, server.lost()).await.expect("noticed");
    assert!(matches!(cause, Cause::Signal { number: libc::SIGKILL, .. }), "{cause:?}");
    let spec = SpawnSpec::new("test-2", vec![]);
    let error = server.fork(spec).await.expect_err("nobody forks");
    assert!(matches!(error, SpawnError::ForkServerLost), "{error}");
    stream.write_all(b"still here\n").await.unwrap();
    assert_eq!(read_line(&mut stream).await, "still here");
    drop(root);
    gone(process.pid).await;
}

#[tokio::test]
async fn a_preload_that_starts_threads_is_refused_by_name() {
    let root = root(Containment::Shim).await;
    let spec = fork_server_spec(&["--preload", "starts_a_thread", TARGET[0], TARGET[1]]);
    let error = root.start_fork_server(spec).await.expect_err("it has a thread");
    assert!(error.to_string().contains("thread"), "{error}");
    let spec = fork_server_spec(&["--preload", "no_such_module_here", TARGET[0], TARGET[1]]);
    let error = root.start_fork_server(spec).await.expect_err("it does not exist");
    assert!(error.to_string().contains("no_such_module_here"), "{error}");
    root.close().await;
}

#[tokio::test]
async fn a_fork_server_whose_interpreter_is_missing_is_refused_by_name() {
    let root = root(Containment::Shim).await;
    let spec = SpawnSpec::new("test-forks", vec!["/no/such/python".into()]);
    let error = root.start_fork_server(spec).await.expect_err("it does not exist");
    assert!(error.to_string().contains("/no/such/python"), "{error}");
    root.close().await;
}
