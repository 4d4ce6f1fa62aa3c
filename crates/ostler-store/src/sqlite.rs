//! The disk that is a SQLite file: one connection, which owns the file, in WAL mode with full
//! synchronisation. It writes rows and reads them all once, when it is opened.
//!
//! After a commit that failed in the middle nobody knows what is on the disk, and a kernel that failed
//! to write once may not say so again. Such a connection is thrown away; the next commit opens another
//! and first makes sure that the file is still this server's.

mod checksum;
mod load;
mod place;
mod rows;
mod schema;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rows::Kinds;
use sqlx::sqlite::{SqliteConnectOptions, SqliteLockingMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use uuid::Uuid;

use crate::clock::Millis;
use crate::disk::{Disk, Refused, Row};
use crate::error::OpenError;
use crate::live::Live;

/// A server that is just ending has this long to give the file back.
const LOCK_PATIENCE: Duration = Duration::from_millis(500);
/// Pages of the log, of 4 KiB, after which they are carried over into the file.
const LOG_PAGES: &str = "4000";
/// Bytes that the log is cut back to after it was larger.
const LOG_KEPT: &str = "16777216";

#[derive(Debug)]
pub(crate) struct Sqlite {
    path: PathBuf,
    boot: String,
    /// None after a failure that leaves doubts.
    connection: Option<SqliteConnection>,
}

impl Sqlite {
    /// The file is this run's from now on.
    pub async fn open(path: &Path, boot: Uuid) -> Result<Sqlite, OpenError> {
        place::prepare(path)?;
        let named = |error| open_error(path, &error);
        let mut connection = connect(path).await.map_err(named)?;
        schema::prepare(path, &mut connection).await?;
        let boot = boot.to_string();
        claim(&mut connection, &boot).await.map_err(named)?;
        Ok(Sqlite { path: path.to_owned(), boot, connection: Some(connection) })
    }

    /// All that has not expired, and the next number.
    pub async fn load(&mut self, now: Millis) -> Result<(Live, u64), OpenError> {
        let path = self.path.clone();
        let connection = self
            .connected()
            .await
            .map_err(|refused| OpenError::Refused { path: path.clone(), reason: refused.reason })?;
        load::load(connection, now).await.map_err(|error| open_error(&path, &error))
    }

    #[cfg(test)]
    pub fn connection(&mut self) -> &mut SqliteConnection {
        self.connection.as_mut().expect("is open")
    }

    /// As after a failure that leaves doubts.
    #[cfg(test)]
    pub async fn break_connection(&mut self) {
        self.connection.take().expect("is open").close_hard().await.expect("closes");
    }

    async fn connected(&mut self) -> Result<&mut SqliteConnection, Refused> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.reconnect().await?,
        };
        Ok(self.connection.insert(connection))
    }

    async fn reconnect(&self) -> Result<SqliteConnection, Refused> {
        let refused = |error: sqlx::Error| refused(&error, false);
        let mut connection = connect(&self.path).await.map_err(refused)?;
        schema::write_ahead(&mut connection).await.map_err(refused)?;
        if owner(&mut connection).await.map_err(refused)?.as_ref() != Some(&self.boot) {
            let path = self.path.display();
            let reason = format!("{path} was lost to another server; restart this one");
            return Err(Refused { full: false, of_rows: false, doubtful: false, reason });
        }
        Ok(connection)
    }
}

impl Disk for Sqlite {
    async fn commit(&mut self, rows: &[Row]) -> Result<(), Refused> {
        let connection = self.connected().await?;
        let Err(error) = write(connection, rows).await else { return Ok(()) };
        let doubtful = !harmless(&error) || !rolled_back(connection).await;
        if doubtful && let Some(broken) = self.connection.take() {
            let _ = broken.close_hard().await;
        }
        Err(refused(&error, doubtful))
    }

    async fn close(mut self) {
        if let Some(connection) = self.connection.take()
            && let Err(error) = connection.close().await
        {
            tracing::warn!(%error, path = %self.path.display(), "closing the store");
        }
    }
}

async fn connect(path: &Path) -> Result<SqliteConnection, sqlx::Error> {
    SqliteConnectOptions::new()
        .filename(path)
        .locking_mode(SqliteLockingMode::Exclusive)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(LOCK_PATIENCE)
        .pragma("wal_autocheckpoint", LOG_PAGES)
        .pragma("journal_size_limit", LOG_KEPT)
        .disable_statement_logging()
        .connect()
        .await
}

async fn claim(connection: &mut SqliteConnection, boot: &str) -> Result<(), sqlx::Error> {
    sqlx::raw_sql("BEGIN IMMEDIATE; DELETE FROM node").execute(&mut *connection).await?;
    sqlx::query("INSERT INTO node (id) VALUES (?)").bind(boot).execute(&mut *connection).await?;
    sqlx::raw_sql("COMMIT").execute(connection).await?;
    Ok(())
}

async fn owner(connection: &mut SqliteConnection) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar("SELECT id FROM node").fetch_optional(connection).await
}

async fn write(connection: &mut SqliteConnection, rows: &[Row]) -> Result<(), sqlx::Error> {
    let kinds = Kinds::of(rows);
    if kinds.statements() == 1 {
        return kinds.write(connection).await;
    }
    sqlx::query("BEGIN IMMEDIATE").execute(&mut *connection).await?;
    kinds.write(connection).await?;
    sqlx::query("COMMIT").execute(connection).await?;
    Ok(())
}

/// Some failures end the transaction by themselves.
async fn rolled_back(connection: &mut SqliteConnection) -> bool {
    match sqlx::query("ROLLBACK").execute(connection).await {
        Ok(_) => true,
        Err(error) => error.to_string().contains("no transaction is active"),
    }
}

/// SQLite's primary result code.
fn code(error: &sqlx::Error) -> Option<i32> {
    let code: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}

const BUSY: i32 = 5;
const LOCKED: i32 = 6;
const READ_ONLY: i32 = 8;
const CORRUPT: i32 = 11;
const FULL: i32 = 13;
const CANNOT_OPEN: i32 = 14;
const TOO_BIG: i32 = 18;
const CONSTRAINT: i32 = 19;
const NOT_A_DATABASE: i32 = 26;

/// Whether SQLite knows for sure that nothing was written.
fn harmless(error: &sqlx::Error) -> bool {
    matches!(code(error), Some(BUSY | LOCKED | READ_ONLY | FULL | TOO_BIG | CONSTRAINT))
}

fn refused(error: &sqlx::Error, doubtful: bool) -> Refused {
    let full = code(error) == Some(FULL);
    let reason = match full {
        true => "the disk is full; make room, or let sessions expire".to_owned(),
        false => format!("{error}; look at the disk that it is on"),
    };
    let of_rows = matches!(code(error), Some(FULL | TOO_BIG | CONSTRAINT));
    Refused { full, of_rows, doubtful, reason }
}

fn open_error(path: &Path, error: &sqlx::Error) -> OpenError {
    let path = path.to_owned();
    match code(error) {
        Some(BUSY | LOCKED) => OpenError::Locked { path },
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
