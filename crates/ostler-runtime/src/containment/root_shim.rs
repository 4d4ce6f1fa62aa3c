//! The server's side of a root shim: start it, ask it for processes, notice its death.
//!
//! A root shim is the only kind of child that this library ever has, and it is waited for by its
//! pidfd: a program that embeds the library keeps its own children and its own SIGCHLD.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::cgroup::{CgroupTree, WorkerCgroup};
use super::channel::{Channel, PidFd};
use super::contained::{Contained, Starting};
use super::error::SpawnError;
use super::fork_server::ForkServer;
use super::level::{Containment, Level};
use super::namespace::Namespaces;
use super::spec::SpawnSpec;
use super::sys;
use super::title::{self, ROOT_PREFIX};
use super::wire::{self, Kind, Message};

/// The program that becomes the shims, held open: an upgrade on disk does not change it.
#[derive(Debug)]
pub struct ShimBinary {
    file: File,
}

impl ShimBinary {
    /// The running program, which must call [`enter_if_asked`](super::enter_if_asked) first thing.
    pub fn current() -> io::Result<ShimBinary> {
        super::check_entered()?;
        ShimBinary::at("/proc/self/exe".as_ref())
    }

    /// Another program that calls [`enter_if_asked`](super::enter_if_asked) first thing.
    pub fn at(path: &Path) -> io::Result<ShimBinary> {
        let mut options = File::options();
        let file = options.read(true).custom_flags(libc::O_PATH).open(path)?;
        Ok(ShimBinary { file })
    }

    fn exec_path(&self) -> String {
        format!("/proc/self/fd/{}", self.file.as_raw_fd())
    }
}

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

/// The root shim's pidfd, the namespaces it can make, or why it can make none.
type Confirmation = (OwnedFd, Option<Namespaces>, Option<io::Error>);

/// One pool's root shim. Dropping it kills everything below it; [`RootShim::close`] waits for that.
#[derive(Debug)]
pub struct RootShim {
    control: Option<Channel>,
    process: Option<PidFd>,
    level: Level,
    cgroup: Option<Arc<CgroupTree>>,
}

impl RootShim {
    /// Starts a root shim and finds out what this system permits.
    pub async fn start(options: RootOptions) -> io::Result<RootShim> {
        reap_abandoned();
        let (cgroup, cgroup_refusal) = make_cgroup(options.cgroup);
        let (control, far) = Channel::pair()?;
        let mut root = RootShim {
            control: Some(control),
            process: launch(&options, far)?,
            level: Level::new(options.containment, None, None, cgroup_refusal.clone()),
            cgroup: cgroup.map(Arc::new),
        };
        let agreed = tokio::time::timeout(START_LIMIT, root.agree(&options)).await;
        let (process, granted, refusal) = agreed.map_err(|_| not_a_shim(&options))??;
        root.process = Some(PidFd::new(process)?);
        root.level = Level::new(options.containment, granted, refusal, cgroup_refusal);
        Ok(root)
    }

    async fn agree(&self, options: &RootOptions) -> io::Result<Confirmation> {
        self.configure(options.containment).await?;
        let received = self.control().receive().await?;
        let (message, mut fds) = received.ok_or_else(|| not_a_shim(options))?;
        let refusal = match message.numbers[0] {
            0 => None,
            errno => Some(io::Error::from_raw_os_error(errno as i32)),
        };
        Ok((fds.take()?, Namespaces::from_flags(message.flags), refusal))
    }

    async fn configure(&self, wanted: Containment) -> io::Result<()> {
        let server = sys::pidfd_open(sys::pid())?;
        let namespace = match wanted {
            Containment::Shim => 0,
            Containment::Namespace => wire::NAMESPACE,
        };
        let message = Message::new(Kind::Configure).flags(namespace);
        let Some(tree) = &self.cgroup else {
            return self.control().send(&message, &[server.as_fd()]).await;
        };
        let (own, parent) = tree.directories()?;
        let message = message.flags(namespace | wire::CGROUP).text(tree.name().as_bytes());
        let fds = [server.as_fd(), own.as_fd(), parent.as_fd()];
        self.control().send(&message, &fds).await
    }

    fn control(&self) -> &Channel {
        self.control.as_ref().expect("taken only when this value ends")
    }

    fn process(&self) -> &PidFd {
        self.process.as_ref().expect("set before `start` returns")
    }

    /// What is really in force, and why.
    pub fn level(&self) -> &Level {
        &self.level
    }

    /// The root shim's own pid, for display.
    pub fn pid(&self) -> Option<i32> {
        self.process().pid()
    }

    /// Resolves when the root shim has died. Its workers go on, but C1 has lost its second line
    /// for them: start another root shim and retire the old workers.
    pub async fn lost(&self) {
        self.process().ended().await;
    }

    /// Has the root shim died?
    pub fn is_lost(&self) -> bool {
        sys::is_ready(self.process().as_fd())
    }

    /// Starts a process. Dropping the future kills whatever had been started.
    pub async fn spawn(&self, spec: SpawnSpec) -> Result<Contained, SpawnError> {
        let (starting, request) =
            Starting::prepare(&spec, worker_cgroup(self.cgroup.as_deref())?, &self.level)?;
        let message = request.message(Kind::Spawn, 0);
        let sent = self.control().send(&message, &request.descriptors()).await;
        sent.map_err(|_| SpawnError::RootShimLost)?;
        drop(request);
        starting.finish(&spec, SpawnError::RootShimLost).await
    }

    /// Starts a fork server and waits until it has preloaded. `spec.argv` is its command, such as
    /// `python3 -u -m ostler.forkserver --preload numpy worker.py`; streams are not used.
    pub async fn start_fork_server(&self, spec: SpawnSpec) -> Result<ForkServer, SpawnError> {
        let cgroup = self.cgroup.clone();
        ForkServer::start(self.control(), &spec, self.level.clone(), cgroup).await
    }

    /// Kills everything below the root shim and waits until it is gone.
    pub async fn close(mut self) {
        drop(self.control.take());
        self.process().ended().await;
    }
}

impl Drop for RootShim {
    fn drop(&mut self) {
        // The root shim sees the hang-up, kills everything and ends; its zombie is reaped when
        // the next one is started, or when this program ends.
        drop(self.control.take());
        if let Some(process) = self.process.take()
            && let Ok(fd) = process.as_fd().try_clone_to_owned()
        {
            abandoned().push(fd);
        }
        reap_abandoned();
        if let Some(tree) = &self.cgroup {
            tree.remove();
        }
    }
}

pub(super) fn worker_cgroup(tree: Option<&CgroupTree>) -> Result<Option<WorkerCgroup>, SpawnError> {
    let made = tree.map(CgroupTree::add_worker).transpose();
    made.map_err(|source| SpawnError::System { what: "cannot create the worker's cgroup", source })
}

fn not_a_shim(options: &RootOptions) -> io::Error {
    io::Error::other(format!(
        "the root shim of pool `{}` did not start; the program that runs as shim must call \
         ostler_runtime::containment::enter_if_asked() as the first line of main",
        options.pool
    ))
}

fn make_cgroup(wanted: Cgroup) -> (Option<CgroupTree>, Result<(), String>) {
    match wanted {
        Cgroup::Off => (None, Err("switched off".to_owned())),
        Cgroup::Auto => match CgroupTree::create() {
            Ok(tree) => (Some(tree), Ok(())),
            Err(why) => (None, Err(why)),
        },
    }
}

/// The control socket goes in as standard input: no code runs between fork and exec, so this is
/// safe in a program with many threads.
fn launch(options: &RootOptions, control: OwnedFd) -> io::Result<Option<PidFd>> {
    let mut command = Command::new(options.binary.exec_path());
    command
        .arg0(format!("{ROOT_PREFIX}{}", options.pool))
        .arg(title::padding())
        .env_clear()
        .envs(loader_path())
        .stdin(Stdio::from(control))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = command.spawn()?;
    // None when the embedding program has already waited for it; then there is nothing to reap.
    Ok(sys::pidfd_open(child.id() as i32).and_then(PidFd::new).ok())
}

/// A host program may need it to find its shared libraries.
fn loader_path() -> Option<(&'static str, OsString)> {
    let name = "LD_LIBRARY_PATH";
    std::env::var_os(name).map(|value| (name, value))
}

static ABANDONED: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());

fn abandoned() -> std::sync::MutexGuard<'static, Vec<OwnedFd>> {
    ABANDONED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for root shims that have ended, and only for those.
fn reap_abandoned() {
    abandoned().retain(|process| !sys::reap_pidfd(process.as_fd()));
}
