//! A server of PostgreSQL that goes down without a word and comes back.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use ostler_core::JobStatus;
use tokio::sync::watch;

use super::rows::{NOW, submitted};
use crate::ledger::backend::Backend;
use crate::ledger::id::JobId;
use crate::ledger::job::{AttemptEnd, NewJob};
use crate::ledger::key::Asked;
use crate::ledger::sql::Sql;
use crate::ledger::{Ledger, LedgerError, LedgerSettings, Place};
use crate::sql::{Door, rig::TestDatabase};
use crate::{Content, SessionSettings, Store};

/// One of one's own, which ends when this is dropped.
struct Server {
    keeper: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    url: String,
}

impl Server {
    fn start() -> Server {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/postgres");
        let mut keeper = Command::new(script)
            .arg("keep")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("tests/postgres starts");
        let orders = keeper.stdin.take();
        let mut answers = BufReader::new(keeper.stdout.take().unwrap());
        let url = line(&mut answers);
        Server { keeper, orders, answers, url }
    }

    fn order(&mut self, order: &str) {
        writeln!(self.orders.as_mut().unwrap(), "{order}").unwrap();
        assert_eq!(line(&mut self.answers), format!("done {order}"));
    }
}

fn line(answers: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    answers.read_line(&mut line).unwrap();
    assert!(!line.is_empty(), "tests/postgres ended");
    line.trim_end().to_owned()
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.orders.take());
        let _ = self.keeper.wait();
    }
}

async fn open(url: &str) -> Sql {
    Sql::open(Door::to_database(url).await.unwrap()).await.unwrap()
}

async fn committed(sql: &mut Sql, id: &JobId) {
    sql.begin().await.unwrap();
    sql.write(submitted(id, NOW)).await.unwrap();
    sql.commit().await.unwrap();
}

#[tokio::test]
async fn a_restart_of_the_server_costs_the_transaction_and_nothing_else() {
    let mut server = Server::start();
    let database = TestDatabase::at(&server.url).await;
    let mut sql = open(&database.url()).await;
    let reader = sql.reader();
    let [kept, in_rows, in_commit, after] = [(); 4].map(|()| JobId::fresh());
    committed(&mut sql, &kept).await;
    assert!(reader.open().await.unwrap().job(&kept).await.unwrap().is_some());

    sql.begin().await.unwrap();
    server.order("restart");
    let failed = sql.write(submitted(&in_rows, NOW)).await.unwrap_err();
    assert!(!failed.doubtful && !failed.of_rows && !failed.full, "{failed:?}");
    sql.rollback().await.unwrap();

    sql.begin().await.expect("it connects anew");
    sql.write(submitted(&in_commit, NOW)).await.unwrap();
    server.order("restart");
    let failed = sql.commit().await.unwrap_err();
    assert!(failed.doubtful, "nobody knows: {failed:?}");
    sql.rollback().await.unwrap();

    server.order("stop");
    let failed = sql.begin().await.unwrap_err();
    assert!(!failed.doubtful, "{failed:?}");
    sql.rollback().await.unwrap();
    server.order("start");
    committed(&mut sql, &after).await;

    // Of a connection that was lost while nobody used it nobody hears.
    let mut reads = reader.open().await.unwrap();
    for (id, there) in [(kept, true), (in_rows, false), (in_commit, false), (after, true)] {
        assert_eq!(reads.job(&id).await.unwrap().is_some(), there, "{id}");
    }
    drop(reads);
    Box::new(sql).close().await;
}

#[tokio::test]
async fn a_database_that_another_server_took_meanwhile_is_not_written_any_more() {
    let mut server = Server::start();
    let database = TestDatabase::at(&server.url).await;
    let mut first = open(&database.url()).await;
    server.order("restart");
    let mut second = open(&database.url()).await;
    let failed = first.begin().await.unwrap_err();
    assert!(failed.reason.contains("another server"), "{}", failed.reason);
    committed(&mut second, &JobId::fresh()).await;
    Box::new(second).close().await;
    let failed = first.begin().await.unwrap_err();
    assert!(failed.reason.contains("another server"), "also when that one is gone: {failed:?}");
    Box::new(first).close().await;
}

fn job() -> NewJob {
    NewJob::new("py", "f", Content::new("application/json", &b"[]"[..]))
}

fn done() -> AttemptEnd {
    AttemptEnd::Completed(Content::new("application/json", &b"1"[..]))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Submitted,
    Completed,
    /// The ledger said that it does not know.
    Doubtful,
}

/// Submits and completes jobs while the server goes down under it, and some more when it is over.
async fn work(ledger: Ledger, over: watch::Receiver<bool>) -> HashMap<JobId, Known> {
    let (mut known, mut more) = (HashMap::new(), 20);
    while more > 0 {
        let Ok(mut submitted) = ledger.submit(vec![job()], Asked::by("test")).await else {
            tokio::task::yield_now().await;
            continue;
        };
        let id = submitted.remove(0).job.id;
        known.insert(id.clone(), Known::Submitted);
        let Ok(Some(claimed)) = ledger.claim_job(&id).await else { continue };
        match ledger.finish(&id, claimed.fence, done()).await {
            Ok(_) => {
                known.insert(id, Known::Completed);
                more -= i32::from(*over.borrow());
            }
            Err(LedgerError::Doubtful { .. }) => drop(known.insert(id, Known::Doubtful)),
            Err(_) => {}
        }
    }
    known
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_the_server_restarts_under_load() {
    let mut server = Server::start();
    let database = TestDatabase::at(&server.url).await;
    let place = Place::Postgres(database.url());
    let store = Store::open(&place).await.unwrap();
    let ledger = store.ledger(LedgerSettings::default()).await.unwrap();
    let sessions = store.sessions(SessionSettings::default()).await.unwrap();
    sessions.create(crate::NewSession::default()).await.unwrap();
    let (tell, over) = watch::channel(false);
    let workers: Vec<_> =
        (0..8).map(|_| tokio::spawn(work(ledger.clone(), over.clone()))).collect();
    let server = tokio::task::spawn_blocking(move || {
        (0..3).for_each(|_| server.order("restart"));
        server
    });
    let server = server.await.unwrap();
    tell.send(true).unwrap();
    let mut known = HashMap::new();
    for worker in workers {
        known.extend(worker.await.unwrap());
    }
    for (id, known) in &known {
        let status = ledger.job(id).await.expect("what was acknowledged is there").status;
        match known {
            Known::Completed => assert_eq!(status, JobStatus::Completed, "{id}"),
            Known::Submitted => assert_ne!(status, JobStatus::Completed, "{id}"),
            Known::Doubtful => {}
        }
    }
    assert_eq!(ledger.verify().await.unwrap().findings, []);
    while sessions.create(crate::NewSession::default()).await.is_err() {}
    assert_eq!(sessions.stats().current, 2);
    sessions.close().await;
    ledger.close().await;
    drop(database);
    drop(server);
}
