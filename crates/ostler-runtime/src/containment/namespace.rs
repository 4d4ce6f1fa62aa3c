//! C3: a PID namespace per worker, whose init is the worker's shim.
//!
//! When an init dies the kernel kills its whole namespace, so nothing can escape even if every
//! shim dies at once. As root the namespace is made directly; otherwise inside a user namespace,
//! where the system permits one. The namespace has its own /proc unless that is refused, because
//! the pids in the host's /proc mean nothing to those inside.

use std::io::{self, Write};

use super::sys::{self, Forked, Wait};
use super::wire;

/// How worker shims are put into namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Namespaces {
    pub user: bool,
    pub own_proc: bool,
}

impl Namespaces {
    pub fn clone_flags(self) -> i32 {
        let user = if self.user { libc::CLONE_NEWUSER } else { 0 };
        user | libc::CLONE_NEWPID | libc::CLONE_NEWNS
    }

    pub fn to_flags(self) -> u32 {
        let user = if self.user { wire::USER_NAMESPACE } else { 0 };
        let own_proc = if self.own_proc { wire::OWN_PROC } else { 0 };
        wire::NAMESPACE | user | own_proc
    }

    pub fn from_flags(flags: u32) -> Option<Namespaces> {
        (flags & wire::NAMESPACE != 0).then_some(Namespaces {
            user: flags & wire::USER_NAMESPACE != 0,
            own_proc: flags & wire::OWN_PROC != 0,
        })
    }

    /// In the new init, before anything else.
    pub fn enter(self) -> io::Result<()> {
        if self.user {
            map_own_ids()?;
        }
        if self.own_proc { mount_proc() } else { Ok(()) }
    }

    /// Tries which kind of namespace this system permits; must run in a process with one thread.
    pub fn probe() -> io::Result<Namespaces> {
        match try_kind(false) {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => try_kind(true),
            other => other,
        }
    }
}

const PROC_IS_OWN: i32 = 0;
const PROC_IS_HOSTS: i32 = 1;

fn try_kind(user: bool) -> io::Result<Namespaces> {
    let wanted = Namespaces { user, own_proc: true };
    match sys::fork(wanted.clone_flags())? {
        Forked::Child => {
            let mapped = if user { map_own_ids() } else { Ok(()) };
            sys::exit_now(match mapped.map(|()| mount_proc()) {
                Ok(Ok(())) => PROC_IS_OWN,
                Ok(Err(_)) => PROC_IS_HOSTS,
                Err(error) => sys::errno(&error).max(2),
            })
        }
        Forked::Parent { pid, .. } => match wait_for(pid) {
            PROC_IS_OWN => Ok(wanted),
            PROC_IS_HOSTS => Ok(Namespaces { own_proc: false, ..wanted }),
            errno => Err(io::Error::from_raw_os_error(errno)),
        },
    }
}

/// The exit code of a probe; EPERM for one that was killed.
fn wait_for(child: i32) -> i32 {
    loop {
        match sys::reap_any() {
            Wait::Reaped { pid, status, .. } if pid == child => {
                return if libc::WIFEXITED(status) {
                    libc::WEXITSTATUS(status)
                } else {
                    libc::EPERM
                };
            }
            Wait::NoChildren => return libc::EPERM,
            Wait::Reaped { .. } => {}
            Wait::NoneReady => sys::pause_micros(200),
        }
    }
}

/// This process keeps its own ids in its new user namespace; no others exist there.
fn map_own_ids() -> io::Result<()> {
    // Read before the map is written they would be the overflow ids, so the saved ones are used.
    let (uid, gid) = outer_ids()?;
    sys::write_file_at(None, c"/proc/self/setgroups", b"deny")?;
    write_map(c"/proc/self/uid_map", uid)?;
    write_map(c"/proc/self/gid_map", gid)
}

fn write_map(path: &std::ffi::CStr, id: u32) -> io::Result<()> {
    let mut line = [0; 32];
    let mut rest = &mut line[..];
    write!(rest, "{id} {id} 1")?;
    let length = 32 - rest.len();
    sys::write_file_at(None, path, &line[..length])
}

static OUTER_IDS: std::sync::OnceLock<(u32, u32)> = std::sync::OnceLock::new();

/// Remembers this process's ids before any user namespace hides them.
pub fn remember_ids() {
    OUTER_IDS.get_or_init(|| (sys::effective_uid(), sys::effective_gid()));
}

fn outer_ids() -> io::Result<(u32, u32)> {
    OUTER_IDS
        .get()
        .copied()
        .ok_or_else(|| io::Error::other("ids were not remembered before the user namespace"))
}

/// Mounts made inside stay inside; mounts of the host are still seen.
fn mount_proc() -> io::Result<()> {
    sys::mount(c"none", c"/", c"none", libc::MS_REC | libc::MS_SLAVE)?;
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    sys::mount(c"proc", c"/proc", c"proc", flags)
}
