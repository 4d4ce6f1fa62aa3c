//! One server at a time: a lock on a file beside the store, which the kernel gives back when its
//! holder ends, however that happens. The store itself is not locked, so that others may look at it
//! and copy it while a server runs.
//!
//! The lock file is never removed: somebody who waits for it would hold a lock on nothing.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::error::OpenError;

/// A server that is just ending has this long to give the store back.
const PATIENCE: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(5);

/// Given back when it is dropped.
#[derive(Debug)]
pub(super) struct FileLock {
    _file: File,
}

impl FileLock {
    /// Of a store that exists.
    pub async fn take(store: &Path) -> Result<FileLock, OpenError> {
        let refused = |source| OpenError::File { path: store.to_owned(), source };
        let mut file = open(store).map_err(refused)?;
        let last_try = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(source)) => return Err(refused(source)),
                Err(TryLockError::WouldBlock) if Instant::now() >= last_try => {
                    return Err(OpenError::Locked { path: store.to_owned(), pid: pid(&mut file) });
                }
                Err(TryLockError::WouldBlock) => sleep(PAUSE).await,
            }
        }
        sign(&mut file).map_err(refused)?;
        Ok(FileLock { _file: file })
    }
}

/// However the store is reached, there is one lock.
fn open(store: &Path) -> std::io::Result<File> {
    let mut name = store.canonicalize()?.into_os_string();
    name.push(".lock");
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.open(PathBuf::from(name))
}

fn sign(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    write!(file, "{}", std::process::id())
}

/// Whose it is; for the eyes only.
fn pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
