//! What a process keeps of its sessions in memory, and what becomes of that when it leaves: carried
//! over by the hooks, or gone and told.

use std::time::Duration;

use ostler_runtime::core::{Action, Refusal, Settings};
use ostler_runtime::store::{SessionSettings, Sessions};
use ostler_runtime::{
    Affinity, Call, Continuity, Directory, EventKind, Failure, Pool, PoolSpec, Profile,
};
use serde_json::{Value, json};

use super::crowd::*;
use super::support::*;

const HOOKS: &str = "saves-as-told.py";
const NO_HOOKS: &str = "guests.py";

fn sessions_of(yard: &Yard, worker: &str, settings: Settings) -> PoolSpec {
    let settings = Settings { queue_timeout: LIMIT, ..settings };
    let spec = spec(functions(worker), settings);
    yard.around(PoolSpec { affinity: Affinity::StrictQueue, ..spec })
}

async fn ready(spec: PoolSpec) -> Pool {
    let pool = start(spec).await;
    within("all are ready", pool.all_ready()).await;
    pool
}

/// Has the session's process keep a value.
async fn remember(pool: &Pool, session: &str, value: Value) -> i32 {
    let (kept, found) = ask_of(pool, session, "remember", &json!([value]).to_string()).await;
    assert_eq!(found, Continuity::Bound);
    as_pid(&kept["pid"])
}

async fn recall(pool: &Pool, session: &str) -> (i32, Value, Continuity) {
    let (kept, found) = ask_of(pool, session, "recall", "").await;
    (as_pid(&kept["pid"]), kept["value"].clone(), found)
}

async fn recycle(pool: &Pool, pid: i32) {
    order(pool, Action::Recycle(worker_with(pool, pid))).await;
}

#[tokio::test]
async fn what_a_session_keeps_moves_to_the_successor_under_load() {
    for affinity in [Affinity::Hint, Affinity::StrictQueue] {
        let yard = Yard::new();
        let pool = ready(PoolSpec { affinity, ..sessions_of(&yard, HOOKS, brisk(2)) }).await;
        let value = json!({ "é": [1, null] });
        let mut sessions = Vec::new();
        for n in 0..6 {
            let id = format!("s-{n}");
            let old = remember(&pool, &id, json!([n, value])).await;
            sessions.push((id, old));
        }
        let crowd = Crowd::of(3, &pool, &call("where", ""));
        order(&pool, Action::RecyclePool).await;
        until("both have left", || ends(&pool) == ["ordered"; 2]).await;
        crowd.goes_home().await;
        for (n, (id, old)) in sessions.iter().enumerate() {
            let (pid, kept, found) = recall(&pool, id).await;
            assert_ne!(pid, *old);
            assert_eq!((kept, found), (json!([n, value]), Continuity::Restored), "{affinity:?}");
            assert_eq!(recall(&pool, id).await.2, Continuity::Same);
            assert_eq!(steps(&pool, id), ["session.saved", "session.rebound/restored"]);
        }
        assert_eq!(yard.lines("saving").len(), 6);
        assert_eq!(yard.lines("restored").len(), 6);
        nothing_amiss(&pool);
        stop(pool).await;
    }
}

#[tokio::test]
async fn sessions_of_workers_that_do_several_things_at_a_time_move_too() {
    for profile in [Profile::Thread { threads: 4 }, Profile::Async { concurrency: 4 }] {
        let yard = Yard::new();
        let mut spec = sessions_of(&yard, HOOKS, brisk(1));
        spec.processes.profile = profile;
        let pool = ready(spec).await;
        for n in 0..4 {
            remember(&pool, &format!("s-{n}"), json!([n])).await;
        }
        let mut inside = Vec::new();
        for n in 0..2 {
            inside.push(of(&pool, &format!("s-{n}"), call("stay", "")).await);
        }
        until("two stay", || yard.lines("begun").len() == 2).await;
        order(&pool, Action::RecyclePool).await;
        until("the others are saved", || yard.lines("saving").len() == 2).await;
        assert_eq!(recall(&pool, "s-3").await.1, json!([3]), "beside those who stay");
        let waits = of(&pool, "s-0", call("recall", "")).await;
        yard.give("go");
        for running in inside {
            assert_eq!(served(running).await.1, Continuity::Same);
        }
        let (kept, found) = served(waits).await;
        assert_eq!((&kept["value"], found), (&json!([0]), Continuity::Restored), "{profile:?}");
        for n in 1..3 {
            let (_, kept, found) = recall(&pool, &format!("s-{n}")).await;
            assert_eq!((kept, found), (json!([n]), Continuity::Restored), "{profile:?}");
        }
        until("it has left", || ends(&pool) == ["ordered"]).await;
        nothing_amiss(&pool);
        stop(pool).await;
    }
}

#[tokio::test]
async fn calls_of_a_session_that_never_stops_see_its_state_all_the_time() {
    let yard = Yard::new();
    let pool = ready(sessions_of(&yard, HOOKS, brisk(2))).await;
    remember(&pool, "mine", json!(7)).await;
    let session = pool.enter("mine", None).await.expect("it may be entered");
    let recall = Call { session: Some(session), ..call("recall", "") };
    let crowd = Crowd::of(3, &pool, &recall);
    for round in 1..=2 {
        crowd.goes_on(10).await;
        order(&pool, Action::RecyclePool).await;
        until("both have left", || ends(&pool).len() == 2 * round).await;
    }
    crowd.goes_on(10).await;
    let answers = crowd.goes_home().await;
    let mut restored = 0;
    for answered in answers {
        let kept: Value = serde_json::from_slice(&answered.body.bytes).expect("JSON");
        assert_eq!(kept["value"], 7, "{answered:?}");
        match answered.continuity {
            Some(Continuity::Same) => {}
            Some(Continuity::Restored) => restored += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(restored >= 2, "it was carried over {restored} times");
    nothing_amiss(&pool);
    stop(pool).await;
}

#[tokio::test]
async fn a_session_without_hooks_begins_anew_and_is_told_so() {
    for affinity in [Affinity::Hint, Affinity::StrictQueue] {
        let yard = Yard::new();
        let pool = ready(PoolSpec { affinity, ..sessions_of(&yard, NO_HOOKS, brisk(1)) }).await;
        let old = remember(&pool, "mine", json!(7)).await;
        recycle(&pool, old).await;
        until("it has left", || ends(&pool) == ["ordered"]).await;
        let (pid, kept, found) = recall(&pool, "mine").await;
        assert_ne!(pid, old);
        assert_eq!((kept, found), (Value::Null, Continuity::Restarted));
        assert_eq!(steps(&pool, "mine"), ["session.released", "session.rebound/restarted"]);
        assert_eq!(recall(&pool, "mine").await.2, Continuity::Same, "told once");
        nothing_amiss(&pool);
        stop(pool).await;
    }
}

#[tokio::test]
async fn a_session_moves_when_its_process_is_too_old_or_has_served_enough() {
    let old = Settings { ttl: Some(Duration::from_secs(1)), ..brisk(1) };
    let tired = Settings { max_requests: Some(1), ..brisk(1) };
    for (settings, reason) in [(old, "ttl"), (tired, "max_requests")] {
        let yard = Yard::new();
        let pool = ready(sessions_of(&yard, HOOKS, settings)).await;
        remember(&pool, "mine", json!(7)).await;
        until("it has left", || ends(&pool).first() == Some(&reason)).await;
        let (_, kept, found) = recall(&pool, "mine").await;
        assert_eq!((kept, found), (json!(7), Continuity::Restored), "{reason}");
        nothing_amiss(&pool);
        stop(pool).await;
    }
}

#[tokio::test]
async fn a_session_moves_when_the_pool_is_reloaded() {
    for (worker, value, continuity) in
        [(HOOKS, json!(7), Continuity::Restored), (NO_HOOKS, Value::Null, Continuity::Restarted)]
    {
        let yard = Yard::new();
        let spec = sessions_of(&yard, worker, brisk(2));
        let pool = ready(spec.clone()).await;
        let old = remember(&pool, "mine", json!(7)).await;
        within("it is reloaded", pool.reload(spec)).await.expect("the same code is good");
        until("both have left", || ends(&pool) == ["reloaded"; 2]).await;
        let (pid, kept, found) = recall(&pool, "mine").await;
        assert_ne!(pid, old);
        assert_eq!((kept, found), (value, continuity));
        nothing_amiss(&pool);
        stop(pool).await;
    }
}

#[tokio::test]
async fn a_request_in_flight_ends_before_its_session_is_saved() {
    let yard = Yard::new();
    let pool = ready(sessions_of(&yard, HOOKS, brisk(1))).await;
    let old = remember(&pool, "mine", json!(7)).await;
    let inside = of(&pool, "mine", call("stay", "")).await;
    until("it stays", || yard.lines("begun").len() == 1).await;
    recycle(&pool, old).await;
    until("its successor is ready", || told(&pool, EventKind::WorkerReady).len() == 2).await;
    let waits = of(&pool, "mine", call("recall", "")).await;
    until("it waits", || pool.info().view.queued == 1).await;
    assert!(yard.lines("saving").is_empty(), "it was saved too early");
    yard.give("go");
    assert_eq!(served(inside).await.0, json!(old));
    let (kept, found) = served(waits).await;
    assert_eq!((&kept["value"], found), (&json!(7), Continuity::Restored));
    assert_ne!(as_pid(&kept["pid"]), old);
    nothing_amiss(&pool);
    stop(pool).await;
}

#[tokio::test]
async fn a_session_that_cannot_be_saved_begins_anew_and_is_told_so() {
    let yard = Yard::new();
    yard.give("fail");
    let pool = ready(sessions_of(&yard, HOOKS, brisk(1))).await;
    let old = remember(&pool, "mine", json!(7)).await;
    recycle(&pool, old).await;
    until("it has left", || ends(&pool) == ["ordered"]).await;
    assert_eq!(yard.lines("saving"), ["mine"]);
    let (_, kept, found) = recall(&pool, "mine").await;
    assert_eq!((kept, found), (Value::Null, Continuity::Restarted));
    assert_eq!(steps(&pool, "mine"), ["session.released", "session.rebound/restarted"]);
    stop(pool).await;
}

#[tokio::test]
async fn a_save_that_hangs_holds_nobody_up_for_longer_than_it_may() {
    let yard = Yard::new();
    yard.give("hang");
    let settings = Settings { save_timeout: Duration::from_millis(100), ..brisk(1) };
    let pool = ready(sessions_of(&yard, HOOKS, settings)).await;
    let old = remember(&pool, "mine", json!(7)).await;
    recycle(&pool, old).await;
    until("it saves", || yard.lines("saving").len() == 1).await;
    let (pid, kept, found) = recall(&pool, "mine").await;
    assert_ne!(pid, old);
    assert_eq!((kept, found), (Value::Null, Continuity::Restarted));
    until("it has left", || ends(&pool) == ["ordered"]).await;
    stop(pool).await;
}

#[tokio::test]
async fn a_process_that_dies_while_it_saves_has_lost_its_sessions() {
    for (affinity, strict) in [(Affinity::StrictQueue, true), (Affinity::Hint, false)] {
        let yard = Yard::new();
        yard.give("hang");
        let settings = Settings { save_timeout: LIMIT, ..brisk(1) };
        let pool = ready(PoolSpec { affinity, ..sessions_of(&yard, HOOKS, settings) }).await;
        let old = remember(&pool, "mine", json!(7)).await;
        recycle(&pool, old).await;
        until("it saves", || yard.lines("saving").len() == 1).await;
        send(old, libc::SIGKILL);
        event(&pool, EventKind::SessionLost).await;
        if strict {
            let told = refusal(of(&pool, "mine", call("recall", "")).await).await;
            assert_eq!(told, Refusal::SessionWorkerLost);
        }
        let (_, kept, found) = recall(&pool, "mine").await;
        let anew = if strict { Continuity::Bound } else { Continuity::Restarted };
        assert_eq!((kept, found), (Value::Null, anew));
        until("one is left", || pool.info().workers.len() == 1).await;
        stop(pool).await;
    }
}

#[tokio::test]
async fn those_who_wait_while_a_session_is_saved_are_told_when_its_process_dies() {
    let yard = Yard::new();
    yard.give("hang");
    let settings = Settings { save_timeout: LIMIT, ..brisk(1) };
    let pool = ready(sessions_of(&yard, HOOKS, settings)).await;
    let old = remember(&pool, "mine", json!(7)).await;
    recycle(&pool, old).await;
    until("it saves", || yard.lines("saving").len() == 1).await;
    let waits = of(&pool, "mine", call("recall", "")).await;
    until("it waits", || pool.info().view.queued == 1).await;
    let other = home(&pool, "other").await.0;
    assert_ne!(other, old, "others use the new one");
    send(old, libc::SIGKILL);
    assert_eq!(refusal(waits).await, Refusal::SessionWorkerLost);
    assert_eq!(recall(&pool, "mine").await.2, Continuity::Bound);
    stop(pool).await;
}

#[tokio::test]
async fn a_state_of_bytes_moves_as_bytes_once_it_is_taken_in() {
    let yard = Yard::new();
    let pool = ready(sessions_of(&yard, "moves-bytes.py", brisk(1))).await;
    let old = remember(&pool, "mine", json!("\u{0}é")).await;
    yard.give("refuse");
    recycle(&pool, old).await;
    until("it has left", || ends(&pool) == ["ordered"]).await;
    for attempt in 1..=2 {
        let refused = failure(of(&pool, "mine", call("recall", "")).await).await;
        let Failure::Application(error) = refused else { panic!("{refused:?}") };
        assert!(error.message.contains("restore_session"), "{error:?}");
        assert_eq!(yard.lines("restoring").len(), attempt, "it is tried again");
    }
    yard.take_back("refuse");
    assert_eq!(recall(&pool, "mine").await.1, json!("\u{0}é"));
    stop(pool).await;
}

#[tokio::test]
async fn a_state_that_was_taken_in_is_lost_with_its_process() {
    let yard = Yard::new();
    let pool = ready(sessions_of(&yard, HOOKS, brisk(1))).await;
    let old = remember(&pool, "mine", json!(7)).await;
    recycle(&pool, old).await;
    until("it has left", || ends(&pool) == ["ordered"]).await;
    let (new, kept, found) = recall(&pool, "mine").await;
    assert_eq!((kept, found), (json!(7), Continuity::Restored));
    send(new, libc::SIGKILL);
    event(&pool, EventKind::SessionLost).await;
    let told = refusal(of(&pool, "mine", call("recall", "")).await).await;
    assert_eq!(told, Refusal::SessionWorkerLost);
    let (_, kept, found) = recall(&pool, "mine").await;
    assert_eq!((kept, found), (Value::Null, Continuity::Bound));
    stop(pool).await;
}

#[tokio::test]
async fn a_state_that_nobody_has_taken_in_survives_the_successor() {
    let yard = Yard::new();
    let pool = ready(sessions_of(&yard, HOOKS, brisk(1))).await;
    let old = remember(&pool, "mine", json!(7)).await;
    recycle(&pool, old).await;
    until("it has left", || ends(&pool) == ["ordered"]).await;
    send(pid(&pool, 0).await, libc::SIGKILL);
    until("the next one is ready", || generation(&pool) == 2 && pool.info().view.ready == 1).await;
    let (_, kept, found) = recall(&pool, "mine").await;
    assert_eq!((kept, found), (json!(7), Continuity::Restored));
    stop(pool).await;
}

#[tokio::test]
async fn a_state_that_was_saved_is_there_for_the_next_server() {
    let yard = Yard::new();
    let store = yard.path("store.db");
    let begin = async || {
        let sessions = Sessions::open(&store, SessionSettings::default()).await.expect("a store");
        let directory = Directory::new().with_sessions(sessions.clone());
        (ready(PoolSpec { directory, ..sessions_of(&yard, HOOKS, brisk(1)) }).await, sessions)
    };
    let (pool, sessions) = begin().await;
    let old = remember(&pool, "mine", json!(7)).await;
    recycle(&pool, old).await;
    until("it has left", || ends(&pool) == ["ordered"]).await;
    stop(pool).await;
    sessions.close().await;
    drop(sessions);
    let (pool, sessions) = begin().await;
    let (_, kept, found) = recall(&pool, "mine").await;
    assert_eq!((kept, found), (json!(7), Continuity::Restored));
    stop(pool).await;
    sessions.close().await;
}
