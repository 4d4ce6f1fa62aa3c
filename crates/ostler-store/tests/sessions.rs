//! What sessions do, in memory and in a file.

mod common;

use std::time::Duration;

use common::{each, json, merge, named, taken, told};
use jiff::Timestamp;
use ostler_store::{
    Content, NewSession, Patch, SessionError, SessionNotice, SessionSettings, Sessions,
};

fn settings() -> SessionSettings {
    SessionSettings::default()
}

fn text(text: &'static str) -> Content {
    Content::new("text/plain", text.as_bytes())
}

#[tokio::test]
async fn a_session_is_made_with_what_was_given_and_shown_with_all_its_fields() {
    for store in each(&settings()).await {
        let expires_at = store.sessions.now() + Duration::from_secs(7200);
        let expires_at = Timestamp::from_millisecond(expires_at.as_millisecond()).unwrap();
        let new = NewSession {
            id: Some("alice".into()),
            metadata: Some(json(r#"{"a":1,"b":{}}"#)),
            ttl: Some(Duration::from_secs(10)),
            expires_at: Some(expires_at),
        };
        let made = store.sessions.create(new).await.unwrap();
        let got = store.sessions.get("alice").await.unwrap();
        for session in [&made, &got] {
            assert_eq!(&*session.id, "alice", "{}", store.kind);
            assert_eq!(session.metadata.get(), r#"{"a":1,"b":{}}"#);
            assert_eq!(session.items(), 2);
            assert_eq!(session.version, 1);
            assert_eq!(session.ttl, Duration::from_secs(10));
            assert_eq!(session.expires_at, Some(expires_at));
            assert_eq!(session.gone_at(), session.last_accessed + Duration::from_secs(10));
            assert!(session.programs.is_empty() && session.last_worker.is_none());
            assert!(session.created_at <= session.last_accessed);
            assert!(session.number > 0 && session.bytes > 0);
        }
    }
}

#[tokio::test]
async fn a_session_without_an_id_gets_one_and_the_default_time() {
    for store in each(&settings()).await {
        for ttl in [None, Some(Duration::ZERO)] {
            let new = NewSession { ttl, ..NewSession::default() };
            let made = store.sessions.create(new).await.unwrap();
            assert!(made.id.starts_with("s_"), "{}", made.id);
            assert_eq!(made.ttl, Duration::from_secs(3600));
            assert_eq!(made.metadata.get(), "{}");
            assert_eq!(made.expires_at, None);
        }
    }
}

#[tokio::test]
async fn an_id_that_lives_cannot_be_made_again() {
    for store in each(&settings()).await {
        let first = store.sessions.create(named("a")).await.unwrap();
        let again = store.sessions.create(named("a")).await.unwrap_err();
        assert_eq!(again, SessionError::Exists { id: "a".into() });
        store.sessions.delete("a", None).await.unwrap();
        let second = store.sessions.create(named("a")).await.unwrap();
        assert!(second.number > first.number, "numbers are not given twice");
    }
}

#[tokio::test]
async fn what_does_not_fit_is_refused_and_changes_nothing() {
    for store in each(&settings()).await {
        let passed = Timestamp::UNIX_EPOCH;
        let bad = [
            named("a b"),
            named(""),
            NewSession { metadata: Some(json("[1]")), ..named("x") },
            NewSession { expires_at: Some(passed), ..named("x") },
        ];
        for new in bad {
            let refused = store.sessions.create(new.clone()).await.unwrap_err();
            assert!(matches!(refused, SessionError::Invalid(_)), "{new:?}: {refused}");
        }
        assert!(matches!(store.sessions.enter("a/b", None).await, Err(SessionError::Invalid(_))));
        assert_eq!(store.sessions.stats().current, 0);

        store.sessions.create(named("x")).await.unwrap();
        let bad = [merge("7"), Patch { expires_at: Some(Some(passed)), ..Patch::default() }];
        for patch in bad {
            let refused = store.sessions.patch("x", patch).await.unwrap_err();
            assert!(matches!(refused, SessionError::Invalid(_)), "{refused}");
        }
        let refused = store.sessions.put_program("x", "a b", text("t"), None).await.unwrap_err();
        assert!(matches!(refused, SessionError::Invalid(_)), "{refused}");
        let bad_type = Content::new("text\n", &b""[..]);
        let refused = store.sessions.put_program("x", "p", bad_type, None).await.unwrap_err();
        assert!(matches!(refused, SessionError::Invalid(_)), "{refused}");
        assert_eq!(store.sessions.peek("x").unwrap().version, 1);
    }
}

#[tokio::test]
async fn a_patch_merges_and_raises_the_version() {
    for store in each(&settings()).await {
        let new = NewSession { metadata: Some(json(r#"{"a":1,"b":{"c":2}}"#)), ..named("x") };
        store.sessions.create(new).await.unwrap();
        let patched = store.sessions.patch("x", merge(r#"{"a":null,"b":{"d":3}}"#)).await.unwrap();
        assert_eq!(patched.metadata.get(), r#"{"b":{"c":2,"d":3}}"#);
        assert_eq!(patched.version, 2);
        let later = store.sessions.now() + Duration::from_secs(60);
        let later = Timestamp::from_millisecond(later.as_millisecond()).unwrap();
        let times = Patch {
            ttl: Some(Some(Duration::from_secs(5))),
            expires_at: Some(Some(later)),
            ..Patch::default()
        };
        let patched = store.sessions.patch("x", times).await.unwrap();
        assert_eq!((patched.version, patched.ttl), (3, Duration::from_secs(5)));
        assert_eq!(patched.expires_at, Some(later));
        assert_eq!(patched.metadata.get(), r#"{"b":{"c":2,"d":3}}"#, "what is not named stays");
        let back = Patch { ttl: Some(None), expires_at: Some(None), ..Patch::default() };
        let patched = store.sessions.patch("x", back).await.unwrap();
        assert_eq!((patched.ttl, patched.expires_at), (Duration::from_secs(3600), None));
    }
}

#[tokio::test]
async fn a_change_with_an_older_version_is_refused_with_the_current_one() {
    for store in each(&settings()).await {
        let sessions = &store.sessions;
        sessions.create(named("x")).await.unwrap();
        let at_one = |text| Patch { version: Some(1), ..merge(text) };
        assert_eq!(sessions.patch("x", at_one(r#"{"by":"a"}"#)).await.unwrap().version, 2);
        let conflict = SessionError::VersionConflict { id: "x".into(), version: 2 };
        assert_eq!(sessions.patch("x", at_one(r#"{"by":"b"}"#)).await.unwrap_err(), conflict);
        assert_eq!(sessions.delete("x", Some(1)).await.unwrap_err(), conflict);
        let put = sessions.put_program("x", "p", text("t"), Some(1)).await;
        assert_eq!(put.unwrap_err(), conflict);
        assert_eq!(sessions.delete_program("x", "p", Some(1)).await.unwrap_err(), conflict);
        assert_eq!(sessions.get("x").await.unwrap().metadata.get(), r#"{"by":"a"}"#);
        sessions.delete("x", Some(2)).await.unwrap();
        assert!(sessions.peek("x").is_none());
    }
}

#[tokio::test]
async fn of_many_changes_at_one_version_exactly_one_wins() {
    for store in each(&settings()).await {
        store.sessions.create(named("x")).await.unwrap();
        let tries: Vec<_> = (0..50)
            .map(|n| {
                let sessions = store.sessions.clone();
                let patch = Patch { version: Some(1), ..merge(&format!(r#"{{"by":{n}}}"#)) };
                tokio::spawn(async move { sessions.patch("x", patch).await })
            })
            .collect();
        let mut won = 0;
        for one in tries {
            won += usize::from(one.await.unwrap().is_ok());
        }
        assert_eq!((won, store.sessions.peek("x").unwrap().version), (1, 2), "{}", store.kind);
    }
}

#[tokio::test]
async fn changes_of_one_session_that_come_at_once_all_count() {
    for store in each(&settings()).await {
        store.sessions.create(named("x")).await.unwrap();
        let tries: Vec<_> = (0..100)
            .map(|n| {
                let sessions = store.sessions.clone();
                tokio::spawn(async move {
                    sessions.patch("x", merge(&format!(r#"{{"k{n}":{n}}}"#))).await.unwrap()
                })
            })
            .collect();
        for one in tries {
            one.await.unwrap();
        }
        let session = store.sessions.peek("x").unwrap();
        assert_eq!((session.version, session.items()), (101, 100), "{}", store.kind);
    }
}

#[tokio::test]
async fn what_is_not_there_is_not_found_by_any_operation() {
    for store in each(&settings()).await {
        let sessions = &store.sessions;
        let missing = SessionError::NotFound { id: "x".into() };
        assert_eq!(sessions.get("x").await.unwrap_err(), missing);
        assert_eq!(sessions.patch("x", merge("{}")).await.unwrap_err(), missing);
        assert_eq!(sessions.delete("x", None).await.unwrap_err(), missing);
        assert_eq!(sessions.put_program("x", "p", text("t"), None).await.unwrap_err(), missing);
        assert_eq!(sessions.get_program("x", "p").await.unwrap_err(), missing);
        assert_eq!(sessions.delete_program("x", "p", None).await.unwrap_err(), missing);
        let missing = SessionError::NotFound { id: "number 77".into() };
        assert_eq!(sessions.save_state(77, "pool", text("t")).await.unwrap_err(), missing);
        assert_eq!(sessions.take_state(77, "pool").await.unwrap_err(), missing);
        assert!(sessions.peek("x").is_none() && sessions.peek_number(77).is_none());
    }
}

#[tokio::test]
async fn programs_are_given_back_as_they_were_put() {
    for store in each(&settings()).await {
        let sessions = &store.sessions;
        sessions.create(named("x")).await.unwrap();
        let bytes = Content::new("application/octet-stream", vec![0, 255, 10]);
        let put = sessions.put_program("x", "raw", bytes.clone(), None).await.unwrap();
        assert_eq!((&*put.name, put.bytes, put.version), ("raw", 3, 2));
        let json = Content::new("application/json", &br#"{"n":1}"#[..]);
        sessions.put_program("x", "json", json.clone(), None).await.unwrap();
        assert_eq!(sessions.get_program("x", "raw").await.unwrap().content, bytes);
        assert_eq!(sessions.get_program("x", "json").await.unwrap().content, json);
        let session = sessions.peek("x").unwrap();
        let shown: Vec<_> = session.programs.iter().map(|p| (&*p.name, p.version)).collect();
        assert_eq!(shown, [("json", 3), ("raw", 2)]);
        assert_eq!(sessions.delete_program("x", "raw", None).await.unwrap(), 4);
        let gone = SessionError::ProgramNotFound { id: "x".into(), name: "raw".into() };
        assert_eq!(sessions.get_program("x", "raw").await.unwrap_err(), gone);
        assert_eq!(sessions.delete_program("x", "raw", None).await.unwrap_err(), gone);
    }
}

#[tokio::test]
async fn programs_have_a_quota_on_count_and_on_bytes() {
    let settings =
        SessionSettings { programs_max: 2, program_bytes_max: 10, ..SessionSettings::default() };
    for store in each(&settings).await {
        let sessions = &store.sessions;
        sessions.create(named("x")).await.unwrap();
        sessions.put_program("x", "a", text("12345"), None).await.unwrap();
        sessions.put_program("x", "b", text("12345"), None).await.unwrap();
        let more = sessions.put_program("x", "c", text(""), None).await.unwrap_err();
        assert!(matches!(more, SessionError::ProgramQuota { programs: 3, .. }), "{more}");
        let more = sessions.put_program("x", "b", text("123456"), None).await.unwrap_err();
        assert!(matches!(more, SessionError::ProgramQuota { bytes: 11, .. }), "{more}");
        sessions.put_program("x", "b", text("54321"), None).await.expect("replacing is no more");
        sessions.delete_program("x", "a", None).await.unwrap();
        sessions.put_program("x", "c", text("12345"), None).await.expect("room was made");
    }
}

#[tokio::test]
async fn metadata_has_a_bound_that_patches_do_not_pass_either() {
    let settings = SessionSettings { metadata_max: 20, ..SessionSettings::default() };
    for store in each(&settings).await {
        let sessions = &store.sessions;
        let large = NewSession { metadata: Some(json(r#"{"a":"1234567890123"}"#)), ..named("x") };
        let refused = sessions.create(large).await.unwrap_err();
        let expected = SessionError::MetadataTooLarge { id: "x".into(), bytes: 21, max: 20 };
        assert_eq!(refused, expected);
        sessions.create(named("x")).await.unwrap();
        sessions.patch("x", merge(r#"{"a":"12345"}"#)).await.unwrap();
        let refused = sessions.patch("x", merge(r#"{"b":"12345"}"#)).await.unwrap_err();
        assert!(matches!(refused, SessionError::MetadataTooLarge { bytes: 25, .. }), "{refused}");
        assert_eq!(sessions.peek("x").unwrap().metadata.get(), r#"{"a":"12345"}"#);
    }
}

#[tokio::test]
async fn sessions_have_a_quota_and_warn_before_it_once_per_crossing() {
    let settings = SessionSettings { max: 10, ..SessionSettings::default() };
    for store in each(&settings).await {
        let sessions = &store.sessions;
        let told = told(sessions);
        let warnings = || {
            let of = |n: &SessionNotice| matches!(n, SessionNotice::QuotaWarning { .. });
            taken(&told).iter().filter(|notice| of(notice)).count()
        };
        for n in 0..7 {
            sessions.create(named(&format!("{n}"))).await.unwrap();
        }
        assert_eq!(warnings(), 0);
        sessions.create(named("7")).await.unwrap();
        let notice = SessionNotice::QuotaWarning { current: 8, max: 10 };
        assert_eq!(taken(&told).last(), Some(&notice), "at 80 %");
        for n in 8..10 {
            sessions.enter(&format!("{n}"), None).await.unwrap();
        }
        assert_eq!(warnings(), 0, "once");
        let full = SessionError::Quota { current: 10, max: 10 };
        assert_eq!(sessions.create(named("more")).await.unwrap_err(), full);
        assert_eq!(sessions.enter("more", None).await.unwrap_err(), full);
        assert!(!sessions.enter("3", None).await.unwrap().created, "who lives may enter");

        for n in 0..2 {
            sessions.delete(&format!("{n}"), None).await.unwrap();
        }
        sessions.create(named("back")).await.unwrap();
        assert_eq!(warnings(), 0, "it did not fall below 75 %");
        for n in 2..4 {
            sessions.delete(&format!("{n}"), None).await.unwrap();
        }
        sessions.create(named("again")).await.unwrap();
        assert_eq!(warnings(), 1, "a second crossing");
    }
}

#[tokio::test]
async fn all_sessions_together_have_a_bound_in_memory() {
    let settings = SessionSettings { memory_max: 10_000, ..SessionSettings::default() };
    for store in each(&settings).await {
        let sessions = &store.sessions;
        let x = sessions.create(named("x")).await.unwrap();
        let large = || Content::new("text/plain", vec![b'x'; 6000]);
        sessions.put_program("x", "p", large(), None).await.unwrap();
        let refusals = [
            sessions.put_program("x", "q", large(), None).await.map(drop),
            sessions.save_state(x.number, "pool", large()).await,
        ];
        for refused in refusals {
            let refused = refused.unwrap_err();
            assert!(matches!(refused, SessionError::StoreFull { .. }), "{refused}");
        }
        let before = sessions.stats().memory_bytes;
        assert!((6000..=10_000).contains(&before), "{before}");
        sessions.delete_program("x", "p", None).await.unwrap();
        sessions.save_state(x.number, "pool", large()).await.expect("room was made");
        sessions.delete("x", None).await.unwrap();
        assert_eq!(sessions.stats().memory_bytes, 0);
    }
}

#[tokio::test]
async fn a_call_makes_the_session_that_it_names_unless_that_is_off() {
    for store in each(&settings()).await {
        let first = store.sessions.enter("x", None).await.unwrap();
        assert!(first.created && !first.lost);
        let second = store.sessions.enter("x", None).await.unwrap();
        assert_eq!((second.number, second.created, &*second.id), (first.number, false, "x"));
        assert_eq!(store.sessions.peek_number(first.number).unwrap().id, first.id);
    }
    let off = SessionSettings { auto_create: false, ..SessionSettings::default() };
    for store in each(&off).await {
        let refused = store.sessions.enter("x", None).await.unwrap_err();
        assert_eq!(refused, SessionError::NotFound { id: "x".into() });
        store.sessions.create(named("x")).await.unwrap();
        store.sessions.enter("x", Some("pool")).await.unwrap();
    }
}

#[tokio::test]
async fn two_calls_that_make_a_session_at_once_are_in_one() {
    for store in each(&settings()).await {
        let enter = || {
            let sessions = store.sessions.clone();
            tokio::spawn(async move { sessions.enter("x", Some("pool")).await.unwrap() })
        };
        let (one, other) = (enter(), enter());
        let (one, other) = (one.await.unwrap(), other.await.unwrap());
        assert_eq!(one.number, other.number);
        assert!(one.created != other.created && !one.lost && !other.lost);
    }
}

#[tokio::test]
async fn entering_a_known_session_again_writes_nothing() {
    for store in each(&settings()).await {
        for strict in [false, true] {
            store.sessions.enter("x", strict.then_some("pool")).await.unwrap();
            let commits = store.sessions.stats().commits;
            for _ in 0..100 {
                store.sessions.enter("x", strict.then_some("pool")).await.unwrap();
            }
            assert_eq!(store.sessions.stats().commits, commits, "{} {strict}", store.kind);
        }
    }
}

#[tokio::test]
async fn a_saved_state_is_taken_once() {
    for store in each(&settings()).await {
        let sessions = &store.sessions;
        let x = sessions.create(named("x")).await.unwrap();
        assert_eq!(sessions.take_state(x.number, "pool").await.unwrap(), None);
        sessions.save_state(x.number, "pool", text("first")).await.unwrap();
        sessions.save_state(x.number, "pool", text("last")).await.unwrap();
        let saved = sessions.peek("x").unwrap();
        assert!(saved.saved && saved.version == 1, "no change that its owner made");
        assert_eq!(sessions.take_state(x.number, "pool").await.unwrap(), Some(text("last")));
        assert_eq!(sessions.take_state(x.number, "pool").await.unwrap(), None);
        assert!(!sessions.peek("x").unwrap().saved);
    }
}

#[tokio::test]
async fn lists_go_by_id_in_pages() {
    for store in each(&settings()).await {
        let sessions = &store.sessions;
        for id in ["d", "a", "c", "e", "b"] {
            sessions.create(named(id)).await.unwrap();
        }
        let ids = |after, limit| {
            let page = sessions.list(after, limit);
            page.iter().map(|session| session.id.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(ids(None, 2), ["a", "b"]);
        assert_eq!(ids(Some("b"), 2), ["c", "d"]);
        assert_eq!(ids(Some("bb"), 10), ["c", "d", "e"], "the one it stands after may be gone");
        assert!(ids(Some("e"), 2).is_empty() && ids(None, 0).is_empty());
    }
}

#[tokio::test]
async fn every_change_is_told_before_it_is_answered() {
    for store in each(&settings()).await {
        let sessions = &store.sessions;
        let told = told(sessions);
        let session = sessions.create(named("x")).await.unwrap();
        let (id, number) = (session.id, session.number);
        let created = SessionNotice::Created { id: id.clone(), number };
        assert_eq!(taken(&told), [created]);
        sessions.patch("x", merge("{}")).await.unwrap();
        let updated = |version| SessionNotice::Updated { id: id.clone(), number, version };
        assert_eq!(taken(&told), [updated(2)]);
        sessions.put_program("x", "p", text("t"), None).await.unwrap();
        assert_eq!(taken(&told), [updated(3)]);
        sessions.get("x").await.unwrap();
        sessions.enter("x", Some("pool")).await.unwrap();
        sessions.save_state(number, "pool", text("t")).await.unwrap();
        assert_eq!(taken(&told), [], "neither uses nor what the server keeps for itself");
        sessions.delete("x", None).await.unwrap();
        assert_eq!(taken(&told), [SessionNotice::Deleted { id, number }]);
        assert_eq!(sessions.sweep().await, 0);
        assert_eq!(taken(&told), [SessionNotice::Swept { removed: 0 }]);
    }
}

#[tokio::test]
async fn a_listener_may_ask_the_store() {
    for store in each(&settings()).await {
        let asked = store.sessions.clone();
        let seen = std::sync::Arc::new(std::sync::Mutex::new(None));
        let slot = std::sync::Arc::clone(&seen);
        store.sessions.watch(move |notice| {
            if let SessionNotice::Created { id, .. } = notice {
                *slot.lock().unwrap() = asked.peek(id).map(|session| session.version);
            }
        });
        store.sessions.create(named("x")).await.unwrap();
        assert_eq!(*seen.lock().unwrap(), Some(1));
    }
}

#[tokio::test]
async fn the_store_counts() {
    for store in each(&settings()).await {
        let sessions = &store.sessions;
        for id in ["a", "b", "c"] {
            sessions.create(named(id)).await.unwrap();
        }
        sessions.delete("a", None).await.unwrap();
        sessions.sweep().await;
        let stats = sessions.stats();
        assert_eq!((stats.current, stats.created, stats.deleted), (2, 3, 1));
        assert_eq!((stats.expired, stats.sweeps, stats.max), (0, 1, 10_000));
        assert_eq!(stats.disk_refusals, 0);
        let shown: u64 = sessions.list(None, 10).iter().map(|session| session.bytes).sum();
        assert_eq!(stats.memory_bytes, shown);
    }
}

#[tokio::test]
async fn a_closed_store_refuses_changes_and_still_reads() {
    for store in each(&settings()).await {
        store.sessions.create(named("x")).await.unwrap();
        store.sessions.close().await;
        store.sessions.close().await;
        let refused = store.sessions.create(named("y")).await.unwrap_err();
        assert!(matches!(refused, SessionError::StoreUnavailable { .. }), "{refused}");
        assert_eq!(store.sessions.sweep().await, 0);
        assert!(store.sessions.get("x").await.is_ok());
    }
}

#[tokio::test]
async fn the_last_worker_is_shown_at_once() {
    for store in each(&settings()).await {
        let x = store.sessions.enter("x", None).await.unwrap();
        store.sessions.note_worker(x.number, "py-1");
        store.sessions.note_worker(x.number, "py-3");
        assert_eq!(store.sessions.peek("x").unwrap().last_worker.as_deref(), Some("py-3"));
        store.sessions.note_worker(999, "py-1");
    }
}

#[tokio::test]
async fn what_was_put_does_not_keep_the_body_that_it_came_in() {
    let sessions = Sessions::in_memory(settings());
    sessions.create(named("x")).await.unwrap();
    let body = bytes::Bytes::from(vec![7; 1 << 20]);
    let part = Content::new("application/octet-stream", body.slice(10..20));
    sessions.put_program("x", "p", part, None).await.unwrap();
    assert!(body.is_unique(), "the store holds a part of its own");
}
