//! How the rows of sessions are written: some statements for all of a kind.

use std::collections::HashSet;

use serde_json::Value;
use sqlx::SqlSafeStr;

use crate::checksum;
use crate::content::Content;
use crate::disk::Row;
use crate::kept::{Kept, Seen};
use crate::session::Program;
use crate::sql::link::{Dialect, Link, Sink};
use crate::sql::table::{Again, Stored, Table, Texts};
use crate::sql::trouble::Trouble;

struct SessionRow<'a>(&'a Kept, &'a Seen);

impl Stored for SessionRow<'_> {
    const TABLE: Table = Table {
        name: "session",
        columns: &[
            "number",
            "id",
            "version",
            "metadata",
            "created_at",
            "last_accessed",
            "ttl",
            "expires_at",
            "last_worker",
            "strict_nodes",
            "checksum",
        ],
        key: 1,
        again: Again::Replaced,
    };

    fn fields(&self, to: &mut impl Sink) {
        let SessionRow(kept, seen) = self;
        to.int(kept.number as i64);
        to.text(&kept.id);
        to.int(kept.version as i64);
        to.text(kept.metadata.get());
        to.int(kept.created);
        to.int(seen.accessed);
        to.int(kept.ttl);
        to.maybe_int(kept.expires);
        to.maybe_text(seen.worker.as_deref());
        to.text(&checksum::strict_nodes(kept));
    }

    /// Not of what is written late, but of what its programs are.
    fn checksum(&self) -> i64 {
        checksum::session(self.0)
    }
}

struct ProgramRow<'a>(u64, &'a str, &'a Program);

impl Stored for ProgramRow<'_> {
    const TABLE: Table = Table {
        name: "session_program",
        columns: &["session", "name", "content_type", "data", "version", "checksum"],
        key: 2,
        again: Again::Replaced,
    };

    fn fields(&self, to: &mut impl Sink) {
        to.int(self.0 as i64);
        to.text(self.1);
        to.text(&self.2.content.content_type);
        to.bytes(&self.2.content.bytes);
        to.int(self.2.version as i64);
    }

    fn checksum(&self) -> i64 {
        checksum::program(self.0, self.1, self.2)
    }
}

struct SavedRow<'a>(u64, &'a str, &'a Content);

impl Stored for SavedRow<'_> {
    const TABLE: Table = Table {
        name: "session_state",
        columns: &["session", "pool", "content_type", "data", "checksum"],
        key: 2,
        again: Again::Replaced,
    };

    fn fields(&self, to: &mut impl Sink) {
        to.int(self.0 as i64);
        to.text(self.1);
        to.text(&self.2.content_type);
        to.bytes(&self.2.bytes);
    }

    fn checksum(&self) -> i64 {
        checksum::state(self.0, self.1, self.2)
    }
}

/// What is removed, or only touched, goes as one list, in JSON, for all of its kind.
#[derive(Clone, Copy)]
enum Listed {
    NoSession,
    NoProgram,
    NoSaved,
    Seen,
}

impl Listed {
    fn sql(self, dialect: Dialect) -> &'static str {
        match (self, dialect) {
            (Listed::NoSession, Dialect::Sqlite) => {
                "DELETE FROM session WHERE number IN (SELECT value FROM json_each($1))"
            }
            (Listed::NoSession, Dialect::Postgres) => {
                "DELETE FROM session WHERE number IN \
                 (SELECT value::bigint FROM json_array_elements_text($1::text::json))"
            }
            (Listed::NoProgram, Dialect::Sqlite) => {
                "DELETE FROM session_program WHERE (session, name) IN \
                 (SELECT value ->> 0, value ->> 1 FROM json_each($1))"
            }
            (Listed::NoProgram, Dialect::Postgres) => {
                "DELETE FROM session_program WHERE (session, name) IN \
                 (SELECT (value ->> 0)::bigint, value ->> 1 \
                 FROM json_array_elements($1::text::json))"
            }
            (Listed::NoSaved, Dialect::Sqlite) => {
                "DELETE FROM session_state WHERE (session, pool) IN \
                 (SELECT value ->> 0, value ->> 1 FROM json_each($1))"
            }
            (Listed::NoSaved, Dialect::Postgres) => {
                "DELETE FROM session_state WHERE (session, pool) IN \
                 (SELECT (value ->> 0)::bigint, value ->> 1 \
                 FROM json_array_elements($1::text::json))"
            }
            (Listed::Seen, Dialect::Sqlite) => {
                "UPDATE session SET last_accessed = used.value ->> 1, \
                 last_worker = used.value ->> 2 \
                 FROM json_each($1) AS used WHERE number = used.value ->> 0"
            }
            (Listed::Seen, Dialect::Postgres) => {
                "UPDATE session SET last_accessed = (used.value ->> 1)::bigint, \
                 last_worker = used.value ->> 2 \
                 FROM json_array_elements($1::text::json) AS used \
                 WHERE number = (used.value ->> 0)::bigint"
            }
        }
    }
}

/// The rows of a commit by kind.
#[derive(Default)]
pub(super) struct Kinds<'a> {
    gone: Vec<Value>,
    sessions: Vec<SessionRow<'a>>,
    no_programs: Vec<Value>,
    no_saved: Vec<Value>,
    seen: Vec<Value>,
    programs: Vec<ProgramRow<'a>>,
    saved: Vec<SavedRow<'a>>,
}

impl<'a> Kinds<'a> {
    pub fn of(rows: &'a [Row]) -> Self {
        let mut kinds = Kinds::default();
        for row in rows {
            match row {
                Row::NoSession(number) => kinds.gone.push(Value::from(*number)),
                Row::Session(kept, seen) => kinds.sessions.push(SessionRow(kept, seen)),
                Row::NoProgram(number, name) => kinds.no_programs.push(pair(*number, name)),
                Row::NoSaved(number, pool) => kinds.no_saved.push(pair(*number, pool)),
                Row::Seen(number, seen) => kinds.seen.push(used(*number, seen)),
                Row::Program(number, name, program) => {
                    kinds.programs.push(ProgramRow(*number, name, program));
                }
                Row::Saved(number, pool, saved) => {
                    kinds.saved.push(SavedRow(*number, pool, saved));
                }
            }
        }
        kinds
    }

    /// In an order in which they can be written: what goes first, then sessions, then what belongs
    /// to them.
    pub async fn write(self, link: &mut Link, texts: &mut Texts) -> Result<(), Trouble> {
        list(link, Listed::NoSession, self.gone).await?;
        let sessions = once_each(self.sessions);
        texts.insert(link, &sessions).await?;
        note_number(link, &sessions).await?;
        list(link, Listed::NoProgram, self.no_programs).await?;
        list(link, Listed::NoSaved, self.no_saved).await?;
        list(link, Listed::Seen, self.seen).await?;
        texts.insert(link, &once_each(self.programs)).await?;
        texts.insert(link, &once_each(self.saved)).await
    }
}

/// A statement may touch a row once: of several with one key the last counts.
fn once_each<'a, T: Keyed<'a>>(mut rows: Vec<T>) -> Vec<T> {
    let mut seen = HashSet::new();
    rows.reverse();
    rows.retain(|row| seen.insert(row.key()));
    rows.reverse();
    rows
}

trait Keyed<'a> {
    fn key(&self) -> (u64, &'a str);
}

impl<'a> Keyed<'a> for SessionRow<'a> {
    fn key(&self) -> (u64, &'a str) {
        (self.0.number, "")
    }
}

impl<'a> Keyed<'a> for ProgramRow<'a> {
    fn key(&self) -> (u64, &'a str) {
        (self.0, self.1)
    }
}

impl<'a> Keyed<'a> for SavedRow<'a> {
    fn key(&self) -> (u64, &'a str) {
        (self.0, self.1)
    }
}

async fn list(link: &mut Link, kind: Listed, list: Vec<Value>) -> Result<(), Trouble> {
    if list.is_empty() {
        return Ok(());
    }
    let args = link.args().with_text(&Value::from(list).to_string());
    link.execute(kind.sql(link.dialect()).into_sql_str(), args).await.map(drop)
}

/// SQLite remembers by itself which number was the highest.
async fn note_number(link: &mut Link, sessions: &[SessionRow<'_>]) -> Result<(), Trouble> {
    let Some(highest) = sessions.iter().map(|row| row.0.number).max() else { return Ok(()) };
    if link.dialect() == Dialect::Sqlite {
        return Ok(());
    }
    let args = link.args().with_int(highest as i64);
    const NOTE: &str = "UPDATE session_number SET last = $1 WHERE last < $1";
    link.execute(NOTE, args).await.map(drop)
}

fn pair(number: u64, name: &str) -> Value {
    Value::from_iter([Value::from(number), Value::from(name)])
}

fn used(number: u64, seen: &Seen) -> Value {
    let worker = Value::from(seen.worker.as_deref());
    Value::from_iter([Value::from(number), Value::from(seen.accessed), worker])
}
