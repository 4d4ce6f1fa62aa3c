//! Opening a store where it cannot be, and what it looks like where it can.

mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::{named, place};
use ostler_store::{OpenError, SessionSettings, Sessions};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};

async fn open(path: &Path) -> Result<Sessions, OpenError> {
    Sessions::open(path, SessionSettings::default()).await
}

/// The error, which names the path and what to do.
async fn refused(path: &Path, advice: &str) -> OpenError {
    let error = open(path).await.unwrap_err();
    let text = error.to_string();
    let named = path.parent().unwrap().to_str().unwrap();
    assert!(text.contains(named) && text.contains(advice), "{text}");
    error
}

async fn execute(path: &Path, sql: &'static str) {
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    let mut connection = options.connect().await.unwrap();
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn the_file_and_its_directory_are_for_this_user_alone() {
    let (_directory, path) = place();
    let sessions = open(&path).await.unwrap();
    sessions.create(named("x")).await.unwrap();
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(mode(&path), 0o600);
    let log = path.with_extension("db-wal");
    assert_eq!(mode(&log), 0o600);
    sessions.close().await;
    assert!(!log.exists(), "closing leaves one file");
}

#[tokio::test]
async fn a_directory_that_exists_keeps_its_mode() {
    let (_directory, path) = place();
    let parent = path.parent().unwrap();
    std::fs::create_dir(parent).unwrap();
    std::fs::set_permissions(parent, PermissionsExt::from_mode(0o755)).unwrap();
    open(&path).await.unwrap().close().await;
    assert_eq!(mode(parent), 0o755);
}

#[tokio::test]
async fn a_second_server_is_refused_while_the_first_lives() {
    let (_directory, path) = place();
    let first = open(&path).await.unwrap();
    let second = refused(&path, "another server").await;
    assert!(matches!(second, OpenError::Locked { .. }), "{second}");
    first.create(named("x")).await.expect("the first is not disturbed");
    let third = refused(&path, "another server").await;
    assert!(matches!(third, OpenError::Locked { .. }), "refusing one does not let the next in");
    first.close().await;
    let next = open(&path).await.expect("it was given back");
    assert!(next.peek("x").is_some());
}

#[tokio::test]
async fn a_store_whose_handles_are_dropped_is_given_back() {
    let (_directory, path) = place();
    let first = open(&path).await.unwrap();
    first.create(named("x")).await.unwrap();
    drop(first);
    // Opening waits for a server that is just ending.
    let next = open(&path).await.expect("it was given back");
    assert!(next.peek("x").is_some());
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_as_it_is() {
    let (directory, _) = place();
    let path = directory.path().join("notes.txt");
    let text = "These are notes, and more than a header's worth of them. ".repeat(100);
    std::fs::write(&path, &text).unwrap();
    let error = refused(&path, "set `path` in [store]").await;
    assert!(matches!(error, OpenError::NotADatabase { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[tokio::test]
async fn another_programs_database_is_refused_and_left_as_it_is() {
    let (directory, _) = place();
    let path = directory.path().join("other.db");
    execute(&path, "CREATE TABLE session (something TEXT); INSERT INTO session VALUES ('theirs')")
        .await;
    let before = std::fs::read(&path).unwrap();
    let error = refused(&path, "another program").await;
    assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let (_directory, path) = place();
    open(&path).await.unwrap().close().await;
    execute(&path, "PRAGMA user_version = 99").await;
    let error = refused(&path, "newer ostler").await;
    assert!(matches!(error, OpenError::TooNew { found: 99, known: 2, .. }), "{error}");
}

#[tokio::test]
async fn an_empty_file_becomes_a_store() {
    let (directory, _) = place();
    let path = directory.path().join("empty.db");
    std::fs::write(&path, "").unwrap();
    open(&path).await.unwrap().create(named("x")).await.unwrap();
}

#[tokio::test]
async fn a_damaged_file_is_refused() {
    let (_directory, path) = place();
    let sessions = open(&path).await.unwrap();
    for n in 0..100 {
        sessions.create(named(&format!("{n}"))).await.unwrap();
    }
    sessions.close().await;
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4096..].fill(0x5a);
    std::fs::write(&path, bytes).unwrap();
    let error = refused(&path, "move it away").await;
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
}

#[tokio::test]
async fn a_directory_that_cannot_be_made_is_named() {
    let (directory, _) = place();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = refused(&file.join("ostler.db"), "set `path` in [store]").await;
    assert!(matches!(error, OpenError::Directory { .. }), "{error}");
}

#[tokio::test]
async fn a_place_where_no_file_can_be_made_is_named() {
    // Nobody may make files there, not even root.
    let path = Path::new("/proc/self/ostler.db");
    let error = refused(path, "set `path` in [store]").await;
    assert!(matches!(error, OpenError::File { .. }), "{error}");
}

#[tokio::test]
async fn a_directory_in_the_place_of_the_file_is_refused() {
    let (directory, _) = place();
    let path = directory.path().join("ostler.db");
    std::fs::create_dir(&path).unwrap();
    let error = refused(&path, "must be a file").await;
    assert!(matches!(error, OpenError::Refused { .. }), "{error}");
}
