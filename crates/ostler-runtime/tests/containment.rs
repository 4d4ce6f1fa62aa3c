//! Contained processes, one behaviour at a time, with small real programs.

#[path = "containment/support.rs"]
mod support;

use std::path::Path;
use std::process::{Command, Stdio};

use ostler_runtime::containment::{
    Cause, Cgroup, Containment, Proof, Report, SpawnError, SpawnSpec,
};
use support::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

ostler_runtime::enter_before_main!();

#[tokio::test]
async fn an_exit_code_is_reported_before_the_proof_that_nothing_is_left() {
    let root = root(Containment::Shim).await;
    let mut process = run(&root, "exit 7").await;
    let all = reports(&mut process).await;
    assert_eq!(exits(&all), [Cause::Code(7)]);
    assert_eq!(all.last(), Some(&Report::Clean(Proof::Shim)));
    assert_eq!(all.len(), 2);
    root.close().await;
}

#[tokio::test]
async fn a_signal_is_told_apart_from_an_exit_code() {
    let root = root(Containment::Shim).await;
    let mut process = run(&root, "kill -SEGV $$").await;
    let all = reports(&mut process).await;
    assert!(matches!(exits(&all)[..], [Cause::Signal { number: libc::SIGSEGV, .. }]), "{all:?}");
    root.close().await;
}

#[tokio::test]
async fn a_missing_program_is_named_with_its_reason() {
    let root = root(Containment::Shim).await;
    for program in ["no-such-program-here", "/no/such/program"] {
        let spec = SpawnSpec::new("test-1", vec![program.into()]);
        match root.spawn(spec).await {
            Err(SpawnError::Program { program: named, source }) => {
                assert_eq!(named, program);
                assert_eq!(source.raw_os_error(), Some(libc::ENOENT));
            }
            other => panic!("{other:?}"),
        }
    }
    root.close().await;
}

#[tokio::test]
async fn a_missing_directory_is_named_with_its_reason() {
    let root = root(Containment::Shim).await;
    let spec = SpawnSpec { cwd: Some("/no/such/directory".into()), ..shell("true") };
    let error = root.spawn(spec).await.expect_err("it does not exist");
    assert!(matches!(error, SpawnError::Directory { .. }), "{error}");
    assert!(error.to_string().contains("/no/such/directory"), "{error}");
    root.close().await;
}

#[tokio::test]
async fn a_worker_has_its_five_descriptors_and_nothing_else() {
    let root = root(Containment::Shim).await;
    // `ls` opens one more, for the directory itself.
    let mut process = run(&root, "exec ls -l /proc/self/fd").await;
    reports(&mut process).await;
    let text = output(process.stdout);
    let mut seen: Vec<_> = text.lines().filter(|line| line.contains(" -> ")).collect();
    let listing = seen.pop().expect("the listing's own");
    assert!(listing.contains("/proc/"), "{text}");
    assert_eq!(seen.len(), 5, "{text}");
    let kinds = ["0 -> /dev/null", "1 -> pipe:", "2 -> pipe:", "3 -> socket:", "4 -> socket:"];
    for (line, kind) in seen.iter().zip(kinds) {
        assert!(line.contains(kind), "{text}");
    }
    root.close().await;
}

#[tokio::test]
async fn a_worker_without_streams_gets_only_its_standard_descriptors() {
    let root = root(Containment::Shim).await;
    let spec = SpawnSpec { data: false, control: false, ..shell("exec ls /proc/self/fd") };
    let mut process = root.spawn(spec).await.expect("starts");
    assert!(process.data.is_none() && process.control.is_none());
    reports(&mut process).await;
    assert_eq!(output(process.stdout), "0\n1\n2\n3\n", "3 is the listing's own");
    root.close().await;
}

#[tokio::test]
async fn a_worker_has_exactly_the_environment_and_directory_it_was_given() {
    let root = root(Containment::Shim).await;
    // Larger than any socket message.
    let large = "x".repeat(120_000);
    let spec = SpawnSpec {
        argv: vec!["env".into(), "-0".into()],
        env: vec![("PATH".into(), "/usr/bin:/bin".into()), ("LARGE".into(), large.clone().into())],
        cwd: Some("/".into()),
        ..shell("")
    };
    let mut process = root.spawn(spec).await.expect("env is found in the given PATH");
    let mut stdout =
        tokio::net::unix::pipe::Receiver::from_owned_fd(process.stdout.try_clone().unwrap())
            .unwrap();
    let mut text = String::new();
    tokio::time::timeout(LIMIT, stdout.read_to_string(&mut text)).await.unwrap().unwrap();
    reports(&mut process).await;
    let mut variables: Vec<_> = text.split_terminator('\0').collect();
    variables.sort_unstable();
    assert_eq!(variables, [format!("LARGE={large}"), "PATH=/usr/bin:/bin".to_owned()]);
    root.close().await;
}

#[tokio::test]
async fn streams_signals_and_pid_belong_to_the_worker_itself() {
    let root = root(Containment::Shim).await;
    let mut process = run(&root, "echo $$ >&3; exec cat <&3 >&3").await;
    let mut stream = data(&mut process);
    assert_eq!(read_line(&mut stream).await, process.pid.to_string());
    stream.write_all(b"hello\n").await.unwrap();
    assert_eq!(read_line(&mut stream).await, "hello");
    process.handle.signal(libc::SIGTERM).expect("it runs");
    let all = reports(&mut process).await;
    assert_eq!(exits(&all), [Cause::Signal { number: libc::SIGTERM, core_dumped: false }]);
    root.close().await;
}

#[tokio::test]
async fn a_frozen_worker_can_be_thawed_and_swept() {
    let root = root(Containment::Shim).await;
    let mut process = run(&root, "echo up >&3; exec cat <&3 >&3").await;
    let mut stream = data(&mut process);
    read_line(&mut stream).await;
    process.handle.freeze().unwrap();
    state_is(process.pid, 'T').await;
    process.handle.thaw().unwrap();
    stream.write_all(b"awake\n").await.unwrap();
    assert_eq!(read_line(&mut stream).await, "awake");
    process.handle.freeze().unwrap();
    process.handle.sweep().await;
    let all = reports(&mut process).await;
    assert_eq!(all.last(), Some(&Report::Clean(Proof::Shim)));
    root.close().await;
}

#[tokio::test]
async fn a_detached_grandchild_goes_with_its_worker() {
    let root = root(Containment::Shim).await;
    let (mut process, grandchild) = with_detached_grandchild(&root).await;
    process.handle.signal(libc::SIGKILL).unwrap();
    let all = reports(&mut process).await;
    assert_eq!(all.last(), Some(&Report::Clean(Proof::Shim)));
    assert!(!exists(grandchild), "clean was reported before it was true");
    root.close().await;
}

#[tokio::test]
async fn a_lost_shim_is_reported_and_the_root_shim_proves_the_rest() {
    let root = root(Containment::Shim).await;
    let (mut process, grandchild) = with_detached_grandchild(&root).await;
    kill(process.handle.shim_pid().expect("it runs"));
    let all = reports(&mut process).await;
    assert_eq!(all.first(), Some(&Report::ShimLost));
    assert_eq!(all.last(), Some(&Report::Clean(Proof::RootShim)));
    // Kernels before 6.15 cannot tell a worker's status to anyone but its parent.
    assert!(
        matches!(exits(&all)[..], [Cause::Signal { number: libc::SIGKILL, .. } | Cause::Unknown]),
        "{all:?}"
    );
    assert!(!exists(grandchild));
    root.close().await;
}

#[tokio::test]
async fn a_stopped_shim_does_not_stop_a_sweep() {
    let root = root(Containment::Shim).await;
    let (mut process, grandchild) = with_detached_grandchild(&root).await;
    let shim = process.handle.shim_pid().expect("it runs");
    send(shim, libc::SIGSTOP);
    state_is(shim, 'T').await;
    process.handle.sweep().await;
    let all = reports(&mut process).await;
    assert_eq!(all.last(), Some(&Report::Clean(Proof::RootShim)));
    assert!(!exists(grandchild));
    root.close().await;
}

#[tokio::test]
async fn a_lost_root_shim_is_noticed_and_its_workers_go_on() {
    let root = root(Containment::Shim).await;
    let mut process = run(&root, "echo up >&3; exec cat <&3 >&3").await;
    let mut stream = data(&mut process);
    read_line(&mut stream).await;
    kill(root.pid().expect("it runs"));
    tokio::time::timeout(LIMIT, root.lost()).await.expect("noticed");
    stream.write_all(b"still here\n").await.unwrap();
    assert_eq!(read_line(&mut stream).await, "still here");
    let error = root.spawn(shell("true")).await.expect_err("nobody can spawn");
    assert!(matches!(error, SpawnError::RootShimLost), "{error}");
    process.handle.sweep().await;
    let all = reports(&mut process).await;
    assert_eq!(all.last(), Some(&Report::Clean(Proof::Shim)));
}

#[tokio::test]
async fn both_shims_lost_is_not_called_clean() {
    let root = root(Containment::Shim).await;
    let mut process = run(&root, "echo up >&3; exec cat <&3 >&3").await;
    let mut stream = data(&mut process);
    read_line(&mut stream).await;
    kill(root.pid().expect("it runs"));
    tokio::time::timeout(LIMIT, root.lost()).await.expect("noticed");
    kill(process.handle.shim_pid().expect("it runs"));
    let all = reports(&mut process).await;
    assert_eq!(all.first(), Some(&Report::ShimLost));
    assert_eq!(all.last(), Some(&Report::Unproven));
}

#[tokio::test]
async fn shims_are_deaf_to_requests_to_end() {
    let root = root(Containment::Shim).await;
    let mut process = run(&root, "echo up >&3; exec cat <&3 >&3").await;
    let mut stream = data(&mut process);
    read_line(&mut stream).await;
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGUSR1] {
        send(root.pid().expect("it runs"), signal);
        send(process.handle.shim_pid().expect("it runs"), signal);
    }
    // Answers to later requests show that the signals have been dealt with.
    let mut other = run(&root, "exit 0").await;
    assert_eq!(exits(&reports(&mut other).await), [Cause::Code(0)]);
    drop(stream);
    let all = reports(&mut process).await;
    assert_eq!(exits(&all), [Cause::Code(0)]);
    assert_eq!(all.last(), Some(&Report::Clean(Proof::Shim)));
    root.close().await;
}

#[tokio::test]
async fn dropping_a_process_kills_it() {
    let root = root(Containment::Shim).await;
    let (process, grandchild) = with_detached_grandchild(&root).await;
    let pid = process.pid;
    drop(process);
    gone(pid).await;
    gone(grandchild).await;
    root.close().await;
}

#[tokio::test]
async fn dropping_the_root_shim_leaves_nothing() {
    let root = root(Containment::Shim).await;
    let (process, grandchild) = with_detached_grandchild(&root).await;
    let root_pid = root.pid().expect("it runs");
    drop(root);
    gone(process.pid).await;
    gone(grandchild).await;
    gone(root_pid).await;
}

#[tokio::test]
async fn the_hosts_own_children_are_left_alone() {
    let mut child = Command::new("/bin/cat").stdin(Stdio::piped()).spawn().unwrap();
    let mut short = Command::new("/bin/sh").args(["-c", "exit 3"]).spawn().unwrap();
    let root = root(Containment::Shim).await;
    let (process, _) = with_detached_grandchild(&root).await;
    drop(process);
    root.close().await;
    assert_eq!(short.wait().expect("not waited for by others").code(), Some(3));
    assert!(child.try_wait().expect("still waitable").is_none(), "it was killed");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[tokio::test]
async fn people_see_what_each_shim_is_for() {
    let root = root(Containment::Shim).await;
    let mut process = run(&root, "exec cat <&3").await;
    let title = |pid: i32| {
        let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
        String::from_utf8(bytes).unwrap().trim_end_matches('\0').to_owned()
    };
    assert_eq!(title(root.pid().unwrap()), "ostler: root shim test");
    assert_eq!(title(process.handle.shim_pid().unwrap()), "ostler: shim test-1");
    drop(process.data.take());
    reports(&mut process).await;
    root.close().await;
}

#[tokio::test]
async fn a_namespaced_worker_sees_only_itself() {
    let root = root(Containment::Namespace).await;
    let level = root.level().clone();
    let Some(namespaces) = level.namespaces else {
        eprintln!("skipped: {}", level.reason);
        return;
    };
    let mut process =
        run(&root, "echo $$ >&3; ls /proc | grep -c '^[0-9]' >&3; exec cat <&3 >&3").await;
    let mut stream = data(&mut process);
    assert_eq!(read_line(&mut stream).await, "2");
    let visible: u32 = read_line(&mut stream).await.parse().expect("a number");
    // init, the shell, ls and grep.
    assert!(visible <= 4 || !namespaces.own_proc, "{visible} processes are visible");
    assert!(process.pid > 4, "{} is not the host's number", process.pid);
    kill(process.handle.shim_pid().expect("it runs"));
    let all = reports(&mut process).await;
    assert_eq!(all.last(), Some(&Report::Clean(Proof::Namespace)));
    root.close().await;
}

#[tokio::test]
async fn the_memory_of_the_shims_is_small() {
    let root = root(Containment::Shim).await;
    let mut workers = Vec::new();
    for _ in 0..8 {
        let mut process = run(&root, "echo up >&3; exec cat <&3").await;
        let mut stream = data(&mut process);
        read_line(&mut stream).await;
        workers.push((process, stream));
    }
    let root_memory = memory(root.pid().unwrap());
    let shim_memory = memory(workers[3].0.handle.shim_pid().unwrap());
    println!("root shim: {root_memory:?}; worker shim: {shim_memory:?}");
    assert!(shim_memory.private_dirty < 1024, "{shim_memory:?}");
    root.close().await;
}

#[derive(Debug)]
#[allow(dead_code)]
struct Memory {
    pss: u64,
    private_dirty: u64,
}

fn memory(pid: i32) -> Memory {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("it runs");
    let kib = |field: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(field));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).expect("a number")
    };
    Memory { pss: kib("Pss:"), private_dirty: kib("Private_Dirty:") }
}

#[tokio::test]
async fn a_delegated_cgroup_is_used_and_removed() {
    let root = root_with(Containment::Shim, Cgroup::Auto).await;
    if !root.level().cgroup {
        eprintln!("skipped: {}", root.level().reason);
        root.close().await;
        return;
    }
    let (mut process, grandchild) = with_detached_grandchild(&root).await;
    let own = cgroup_of(process.pid);
    assert_eq!(cgroup_of(grandchild), own);
    assert!(own.contains("/ostler-"), "{own}");
    assert_ne!(cgroup_of(process.handle.shim_pid().unwrap()), own);
    process.handle.sweep().await;
    reports(&mut process).await;
    assert!(!exists(grandchild));
    let directory = Path::new("/sys/fs/cgroup/unified").join(own.trim_start_matches('/'));
    let pool = directory.parent().unwrap().to_owned();
    root.close().await;
    assert!(!pool.exists(), "{} is left", pool.display());
}

fn cgroup_of(pid: i32) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix("0::"));
    line.expect("a cgroup v2").to_owned()
}
