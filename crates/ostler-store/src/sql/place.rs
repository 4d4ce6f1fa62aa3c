//! The file and its directory, made for this user alone.
//!
//! An existing file is not opened here: closing it would take SQLite's locks on it from another store in
//! this process.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use crate::error::OpenError;

pub(super) fn prepare(path: &Path) -> Result<(), OpenError> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|source| OpenError::Directory { path: directory.to_owned(), source })?;
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let made = match file {
        // The name must last as long as what will be written under it.
        Ok(_) => File::open(directory).and_then(|directory| directory.sync_all()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    };
    made.map_err(|source| OpenError::File { path: path.to_owned(), source })
}
