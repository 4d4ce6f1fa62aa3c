//! A copy of a store, made while a server may be writing it. It shows one moment, and it can be opened
//! in the place of the store.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::sql::{ReadDoor, Trouble};

#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("{} exists; name a file that does not", path.display())]
    Exists { path: PathBuf },
    #[error("cannot write the copy {}: {source}", path.display())]
    Target { path: PathBuf, source: io::Error },
    #[error("cannot copy the store {from}: {reason}")]
    Source { from: String, reason: String },
    #[error("{0} is a database of PostgreSQL; copy it with pg_dump")]
    Database(String),
    #[error("a store in memory cannot be copied; set `path` in [store] to have one that can")]
    Memory,
}

pub(crate) async fn back_up(door: &ReadDoor, to: &Path) -> Result<(), BackupError> {
    let from = door.name();
    if let ReadDoor::Database(_) = door {
        return Err(BackupError::Database(from));
    }
    let target = |source| BackupError::Target { path: to.to_owned(), source };
    reserve(to)?;
    let copied = match copy(door, to).await {
        Ok(()) => synced(to).map_err(target),
        Err(trouble) => Err(BackupError::Source { from, reason: trouble.reason() }),
    };
    if copied.is_err() {
        let _ = std::fs::remove_file(to);
    }
    copied
}

/// The copy is for this user alone, as the store is, and nobody else's file is written over.
fn reserve(to: &Path) -> Result<(), BackupError> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to);
    match made {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(BackupError::Exists { path: to.to_owned() })
        }
        Err(source) => Err(BackupError::Target { path: to.to_owned(), source }),
    }
}

async fn copy(door: &ReadDoor, to: &Path) -> Result<(), Trouble> {
    let mut link = door.connect().await?;
    let args = link.args().with_text(&to.to_string_lossy());
    let copied = link.execute("VACUUM INTO $1", args).await.map(drop);
    let _ = link.close().await;
    copied
}

/// The bytes, and the name under which they are found.
fn synced(to: &Path) -> io::Result<()> {
    File::open(to)?.sync_all()?;
    let directory = match to.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(directory)?.sync_all()
}
