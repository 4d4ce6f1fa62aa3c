//! The cgroup of a pool as the root shim sees it: a directory with one below for each worker.
//!
//! The root shim makes and removes it, because it is the one that knows when a worker's processes
//! are gone, also after the server. The directories of the workers are made by the server.

use std::ffi::{CStr, CString};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

use super::sys;

/// Tries, a millisecond apart, until a directory that stays busy is left to the next server.
const REMOVAL_ATTEMPTS: u32 = 1_000;

#[derive(Debug)]
pub struct PoolCgroup {
    own: OwnedFd,
    parent: OwnedFd,
    name: CString,
}

impl PoolCgroup {
    pub fn create(parent: OwnedFd, name: &[u8]) -> io::Result<PoolCgroup> {
        let name = CString::new(name)?;
        sys::make_dir_at(parent.as_fd(), &name)?;
        let own = sys::open_at(Some(parent.as_fd()), &name, libc::O_RDONLY)?;
        let pool = PoolCgroup { own, parent, name };
        // Linux 5.14 and later; without it a cgroup is of no use here.
        let kill = sys::open_at(Some(pool.own.as_fd()), c"cgroup.kill", libc::O_WRONLY);
        match kill {
            Ok(_) => Ok(pool),
            Err(error) => {
                pool.remove();
                Err(error)
            }
        }
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

    /// Removes what is left of the pool, once none of its processes is. The kernel may keep a
    /// cgroup busy for an instant after its last process was reaped.
    pub fn remove(&self) {
        for _ in 0..REMOVAL_ATTEMPTS {
            self.remove_workers();
            match sys::remove_dir_at(self.parent.as_fd(), &self.name) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                    sys::pause_micros(1_000);
                }
                _ => return,
            }
        }
    }

    fn remove_workers(&self) {
        let listing = std::fs::read_dir(format!("/proc/self/fd/{}", self.own.as_raw_fd()));
        for entry in listing.into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir())
                && let Ok(name) = CString::new(entry.file_name().into_vec())
            {
                let _ = sys::remove_dir_at(self.own.as_fd(), &name);
            }
        }
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
