//! Sessions and the processes they meet: the three modes, first bindings, losses.

use std::path::Path;
use std::time::Duration;

use ostler_runtime::core::{Action, Refusal, Reply, SessionId, Settings};
use ostler_runtime::store::{SessionSettings, Sessions};
use ostler_runtime::{
    Affinity, CallError, Continuity, Directory, EventKind, Failure, Pool, PoolSpec,
    ProcessSettings, Profile, Refused, Running,
};
use serde_json::{Value, json};

use super::crowd::*;
use super::support::*;

const STRICT: [Affinity; 2] = [Affinity::StrictQueue, Affinity::StrictFailFast];

fn guests(yard: &Yard, size: u32, affinity: Affinity) -> PoolSpec {
    let settings = Settings { queue_timeout: LIMIT, ..brisk(size) };
    yard.around(PoolSpec { affinity, ..spec(functions("guests.py"), settings) })
}

async fn ready(spec: PoolSpec) -> Pool {
    let pool = start(spec).await;
    within("all are ready", pool.all_ready()).await;
    pool
}

/// The process in which a session's call stays until a sign is given.
async fn staying(yard: &Yard, pool: &Pool, session: &str, sign: &str) -> (Running, i32) {
    let before = yard.lines("begun").len();
    let running = of(pool, session, call("stay", &json!([sign]).to_string())).await;
    until("it stays", || yard.lines("begun").len() > before).await;
    let line = yard.lines("begun").pop().expect("just seen");
    (running, line.rsplit(' ').next().and_then(|pid| pid.parse().ok()).expect("a pid"))
}

async fn entered(pool: &Pool, id: &str) -> Result<u64, CallError> {
    within("it is entered", pool.enter(id, None)).await.map(|session| session.number)
}

#[tokio::test]
async fn a_session_meets_the_process_it_met_first() {
    for affinity in [Affinity::Hint, Affinity::StrictQueue, Affinity::StrictFailFast] {
        let pool = ready(guests(&Yard::new(), 3, affinity)).await;
        let (mine, first) = home(&pool, "mine").await;
        assert_eq!(first, Continuity::Bound);
        for n in 0..20 {
            // Others come and go, and use whichever is warm.
            home(&pool, &format!("other-{}", n % 5)).await;
            assert_eq!(home(&pool, "mine").await, (mine, Continuity::Same), "{affinity:?}");
        }
        let number = entered(&pool, "mine").await.expect("it is there");
        let worker = worker_with(&pool, mine);
        assert_eq!(pool.binding(number).as_deref(), Some(&*format!("test-{}", worker.0)));
        let counters = pool.info().view.counters;
        assert_eq!((counters.affinity_hits, counters.affinity_misses), (35, 0));
        stop(pool).await;
    }
}

#[tokio::test]
async fn a_session_that_hints_goes_elsewhere_while_its_own_is_busy_and_comes_back() {
    let yard = Yard::new();
    let pool = ready(guests(&yard, 2, Affinity::Hint)).await;
    let (stays, mine) = staying(&yard, &pool, "mine", "go").await;
    let (other, found) = home(&pool, "mine").await;
    assert_ne!(other, mine);
    assert_eq!(found, Continuity::Elsewhere);
    yard.give("go");
    served(stays).await;
    assert_eq!(home(&pool, "mine").await, (mine, Continuity::Same));
    stop(pool).await;
}

#[tokio::test]
async fn a_session_that_queues_waits_for_its_own_while_others_pass_by() {
    let yard = Yard::new();
    let pool = ready(guests(&yard, 2, Affinity::StrictQueue)).await;
    let (stays, mine) = staying(&yard, &pool, "mine", "go").await;
    let waits = of(&pool, "mine", call("where", "")).await;
    until("it waits", || pool.info().view.queued == 1).await;
    for n in 0..5 {
        let (other, _) = home(&pool, &format!("other-{n}")).await;
        assert_ne!(other, mine);
    }
    assert_eq!(pool.info().view.queued, 1, "it did not wait for its own");
    yard.give("go");
    served(stays).await;
    assert_eq!(served(waits).await, (json!(mine), Continuity::Same));
    stop(pool).await;
}

#[tokio::test]
async fn a_session_that_fails_fast_is_told_that_its_own_is_busy() {
    let yard = Yard::new();
    let pool = ready(guests(&yard, 2, Affinity::StrictFailFast)).await;
    let (stays, mine) = staying(&yard, &pool, "mine", "go").await;
    assert_eq!(refusal(of(&pool, "mine", call("where", "")).await).await, Refusal::WorkerBusy);
    yard.give("go");
    served(stays).await;
    assert_eq!(home(&pool, "mine").await, (mine, Continuity::Same));
    stop(pool).await;
}

#[tokio::test]
async fn a_call_may_have_another_mode_than_its_pool() {
    let yard = Yard::new();
    let pool = ready(guests(&yard, 2, Affinity::Hint)).await;
    let (stays, mine) = staying(&yard, &pool, "mine", "go").await;
    let mode = Some(Affinity::StrictFailFast);
    let busy = under(&pool, "mine", mode, call("where", "")).await;
    assert_eq!(refusal(busy).await, Refusal::WorkerBusy);
    let mode = Some(Affinity::StrictQueue);
    let waits = under(&pool, "mine", mode, call("where", "")).await;
    until("it waits", || pool.info().view.queued == 1).await;
    yard.give("go");
    served(stays).await;
    assert_eq!(served(waits).await, (json!(mine), Continuity::Same));
    stop(pool).await;
}

#[tokio::test]
async fn first_calls_made_at_once_land_on_one_process() {
    for early in [true, false] {
        let pool = start(guests(&Yard::new(), 3, Affinity::StrictQueue)).await;
        if !early {
            within("all are ready", pool.all_ready()).await;
        }
        for session in ["a", "b", "c"] {
            let mut calls = Vec::new();
            for _ in 0..6 {
                calls.push(of(&pool, session, call("where", "")).await);
            }
            let mut homes = Vec::new();
            for running in calls {
                homes.push(served(running).await);
            }
            let firsts = homes.iter().filter(|(_, found)| *found == Continuity::Bound).count();
            assert_eq!(firsts, 1, "{homes:?}");
            assert!(homes.iter().all(|(pid, _)| *pid == homes[0].0), "{homes:?}");
        }
        stop(pool).await;
    }
}

#[tokio::test]
async fn sessions_are_side_by_side_in_one_worker_of_threads_or_tasks() {
    for profile in [Profile::Thread { threads: 4 }, Profile::Async { concurrency: 4 }] {
        let yard = Yard::new();
        let processes = ProcessSettings { profile, ..ProcessSettings::default() };
        let spec = PoolSpec { processes, ..guests(&Yard::new(), 1, Affinity::StrictQueue) };
        let pool = ready(yard.around(spec)).await;
        let mut inside = Vec::new();
        for session in ["a", "b", "c"] {
            inside.push(staying(&yard, &pool, session, "go").await);
        }
        assert!(inside.iter().all(|(_, pid)| *pid == inside[0].1), "one process");
        assert_eq!(pool.info().workers[0].sessions.len(), 3);
        assert_eq!(home(&pool, "a").await, (inside[0].1, Continuity::Same), "beside itself");
        yard.give("go");
        for (running, _) in inside {
            assert_eq!(served(running).await.1, Continuity::Bound);
        }
        stop(pool).await;
    }
}

#[tokio::test]
async fn sessions_take_turns_in_one_worker_that_does_one_thing_at_a_time() {
    let yard = Yard::new();
    let pool = ready(guests(&yard, 1, Affinity::StrictQueue)).await;
    let (first, mine) = staying(&yard, &pool, "a", "go").await;
    let second = of(&pool, "b", call("stay", "")).await;
    until("the other waits", || pool.info().view.queued == 1).await;
    assert_eq!(yard.lines("begun"), [format!("a {mine}")]);
    yard.give("go");
    assert_eq!(served(first).await.0, json!(mine));
    assert_eq!(served(second).await, (json!(mine), Continuity::Bound));
    stop(pool).await;
}

#[tokio::test]
async fn a_strict_session_is_told_once_that_its_process_is_gone() {
    for affinity in STRICT {
        let pool = ready(guests(&Yard::new(), 2, affinity)).await;
        let (mine, _) = home(&pool, "mine").await;
        let old = Process::find(mine);
        send(mine, libc::SIGKILL);
        event(&pool, EventKind::SessionLost).await;
        gone(&old).await;
        let told = refusal(of(&pool, "mine", call("where", "")).await).await;
        assert_eq!(told, Refusal::SessionWorkerLost);
        let (next, found) = home(&pool, "mine").await;
        assert_eq!(found, Continuity::Bound, "it begins anew");
        assert_eq!(home(&pool, "mine").await, (next, Continuity::Same));
        stop(pool).await;
    }
}

#[tokio::test]
async fn those_who_wait_for_a_process_that_dies_are_told_at_once() {
    let yard = Yard::new();
    let pool = ready(guests(&yard, 2, Affinity::StrictQueue)).await;
    let (inside, mine) = staying(&yard, &pool, "mine", "never").await;
    let mut waiting = Vec::new();
    for _ in 0..3 {
        waiting.push(of(&pool, "mine", call("where", "")).await);
    }
    until("they wait", || pool.info().view.queued == 3).await;
    send(mine, libc::SIGKILL);
    assert!(matches!(failure(inside).await, Failure::Crashed { .. }));
    for running in waiting {
        assert_eq!(refusal(running).await, Refusal::SessionWorkerLost);
    }
    assert_eq!(home(&pool, "mine").await.1, Continuity::Bound, "it was told");
    stop(pool).await;
}

#[tokio::test]
async fn a_session_that_hints_goes_on_with_another_process_and_the_event_says_so() {
    let pool = ready(guests(&Yard::new(), 2, Affinity::Hint)).await;
    let (mine, _) = home(&pool, "mine").await;
    send(mine, libc::SIGKILL);
    event(&pool, EventKind::SessionLost).await;
    let (other, found) = home(&pool, "mine").await;
    assert_ne!(other, mine);
    assert_eq!(found, Continuity::Restarted);
    assert_eq!(steps(&pool, "mine"), ["session.lost", "session.rebound/restarted"]);
    assert_eq!(home(&pool, "mine").await, (other, Continuity::Same));
    stop(pool).await;
}

#[tokio::test]
async fn a_session_that_was_silent_for_long_is_bound_to_nobody() {
    let yard = Yard::new();
    let mut spec = guests(&yard, 2, Affinity::Hint);
    spec.settings.affinity_ttl = Duration::ZERO;
    let pool = ready(spec).await;
    let (mine, _) = home(&pool, "mine").await;
    let number = entered(&pool, "mine").await.expect("it is there");
    let (stays, busy) = staying(&yard, &pool, "other", "go").await;
    assert_eq!(busy, mine, "the warm one");
    let (next, found) = home(&pool, "mine").await;
    assert_ne!(next, mine);
    assert_eq!(found, Continuity::Bound);
    let bound = pool.binding(number);
    assert_eq!(bound.as_deref(), Some(&*format!("test-{}", worker_with(&pool, next).0)));
    yard.give("go");
    served(stays).await;
    stop(pool).await;
}

#[tokio::test]
async fn a_session_is_bound_and_unbound_by_hand() {
    let pool = ready(guests(&Yard::new(), 2, Affinity::StrictQueue)).await;
    let (mine, _) = home(&pool, "mine").await;
    let session = SessionId(entered(&pool, "mine").await.expect("it is there"));
    let workers = pool.info().workers;
    let other = workers.iter().find(|worker| worker.pid != Some(mine)).expect("there are two");
    let reply = order(&pool, Action::Bind { session, worker: other.view.id }).await;
    assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
    let other = other.pid.expect("it is ready");
    assert_eq!(home(&pool, "mine").await, (other, Continuity::Restarted));
    assert_eq!(home(&pool, "mine").await, (other, Continuity::Same));
    assert_eq!(order(&pool, Action::Unbind(session)).await, Reply::PoolDone);
    assert_eq!(pool.binding(session.0), None);
    assert_eq!(home(&pool, "mine").await.1, Continuity::Bound);
    stop(pool).await;
}

#[tokio::test]
async fn the_binding_of_a_deleted_session_ends_with_it() {
    let pool = ready(guests(&Yard::new(), 2, Affinity::StrictQueue)).await;
    home(&pool, "mine").await;
    let number = entered(&pool, "mine").await.expect("it is there");
    pool.directory().sessions().delete("mine", None).await.expect("it is there");
    until("it is unbound", || pool.binding(number).is_none()).await;
    assert_eq!(home(&pool, "mine").await.1, Continuity::Bound, "another session");
    assert_ne!(entered(&pool, "mine").await.expect("it is there"), number);
    stop(pool).await;
}

async fn with_store(yard: &Yard, store: &Path, affinity: Affinity) -> (Pool, Sessions) {
    let sessions = Sessions::open(store, SessionSettings::default()).await.expect("a store");
    let directory = Directory::new().with_sessions(sessions.clone());
    (ready(PoolSpec { directory, ..guests(yard, 1, affinity) }).await, sessions)
}

#[tokio::test]
async fn a_strict_session_is_told_once_that_the_server_was_another() {
    let yard = Yard::new();
    let store = yard.path("store.db");
    let (pool, sessions) = with_store(&yard, &store, Affinity::StrictQueue).await;
    assert_eq!(home(&pool, "mine").await.1, Continuity::Bound);
    stop(pool).await;
    sessions.close().await;
    drop(sessions);
    let (pool, sessions) = with_store(&yard, &store, Affinity::StrictQueue).await;
    let lost = CallError::Refused(Refused::Pool(Refusal::SessionWorkerLost));
    assert_eq!(entered(&pool, "mine").await, Err(lost));
    assert_eq!(home(&pool, "mine").await.1, Continuity::Bound);
    assert_eq!(home(&pool, "new").await.1, Continuity::Bound, "it has nothing to lose");
    stop(pool).await;
    sessions.close().await;
}

mod handlers {
    //! Sessions as handlers read and write them.

    use super::*;

    async fn writing(profile: Profile, size: u32) -> Pool {
        let processes = ProcessSettings { profile, ..ProcessSettings::default() };
        let settings = Settings { queue_timeout: LIMIT, ..brisk(size) };
        ready(PoolSpec { processes, ..spec(functions("reads-and-writes.py"), settings) }).await
    }

    async fn do_in(pool: &Pool, session: &str, function: &str, arguments: Value) -> Value {
        ask_of(pool, session, function, &arguments.to_string()).await.0
    }

    #[tokio::test]
    async fn a_handler_reads_and_writes_the_session_of_its_request_and_no_other() {
        let pool = writing(Profile::Process, 2).await;
        let value = json!({ "é": [1, null] });
        assert_eq!(do_in(&pool, "a", "put", json!(["k", value])).await, json!({ "k": value }));
        do_in(&pool, "b", "put", json!(["k", 2])).await;
        let a = do_in(&pool, "a", "look", json!([])).await;
        assert_eq!((&a["id"], &a["metadata"]["k"]), (&json!("a"), &value), "{a}");
        assert_eq!(do_in(&pool, "b", "look", json!([])).await["metadata"], json!({ "k": 2 }));
        assert_eq!(do_in(&pool, "a", "take_away", json!(["k"])).await, json!({}));
        let stored = pool.directory().sessions().peek("a").expect("it is there");
        assert_eq!(stored.metadata.get(), "{}");
        stop(pool).await;
    }

    #[tokio::test]
    async fn a_write_that_believes_in_an_older_version_changes_nothing() {
        let pool = writing(Profile::Process, 1).await;
        let version = do_in(&pool, "a", "look", json!([])).await["version"].clone();
        let first = do_in(&pool, "a", "put_late", json!(["k", 1, version])).await;
        assert_eq!(first, Value::Null);
        let second = do_in(&pool, "a", "put_late", json!(["k", 2, version])).await;
        assert_eq!(second, "version_conflict");
        assert_eq!(do_in(&pool, "a", "look", json!([])).await["metadata"], json!({ "k": 1 }));
        stop(pool).await;
    }

    #[tokio::test]
    async fn fifty_updates_at_once_add_up() {
        let tasks = (Profile::Async { concurrency: 50 }, 1, "add_async");
        let threads = (Profile::Thread { threads: 8 }, 1, "add");
        let processes = (Profile::Process, 3, "add");
        for (profile, size, add) in [tasks, threads, processes] {
            let pool = writing(profile, size).await;
            let mut adding = Vec::new();
            for _ in 0..50 {
                adding.push(of(&pool, "a", call(add, "")).await);
            }
            let mut sums = Vec::new();
            for running in adding {
                sums.push(served(running).await.0.as_u64().expect("a sum"));
            }
            sums.sort_unstable();
            assert_eq!(sums, (1..=50).collect::<Vec<u64>>(), "{profile:?}");
            let metadata = do_in(&pool, "a", "look", json!([])).await["metadata"].clone();
            assert_eq!(metadata, json!({ "sum": 50 }));
            stop(pool).await;
        }
    }

    #[tokio::test]
    async fn programs_are_json_or_bytes_and_come_back_as_they_were() {
        let pool = writing(Profile::Process, 2).await;
        let value = json!({ "steps": [1, "é"] });
        do_in(&pool, "a", "write", json!(["plan", value])).await;
        do_in(&pool, "a", "write_bytes", json!(["blob", "\u{0}\u{1}é"])).await;
        assert_eq!(do_in(&pool, "a", "read", json!(["plan"])).await, value);
        let read = end(of(&pool, "a", call("read", r#"["blob"]"#)).await).await;
        let body = read.expect("it is there").body;
        assert!(body.is_raw());
        assert_eq!(&body.bytes[..], "\u{0}\u{1}é".as_bytes());
        let look = do_in(&pool, "a", "look", json!([])).await;
        assert_eq!(look["programs"], json!(["blob", "plan"]));
        let sessions = pool.directory().sessions();
        let stored = sessions.get_program("a", "plan").await.expect("it is there");
        assert_eq!(&*stored.content.content_type, "application/json");
        do_in(&pool, "a", "remove", json!(["plan"])).await;
        let Failure::Application(error) =
            failure(of(&pool, "a", call("read", r#"["plan"]"#)).await).await
        else {
            panic!("it was removed")
        };
        assert_eq!(error.kind.as_deref(), Some("KeyError"));
        stop(pool).await;
    }

    #[tokio::test]
    async fn a_handler_without_a_session_is_told_how_to_get_one() {
        let pool = writing(Profile::Process, 1).await;
        let Failure::Application(error) = failure(pool.call(call("look", ""))).await else {
            panic!("there is none")
        };
        assert_eq!(error.kind.as_deref(), Some("NoSession"));
        assert!(error.message.contains("Ostler-Session"), "{error:?}");
        stop(pool).await;
    }
}
