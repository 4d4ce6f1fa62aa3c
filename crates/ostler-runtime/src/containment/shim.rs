//! The worker shim, M: parent of one worker, adopter of everything the worker leaves.
//!
//! It forks the worker, tells the server what becomes of it, and ends only when nothing below it
//! is left. It watches the server itself, so it needs nobody above it to know when to clean up.
//! One thread, no allocation once the worker runs; it never reads what the worker says.
//!
//! ```text
//!  fork W ──► watching ── W ended ──────────────────► EXITED ─┐
//!                 │                                           ├─► kill + reap until ECHILD ─► CLEAN ─► exit
//!                 └── server gone, "sweep" or hang-up ────────┘
//! ```

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use super::children::{self, Children};
use super::namespace::Namespaces;
use super::program::{Launch, Stage, refusal};
use super::sys::{self, Forked, Usage, Wait};
use super::title::{SHIM_PREFIX, Title};
use super::wire::{self, Kind, MESSAGE_SIZE, Message, Received};

/// What a root shim hands to the worker shim that it forks.
#[derive(Debug)]
pub struct Order {
    /// Its text is the worker's name.
    pub request: Message,
    pub report: OwnedFd,
    pub server: OwnedFd,
    pub blueprint: OwnedFd,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
    pub passed: Vec<OwnedFd>,
    pub cgroup: Option<OwnedFd>,
    pub namespaces: Option<Namespaces>,
    pub file_limit: Option<(u64, u64)>,
    pub title: Title,
}

impl Order {
    /// The rest of a freshly forked shim's life.
    pub fn run(self) -> ! {
        let parts = self.arm().and_then(|fdinfo| Ok((fdinfo, sys::pipe()?)));
        let (fdinfo, (gate, failures)) = match parts {
            Ok(parts) => parts,
            Err(error) => self.give_up(Stage::Arm, &error),
        };
        let parent = sys::pid();
        match sys::fork(0) {
            Err(error) => self.give_up(Stage::Fork, &error),
            Ok(Forked::Child) => self.into_launch(failures, parent).run(),
            Ok(Forked::Parent { pid, pidfd }) => {
                drop(failures);
                let shim = self.into_shim(pid, Some(gate));
                shim.announce_worker(&fdinfo, &pidfd);
                drop((fdinfo, pidfd));
                shim.watch()
            }
        }
    }

    /// Returns this process's fdinfo in the server's /proc.
    fn arm(&self) -> io::Result<OwnedFd> {
        self.close_what_is_the_root_shims()?;
        sys::new_session()?;
        sys::set_name(c"ostler-shim");
        self.title.show(SHIM_PREFIX, self.request.text_bytes());
        let fdinfo = children::own_fdinfo()?;
        match self.namespaces {
            Some(namespaces) => namespaces.enter()?,
            None => sys::become_subreaper()?,
        }
        announce_shim(&self.report)?;
        Ok(fdinfo)
    }

    fn close_what_is_the_root_shims(&self) -> io::Result<()> {
        let named = [&self.report, &self.server, &self.blueprint, &self.stdout, &self.stderr];
        let all = named.into_iter().chain(&self.passed).chain(&self.cgroup);
        let mut kept: Vec<_> = all.map(AsRawFd::as_raw_fd).collect();
        sys::close_all_but(&mut kept)
    }

    fn give_up(&self, stage: Stage, error: &io::Error) -> ! {
        let _ = refusal(stage, error).send(self.report.as_fd(), &[]);
        let _ = Message::new(Kind::Clean).send(self.report.as_fd(), &[]);
        sys::exit_now(0)
    }

    fn into_launch(self, failures: OwnedFd, parent: i32) -> Launch {
        Launch {
            blueprint: self.blueprint,
            stdout: self.stdout,
            stderr: self.stderr,
            passed: self.passed,
            failures,
            parent,
            cgroup: self.cgroup,
            file_limit: self.file_limit,
        }
    }

    /// Drops, and so closes, all that only the worker needs.
    fn into_shim(self, worker: i32, gate: Option<OwnedFd>) -> Shim {
        Shim {
            report: self.report,
            server: self.server,
            cgroup: self.cgroup,
            gate,
            worker,
            in_namespace: self.namespaces.is_some(),
        }
    }
}

/// The life of a shim that a fork server forked, and that has just replaced itself by this
/// program. Descriptors: 3 report, 4 server pidfd, 5 its own fdinfo in the server's /proc, 6 the
/// worker's cgroup if there is one. The worker is its only child.
pub fn take_over(name: &[u8], worker: i32) -> ! {
    match adopt_descriptors(name, worker) {
        Ok((shim, fdinfo, pidfd)) => {
            shim.announce_worker(&fdinfo, &pidfd);
            drop((fdinfo, pidfd));
            let _ = Message::new(Kind::Running).send(shim.report.as_fd(), &[]);
            shim.watch()
        }
        // The worker dies with this process, and the root shim sweeps the rest.
        Err(_) => sys::exit_now(1),
    }
}

fn adopt_descriptors(name: &[u8], worker: i32) -> io::Result<(Shim, OwnedFd, OwnedFd)> {
    sys::close_all_but(&mut [3, 4, 5, 6])?;
    let shim = Shim {
        report: sys::adopt(3)?,
        server: sys::adopt(4)?,
        cgroup: sys::adopt(6).ok(),
        gate: None,
        worker,
        in_namespace: sys::pid() == 1,
    };
    let fdinfo = sys::adopt(5)?;
    sys::silence_standard_streams()?;
    sys::ignore_requests_to_end();
    sys::set_name(c"ostler-shim");
    Title::locate().show(SHIM_PREFIX, name);
    if !shim.in_namespace {
        sys::become_subreaper()?;
    }
    announce_shim(&shim.report)?;
    let pidfd = sys::pidfd_open(worker)?;
    Ok((shim, fdinfo, pidfd))
}

fn announce_shim(report: &OwnedFd) -> io::Result<()> {
    let own = sys::pidfd_open(sys::pid())?;
    Message::new(Kind::ShimStarted).send(report.as_fd(), &[own.as_fd()])
}

#[derive(Debug)]
struct Shim {
    report: OwnedFd,
    server: OwnedFd,
    cgroup: Option<OwnedFd>,
    /// Closes when the worker's program runs, or says why it does not.
    gate: Option<OwnedFd>,
    worker: i32,
    in_namespace: bool,
}

impl Shim {
    fn announce_worker(&self, fdinfo: &OwnedFd, pidfd: &OwnedFd) {
        // Asked before the worker can be reaped, so the number is there even for one that is
        // already dead.
        let host_pid = children::pid_behind(fdinfo, pidfd).unwrap_or(self.worker);
        let message = Message::new(Kind::WorkerForked).numbers(&[host_pid.into()]);
        let _ = message.send(self.report.as_fd(), &[pidfd.as_fd()]);
    }

    fn watch(mut self) -> ! {
        let children = Children::of_this_process();
        let Ok(signals) = sys::child_signals() else { self.sweep(&children, None) };
        loop {
            let gate = self.gate.as_ref();
            let mut entries = [
                sys::watch(self.server.as_fd()),
                sys::watch(self.report.as_fd()),
                sys::watch(signals.as_fd()),
                gate.map_or_else(sys::watch_nothing, |gate| sys::watch(gate.as_fd())),
            ];
            sys::poll(&mut entries, None);
            sys::drain_child_signals(signals.as_fd());
            self.look_at_gate();
            let worker_ended = self.reap();
            if worker_ended || entries[0].revents != 0 || self.is_asked_to_sweep() {
                self.sweep(&children, Some(&signals));
            }
        }
    }

    fn look_at_gate(&mut self) {
        let Some(gate) = self.gate.take_if(|gate| sys::is_ready(gate.as_fd())) else {
            return;
        };
        let mut bytes = [0; MESSAGE_SIZE];
        let length = sys::read(gate.as_fd(), &mut bytes).unwrap_or(0);
        let outcome = Message::decode(&bytes[..length]);
        let outcome = outcome.unwrap_or_else(|| Message::new(Kind::Running));
        let _ = outcome.send(self.report.as_fd(), &[]);
    }

    fn is_asked_to_sweep(&self) -> bool {
        loop {
            match wire::receive(self.report.as_fd()) {
                Received::Message(message, _) if message.kind == Kind::Sweep => return true,
                Received::Closed => return true,
                Received::Nothing => return false,
                Received::Message(..) | Received::Unknown => {}
            }
        }
    }

    /// Reaps all that have ended; true when the worker was among them.
    fn reap(&self) -> bool {
        let mut worker_ended = false;
        while let Wait::Reaped { pid, status, usage } = sys::reap_any() {
            if pid == self.worker {
                self.report_exit(status, &usage);
                worker_ended = true;
            }
        }
        worker_ended
    }

    fn report_exit(&self, status: i32, usage: &Usage) {
        let message = Message::new(Kind::Exited).numbers(&[
            status.into(),
            usage.user_micros as i64,
            usage.system_micros as i64,
            usage.max_rss_kib as i64,
        ]);
        let _ = message.send(self.report.as_fd(), &[]);
    }

    /// Kills until the kernel says that there is no child left: as subreaper or init, this process
    /// inherits whatever its descendants leave, so no child means no descendant.
    fn sweep(&self, children: &Children, signals: Option<&OwnedFd>) -> ! {
        let mut rounds = 0_u32;
        loop {
            self.kill(children);
            if self.reap_until_blocked() {
                let _ = Message::new(Kind::Clean).send(self.report.as_fd(), &[]);
                sys::exit_now(0);
            }
            children::wait_for_a_death(signals, rounds);
            rounds = rounds.saturating_add(1);
        }
    }

    fn kill(&self, children: &Children) {
        if let Some(cgroup) = &self.cgroup {
            let _ = sys::write_file_at(Some(cgroup.as_fd()), c"cgroup.kill", b"1");
        }
        if self.in_namespace {
            sys::kill_namespace();
        } else {
            children.kill_all();
        }
    }

    /// True when there are no children any more.
    fn reap_until_blocked(&self) -> bool {
        loop {
            match sys::reap_any() {
                Wait::Reaped { pid, status, usage } if pid == self.worker => {
                    self.report_exit(status, &usage);
                }
                Wait::Reaped { .. } => {}
                Wait::NoneReady => return false,
                Wait::NoChildren => return true,
            }
        }
    }
}
