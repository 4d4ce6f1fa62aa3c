//! Tasks, the small hot table, and the queues that hold them back.

use crate::clock::timestamp;
use crate::ledger::id::JobId;
use crate::ledger::job::Queue;
use crate::ledger::row::{Millis, QueueRow, Task};
use crate::sql::{Again, Link, Record, Sink, Stored, Table, Trouble};

use super::job::ids;
use super::job_id;
use super::query::Query;

/// A task, and whether its job may still be SUBMITTED.
#[derive(Debug)]
pub(super) struct Held<'a> {
    pub task: &'a Task,
    pub held: bool,
}

impl Stored for Held<'_> {
    const TABLE: Table = Table {
        name: "task",
        columns: &[
            "job",
            "pool",
            "queue",
            "workers",
            "priority",
            "run_at",
            "concurrency_key",
            "concurrency_limit",
            "attempt",
            "fence",
            "node",
            "gang",
            "held",
        ],
        key: 1,
        again: Again::Replaced,
    };

    fn fields(&self, to: &mut impl Sink) {
        let task = self.task;
        to.text(task.job.as_str());
        to.text(&task.pool);
        to.text(&task.queue);
        to.int(task.workers.into());
        to.int(task.priority.into());
        to.int(task.run_at);
        to.maybe_text(task.concurrency_key.as_deref());
        to.int(task.concurrency_limit.into());
        to.int(task.attempt.into());
        to.int(task.fence as i64);
        to.maybe_text(task.node.as_deref());
        to.flag(task.workers > 1);
        to.flag(self.held);
    }
}

impl Stored for QueueRow {
    const TABLE: Table =
        Table { name: "queue", columns: &["name", "paused_at"], key: 1, again: Again::Replaced };

    fn fields(&self, to: &mut impl Sink) {
        to.text(&self.name);
        to.maybe_int(self.paused_at);
    }
}

fn task(record: &Record) -> Result<Task, Trouble> {
    let mut cells = record.cells();
    Ok(Task {
        job: job_id(&mut cells)?,
        pool: cells.string()?,
        queue: cells.string()?,
        workers: cells.count()?,
        priority: cells.count()?,
        run_at: cells.int()?,
        concurrency_key: cells.maybe_string()?,
        concurrency_limit: cells.count()?,
        attempt: cells.count()?,
        fence: cells.count()?,
        node: cells.maybe_string()?,
    })
}

fn tasks() -> Query {
    Query::of("SELECT ").columns("t", &Held::TABLE).with(" FROM task t")
}

pub(super) async fn by_job(link: &mut Link, id: &JobId) -> Result<Option<Task>, Trouble> {
    let args = link.args().with_text(id.as_str());
    let found = link.fetch_first(tasks().with(" WHERE t.job = $1"), args).await?;
    found.as_ref().map(task).transpose()
}

/// What a task must be, beside ready, to be claimed.
const FREE: &str = "\
    t.run_at <= $3 \
    AND NOT EXISTS (SELECT 1 FROM queue q WHERE q.name = t.queue AND q.paused_at IS NOT NULL) \
    AND (t.concurrency_key IS NULL OR t.concurrency_limit > (SELECT count(*) FROM task c \
    WHERE c.concurrency_key = t.concurrency_key AND c.node IS NOT NULL \
    AND c.concurrency_key IS NOT NULL))";

/// Those whose time has come just now may not have been told so yet, and are asked for apart: there
/// are few of them.
pub(super) fn ready_query() -> Query {
    let half = |held: &str| {
        Query::of("SELECT * FROM (")
            .with(tasks().text())
            .with(" WHERE t.node IS NULL AND t.held = ")
            .with(held)
            .with(" AND t.pool = $1 AND t.gang = $2 AND ")
            .with(FREE)
            .with(" ORDER BY t.priority DESC, t.run_at, t.job LIMIT $4) AS held_")
            .with(held)
    };
    half("0")
        .with(" UNION ALL ")
        .with(half("1").text())
        .with(" ORDER BY priority DESC, run_at, job LIMIT $4")
}

pub(super) async fn ready(
    link: &mut Link,
    pool: &str,
    now: Millis,
    gangs: bool,
    limit: usize,
) -> Result<Vec<Task>, Trouble> {
    let mut args = link.args().with_text(pool);
    args.flag(gangs);
    let args = args.with_int(now).with_int(limit as i64);
    link.fetch(ready_query(), args).await?.iter().map(task).collect()
}

pub(super) const READY_POOLS: &str = "\
    SELECT DISTINCT pool FROM task \
    WHERE node IS NULL AND run_at > $1 AND run_at <= $2 ORDER BY pool";

pub(super) async fn ready_pools(
    link: &mut Link,
    since: Millis,
    now: Millis,
) -> Result<Vec<String>, Trouble> {
    let args = link.args().with_int(since).with_int(now);
    let found = link.fetch(READY_POOLS, args).await?;
    found.iter().map(|record| record.cells().string()).collect()
}

pub(super) const RUNNING_WITH: &str = "\
    SELECT count(*) FROM task WHERE concurrency_key = $1 AND node IS NOT NULL \
    AND concurrency_key IS NOT NULL";

pub(super) async fn running_with(link: &mut Link, concurrency_key: &str) -> Result<u32, Trouble> {
    let args = link.args().with_text(concurrency_key);
    let count = link.number(RUNNING_WITH, args).await?;
    Ok(count as u32)
}

pub(super) const DUE: &str = "\
    SELECT t.job FROM task t JOIN job_state s ON s.id = t.job \
    WHERE t.node IS NULL AND t.held = 1 AND t.run_at <= $1 AND s.status = 'SUBMITTED' \
    ORDER BY t.run_at LIMIT $2";

pub(super) async fn due(link: &mut Link, now: Millis, limit: usize) -> Result<Vec<JobId>, Trouble> {
    let args = link.args().with_int(now).with_int(limit as i64);
    ids(link.fetch(DUE, args).await?)
}

pub(super) const NEXT_DUE: &str = "\
    SELECT min(run_at) FROM task WHERE node IS NULL AND run_at > $1 \
    UNION ALL \
    SELECT min(deadline) FROM job_state WHERE deadline IS NOT NULL \
    AND completed_at IS NULL AND cancel_at IS NULL AND deadline > $1 \
    UNION ALL \
    SELECT min(next_at) FROM schedule WHERE next_at IS NOT NULL AND next_at > $1";

/// Each of the three is the first entry of an index.
pub(super) async fn next_due(link: &mut Link, now: Millis) -> Result<Option<Millis>, Trouble> {
    let args = link.args().with_int(now);
    let found = link.fetch(NEXT_DUE, args).await?;
    let mut earliest = None;
    for record in &found {
        let at = record.cells().maybe_int()?;
        earliest = [earliest, at].into_iter().flatten().min();
    }
    Ok(earliest)
}

/// Asked once, by a server that begins: it may look at all of them.
pub(super) async fn claimed_elsewhere(
    link: &mut Link,
    node: &str,
    limit: usize,
) -> Result<Vec<Task>, Trouble> {
    let args = link.args().with_text(node).with_int(limit as i64);
    let query = tasks().with(" WHERE t.node IS NOT NULL AND t.node <> $1 ORDER BY t.job LIMIT $2");
    link.fetch(query, args).await?.iter().map(task).collect()
}

pub(super) const QUEUE: &str = "SELECT name, paused_at FROM queue WHERE name = $1";

pub(super) async fn queue(link: &mut Link, name: &str) -> Result<Option<QueueRow>, Trouble> {
    let args = link.args().with_text(name);
    let found = link.fetch_first(QUEUE, args).await?;
    let Some(record) = found else { return Ok(None) };
    let mut cells = record.cells();
    Ok(Some(QueueRow { name: cells.string()?, paused_at: cells.maybe_int()? }))
}

pub(super) const QUEUES: &str = "\
    WITH open AS (SELECT j.queue AS name, \
    count(CASE WHEN s.status = 'RUNNING' THEN 1 END) AS running, count(*) AS every \
    FROM job_state s JOIN job j ON j.id = s.id \
    WHERE s.status IN ('SUBMITTED', 'PENDING', 'RUNNING') GROUP BY j.queue) \
    SELECT o.name, q.paused_at, o.every - o.running, o.running \
    FROM open o LEFT JOIN queue q ON q.name = o.name \
    UNION ALL \
    SELECT q.name, q.paused_at, 0, 0 FROM queue q \
    WHERE q.paused_at IS NOT NULL AND q.name NOT IN (SELECT name FROM open) \
    ORDER BY 1";

pub(super) async fn queues(link: &mut Link) -> Result<Vec<Queue>, Trouble> {
    let args = link.args();
    let found = link.fetch(QUEUES, args).await?;
    found.iter().map(shown).collect()
}

fn shown(record: &Record) -> Result<Queue, Trouble> {
    let mut cells = record.cells();
    Ok(Queue {
        name: cells.string()?,
        paused_at: cells.maybe_int()?.map(timestamp),
        waiting: cells.count()?,
        running: cells.count()?,
    })
}
