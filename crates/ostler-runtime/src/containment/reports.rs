//! What becomes of a contained process: facts, in order, ending with one that says what is left.
//!
//! ```text
//! Exited ─► Clean                        the usual end
//! ShimLost ─► Exited ─► Clean            the shim died; the root shim or the kernel cleaned up
//! ShimLost ─► Exited ─► Unproven         both shims died, without a namespace or a cgroup
//! ```
//! `Exited` comes before `ShimLost` when the shim had reported it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::cgroup::WorkerCgroup;
use super::channel::{Channel, PidFd};
use super::sys::{self, Usage};
use super::wire::{Kind, Message};

/// How long to wait for somebody else to reap the worker when both shims are gone.
const REAP_LIMIT: Duration = Duration::from_millis(500);
const REAP_PAUSE: Duration = Duration::from_millis(5);

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Code(i32),
    Signal {
        number: i32,
        core_dumped: bool,
    },
    /// Its shim was lost, and the kernel (before 6.15) cannot tell.
    Unknown,
}

impl Cause {
    pub(super) fn from_status(status: i32) -> Cause {
        if libc::WIFEXITED(status) {
            Cause::Code(libc::WEXITSTATUS(status))
        } else if libc::WIFSIGNALED(status) {
            Cause::Signal { number: libc::WTERMSIG(status), core_dumped: libc::WCOREDUMP(status) }
        } else {
            Cause::Unknown
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    pub cause: Cause,
    /// None when the shim was lost.
    pub usage: Option<Usage>,
}

/// Who says that nothing is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The shim: the kernel told it that it has no child.
    Shim,
    /// The root shim: it killed and reaped whatever the dead shim left to it.
    RootShim,
    /// The kernel: the namespace ended with its init.
    Namespace,
    /// The worker's cgroup is empty.
    Cgroup,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// The worker's process has ended and was waited for.
    Exited(Exit),
    /// The shim died before its work was done.
    ShimLost,
    /// Last: no process of this worker is left.
    Clean(Proof),
    /// Last: shim and root shim both died; descendants that had detached themselves may live.
    Unproven,
}

#[derive(Debug)]
pub struct Reports {
    channel: Arc<Channel>,
    worker: Arc<PidFd>,
    cgroup: Option<Arc<WorkerCgroup>>,
    in_namespace: bool,
    exited: bool,
    shim_lost: bool,
    finished: bool,
    ready: VecDeque<Report>,
}

impl Reports {
    pub(super) fn new(
        channel: Arc<Channel>,
        worker: Arc<PidFd>,
        cgroup: Option<Arc<WorkerCgroup>>,
        in_namespace: bool,
    ) -> Reports {
        Reports {
            channel,
            worker,
            cgroup,
            in_namespace,
            exited: false,
            shim_lost: false,
            finished: false,
            ready: VecDeque::with_capacity(3),
        }
    }

    /// The next fact; None after the last. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Report> {
        loop {
            if let Some(report) = self.ready.pop_front() {
                return Some(report);
            }
            if self.finished {
                return None;
            }
            // An unreadable socket says no more than a closed one.
            match self.channel.receive().await.ok().flatten() {
                Some((message, _)) => self.on_message(&message),
                None => self.on_all_shims_lost().await,
            }
        }
    }

    fn on_message(&mut self, message: &Message) {
        match message.kind {
            Kind::Exited => self.on_exited(message),
            Kind::Clean => self.finish(Report::Clean(Proof::Shim)),
            Kind::ShimDeparted => self.on_shim_lost(),
            Kind::Swept => self.on_swept(),
            _ => {}
        }
    }

    fn on_exited(&mut self, message: &Message) {
        let [status, user, system, rss] = message.numbers;
        self.exited = true;
        self.ready.push_back(Report::Exited(Exit {
            cause: Cause::from_status(status as i32),
            usage: Some(Usage {
                user_micros: user as u64,
                system_micros: system as u64,
                max_rss_kib: rss as u64,
            }),
        }));
    }

    fn on_shim_lost(&mut self) {
        if !self.shim_lost {
            self.shim_lost = true;
            self.ready.push_back(Report::ShimLost);
        }
    }

    /// The root shim has reaped the worker, so its status can be read.
    fn on_swept(&mut self) {
        let proof = if self.in_namespace { Proof::Namespace } else { Proof::RootShim };
        self.exited_unless_known();
        self.finish(Report::Clean(proof));
    }

    /// End of file: neither the shim nor the root shim holds the other end any more.
    async fn on_all_shims_lost(&mut self) {
        self.on_shim_lost();
        let limit = tokio::time::Instant::now() + REAP_LIMIT;
        while !self.is_worker_reaped() && tokio::time::Instant::now() < limit {
            self.kill_cgroup();
            tokio::time::sleep(REAP_PAUSE).await;
        }
        self.exited_unless_known();
        let last = self.last_without_shims();
        self.finish(last);
    }

    fn is_worker_reaped(&self) -> bool {
        self.worker.signal(0).is_err()
    }

    fn kill_cgroup(&self) {
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
    }

    fn last_without_shims(&self) -> Report {
        if self.in_namespace {
            return Report::Clean(Proof::Namespace);
        }
        match &self.cgroup {
            Some(cgroup) if cgroup.is_empty() => {
                cgroup.remove();
                Report::Clean(Proof::Cgroup)
            }
            _ => Report::Unproven,
        }
    }

    fn exited_unless_known(&mut self) {
        if !self.exited {
            self.exited = true;
            let status = sys::pidfd_exit_status(self.worker.as_fd());
            let cause = status.map_or(Cause::Unknown, Cause::from_status);
            self.ready.push_back(Report::Exited(Exit { cause, usage: None }));
        }
    }

    fn finish(&mut self, last: Report) {
        self.finished = true;
        self.ready.push_back(last);
    }
}
