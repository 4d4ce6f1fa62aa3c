//! The cgroup of a pool as the root shim sees it: a directory with one below for each worker.
//!
//! The server makes them; the root shim removes them, because it is the one that knows when a
//! worker's processes are gone, also after the server.

use std::ffi::{CStr, CString};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

use super::sys;

#[derive(Debug)]
pub struct PoolCgroup {
    own: OwnedFd,
    parent: OwnedFd,
    name: CString,
}

impl PoolCgroup {
    pub fn new(own: OwnedFd, parent: OwnedFd, name: &[u8]) -> PoolCgroup {
        PoolCgroup { own, parent, name: CString::new(name).unwrap_or_default() }
    }

    /// Kills every worker of the pool; the shims are not in it.
    pub fn kill(&self) {
        let _ = sys::write_file_at(Some(self.own.as_fd()), c"cgroup.kill", b"1");
    }

    /// False while a process of the worker is still there.
    pub fn remove_worker(&self, number: i64) -> bool {
        let mut name = [0; 32];
        let Some(name) = worker_name(number, &mut name) else {
            return true;
        };
        if let Ok(cgroup) = sys::open_at(Some(self.own.as_fd()), name, libc::O_RDONLY) {
            let _ = sys::write_file_at(Some(cgroup.as_fd()), c"cgroup.kill", b"1");
        }
        match sys::remove_dir_at(self.own.as_fd(), name) {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    /// Removes what is left of the pool, once none of its processes is.
    pub fn remove(&self) {
        let listing = std::fs::read_dir(format!("/proc/self/fd/{}", self.own.as_raw_fd()));
        for entry in listing.into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir())
                && let Ok(name) = CString::new(entry.file_name().into_vec())
            {
                let _ = sys::remove_dir_at(self.own.as_fd(), &name);
            }
        }
        let _ = sys::remove_dir_at(self.parent.as_fd(), &self.name);
    }
}

/// The directory of one worker: `w17`. None for 0, which stands for "no cgroup".
fn worker_name(number: i64, buffer: &mut [u8; 32]) -> Option<&CStr> {
    if number == 0 {
        return None;
    }
    write!(&mut buffer[..31], "w{number}").ok()?;
    CStr::from_bytes_until_nul(buffer).ok()
}
