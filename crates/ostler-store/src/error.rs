//! Why an operation on a session, or the opening of the store, was refused.

use std::io;
use std::path::PathBuf;

/// Nothing was changed, and nobody saw a change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    #[error("there is no session `{id}`; create it, or look at the list of those that live")]
    NotFound { id: String },
    #[error("session `{id}` exists; use it, or delete it first")]
    Exists { id: String },
    /// Something given does not fit: the message names it.
    #[error("{0}")]
    Invalid(String),
    #[error("session `{id}` is at version {version} by now; read it again and repeat the change")]
    VersionConflict { id: String, version: u64 },
    #[error(
        "{current} sessions live and {max} may; delete some, let some expire, or raise \
         `max` in [sessions]"
    )]
    Quota { current: u64, max: u64 },
    #[error("session `{id}` has no program `{name}`")]
    ProgramNotFound { id: String, name: String },
    #[error(
        "session `{id}` would have {programs} programs of {bytes} bytes; it may have \
         {programs_max} of {bytes_max} bytes in all (`programs_max`, `program_bytes_max` in [sessions])"
    )]
    ProgramQuota { id: String, programs: u64, bytes: u64, programs_max: u64, bytes_max: u64 },
    #[error(
        "the metadata of session `{id}` would have {bytes} bytes; it may have {max} \
         (`metadata_max` in [sessions]); put large values into programs"
    )]
    MetadataTooLarge { id: String, bytes: u64, max: u64 },
    /// The memory that sessions may have is used up, or the disk is full.
    #[error("the store of sessions is full: {reason}")]
    StoreFull { reason: String },
    /// Whether the change is on the disk is not known if the disk failed while it was committed.
    #[error("the store of sessions cannot write: {reason}")]
    StoreUnavailable { reason: String },
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "cannot make the directory {} of the store: {source}; make it, or set `path` in [store] \
         to a place where this user may write",
        path.display()
    )]
    Directory { path: PathBuf, source: io::Error },
    #[error(
        "cannot make the store {}: {source}; set `path` in [store] to a place where this user may \
         write",
        path.display()
    )]
    File { path: PathBuf, source: io::Error },
    #[error(
        "another server{} uses the store {}; stop it, or set `path` in [store] to another file",
        pid.map_or_else(String::new, |pid| format!(" (process {pid})")),
        path.display()
    )]
    Locked { path: PathBuf, pid: Option<u32> },
    #[error(
        "the store {} may only be read; give this user the right to write it and its directory",
        path.display()
    )]
    ReadOnly { path: PathBuf },
    #[error(
        "{} is not a store: it is no SQLite database; move it away, or set `path` in [store] to \
         another file",
        path.display()
    )]
    NotADatabase { path: PathBuf },
    #[error(
        "{} is a database of another program; set `path` in [store] to another file",
        path.display()
    )]
    Foreign { path: PathBuf },
    #[error(
        "the store {} was written by a newer ostler (schema {found}, this one knows {known}); use \
         that one, or set `path` in [store] to another file",
        path.display()
    )]
    TooNew { path: PathBuf, found: i64, known: i64 },
    #[error(
        "the store {} is damaged ({reason}); put a copy in its place, or move it away to begin \
         without sessions",
        path.display()
    )]
    Damaged { path: PathBuf, reason: String },
    #[error("cannot open the store {}: {reason}", path.display())]
    Refused { path: PathBuf, reason: String },
    #[error("the store {place} was written by an older ostler; start a server on it once")]
    TooOld { place: String },
    /// `database`: its URL without the password.
    #[error("`url` in [store] is no address of a PostgreSQL database: {reason}")]
    Url { reason: String },
    #[error(
        "cannot use the database {database}: {reason}; see that the server runs and lets this user \
         in, or change `url` in [store]"
    )]
    Unreachable { database: String, reason: String },
    #[error(
        "another server uses the database {database}; stop it, or give this one a database of its \
         own (`url` in [store])"
    )]
    Taken { database: String },
    #[error(
        "the tables in {database} were made by a newer ostler (schema {found}, this one knows \
         {known}); use that one, or another database (`url` in [store])"
    )]
    NewerTables { database: String, found: i64, known: i64 },
    #[error("{database} is PostgreSQL {version}; it must be 15 or newer")]
    OldServer { database: String, version: String },
}
