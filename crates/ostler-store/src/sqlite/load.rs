//! Reading everything, once. What does not match its checksum is left out, and the log says so. A session
//! is left out with its programs if any of them is: half a session would be worse than none. A saved state
//! that is left out is one that was never saved. Their rows stay in the file until they expire.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::value::RawValue;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, SqliteConnection};

use super::checksum;
use crate::clock::Millis;
use crate::content::Content;
use crate::kept::{Kept, Programs, Seen};
use crate::live::Live;
use crate::session::Program;

/// Rows read at once.
const PAGE: i64 = 1000;
/// The same of rows that may be large.
const CONTENT_PAGE: i64 = 32;

#[derive(Debug, Default)]
struct Loaded {
    live: Live,
    programs: HashMap<u64, Programs>,
    states: HashMap<u64, BTreeMap<Arc<str>, Arc<Content>>>,
}

pub(super) async fn load(
    connection: &mut SqliteConnection,
    now: Millis,
) -> Result<(Live, u64), sqlx::Error> {
    remove_expired(connection, now).await?;
    let mut loaded = Loaded::default();
    loaded.read_programs(connection).await?;
    loaded.read_states(connection).await?;
    loaded.read_sessions(connection, now).await?;
    let last: Option<i64> =
        sqlx::query_scalar("SELECT seq FROM sqlite_sequence WHERE name = 'session'")
            .fetch_optional(connection)
            .await?;
    Ok((loaded.live, last.unwrap_or(0) as u64 + 1))
}

/// A use that lies in the future, by a clock that was set back since, counts as one of now.
async fn remove_expired(connection: &mut SqliteConnection, now: Millis) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM session WHERE min(last_accessed, ?1) + ttl <= ?1 OR expires_at <= ?1")
        .bind(now)
        .execute(connection)
        .await?;
    Ok(())
}

impl Loaded {
    async fn read_programs(
        &mut self,
        connection: &mut SqliteConnection,
    ) -> Result<(), sqlx::Error> {
        let mut after = 0;
        loop {
            let rows = sqlx::query(
                "SELECT rowid, session, name, content_type, data, version, checksum \
                 FROM session_program WHERE rowid > ? ORDER BY rowid LIMIT ?",
            )
            .bind(after)
            .bind(CONTENT_PAGE)
            .fetch_all(&mut *connection)
            .await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = last.try_get::<i64, _>("rowid")?;
            for row in &rows {
                self.take_program(row);
            }
        }
    }

    fn take_program(&mut self, row: &SqliteRow) {
        match program(row) {
            Some((number, name, program)) => {
                self.programs.entry(number).or_default().insert(name, program);
            }
            None => tracing::error!("a program of a session was damaged on the disk"),
        }
    }

    async fn read_states(&mut self, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        let mut after = (0, String::new());
        loop {
            let rows = sqlx::query(
                "SELECT session, pool, content_type, data, checksum FROM session_state \
                 WHERE (session, pool) > (?, ?) ORDER BY session, pool LIMIT ?",
            )
            .bind(after.0)
            .bind(&after.1)
            .bind(CONTENT_PAGE)
            .fetch_all(&mut *connection)
            .await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = (last.try_get("session")?, last.try_get("pool")?);
            for row in &rows {
                self.take_state(row);
            }
        }
    }

    fn take_state(&mut self, row: &SqliteRow) {
        match state(row) {
            Some((number, pool, saved)) => {
                self.states.entry(number).or_default().insert(pool, saved);
            }
            None => tracing::error!("the saved state of a session was damaged on the disk"),
        }
    }

    async fn read_sessions(
        &mut self,
        connection: &mut SqliteConnection,
        now: Millis,
    ) -> Result<(), sqlx::Error> {
        let mut after = 0;
        loop {
            let rows =
                sqlx::query("SELECT * FROM session WHERE number > ? ORDER BY number LIMIT ?")
                    .bind(after)
                    .bind(PAGE)
                    .fetch_all(&mut *connection)
                    .await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = last.try_get::<i64, _>("number")?;
            for row in &rows {
                self.take_session(row, now);
            }
        }
    }

    fn take_session(&mut self, row: &SqliteRow, now: Millis) {
        let number = row.try_get::<i64, _>("number").unwrap_or_default() as u64;
        let programs = self.programs.remove(&number).unwrap_or_default();
        let saved = self.states.remove(&number).unwrap_or_default();
        let Some((kept, seen)) = session(row, programs, now) else {
            let id: String = row.try_get("id").unwrap_or_default();
            tracing::error!(number, id, "a session was damaged on the disk and is left out");
            return;
        };
        self.live.load(Kept { saved, ..kept }, seen);
    }
}

/// Without its saved state; None if it is not what was written.
fn session(row: &SqliteRow, programs: Programs, now: Millis) -> Option<(Kept, Seen)> {
    let strict: BTreeMap<String, String> =
        serde_json::from_str(row.try_get("strict_nodes").ok()?).ok()?;
    let strict = strict.into_iter().map(|(pool, node)| Some((pool.into(), node.parse().ok()?)));
    let kept = Kept {
        number: number(row, "number")?,
        id: row.try_get::<&str, _>("id").ok()?.into(),
        version: number(row, "version")?,
        metadata: RawValue::from_string(row.try_get("metadata").ok()?).ok()?.into(),
        created: row.try_get("created_at").ok()?,
        ttl: row.try_get("ttl").ok()?,
        expires: row.try_get("expires_at").ok()?,
        programs,
        saved: BTreeMap::new(),
        strict: strict.collect::<Option<_>>()?,
    };
    let accessed = row.try_get::<i64, _>("last_accessed").ok()?.min(now);
    let worker: Option<&str> = row.try_get("last_worker").ok()?;
    let seen = Seen { accessed, worker: worker.map(Arc::from) };
    matches(row, checksum::session(&kept)).then_some((kept, seen))
}

fn program(row: &SqliteRow) -> Option<(u64, Arc<str>, Arc<Program>)> {
    let session = number(row, "session")?;
    let name: &str = row.try_get("name").ok()?;
    let program = Program { content: content(row)?, version: number(row, "version")? };
    let whole = matches(row, checksum::program(session, name, &program));
    whole.then(|| (session, name.into(), Arc::new(program)))
}

fn state(row: &SqliteRow) -> Option<(u64, Arc<str>, Arc<Content>)> {
    let (session, saved) = (number(row, "session")?, content(row)?);
    let pool: &str = row.try_get("pool").ok()?;
    let whole = matches(row, checksum::state(session, pool, &saved));
    whole.then(|| (session, pool.into(), Arc::new(saved)))
}

fn content(row: &SqliteRow) -> Option<Content> {
    let bytes: Vec<u8> = row.try_get("data").ok()?;
    Some(Content::new(row.try_get::<&str, _>("content_type").ok()?, bytes))
}

fn number(row: &SqliteRow, column: &str) -> Option<u64> {
    row.try_get::<i64, _>(column).ok().map(|number| number as u64)
}

fn matches(row: &SqliteRow, checksum: i64) -> bool {
    row.try_get::<i64, _>("checksum").is_ok_and(|written| written == checksum)
}
