//! Reading everything, once. What does not match its checksum is left out, and the log says so. A session
//! is left out with its programs if any of them is: half a session would be worse than none. A saved state
//! that is left out is one that was never saved. Their rows stay in the store until they expire.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::checksum;
use crate::clock::Millis;
use crate::content::Content;
use crate::kept::{Kept, Programs, Seen};
use crate::live::Live;
use crate::session::Program;
use crate::sql::link::{Cells, Dialect, Link, Record};
use crate::sql::trouble::Trouble;

/// Rows read at once.
const PAGE: i64 = 1000;
/// The same of rows that may be large.
const CONTENT_PAGE: i64 = 32;

#[derive(Debug, Default)]
struct Loaded {
    live: Live,
    programs: HashMap<u64, Programs>,
    states: HashMap<u64, BTreeMap<Arc<str>, Arc<Content>>>,
    sessions: u64,
    /// What was left out.
    damaged: Vec<String>,
}

pub(super) async fn load(link: &mut Link, now: Millis) -> Result<(Live, u64), Trouble> {
    remove_expired(link, now).await?;
    let mut loaded = Loaded::default();
    loaded.read_programs(link).await?;
    loaded.read_states(link).await?;
    loaded.read_sessions(link, now).await?;
    Ok((loaded.live, last_number(link).await? + 1))
}

/// How many there are, expired ones too, and what is damaged. Changes nothing.
pub(crate) async fn check(link: &mut Link) -> Result<(u64, Vec<String>), Trouble> {
    let mut loaded = Loaded::default();
    loaded.read_programs(link).await?;
    loaded.read_states(link).await?;
    loaded.read_sessions(link, Millis::MAX).await?;
    Ok((loaded.sessions, loaded.damaged))
}

/// The highest that was ever given.
async fn last_number(link: &mut Link) -> Result<u64, Trouble> {
    let sql = match link.dialect() {
        Dialect::Sqlite => "SELECT seq FROM sqlite_sequence WHERE name = 'session'",
        Dialect::Postgres => "SELECT last FROM session_number",
    };
    let args = link.args();
    match link.fetch_first(sql, args).await? {
        Some(record) => record.cells().count(),
        None => Ok(0),
    }
}

/// A use that lies in the future, by a clock that was set back since, counts as one of now.
async fn remove_expired(link: &mut Link, now: Millis) -> Result<(), Trouble> {
    let args = link.args().with_int(now);
    const EXPIRED: &str = "DELETE FROM session WHERE expires_at <= $1 \
        OR (CASE WHEN last_accessed < $1 THEN last_accessed ELSE $1 END) + ttl <= $1";
    link.execute(EXPIRED, args).await.map(drop)
}

impl Loaded {
    async fn read_programs(&mut self, link: &mut Link) -> Result<(), Trouble> {
        const PROGRAMS: &str = "SELECT session, name, content_type, data, version, checksum \
            FROM session_program WHERE (session, name) > ($1, $2) ORDER BY session, name LIMIT $3";
        let mut after = (0, String::new());
        loop {
            let rows = contents(link, PROGRAMS, &after).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = key(last)?;
            for row in &rows {
                self.take_program(row);
            }
        }
    }

    fn take_program(&mut self, row: &Record) {
        match program(row) {
            Ok((number, name, program)) => {
                self.programs.entry(number).or_default().insert(name, program);
            }
            Err(trouble) => self.leave_out("a program of session", row, &trouble),
        }
    }

    async fn read_states(&mut self, link: &mut Link) -> Result<(), Trouble> {
        const STATES: &str = "SELECT session, pool, content_type, data, checksum \
            FROM session_state WHERE (session, pool) > ($1, $2) ORDER BY session, pool LIMIT $3";
        let mut after = (0, String::new());
        loop {
            let rows = contents(link, STATES, &after).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = key(last)?;
            for row in &rows {
                self.take_state(row);
            }
        }
    }

    fn take_state(&mut self, row: &Record) {
        match state(row) {
            Ok((number, pool, saved)) => {
                self.states.entry(number).or_default().insert(pool, saved);
            }
            Err(trouble) => self.leave_out("the saved state of session", row, &trouble),
        }
    }

    async fn read_sessions(&mut self, link: &mut Link, now: Millis) -> Result<(), Trouble> {
        const SESSIONS: &str = "SELECT number, id, version, metadata, created_at, ttl, \
            expires_at, strict_nodes, checksum, last_accessed, last_worker \
            FROM session WHERE number > $1 ORDER BY number LIMIT $2";
        let mut after = 0;
        loop {
            let args = link.args().with_int(after).with_int(PAGE);
            let rows = link.fetch(SESSIONS, args).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = last.cells().int()?;
            for row in &rows {
                self.take_session(row, now);
            }
        }
    }

    fn take_session(&mut self, row: &Record, now: Millis) {
        self.sessions += 1;
        let number = row.cells().int().unwrap_or_default() as u64;
        let programs = self.programs.remove(&number).unwrap_or_default();
        let saved = self.states.remove(&number).unwrap_or_default();
        match session(row, programs, now) {
            Ok((kept, seen)) => self.live.load(Kept { saved, ..kept }, seen),
            Err(trouble) => self.leave_out("session", row, &trouble),
        }
    }

    fn leave_out(&mut self, what: &str, row: &Record, trouble: &Trouble) {
        let number = row.cells().int().unwrap_or_default();
        let finding = format!("{what} {number} is damaged: {trouble}");
        tracing::error!("{finding}");
        self.damaged.push(finding);
    }
}

async fn contents(
    link: &mut Link,
    sql: &'static str,
    after: &(i64, String),
) -> Result<Vec<Record>, Trouble> {
    let args = link.args().with_int(after.0).with_text(&after.1).with_int(CONTENT_PAGE);
    link.fetch(sql, args).await
}

fn key(row: &Record) -> Result<(i64, String), Trouble> {
    let mut cells = row.cells();
    Ok((cells.int()?, cells.string()?))
}

/// Without its saved state.
fn session(row: &Record, programs: Programs, now: Millis) -> Result<(Kept, Seen), Trouble> {
    let mut cells = row.cells();
    let kept = Kept {
        number: cells.count()?,
        id: cells.text()?.into(),
        version: cells.count()?,
        metadata: cells.parsed("JSON", |text| RawValue::from_string(text.to_owned()).ok())?.into(),
        created: cells.int()?,
        ttl: cells.int()?,
        expires: cells.maybe_int()?,
        programs,
        saved: BTreeMap::new(),
        strict: strict(&mut cells)?,
    };
    matches(&mut cells, checksum::session(&kept))?;
    let accessed = cells.int()?.min(now);
    let worker = cells.maybe_text()?.map(Arc::from);
    Ok((kept, Seen { accessed, worker }))
}

fn strict(cells: &mut Cells<'_>) -> Result<BTreeMap<Arc<str>, uuid::Uuid>, Trouble> {
    cells.parsed("map of pools", |text| {
        let nodes: BTreeMap<String, String> = serde_json::from_str(text).ok()?;
        nodes.into_iter().map(|(pool, node)| Some((pool.into(), node.parse().ok()?))).collect()
    })
}

fn program(row: &Record) -> Result<(u64, Arc<str>, Arc<Program>), Trouble> {
    let mut cells = row.cells();
    let (session, name) = (cells.count()?, cells.text()?);
    let program = Program { content: content(&mut cells)?, version: cells.count()? };
    matches(&mut cells, checksum::program(session, name, &program))?;
    Ok((session, name.into(), Arc::new(program)))
}

fn state(row: &Record) -> Result<(u64, Arc<str>, Arc<Content>), Trouble> {
    let mut cells = row.cells();
    let (session, pool) = (cells.count()?, cells.text()?);
    let saved = content(&mut cells)?;
    matches(&mut cells, checksum::state(session, pool, &saved))?;
    Ok((session, pool.into(), Arc::new(saved)))
}

fn content(cells: &mut Cells<'_>) -> Result<Content, Trouble> {
    let content_type = cells.text()?;
    Ok(Content::new(content_type, cells.bytes()?))
}

fn matches(cells: &mut Cells<'_>, checksum: i64) -> Result<(), Trouble> {
    match cells.int()? == checksum {
        true => Ok(()),
        false => Err(Trouble::Checksum),
    }
}
