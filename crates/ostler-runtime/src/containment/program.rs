//! From a fresh fork to the user's program: the last steps before exec.
//!
//! Runs in a child that shares nothing with its parent any more, so it may allocate. It never
//! returns: either the program runs, or the reason why not is written to `failures` and the
//! child ends. It must not know whether it becomes a worker or a fork server.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, OwnedFd, RawFd};

use super::spec::{Blueprint, Parts};
use super::sys;
use super::wire::{Kind, Message};

/// How far a start got before it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i64)]
pub enum Stage {
    /// Making the shim or the process.
    Fork = 1,
    /// Descriptors, session, parent-death signal, cgroup, namespaces.
    Arm = 2,
    /// Changing to the working directory.
    Directory = 3,
    /// Running the program itself.
    Exec = 4,
}

impl Stage {
    pub fn from_number(number: i64) -> Stage {
        match number {
            1 => Stage::Fork,
            3 => Stage::Directory,
            4 => Stage::Exec,
            _ => Stage::Arm,
        }
    }
}

pub fn refusal(stage: Stage, error: &io::Error) -> Message {
    Message::new(Kind::Refused).numbers(&[stage as i64, sys::errno(error).into()])
}

/// Everything a child needs to become a program.
#[derive(Debug)]
pub struct Launch {
    pub blueprint: OwnedFd,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
    /// Become descriptors 3, 4, … in this order.
    pub passed: Vec<OwnedFd>,
    /// Takes one encoded `Refused`; closed by a successful exec.
    pub failures: OwnedFd,
    /// Who must still be the parent once the parent-death signal is armed.
    pub parent: i32,
    /// The cgroup to join, if any.
    pub cgroup: Option<OwnedFd>,
    /// The limit on open files that the server had.
    pub file_limit: Option<(u64, u64)>,
}

impl Launch {
    pub fn run(mut self) -> ! {
        let (stage, error) = match self.clear_targets() {
            Ok(()) => self.attempt(),
            Err(error) => (Stage::Arm, error),
        };
        // A full or closed channel leaves nobody to tell; the exit code says the rest.
        let _ = sys::write(self.failures.as_fd(), &refusal(stage, &error).encode());
        sys::exit_now(127)
    }

    /// The first number that is not the program's own.
    fn first_free(&self) -> RawFd {
        3 + self.passed.len() as RawFd
    }

    /// Moves what is used until exec off the numbers that the program's descriptors will take.
    fn clear_targets(&mut self) -> io::Result<()> {
        let above = self.first_free();
        self.failures = sys::duplicate_above(self.failures.as_fd(), above)?;
        self.blueprint = sys::duplicate_above(self.blueprint.as_fd(), above)?;
        Ok(())
    }

    fn attempt(&self) -> (Stage, io::Error) {
        if let Err(error) = self.arm() {
            return (Stage::Arm, error);
        }
        let blueprint = match self.blueprint.try_clone().and_then(Blueprint::read) {
            Ok(blueprint) => blueprint,
            Err(error) => return (Stage::Arm, error),
        };
        let Some(parts) = blueprint.parts() else {
            return (Stage::Arm, io::ErrorKind::InvalidData.into());
        };
        if let Some(directory) = parts.cwd
            && let Err(error) = sys::change_dir(directory)
        {
            return (Stage::Directory, error);
        }
        (Stage::Exec, exec(&parts))
    }

    fn arm(&self) -> io::Result<()> {
        sys::die_with_parent()?;
        // The parent may have died before the signal was armed.
        if sys::parent_pid() != self.parent {
            sys::exit_now(1);
        }
        sys::new_session()?;
        sys::reset_signals();
        if let Some((soft, hard)) = self.file_limit {
            sys::set_file_limit(soft, hard)?;
        }
        // When memory runs out the worker goes before the shims that clean up after it.
        let _ = sys::write_file_at(None, c"/proc/self/oom_score_adj", b"500");
        if let Some(cgroup) = &self.cgroup {
            sys::write_file_at(Some(cgroup.as_fd()), c"cgroup.procs", b"0")?;
        }
        self.place_descriptors()
    }

    fn place_descriptors(&self) -> io::Result<()> {
        let null = sys::open(c"/dev/null", libc::O_RDONLY)?;
        let sources = [&null, &self.stdout, &self.stderr];
        // Copies above all targets first: a source may sit on a number that is a target.
        let copies = sources
            .into_iter()
            .chain(&self.passed)
            .map(|fd| sys::duplicate_above(fd.as_fd(), self.first_free()))
            .collect::<io::Result<Vec<_>>>()?;
        // `null` may sit on a target, too: it must not close what is about to be put there.
        std::mem::forget(null);
        for (target, copy) in copies.iter().enumerate() {
            sys::put_on(copy.as_fd(), target as RawFd)?;
        }
        sys::close_on_exec_from(self.first_free())
    }
}

fn exec(parts: &Parts<'_>) -> io::Error {
    let Some(&program) = parts.argv.first() else {
        return io::ErrorKind::NotFound.into();
    };
    if program.to_bytes().contains(&b'/') {
        return sys::exec(program, &parts.argv, &parts.env);
    }
    search_path(program, parts)
}

/// As `execvp` does, but with the `PATH` of the new environment.
fn search_path(program: &CStr, parts: &Parts<'_>) -> io::Error {
    let path = parts.env.iter().find_map(|v| v.to_bytes().strip_prefix(b"PATH="));
    let mut denied = None;
    for directory in path.unwrap_or(b"/usr/local/bin:/usr/bin:/bin").split(|&b| b == b':') {
        let directory = if directory.is_empty() { b"." } else { directory };
        let full = [directory, b"/", program.to_bytes()].concat();
        let full = CString::new(full).expect("parts of C strings have no NUL");
        let error = sys::exec(&full, &parts.argv, &parts.env);
        match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) => {}
            Some(libc::EACCES) => denied = Some(error),
            _ => return error,
        }
    }
    denied.unwrap_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
}
