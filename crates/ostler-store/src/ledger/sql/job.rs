//! Jobs as rows: what never changes (`job`, with `job_tag` and `job_unique` to search by), what does
//! (`job_state`), and what came of it (`job_result`).

use ostler_core::JobStatus;

use crate::ledger::id::JobId;
use crate::ledger::job::{JobCounts, JobFilter};
use crate::ledger::row::{JobFacts, JobResult, JobState, Millis};
use crate::sql::{Again, Cells, Link, Record, Sink, Stored, Table, Trouble, checked};

use super::job_id;
use super::query::Query;

impl Stored for JobFacts {
    const TABLE: Table = Table {
        name: "job",
        columns: &[
            "id",
            "workspace",
            "queue",
            "pool",
            "function",
            "parent",
            "root",
            "depth",
            "child_key",
            "unique_key",
            "schedule",
            "retry_of",
            "spec",
            "tags",
            "payload_type",
            "payload",
            "created_at",
            "checksum",
        ],
        key: 1,
        again: Again::Refused,
    };

    fn fields(&self, to: &mut impl Sink) {
        to.text(self.id.as_str());
        to.text(&self.workspace);
        to.text(&self.queue);
        to.text(&self.pool);
        to.text(&self.function);
        to.maybe_text(self.parent.as_ref().map(JobId::as_str));
        to.text(self.root.as_str());
        to.int(self.depth.into());
        to.maybe_text(self.child_key.as_deref());
        to.maybe_text(self.unique_key.as_deref());
        to.maybe_text(self.schedule.as_ref().map(|id| id.as_str()));
        to.maybe_text(self.retry_of.as_ref().map(JobId::as_str));
        to.text(&self.spec);
        to.text(&serde_json::to_string(&self.tags).expect("texts are JSON"));
        to.text(&self.payload_type);
        to.bytes(&self.payload);
        to.int(self.created_at);
    }
}

/// A tag of a job.
#[derive(Debug)]
pub(super) struct Tag<'a>(pub &'a JobId, pub &'a str, pub &'a str);

impl Stored for Tag<'_> {
    const TABLE: Table = Table {
        name: "job_tag",
        columns: &["job", "name", "value"],
        key: 2,
        again: Again::Refused,
    };

    fn fields(&self, to: &mut impl Sink) {
        to.text(self.0.as_str());
        to.text(self.1);
        to.text(self.2);
    }
}

/// The unique key of a job without an end.
#[derive(Debug)]
pub(super) struct Unique<'a>(pub &'a JobFacts, pub &'a str);

impl Stored for Unique<'_> {
    const TABLE: Table = Table {
        name: "job_unique",
        columns: &["workspace", "function", "unique_key", "job"],
        key: 3,
        again: Again::Refused,
    };

    fn fields(&self, to: &mut impl Sink) {
        to.text(&self.0.workspace);
        to.text(&self.0.function);
        to.text(self.1);
        to.text(self.0.id.as_str());
    }
}

impl Stored for JobState {
    const TABLE: Table = Table {
        name: "job_state",
        columns: &[
            "id",
            "status",
            "attempt",
            "waiting",
            "open_children",
            "child_error",
            "cancel_at",
            "cancel_reason",
            "cancel_by",
            "cancel_note",
            "cancel_request",
            "progress",
            "error",
            "reason",
            "version",
            "seq",
            "event_seq",
            "events_dropped",
            "started_at",
            "completed_at",
            "deadline",
            "checksum",
        ],
        key: 1,
        again: Again::Replaced,
    };

    fn fields(&self, to: &mut impl Sink) {
        to.text(self.id.as_str());
        to.text(self.status.name());
        to.int(self.attempt.into());
        to.flag(self.waiting);
        to.int(self.open_children.into());
        to.maybe_text(self.child_error.as_deref());
        to.maybe_int(self.cancel_at);
        to.maybe_text(self.cancel_reason.as_deref());
        to.maybe_text(self.cancel_by.as_deref());
        to.maybe_text(self.cancel_note.as_deref());
        to.maybe_text(self.cancel_request.as_deref());
        to.maybe_text(self.progress.as_deref());
        to.maybe_text(self.error.as_deref());
        to.maybe_text(self.reason.as_deref());
        to.int(self.version as i64);
        to.int(self.seq as i64);
        to.int(self.event_seq as i64);
        to.int(self.events_dropped as i64);
        to.maybe_int(self.started_at);
        to.maybe_int(self.completed_at);
        to.maybe_int(self.deadline);
    }
}

impl Stored for JobResult {
    const TABLE: Table = Table {
        name: "job_result",
        columns: &["id", "content_type", "data", "checksum"],
        key: 1,
        again: Again::Refused,
    };

    fn fields(&self, to: &mut impl Sink) {
        to.text(self.id.as_str());
        to.text(&self.content_type);
        to.bytes(&self.bytes);
    }
}

fn facts(cells: &mut Cells<'_>) -> Result<JobFacts, Trouble> {
    let facts = JobFacts {
        id: job_id(cells)?,
        workspace: cells.string()?,
        queue: cells.string()?,
        pool: cells.string()?,
        function: cells.string()?,
        parent: cells.maybe_parsed("job", |id| id.parse().ok())?,
        root: job_id(cells)?,
        depth: cells.count()?,
        child_key: cells.maybe_string()?,
        unique_key: cells.maybe_string()?,
        schedule: cells.maybe_parsed("schedule", |id| id.parse().ok())?,
        retry_of: cells.maybe_parsed("job", |id| id.parse().ok())?,
        spec: cells.string()?,
        tags: cells.parsed("list of tags", |tags| serde_json::from_str(tags).ok())?,
        payload_type: cells.string()?,
        payload: cells.bytes()?.into(),
        created_at: cells.int()?,
    };
    checked(facts, cells)
}

fn state(cells: &mut Cells<'_>) -> Result<JobState, Trouble> {
    let state = JobState {
        id: job_id(cells)?,
        status: cells.parsed("status", JobStatus::named)?,
        attempt: cells.count()?,
        waiting: cells.flag()?,
        open_children: cells.count()?,
        child_error: cells.maybe_string()?,
        cancel_at: cells.maybe_int()?,
        cancel_reason: cells.maybe_string()?,
        cancel_by: cells.maybe_string()?,
        cancel_note: cells.maybe_string()?,
        cancel_request: cells.maybe_string()?,
        progress: cells.maybe_string()?,
        error: cells.maybe_string()?,
        reason: cells.maybe_string()?,
        version: cells.count()?,
        seq: cells.count()?,
        event_seq: cells.count()?,
        events_dropped: cells.count()?,
        started_at: cells.maybe_int()?,
        completed_at: cells.maybe_int()?,
        deadline: cells.maybe_int()?,
    };
    checked(state, cells)
}

fn both(record: &Record) -> Result<(JobFacts, JobState), Trouble> {
    let mut cells = record.cells();
    Ok((facts(&mut cells)?, state(&mut cells)?))
}

/// With all columns of both, in order.
fn jobs() -> Query {
    Query::of("SELECT ")
        .columns("j", &JobFacts::TABLE)
        .with(", ")
        .columns("s", &JobState::TABLE)
        .with(" FROM job j JOIN job_state s ON s.id = j.id")
}

pub(super) async fn by_id(
    link: &mut Link,
    id: &JobId,
) -> Result<Option<(JobFacts, JobState)>, Trouble> {
    let args = link.args().with_text(id.as_str());
    let found = link.fetch_first(jobs().with(" WHERE j.id = $1"), args).await?;
    found.as_ref().map(both).transpose()
}

pub(super) async fn by_ids(
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

pub(super) async fn result(link: &mut Link, id: &JobId) -> Result<Option<JobResult>, Trouble> {
    let args = link.args().with_text(id.as_str());
    let query = Query::of("SELECT ").columns("r", &JobResult::TABLE);
    let found = link.fetch_first(query.with(" FROM job_result r WHERE r.id = $1"), args).await?;
    let Some(record) = found else { return Ok(None) };
    let mut cells = record.cells();
    let result = JobResult {
        id: job_id(&mut cells)?,
        content_type: cells.string()?,
        bytes: cells.bytes()?.into(),
    };
    checked(result, &mut cells).map(Some)
}

/// A row that is damaged does not hide the others: it is left out, and the log says so.
pub(super) async fn list(
    link: &mut Link,
    filter: &JobFilter,
    limit: usize,
) -> Result<Vec<(JobFacts, JobState)>, Trouble> {
    let mut args = link.args();
    let mut query = jobs().with(" WHERE true");
    let mut given = 0;
    let mut also = |query: Query, sql: &str, value: &str| {
        args.text(value);
        given += 1;
        query.with(&sql.replace("$_", &format!("${given}")))
    };
    for (column, value) in [
        ("workspace", filter.workspace.as_deref()),
        ("queue", filter.queue.as_deref()),
        ("pool", filter.pool.as_deref()),
        ("function", filter.function.as_deref()),
        ("parent", filter.parent.as_ref().map(JobId::as_str)),
        ("schedule", filter.schedule.as_ref().map(|id| id.as_str())),
    ] {
        if let Some(value) = value {
            query = also(query, &format!(" AND j.{column} = $_"), value);
        }
    }
    if let Some(status) = filter.status {
        query = also(query, " AND s.status = $_", status.name());
    }
    if let Some(root) = &filter.root {
        // Roots are not in the index of those that have one.
        const FAMILY: &str = " AND j.id IN (SELECT id FROM job WHERE id = $_ UNION ALL \
             SELECT id FROM job WHERE root = $_ AND parent IS NOT NULL)";
        query = also(query, FAMILY, root.as_str());
    }
    if let Some((name, value)) = &filter.tag {
        query = also(query, " AND j.id IN (SELECT job FROM job_tag WHERE name = $_", name);
        query = also(query, " AND value = $_)", value);
    }
    if let Some(before) = &filter.before {
        query = also(query, " AND j.id < $_", before.as_str());
    }
    args.int(limit as i64);
    let query = query.with(&format!(" ORDER BY j.id DESC LIMIT ${}", given + 1));
    let records = link.fetch(query, args).await?;
    Ok(records.iter().filter_map(whole).collect())
}

fn whole(record: &Record) -> Option<(JobFacts, JobState)> {
    let read = both(record);
    let id = record.cells().string().unwrap_or_default();
    read.inspect_err(|error| tracing::error!(id, %error, "a job is damaged in the store")).ok()
}

pub(super) async fn overdue(
    link: &mut Link,
    now: Millis,
    limit: usize,
) -> Result<Vec<JobId>, Trouble> {
    let args = link.args().with_int(now).with_int(limit as i64);
    ids(link
        .fetch(
            "SELECT id FROM job_state WHERE deadline IS NOT NULL AND completed_at IS NULL \
             AND cancel_at IS NULL AND deadline <= $1 ORDER BY deadline LIMIT $2",
            args,
        )
        .await?)
}

pub(super) async fn open_children(link: &mut Link, parent: &JobId) -> Result<Vec<JobId>, Trouble> {
    let args = link.args().with_text(parent.as_str());
    ids(link
        .fetch(
            "SELECT j.id FROM job j JOIN job_state s ON s.id = j.id \
             WHERE j.parent = $1 AND s.completed_at IS NULL ORDER BY j.id",
            args,
        )
        .await?)
}

pub(super) async fn child_by_key(
    link: &mut Link,
    parent: &JobId,
    child_key: &str,
) -> Result<Option<JobId>, Trouble> {
    let args = link.args().with_text(parent.as_str()).with_text(child_key);
    let found = link.fetch("SELECT id FROM job WHERE parent = $1 AND child_key = $2", args).await?;
    Ok(ids(found)?.pop())
}

pub(super) async fn by_unique_key(
    link: &mut Link,
    workspace: &str,
    function: &str,
    unique_key: &str,
) -> Result<Option<JobId>, Trouble> {
    let args = link.args().with_text(workspace).with_text(function).with_text(unique_key);
    let found = link
        .fetch(
            "SELECT job FROM job_unique WHERE workspace = $1 AND function = $2 \
             AND unique_key = $3",
            args,
        )
        .await?;
    Ok(ids(found)?.pop())
}

pub(super) async fn open(link: &mut Link) -> Result<u64, Trouble> {
    let args = link.args();
    let count = link
        .number(
            "SELECT count(*) FROM job_state WHERE status IN ('SUBMITTED', 'PENDING', 'RUNNING')",
            args,
        )
        .await?;
    Ok(count as u64)
}

pub(super) async fn counts(link: &mut Link) -> Result<JobCounts, Trouble> {
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

pub(super) async fn prunable(
    link: &mut Link,
    before: Millis,
    limit: usize,
) -> Result<Vec<JobId>, Trouble> {
    let args = link.args().with_int(before).with_int(limit as i64);
    ids(link
        .fetch(
            "SELECT s.id FROM job_state s JOIN job j ON j.id = s.id \
             WHERE s.completed_at IS NOT NULL AND s.completed_at < $1 AND NOT EXISTS \
             (SELECT 1 FROM job_state p WHERE p.id = j.parent AND p.completed_at IS NULL) \
             ORDER BY s.completed_at, s.id LIMIT $2",
            args,
        )
        .await?)
}

pub(super) fn ids(records: Vec<Record>) -> Result<Vec<JobId>, Trouble> {
    records.iter().map(|record| job_id(&mut record.cells())).collect()
}
