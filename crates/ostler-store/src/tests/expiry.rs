//! Sessions that nobody used for too long.

use super::*;
use crate::SessionError;
use crate::clock::timestamp;

#[tokio::test]
async fn what_nobody_used_for_its_time_is_gone_on_every_read_before_any_sweep() {
    let (sessions, clock) = in_memory(SessionSettings::default());
    let x = sessions.create(lasting("x", HOUR)).await.unwrap();
    clock.pass(HOUR - MOMENT);
    assert!(sessions.peek("x").is_some());
    clock.pass(MOMENT);
    let gone = SessionError::NotFound { id: "x".into() };
    assert_eq!(sessions.get("x").await.unwrap_err(), gone);
    assert_eq!(sessions.get_program("x", "p").await.unwrap_err(), gone);
    assert_eq!(sessions.patch("x", merge("{}")).await.unwrap_err(), gone);
    assert_eq!(sessions.delete("x", None).await.unwrap_err(), gone);
    assert!(sessions.peek("x").is_none() && sessions.peek_number(x.number).is_none());
    assert!(sessions.list(None, 10).is_empty());
    assert!(sessions.take_state(x.number, "pool").await.is_err());
    assert_eq!(sessions.stats().current, 0);
    assert_eq!(sessions.stats().sweeps, 0);
}

#[tokio::test]
async fn using_a_session_keeps_it_and_looking_at_it_does_not() {
    let (sessions, clock) = in_memory(SessionSettings::default());
    for id in ["got", "entered", "patched", "program", "peeked", "listed", "served", "saved"] {
        sessions.create(lasting(id, HOUR)).await.unwrap();
    }
    let number = |id| sessions.peek(id).unwrap().number;
    clock.pass(HOUR / 2);
    sessions.get("got").await.unwrap();
    sessions.enter("entered", None).await.unwrap();
    sessions.patch("patched", merge("{}")).await.unwrap();
    let text = crate::Content::new("text/plain", &b"t"[..]);
    sessions.put_program("program", "p", text.clone(), None).await.unwrap();
    sessions.peek("peeked").unwrap();
    sessions.list(None, 100);
    sessions.stats();
    sessions.note_worker(number("served"), "py-1");
    sessions.save_state(number("saved"), "pool", text).await.unwrap();
    clock.pass(HOUR / 2);
    let alive: Vec<_> = sessions.list(None, 10).iter().map(|s| s.id.to_string()).collect();
    assert_eq!(alive, ["entered", "got", "patched", "program"]);
    sessions.get_program("program", "p").await.unwrap();
    clock.pass(HOUR / 2);
    let alive: Vec<_> = sessions.list(None, 10).iter().map(|s| s.id.to_string()).collect();
    assert_eq!(alive, ["program"]);
}

#[tokio::test]
async fn an_absolute_expiry_ends_a_session_that_is_used() {
    let (sessions, clock) = in_memory(SessionSettings::default());
    let at = timestamp(START + 10_000);
    sessions.create(NewSession { expires_at: Some(at), ..named("x") }).await.unwrap();
    clock.pass(Duration::from_millis(9_999));
    assert_eq!(sessions.get("x").await.unwrap().gone_at(), at);
    clock.pass(MOMENT);
    assert!(sessions.get("x").await.is_err());
}

#[tokio::test]
async fn a_call_into_an_expired_session_begins_another() {
    let (sessions, clock) = in_memory(SessionSettings::default());
    let told = told(&sessions);
    let old = sessions.enter("x", Some("pool")).await.unwrap();
    sessions.patch("x", merge(r#"{"a":1}"#)).await.unwrap();
    clock.pass(HOUR);
    let new = sessions.enter("x", Some("pool")).await.unwrap();
    assert!(new.created && !new.lost && new.number != old.number);
    assert_eq!(sessions.peek("x").unwrap().metadata.get(), "{}");
    assert!(sessions.peek_number(old.number).is_none());
    let told = told.lock().unwrap();
    let expired = SessionNotice::Expired { id: "x".into(), number: old.number };
    let created = SessionNotice::Created { id: "x".into(), number: new.number };
    assert_eq!(told[told.len() - 2..], [expired, created]);
}

#[tokio::test]
async fn expired_sessions_free_their_places_and_bytes_before_any_sweep() {
    let settings = SessionSettings { max: 100, memory_max: 60_000, ..Default::default() };
    let (sessions, clock) = in_memory(settings);
    for n in 0..100 {
        sessions.create(lasting(&format!("old-{n}"), HOUR)).await.unwrap();
    }
    assert!(sessions.create(named("x")).await.is_err());
    clock.pass(HOUR);
    for n in 0..100 {
        sessions.create(named(&format!("new-{n}"))).await.unwrap();
    }
    let stats = sessions.stats();
    assert_eq!((stats.current, stats.expired, stats.sweeps), (100, 100, 0));
    clock.pass(HOUR);
    let large = crate::Content::new("text/plain", vec![0; 50_000]);
    sessions.create(named("x")).await.unwrap();
    sessions.put_program("x", "p", large, None).await.expect("the others are gone");
}

#[tokio::test]
async fn a_sweep_removes_what_has_expired_and_says_how_many() {
    let (sessions, clock) = in_memory(SessionSettings::default());
    // More than go into one commit.
    for n in 0..2500 {
        sessions.create(lasting(&format!("short-{n}"), HOUR)).await.unwrap();
    }
    sessions.create(lasting("long", HOUR * 2)).await.unwrap();
    let told = told(&sessions);
    clock.pass(HOUR);
    assert_eq!(sessions.sweep().await, 2500);
    assert_eq!(sessions.sweep().await, 0);
    let stats = sessions.stats();
    assert_eq!((stats.current, stats.expired, stats.sweeps), (1, 2500, 2));
    assert_eq!(stats.memory_bytes, sessions.peek("long").unwrap().bytes);
    let told = told.lock().unwrap();
    let expired = |n: &&SessionNotice| matches!(n, SessionNotice::Expired { .. });
    assert_eq!(told.iter().filter(expired).count(), 2500);
    assert!(told.contains(&SessionNotice::Swept { removed: 2500 }));
}

#[tokio::test]
async fn a_shorter_time_counts_from_the_change_on() {
    let (sessions, clock) = in_memory(SessionSettings::default());
    sessions.create(lasting("x", HOUR)).await.unwrap();
    let shorter = Patch { ttl: Some(Some(HOUR / 4)), ..Patch::default() };
    sessions.patch("x", shorter).await.unwrap();
    clock.pass(HOUR / 4);
    assert_eq!(sessions.stats().current, 0);
    assert_eq!(sessions.sweep().await, 1);
}

#[tokio::test]
async fn a_clock_that_jumps_back_gives_nothing_back_and_keeps_nothing_longer() {
    let (sessions, clock) = in_memory(SessionSettings::default());
    sessions.create(lasting("gone", HOUR)).await.unwrap();
    clock.pass(HOUR);
    sessions.create(lasting("x", HOUR)).await.unwrap();
    clock.set(START - 86_400_000);
    assert!(sessions.peek("gone").is_none());
    assert!(sessions.get("x").await.is_ok());
    clock.pass(HOUR);
    assert!(sessions.peek("x").is_none(), "an hour is an hour");
}

#[tokio::test]
async fn a_session_that_is_used_all_the_time_is_looked_at_once_per_its_time() {
    let (sessions, clock) = in_memory(SessionSettings::default());
    sessions.create(lasting("x", HOUR)).await.unwrap();
    for _ in 0..60 {
        clock.pass(HOUR / 10);
        for _ in 0..100 {
            sessions.enter("x", None).await.unwrap();
        }
        sessions.sweep().await;
    }
    let looks = sessions.stats().expiry_looks;
    assert!((1..=6).contains(&looks), "{looks} in six hours");
}

#[tokio::test]
async fn the_warning_does_not_count_what_has_expired() {
    let (sessions, clock) = in_memory(SessionSettings { max: 10, ..Default::default() });
    let told = told(&sessions);
    for n in 0..7 {
        sessions.create(lasting(&format!("old-{n}"), HOUR)).await.unwrap();
    }
    clock.pass(HOUR);
    for n in 0..7 {
        sessions.create(named(&format!("new-{n}"))).await.unwrap();
    }
    let warned = |n: &SessionNotice| matches!(n, SessionNotice::QuotaWarning { .. });
    assert!(!told.lock().unwrap().iter().any(warned));
    sessions.create(named("one-more")).await.unwrap();
    assert!(told.lock().unwrap().contains(&SessionNotice::QuotaWarning { current: 8, max: 10 }));
}
