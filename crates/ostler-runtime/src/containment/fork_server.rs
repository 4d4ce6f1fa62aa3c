//! A fork server: a preloaded interpreter below the root shim that forks workers.
//!
//! What it forks is contained exactly as what the root shim spawns, and reports in the same way.
//! When it dies its workers go on; when it cannot start, plain spawning still works.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use super::cgroup::CgroupTree;
use super::channel::{Channel, PidFd};
use super::contained::{Contained, Starting, output_pipe, refused};
use super::error::SpawnError;
use super::level::Level;
use super::namespace::Namespaces;
use super::reports::Cause;
use super::root_shim::worker_cgroup;
use super::spec::SpawnSpec;
use super::wire::{Kind, Message};

/// How long the root shim may take to say how a dead fork server ended.
const CAUSE_LIMIT: Duration = Duration::from_millis(500);

/// Ends when it is dropped; its workers do not.
#[derive(Debug)]
pub struct ForkServer {
    channel: Channel,
    process: PidFd,
    level: Level,
    cgroup: Option<Arc<CgroupTree>>,
    /// What the preloaded program prints, until its workers have their own.
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
}

impl ForkServer {
    /// Asks the root shim behind `root` for a fork server and waits until it is preloaded.
    pub(super) async fn start(
        root: &Channel,
        spec: &SpawnSpec,
        level: Level,
        cgroup: Option<Arc<CgroupTree>>,
    ) -> Result<ForkServer, SpawnError> {
        let (channel, stdout, stderr) = request(root, spec).await?;
        let process = preloaded(&channel, spec).await?;
        Ok(ForkServer { channel, process, level, cgroup, stdout, stderr })
    }

    /// Forks a worker. `argv` becomes the interpreter's `sys.argv`; environment and directory are
    /// the worker's own. Dropping the future kills whatever had been started.
    pub async fn fork(&self, spec: SpawnSpec) -> Result<Contained, SpawnError> {
        let cgroup = worker_cgroup(self.cgroup.as_deref())?;
        let (starting, request) = Starting::prepare(&spec, cgroup, &self.level)?;
        let namespaces = self.level.namespaces.map_or(0, Namespaces::to_flags);
        let message = request.message(Kind::Fork, namespaces);
        let sent = self.channel.send(&message, &request.descriptors()).await;
        sent.map_err(|_| SpawnError::ForkServerLost)?;
        drop(request);
        starting.finish(&spec, SpawnError::ForkServerLost).await
    }

    /// Resolves when the fork server has died, with the cause if the root shim can tell it.
    pub async fn lost(&self) -> Cause {
        self.process.ended().await;
        let cause = tokio::time::timeout(CAUSE_LIMIT, self.cause()).await;
        cause.unwrap_or(Cause::Unknown)
    }

    async fn cause(&self) -> Cause {
        while let Ok(Some((message, _))) = self.channel.receive().await {
            if message.kind == Kind::ForkServerExited {
                return Cause::from_status(message.numbers[0] as i32);
            }
        }
        Cause::Unknown
    }

    /// Its pid while it lives, for display.
    pub fn pid(&self) -> Option<i32> {
        self.process.pid()
    }
}

async fn request(
    root: &Channel,
    spec: &SpawnSpec,
) -> Result<(Channel, OwnedFd, OwnedFd), SpawnError> {
    let system = |source: io::Error| SpawnError::System {
        what: "cannot make the fork server's sockets and pipes",
        source,
    };
    let (channel, far) = Channel::pair().map_err(system)?;
    let (stdout, far_stdout) = output_pipe().map_err(system)?;
    let (stderr, far_stderr) = output_pipe().map_err(system)?;
    let blueprint = spec.to_file().map_err(system)?;
    let fds = [&blueprint, &far, &far_stdout, &far_stderr].map(AsFd::as_fd);
    let message = Message::new(Kind::StartForkServer).text(spec.name.as_bytes());
    let sent = root.send(&message, &fds).await;
    sent.map_err(|_| SpawnError::RootShimLost)?;
    Ok((channel, stdout, stderr))
}

/// Waits until the fork server is ready, or knows why it never will be.
async fn preloaded(channel: &Channel, spec: &SpawnSpec) -> Result<PidFd, SpawnError> {
    let mut process = None;
    while let Ok(Some((message, mut fds))) = channel.receive().await {
        match message.kind {
            Kind::ForkServerForked => process = fds.take().and_then(PidFd::new).ok(),
            Kind::ForkServerReady => return process.ok_or(SpawnError::ForkServerLost),
            Kind::Refused => return Err(refused(spec, &message)),
            Kind::ForkServerRefused => {
                let reason = String::from_utf8_lossy(message.text_bytes()).into_owned();
                return Err(SpawnError::Preload { reason });
            }
            Kind::ForkServerExited => break,
            _ => {}
        }
    }
    Err(SpawnError::ForkServerLost)
}
