//! The processes of a trial as a tree, read from /proc: who is who is told by place, not by name.

use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::truth::Truth;

/// One process as it was when looked at.
#[derive(Clone, Debug)]
pub struct Process {
    pub pid: i32,
    pub parent: i32,
    started: u64,
    pub command: String,
}

pub struct Tree {
    server: i32,
    forks: bool,
    processes: Vec<Process>,
}

impl Tree {
    pub fn look(truth: &Truth, server: i32, forks: bool) -> Tree {
        let mut processes: Vec<_> = truth.processes().into_iter().filter_map(describe).collect();
        processes.sort_by_key(|process| (process.started, process.pid));
        Tree { server, forks, processes }
    }

    fn children(&self, parent: i32) -> impl Iterator<Item = &Process> {
        self.processes.iter().filter(move |process| process.parent == parent)
    }

    pub fn root(&self) -> Option<&Process> {
        self.children(self.server).next()
    }

    /// The first child of a root shim that was asked for a fork server.
    pub fn fork_server(&self) -> Option<&Process> {
        let first = self.children(self.root()?.pid).next();
        first.filter(|_| self.forks)
    }

    pub fn shims(&self) -> Vec<&Process> {
        let fork_server = self.fork_server().map(|process| process.pid);
        let Some(root) = self.root() else {
            return Vec::new();
        };
        let parents = [Some(root.pid), fork_server].into_iter().flatten();
        let shims = parents.flat_map(|parent| self.children(parent));
        shims.filter(|process| Some(process.pid) != fork_server).collect()
    }

    pub fn workers(&self) -> Vec<&Process> {
        let shims = self.shims();
        let first = shims.iter().filter_map(|shim| self.children(shim.pid).next());
        first.collect()
    }

    /// The worker that a process is, or is the shim of, once its arguments say so.
    pub fn worker_name(&self, process: &Process) -> Option<String> {
        let own = std::iter::once(process);
        let family = own.chain(self.children(process.pid));
        family.filter_map(|process| worker_in(&process.command)).next()
    }
}

/// Whose part of a trial a process is: `w-1`.
pub fn worker_in(command: &str) -> Option<String> {
    let marks = ["worker=", "ostler: shim "];
    let found = marks.iter().find_map(|mark| Some(command.find(mark)? + mark.len()));
    let at = found?;
    let name: String = command[at..].chars().take_while(|c| !c.is_whitespace()).collect();
    Some(name).filter(|name| name.starts_with("w-"))
}

pub fn describe(pid: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    Some(Process {
        pid,
        parent: fields[1].parse().ok()?,
        started: fields[19].parse().ok()?,
        command: command.trim_end().to_owned(),
    })
}

pub fn state(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Kills a process of the trial, and never another that has got its number since.
pub fn kill(truth: &Truth, pid: i32) -> bool {
    let Some(Ok(pidfd)) = Pid::from_raw(pid).map(|pid| pidfd_open(pid, PidfdFlags::empty())) else {
        return false;
    };
    truth.processes().contains(&pid) && pidfd_send_signal(&pidfd, Signal::KILL).is_ok()
}
