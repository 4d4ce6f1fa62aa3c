//! The server of a trial: three workers in a pool, and a ping that shows who still serves.
//!
//! It says on standard output what has come up, and obeys one word on standard input: `ping`.

use std::ffi::OsString;
use std::io::BufRead;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use ostler_runtime::containment::{
    Cgroup, Contained, Containment, ForkServer, RootOptions, RootShim, SpawnSpec,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use crate::hostile;

pub const ROLE: &str = "rig-server";
pub const WORKERS: usize = 3;
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// Arguments: level, how workers are made, the interpreter, and the cgroup to join or `-`.
pub fn main(arguments: &[String]) -> ExitCode {
    let [level, making, python, cgroup] = arguments else {
        return ExitCode::FAILURE;
    };
    if cgroup != "-" {
        std::fs::write(Path::new(cgroup).join("cgroup.procs"), "0").expect("joins its cgroup");
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let served = serve(level, (making == "fork").then_some(python.as_str()));
    runtime.expect("a runtime").block_on(served);
    ExitCode::SUCCESS
}

struct Worker {
    name: String,
    stream: UnixStream,
    _process: Contained,
}

async fn serve(level: &str, python: Option<&str>) {
    let mut commands = commands();
    let mut workers = Vec::new();
    // Kept to the end: dropping either would kill.
    let _pool = start_pool(level, python, &mut workers).await;
    println!("ready");
    while let Some(command) = commands.recv().await {
        if command == "ping" {
            ping_all(&mut workers).await;
        }
    }
}

fn commands() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(4);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

/// None as soon as a part that others need has been killed.
async fn start_pool(
    level: &str,
    python: Option<&str>,
    workers: &mut Vec<Worker>,
) -> Option<(RootShim, Option<ForkServer>)> {
    let containment = match level {
        "C3" => Containment::Namespace,
        _ => Containment::Shim,
    };
    let options = RootOptions {
        containment,
        cgroup: if level == "C2" { Cgroup::Auto } else { Cgroup::Off },
        ..RootOptions::new("trial").expect("main enters")
    };
    let root = RootShim::start(options).await.ok()?;
    println!("level {}", root.level().rung);
    let forks = match python {
        Some(python) => Some(root.start_fork_server(fork_server(python)).await.ok()),
        None => None,
    };
    for number in 0..WORKERS {
        let name = format!("w-{number}");
        let started = match &forks {
            Some(Some(server)) => server.fork(forked(&name)).await,
            Some(None) => break,
            None => root.spawn(spawned(&name)).await,
        };
        if let Ok(process) = started
            && let Some(worker) = greeted(name, process).await
        {
            println!("up {}", worker.name);
            workers.push(worker);
        }
    }
    Some((root, forks.flatten()))
}

fn own_program() -> OsString {
    std::env::current_exe().expect("this program has a path").into()
}

fn spawned(name: &str) -> SpawnSpec {
    let argv = vec![own_program(), hostile::ROLE.into(), format!("worker={name}").into()];
    SpawnSpec::new(name, argv)
}

fn forked(name: &str) -> SpawnSpec {
    SpawnSpec {
        env: vec![("RIG".into(), own_program())],
        ..SpawnSpec::new(name, vec![hostile::ROLE.into(), format!("worker={name}").into()])
    }
}

fn fork_server(python: &str) -> SpawnSpec {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = [here.join("../../sdk/python"), here.join("tests/containment_kill")];
    let argv = [python, "-B", "-S", "-u", "-m", "ostler.forkserver", "--target", "exec_rig:run"];
    SpawnSpec {
        env: vec![("PYTHONPATH".into(), std::env::join_paths(path).expect("no colons"))],
        ..SpawnSpec::new("forks", argv.map(OsString::from).to_vec())
    }
}

/// The worker's first byte says that its descendants are on their way.
async fn greeted(name: String, mut process: Contained) -> Option<Worker> {
    let mut stream = UnixStream::from_std(process.data.take()?).ok()?;
    stream.read_u8().await.ok()?;
    Some(Worker { name, stream, _process: process })
}

async fn ping_all(workers: &mut [Worker]) {
    for worker in workers {
        let answered = tokio::time::timeout(ANSWER_LIMIT, ping(&mut worker.stream)).await;
        let word = if answered == Ok(true) { "pong" } else { "silent" };
        println!("{word} {}", worker.name);
    }
    println!("end");
}

async fn ping(stream: &mut UnixStream) -> bool {
    stream.write_all(b"?").await.is_ok() && matches!(stream.read_u8().await, Ok(b'?'))
}
