//! Pools in which each session, or each workspace, has a process of its own.

use std::collections::BTreeSet;
use std::time::Duration;

use ostler_runtime::core::{Evict, Keyed, Occupancy, Refusal, Settings};
use ostler_runtime::{
    Affinity, Call, CallError, Continuity, EventKind, Failure, KeyedBy, LeaseRequest, Pool,
    PoolSpec, Refused, Running,
};
use serde_json::{Value, json};

use super::crowd::*;
use super::support::*;

const HOOKS: &str = "saves-as-told.py";
const NO_HOOKS: &str = "guests.py";

fn keyed(yard: &Yard, worker: &str, max: u32) -> PoolSpec {
    let keyed = Keyed { evict: Evict::Lru, evict_min_age: Duration::ZERO };
    let settings = Settings { min: 0, keyed: Some(keyed), queue_timeout: LIMIT, ..brisk(max) };
    yard.around(PoolSpec {
        affinity: Affinity::StrictQueue,
        key: Some(KeyedBy::Session),
        ..spec(functions(worker), settings)
    })
}

fn rule(mut spec: PoolSpec, evict: Evict, evict_min_age: Duration) -> PoolSpec {
    spec.settings.keyed = Some(Keyed { evict, evict_min_age });
    spec
}

fn pids(pool: &Pool) -> BTreeSet<i32> {
    pool.info().workers.iter().filter_map(|worker| worker.pid).collect()
}

/// Somebody who stays until a sign is given.
async fn stay(yard: &Yard, pool: &Pool, session: &str, sign: &str) -> Running {
    let before = yard.lines("begun").len();
    let running = of(pool, session, call("stay", &json!([sign]).to_string())).await;
    until("it stays", || yard.lines("begun").len() > before).await;
    running
}

/// Has the process of a session come up, however long that takes.
async fn settle(pool: &Pool, session: &str) -> i32 {
    loop {
        match end(of(pool, session, call("where", "")).await).await {
            Ok(answered) => return text(&answered.body).parse().expect("a pid"),
            Err(CallError::Refused(Refused::Pool(Refusal::QueueTimeout))) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
}

/// Nobody had more processes than it may, at any time.
fn never_more_than(pool: &Pool, max: usize) {
    let events = events(pool);
    let most = most_between(&events, EventKind::WorkerSpawned, EventKind::WorkerTerminated);
    assert!(most <= max, "{most} at a time");
}

#[tokio::test]
async fn each_session_has_a_process_of_its_own_made_when_it_is_asked_for() {
    let pool = start(keyed(&Yard::new(), NO_HOOKS, 3)).await;
    assert_eq!(pool.info().view.occupancy, Occupancy::Idle);
    let mut homes = Vec::new();
    for session in ["a", "b", "c"] {
        let (pid, found) = home(&pool, session).await;
        assert_eq!(found, Continuity::Bound);
        homes.push(pid);
        assert_eq!(pids(&pool).len(), homes.len());
    }
    assert_eq!(pids(&pool), homes.iter().copied().collect());
    for _ in 0..3 {
        for (session, pid) in ["a", "b", "c"].iter().zip(&homes) {
            assert_eq!(home(&pool, session).await, (*pid, Continuity::Same));
        }
    }
    never_more_than(&pool, 3);
    nothing_amiss(&pool);
    stop(pool).await;
}

#[tokio::test]
async fn first_calls_of_a_session_made_at_once_make_one_process() {
    let pool = start(keyed(&Yard::new(), NO_HOOKS, 4)).await;
    let mut calls = Vec::new();
    for n in 0..12 {
        calls.push(of(&pool, ["a", "b", "c"][n % 3], call("where", "")).await);
    }
    let mut homes = vec![BTreeSet::new(); 3];
    for (n, running) in calls.into_iter().enumerate() {
        homes[n % 3].insert(as_pid(&served(running).await.0));
    }
    assert!(homes.iter().all(|pids| pids.len() == 1), "{homes:?}");
    assert_eq!(homes.iter().flatten().collect::<BTreeSet<_>>().len(), 3, "{homes:?}");
    assert_eq!(told(&pool, EventKind::WorkerSpawned).len(), 3);
    nothing_amiss(&pool);
    stop(pool).await;
}

#[tokio::test]
async fn a_call_that_belongs_to_nobody_is_refused() {
    let pool = start(keyed(&Yard::new(), NO_HOOKS, 1)).await;
    let refused = end(pool.call(call("where", ""))).await;
    assert_eq!(refused, Err(CallError::Refused(Refused::SessionRequired)));
    let lease = within("it is answered", pool.lease(LeaseRequest::default())).await;
    assert_eq!(lease.unwrap_err(), Refused::Pool(Refusal::NotInKeyedPool));
    assert!(pids(&pool).is_empty());
    stop(pool).await;
}

#[tokio::test]
async fn at_capacity_the_rule_says_who_goes() {
    for (evict, goes) in [(Evict::Oldest, "a"), (Evict::Lru, "b"), (Evict::LeastUsed, "c")] {
        let pool = start(rule(keyed(&Yard::new(), NO_HOOKS, 3), evict, Duration::ZERO)).await;
        let mut homes = std::collections::BTreeMap::new();
        // Made a, b, c; used last a, c, b; used least c.
        for session in ["a", "b", "c", "b", "b", "c", "a", "a"] {
            homes.insert(session, home(&pool, session).await.0);
        }
        assert_eq!(pool.info().view.occupancy, Occupancy::AtCapacity);
        let (new, _) = home(&pool, "d").await;
        let gone = homes.remove(goes).expect("it was there");
        let left: BTreeSet<i32> = homes.into_values().chain([new]).collect();
        assert_eq!(pids(&pool), left, "{evict:?}: {gone} goes");
        assert_eq!(ends(&pool), ["evicted"]);
        never_more_than(&pool, 3);
        nothing_amiss(&pool);
        stop(pool).await;
    }
}

#[tokio::test]
async fn an_evicted_session_is_told_once_unless_its_state_moved() {
    for hooks in [true, false] {
        let yard = Yard::new();
        let pool = start(keyed(&yard, if hooks { HOOKS } else { NO_HOOKS }, 1)).await;
        ask_of(&pool, "a", "remember", "[7]").await;
        assert_eq!(home(&pool, "b").await.1, Continuity::Bound);
        if hooks {
            let (kept, found) = ask_of(&pool, "a", "recall", "").await;
            assert_eq!((&kept["value"], found), (&json!(7), Continuity::Restored));
            assert_eq!(steps(&pool, "a"), ["session.saved", "session.rebound/restored"]);
        } else {
            let told = refusal(of(&pool, "a", call("recall", "")).await).await;
            assert_eq!(told, Refusal::SessionWorkerLost);
            let (kept, found) = ask_of(&pool, "a", "recall", "").await;
            assert_eq!((&kept["value"], found), (&Value::Null, Continuity::Bound));
            assert_eq!(steps(&pool, "a"), ["session.lost"]);
        }
        never_more_than(&pool, 1);
        stop(pool).await;
    }
}

#[tokio::test]
async fn a_busy_process_is_never_evicted() {
    let yard = Yard::new();
    let pool = start(keyed(&yard, NO_HOOKS, 2)).await;
    let busy = stay(&yard, &pool, "busy", "go").await;
    for n in 0..4 {
        // Each evicts the one before, though the busy one was used longest ago.
        assert_eq!(home(&pool, &format!("s-{n}")).await.1, Continuity::Bound);
    }
    yard.give("go");
    assert_eq!(served(busy).await.1, Continuity::Bound);
    assert_eq!(home(&pool, "busy").await.1, Continuity::Same);
    assert_eq!(ends(&pool), ["evicted"; 3]);
    never_more_than(&pool, 2);
    nothing_amiss(&pool);
    stop(pool).await;
}

#[tokio::test]
async fn with_all_busy_a_session_waits_for_the_first_that_is_done() {
    let yard = Yard::new();
    let pool = start(keyed(&yard, NO_HOOKS, 2)).await;
    let a = stay(&yard, &pool, "a", "go-a").await;
    let b = stay(&yard, &pool, "b", "go-b").await;
    let waits = of(&pool, "c", call("where", "")).await;
    until("it waits", || pool.info().view.queued == 1).await;
    yard.give("go-b");
    served(b).await;
    assert_eq!(served(waits).await.1, Continuity::Bound);
    yard.give("go-a");
    served(a).await;
    assert_eq!(home(&pool, "a").await.1, Continuity::Same);
    never_more_than(&pool, 2);
    nothing_amiss(&pool);
    stop(pool).await;
}

#[tokio::test]
async fn with_all_busy_a_session_is_refused_when_it_has_waited_long_enough() {
    let yard = Yard::new();
    let mut spec = keyed(&yard, NO_HOOKS, 1);
    spec.settings.queue_timeout = Duration::from_millis(200);
    let pool = start(spec).await;
    settle(&pool, "busy").await;
    let busy = stay(&yard, &pool, "busy", "go").await;
    let waits = of(&pool, "other", call("where", "")).await;
    assert_eq!(refusal(waits).await, Refusal::QueueTimeout);
    yard.give("go");
    served(busy).await;
    assert_eq!(ends(&pool), [""; 0], "it was not evicted");
    stop(pool).await;
}

#[tokio::test]
async fn a_process_that_is_too_young_is_not_evicted_until_it_is_older() {
    let yard = Yard::new();
    let mut spec = rule(keyed(&yard, NO_HOOKS, 1), Evict::Lru, Duration::from_secs(3_600));
    spec.settings.queue_timeout = Duration::from_millis(200);
    let pool = start(spec).await;
    let young = settle(&pool, "young").await;
    let waits = of(&pool, "other", call("where", "")).await;
    assert_eq!(refusal(waits).await, Refusal::QueueTimeout);
    assert_eq!(home(&pool, "young").await, (young, Continuity::Same));
    stop(pool).await;

    let age = Duration::from_millis(200);
    let pool = start(rule(keyed(&yard, NO_HOOKS, 1), Evict::Lru, age)).await;
    home(&pool, "young").await;
    assert_eq!(home(&pool, "other").await.1, Continuity::Bound, "it grew older");
    let ended = event(&pool, EventKind::WorkerTerminated).await;
    assert!(ended.seconds >= Some(age.as_secs_f64()), "{ended:?}");
    stop(pool).await;
}

#[tokio::test]
async fn the_process_of_a_deleted_session_leaves() {
    let yard = Yard::new();
    let pool = start(keyed(&yard, HOOKS, 2)).await;
    let gone_soon = Process::find(home(&pool, "a").await.0);
    let stays = Process::find(home(&pool, "b").await.0);
    pool.directory().sessions().delete("a", None).await.expect("it is there");
    gone(&gone_soon).await;
    until("it has left", || ends(&pool) == ["session_ended"]).await;
    assert!(stays.lives());
    assert_eq!(home(&pool, "a").await.1, Continuity::Bound, "another of that name");
    nothing_amiss(&pool);
    stop(pool).await;
}

#[tokio::test]
async fn the_process_of_a_session_deleted_in_its_midst_ends_its_request_first() {
    let yard = Yard::new();
    let pool = start(keyed(&yard, NO_HOOKS, 2)).await;
    let inside = stay(&yard, &pool, "a", "go").await;
    pool.directory().sessions().delete("a", None).await.expect("it is there");
    event(&pool, EventKind::WorkerRetiring).await;
    yard.give("go");
    served(inside).await;
    until("it has left", || ends(&pool) == ["session_ended"]).await;
    nothing_amiss(&pool);
    stop(pool).await;
}

#[tokio::test]
async fn a_session_whose_process_dies_is_told_once_and_gets_another() {
    let yard = Yard::new();
    let pool = start(keyed(&yard, NO_HOOKS, 2)).await;
    let inside = stay(&yard, &pool, "a", "never").await;
    let waits = of(&pool, "a", call("where", "")).await;
    until("it waits", || pool.info().view.queued == 1).await;
    let other = home(&pool, "b").await;
    let old: i32 = yard.lines("begun")[0].rsplit(' ').next().expect("two words").parse().unwrap();
    send(old, libc::SIGKILL);
    assert!(matches!(failure(inside).await, Failure::Crashed { .. }));
    assert_eq!(refusal(waits).await, Refusal::SessionWorkerLost);
    let (new, found) = home(&pool, "a").await;
    assert_ne!(new, old);
    assert_eq!(found, Continuity::Bound);
    assert_eq!(home(&pool, "b").await, (other.0, Continuity::Same));
    stop(pool).await;
}

#[tokio::test]
async fn processes_that_nobody_asks_for_leave() {
    let yard = Yard::new();
    let mut spec = keyed(&yard, HOOKS, 3);
    spec.settings.idle_ttl = Some(Duration::from_millis(200));
    let pool = start(spec).await;
    ask_of(&pool, "a", "remember", "[7]").await;
    home(&pool, "b").await;
    until("both have left", || ends(&pool) == ["idle"; 2]).await;
    assert!(pids(&pool).is_empty());
    let (kept, found) = ask_of(&pool, "a", "recall", "").await;
    assert_eq!((&kept["value"], found), (&json!(7), Continuity::Restored));
    nothing_amiss(&pool);
    stop(pool).await;
}

#[tokio::test]
async fn each_workspace_has_a_process_of_its_own() {
    let spec = keyed(&Yard::new(), NO_HOOKS, 3);
    let spec = PoolSpec { key: Some(KeyedBy::Workspace), affinity: Affinity::Hint, ..spec };
    let pool = start(spec).await;
    let at = async |workspace: Option<&str>| {
        let workspace = workspace.map(str::to_owned);
        let running = pool.call(Call { workspace, ..call("where", "") });
        text(&end(running).await.expect("it is served").body)
    };
    let (red, blue, none) = (at(Some("red")).await, at(Some("blue")).await, at(None).await);
    assert_eq!(BTreeSet::from([&red, &blue, &none]).len(), 3);
    for _ in 0..3 {
        assert_eq!(at(Some("red")).await, red);
        assert_eq!(at(Some("blue")).await, blue);
        assert_eq!(at(Some("default")).await, none);
    }
    let shown: BTreeSet<String> = pool
        .info()
        .workers
        .iter()
        .filter_map(|worker| worker.workspace.as_deref().map(str::to_owned))
        .collect();
    assert_eq!(shown, ["blue", "default", "red"].map(str::to_owned).into());
    nothing_amiss(&pool);
    stop(pool).await;
}

#[tokio::test]
async fn a_keyed_pool_is_recycled_session_by_session_and_nothing_is_lost() {
    let yard = Yard::new();
    let pool = start(keyed(&yard, HOOKS, 2)).await;
    for session in ["a", "b"] {
        ask_of(&pool, session, "remember", &json!([session]).to_string()).await;
    }
    let session = pool.enter("a", None).await.expect("it may be entered");
    let crowd = Crowd::of(2, &pool, &Call { session: Some(session), ..call("recall", "") });
    order(&pool, ostler_runtime::core::Action::RecyclePool).await;
    until("both have left", || ends(&pool) == ["ordered"; 2]).await;
    for answered in crowd.goes_home().await {
        let kept: Value = serde_json::from_slice(&answered.body.bytes).expect("JSON");
        assert_eq!(kept["value"], "a", "{answered:?}");
    }
    let (kept, found) = ask_of(&pool, "b", "recall", "").await;
    assert_eq!((&kept["value"], found), (&json!("b"), Continuity::Restored));
    never_more_than(&pool, 3);
    nothing_amiss(&pool);
    stop(pool).await;
}

#[tokio::test]
async fn a_call_whose_deadline_comes_while_all_are_busy_leaves_nothing() {
    let yard = Yard::new();
    let pool = start(keyed(&yard, NO_HOOKS, 1)).await;
    let busy = stay(&yard, &pool, "busy", "go").await;
    let brief = Call { timeout: Some(Duration::from_millis(50)), ..call("where", "") };
    let late = failure(of(&pool, "late", brief).await).await;
    assert!(matches!(late, Failure::TimedOut { .. }), "{late:?}");
    let cancelled = of(&pool, "cancelled", call("where", "")).await;
    until("it waits", || pool.info().view.queued == 1).await;
    drop(cancelled);
    until("nobody waits", || pool.info().view.queued == 0).await;
    yard.give("go");
    served(busy).await;
    assert_eq!(home(&pool, "busy").await.1, Continuity::Same, "it was not evicted for them");
    assert_eq!(told(&pool, EventKind::WorkerSpawned).len(), 1);
    stop(pool).await;
}
