//! How rows are written. A statement goes to SQLite's thread and back, which takes longer than the row
//! itself: rows without bytes go as one list, in JSON, for all of their kind.

use serde_json::Value;
use sqlx::SqliteConnection;

use super::checksum;
use crate::content::Content;
use crate::disk::Row;
use crate::kept::{Kept, Seen};
use crate::session::Program;

type Written = Result<(), sqlx::Error>;

const SESSIONS: &str = "\
    INSERT INTO session (number, id, version, metadata, created_at, last_accessed, ttl, \
    expires_at, last_worker, strict_nodes, checksum) \
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, \
    value ->> 6, value ->> 7, value ->> 8, value ->> 9, value ->> 10 FROM json_each(?) WHERE true \
    ON CONFLICT (number) DO UPDATE SET version = excluded.version, metadata = excluded.metadata, \
    last_accessed = excluded.last_accessed, ttl = excluded.ttl, expires_at = excluded.expires_at, \
    last_worker = excluded.last_worker, strict_nodes = excluded.strict_nodes, \
    checksum = excluded.checksum";
const NO_SESSIONS: &str = "DELETE FROM session WHERE number IN (SELECT value FROM json_each(?))";
const NO_SAVED: &str = "\
    DELETE FROM session_state WHERE (session, pool) IN \
    (SELECT value ->> 0, value ->> 1 FROM json_each(?))";
const NO_PROGRAMS: &str = "\
    DELETE FROM session_program WHERE (session, name) IN \
    (SELECT value ->> 0, value ->> 1 FROM json_each(?))";
const SEEN: &str = "\
    UPDATE session SET last_accessed = used.value ->> 1, last_worker = used.value ->> 2 \
    FROM json_each(?) AS used WHERE number = used.value ->> 0";

/// The rows of a commit by kind, in an order in which they can be written: what goes first, then
/// sessions, then what belongs to them.
#[derive(Debug, Default)]
pub(super) struct Kinds<'a> {
    lists: [Vec<Value>; 5],
    programs: Vec<(u64, &'a str, &'a Program)>,
    saved: Vec<(u64, &'a str, &'a Content)>,
}

const LISTS: [&str; 5] = [NO_SESSIONS, SESSIONS, NO_PROGRAMS, NO_SAVED, SEEN];

impl<'a> Kinds<'a> {
    pub fn of(rows: &'a [Row]) -> Self {
        let mut kinds = Kinds::default();
        for row in rows {
            let (list, value) = match row {
                Row::Program(number, name, program) => {
                    kinds.programs.push((*number, name, program));
                    continue;
                }
                Row::Saved(number, pool, saved) => {
                    kinds.saved.push((*number, pool, saved));
                    continue;
                }
                Row::NoSession(number) => (0, Value::from(*number)),
                Row::Session(kept, seen) => (1, session(kept, seen)),
                Row::NoProgram(number, name) => (2, pair(*number, name)),
                Row::NoSaved(number, pool) => (3, pair(*number, pool)),
                Row::Seen(number, seen) => (4, used(*number, seen)),
            };
            kinds.lists[list].push(value);
        }
        kinds
    }

    /// One statement is a transaction by itself.
    pub fn statements(&self) -> usize {
        let lists = self.lists.iter().filter(|list| !list.is_empty()).count();
        lists + self.programs.len() + self.saved.len()
    }

    pub async fn write(self, connection: &mut SqliteConnection) -> Written {
        for (sql, list) in LISTS.into_iter().zip(self.lists) {
            if !list.is_empty() {
                let list = Value::from(list).to_string();
                sqlx::query(sql).bind(list).execute(&mut *connection).await?;
            }
        }
        for (number, name, program) in self.programs {
            put_program(connection, number, name, program).await?;
        }
        for (number, pool, saved) in self.saved {
            put_saved(connection, number, pool, saved).await?;
        }
        Ok(())
    }
}

fn pair(number: u64, name: &str) -> Value {
    Value::from_iter([Value::from(number), Value::from(name)])
}

fn session(kept: &Kept, seen: &Seen) -> Value {
    Value::from_iter([
        Value::from(kept.number),
        Value::from(&*kept.id),
        Value::from(kept.version),
        Value::from(kept.metadata.get()),
        Value::from(kept.created),
        Value::from(seen.accessed),
        Value::from(kept.ttl),
        Value::from(kept.expires),
        Value::from(seen.worker.as_deref()),
        Value::from(checksum::strict_nodes(kept)),
        Value::from(checksum::session(kept)),
    ])
}

fn used(number: u64, seen: &Seen) -> Value {
    let worker = Value::from(seen.worker.as_deref());
    Value::from_iter([Value::from(number), Value::from(seen.accessed), worker])
}

async fn put_program(
    connection: &mut SqliteConnection,
    number: u64,
    name: &str,
    program: &Program,
) -> Written {
    sqlx::query(
        "INSERT OR REPLACE INTO session_program \
         (session, name, content_type, data, version, checksum) VALUES (?, ?, ?, ?, ?, ?)",
    )
    .bind(number as i64)
    .bind(name)
    .bind(&*program.content.content_type)
    .bind(&program.content.bytes[..])
    .bind(program.version as i64)
    .bind(checksum::program(number, name, program))
    .execute(connection)
    .await?;
    Ok(())
}

async fn put_saved(
    connection: &mut SqliteConnection,
    number: u64,
    pool: &str,
    saved: &Content,
) -> Written {
    sqlx::query(
        "INSERT OR REPLACE INTO session_state (session, pool, content_type, data, checksum) \
         VALUES (?, ?, ?, ?, ?)",
    )
    .bind(number as i64)
    .bind(pool)
    .bind(&*saved.content_type)
    .bind(&saved.bytes[..])
    .bind(checksum::state(number, pool, saved))
    .execute(connection)
    .await?;
    Ok(())
}
