//! How jobs are found.

use ostler_core::JobStatus;

use super::{both, job_result};
use crate::ledger::id::JobId;
use crate::ledger::job::{JobCounts, JobFilter};
use crate::ledger::row::{JobFacts, JobResult, JobState, Millis};
use crate::ledger::sql::job_id;
use crate::ledger::sql::query::Query;
use crate::sql::{Args, Link, Record, Sink, Stored, Trouble};

/// With all columns of both, in order.
pub(in crate::ledger::sql) fn jobs() -> Query {
    Query::of("SELECT ")
        .columns("j", &JobFacts::TABLE)
        .with(", ")
        .columns("s", &JobState::TABLE)
        .with(" FROM job j JOIN job_state s ON s.id = j.id")
}

pub(in crate::ledger::sql) async fn by_id(
    link: &mut Link,
    id: &JobId,
) -> Result<Option<(JobFacts, JobState)>, Trouble> {
    let args = link.args().with_text(id.as_str());
    let found = link.fetch_first(jobs().with(" WHERE j.id = $1"), args).await?;
    found.as_ref().map(both).transpose()
}

pub(in crate::ledger::sql) async fn by_ids(
    link: &mut Link,
    ids: &[JobId],
) -> Result<Vec<(JobFacts, JobState)>, Trouble> {
    let mut found = Vec::with_capacity(ids.len());
    for group in ids.chunks(IDS_AT_ONCE) {
        let mut args = link.args();
        // A list that is too short is filled up with its last, so that few lengths are ever seen.
        let length = group.len().next_power_of_two();
        let filled = group.iter().chain(std::iter::repeat(group.last().expect("is not empty")));
        filled.take(length).for_each(|id| args.text(id.as_str()));
        let query = jobs().with(" WHERE j.id IN ").list(length);
        for record in link.fetch(query, args).await? {
            found.push(both(&record)?);
        }
    }
    Ok(found)
}
const IDS_AT_ONCE: usize = 64;

pub(in crate::ledger::sql) async fn result(
    link: &mut Link,
    id: &JobId,
) -> Result<Option<JobResult>, Trouble> {
    let args = link.args().with_text(id.as_str());
    let query = Query::of("SELECT ").columns("r", &JobResult::TABLE);
    let found = link.fetch_first(query.with(" FROM job_result r WHERE r.id = $1"), args).await?;
    found.as_ref().map(job_result).transpose()
}

/// A row that is damaged does not hide the others: it is left out, and the log says so.
pub(in crate::ledger::sql) async fn list(
    link: &mut Link,
    filter: &JobFilter,
    limit: usize,
) -> Result<Vec<(JobFacts, JobState)>, Trouble> {
    let (query, mut args) = fitting(filter, link.args());
    args.int(limit as i64);
    let records = link.fetch(query, args).await?;
    Ok(records.iter().filter_map(whole).collect())
}

/// Roots are not in the index of those that have one.
const FAMILY: &str = "j.id IN (SELECT id FROM job WHERE id = $_ UNION ALL \
    SELECT id FROM job WHERE root = $_ AND parent IS NOT NULL)";
const TAGGED: &str = "j.id IN (SELECT job FROM job_tag WHERE name = $_";

/// The query ends with the mark of its limit.
pub(in crate::ledger::sql) fn fitting(filter: &JobFilter, mut args: Args) -> (Query, Args) {
    let (tag, value) = match &filter.tag {
        Some((name, value)) => (Some(name.as_str()), Some(value.as_str())),
        None => (None, None),
    };
    let conditions = [
        ("j.workspace = $_", filter.workspace.as_deref()),
        ("j.queue = $_", filter.queue.as_deref()),
        ("j.pool = $_", filter.pool.as_deref()),
        ("j.function = $_", filter.function.as_deref()),
        ("j.parent = $_", filter.parent.as_ref().map(JobId::as_str)),
        ("j.schedule = $_", filter.schedule.as_ref().map(|id| id.as_str())),
        ("s.status = $_", filter.status.map(JobStatus::name)),
        (FAMILY, filter.root.as_ref().map(JobId::as_str)),
        (TAGGED, tag),
        ("value = $_)", value),
        ("j.id < $_", filter.before.as_ref().map(JobId::as_str)),
    ];
    let mut query = jobs().with(" WHERE true");
    let mut given = 0;
    for (condition, value) in conditions {
        let Some(value) = value else { continue };
        given += 1;
        args.text(value);
        query = query.with(" AND ").with(&condition.replace("$_", &format!("${given}")));
    }
    (query.with(&format!(" ORDER BY j.id DESC LIMIT ${}", given + 1)), args)
}

fn whole(record: &Record) -> Option<(JobFacts, JobState)> {
    let read = both(record);
    let id = record.cells().string().unwrap_or_default();
    read.inspect_err(|error| tracing::error!(id, %error, "a job is damaged in the store")).ok()
}

pub(in crate::ledger::sql) const OVERDUE: &str = "\
    SELECT id FROM job_state WHERE deadline IS NOT NULL AND completed_at IS NULL \
    AND cancel_at IS NULL AND deadline <= $1 ORDER BY deadline LIMIT $2";

pub(in crate::ledger::sql) async fn overdue(
    link: &mut Link,
    now: Millis,
    limit: usize,
) -> Result<Vec<JobId>, Trouble> {
    let args = link.args().with_int(now).with_int(limit as i64);
    ids(link.fetch(OVERDUE, args).await?)
}

pub(in crate::ledger::sql) const OPEN_CHILDREN: &str = "\
    SELECT j.id FROM job j JOIN job_state s ON s.id = j.id \
    WHERE j.parent = $1 AND s.completed_at IS NULL ORDER BY j.id";

pub(in crate::ledger::sql) async fn open_children(
    link: &mut Link,
    parent: &JobId,
) -> Result<Vec<JobId>, Trouble> {
    let args = link.args().with_text(parent.as_str());
    ids(link.fetch(OPEN_CHILDREN, args).await?)
}

pub(in crate::ledger::sql) const CHILD_BY_KEY: &str =
    "SELECT id FROM job WHERE parent = $1 AND child_key = $2";

pub(in crate::ledger::sql) async fn child_by_key(
    link: &mut Link,
    parent: &JobId,
    child_key: &str,
) -> Result<Option<JobId>, Trouble> {
    let args = link.args().with_text(parent.as_str()).with_text(child_key);
    let found = link.fetch(CHILD_BY_KEY, args).await?;
    Ok(ids(found)?.pop())
}

pub(in crate::ledger::sql) const BY_UNIQUE_KEY: &str = "\
    SELECT job FROM job_unique WHERE workspace = $1 AND function = $2 \
    AND unique_key = $3";

pub(in crate::ledger::sql) async fn by_unique_key(
    link: &mut Link,
    workspace: &str,
    function: &str,
    unique_key: &str,
) -> Result<Option<JobId>, Trouble> {
    let args = link.args().with_text(workspace).with_text(function).with_text(unique_key);
    let found = link.fetch(BY_UNIQUE_KEY, args).await?;
    Ok(ids(found)?.pop())
}

pub(in crate::ledger::sql) const OPEN: &str = "\
    SELECT count(*) FROM job_state WHERE status IN ('SUBMITTED', 'PENDING', 'RUNNING')";

pub(in crate::ledger::sql) async fn open(link: &mut Link) -> Result<u64, Trouble> {
    let args = link.args();
    let count = link.number(OPEN, args).await?;
    Ok(count as u64)
}

pub(in crate::ledger::sql) async fn counts(link: &mut Link) -> Result<JobCounts, Trouble> {
    let args = link.args();
    let found = link.fetch("SELECT status, count(*) FROM job_state GROUP BY status", args).await?;
    let mut counts = JobCounts::default();
    for record in &found {
        let mut cells = record.cells();
        let status = cells.parsed("status", JobStatus::named)?;
        counts.by_status.insert(status, cells.count()?);
    }
    Ok(counts)
}

pub(in crate::ledger::sql) const PRUNABLE: &str = "\
    SELECT s.id FROM job_state s JOIN job j ON j.id = s.id \
    WHERE s.completed_at IS NOT NULL AND s.completed_at < $1 AND NOT EXISTS \
    (SELECT 1 FROM job_state p WHERE p.id = j.parent AND p.completed_at IS NULL) \
    ORDER BY s.completed_at, s.id LIMIT $2";

pub(in crate::ledger::sql) async fn prunable(
    link: &mut Link,
    before: Millis,
    limit: usize,
) -> Result<Vec<JobId>, Trouble> {
    let args = link.args().with_int(before).with_int(limit as i64);
    ids(link.fetch(PRUNABLE, args).await?)
}

pub(in crate::ledger::sql) fn ids(records: Vec<Record>) -> Result<Vec<JobId>, Trouble> {
    records.iter().map(|record| job_id(&mut record.cells())).collect()
}
