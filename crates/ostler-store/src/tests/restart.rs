//! What another run of the server finds.

use std::path::Path;

use tempfile::TempDir;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};

use super::*;
use crate::Content;

async fn run(path: &Path, clock: &HandClock) -> Sessions {
    Sessions::open_by(path, SessionSettings::default(), clock.clone()).await.unwrap()
}

fn place() -> (TempDir, std::path::PathBuf, HandClock) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("ostler.db");
    (directory, path, HandClock::at(START))
}

fn state(text: &'static str) -> Content {
    Content::new("application/json", text.as_bytes())
}

#[tokio::test]
async fn everything_of_a_session_is_there_after_a_restart() {
    let (_directory, path, clock) = place();
    let first = run(&path, &clock).await;
    let at = crate::clock::timestamp(START + 7_200_000);
    let new = NewSession { expires_at: Some(at), ..lasting("x", HOUR) };
    first.create(new).await.unwrap();
    first.patch("x", merge(r#"{"n":123456789012345678901234567890,"z":"\u0000"}"#)).await.unwrap();
    let program = Content::new("application/octet-stream", vec![0, 1, 255]);
    first.put_program("x", "p", program.clone(), None).await.unwrap();
    first.put_program("x", "q", program.clone(), None).await.unwrap();
    first.delete_program("x", "p", None).await.unwrap();
    clock.pass(Duration::from_secs(60));
    let number = first.enter("x", None).await.unwrap().number;
    first.note_worker(number, "py-3");
    first.save_state(number, "pool", state("[1]")).await.unwrap();
    let before = first.peek("x").unwrap();
    first.close().await;

    let second = run(&path, &clock).await;
    let after = second.peek("x").unwrap();
    assert_eq!(format!("{before:?}"), format!("{after:?}"));
    assert_eq!(second.get_program("x", "q").await.unwrap().content, program);
    assert_eq!(second.take_state(number, "pool").await.unwrap(), Some(state("[1]")));
    assert_eq!(second.stats().memory_bytes, second.peek("x").unwrap().bytes);
    assert_eq!(second.stats().created, 0, "counted since it was opened");
    second.close().await;
    let third = run(&path, &clock).await;
    assert_eq!(third.take_state(number, "pool").await.unwrap(), None, "it was taken for good");
}

#[tokio::test]
async fn numbers_are_not_given_again_after_a_restart() {
    let (_directory, path, clock) = place();
    let first = run(&path, &clock).await;
    let last = first.create(named("x")).await.unwrap().number;
    first.delete("x", None).await.unwrap();
    first.close().await;
    let second = run(&path, &clock).await;
    assert!(second.create(named("y")).await.unwrap().number > last);
}

#[tokio::test]
async fn what_expired_meanwhile_does_not_come_back() {
    let (_directory, path, clock) = place();
    let first = run(&path, &clock).await;
    first.create(lasting("short", HOUR)).await.unwrap();
    first.create(lasting("long", HOUR * 3)).await.unwrap();
    let at = crate::clock::timestamp(START + 1000);
    first.create(NewSession { expires_at: Some(at), ..lasting("until", HOUR * 3) }).await.unwrap();
    first.close().await;
    clock.pass(HOUR);
    let second = run(&path, &clock).await;
    let ids: Vec<_> = second.list(None, 10).iter().map(|s| s.id.to_string()).collect();
    assert_eq!(ids, ["long"]);
    second.close().await;
    // Not even if the clock is set back.
    clock.set(START);
    let third = run(&path, &clock).await;
    assert_eq!(third.stats().current, 1);
}

#[tokio::test]
async fn a_use_that_lies_in_the_future_does_not_keep_a_session_longer() {
    let (_directory, path, clock) = place();
    let first = run(&path, &clock).await;
    first.create(lasting("x", HOUR)).await.unwrap();
    first.close().await;
    clock.set(START - 86_400_000);
    let second = run(&path, &clock).await;
    assert!(second.peek("x").is_some());
    clock.pass(HOUR);
    assert!(second.peek("x").is_none(), "an hour after the restart, not after a day");
}

#[tokio::test]
async fn a_strict_session_of_another_run_is_told_once_that_it_is_lost() {
    let (_directory, path, clock) = place();
    let first = run(&path, &clock).await;
    for id in ["strict", "hint"] {
        assert!(!first.enter(id, (id == "strict").then_some("pool")).await.unwrap().lost);
        assert!(
            !first.enter(id, (id == "strict").then_some("pool")).await.unwrap().lost,
            "not in the same run"
        );
    }
    first.close().await;

    let second = run(&path, &clock).await;
    assert!(!second.enter("hint", Some("pool")).await.unwrap().lost, "was bound by a hint only");
    assert!(!second.enter("strict", None).await.unwrap().lost, "a hint does not ask");
    let number = second.peek("strict").unwrap().number;
    let told = second.enter("strict", Some("pool")).await.unwrap();
    assert!(told.lost && !told.created && told.number == number);
    second.close().await;

    // Told and cleared for good, although nothing was bound since.
    let third = run(&path, &clock).await;
    assert!(!third.enter("strict", Some("pool")).await.unwrap().lost);
    assert!(
        third.enter("hint", Some("pool")).await.unwrap().lost,
        "bound strictly by the second run"
    );
    assert!(!third.enter("hint", Some("pool")).await.unwrap().lost);
    third.close().await;

    let fourth = run(&path, &clock).await;
    assert!(
        fourth.enter("strict", Some("pool")).await.unwrap().lost,
        "bound anew by the third run"
    );
}

#[tokio::test]
async fn a_strict_session_with_a_saved_state_is_not_lost() {
    let (_directory, path, clock) = place();
    let first = run(&path, &clock).await;
    let number = first.enter("x", Some("pool")).await.unwrap().number;
    first.save_state(number, "pool", state("[1]")).await.unwrap();
    first.close().await;

    let second = run(&path, &clock).await;
    assert!(!second.enter("x", Some("pool")).await.unwrap().lost);
    assert!(second.take_state(number, "pool").await.unwrap().is_some());
    assert!(!second.enter("x", Some("pool")).await.unwrap().lost, "it is this run's now");
    second.close().await;

    let third = run(&path, &clock).await;
    assert!(third.enter("x", Some("pool")).await.unwrap().lost, "nothing was saved since");
}

#[tokio::test]
async fn calls_into_a_lost_session_at_once_are_told_once() {
    let (_directory, path, clock) = place();
    let first = run(&path, &clock).await;
    first.enter("x", Some("pool")).await.unwrap();
    first.close().await;
    let second = run(&path, &clock).await;
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let sessions = second.clone();
            tokio::spawn(async move { sessions.enter("x", Some("pool")).await.unwrap().lost })
        })
        .collect();
    let mut told = 0;
    for call in calls {
        told += usize::from(call.await.unwrap());
    }
    assert_eq!(told, 1);
}

#[tokio::test]
async fn a_session_whose_bits_flipped_on_the_disk_is_left_out_as_a_whole() {
    let (_directory, path, clock) = place();
    let first = run(&path, &clock).await;
    for id in ["whole", "metadata", "program", "missing", "state"] {
        let number = first.enter(id, Some("pool")).await.unwrap().number;
        first.put_program(id, "p", state("[1]"), None).await.unwrap();
        first.save_state(number, "pool", state("[2]")).await.unwrap();
    }
    let number = |id| first.peek(id).unwrap().number as i64;
    let damage = [
        ("UPDATE session SET metadata = '{\"a\":1}' WHERE number = ?", number("metadata")),
        ("UPDATE session_program SET data = x'00' WHERE session = ?", number("program")),
        ("DELETE FROM session_program WHERE session = ?", number("missing")),
        ("UPDATE session_state SET data = x'00' WHERE session = ?", number("state")),
    ];
    first.close().await;
    let file = SqliteConnectOptions::new().filename(&path);
    let mut connection = file.connect().await.unwrap();
    for (sql, number) in damage {
        let done = sqlx::query(sql).bind(number).execute(&mut connection).await.unwrap();
        assert_eq!(done.rows_affected(), 1, "{sql}");
    }
    connection.close().await.unwrap();

    let second = run(&path, &clock).await;
    let ids: Vec<_> = second.list(None, 10).iter().map(|s| s.id.to_string()).collect();
    assert_eq!(ids, ["state", "whole"]);
    assert!(second.enter("state", Some("pool")).await.unwrap().lost, "its state is not there");
    assert!(!second.enter("whole", Some("pool")).await.unwrap().lost);
    second.create(named("metadata")).await.expect("its place is free");
}
