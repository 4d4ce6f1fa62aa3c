//! Workers that go though they did nothing wrong: a new one is ready before each of them leaves,
//! and no caller notices.

use std::collections::BTreeSet;
use std::time::Duration;

use ostler_runtime::core::{Action, LossReason, Reply, Settings, StopReason};
use ostler_runtime::{Call, EventKind, Failure, Pool};

use super::crowd::*;
use super::support::*;

const MIB: u64 = 1 << 20;

async fn running(yard: &Yard, worker: &str, settings: Settings) -> Pool {
    let settings = Settings { queue_timeout: LIMIT, ..settings };
    let pool = start(yard.around(spec(functions(worker), settings))).await;
    within("all are ready", pool.all_ready()).await;
    pool
}

/// Takes a moment, so that many calls take longer than a start.
fn a_moment() -> Call {
    call("wait", "[0.01]")
}

#[tokio::test]
async fn processes_that_have_served_enough_are_replaced_and_no_caller_notices() {
    for retire_max in [1, 2] {
        let settings = Settings { max_requests: Some(10), retire_max, ..brisk(2) };
        let pool = running(&Yard::new(), "functions.py", settings).await;
        let mut callers = Vec::new();
        for _ in 0..8 {
            let pool = pool.clone();
            callers.push(tokio::spawn(async move {
                for _ in 0..100 {
                    end(pool.call(a_moment())).await.expect("no call fails");
                }
            }));
        }
        for caller in callers {
            caller.await.expect("no call fails");
        }
        assert_eq!(pool.info().view.counters.resolved, 800);
        until("the first two have left", || ends(&pool).len() >= 2).await;
        for ended in told(&pool, EventKind::WorkerTerminated) {
            assert_eq!(ended.reason, Some("max_requests"));
            assert!(ended.detail["requests"].as_u64() >= Some(10), "{ended:?}");
            assert_eq!(ended.detail["planned"], true);
        }
        let events = events(&pool);
        let most = most_between(&events, EventKind::WorkerSpawned, EventKind::WorkerTerminated);
        assert!(most <= 2 + retire_max as usize, "{most} at a time");
        assert!(fewest_serving(&events) >= 2, "one left too early");
        nothing_amiss(&pool);
        stop(pool).await;
    }
}

#[tokio::test]
async fn workers_that_grow_old_together_leave_one_by_one() {
    let ttl = Some(Duration::from_millis(100));
    let pool = running(&Yard::new(), "functions.py", Settings { ttl, ..brisk(8) }).await;
    let crowd = Crowd::of(6, &pool, &a_moment());
    until("the eight have left", || {
        let ended = told(&pool, EventKind::WorkerTerminated);
        let ended: BTreeSet<_> = ended.iter().filter_map(|event| event.worker.clone()).collect();
        (1..=8).all(|n| ended.contains(&*format!("test-{n}")))
    })
    .await;
    crowd.goes_home().await;
    assert!(ends(&pool).iter().all(|reason| *reason == "ttl"), "{:?}", ends(&pool));
    let events = events(&pool);
    let leaving = most_between(&events, EventKind::WorkerStopping, EventKind::WorkerTerminated);
    assert_eq!(leaving, 1, "leave at a time");
    let most = most_between(&events, EventKind::WorkerSpawned, EventKind::WorkerTerminated);
    assert_eq!(most, 9, "processes at a time");
    assert!(successors_came_first(&events, 8), "one left before its successor was ready");
    nothing_amiss(&pool);
    stop(pool).await;
}

#[tokio::test]
async fn a_worker_that_has_grown_too_large_is_replaced() {
    for grow in ["grow", "fork_and_grow", "orphan_and_grow"] {
        let settings = Settings { max_memory: Some(100 * MIB), ..brisk(1) };
        let pool = running(&Yard::new(), "leaks.py", settings).await;
        let old = Process::find(pid(&pool, 0).await);
        let crowd = Crowd::of(1, &pool, &call("size", ""));
        end(pool.call(call(grow, "[100]"))).await.expect("growing is no failure");
        until(&format!("it leaves after {grow}"), || ends(&pool) == ["max_memory"]).await;
        assert!(!old.lives());
        crowd.goes_on(10).await;
        crowd.goes_home().await;
        let events = events(&pool);
        assert!(fewest_serving(&events) >= 1, "it left before its successor was ready");
        nothing_amiss(&pool);
        stop(pool).await;
    }
}

#[tokio::test]
async fn memory_that_a_worker_has_is_shown_with_it() {
    // With a limit it is looked at more often.
    let settings = Settings { max_memory: Some(1_000 * MIB), ..brisk(1) };
    let pool = running(&Yard::new(), "leaks.py", settings).await;
    end(pool.call(call("grow", "[50]"))).await.expect("it grows");
    let memory = || pool.info().workers[0].view.memory;
    until("it is measured", || memory() > 50 * MIB && memory() < 500 * MIB).await;
    stop(pool).await;
}

#[tokio::test]
async fn a_worker_beyond_the_hard_limit_is_killed_and_only_its_own_request_fails() {
    let yard = Yard::new();
    let settings =
        Settings { max_memory_hard: Some(100 * MIB), max_memory: Some(90 * MIB), ..brisk(2) };
    let pool = running(&yard, "swells.py", settings).await;
    let greedy = pool.call(call("swell", "[110]"));
    until("it begins", || yard.lines("begun").len() == 1).await;
    let old = Process::find(yard.lines("begun")[0].parse().expect("a pid"));
    let crowd = Crowd::of(1, &pool, &call("where", ""));
    let Failure::Crashed { reason, .. } = failure(greedy).await else { panic!("it was killed") };
    assert_eq!(reason, LossReason::Stopped(StopReason::MemoryExceeded));
    gone(&old).await;
    until("there are two again", || pool.info().view.ready == 2).await;
    crowd.goes_home().await;
    let stopping = event(&pool, EventKind::WorkerStopping).await;
    assert_eq!(stopping.reason, Some("memory_exceeded"));
    let failed = told(&pool, EventKind::RequestFailed);
    assert_eq!(
        failed.iter().map(|event| event.reason).collect::<Vec<_>>(),
        [Some("worker_stopped")]
    );
    stop(pool).await;
}

#[tokio::test]
async fn a_pool_is_recycled_worker_by_worker_under_load() {
    let pool = running(&Yard::new(), "functions.py", brisk(3)).await;
    let before = all_pids(&pool);
    let crowd = Crowd::of(4, &pool, &a_moment());
    crowd.goes_on(10).await;
    let Reply::Recycling { workers } = order(&pool, Action::RecyclePool).await else {
        panic!("it is done one by one")
    };
    assert_eq!(workers.len(), 3);
    until("the three have left", || ends(&pool) == ["ordered"; 3]).await;
    crowd.goes_on(10).await;
    crowd.goes_home().await;
    until("three serve", || pool.info().view.ready == 3).await;
    assert!(all_pids(&pool).is_disjoint(&before), "somebody stayed");
    let events = events(&pool);
    let most = most_between(&events, EventKind::WorkerSpawned, EventKind::WorkerTerminated);
    assert_eq!(most, 4, "processes at a time");
    assert!(fewest_serving(&events) >= 3, "one left too early");
    nothing_amiss(&pool);
    stop(pool).await;
}

fn all_pids(pool: &Pool) -> BTreeSet<i32> {
    pool.info().workers.iter().filter_map(|worker| worker.pid).collect()
}

#[tokio::test]
async fn a_retired_worker_finishes_what_it_has_begun() {
    let yard = Yard::new();
    let pool = running(&yard, "functions.py", brisk(1)).await;
    let inside = pool.call(call("hold", r#"["inside"]"#));
    until("it runs", || yard.lines("begun").len() == 1).await;
    let old = Process::find(pid(&pool, 0).await);
    order(&pool, Action::Recycle(worker_with(&pool, old.pid))).await;
    let answered = end(pool.call(call("echo", "[1]"))).await.expect("the new one serves");
    assert_eq!(answered.worker.as_deref(), Some("test-2"));
    assert!(old.lives(), "it was not done");
    yard.give("go");
    assert_eq!(text(&end(inside).await.expect("it ends in peace").body), r#""inside""#);
    gone(&old).await;
    nothing_amiss(&pool);
    stop(pool).await;
}

#[tokio::test]
async fn a_worker_whose_successor_does_not_come_up_serves_on() {
    let yard = Yard::new();
    let settings = Settings { start_timeout: Duration::from_millis(300), ..brisk(1) };
    yard.give("licence");
    let program = program("waits-for-a-licence.sh").await;
    let pool = start(yard.around(spec(program, settings))).await;
    within("it is ready", pool.all_ready()).await;
    let old = Process::find(pid(&pool, 0).await);
    yard.take_back("licence");
    order(&pool, Action::Recycle(worker_with(&pool, old.pid))).await;
    until("its successor has ended", || !ends(&pool).is_empty()).await;
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    assert!(old.lives(), "it left without a successor");
    stop(pool).await;
}
