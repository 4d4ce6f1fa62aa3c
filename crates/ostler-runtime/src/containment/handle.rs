//! Power over a contained process, by pidfd: a signal can never reach a stranger.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::channel::{Channel, PidFd};
use super::sys;
use super::wire::{Kind, Message};

/// How long a shim may take to clean up before it is killed and the root shim takes over.
const SWEEP_GRACE: Duration = Duration::from_millis(500);

#[derive(Clone, Debug)]
pub struct ProcessHandle {
    report: Arc<Channel>,
    shim: Arc<PidFd>,
    worker: Arc<PidFd>,
    pid: i32,
}

impl ProcessHandle {
    pub(super) fn new(
        report: Arc<Channel>,
        shim: Arc<PidFd>,
        worker: Arc<PidFd>,
        pid: i32,
    ) -> ProcessHandle {
        ProcessHandle { report, shim, worker, pid }
    }

    /// Signals the worker alone. An error of kind `NotFound` or errno ESRCH: it has ended.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        self.worker.signal(signal)
    }

    /// Signals the worker's process group: the worker and what stayed in its session and group.
    pub fn signal_group(&self, signal: i32) -> io::Result<()> {
        let sent = sys::pidfd_signal(self.worker.as_fd(), signal, sys::SIGNAL_GROUP);
        match sent {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                // Before Linux 6.9. While the worker is not reaped, its group is its own.
                self.worker.signal(0)?;
                sys::kill_group(self.pid, signal)
            }
            other => other,
        }
    }

    pub fn freeze(&self) -> io::Result<()> {
        self.signal_group(libc::SIGSTOP)
    }

    pub fn thaw(&self) -> io::Result<()> {
        self.signal_group(libc::SIGCONT)
    }

    /// Kills the worker and everything it has started, wherever that has gone. Returns when the
    /// shim is done or had to be killed, too; the proof comes as a report.
    pub async fn sweep(&self) {
        let asked = self.report.try_send(&Message::new(Kind::Sweep)).is_ok();
        let ended = tokio::time::timeout(SWEEP_GRACE, self.shim.ended());
        if !asked || ended.await.is_err() {
            // It may be stopped or starved; then the root shim kills what falls to it.
            let _ = self.shim.signal(libc::SIGKILL);
        }
    }

    /// Resolves when the worker's own process has ended. Its cause comes as a report.
    pub async fn ended(&self) {
        self.worker.ended().await;
    }

    /// The shim's pid while it lives, for display.
    pub fn shim_pid(&self) -> Option<i32> {
        self.shim.pid()
    }
}
