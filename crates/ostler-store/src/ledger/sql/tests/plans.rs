//! How SQLite means to answer what is asked often: by an index, never by going through a table.

use sqlx::SqlSafeStr;
use tempfile::TempDir;

use crate::ledger::job::JobFilter;
use crate::ledger::row::{AttemptRow, KeyRow, TransitionRow};
use crate::ledger::sql::query::Query;
use crate::ledger::sql::{Sql, job, key, schedule, task, trail, worker};
use crate::sql::{Door, Stored};

fn all_of<T: Stored>(rest: &str) -> String {
    let name = T::TABLE.name;
    let query = Query::of("SELECT ").columns("t", &T::TABLE);
    query.with(&format!(" FROM {name} t {rest}")).text().to_owned()
}

/// Asked with every submission, claim, end, or second.
fn hot() -> Vec<String> {
    let constant = [
        job::OVERDUE,
        job::OPEN_CHILDREN,
        job::CHILD_BY_KEY,
        job::BY_UNIQUE_KEY,
        job::OPEN,
        job::PRUNABLE,
        task::READY_POOLS,
        task::RUNNING_WITH,
        task::DUE,
        task::NEXT_DUE,
        task::QUEUE,
        trail::EVENTS,
        trail::JOBS,
        trail::WORKERS,
        worker::PRUNABLE,
        key::EXPIRED,
    ];
    let mut hot = constant.map(str::to_owned).to_vec();
    hot.extend([
        task::ready_query().text().to_owned(),
        job::jobs().with(" WHERE j.id = $1").text().to_owned(),
        job::jobs().with(" WHERE j.id IN ($1, $2)").text().to_owned(),
        all_of::<AttemptRow>("WHERE t.job = $1 ORDER BY t.attempt"),
        all_of::<TransitionRow>("WHERE t.entity = $1 AND t.id = $2 AND t.seq > $3 ORDER BY t.seq"),
        all_of::<KeyRow>("WHERE t.caller = $1 AND t.route = $2 AND t.key = $3"),
    ]);
    for which in [schedule::BY_ID, schedule::NAMED, schedule::DUE] {
        hot.push(format!("SELECT s.id FROM schedule s {which}"));
    }
    for which in [worker::BY_ID, worker::LAST_NAMED, worker::OPEN_OF_POOL] {
        hot.push(format!("SELECT w.id FROM worker w {which}"));
    }
    hot
}

fn text(value: &str) -> Option<String> {
    Some(value.to_owned())
}

/// Lists that select by one thing.
fn lists() -> Vec<JobFilter> {
    let id = crate::ledger::id::JobId::fresh;
    let all = JobFilter::default;
    vec![
        JobFilter { workspace: text("w"), ..all() },
        JobFilter { queue: text("q"), ..all() },
        JobFilter { pool: text("p"), ..all() },
        JobFilter { function: text("f"), ..all() },
        JobFilter { status: Some(ostler_core::JobStatus::Failed), ..all() },
        JobFilter { parent: Some(id()), ..all() },
        JobFilter { schedule: Some(crate::ledger::id::ScheduleId::fresh()), ..all() },
        JobFilter { root: Some(id()), ..all() },
        JobFilter { tag: Some(("colour".to_owned(), "red".to_owned())), ..all() },
        JobFilter { before: Some(id()), ..all() },
    ]
}

async fn plan(sql: &mut Sql, question: &str) -> Vec<String> {
    let link = sql.raw();
    let query = Query::of("EXPLAIN QUERY PLAN ").with(question).into_sql_str();
    let args = link.args();
    let steps = link.fetch(query, args).await.unwrap();
    let detail = |record: &crate::sql::Record| {
        let mut cells = record.cells();
        (0..3).for_each(|_| drop(cells.int()));
        cells.string().unwrap()
    };
    steps.iter().map(detail).collect()
}

/// What a part of the question itself has found is gone through; a table is not.
const FOUND: [&str; 6] = ["held_0", "held_1", "every", "a", "b", "c"];

async fn scans(sql: &mut Sql, question: &str) -> bool {
    let plan = plan(sql, question).await;
    assert!(!plan.is_empty(), "{question}");
    plan.iter().any(|step| {
        let scanned = step.strip_prefix("SCAN ");
        scanned.is_some_and(|scanned| !FOUND.contains(&scanned))
    })
}

#[tokio::test]
async fn what_is_asked_often_is_found_by_an_index() {
    let directory = TempDir::new().unwrap();
    let door = Door::to_file(&directory.path().join("ostler.db")).await.unwrap();
    let mut sql = Sql::open(door).await.unwrap();
    assert!(scans(&mut sql, "SELECT job FROM job_event WHERE kind = 'log'").await, "it tells");
    for question in hot() {
        assert!(!scans(&mut sql, &question).await, "{question}");
    }
    for filter in lists() {
        let args = sql.raw().args();
        let question = job::fitting(&filter, args).0.text().to_owned();
        assert!(!scans(&mut sql, &question).await, "{question}");
    }
}
