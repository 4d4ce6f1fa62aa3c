//! The direct children of this process, as the kernel lists them.
//!
//! Only for the shims: no allocation after the start, and one descriptor that is read again and
//! again, so that a process that has run out of descriptors can still find its children. A list
//! may miss a process that is forked or adopted while it is read, so callers repeat.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::sys;

#[derive(Debug)]
pub enum Children {
    /// The kernel's own list.
    Listed(OwnedFd),
    /// For kernels without that list: every process is asked for its parent.
    Searched,
}

impl Children {
    pub fn of_this_process() -> Children {
        sys::open(c"/proc/thread-self/children", libc::O_RDONLY)
            .map_or(Children::Searched, Children::Listed)
    }

    /// Calls `found` with the pid of every child. Pids stay theirs until this process reaps them.
    pub fn for_each(&self, found: impl FnMut(i32)) {
        // A list that cannot be read is an empty one: callers look again, and judge by waiting.
        let _ = match self {
            Children::Listed(file) => read_list(file, found),
            Children::Searched => search(found),
        };
    }

    pub fn kill_all(&self) {
        self.for_each(sys::kill_child);
    }
}

fn read_list(file: &OwnedFd, mut found: impl FnMut(i32)) -> io::Result<()> {
    let mut buffer = [0; 4096];
    let mut offset = 0;
    let mut pid = 0;
    loop {
        let length = sys::read_at(file.as_fd(), &mut buffer, offset)?;
        if length == 0 {
            return Ok(());
        }
        offset += length as u64;
        for byte in &buffer[..length] {
            match byte {
                b'0'..=b'9' => pid = pid * 10 + i32::from(byte - b'0'),
                _ if pid > 0 => found(std::mem::take(&mut pid)),
                _ => {}
            }
        }
    }
}

fn search(mut found: impl FnMut(i32)) -> io::Result<()> {
    let own = sys::pid();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        if parent_of(pid) == Some(own) {
            found(pid);
        }
    }
    Ok(())
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may contain anything, also spaces and brackets.
    let after_name = stat.rsplit_once(')')?.1;
    after_name.split_whitespace().nth(1)?.parse().ok()
}

/// Quick at first, because descendants may fork faster than they are found; slow once that has
/// not helped, because then one of them cannot be killed by this user or hangs in the kernel.
pub fn wait_for_a_death(signals: Option<&OwnedFd>, rounds: u32) {
    let micros = if rounds < 2_000 { 200 } else { 50_000 };
    match signals {
        Some(signals) => {
            sys::poll(&mut [sys::watch(signals.as_fd())], Some(micros));
            sys::drain_child_signals(signals.as_fd());
        }
        None => sys::pause_micros(micros),
    }
}

/// The host pid behind a pidfd, from the fdinfo directory of this process; None when the process
/// has been reaped. `fdinfo` belongs to the /proc whose numbers are wanted.
pub fn pid_behind(fdinfo: &OwnedFd, pidfd: &OwnedFd) -> Option<i32> {
    use std::io::Write;
    use std::os::fd::AsRawFd;

    let mut name = [0; 16];
    write!(&mut name[..15], "{}", pidfd.as_raw_fd()).ok()?;
    let name = CStr::from_bytes_until_nul(&name).ok()?;
    let file = sys::open_at(Some(fdinfo.as_fd()), name, libc::O_RDONLY).ok()?;
    let mut buffer = [0; 512];
    let length = sys::read(file.as_fd(), &mut buffer).ok()?;
    let text = std::str::from_utf8(&buffer[..length]).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    line.trim().parse().ok().filter(|&pid| pid > 0)
}

pub fn own_fdinfo() -> io::Result<OwnedFd> {
    sys::open(c"/proc/self/fdinfo", libc::O_RDONLY | libc::O_DIRECTORY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_names_the_parent_of_a_process() {
        assert_eq!(parent_of(sys::pid()), Some(sys::parent_pid()));
    }

    #[test]
    fn a_pidfd_tells_the_pid_behind_it() {
        let own = sys::pidfd_open(sys::pid()).unwrap();
        let fdinfo = own_fdinfo().unwrap();
        assert_eq!(pid_behind(&fdinfo, &own), Some(sys::pid()));
    }
}
