//! Schedules, and the times that they were served.

use crate::ledger::id::{JobId, ScheduleId};
use crate::ledger::row::{FireRow, Millis, ScheduleRow};
use crate::sql::{Again, Args, Link, Record, Sink, Stored, Table, Trouble};

use super::query::Query;

impl Stored for ScheduleRow {
    const TABLE: Table = Table {
        name: "schedule",
        columns: &[
            "id",
            "workspace",
            "name",
            "spec",
            "next_at",
            "last_at",
            "last_job",
            "version",
            "created_at",
        ],
        key: 1,
        again: Again::Replaced,
    };

    fn fields(&self, to: &mut impl Sink) {
        to.text(self.id.as_str());
        to.text(&self.workspace);
        to.text(&self.name);
        to.text(&self.spec);
        to.maybe_int(self.next_at);
        to.maybe_int(self.last_at);
        to.maybe_text(self.last_job.as_ref().map(JobId::as_str));
        to.int(self.version as i64);
        to.int(self.created_at);
    }
}

impl Stored for FireRow {
    const TABLE: Table = Table {
        name: "schedule_fire",
        columns: &["schedule", "at", "job"],
        key: 2,
        again: Again::Replaced,
    };

    fn fields(&self, to: &mut impl Sink) {
        to.text(self.schedule.as_str());
        to.int(self.at);
        to.maybe_text(self.job.as_ref().map(JobId::as_str));
    }
}

fn schedule(record: &Record) -> Result<ScheduleRow, Trouble> {
    let mut cells = record.cells();
    Ok(ScheduleRow {
        id: cells.parsed("schedule", |id| id.parse().ok())?,
        workspace: cells.string()?,
        name: cells.string()?,
        spec: cells.string()?,
        next_at: cells.maybe_int()?,
        last_at: cells.maybe_int()?,
        last_job: cells.maybe_parsed("job", |id| id.parse().ok())?,
        version: cells.count()?,
        created_at: cells.int()?,
    })
}

async fn those(link: &mut Link, which: &str, args: Args) -> Result<Vec<ScheduleRow>, Trouble> {
    let query = Query::of("SELECT ").columns("s", &ScheduleRow::TABLE).with(" FROM schedule s ");
    link.fetch(query.with(which), args).await?.iter().map(schedule).collect()
}

pub(super) const BY_ID: &str = "WHERE s.id = $1";
pub(super) const NAMED: &str = "WHERE s.workspace = $1 AND s.name = $2";
pub(super) const DUE: &str =
    "WHERE s.next_at IS NOT NULL AND s.next_at <= $1 ORDER BY s.next_at, s.id LIMIT $2";

pub(super) async fn by_id(
    link: &mut Link,
    id: &ScheduleId,
) -> Result<Option<ScheduleRow>, Trouble> {
    let args = link.args().with_text(id.as_str());
    Ok(those(link, BY_ID, args).await?.pop())
}

pub(super) async fn named(
    link: &mut Link,
    workspace: &str,
    name: &str,
) -> Result<Option<ScheduleRow>, Trouble> {
    let args = link.args().with_text(workspace).with_text(name);
    Ok(those(link, NAMED, args).await?.pop())
}

pub(super) async fn list(
    link: &mut Link,
    after: Option<&ScheduleId>,
    limit: usize,
) -> Result<Vec<ScheduleRow>, Trouble> {
    let after = after.map_or("", |id| id.as_str());
    let args = link.args().with_text(after).with_int(limit as i64);
    those(link, "WHERE s.id > $1 ORDER BY s.id LIMIT $2", args).await
}

pub(super) async fn count(link: &mut Link) -> Result<u64, Trouble> {
    let args = link.args();
    Ok(link.number("SELECT count(*) FROM schedule", args).await? as u64)
}

pub(super) async fn due(
    link: &mut Link,
    now: Millis,
    limit: usize,
) -> Result<Vec<ScheduleRow>, Trouble> {
    let args = link.args().with_int(now).with_int(limit as i64);
    those(link, DUE, args).await
}
