//! A file of SQLite that this server holds: in WAL mode with full synchronisation, so that readers
//! read beside the writer and what was committed is there. Sessions and the ledger have a connection
//! each; they take turns, because SQLite would let them wait for each other by trying again and again.
//!
//! After a commit that failed in the middle nobody knows what is on the disk, and a kernel that failed
//! to write once may not say so again. Such a connection is thrown away; the next one first makes sure
//! that the file is still this server's.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use tokio::sync::Mutex;
use uuid::Uuid;

use super::door::Part;
use super::link::Link;
use super::lock::FileLock;
use super::trouble::{Trouble, sqlite_code};
use super::{place, schema};
use crate::error::OpenError;

/// For programs that look into the file and hold it.
const BUSY_PATIENCE: Duration = Duration::from_secs(5);
/// Pages of the log, of 4 KiB, after which they are carried over into the file.
const LOG_PAGES: &str = "4000";
/// Bytes that the log is cut back to after it was larger.
const LOG_KEPT: &str = "16777216";
/// Kilobytes of pages that a connection keeps in memory.
const CACHE: &str = "-16000";
/// Prepared statements that a connection keeps: more than there are.
pub(super) const STATEMENTS: usize = 500;

#[derive(Debug)]
pub(crate) struct StoreFile {
    path: PathBuf,
    /// This opening's name in the file.
    boot: String,
    pub(super) turn: Arc<Mutex<()>>,
    /// Parts that have their writer.
    handed_out: [AtomicBool; 2],
    _lock: FileLock,
}

impl StoreFile {
    /// The file is this run's from now on.
    pub async fn open(path: &Path) -> Result<StoreFile, OpenError> {
        place::prepare(path)?;
        let lock = FileLock::take(path).await?;
        let named = |error| open_error(path, &error);
        let mut connection = options(path).connect().await.map_err(named)?;
        schema::prepare(path, &mut connection).await?;
        let boot = Uuid::now_v7().to_string();
        claim(&mut connection, &boot).await.map_err(named)?;
        connection.close().await.map_err(named)?;
        let (turn, handed_out) = (Arc::default(), Default::default());
        Ok(StoreFile { path: path.to_owned(), boot, turn, handed_out, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// False: this part has a writer.
    pub fn hand_out(&self, part: Part) -> bool {
        !self.handed_out[part as usize].swap(true, Ordering::Relaxed)
    }

    pub fn locked(&self) -> OpenError {
        OpenError::Locked { path: self.path.clone(), pid: Some(std::process::id()) }
    }

    /// A connection that may write.
    pub async fn connect(&self) -> Result<Link, Trouble> {
        let mut connection = options(&self.path).connect().await?;
        schema::write_ahead(&mut connection).await?;
        let owner: Option<String> =
            sqlx::query_scalar("SELECT id FROM owner").fetch_optional(&mut connection).await?;
        if owner.as_ref() != Some(&self.boot) {
            return Err(Trouble::Taken(self.path.display().to_string()));
        }
        Ok(Link::Sqlite(connection))
    }
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY_PATIENCE)
        .statement_cache_capacity(STATEMENTS)
        .pragma("wal_autocheckpoint", LOG_PAGES)
        .pragma("journal_size_limit", LOG_KEPT)
        .pragma("cache_size", CACHE)
        .disable_statement_logging()
}

/// A connection that only reads; also beside another server.
pub(super) async fn connect_reader(path: &Path) -> Result<Link, Trouble> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .read_only(true)
        .busy_timeout(BUSY_PATIENCE)
        .statement_cache_capacity(STATEMENTS)
        .disable_statement_logging();
    Ok(Link::Sqlite(options.connect().await?))
}

async fn claim(connection: &mut SqliteConnection, boot: &str) -> Result<(), sqlx::Error> {
    sqlx::raw_sql("BEGIN IMMEDIATE; DELETE FROM owner").execute(&mut *connection).await?;
    sqlx::query("INSERT INTO owner (id) VALUES (?)").bind(boot).execute(&mut *connection).await?;
    sqlx::raw_sql("COMMIT").execute(connection).await?;
    Ok(())
}

const BUSY: i32 = 5;
const LOCKED: i32 = 6;
const READ_ONLY: i32 = 8;
const CORRUPT: i32 = 11;
const CANNOT_OPEN: i32 = 14;
const NOT_A_DATABASE: i32 = 26;

pub(super) fn open_error(path: &Path, error: &sqlx::Error) -> OpenError {
    let path = path.to_owned();
    match sqlite_code(error) {
        Some(BUSY | LOCKED) => OpenError::Locked { path, pid: None },
        Some(READ_ONLY) => OpenError::ReadOnly { path },
        Some(NOT_A_DATABASE) => OpenError::NotADatabase { path },
        Some(CORRUPT) => OpenError::Damaged { path, reason: error.to_string() },
        Some(CANNOT_OPEN) => {
            let reason = format!("{error}; it must be a file that this user may write");
            OpenError::Refused { path, reason }
        }
        _ => OpenError::Refused { path, reason: error.to_string() },
    }
}
