//! Sessions and the ledger in one place, wherever that is.

mod common;
#[path = "common/postgres.rs"]
mod postgres;

use common::named;
use ostler_store::ledger::job::{AttemptEnd, Finished, NewJob};
use ostler_store::ledger::key::Asked;
use ostler_store::ledger::{JobId, Ledger, LedgerSettings, Place};
use ostler_store::{Content, OpenError, SessionSettings, Sessions, Store};
use postgres::TestDatabase;
use tempfile::TempDir;

/// A place, and what keeps it.
struct Ground {
    place: Place,
    _directory: TempDir,
    _database: Option<TestDatabase>,
}

fn in_a_file() -> Ground {
    let directory = TempDir::new().unwrap();
    let place = Place::Sqlite(directory.path().join("ostler.db"));
    Ground { place, _directory: directory, _database: None }
}

async fn in_postgres() -> Ground {
    let database = TestDatabase::new().await;
    let place = Place::Postgres(database.url());
    Ground { place, _directory: TempDir::new().unwrap(), _database: Some(database) }
}

async fn each() -> [Ground; 2] {
    [in_a_file(), in_postgres().await]
}

async fn open(place: &Place) -> Result<(Sessions, Ledger), OpenError> {
    let store = Store::open(place).await?;
    let sessions = store.sessions(SessionSettings::default()).await?;
    Ok((sessions, store.ledger(LedgerSettings::default()).await?))
}

async fn close((sessions, ledger): (Sessions, Ledger)) {
    sessions.close().await;
    ledger.close().await;
}

fn asked() -> Asked {
    Asked::by("test")
}

async fn submit(ledger: &Ledger) -> JobId {
    let job = NewJob::new("py", "f", Content::new("application/json", &b"[1]"[..]));
    ledger.submit(vec![job], asked()).await.unwrap().remove(0).job.id
}

async fn completed(ledger: &Ledger) -> JobId {
    let id = submit(ledger).await;
    let claimed = ledger.claim("py", 1).await.unwrap().remove(0);
    let end = AttemptEnd::Completed(Content::new("application/json", &b"2"[..]));
    let finished = ledger.finish(&id, claimed.fence, end).await.unwrap();
    assert!(matches!(finished, Finished::Taken(_)));
    id
}

#[tokio::test]
async fn what_one_server_kept_the_next_one_finds() {
    for ground in each().await {
        let (sessions, ledger) = open(&ground.place).await.unwrap();
        let content = Content::new("text/plain", &b"\0\xff"[..]);
        sessions.create(named("x")).await.unwrap();
        sessions.put_program("x", "p", content.clone(), None).await.unwrap();
        let id = completed(&ledger).await;
        let before = ledger.job(&id).await.unwrap();
        close((sessions, ledger)).await;

        let (sessions, ledger) = open(&ground.place).await.unwrap();
        assert_eq!(sessions.get_program("x", "p").await.unwrap().content, content);
        assert_eq!(ledger.job(&id).await.unwrap(), before);
        assert_eq!(before.result.unwrap().bytes, &b"2"[..]);
        assert!(ledger.verify().await.unwrap().findings.is_empty());
        close((sessions, ledger)).await;
    }
}

#[tokio::test]
async fn a_second_server_is_refused_while_the_first_lives() {
    for ground in each().await {
        let first = open(&ground.place).await.unwrap();
        let refused = open(&ground.place).await.unwrap_err();
        assert!(refused.to_string().contains("another server"), "{refused}");
        submit(&first.1).await;
        first.0.create(named("x")).await.expect("the first is not disturbed");
        close(first).await;
        close(open(&ground.place).await.expect("it was given back")).await;
    }
}

#[tokio::test]
async fn each_part_is_handed_out_once() {
    for ground in each().await {
        let store = Store::open(&ground.place).await.unwrap();
        let _sessions = store.sessions(SessionSettings::default()).await.unwrap();
        let refused = store.sessions(SessionSettings::default()).await.unwrap_err();
        assert!(refused.to_string().contains("another server"), "{refused}");
    }
}

#[tokio::test]
async fn numbers_of_sessions_are_not_given_twice() {
    for ground in each().await {
        let first = open(&ground.place).await.unwrap();
        first.0.create(named("x")).await.unwrap();
        let number = first.0.enter("x", None).await.unwrap().number;
        first.0.delete("x", None).await.unwrap();
        close(first).await;
        let second = open(&ground.place).await.unwrap();
        assert!(second.0.enter("y", None).await.unwrap().number > number);
        close(second).await;
    }
}

#[tokio::test]
async fn both_write_at_once_and_neither_is_refused() {
    for ground in each().await {
        let (sessions, ledger) = open(&ground.place).await.unwrap();
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let (sessions, ledger) = (sessions.clone(), ledger.clone());
                tokio::spawn(async move {
                    for n in 0..20 {
                        sessions.create(named(&format!("{writer}-{n}"))).await.unwrap();
                        submit(&ledger).await;
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }
        close((sessions, ledger)).await;
    }
}
