//! C2: a cgroup per worker, where a part of the cgroup v2 tree belongs to this server.
//!
//! The server finds the place, the root shim makes the pool's directory there, and the server one
//! below it for each worker. Only workers and their descendants are put there, never shims, so
//! `cgroup.kill` reaches exactly what is to go. The root shim removes them all: whatever it made
//! is gone when it ends, also when the server was killed before it knew.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::sys;

const PREFIX: &str = "ostler-";

/// A pool's part of the tree, as the server sees it.
#[derive(Debug)]
pub struct CgroupTree {
    path: PathBuf,
    name: String,
    next_worker: AtomicI64,
}

/// One worker's cgroup: its number, and its directory for whoever joins or kills it.
#[derive(Debug)]
pub struct WorkerCgroup {
    pub number: i64,
    pub directory: OwnedFd,
    path: PathBuf,
}

impl CgroupTree {
    /// Finds the part of the tree that is this server's own, and names the pool's directory in it.
    /// The error says why there is none, for people.
    pub fn find() -> Result<CgroupTree, String> {
        let home = own_cgroup()?;
        check_delegated(&home)?;
        remove_stale(&home);
        let name = unique_name();
        Ok(CgroupTree { path: home.join(&name), name, next_worker: AtomicI64::new(1) })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The directory in which the pool's is to be made.
    pub fn home(&self) -> io::Result<OwnedFd> {
        let home = self.path.parent().expect("made by joining a name");
        Ok(File::open(home)?.into())
    }

    pub fn add_worker(&self) -> io::Result<WorkerCgroup> {
        let number = self.next_worker.fetch_add(1, Ordering::Relaxed);
        let path = self.path.join(format!("w{number}"));
        fs::create_dir(&path)?;
        Ok(WorkerCgroup { number, directory: File::open(&path)?.into(), path })
    }
}

impl Drop for CgroupTree {
    fn drop(&mut self) {
        // What a killed root shim could not remove, as far as no process is in it.
        remove_empty(&self.path);
    }
}

impl WorkerCgroup {
    pub fn kill(&self) {
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
    }

    pub fn is_empty(&self) -> bool {
        match fs::read_to_string(self.path.join("cgroup.events")) {
            Ok(events) => events.contains("populated 0"),
            Err(_) => true,
        }
    }

    pub fn remove(&self) {
        let _ = fs::remove_dir(&self.path);
    }
}

fn own_cgroup() -> Result<PathBuf, String> {
    let mount = mount_point().ok_or("no cgroup v2 is mounted")?;
    let own = fs::read_to_string("/proc/self/cgroup").map_err(|e| e.to_string())?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"));
    let path = path.ok_or("this process is in no cgroup v2")?;
    Ok(mount.join(path))
}

fn mount_point() -> Option<PathBuf> {
    let mounts = fs::read("/proc/self/mountinfo").ok()?;
    // id parent major:minor root mount-point options … - type source options
    mounts.split(|&byte| byte == b'\n').find_map(|line| {
        let fields: Vec<_> = line.split(|&byte| byte == b' ').collect();
        let separator = fields.iter().position(|field| *field == b"-")?;
        let is_cgroup2 = fields.get(separator + 1) == Some(&&b"cgroup2"[..]);
        is_cgroup2.then(|| PathBuf::from(OsStr::from_bytes(fields[4])))
    })
}

/// The root of a hierarchy belongs to whoever may write there (a container's own, or a system
/// without a cgroup owner); elsewhere the owner of the tree must have said that this part is ours.
fn check_delegated(home: &Path) -> Result<(), String> {
    let is_root = !home.join("cgroup.type").exists();
    let metadata = fs::metadata(home).map_err(|e| format!("{}: {e}", home.display()))?;
    let is_ours = metadata.uid() == sys::effective_uid() && metadata.uid() != 0;
    if is_root || is_ours || has_delegate_mark(home) {
        Ok(())
    } else {
        Err(format!("{} is not delegated to this server", home.display()))
    }
}

/// systemd marks what it delegates.
fn has_delegate_mark(home: &Path) -> bool {
    ["user.delegate", "trusted.delegate"].iter().any(|name| {
        let mut value = [0_u8; 1];
        rustix::fs::getxattr(home, *name, &mut value[..]).is_ok_and(|_| value[0] == b'1')
    })
}

/// Unique on this machine and boot, and it names the process that must be dead before somebody
/// else may clean up.
fn unique_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let pid = sys::pid();
    let started = start_time(pid).unwrap_or(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{PREFIX}{pid}-{started}-{number}")
}

fn start_time(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Field 22; the first after the name in brackets is field 3.
    let after_name = stat.rsplit_once(')')?.1;
    after_name.split_whitespace().nth(22 - 3)?.parse().ok()
}

/// Removes the empty directories of servers that died together with their root shims.
fn remove_stale(home: &Path) {
    for entry in fs::read_dir(home).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.to_str().and_then(maker_of).is_some_and(|maker| !is_alive(maker)) {
            remove_empty(&entry.path());
        }
    }
}

fn maker_of(name: &str) -> Option<(i32, u64)> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn is_alive((pid, started): (i32, u64)) -> bool {
    start_time(pid) == Some(started)
}

fn remove_empty(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
    let _ = fs::remove_dir(directory);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_names_the_server_that_made_it() {
        let maker = maker_of(&unique_name()).expect("own format");
        assert_eq!(maker.0, sys::pid());
        assert!(is_alive(maker));
        assert!(!is_alive((maker.0, maker.1 + 1)));
    }

    #[test]
    fn other_directories_are_nobodys() {
        assert_eq!(maker_of("system.slice"), None);
        assert_eq!(maker_of("ostler-notes"), None);
    }
}
