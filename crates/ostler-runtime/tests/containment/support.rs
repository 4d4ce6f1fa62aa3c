//! What the tests of contained processes share.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::ffi::OsString;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::time::Duration;

use ostler_runtime::containment::{
    Cause, Cgroup, Contained, Containment, Exit, Report, RootOptions, RootShim, SpawnSpec,
};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;

/// Nothing here takes seconds; a test that waits this long has failed.
pub const LIMIT: Duration = Duration::from_secs(20);

pub async fn root(containment: Containment) -> RootShim {
    root_with(containment, Cgroup::Off).await
}

pub async fn root_with(containment: Containment, cgroup: Cgroup) -> RootShim {
    let options = RootOptions {
        containment,
        cgroup,
        ..RootOptions::new("test").expect("this program enters before main")
    };
    RootShim::start(options).await.expect("a root shim starts")
}

pub fn shell(script: &str) -> SpawnSpec {
    let argv = ["/bin/sh", "-c", script].map(OsString::from).to_vec();
    SpawnSpec {
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        control: true,
        ..SpawnSpec::new("test-1", argv)
    }
}

pub async fn run(root: &RootShim, script: &str) -> Contained {
    root.spawn(shell(script)).await.expect("the shell starts")
}

/// All reports up to the last.
pub async fn reports(process: &mut Contained) -> Vec<Report> {
    let collect = async {
        let mut all = Vec::new();
        while let Some(report) = process.reports.next().await {
            all.push(report);
        }
        all
    };
    tokio::time::timeout(LIMIT, collect).await.expect("the reports end")
}

pub fn exits(reports: &[Report]) -> Vec<Cause> {
    let causes = reports.iter().filter_map(|report| match report {
        Report::Exited(Exit { cause, .. }) => Some(*cause),
        _ => None,
    });
    causes.collect()
}

pub fn output(pipe: OwnedFd) -> String {
    let mut text = String::new();
    let mut file = std::fs::File::from(pipe);
    file.read_to_string(&mut text).expect("the writer has ended");
    text
}

pub fn data(process: &mut Contained) -> UnixStream {
    let stream = process.data.take().expect("asked for");
    UnixStream::from_std(stream).expect("non-blocking")
}

pub async fn read_line(stream: &mut UnixStream) -> String {
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

pub fn exists(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

pub async fn gone(pid: i32) {
    let wait = async {
        while exists(pid) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(LIMIT, wait).await.unwrap_or_else(|_| panic!("{pid} is still there"));
}

pub async fn state_is(pid: i32, wanted: char) {
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
pub async fn with_detached_grandchild(root: &RootShim) -> (Contained, i32) {
    let script = "setsid sh -c 'echo $$ >&3; exec sleep 600 3>&- 4>&- >/dev/null 2>&1' & exec cat <&3 >/dev/null";
    let mut process = run(root, script).await;
    let mut stream = data(&mut process);
    let grandchild = read_line(&mut stream).await.parse().expect("a pid");
    process.data = Some(stream.into_std().unwrap());
    (process, grandchild)
}

pub fn kill(pid: i32) {
    send(pid, libc::SIGKILL);
}

pub fn send(pid: i32, signal: i32) {
    let status = Command::new("/bin/kill").args([format!("-{signal}"), pid.to_string()]).status();
    assert!(status.expect("kill runs").success());
}
