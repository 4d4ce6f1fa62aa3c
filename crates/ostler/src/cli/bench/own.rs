//! A server that `bench` starts for itself: this same program, on a port and a socket that nobody
//! else knows.
//!
//! Another process, so that its CPU time can be told from that of the callers. It ends when its
//! standard input does, which happens however `bench` ends.

use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, kill_process};

use super::super::args::{BenchServerArgs, ServeArgs};
use super::super::client::Client;
use super::super::endpoint::{Endpoint, current_dir};
use super::super::exit::{Exit, Failure};
use super::super::serve as serving;
use super::super::stats::{self, Pool};
use crate::config::Store;

const LOOK: Duration = Duration::from_millis(10);

/// Workers have a limit of their own; this one only ends what nobody foresaw.
const START_MAX: Duration = Duration::from_secs(120);

/// How long it may take to end before it is killed.
const END_MAX: Duration = Duration::from_secs(15);

/// Nobody is left to wait for what still runs.
const DRAIN: Duration = Duration::from_secs(1);

/// How long a call may wait in a queue that is there to be long.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// What the server is to serve: a file, or else a configuration.
#[derive(Debug, Default)]
pub(super) struct Wanted<'a> {
    pub file: Option<&'a Path>,
    pub config: Option<&'a Path>,
    pub queue_max: Option<u32>,
    pub size: Option<u32>,
}

/// It ends, and its directory goes, when this is dropped.
#[derive(Debug)]
pub(super) struct OwnServer {
    child: Child,
    directory: Directory,
}

impl OwnServer {
    pub fn start(wanted: &Wanted<'_>) -> Result<Self, Failure> {
        let directory = Directory::make()?;
        let program = std::env::current_exe()
            .map_err(|error| Failure::failed(format!("this program is not found: {error}")))?;
        let mut command = Command::new(program);
        command.arg("bench-server").arg("--socket").arg(directory.socket());
        if let Some(config) = wanted.config {
            command.arg("--config").arg(config);
        }
        if let Some(max) = wanted.queue_max {
            command.arg(format!("--queue-max={max}"));
        }
        if let Some(size) = wanted.size {
            command.arg(format!("--size={size}"));
        }
        command.args(wanted.file);
        if std::env::var_os("OSTLER_LOG").is_none() {
            command.env("OSTLER_LOG", "error");
        }
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        let child = child.map_err(|error| {
            Failure::failed(format!("cannot start a server to measure: {error}"))
        })?;
        Ok(Self { child, directory })
    }

    /// Waits until every worker is ready, and says where the server is.
    pub async fn ready(&self) -> Result<Endpoint, Failure> {
        let endpoint = Endpoint::Unix(self.directory.socket());
        let begun = Instant::now();
        while begun.elapsed() < START_MAX {
            match Client::connect(endpoint.clone()).await {
                Ok(mut client) => {
                    let pools = stats::parse(&stats::ask(&mut client).await?)?.pools;
                    if pools.iter().all(is_ready) {
                        return Ok(endpoint);
                    }
                }
                Err(failure) if failure.exit != Exit::NotRunning => return Err(failure),
                // It says why on the standard error that it shares with us.
                Err(_) if self.has_ended() => break,
                Err(_) => {}
            }
            tokio::time::sleep(LOOK).await;
        }
        Err(Failure::failed("the server to measure did not come up; see why with: ostler check"))
    }

    fn has_ended(&self) -> bool {
        // Not waited for here: that is done once, at the end.
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        let stat = stat.unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, fields)| fields.starts_with(['Z', 'X']))
    }
}

fn is_ready(pool: &Pool) -> bool {
    let serves = |phase: Option<&str>| matches!(phase, Some("ready" | "busy"));
    pool.lifecycle == "running" && pool.workers.iter().all(|w| serves(w.phase.as_deref()))
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let begun = Instant::now();
        while begun.elapsed() < END_MAX {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(LOOK);
        }
        // Its workers go with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory of nobody else's, removed when this is dropped.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
}

impl Directory {
    pub fn make() -> Result<Self, Failure> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("ostler-bench-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| {
            Failure::failed(format!("cannot make {}: {error}; is TMPDIR right?", path.display()))
        })?;
        Ok(Self { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn socket(&self) -> PathBuf {
        self.path.join("ostler.sock")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// The other side: serves until standard input ends.
pub(in super::super) fn serve(args: BenchServerArgs) -> Result<Exit, Failure> {
    let arguments = ServeArgs {
        file: args.file,
        config: args.config,
        listen: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
        size: args.size,
        wait: true,
        watch: false,
    };
    let mut config = serving::resolve(&arguments, &current_dir()?)?;
    // A store of its own too: the configured one may belong to a server that runs.
    config.store = Store::in_file(args.socket.with_file_name("ostler.db"));
    config.server.socket = args.socket;
    config.server.drain_timeout = DRAIN;
    if let Some(max) = args.queue_max {
        for pool in &mut config.pools {
            (pool.queue.max, pool.queue.timeout) = (max, PATIENCE);
            pool.request.timeout = PATIENCE;
        }
    }
    // A signal to itself, because that is what ends a server in order.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = kill_process(getpid(), Signal::TERM);
    });
    let manner = serving::Manner { wait: arguments.wait, watch: false };
    let fixed: crate::reload::Source = Arc::new(|| Err("it cannot be reloaded".to_owned()));
    serving::serve(config, fixed, manner)
}
