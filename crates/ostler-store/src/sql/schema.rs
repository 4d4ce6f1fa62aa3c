//! The tables of a SQLite file and their versions. It carries the number of the last step that it went through
//! (`user_version`) and whose it is (`application_id`).

use std::path::Path;

use sqlx::{AssertSqlSafe, SqliteConnection};

use super::file::open_error;
use crate::error::OpenError;

/// `ostl`.
const APPLICATION: i64 = 0x6f73_746c;

/// Each leads from one version to the next; none is ever changed once it was released.
const STEPS: [&str; 2] = [
    include_str!("../../migrations/0001_sessions.sql"),
    include_str!("../../migrations/0002_ledger.sql"),
];

/// Brings the file to this version. Another program's is left as it is.
pub(super) async fn prepare(
    path: &Path,
    connection: &mut SqliteConnection,
) -> Result<(), OpenError> {
    let named = |error| open_error(path, &error);
    let found = version(path, connection).await?;
    write_ahead(connection).await.map_err(named)?;
    for (done, step) in STEPS.iter().enumerate().skip(found) {
        take(connection, step, done + 1).await.map_err(named)?;
    }
    Ok(())
}

/// For those who do not write: a file that no server of this version has opened is not theirs to read.
pub(super) async fn must_be_current(
    path: &Path,
    connection: &mut SqliteConnection,
) -> Result<(), OpenError> {
    match version(path, connection).await? == STEPS.len() {
        true => Ok(()),
        false => Err(OpenError::TooOld { place: path.display().to_string() }),
    }
}

pub(super) async fn write_ahead(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let mode: String =
        sqlx::query_scalar("PRAGMA journal_mode = WAL").fetch_one(connection).await?;
    match mode.as_str() {
        "wal" => Ok(()),
        other => Err(sqlx::Error::Protocol(format!("its journal stays in mode `{other}`"))),
    }
}

async fn version(path: &Path, connection: &mut SqliteConnection) -> Result<usize, OpenError> {
    let named = |error| open_error(path, &error);
    let application = number(connection, "PRAGMA application_id").await.map_err(named)?;
    let tables = number(connection, "SELECT count(*) FROM sqlite_schema").await.map_err(named)?;
    let found = number(connection, "PRAGMA user_version").await.map_err(named)?;
    let fresh = application == 0 && tables == 0 && found == 0;
    if !fresh && application != APPLICATION {
        return Err(OpenError::Foreign { path: path.to_owned() });
    }
    let known = STEPS.len();
    match usize::try_from(found) {
        Ok(version) if version <= known => Ok(version),
        _ => Err(OpenError::TooNew { path: path.to_owned(), found, known: known as i64 }),
    }
}

/// The step and its mark, or neither.
async fn take(
    connection: &mut SqliteConnection,
    step: &str,
    version: usize,
) -> Result<(), sqlx::Error> {
    let script = format!(
        "BEGIN IMMEDIATE;\n{step}\nPRAGMA application_id = {APPLICATION};\n\
         PRAGMA user_version = {version};\nCOMMIT;"
    );
    sqlx::raw_sql(AssertSqlSafe(script)).execute(connection).await?;
    Ok(())
}

async fn number(connection: &mut SqliteConnection, sql: &'static str) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(sql).fetch_one(connection).await
}
