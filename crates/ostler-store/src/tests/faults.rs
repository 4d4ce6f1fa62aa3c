//! A disk that refuses.

use std::collections::VecDeque;

use sqlx::SqlSafeStr;
use tempfile::TempDir;

use super::*;
use crate::disk::{Refused, Row};
use crate::sql::SqlDisk;
use crate::{Content, SessionError};

/// What happens to the next commits; all is well when there is nothing.
#[derive(Debug, Clone, Default)]
struct Script(Arc<Mutex<VecDeque<Fault>>>);

#[derive(Debug, Clone, Copy)]
enum Fault {
    None,
    /// Nothing was done.
    Refuses,
    /// It was done, and an error says that it was not.
    DoesAndFails,
}

impl Script {
    fn next(&self, faults: impl IntoIterator<Item = Fault>) {
        self.0.lock().unwrap().extend(faults);
    }
}

/// SQLite with faults.
#[derive(Debug)]
struct Faulty {
    disk: SqlDisk,
    script: Script,
}

impl Disk for Faulty {
    async fn commit(&mut self, rows: &[Row]) -> Result<(), Refused> {
        let fault = self.script.0.lock().unwrap().pop_front().unwrap_or(Fault::None);
        let refused = |doubtful| {
            let reason = "a fault".to_owned();
            Refused { full: false, of_rows: false, doubtful, reason }
        };
        match fault {
            Fault::None => self.disk.commit(rows).await,
            Fault::Refuses => Err(refused(false)),
            Fault::DoesAndFails => {
                self.disk.commit(rows).await.unwrap();
                Err(refused(true))
            }
        }
    }

    async fn close(self) {
        self.disk.close().await;
    }
}

struct World {
    directory: TempDir,
    clock: HandClock,
    script: Script,
    sessions: Sessions,
}

impl World {
    async fn new() -> Self {
        let (directory, clock, script) =
            (TempDir::new().unwrap(), HandClock::at(START), Script::default());
        let disk = SqlDisk::in_file(&directory.path().join("db")).await.unwrap();
        let faulty = Faulty { disk, script: script.clone() };
        let sessions = on(faulty, SessionSettings::default(), &clock);
        World { directory, clock, script, sessions }
    }

    /// What the next run of the server would see.
    async fn reopened(&self) -> Sessions {
        self.sessions.close().await;
        let path = self.directory.path().join("db");
        let settings = SessionSettings::default();
        Sessions::open_by(&path, settings, self.clock.clone()).await.unwrap()
    }
}

/// All that can be seen of the sessions.
fn seen(sessions: &Sessions) -> Vec<String> {
    sessions.list(None, 100).iter().map(|session| format!("{session:?}")).collect()
}

fn content(text: &'static str) -> Content {
    Content::new("text/plain", text.as_bytes())
}

/// One of each operation that writes, on the sessions `x` and `y`.
async fn operate(sessions: &Sessions, nth: usize) -> Result<(), SessionError> {
    let number = sessions.peek("x").unwrap().number;
    match nth {
        0 => sessions.create(named("new")).await.map(drop),
        1 => sessions.enter("entered", None).await.map(drop),
        2 => sessions.enter("x", Some("pool")).await.map(drop),
        3 => sessions.patch("x", merge(r#"{"a":2}"#)).await.map(drop),
        4 => sessions.put_program("x", "p", content("new"), None).await.map(drop),
        5 => sessions.delete_program("x", "p", None).await.map(drop),
        6 => sessions.save_state(number, "pool", content("new")).await,
        7 => sessions.take_state(number, "pool").await.map(drop),
        _ => sessions.delete("y", None).await,
    }
}
const OPERATIONS: usize = 9;

async fn prepared() -> World {
    let world = World::new().await;
    for id in ["x", "y"] {
        let number = world.sessions.enter(id, None).await.unwrap().number;
        world.sessions.patch(id, merge(r#"{"a":1}"#)).await.unwrap();
        world.sessions.put_program(id, "p", content("old"), None).await.unwrap();
        world.sessions.save_state(number, "pool", content("old")).await.unwrap();
    }
    world
}

#[tokio::test]
async fn an_operation_that_the_disk_refuses_changes_nothing_and_can_be_repeated() {
    for fault in [Fault::Refuses, Fault::DoesAndFails] {
        for nth in 0..OPERATIONS {
            let world = prepared().await;
            let (before, told) = (seen(&world.sessions), told(&world.sessions));
            let bytes = world.sessions.stats().memory_bytes;
            world.script.next([fault]);
            let refused = operate(&world.sessions, nth).await.unwrap_err();
            assert!(matches!(refused, SessionError::StoreUnavailable { .. }), "{nth}: {refused}");
            assert_eq!(seen(&world.sessions), before, "operation {nth}, {fault:?}");
            assert_eq!(world.sessions.stats().memory_bytes, bytes);
            assert_eq!(world.sessions.stats().disk_refusals, 1);
            assert!(told.lock().unwrap().is_empty(), "nobody is told of what was not done");
            operate(&world.sessions, nth).await.unwrap();
            let after = seen(&world.sessions);
            assert_eq!(seen(&world.reopened().await), after, "operation {nth}, {fault:?}");
        }
    }
}

#[tokio::test]
async fn what_was_refused_in_doubt_is_undone_at_the_latest_when_the_store_is_closed() {
    for nth in 0..OPERATIONS {
        let world = prepared().await;
        world.script.next([Fault::DoesAndFails]);
        operate(&world.sessions, nth).await.unwrap_err();
        let after = seen(&world.sessions);
        assert_eq!(seen(&world.reopened().await), after, "operation {nth}");
    }
}

#[tokio::test]
async fn what_was_refused_in_doubt_is_undone_by_the_next_write() {
    for nth in 0..OPERATIONS {
        let world = prepared().await;
        world.script.next([Fault::DoesAndFails, Fault::Refuses, Fault::DoesAndFails]);
        operate(&world.sessions, nth).await.unwrap_err();
        for _ in 0..2 {
            world.sessions.create(named("other")).await.unwrap_err();
        }
        world.sessions.create(named("other")).await.unwrap();
        let after = seen(&world.sessions);
        assert_eq!(seen(&world.reopened().await), after, "operation {nth}");
    }
}

#[tokio::test]
async fn a_disk_that_refuses_at_the_end_does_not_keep_the_store_open() {
    let world = prepared().await;
    world.clock.pass(Duration::from_secs(60));
    world.sessions.get("x").await.unwrap();
    world.script.next([Fault::Refuses]);
    let reopened = world.reopened().await;
    let used = reopened.peek("x").unwrap().last_accessed;
    assert_eq!(used, crate::clock::timestamp(START), "only the late use is lost");
}

#[tokio::test]
async fn an_expired_session_that_the_disk_keeps_is_gone_all_the_same() {
    let world = prepared().await;
    world.clock.pass(HOUR);
    world.script.next([Fault::Refuses]);
    assert_eq!(world.sessions.sweep().await, 0);
    assert!(seen(&world.sessions).is_empty());
    assert_eq!(world.sessions.stats().current, 0);
    assert_eq!(world.sessions.sweep().await, 2);
}

#[tokio::test]
async fn a_full_disk_refuses_what_does_not_fit_and_nothing_else() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("db");
    let mut disk = SqlDisk::in_file(&path).await.unwrap();
    disk.link().script("PRAGMA max_page_count = 130".into_sql_str()).await.unwrap();
    let clock = HandClock::at(START);
    let sessions = on(disk, SessionSettings::default(), &clock);
    sessions.create(named("x")).await.unwrap();
    let large = || Content::new("text/plain", vec![7; 500_000]);

    // At once, so that they are in one batch: only the one that is too large is refused.
    let put = |id: &'static str, content| {
        let sessions = sessions.clone();
        async move { sessions.put_program("x", id, content, None).await }
    };
    let (small, refused, other) =
        tokio::join!(put("small", content("s")), put("large", large()), put("other", content("o")));
    assert!(matches!(refused.unwrap_err(), SessionError::StoreFull { .. }));
    assert!(small.is_ok() && other.is_ok());
    let names: Vec<_> =
        sessions.peek("x").unwrap().programs.iter().map(|p| p.name.to_string()).collect();
    assert_eq!(names, ["other", "small"]);
    assert_eq!(sessions.get_program("x", "small").await.unwrap().content, content("s"));

    let before = seen(&sessions);
    sessions.close().await;
    let again =
        Sessions::open_by(&path, SessionSettings::default(), clock).await.expect("it is whole");
    assert_eq!(seen(&again), before);
    again.put_program("x", "large", large(), None).await.expect("there is room again");
}

#[tokio::test]
async fn a_write_that_sqlite_rejects_is_unavailable_not_full() {
    let directory = TempDir::new().unwrap();
    let mut disk = SqlDisk::in_file(&directory.path().join("db")).await.unwrap();
    const PICKY: &str = "CREATE TEMP TRIGGER no BEFORE INSERT ON session WHEN new.id = 'bad' \
         BEGIN SELECT raise(ABORT, 'not this one'); END";
    disk.link().script(PICKY.into_sql_str()).await.unwrap();
    let sessions = on(disk, SessionSettings::default(), &HandClock::at(START));
    let create = |id: &'static str| {
        let sessions = sessions.clone();
        async move { sessions.create(named(id)).await }
    };
    let (a, bad, b) = tokio::join!(create("a"), create("bad"), create("b"));
    assert!(a.is_ok() && b.is_ok());
    let Err(SessionError::StoreUnavailable { reason }) = bad else { panic!("{bad:?}") };
    assert!(reason.contains("not this one"), "{reason}");
    assert!(sessions.peek("bad").is_none());
}

#[tokio::test]
async fn a_broken_connection_is_replaced_if_the_file_is_still_ours() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("db");
    let mut disk = SqlDisk::in_file(&path).await.unwrap();
    disk.break_link().await;
    let clock = HandClock::at(START);
    let sessions = on(disk, SessionSettings::default(), &clock);
    sessions.create(named("x")).await.unwrap();
    sessions.close().await;

    let mut disk = SqlDisk::in_file(&path).await.unwrap();
    disk.break_link().await;
    // Somebody removes the lock, and so another server may come.
    std::fs::remove_file(path.with_file_name("db.lock")).unwrap();
    let other = Sessions::open_by(&path, SessionSettings::default(), clock.clone()).await.unwrap();
    let sessions = on(disk, SessionSettings::default(), &clock);
    let refused = sessions.create(named("y")).await.unwrap_err();
    assert!(matches!(refused, SessionError::StoreUnavailable { .. }), "{refused}");
    other.create(named("y")).await.expect("the other is not disturbed");
    other.close().await;
    let refused = sessions.create(named("y")).await.unwrap_err();
    assert!(refused.to_string().contains("another server"), "{refused}");
}
