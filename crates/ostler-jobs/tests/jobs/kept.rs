//! Jobs whose ledger is a file: it outlives the engine, and is not always there.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use ostler_core::JobStatus;
use ostler_store::ledger::{Ledger, LedgerSettings, Place};
use tempfile::TempDir;

use super::support::*;

/// Waits until nobody else has it.
async fn open(yard: &Path) -> Ledger {
    let place = Place::Sqlite(yard.join("ledger.db"));
    let mut opened = None;
    until("the ledger can be opened", async || {
        opened = Ledger::open(&place, LedgerSettings::default()).await.ok();
        opened.is_some()
    })
    .await;
    opened.expect("just seen")
}

async fn inn() -> Inn {
    let yard = tempfile::tempdir().expect("a directory");
    let ledger = open(yard.path()).await;
    Inn::on(ledger, yard, brisk(2), |_| {}).await
}

/// Ends everything but the file, as a crash would.
async fn crash(inn: Inn) -> TempDir {
    let Inn { jobs, pool, yard, .. } = inn;
    drop(jobs);
    pool.shut_down(true);
    within("the pool stops", pool.stopped()).await;
    yard
}

#[tokio::test]
async fn what_ran_when_the_server_ended_runs_again_and_what_may_not_is_lost() {
    let before = inn().await;
    let mut once = job("hold", r#"["once"]"#);
    once.retrying.max_attempts = 1;
    let ids = before.submit_all(vec![once, job("hold", r#"["again"]"#)]).await;
    before.seen("begun", 2).await;
    let waiting = before.submit(job("run", r#"["waiting"]"#)).await;
    let yard = crash(before).await;

    std::fs::write(yard.path().join("go"), "").expect("a sign");
    let ledger = open(yard.path()).await;
    let after = Inn::on(ledger, yard, brisk(2), |_| {}).await;
    assert_eq!(failed(&after.end(&ids[0]).await).0, "lost");
    let again = after.end(&ids[1]).await;
    assert_eq!((result(&again), again.attempt), ("again".into(), 2));
    assert_eq!(result(&after.end(&waiting).await), "waiting");
    let mut begun = after.lines("begun");
    begun.sort();
    assert_eq!(begun, ["again", "again", "once"], "and never twice what may run once");
    after.close().await;
}

/// Somebody who keeps the store from writing, as long as this is kept.
struct Squatter(Child);

impl Squatter {
    fn on(file: &Path) -> Squatter {
        let script = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1], timeout=30); \
                      db.isolation_level = None; db.execute('BEGIN IMMEDIATE'); \
                      print('locked', flush=True); sys.stdin.read()";
        let mut child = Command::new("python3")
            .args(["-c", script])
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is there");
        let mut line = String::new();
        let output = child.stdout.take().expect("it is piped");
        BufReader::new(output).read_line(&mut line).expect("it says so");
        assert_eq!(line, "locked\n");
        Squatter(child)
    }
}

impl Drop for Squatter {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // Nothing more can be done about it here.
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn an_end_waits_for_the_store_and_its_place_does_not() {
    let inn = inn().await;
    let id = inn.submit(job("hold", r#"["a"]"#)).await;
    inn.seen("begun", 1).await;
    until("its worker is known", async || !inn.attempts(&id).await[0].workers.is_empty()).await;
    let squatter = Squatter::on(&inn.yard.path().join("ledger.db"));
    inn.give("go");
    inn.seen("ended", 1).await;
    inn.all_free().await;
    assert_eq!(inn.call("echo", "[1]").await, 1);
    assert_eq!(inn.job(&id).await.status, JobStatus::Running);
    drop(squatter);
    assert_eq!(result(&inn.end(&id).await), "a");
    assert_eq!(inn.attempts(&id).await.len(), 1);
    inn.close().await;
}
