//! Workers, pools, and the servers that had them.

use ostler_core::Status;

use crate::ledger::row::{Millis, NodeRow, PoolRow, WorkerRow};
use crate::sql::{Again, Args, Link, Record, Sink, Stored, Table, Trouble, checked};

use super::query::Query;

impl Stored for WorkerRow {
    const TABLE: Table = Table {
        name: "worker",
        columns: &[
            "id",
            "name",
            "pool",
            "workspace",
            "dedicated",
            "node",
            "status",
            "seq",
            "created_at",
            "updated_at",
            "finished_at",
            "checksum",
        ],
        key: 1,
        again: Again::Replaced,
    };

    fn fields(&self, to: &mut impl Sink) {
        to.text(&self.id);
        to.text(&self.name);
        to.text(&self.pool);
        to.text(&self.workspace);
        to.flag(self.dedicated);
        to.text(&self.node);
        to.text(self.status.name());
        to.int(self.seq as i64);
        to.int(self.created_at);
        to.int(self.updated_at);
        to.maybe_int(self.finished_at);
    }
}

impl Stored for PoolRow {
    const TABLE: Table = Table {
        name: "pool",
        columns: &["name", "number", "next_worker"],
        key: 1,
        again: Again::Replaced,
    };

    fn fields(&self, to: &mut impl Sink) {
        to.text(&self.name);
        to.int(self.number as i64);
        to.int(self.next_worker as i64);
    }
}

impl Stored for NodeRow {
    const TABLE: Table = Table {
        name: "node",
        columns: &["id", "version", "started_at", "expires_at", "ended_at"],
        key: 1,
        again: Again::Replaced,
    };

    fn fields(&self, to: &mut impl Sink) {
        to.text(&self.id);
        to.text(&self.version);
        to.int(self.started_at);
        to.int(self.expires_at);
        to.maybe_int(self.ended_at);
    }
}

fn worker(record: &Record) -> Result<WorkerRow, Trouble> {
    let mut cells = record.cells();
    let row = WorkerRow {
        id: cells.string()?,
        name: cells.string()?,
        pool: cells.string()?,
        workspace: cells.string()?,
        dedicated: cells.flag()?,
        node: cells.string()?,
        status: cells.parsed("status", status)?,
        seq: cells.count()?,
        created_at: cells.int()?,
        updated_at: cells.int()?,
        finished_at: cells.maybe_int()?,
    };
    checked(row, &mut cells)
}

fn status(name: &str) -> Option<Status> {
    Status::ALL.into_iter().find(|status| status.name() == name)
}

async fn those(link: &mut Link, which: &str, args: Args) -> Result<Vec<WorkerRow>, Trouble> {
    let query = Query::of("SELECT ").columns("w", &WorkerRow::TABLE).with(" FROM worker w ");
    link.fetch(query.with(which), args).await?.iter().map(worker).collect()
}

pub(super) const BY_ID: &str = "WHERE w.id = $1";
pub(super) const LAST_NAMED: &str =
    "WHERE w.name = $1 ORDER BY w.created_at DESC, w.id DESC LIMIT 1";
pub(super) const OPEN_OF_POOL: &str = "WHERE w.finished_at IS NULL AND w.pool = $1 ORDER BY w.id";

pub(super) async fn by_id(link: &mut Link, id: &str) -> Result<Option<WorkerRow>, Trouble> {
    let args = link.args().with_text(id);
    if let Some(found) = those(link, BY_ID, args).await?.pop() {
        return Ok(Some(found));
    }
    let args = link.args().with_text(id);
    Ok(those(link, LAST_NAMED, args).await?.pop())
}

pub(super) async fn open(link: &mut Link, pool: Option<&str>) -> Result<Vec<WorkerRow>, Trouble> {
    let args = link.args();
    match pool {
        None => those(link, "WHERE w.finished_at IS NULL ORDER BY w.id", args).await,
        Some(pool) => those(link, OPEN_OF_POOL, args.with_text(pool)).await,
    }
}

pub(super) const PRUNABLE: &str = "\
    SELECT id FROM worker WHERE finished_at IS NOT NULL AND finished_at < $1 \
    ORDER BY finished_at, id LIMIT $2";

pub(super) async fn prunable(
    link: &mut Link,
    before: Millis,
    limit: usize,
) -> Result<Vec<String>, Trouble> {
    let args = link.args().with_int(before).with_int(limit as i64);
    let found = link.fetch(PRUNABLE, args).await?;
    found.iter().map(|record| record.cells().string()).collect()
}

pub(super) async fn pool(link: &mut Link, name: &str) -> Result<Option<PoolRow>, Trouble> {
    let args = link.args().with_text(name);
    let sql = "SELECT name, number, next_worker FROM pool WHERE name = $1";
    let Some(record) = link.fetch_first(sql, args).await? else { return Ok(None) };
    let mut cells = record.cells();
    let (name, number, next_worker) = (cells.string()?, cells.count()?, cells.count()?);
    Ok(Some(PoolRow { name, number, next_worker }))
}

pub(super) async fn last_pool_number(link: &mut Link) -> Result<u64, Trouble> {
    let args = link.args();
    Ok(link.number("SELECT coalesce(max(number), 0) FROM pool", args).await? as u64)
}
