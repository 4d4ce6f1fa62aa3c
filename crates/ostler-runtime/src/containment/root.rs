//! The root shim, Z: one per pool, parent of the pool's worker shims and of its fork server.
//!
//! It forks what the server asks for, and it is the second line: when a worker shim dies before
//! its work is done, whatever that shim held falls to this process, which kills every child that
//! is neither the fork server nor a registered shim. When the server is gone it kills everything
//! and ends. It never reads what workers say and knows nothing of requests.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use super::children::{self, Children};
use super::members::{ForkServer, Member, Members};
use super::namespace::{self, Namespaces};
use super::pool_cgroup::PoolCgroup;
use super::program::{Launch, Stage, refusal};
use super::shim::Order;
use super::sys::{self, Fds, Forked, Wait, Watched};
use super::title::{ROOT_PREFIX, Title};
use super::wire::{self, CGROUP, CONTROL, DATA, Kind, Message, Received};

/// Consecutive scans without a stranger after which a departed shim counts as swept.
const CLEAN_SCANS: u32 = 20;
const QUICK_SCAN: Duration = Duration::from_micros(200);
const SLOW_SCAN: Duration = Duration::from_millis(100);
/// Also with nothing known to be wrong: no signal tells of an adopted child.
const IDLE_SCAN: Duration = Duration::from_secs(5);
/// Scans in a row without a stranger after which all is quiet.
const QUIET_SCANS: u32 = CLEAN_SCANS + 100;
/// Scans after which a stranger that does not die is no longer pursued quickly.
const PATIENCE: u32 = 5_000;

/// Everything a root shim does, from its first instruction on. `name` is the pool's.
pub fn run(name: &str) -> ! {
    match start(name) {
        Ok(mut root) => root.serve(),
        Err(_) => sys::exit_now(1),
    }
}

fn start(name: &str) -> io::Result<Root> {
    let control = sys::take_stdin()?;
    let title = Title::locate();
    sys::close_all_but(&mut [std::os::fd::AsRawFd::as_raw_fd(&control)])?;
    sys::new_session()?;
    sys::become_subreaper()?;
    sys::ignore_requests_to_end();
    sys::set_name(c"ostler-root");
    title.show(ROOT_PREFIX, name.as_bytes());
    let file_limit = raise_file_limit();
    namespace::remember_ids();
    configure(control, title, file_limit)
}

/// Two descriptors are held for each worker. Returns what was found, for the workers.
fn raise_file_limit() -> Option<(u64, u64)> {
    let (soft, hard) = sys::file_limit().ok()?;
    sys::set_file_limit(hard, hard).ok()?;
    Some((soft, hard))
}

fn configure(control: OwnedFd, title: Title, file_limit: Option<(u64, u64)>) -> io::Result<Root> {
    sys::poll(&mut [sys::watch(control.as_fd())], None);
    let Received::Message(message, mut fds) = wire::receive(control.as_fd()) else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    let server = fds.take()?;
    let signals = sys::child_signals()?;
    let shim_binary = sys::open(c"/proc/self/exe", libc::O_PATH)?;
    let home = fds.take_if(message.has(CGROUP))?;
    let namespaces = message.has(wire::NAMESPACE).then(Namespaces::probe);
    let cgroup = home.map(|home| PoolCgroup::create(home, message.text_bytes()));
    // From here on there is something to remove, so nothing may fail: a server that is gone shows
    // in the loop.
    let _ = confirm(&control, namespaces.as_ref(), cgroup.as_ref());
    Ok(Root {
        children: Children::of_this_process(),
        namespaces: namespaces.and_then(Result::ok),
        cgroup: cgroup.and_then(Result::ok),
        members: Members::default(),
        entries: Vec::with_capacity(64),
        scans: Scans::default(),
        control,
        server,
        signals,
        shim_binary,
        title,
        file_limit,
    })
}

fn confirm(
    control: &OwnedFd,
    namespaces: Option<&io::Result<Namespaces>>,
    cgroup: Option<&io::Result<PoolCgroup>>,
) -> io::Result<()> {
    let (namespace_flags, namespace_errno) = match namespaces {
        None => (0, 0),
        Some(Ok(granted)) => (granted.to_flags(), 0),
        Some(Err(error)) => (0, sys::errno(error)),
    };
    let (cgroup_flag, cgroup_errno) = match cgroup {
        None => (0, 0),
        Some(Ok(_)) => (CGROUP, 0),
        Some(Err(error)) => (0, sys::errno(error)),
    };
    let own = sys::pidfd_open(sys::pid())?;
    Message::new(Kind::Configured)
        .flags(namespace_flags | cgroup_flag)
        .numbers(&[namespace_errno.into(), cgroup_errno.into()])
        .send(control.as_fd(), &[own.as_fd()])
}

/// Where the search for strangers stands.
#[derive(Debug, Default)]
struct Scans {
    /// Scans in a row that found no stranger.
    clean: u32,
    /// Scans since strangers are suspected.
    pursuit: u32,
    next: Option<Instant>,
}

#[derive(Debug)]
struct Root {
    control: OwnedFd,
    server: OwnedFd,
    signals: OwnedFd,
    shim_binary: OwnedFd,
    children: Children,
    namespaces: Option<Namespaces>,
    cgroup: Option<PoolCgroup>,
    members: Members,
    entries: Vec<Watched>,
    scans: Scans,
    title: Title,
    file_limit: Option<(u64, u64)>,
}

impl Root {
    fn serve(&mut self) -> ! {
        loop {
            self.wait();
            self.notice_deaths();
            if sys::is_ready(self.server.as_fd()) || !self.obey() {
                self.end();
            }
            if self.scans.next.is_none_or(|next| next <= Instant::now()) {
                self.scan();
            }
        }
    }

    fn wait(&mut self) {
        self.entries.clear();
        let own = [&self.server, &self.control, &self.signals];
        let watched = own.into_iter().chain(self.members.descriptors());
        self.entries.extend(watched.map(|fd| sys::watch(fd.as_fd())));
        let timeout = self.scans.next.map(|next| next.saturating_duration_since(Instant::now()));
        let micros = timeout.map(|timeout| timeout.as_micros() as u64);
        sys::poll(&mut self.entries, micros);
        sys::drain_child_signals(self.signals.as_fd());
    }

    /// Takes all requests of the server; false when it has hung up.
    fn obey(&mut self) -> bool {
        loop {
            match wire::receive(self.control.as_fd()) {
                Received::Message(message, fds) => self.follow(message, fds),
                Received::Unknown => {}
                Received::Nothing => return true,
                Received::Closed => return false,
            }
        }
    }

    /// A request that lacks a descriptor is dropped: its sender sees the end of its report socket.
    fn follow(&mut self, message: Message, fds: Fds) {
        let _ = match message.kind {
            Kind::Spawn => self.spawn(message, fds),
            Kind::StartForkServer => self.start_fork_server(fds),
            _ => Ok(()),
        };
    }

    fn spawn(&mut self, request: Message, mut fds: Fds) -> io::Result<()> {
        let blueprint = fds.take()?;
        let report = fds.take()?;
        match self.order(request, blueprint, &report, fds) {
            Ok(order) => self.fork_shim(order, report),
            Err(error) => refusal(Stage::Arm, &error).send(report.as_fd(), &[]),
        }
    }

    /// Fails when this process has no descriptors left.
    fn order(
        &self,
        request: Message,
        blueprint: OwnedFd,
        report: &OwnedFd,
        mut fds: Fds,
    ) -> io::Result<Order> {
        Ok(Order {
            report: report.try_clone()?,
            server: self.server.try_clone()?,
            blueprint,
            stdout: fds.take()?,
            stderr: fds.take()?,
            passed: [fds.take_if(request.has(DATA))?, fds.take_if(request.has(CONTROL))?]
                .into_iter()
                .flatten()
                .collect(),
            cgroup: fds.take_if(request.has(CGROUP))?,
            namespaces: self.namespaces,
            file_limit: self.file_limit,
            title: self.title,
            request,
        })
    }

    fn fork_shim(&mut self, order: Order, report: OwnedFd) -> io::Result<()> {
        let flags = self.namespaces.map_or(0, Namespaces::clone_flags);
        match self.members.reserve().and_then(|()| sys::fork(flags)) {
            Ok(Forked::Child) => order.run(),
            Ok(Forked::Parent { pid, pidfd }) => {
                let cgroup = order.request.numbers[0];
                self.members.add(Member::new(pid, pidfd, report, cgroup));
                Ok(())
            }
            Err(error) => refusal(Stage::Fork, &error).send(report.as_fd(), &[]),
        }
    }

    fn start_fork_server(&mut self, mut fds: Fds) -> io::Result<()> {
        let blueprint = fds.take()?;
        let channel = fds.take()?;
        let (registrations, registrar) = sys::message_pair()?;
        let launch = Launch {
            blueprint,
            stdout: fds.take()?,
            stderr: fds.take()?,
            failures: channel.try_clone()?,
            passed: vec![
                channel.try_clone()?,
                registrar,
                self.server.try_clone()?,
                self.shim_binary.try_clone()?,
            ],
            parent: sys::pid(),
            cgroup: None,
            file_limit: self.file_limit,
        };
        match sys::fork(0) {
            Ok(Forked::Child) => launch.run(),
            Ok(Forked::Parent { pid, pidfd }) => {
                let message = Message::new(Kind::ForkServerForked);
                message.send(channel.as_fd(), &[pidfd.as_fd()])?;
                self.members.add_fork_server(ForkServer::new(pid, channel, registrations));
                Ok(())
            }
            Err(error) => refusal(Stage::Fork, &error).send(channel.as_fd(), &[]),
        }
    }

    /// Reaps, and tells the server about shims that are gone. Any death may have left strangers.
    fn notice_deaths(&mut self) {
        self.members.take_registrations();
        let mut suspicious = false;
        while let Wait::Reaped { pid, status, .. } = sys::reap_any() {
            suspicious |= self.members.on_reaped(pid, status);
        }
        for entry in self.entries.iter().filter(|entry| entry.revents != 0) {
            suspicious |= self.members.on_ready(entry.fd);
        }
        if suspicious {
            self.scans = Scans::default();
        } else if self.scans.clean >= CLEAN_SCANS && !self.members.are_settled() {
            self.settle();
        }
    }

    /// Lets go of shims that have left nothing, and looks again soon after those whose cgroup is
    /// still busy.
    fn settle(&mut self) {
        self.members.settle(self.cgroup.as_ref());
        if !self.members.are_settled() {
            let soon = Instant::now() + SLOW_SCAN;
            self.scans.next = Some(self.scans.next.map_or(soon, |next| next.min(soon)));
        }
    }

    /// Lists first, then reads registrations, then kills: the other order could kill a shim that
    /// registers in between.
    fn scan(&mut self) {
        let mut strangers = Strangers::default();
        let members = &self.members;
        self.children.for_each(|pid| {
            if !members.knows(pid) {
                strangers.add(pid);
            }
        });
        self.members.take_registrations();
        let mut found = false;
        for &pid in strangers.pids() {
            if !self.members.knows(pid) {
                sys::kill_child(pid);
                found = true;
            }
        }
        self.schedule(found);
    }

    fn schedule(&mut self, found: bool) {
        let scans = &mut self.scans;
        scans.clean = if found { 0 } else { scans.clean.saturating_add(1) };
        scans.pursuit = scans.pursuit.saturating_add(1);
        if scans.clean >= CLEAN_SCANS {
            scans.pursuit = 0;
            self.settle();
        }
        let pause = match self.scans.clean {
            0..CLEAN_SCANS if self.scans.pursuit < PATIENCE => QUICK_SCAN,
            QUIET_SCANS.. if self.members.are_settled() => IDLE_SCAN,
            _ => SLOW_SCAN,
        };
        self.scans.next = Some(Instant::now() + pause);
    }

    /// Kills all that is below and ends once the kernel says that nothing is.
    fn end(&mut self) -> ! {
        let mut rounds = 0_u32;
        loop {
            if let Some(cgroup) = &self.cgroup {
                cgroup.kill();
            }
            self.children.kill_all();
            loop {
                match sys::reap_any() {
                    Wait::Reaped { .. } => {}
                    Wait::NoneReady => break,
                    Wait::NoChildren => self.leave(),
                }
            }
            children::wait_for_a_death(Some(&self.signals), rounds);
            rounds = rounds.saturating_add(1);
        }
    }

    fn leave(&self) -> ! {
        if let Some(cgroup) = &self.cgroup {
            cgroup.remove();
        }
        sys::exit_now(0)
    }
}

/// Children that nobody registered, as of one scan. What does not fit is found by the next.
#[derive(Debug)]
struct Strangers {
    pids: [i32; 256],
    count: usize,
}

impl Default for Strangers {
    fn default() -> Strangers {
        Strangers { pids: [0; 256], count: 0 }
    }
}

impl Strangers {
    fn add(&mut self, pid: i32) {
        if let Some(slot) = self.pids.get_mut(self.count) {
            *slot = pid;
            self.count += 1;
        }
    }

    fn pids(&self) -> &[i32] {
        &self.pids[..self.count]
    }
}
