//! What the tests of pools share: programs with one vice each, and waiting for facts.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ostler_runtime::core::{Backoff, Heartbeat, Refusal, Settings};
use ostler_runtime::{
    Answered, Body, Call, CallError, Event, EventKind, Failure, Followed, Interpreter, Item, Pool,
    PoolSpec, Program, Refused, Running,
};

/// Nothing here takes seconds; a test that waits this long has failed.
pub const LIMIT: Duration = Duration::from_secs(30);

pub async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, work).await.unwrap_or_else(|_| panic!("never seen: {what}"))
}

/// Waits until something is so.
pub async fn until(what: &str, mut fact: impl FnMut() -> bool) {
    let look = async {
        while !fact() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    within(what, look).await;
}

fn worker_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workers").join(name)
}

/// A program of `tests/workers`, by its name: a shell script, or Python without the SDK.
pub async fn program(name: &str) -> Program {
    let file = worker_file(name);
    let with = match file.extension().and_then(|kind| kind.to_str()) {
        Some("sh") => OsString::from("/bin/sh"),
        // The interpreter itself: a version manager's wrapper takes longer than a test.
        _ => Interpreter::find("python3").await.expect("python3 is there").executable.into(),
    };
    Program::Command { argv: vec![with, file.into()] }
}

/// Functions of `tests/workers`, served by the Python SDK.
pub fn functions(name: &str) -> Program {
    Program::Python { file: worker_file(name), interpreter: "python3".to_owned() }
}

/// Settings under which a restart costs no time and an unwilling process little.
pub fn brisk(size: u32) -> Settings {
    Settings {
        backoff: Backoff { first: Duration::from_millis(1), ..Settings::default().backoff },
        cancel_grace: Duration::from_millis(100),
        stop_grace: Duration::from_millis(100),
        ..Settings::of_size(size)
    }
}

/// As brisk, but whoever is asked to stop has all the time to do so.
pub fn patient(size: u32) -> Settings {
    Settings { cancel_grace: LIMIT, ..brisk(size) }
}

/// A heartbeat whose misses come soon after each other.
pub fn quick_heartbeat(timeout: Duration) -> Heartbeat {
    Heartbeat {
        interval: Duration::from_millis(50),
        timeout,
        misses: 3,
        initial_delay: Duration::ZERO,
        independent: false,
    }
}

pub fn spec(program: Program, settings: Settings) -> PoolSpec {
    PoolSpec::new("test", program, settings)
}

pub async fn start(spec: PoolSpec) -> Pool {
    Pool::start(spec).await.expect("a pool starts")
}

/// A pool with one brisk worker.
pub async fn one(program: Program) -> Pool {
    start(spec(program, brisk(1))).await
}

pub async fn stop(pool: Pool) {
    pool.shut_down(false);
    within("the pool stops", pool.stopped()).await;
}

pub fn call(function: &str, arguments: &str) -> Call {
    Call {
        function: function.to_owned(),
        body: Body::json(arguments.to_owned()),
        ..Call::default()
    }
}

pub async fn end(running: Running) -> Result<Answered, CallError> {
    within("the call ends", running.result()).await
}

/// The result of a call, as text.
pub async fn ask(pool: &Pool, function: &str, arguments: &str) -> String {
    text(&end(pool.call(call(function, arguments))).await.expect("it answers").body)
}

pub fn text(body: &Body) -> String {
    String::from_utf8(body.bytes.to_vec()).expect("text")
}

/// Why a call was turned away.
pub async fn refusal(running: Running) -> Refusal {
    match end(running).await {
        Err(CallError::Refused(Refused::Pool(refusal))) => refusal,
        other => panic!("{other:?}"),
    }
}

/// How a call failed that may have run.
pub async fn failure(running: Running) -> Failure {
    match end(running).await {
        Err(CallError::Failed(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

/// Everything that a stream brings, and its end.
pub async fn drain(running: &mut Running) -> (Vec<String>, Result<Body, CallError>) {
    let mut chunks = Vec::new();
    loop {
        match within("the stream goes on", running.next()).await {
            Item::Chunk(chunk) => chunks.push(text(&chunk)),
            Item::End(end) => return (chunks, end),
        }
    }
}

pub fn generation(pool: &Pool) -> u32 {
    pool.info().workers[0].view.generation
}

/// The process of the n-th worker, once it is there.
pub async fn pid(pool: &Pool, worker: usize) -> i32 {
    let mut pid = None;
    until("a worker has a process", || {
        pid = pool.info().workers.get(worker).and_then(|worker| worker.pid);
        pid.is_some()
    })
    .await;
    pid.expect("just seen")
}

pub fn send(pid: i32, signal: i32) {
    assert!(try_send(pid, signal), "{pid} cannot be signalled");
}

/// False: it is gone by now.
pub fn try_send(pid: i32, signal: i32) -> bool {
    // SAFETY: a signal to a process that this test started; no memory is involved.
    unsafe { libc::kill(pid, signal) == 0 }
}

/// What a pool's log holds so far, oldest first.
pub fn events(pool: &Pool) -> Vec<Arc<Event>> {
    let mut follower = pool.event_log().follow(Some(0));
    let mut events = Vec::new();
    while let Some(Followed::Event(event)) = follower.try_next() {
        events.push(event);
    }
    events
}

/// The first event of a kind, once it is there.
pub async fn event(pool: &Pool, kind: EventKind) -> Arc<Event> {
    let mut found = None;
    until(kind.name(), || {
        found = events(pool).into_iter().find(|event| event.kind == kind);
        found.is_some()
    })
    .await;
    found.expect("just seen")
}

/// A process, told apart from a later one with the same number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: i32,
    begun: String,
}

impl Process {
    pub fn find(pid: i32) -> Process {
        let fields = stat(pid).unwrap_or_else(|| panic!("{pid} does not run"));
        Process { pid, begun: fields[19].clone() }
    }

    pub fn lives(&self) -> bool {
        stat(self.pid).is_some_and(|now| now[19] == self.begun && !matches!(&*now[0], "Z" | "X"))
    }

    pub fn state(pid: i32) -> String {
        stat(pid).map_or_else(String::new, |now| now[0].clone())
    }

    pub fn lives_now(pid: i32) -> bool {
        stat(pid).is_some_and(|now| !matches!(&*now[0], "Z" | "X"))
    }

    /// Whether the process that runs the test is among its ancestors.
    pub fn is_below_this_one(pid: i32) -> bool {
        let me = i32::try_from(std::process::id()).expect("a pid");
        let mut next = Some(pid);
        while let Some(pid) = next.filter(|pid| *pid > 1 && *pid != me) {
            next = stat(pid).and_then(|fields| fields[1].parse().ok());
        }
        next == Some(me)
    }

    /// This process and those above it, up to the one that runs the test.
    pub fn lineage(pid: i32) -> Vec<Process> {
        let me = i32::try_from(std::process::id()).expect("a pid");
        let mut line = Vec::new();
        let mut next = pid;
        while next != me && next > 1 {
            line.push(Process::find(next));
            next = stat(next).expect("it runs")[1].parse().expect("a pid");
        }
        line
    }
}

pub async fn gone(process: &Process) {
    until(&format!("{process:?} is gone"), || !process.lives()).await;
}

/// Every process that was started as a worker of this pool, or by one.
pub fn processes_of(pool: &str) -> Vec<i32> {
    let sign = format!("OSTLER_POOL={pool}").into_bytes();
    let entries = std::fs::read_dir("/proc").expect("a proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let belongs = |pid: &i32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|variable| variable == sign)
    };
    pids.filter(belongs).filter(|pid| Process::lives_now(*pid)).collect()
}

/// The fields of `/proc/PID/stat` behind the name, beginning with the state.
fn stat(pid: i32) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    Some(rest.split(' ').map(str::to_owned).collect())
}

/// A directory in which workers leave traces and wait for signs.
pub struct Yard {
    directory: tempfile::TempDir,
}

impl Yard {
    pub fn new() -> Yard {
        Yard { directory: tempfile::tempdir().expect("a directory") }
    }

    /// The same pool, its workers told where the yard is.
    pub fn around(&self, mut spec: PoolSpec) -> PoolSpec {
        let path = self.directory.path().display().to_string();
        spec.processes.env.push(("YARD".to_owned(), path));
        spec
    }

    pub fn lines(&self, file: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.directory.path().join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub fn size_of(&self, file: &str) -> u64 {
        std::fs::metadata(self.directory.path().join(file)).map_or(0, |metadata| metadata.len())
    }

    pub fn give(&self, sign: &str) {
        std::fs::write(self.path(sign), "").expect("a sign");
    }

    pub fn take_back(&self, sign: &str) {
        std::fs::remove_file(self.path(sign)).expect("a sign that was given");
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    /// A pipe with a name, held open at both ends, so that nobody waits for the other to open it.
    pub fn pipe(&self, name: &str) -> std::fs::File {
        let made = std::process::Command::new("mkfifo").arg(self.path(name)).status();
        assert!(made.expect("mkfifo runs").success());
        let open = std::fs::OpenOptions::new().read(true).write(true).open(self.path(name));
        open.expect("it was just made")
    }
}
