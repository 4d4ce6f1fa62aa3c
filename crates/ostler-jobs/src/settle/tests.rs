use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use ostler_runtime::{Directory, EventLog};
use ostler_store::Content;
use ostler_store::ledger::job::{NewJob, Saying};
use ostler_store::ledger::key::Asked;
use ostler_store::ledger::{JobId, Ledger, LedgerSettings, Place};
use serde_json::Value;

use super::*;
use crate::office::JobSettings;

async fn office() -> Arc<Office> {
    let settings = LedgerSettings { result_max: 8, ..LedgerSettings::default() };
    office_of(Ledger::in_memory(settings)).await
}

/// With one job.
async fn office_of(ledger: Ledger) -> Arc<Office> {
    let job = NewJob::new("py", "f", Content::new("application/json", ""));
    ledger.submit(vec![job], Asked::default()).await.expect("it is taken");
    let log = Arc::new(EventLog::new(1));
    Office::open(ledger, Directory::new(), log, JobSettings::default())
}

async fn claim(office: &Office) -> Charge {
    let claimed = office.ledger.claim("py", 1).await.expect("it is there").remove(0);
    office.roll.claiming().take(claimed)
}

fn completed(text: &'static str) -> Ending {
    let end = AttemptEnd::Completed(Content::new("application/json", text));
    Ending { end, said: vec![Saying::Message(1.into())], time: Duration::ZERO }
}

async fn job(office: &Office, id: &JobId) -> Job {
    office.ledger.job(id).await.expect("it is there")
}

#[tokio::test]
async fn what_was_said_is_stored_before_the_end() {
    let office = office().await;
    let charge = claim(&office).await;
    let id = charge.id().clone();
    settle(&office, charge, completed("7")).await;
    assert_eq!(job(&office, &id).await.status, JobStatus::Completed);
    let story = office.ledger.events(&id, 0, 100).await.expect("it is there");
    let kinds: Vec<&str> = story.iter().map(|event| &*event.kind).rev().take(2).collect();
    assert_eq!(kinds, ["status", "message"]);
    assert!(!office.roll.holds(&id));
}

#[tokio::test]
async fn an_end_that_comes_too_late_changes_nothing() {
    let office = office().await;
    let late = claim(&office).await;
    let id = late.id().clone();
    let released = AttemptEnd::Released;
    office.ledger.finish(&id, late.fence(), released).await.expect("it is taken");
    let next = claim(&office).await;
    settle(&office, late, completed("7")).await;
    assert_eq!(job(&office, &id).await.status, JobStatus::Running);
    settle(&office, next, completed("8")).await;
    assert_eq!(&job(&office, &id).await.result.expect("one").bytes[..], b"8");
}

#[tokio::test]
async fn a_result_that_is_too_large_fails_the_job() {
    let office = office().await;
    let charge = claim(&office).await;
    let id = charge.id().clone();
    settle(&office, charge, completed(r#""more than eight""#)).await;
    let job = job(&office, &id).await;
    assert_eq!(job.status, JobStatus::Failed);
    assert_ne!(job.error, None::<Value>);
}

/// Changes the tables of a store behind its back.
fn meddle(file: &Path, sql: &str) {
    let script = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1], timeout=30); \
                  db.execute(sys.argv[2]); db.commit(); db.close()";
    let done = Command::new("python3").args(["-c", script]).arg(file).arg(sql).status();
    assert!(done.expect("python3 is there").success());
}

const NO_WORDS: &str = "CREATE TRIGGER no_words BEFORE INSERT ON job_event \
                        WHEN new.kind = 'message' BEGIN SELECT RAISE(ABORT, 'no words'); END";

#[tokio::test]
async fn there_is_no_end_without_what_was_said_before_it_unless_that_is_never_stored() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("ledger.db");
    let ledger = Ledger::open(&Place::Sqlite(file.clone()), LedgerSettings::default()).await;
    let office = office_of(ledger.expect("it opens")).await;
    let charge = claim(&office).await;
    let id = charge.id().clone();
    let Ending { end, said, .. } = completed("7");
    let offer = |charge: &Charge, said: &[Saying], end: &AttemptEnd| {
        let (ledger, id, fence) = (office.ledger.clone(), charge.id().clone(), charge.fence());
        let (said, end) = (said.to_vec(), end.clone());
        async move { ledger.finish_saying(&id, fence, said, end).await }
    };

    meddle(&file, NO_WORDS);
    let refused = offer(&charge, &said, &end).await;
    assert!(refused.as_ref().is_err_and(passes), "{refused:?}");
    assert_eq!(job(&office, &id).await.status, JobStatus::Running);

    meddle(&file, "DROP TRIGGER no_words");
    let taken = offer(&charge, &said, &AttemptEnd::Released).await;
    assert!(matches!(taken, Ok(Finished::Taken(_))), "{taken:?}");
    let story = office.ledger.events(&id, 0, 100).await.expect("it is there");
    assert_eq!(story.iter().filter(|event| event.kind == "message").count(), 1);

    meddle(&file, NO_WORDS);
    drop(charge);
    let charge = claim(&office).await;
    settle(&office, charge, completed("7")).await;
    assert_eq!(job(&office, &id).await.status, JobStatus::Completed, "its words are given up");
    office.ledger.close().await;
}
