//! What is added and hardly ever changed: attempts, transitions, the lines of a job's story.

use crate::ledger::audit::Entity;
use crate::ledger::id::JobId;
use crate::ledger::row::{AttemptRow, EventRow, TransitionRow};
use crate::sql::{Again, Link, Record, Sink, Stored, Table, Trouble, checked};

use super::job_id;
use super::query::Query;

impl Stored for AttemptRow {
    const TABLE: Table = Table {
        name: "attempt",
        columns: &[
            "job",
            "attempt",
            "fence",
            "node",
            "workers",
            "started_at",
            "ended_at",
            "outcome",
            "error",
        ],
        key: 2,
        again: Again::Replaced,
    };

    fn fields(&self, to: &mut impl Sink) {
        to.text(self.job.as_str());
        to.int(self.attempt.into());
        to.int(self.fence as i64);
        to.text(&self.node);
        to.text(&self.workers);
        to.int(self.started_at);
        to.maybe_int(self.ended_at);
        to.maybe_text(self.outcome.as_deref());
        to.maybe_text(self.error.as_deref());
    }
}

impl Stored for TransitionRow {
    const TABLE: Table = Table {
        name: "transition",
        columns: &[
            "entity",
            "id",
            "seq",
            "from_state",
            "to_state",
            "cause",
            "reason",
            "actor",
            "node",
            "request_id",
            "at",
            "checksum",
        ],
        key: 3,
        again: Again::Refused,
    };

    fn fields(&self, to: &mut impl Sink) {
        to.text(self.entity.name());
        to.text(&self.id);
        to.int(self.seq as i64);
        to.maybe_text(self.from.as_deref());
        to.text(&self.to);
        to.text(&self.trigger);
        to.maybe_text(self.reason.as_deref());
        to.text(&self.actor);
        to.text(&self.node);
        to.maybe_text(self.request_id.as_deref());
        to.int(self.at);
    }
}

impl Stored for EventRow {
    const TABLE: Table = Table {
        name: "job_event",
        columns: &["job", "seq", "kind", "data", "at"],
        key: 2,
        again: Again::Refused,
    };

    fn fields(&self, to: &mut impl Sink) {
        to.text(self.job.as_str());
        to.int(self.seq as i64);
        to.text(&self.kind);
        to.text(&self.data);
        to.int(self.at);
    }
}

pub(super) async fn attempts(link: &mut Link, id: &JobId) -> Result<Vec<AttemptRow>, Trouble> {
    let args = link.args().with_text(id.as_str());
    let query = Query::of("SELECT ").columns("a", &AttemptRow::TABLE);
    let query = query.with(" FROM attempt a WHERE a.job = $1 ORDER BY a.attempt");
    link.fetch(query, args).await?.iter().map(attempt).collect()
}

fn attempt(record: &Record) -> Result<AttemptRow, Trouble> {
    let mut cells = record.cells();
    Ok(AttemptRow {
        job: job_id(&mut cells)?,
        attempt: cells.count()?,
        fence: cells.count()?,
        node: cells.string()?,
        workers: cells.string()?,
        started_at: cells.int()?,
        ended_at: cells.maybe_int()?,
        outcome: cells.maybe_string()?,
        error: cells.maybe_string()?,
    })
}

pub(super) const EVENTS: &str = "\
    SELECT job, seq, kind, data, at FROM job_event \
    WHERE job = $1 AND seq > $2 ORDER BY seq LIMIT $3";

pub(super) async fn events(
    link: &mut Link,
    id: &JobId,
    after: u64,
    limit: usize,
) -> Result<Vec<EventRow>, Trouble> {
    let args = link.args().with_text(id.as_str()).with_int(after as i64).with_int(limit as i64);
    let found = link.fetch(EVENTS, args).await?;
    found.iter().map(event).collect()
}

fn event(record: &Record) -> Result<EventRow, Trouble> {
    let mut cells = record.cells();
    Ok(EventRow {
        job: job_id(&mut cells)?,
        seq: cells.count()?,
        kind: cells.string()?,
        data: cells.string()?,
        at: cells.int()?,
    })
}

pub(super) async fn transitions(
    link: &mut Link,
    entity: Entity,
    id: &str,
    after: u64,
    limit: usize,
) -> Result<Vec<TransitionRow>, Trouble> {
    let args = link.args().with_text(entity.name()).with_text(id);
    let args = args.with_int(after as i64).with_int(limit as i64);
    let query = Query::of("SELECT ").columns("t", &TransitionRow::TABLE).with(
        " FROM transition t WHERE t.entity = $1 AND t.id = $2 AND t.seq > $3 \
         ORDER BY t.seq LIMIT $4",
    );
    link.fetch(query, args).await?.iter().map(|record| transition(record, entity)).collect()
}

fn transition(record: &Record, entity: Entity) -> Result<TransitionRow, Trouble> {
    let mut cells = record.cells();
    cells.text()?;
    let row = TransitionRow {
        entity,
        id: cells.string()?,
        seq: cells.count()?,
        from: cells.maybe_string()?,
        to: cells.string()?,
        trigger: cells.string()?,
        reason: cells.maybe_string()?,
        actor: cells.string()?,
        node: cells.string()?,
        request_id: cells.maybe_string()?,
        at: cells.int()?,
    };
    checked(row, &mut cells)
}

pub(super) const JOBS: &str = "\
    SELECT id FROM (SELECT id FROM (SELECT id FROM job WHERE id > $1 ORDER BY id LIMIT $2) AS a \
    UNION SELECT id FROM (SELECT id FROM job_state WHERE id > $1 ORDER BY id LIMIT $2) AS b \
    UNION SELECT id FROM (SELECT DISTINCT id FROM transition WHERE entity = $3 AND id > $1 \
    ORDER BY id LIMIT $2) AS c) AS every ORDER BY id LIMIT $2";

pub(super) const WORKERS: &str = "\
    SELECT id FROM (SELECT id FROM (SELECT id FROM worker WHERE id > $1 ORDER BY id LIMIT $2) \
    AS a UNION SELECT id FROM (SELECT DISTINCT id FROM transition WHERE entity = $3 AND id > $1 \
    ORDER BY id LIMIT $2) AS c) AS every ORDER BY id LIMIT $2";

/// Those with a row, and those of which only a trail is left.
pub(super) async fn entities(
    link: &mut Link,
    entity: Entity,
    after: &str,
    limit: usize,
) -> Result<Vec<String>, Trouble> {
    let args = link.args().with_text(after).with_int(limit as i64).with_text(entity.name());
    let sql = match entity {
        Entity::Job => JOBS,
        Entity::Worker => WORKERS,
    };
    let found = link.fetch(sql, args).await?;
    found.iter().map(|record| record.cells().string()).collect()
}
