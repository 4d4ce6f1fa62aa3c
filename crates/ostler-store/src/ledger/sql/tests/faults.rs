//! Disks and files that fail. What was refused left nothing behind, what was committed is there, and
//! the next transaction works as soon as it can.

use std::path::Path;

use sqlx::SqlSafeStr;
use tempfile::TempDir;

use super::rows::{NOW, result, submitted};
use crate::error::OpenError;
use crate::ledger::backend::{Backend, Failed, Reads};
use crate::ledger::id::JobId;
use crate::ledger::row::Row;
use crate::ledger::sql::Sql;
use crate::sql::Door;

async fn open(path: &Path) -> Sql {
    Sql::open(Door::to_file(path).await.unwrap()).await.unwrap()
}

async fn try_open(path: &Path) -> Result<Sql, OpenError> {
    Sql::open(Door::to_file(path).await?).await
}

fn place() -> (TempDir, std::path::PathBuf) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("ostler.db");
    (directory, path)
}

async fn script(sql: &mut Sql, text: &'static str) {
    sql.raw().script(text.into_sql_str()).await.unwrap();
}

/// One transaction, rolled back if it fails, as the clerk does.
async fn commit(sql: &mut Sql, rows: Vec<Row>) -> Result<(), Failed> {
    let done = async {
        sql.begin().await?;
        sql.write(rows).await?;
        sql.commit().await
    };
    let done = done.await;
    if done.is_err() {
        sql.rollback().await.unwrap();
    }
    done
}

async fn there(sql: &mut Sql, id: &JobId) -> bool {
    sql.job(id).await.unwrap().is_some()
}

async fn close(sql: Sql) {
    Box::new(sql).close().await;
}

#[tokio::test]
async fn a_full_disk_refuses_what_does_not_fit_and_takes_the_rest() {
    let (_directory, path) = place();
    let mut sql = open(&path).await;
    script(&mut sql, "PRAGMA max_page_count = 150").await;
    let (large, small) = (JobId::fresh(), JobId::fresh());
    let mut rows = submitted(&large, NOW);
    rows.push(result(&large, 1_000_000));
    let failed = commit(&mut sql, rows).await.unwrap_err();
    assert!(failed.full && failed.of_rows && !failed.doubtful, "{failed:?}");
    assert!(failed.reason.contains("make room"), "{}", failed.reason);
    commit(&mut sql, submitted(&small, NOW)).await.unwrap();
    assert!(!there(&mut sql, &large).await && there(&mut sql, &small).await);
    close(sql).await;

    let mut again = open(&path).await;
    assert!(!there(&mut again, &large).await && there(&mut again, &small).await);
    close(again).await;
}

#[tokio::test]
async fn a_store_that_may_only_be_read_says_so_and_is_read() {
    let (_directory, path) = place();
    let mut sql = open(&path).await;
    let id = JobId::fresh();
    commit(&mut sql, submitted(&id, NOW)).await.unwrap();
    script(&mut sql, "PRAGMA query_only = ON").await;
    let failed = commit(&mut sql, submitted(&JobId::fresh(), NOW)).await.unwrap_err();
    assert!(!failed.full && !failed.of_rows && !failed.doubtful, "{failed:?}");
    assert!(failed.reason.contains("may only be read"), "{}", failed.reason);
    assert!(there(&mut sql, &id).await);
    script(&mut sql, "PRAGMA query_only = OFF").await;
    commit(&mut sql, submitted(&JobId::fresh(), NOW)).await.unwrap();
    close(sql).await;
}

#[tokio::test]
async fn a_file_that_another_program_holds_is_refused_and_taken_when_it_is_free() {
    let (_directory, path) = place();
    let mut sql = open(&path).await;
    script(&mut sql, "PRAGMA busy_timeout = 20").await;
    let mut other =
        sqlx::ConnectOptions::connect(&sqlx::sqlite::SqliteConnectOptions::new().filename(&path))
            .await
            .unwrap();
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let id = JobId::fresh();
    let failed = commit(&mut sql, submitted(&id, NOW)).await.unwrap_err();
    assert!(!failed.of_rows && !failed.doubtful, "{failed:?}");
    assert!(failed.reason.contains("another program holds it"), "{}", failed.reason);
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    commit(&mut sql, submitted(&id, NOW)).await.unwrap();
    close(sql).await;
}

#[tokio::test]
async fn a_row_that_the_tables_forbid_is_refused_and_the_connection_goes_on() {
    let (_directory, path) = place();
    let mut sql = open(&path).await;
    let id = JobId::fresh();
    commit(&mut sql, submitted(&id, NOW)).await.unwrap();
    let failed = commit(&mut sql, submitted(&id, NOW)).await.unwrap_err();
    assert!(failed.of_rows && !failed.full && !failed.doubtful, "{failed:?}");
    commit(&mut sql, submitted(&JobId::fresh(), NOW)).await.unwrap();
    close(sql).await;
}

#[tokio::test]
async fn after_a_failed_write_nothing_can_be_committed() {
    let (_directory, path) = place();
    let mut sql = open(&path).await;
    let (known, new) = (JobId::fresh(), JobId::fresh());
    commit(&mut sql, submitted(&known, NOW)).await.unwrap();
    sql.begin().await.unwrap();
    sql.write(submitted(&new, NOW)).await.unwrap();
    sql.write(submitted(&known, NOW)).await.unwrap_err();
    let failed = sql.commit().await.unwrap_err();
    assert!(!failed.doubtful, "{failed:?}");
    sql.rollback().await.unwrap();
    assert!(!there(&mut sql, &new).await);
    close(sql).await;
}

#[tokio::test]
async fn a_row_that_was_changed_on_the_disk_is_not_believed() {
    let (_directory, path) = place();
    let mut sql = open(&path).await;
    let id = JobId::fresh();
    commit(&mut sql, submitted(&id, NOW)).await.unwrap();
    for damage in [
        "UPDATE job SET payload = x'5b325d'",
        "UPDATE job_state SET status = 'RUNNING'",
        "UPDATE transition SET to_state = 'PENDING'",
    ] {
        let mut sql = open_copy(&path, damage).await;
        let job = sql.job(&id).await.map(drop);
        let trail = sql.transitions(crate::ledger::audit::Entity::Job, id.as_str(), 0, 9).await;
        let failed = job.and(trail.map(drop)).unwrap_err();
        assert!(failed.of_rows, "{failed:?}");
        assert_eq!(failed.reason, "its checksum does not fit", "{damage}");
        close(sql).await;
    }
    close(sql).await;
}

/// A copy of the store as it is now, changed.
async fn open_copy(path: &Path, change: &'static str) -> Sql {
    let copy = path.with_file_name(format!("{}.db", uuid::Uuid::now_v7()));
    crate::store::backup(&crate::ledger::Place::Sqlite(path.to_owned()), &copy).await.unwrap();
    let mut sql = open(&copy).await;
    script(&mut sql, change).await;
    sql
}

async fn filled(path: &Path, jobs: usize) -> Vec<JobId> {
    let mut sql = open(path).await;
    let mut ids = Vec::new();
    for _ in 0..jobs {
        let id = JobId::fresh();
        commit(&mut sql, submitted(&id, NOW)).await.unwrap();
        ids.push(id);
    }
    close(sql).await;
    ids
}

#[tokio::test]
async fn a_file_with_a_damaged_page_fails_where_it_is_read_and_says_what_to_do() {
    let (_directory, path) = place();
    let ids = filled(&path, 300).await;
    let mut bytes = std::fs::read(&path).unwrap();
    // Everything but the first pages, which say what tables there are.
    let tables = bytes.len() / 2;
    bytes[tables..].fill(0x5a);
    std::fs::write(&path, bytes).unwrap();
    match try_open(&path).await {
        Err(error) => assert!(matches!(error, OpenError::Damaged { .. }), "{error}"),
        Ok(mut sql) => {
            let mut failures = 0;
            for id in &ids {
                if let Err(failed) = sql.job(id).await {
                    assert!(failed.reason.contains("restore a backup"), "{}", failed.reason);
                    failures += 1;
                }
            }
            assert!(failures > 0, "the damage was found");
            close(sql).await;
        }
    }
}

#[tokio::test]
async fn a_file_that_was_cut_off_is_refused() {
    let (_directory, path) = place();
    filled(&path, 300).await;
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..4096 * 3 + 100]).unwrap();
    let error = try_open(&path).await.unwrap_err();
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("put a copy in its place"), "{error}");
}

#[tokio::test]
async fn a_log_that_was_cut_off_loses_whole_transactions_only() {
    let (directory, path) = place();
    let mut sql = open(&path).await;
    script(&mut sql, "PRAGMA wal_autocheckpoint = 0").await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        let id = JobId::fresh();
        commit(&mut sql, submitted(&id, NOW)).await.unwrap();
        ids.push(id);
    }
    let (file, log) =
        (std::fs::read(&path).unwrap(), std::fs::read(path.with_extension("db-wal")).unwrap());
    close(sql).await;

    for cut in (0..=log.len()).step_by(log.len() / 23) {
        let image = directory.path().join(format!("cut-{cut}.db"));
        std::fs::write(&image, &file).unwrap();
        std::fs::write(image.with_extension("db-wal"), &log[..cut]).unwrap();
        let mut sql = open(&image).await;
        let mut found = Vec::new();
        for id in &ids {
            let (job, task) = (there(&mut sql, id).await, sql.task(id).await.unwrap().is_some());
            assert_eq!(job, task, "half of {id} with {cut} bytes of the log");
            found.push(job);
        }
        assert!(found.is_sorted_by(|a, b| a >= b), "a later one without an earlier one: {found:?}");
        assert!(cut < log.len() || found.iter().all(|found| *found), "all with the whole log");
        close(sql).await;
    }
}

#[tokio::test]
async fn a_connection_that_is_gone_is_replaced_with_the_next_transaction() {
    let (_directory, path) = place();
    let mut sql = open(&path).await;
    sql.begin().await.unwrap();
    let lost = JobId::fresh();
    sql.write(submitted(&lost, NOW)).await.unwrap();
    sql.disconnect().await;
    let failed = sql.commit().await.unwrap_err();
    assert!(!failed.doubtful, "nothing was sent: {failed:?}");
    let id = JobId::fresh();
    commit(&mut sql, submitted(&id, NOW)).await.unwrap();
    assert!(there(&mut sql, &id).await && !there(&mut sql, &lost).await);
    close(sql).await;
}
