//! Sessions and the ledger in one place, wherever that is.

mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::{TestDatabase, named};
use ostler_store::ledger::job::{AttemptEnd, Finished, NewJob};
use ostler_store::ledger::key::Asked;
use ostler_store::ledger::{JobId, Ledger, LedgerSettings, Place};
use ostler_store::{
    BackupError, Content, OpenError, SessionSettings, Sessions, Store, backup, check,
};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
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

async fn damage(place: &Place, sql: &'static str) {
    match place {
        Place::Memory => unreachable!("nothing to damage"),
        Place::Sqlite(path) => {
            let options = SqliteConnectOptions::new().filename(path);
            let mut connection = options.connect().await.unwrap();
            sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        }
        Place::Postgres(url) => {
            let mut connection = PgConnection::connect(url).await.unwrap();
            sqlx::raw_sql("SET search_path TO ostler").execute(&mut connection).await.unwrap();
            sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_sound_store_is_found_sound_while_a_server_works_on_it() {
    for ground in each().await {
        let (sessions, ledger) = open(&ground.place).await.unwrap();
        sessions.create(named("x")).await.unwrap();
        let work = tokio::spawn({
            let ledger = ledger.clone();
            async move {
                for _ in 0..50 {
                    completed(&ledger).await;
                }
            }
        });
        while !work.is_finished() {
            let report = check(&ground.place).await.unwrap();
            assert!(report.is_sound(), "{report:?}");
        }
        work.await.unwrap();
        let report = check(&ground.place).await.unwrap();
        assert!(report.is_sound(), "{report:?}");
        assert_eq!((report.sessions, report.audit.jobs), (1, 50));
        close((sessions, ledger)).await;
    }
}

#[tokio::test]
async fn what_is_damaged_is_found() {
    let damages = [
        "UPDATE session SET metadata = '{\"a\":1}'",
        "UPDATE job_state SET status = 'FAILED'",
        "UPDATE job SET spec = '[]'",
        "DELETE FROM transition WHERE seq = 2",
        "DELETE FROM job",
        "DELETE FROM job_state",
    ];
    for ground in each().await {
        for sql in damages {
            let (sessions, ledger) = open(&ground.place).await.unwrap();
            sessions.create(named("x")).await.unwrap();
            completed(&ledger).await;
            close((sessions, ledger)).await;
            assert!(check(&ground.place).await.unwrap().is_sound());
            damage(&ground.place, sql).await;
            assert!(!check(&ground.place).await.unwrap().is_sound(), "{sql}");
            damage(&ground.place, EMPTY).await;
        }
    }
}

const EMPTY: &str = "DELETE FROM session; DELETE FROM job; DELETE FROM job_state; \
    DELETE FROM job_result; DELETE FROM attempt; DELETE FROM job_event; DELETE FROM transition";

#[tokio::test]
async fn a_copy_is_made_while_a_server_works_and_can_be_opened() {
    let ground = in_a_file();
    let Place::Sqlite(path) = &ground.place else { unreachable!("it is a file") };
    let copy = path.with_file_name("copy.db");
    let (sessions, ledger) = open(&ground.place).await.unwrap();
    sessions.create(named("x")).await.unwrap();
    let id = completed(&ledger).await;
    backup(&ground.place, &copy).await.unwrap();
    let refused = backup(&ground.place, &copy).await.unwrap_err();
    assert!(matches!(refused, BackupError::Exists { .. }), "{refused}");
    let through_the_ledger = path.with_file_name("another.db");
    ledger.backup(&through_the_ledger).await.unwrap();
    close((sessions, ledger)).await;

    for copy in [copy, through_the_ledger] {
        assert_eq!(mode(&copy), 0o600);
        let (sessions, ledger) = open(&Place::Sqlite(copy)).await.unwrap();
        assert!(sessions.peek("x").is_some());
        assert!(ledger.job(&id).await.unwrap().result.is_some());
        close((sessions, ledger)).await;
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn what_cannot_be_copied_says_why() {
    let directory = TempDir::new().unwrap();
    let copy = directory.path().join("copy.db");
    let nothing = Place::Sqlite(directory.path().join("nothing.db"));
    let refused = backup(&nothing, &copy).await.unwrap_err();
    assert!(matches!(refused, BackupError::Source { .. }), "{refused}");
    assert!(!copy.exists(), "nothing is left behind");
    let database = Place::Postgres("postgres://me:secret@db.example/jobs".to_owned());
    let refused = backup(&database, &copy).await.unwrap_err().to_string();
    assert!(refused.contains("pg_dump") && !refused.contains("secret"), "{refused}");
}

#[tokio::test]
async fn tables_of_a_newer_version_are_refused() {
    let ground = in_postgres().await;
    close(open(&ground.place).await.unwrap()).await;
    damage(&ground.place, "INSERT INTO schema_version VALUES (99)").await;
    for error in [
        Store::open(&ground.place).await.map(drop).unwrap_err(),
        check(&ground.place).await.map(drop).unwrap_err(),
    ] {
        assert!(matches!(error, OpenError::NewerTables { found: 99, .. }), "{error}");
    }
}

#[tokio::test]
async fn a_database_that_is_not_there_is_named_without_its_password() {
    let url = "postgres://me:secret@127.0.0.1:1/jobs";
    let error = Store::open(&Place::Postgres(url.to_owned())).await.unwrap_err().to_string();
    assert!(error.contains("postgres://me@127.0.0.1:1/jobs"), "{error}");
    assert!(error.contains("`url` in [store]") && !error.contains("secret"), "{error}");
    let error = Store::open(&Place::Postgres("mysql://x".to_owned())).await.unwrap_err();
    assert!(matches!(error, OpenError::Url { .. }), "{error}");
}
