//! Who belongs to a root shim: its worker shims and its fork server. Everyone else below it is a
//! stranger that some dead shim left behind.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use super::children;
use super::pool_cgroup::PoolCgroup;
use super::sys;
use super::wire::{self, Kind, Message, Received};

/// A worker shim that is alive, or was when last looked at.
#[derive(Debug)]
pub struct Member {
    pid: i32,
    pidfd: OwnedFd,
    /// A copy of the shim's own end, so that the server hears of its death from here.
    report: OwnedFd,
    /// The number of the worker's cgroup, if the pool has one.
    cgroup: i64,
}

impl Member {
    pub fn new(pid: i32, pidfd: OwnedFd, report: OwnedFd, cgroup: i64) -> Member {
        Member { pid, pidfd, report, cgroup }
    }
}

#[derive(Debug)]
pub struct ForkServer {
    pid: i32,
    /// A copy of the fork server's own end.
    channel: OwnedFd,
    registrations: OwnedFd,
}

impl ForkServer {
    pub fn new(pid: i32, channel: OwnedFd, registrations: OwnedFd) -> ForkServer {
        ForkServer { pid, channel, registrations }
    }
}

#[derive(Debug, Default)]
pub struct Members {
    alive: Vec<Member>,
    /// Dead shims whose remains are still being looked for.
    departed: Vec<Member>,
    fork_servers: Vec<ForkServer>,
}

impl Members {
    /// Makes room for one more, so that adding it cannot fail after the fork.
    pub fn reserve(&mut self) -> io::Result<()> {
        let room = self
            .alive
            .try_reserve(1)
            .and_then(|()| self.departed.try_reserve(1 + self.alive.len()));
        room.map_err(|_| io::ErrorKind::OutOfMemory.into())
    }

    pub fn add(&mut self, member: Member) {
        self.alive.push(member);
    }

    pub fn add_fork_server(&mut self, fork_server: ForkServer) {
        self.fork_servers.push(fork_server);
    }

    pub fn knows(&self, pid: i32) -> bool {
        self.alive.iter().any(|member| member.pid == pid)
            || self.fork_servers.iter().any(|server| server.pid == pid)
    }

    /// What a poll must watch.
    pub fn descriptors(&self) -> impl Iterator<Item = &OwnedFd> {
        let shims = self.alive.iter().map(|member| &member.pidfd);
        shims.chain(self.fork_servers.iter().map(|server| &server.registrations))
    }

    /// Takes in the shims that fork servers have made.
    pub fn take_registrations(&mut self) {
        for index in 0..self.fork_servers.len() {
            loop {
                let socket = self.fork_servers[index].registrations.as_fd();
                match wire::receive(socket) {
                    Received::Message(message, fds) => drop(self.register(&message, fds)),
                    Received::Unknown => {}
                    Received::Nothing | Received::Closed => break,
                }
            }
        }
    }

    fn register(&mut self, message: &Message, mut fds: sys::Fds) -> io::Result<()> {
        let pidfd = fds.take()?;
        let report = fds.take()?;
        self.reserve()?;
        // 0 for one that is already dead and reaped: its pidfd is ready, and what it left is
        // looked for as for any other.
        let pid = children::pid_behind(&children::own_fdinfo()?, &pidfd).unwrap_or(0);
        self.add(Member::new(pid, pidfd, report, message.numbers[0]));
        Ok(())
    }

    /// A direct child has ended. True when something of its own may be left.
    pub fn on_reaped(&mut self, pid: i32, status: i32) -> bool {
        if let Some(index) = self.fork_servers.iter().position(|server| server.pid == pid) {
            let fork_server = self.fork_servers.swap_remove(index);
            let message = Message::new(Kind::ForkServerExited).numbers(&[status.into()]);
            let _ = message.send(fork_server.channel.as_fd(), &[]);
            return true;
        }
        let Some(index) = self.alive.iter().position(|member| member.pid == pid) else {
            return true;
        };
        self.depart(index);
        // A shim exits with 0 only after it has reaped its last descendant.
        !(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0)
    }

    /// The pidfd of a shim is ready. Shims that a fork server made, and reaped, show their death
    /// only here; the others have been reaped by now. True when a shim has departed.
    pub fn on_ready(&mut self, pidfd: RawFd) -> bool {
        let position = self.alive.iter().position(|member| member.pidfd.as_raw_fd() == pidfd);
        position.inspect(|&index| self.depart(index)).is_some()
    }

    fn depart(&mut self, index: usize) {
        let member = self.alive.swap_remove(index);
        let _ = Message::new(Kind::ShimDeparted).send(member.report.as_fd(), &[]);
        self.departed.push(member);
    }

    /// Is there no departed shim whose remains are still looked for?
    pub fn are_settled(&self) -> bool {
        self.departed.is_empty()
    }

    /// Nothing of the departed is left: says so, and lets them go.
    pub fn settle(&mut self, pool: Option<&PoolCgroup>) {
        self.departed.retain(|member| {
            if pool.is_some_and(|pool| !pool.remove_worker(member.cgroup)) {
                return true;
            }
            let _ = Message::new(Kind::Swept).send(member.report.as_fd(), &[]);
            false
        });
    }
}
