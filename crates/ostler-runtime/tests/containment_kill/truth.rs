//! Which processes a trial has made and left, seen from outside.
//!
//! As root by a cgroup that the trial's server joins before it does anything, which no process
//! can leave by forking, detaching or wiping its environment. Elsewhere by the working directory,
//! which is inherited just as well and which none of the hostile programs changes.

use std::fs;
use std::path::{Path, PathBuf};

const CGROUPS: &str = "/sys/fs/cgroup/unified";

pub struct Truth {
    directory: tempfile::TempDir,
    cgroup: Option<PathBuf>,
}

impl Truth {
    pub fn new(trial: &str) -> Truth {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let base = [CGROUPS, "/sys/fs/cgroup"].map(Path::new);
        let base = base.into_iter().find(|base| base.join("cgroup.procs").exists());
        let cgroup = base.map(|base| base.join(format!("trial-{}-{trial}", std::process::id())));
        let cgroup = cgroup.filter(|cgroup| fs::create_dir(cgroup).is_ok());
        if let Some(cgroup) = &cgroup {
            delegate(cgroup);
        }
        Truth { directory, cgroup }
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// For the server's arguments.
    pub fn cgroup(&self) -> &str {
        let cgroup = self.cgroup.as_deref().and_then(Path::to_str);
        cgroup.unwrap_or("-")
    }

    /// Everything that lives, without zombies.
    pub fn processes(&self) -> Vec<i32> {
        let mut found = match &self.cgroup {
            Some(cgroup) => in_cgroup(cgroup),
            None => in_directory(self.directory.path()),
        };
        found.retain(|&pid| !matches!(crate::tree::state(pid), None | Some('Z' | 'X')));
        found
    }

    pub fn cgroups_below(&self) -> usize {
        self.cgroup.as_deref().map_or(0, |cgroup| below(cgroup).count())
    }

    /// After a failed trial: nothing may stay on the machine.
    pub fn clear(&self) {
        if let Some(cgroup) = &self.cgroup {
            let _ = fs::write(cgroup.join("cgroup.kill"), "1");
        }
        // Again and again, because some of them fork faster than they are found.
        for _ in 0..200 {
            for pid in self.processes() {
                crate::tree::kill(self, pid);
            }
        }
    }
}

impl Drop for Truth {
    fn drop(&mut self) {
        let Some(cgroup) = &self.cgroup else { return };
        // Zombies that nobody has reaped yet keep a cgroup busy for an instant.
        for _ in 0..1000 {
            remove_below(cgroup);
            if fs::remove_dir(cgroup).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        eprintln!("{} is left", cgroup.display());
    }
}

fn in_cgroup(cgroup: &Path) -> Vec<i32> {
    let text = fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default();
    let own = text.lines().filter_map(|line| line.parse().ok());
    own.chain(below(cgroup).flat_map(|below| in_cgroup(&below))).collect()
}

fn below(cgroup: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(cgroup).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    directories.map(|entry| entry.path())
}

fn remove_below(cgroup: &Path) {
    for directory in below(cgroup) {
        remove_below(&directory);
        let _ = fs::remove_dir(directory);
    }
}

/// The server may make cgroups of its own here.
fn delegate(cgroup: &Path) {
    let flags = rustix::fs::XattrFlags::empty();
    let marked = rustix::fs::setxattr(cgroup, "user.delegate", b"1", flags);
    if let Err(error) = marked {
        eprintln!("cannot mark {}: {error}", cgroup.display());
    }
}

fn in_directory(directory: &Path) -> Vec<i32> {
    let all = fs::read_dir("/proc").expect("/proc is mounted").flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == directory))
        .collect()
}
