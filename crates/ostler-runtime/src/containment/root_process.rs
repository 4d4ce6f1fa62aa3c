//! The process of a root shim: started from an open file, waited for by its pidfd, never by a
//! signal handler or a wait for any child.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::channel::PidFd;
use super::sys;
use super::title::{self, ROOT_PREFIX};

/// The program that becomes the shims, held open: an upgrade on disk does not change it.
#[derive(Debug)]
pub struct ShimBinary {
    file: File,
}

impl ShimBinary {
    /// The running program, which must call [`enter_if_asked`](super::enter_if_asked) first thing.
    pub fn current() -> io::Result<ShimBinary> {
        super::check_entered()?;
        ShimBinary::at("/proc/self/exe".as_ref())
    }

    /// Another program that calls [`enter_if_asked`](super::enter_if_asked) first thing.
    pub fn at(path: &Path) -> io::Result<ShimBinary> {
        let mut options = File::options();
        let file = options.read(true).custom_flags(libc::O_PATH).open(path)?;
        Ok(ShimBinary { file })
    }

    fn exec_path(&self) -> String {
        format!("/proc/self/fd/{}", self.file.as_raw_fd())
    }
}

/// The control socket goes in as standard input: no code runs between fork and exec, so this is
/// safe in a program with many threads.
pub fn launch(binary: &ShimBinary, pool: &str, control: OwnedFd) -> io::Result<RootProcess> {
    let mut command = Command::new(binary.exec_path());
    command
        .arg0(format!("{ROOT_PREFIX}{pool}"))
        .arg(title::padding())
        .env_clear()
        .envs(loader_path())
        .stdin(Stdio::from(control))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = command.spawn()?;
    // None when the embedding program has already waited for it; then there is nothing to reap.
    let pidfd = sys::pidfd_open(child.id() as i32).and_then(PidFd::new);
    Ok(RootProcess(pidfd.ok()))
}

/// A host program may need it to find its shared libraries.
fn loader_path() -> Option<(&'static str, OsString)> {
    let name = "LD_LIBRARY_PATH";
    std::env::var_os(name).map(|value| (name, value))
}

/// Reaped some time after it is dropped. None when it was gone before it could be watched.
#[derive(Debug)]
pub struct RootProcess(Option<PidFd>);

impl RootProcess {
    /// Takes the shim's own word for which process it is.
    pub fn identify(&mut self, pidfd: OwnedFd) -> io::Result<()> {
        self.0 = Some(PidFd::new(pidfd)?);
        Ok(())
    }

    pub async fn ended(&self) {
        if let Some(process) = &self.0 {
            process.ended().await;
        }
    }

    pub fn has_ended(&self) -> bool {
        self.0.as_ref().is_none_or(|process| sys::is_ready(process.as_fd()))
    }

    pub fn pid(&self) -> Option<i32> {
        self.0.as_ref()?.pid()
    }

    pub fn kill(&self) {
        if let Some(process) = &self.0 {
            // One that has already ended needs no signal.
            let _ = process.signal(libc::SIGKILL);
        }
    }
}

impl Drop for RootProcess {
    fn drop(&mut self) {
        if let Some(process) = self.0.take()
            && let Ok(fd) = process.as_fd().try_clone_to_owned()
        {
            abandoned().push(fd);
        }
        reap_abandoned();
    }
}

/// Root shims that were let go and may not have ended yet.
static ABANDONED: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());

fn abandoned() -> MutexGuard<'static, Vec<OwnedFd>> {
    ABANDONED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for root shims that have ended, and only for those.
pub fn reap_abandoned() {
    abandoned().retain(|process| !sys::reap_pidfd(process.as_fd()));
}
