//! Contained processes, one behaviour at a time, with small real programs.

use std::ffi::OsString;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use ostler_runtime::containment::{
    Cause, Cgroup, Contained, Containment, Exit, ForkServer, Proof, Report, RootOptions, RootShim,
    SpawnError, SpawnSpec,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

ostler_runtime::enter_before_main!();

/// Nothing here takes seconds; a test that waits this long has failed.
const LIMIT: Duration = Duration::from_secs(20);

async fn root(containment: Containment) -> RootShim {
    root_with(containment, Cgroup::Off).await
}

async fn root_with(containment: Containment, cgroup: Cgroup) -> RootShim {
    let options = RootOptions {
        containment,
        cgroup,
        ..RootOptions::new("test").expect("this program enters before main")
    };
    RootShim::start(options).await.expect("a root shim starts")
}

fn shell(script: &str) -> SpawnSpec {
    let argv = ["/bin/sh", "-c", script].map(OsString::from).to_vec();
    SpawnSpec {
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        control: true,
        ..SpawnSpec::new("test-1", argv)
    }
}

async fn run(root: &RootShim, script: &str) -> Contained {
    root.spawn(shell(script)).await.expect("the shell starts")
}

/// All reports up to the last.
async fn reports(process: &mut Contained) -> Vec<Report> {
    let collect = async {
        let mut all = Vec::new();
        while let Some(report) = process.reports.next().await {
            all.push(report);
        }
        all
    };
    tokio::time::timeout(LIMIT, collect).await.expect("the reports end")
}

fn exits(reports: &[Report]) -> Vec<Cause> {
    let causes = reports.iter().filter_map(|report| match report {
        Report::Exited(Exit { cause, .. }) => Some(*cause),
        _ => None,
    });
    causes.collect()
}

fn output(pipe: OwnedFd) -> String {
    let mut text = String::new();
    let mut file = std::fs::File::from(pipe);
    file.read_to_string(&mut text).expect("the writer has ended");
    text
}

fn data(process: &mut Contained) -> UnixStream {
    let stream = process.data.take().expect("asked for");
    UnixStream::from_std(stream).expect("non-blocking")
}

async fn read_line(stream: &mut UnixStream) -> String {
    let mut line = Vec::new();
    let read = async {
        loop {
            match stream.read_u8().await {
                Ok(b'\n') | Err(_) => break,
                Ok(byte) => line.push(byte),
            }
        }
    };
    tokio::time::timeout(LIMIT, read).await.expect("a line arrives");
    String::from_utf8(line).expect("text")
}

fn exists(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

async fn gone(pid: i32) {
    let wait = async {
        while exists(pid) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(LIMIT, wait).await.unwrap_or_else(|_| panic!("{pid} is still there"));
}

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

async fn state_is(pid: i32, wanted: char) {
    let wait = async {
        loop {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            if stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(wanted)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(LIMIT, wait).await.expect("the state is reached");
}

/// Starts a worker with a detached grandchild, and tells its pid.
async fn with_detached_grandchild(root: &RootShim) -> (Contained, i32) {
    let script = "setsid sh -c 'echo $$ >&3; exec sleep 600 3>&- 4>&- >/dev/null 2>&1' & exec cat <&3 >/dev/null";
    let mut process = run(root, script).await;
    let mut stream = data(&mut process);
    let grandchild = read_line(&mut stream).await.parse().expect("a pid");
    process.data = Some(stream.into_std().unwrap());
    (process, grandchild)
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

fn kill(pid: i32) {
    send(pid, libc::SIGKILL);
}

fn send(pid: i32, signal: i32) {
    let status = Command::new("/bin/kill").args([format!("-{signal}"), pid.to_string()]).status();
    assert!(status.expect("kill runs").success());
}

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
    SpawnSpec { env: vec![("PYTHONPATH".into(), path)], ..SpawnSpec::new("test-forks", argv) }
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
