//! The server's side of a root shim: start it, ask it for processes, notice its death.
//!
//! A root shim is the only kind of child that this library ever has: a program that embeds it
//! keeps its own children and its own SIGCHLD.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use super::cgroup::{CgroupTree, WorkerCgroup};
use super::channel::Channel;
use super::contained::{Contained, Starting};
use super::error::SpawnError;
use super::fork_server::ForkServer;
use super::level::{Containment, Level};
use super::namespace::Namespaces;
use super::root_process::{RootProcess, ShimBinary, launch, reap_abandoned};
use super::spec::SpawnSpec;
use super::sys::{self, Fds};
use super::wire::{self, Kind, Message};

/// Whether workers get a cgroup each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cgroup {
    /// Where a part of the cgroup v2 tree is delegated to this server.
    #[default]
    Auto,
    Off,
}

#[derive(Debug)]
pub struct RootOptions {
    /// Shown in `ps`.
    pub pool: String,
    pub containment: Containment,
    pub cgroup: Cgroup,
    pub binary: ShimBinary,
}

impl RootOptions {
    /// The defaults, with the running program as shim.
    pub fn new(pool: impl Into<String>) -> io::Result<RootOptions> {
        Ok(RootOptions {
            pool: pool.into(),
            containment: Containment::default(),
            cgroup: Cgroup::default(),
            binary: ShimBinary::current()?,
        })
    }
}

/// How long a root shim may take to answer for the first time.
const START_LIMIT: Duration = Duration::from_secs(10);

/// One pool's root shim. Dropping it kills everything below it; [`RootShim::close`] waits for that.
#[derive(Debug)]
pub struct RootShim {
    control: Channel,
    process: RootProcess,
    level: Level,
    cgroup: Option<Arc<CgroupTree>>,
}

impl RootShim {
    /// Starts a root shim and finds out what this system permits.
    pub async fn start(options: RootOptions) -> io::Result<RootShim> {
        reap_abandoned();
        let tree = match options.cgroup {
            Cgroup::Off => Err("switched off".to_owned()),
            Cgroup::Auto => CgroupTree::find(),
        };
        let (control, far) = Channel::pair()?;
        let mut process = launch(&options.binary, &options.pool, far)?;
        let agreed = agree(&control, options.containment, tree.as_ref().ok());
        let agreed = tokio::time::timeout(START_LIMIT, agreed).await;
        let Ok(Ok(Some((message, mut fds)))) = agreed else {
            process.kill();
            return Err(not_a_shim(&options.pool));
        };
        process.identify(fds.take()?)?;
        let (level, cgroup) = granted(options.containment, tree, &message);
        Ok(RootShim { control, process, level, cgroup })
    }

    /// What is really in force, and why.
    pub fn level(&self) -> &Level {
        &self.level
    }

    /// The root shim's own pid, for display.
    pub fn pid(&self) -> Option<i32> {
        self.process.pid()
    }

    /// Resolves when the root shim has died. Its workers go on, but C1 has lost its second line
    /// for them: start another root shim and retire the old workers.
    pub async fn lost(&self) {
        self.process.ended().await;
    }

    /// Has the root shim died?
    pub fn is_lost(&self) -> bool {
        self.process.has_ended()
    }

    /// Kills the root shim itself, for one that does not answer. Its workers go on.
    pub fn kill(&self) {
        self.process.kill();
    }

    /// Starts a process. Dropping the future kills whatever had been started.
    pub async fn spawn(&self, spec: SpawnSpec) -> Result<Contained, SpawnError> {
        let (starting, request) =
            Starting::prepare(&spec, worker_cgroup(self.cgroup.as_deref())?, &self.level)?;
        let message = request.message(Kind::Spawn, 0);
        let sent = self.control.send(&message, &request.descriptors()).await;
        sent.map_err(|_| SpawnError::RootShimLost)?;
        drop(request);
        starting.finish(&spec, SpawnError::RootShimLost).await
    }

    /// Starts a fork server and waits until it has preloaded. `spec.argv` is its command, such as
    /// `python3 -u -m ostler.forkserver --preload numpy worker.py`; streams are not used.
    pub async fn start_fork_server(&self, spec: SpawnSpec) -> Result<ForkServer, SpawnError> {
        let cgroup = self.cgroup.clone();
        ForkServer::start(&self.control, &spec, self.level.clone(), cgroup).await
    }

    /// Kills everything below the root shim and waits until it is gone.
    pub async fn close(self) {
        drop(self.control);
        self.process.ended().await;
    }
}

/// Says what is wanted; the answer says what there is.
async fn agree(
    control: &Channel,
    wanted: Containment,
    tree: Option<&CgroupTree>,
) -> io::Result<Option<(Message, Fds)>> {
    let server = sys::pidfd_open(sys::pid())?;
    let home = tree.map(CgroupTree::home).transpose()?;
    let namespace = match wanted {
        Containment::Shim => 0,
        Containment::Namespace => wire::NAMESPACE,
    };
    let cgroup = if home.is_some() { wire::CGROUP } else { 0 };
    let name = tree.map_or("", CgroupTree::name);
    let message = Message::new(Kind::Configure).flags(namespace | cgroup);
    let fds: Vec<_> = std::iter::once(&server).chain(&home).map(AsFd::as_fd).collect();
    control.send(&message.text(name.as_bytes()), &fds).await?;
    control.receive().await
}

fn granted(
    wanted: Containment,
    tree: Result<CgroupTree, String>,
    answer: &Message,
) -> (Level, Option<Arc<CgroupTree>>) {
    let error = |index: usize| io::Error::from_raw_os_error(answer.numbers[index] as i32);
    let tree = tree.and_then(|tree| match answer.has(wire::CGROUP) {
        true => Ok(Arc::new(tree)),
        false => Err(format!("cannot create it: {}", error(1))),
    });
    let namespaces = Namespaces::from_flags(answer.flags).ok_or_else(|| error(0));
    let level = Level::new(wanted, namespaces, tree.as_ref().map(drop));
    (level, tree.ok())
}

pub(super) fn worker_cgroup(tree: Option<&CgroupTree>) -> Result<Option<WorkerCgroup>, SpawnError> {
    let made = tree.map(CgroupTree::add_worker).transpose();
    made.map_err(|source| SpawnError::System { what: "cannot create the worker's cgroup", source })
}

fn not_a_shim(pool: &str) -> io::Error {
    io::Error::other(format!(
        "the root shim of pool `{pool}` did not start; the program that runs as shim must call \
         ostler_runtime::containment::enter_if_asked() as the first line of main"
    ))
}
