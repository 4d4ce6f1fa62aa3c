//! Idempotency keys.

use crate::ledger::key::Key;
use crate::ledger::row::{KeyRow, Millis};
use crate::sql::{Again, Link, Record, Sink, Stored, Table, Trouble};

use super::query::Query;

impl Stored for KeyRow {
    const TABLE: Table = Table {
        name: "idempotency",
        columns: &[
            "caller",
            "route",
            "key",
            "fingerprint",
            "node",
            "stored",
            "resource",
            "answer",
            "body",
            "created_at",
            "expires_at",
        ],
        key: 3,
        again: Again::Replaced,
    };

    fn fields(&self, to: &mut impl Sink) {
        to.text(&self.caller);
        to.text(&self.route);
        to.text(&self.key);
        to.int(self.fingerprint as i64);
        to.text(&self.node);
        to.flag(self.stored);
        to.maybe_text(self.resource.as_deref());
        to.maybe_text(self.answer.as_deref());
        to.maybe_bytes(self.body.as_deref());
        to.int(self.created_at);
        to.int(self.expires_at);
    }
}

fn row(record: &Record) -> Result<KeyRow, Trouble> {
    let mut cells = record.cells();
    Ok(KeyRow {
        caller: cells.string()?,
        route: cells.string()?,
        key: cells.string()?,
        fingerprint: cells.int()? as u64,
        node: cells.string()?,
        stored: cells.flag()?,
        resource: cells.maybe_string()?,
        answer: cells.maybe_string()?,
        body: cells.maybe_bytes()?.map(Into::into),
        created_at: cells.int()?,
        expires_at: cells.int()?,
    })
}

pub(super) async fn by_name(link: &mut Link, key: &Key) -> Result<Option<KeyRow>, Trouble> {
    let args = link.args().with_text(&key.caller).with_text(&key.route).with_text(&key.key);
    let query = Query::of("SELECT ").columns("i", &KeyRow::TABLE);
    let query =
        query.with(" FROM idempotency i WHERE i.caller = $1 AND i.route = $2 AND i.key = $3");
    let found = link.fetch_first(query, args).await?;
    found.as_ref().map(row).transpose()
}

pub(super) async fn count(link: &mut Link) -> Result<u64, Trouble> {
    let args = link.args();
    Ok(link.number("SELECT count(*) FROM idempotency", args).await? as u64)
}

pub(super) const EXPIRED: &str = "\
    SELECT caller, route, key FROM idempotency WHERE expires_at <= $1 \
    ORDER BY expires_at LIMIT $2";

pub(super) async fn expired(
    link: &mut Link,
    now: Millis,
    limit: usize,
) -> Result<Vec<Key>, Trouble> {
    let args = link.args().with_int(now).with_int(limit as i64);
    let found = link.fetch(EXPIRED, args).await?;
    found.iter().map(name).collect()
}

fn name(record: &Record) -> Result<Key, Trouble> {
    let mut cells = record.cells();
    Ok(Key { caller: cells.string()?, route: cells.string()?, key: cells.string()? })
}

pub(super) async fn remove(link: &mut Link, key: &Key) -> Result<(), Trouble> {
    let args = link.args().with_text(&key.caller).with_text(&key.route).with_text(&key.key);
    const ONE: &str = "DELETE FROM idempotency WHERE caller = $1 AND route = $2 AND key = $3";
    link.execute(ONE, args).await.map(drop)
}
