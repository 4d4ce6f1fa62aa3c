//! A contained process on its way up, and what its owner holds once it runs.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use super::cgroup::WorkerCgroup;
use super::channel::{Channel, PidFd};
use super::error::SpawnError;
use super::handle::ProcessHandle;
use super::level::{Level, Rung};
use super::program::Stage;
use super::reports::Reports;
use super::spec::SpawnSpec;
use super::sys::{self, Fds};
use super::wire::{self, Kind, Message};

/// A process that runs, with everything its owner needs.
///
/// When `handle`, all its clones and `reports` are dropped, the process and all its descendants
/// are killed.
#[derive(Debug)]
pub struct Contained {
    /// The worker's descriptor 3. Both streams are non-blocking.
    pub data: Option<UnixStream>,
    /// The worker's descriptor 4.
    pub control: Option<UnixStream>,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
    /// The host's number, for display. Signals go through `handle`.
    pub pid: i32,
    pub handle: ProcessHandle,
    pub reports: Reports,
}

/// The far ends that travel to the process that makes the worker.
#[derive(Debug)]
pub(super) struct Request {
    name: String,
    blueprint: OwnedFd,
    report: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
    data: Option<OwnedFd>,
    control: Option<OwnedFd>,
    cgroup: Option<Arc<WorkerCgroup>>,
}

impl Request {
    pub fn message(&self, kind: Kind, more_flags: u32) -> Message {
        let flag = |present: bool, flag: u32| if present { flag } else { 0 };
        Message::new(kind)
            .flags(
                more_flags
                    | flag(self.data.is_some(), wire::DATA)
                    | flag(self.control.is_some(), wire::CONTROL)
                    | flag(self.cgroup.is_some(), wire::CGROUP),
            )
            .numbers(&[self.cgroup.as_ref().map_or(0, |cgroup| cgroup.number)])
            .text(self.name.as_bytes())
    }

    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let always = [&self.blueprint, &self.report, &self.stdout, &self.stderr];
        let cgroup = self.cgroup.as_ref().map(|cgroup| &cgroup.directory);
        let optional = self.data.iter().chain(&self.control).chain(cgroup);
        always.into_iter().chain(optional).map(AsFd::as_fd).collect()
    }
}

/// The near ends, while the process is being made.
#[derive(Debug)]
pub(super) struct Starting {
    report: Channel,
    stdout: OwnedFd,
    stderr: OwnedFd,
    data: Option<UnixStream>,
    control: Option<UnixStream>,
    cgroup: Option<Arc<WorkerCgroup>>,
    in_namespace: bool,
}

impl Starting {
    pub fn prepare(
        spec: &SpawnSpec,
        cgroup: Option<WorkerCgroup>,
        level: &Level,
    ) -> Result<(Starting, Request), SpawnError> {
        Starting::try_prepare(spec, cgroup, level).map_err(|source| SpawnError::System {
            what: "cannot make the worker's sockets and pipes",
            source,
        })
    }

    fn try_prepare(
        spec: &SpawnSpec,
        cgroup: Option<WorkerCgroup>,
        level: &Level,
    ) -> io::Result<(Starting, Request)> {
        let cgroup = cgroup.map(Arc::new);
        let (report, far_report) = Channel::pair()?;
        let (stdout, far_stdout) = output_pipe()?;
        let (stderr, far_stderr) = output_pipe()?;
        let (data, far_data) = stream(spec.data)?;
        let (control, far_control) = stream(spec.data && spec.control)?;
        let request = Request {
            name: spec.name.clone(),
            blueprint: spec.to_file()?,
            report: far_report,
            stdout: far_stdout,
            stderr: far_stderr,
            data: far_data,
            control: far_control,
            cgroup: cgroup.clone(),
        };
        let starting = Starting {
            report,
            stdout,
            stderr,
            data,
            control,
            cgroup,
            in_namespace: level.rung == Rung::C3,
        };
        Ok((starting, request))
    }

    /// Collects the reports of the start. The shim sends them in one order: itself, the worker,
    /// then that it runs. `nobody` is the error when the request was lost before there was a shim.
    pub async fn finish(
        self,
        spec: &SpawnSpec,
        nobody: SpawnError,
    ) -> Result<Contained, SpawnError> {
        let mut shim = None;
        let mut worker = None;
        let mut failure = nobody;
        while let Some((message, mut fds)) = self.next_report().await? {
            match message.kind {
                Kind::ShimStarted => {
                    shim = Some(take_pidfd(&mut fds)?);
                    failure = SpawnError::ShimLost;
                }
                Kind::WorkerForked => worker = Some((take_pidfd(&mut fds)?, message.numbers[0])),
                Kind::Refused => failure = refused(spec, &message),
                Kind::Running => {
                    if let (Some(shim), Some((worker, pid))) = (shim.take(), worker.take()) {
                        return Ok(self.into_contained(shim, worker, pid as i32));
                    }
                }
                Kind::Clean | Kind::Swept => break,
                _ => {}
            }
        }
        Err(failure)
    }

    async fn next_report(&self) -> Result<Option<(Message, Fds)>, SpawnError> {
        let received = self.report.receive().await;
        received
            .map_err(|source| SpawnError::System { what: "cannot read the shim's reports", source })
    }

    fn into_contained(self, shim: PidFd, worker: PidFd, told_pid: i32) -> Contained {
        let report = Arc::new(self.report);
        let pid = worker.pid().unwrap_or(told_pid);
        let worker = Arc::new(worker);
        let handle =
            ProcessHandle::new(Arc::clone(&report), Arc::new(shim), Arc::clone(&worker), pid);
        Contained {
            data: self.data,
            control: self.control,
            stdout: self.stdout,
            stderr: self.stderr,
            pid,
            handle,
            reports: Reports::new(report, worker, self.cgroup, self.in_namespace),
        }
    }
}

pub(super) fn output_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (near, far) = sys::pipe()?;
    sys::set_nonblocking(near.as_fd())?;
    Ok((near, far))
}

fn stream(wanted: bool) -> io::Result<(Option<UnixStream>, Option<OwnedFd>)> {
    if !wanted {
        return Ok((None, None));
    }
    let (near, far) = UnixStream::pair()?;
    near.set_nonblocking(true)?;
    Ok((Some(near), Some(far.into())))
}

fn take_pidfd(fds: &mut Fds) -> Result<PidFd, SpawnError> {
    fds.take()
        .and_then(PidFd::new)
        .map_err(|source| SpawnError::System { what: "cannot watch the worker's process", source })
}

pub(super) fn refused(spec: &SpawnSpec, message: &Message) -> SpawnError {
    let stage = Stage::from_number(message.numbers[0]);
    let source = io::Error::from_raw_os_error(message.numbers[1] as i32);
    SpawnError::refused(spec, stage, source)
}
