//! Pools that grow when requests wait and shrink when workers idle.

use std::collections::BTreeSet;
use std::time::Duration;

use ostler_runtime::core::{Action, Reply, Settings};
use ostler_runtime::{EventKind, LeaseRequest, Pool, Running};

use super::crowd::*;
use super::support::*;

fn elastic(min: u32, max: u32) -> Settings {
    Settings { min, scale_up_after: Duration::from_millis(20), queue_timeout: LIMIT, ..brisk(max) }
}

async fn running(yard: &Yard, settings: Settings) -> Pool {
    start(yard.around(spec(functions("functions.py"), settings))).await
}

fn hold(pool: &Pool, callers: usize) -> Vec<Running> {
    (0..callers).map(|n| pool.call(call("hold", &format!(r#"["{n}"]"#)))).collect()
}

async fn all_end(calls: Vec<Running>) {
    for running in calls {
        end(running).await.expect("no call fails");
    }
}

fn most(pool: &Pool) -> usize {
    most_between(&events(pool), EventKind::WorkerSpawned, EventKind::WorkerTerminated)
}

/// What the pool said of its size, in order.
fn sizes(pool: &Pool) -> Vec<(u64, u64)> {
    let scaled = told(pool, EventKind::PoolScaled);
    let number = |value: &serde_json::Value| value.as_u64().expect("a number");
    let size = |of: &ostler_runtime::Event| {
        (number(&of.detail["from_workers"]), number(&of.detail["to_workers"]))
    };
    scaled.iter().map(|event| size(event)).collect()
}

#[tokio::test]
async fn the_first_call_starts_the_first_worker_of_a_pool_that_keeps_none() {
    let pool = running(&Yard::new(), elastic(0, 3)).await;
    assert_eq!(pool.info().workers.len(), 0);
    assert_eq!(ask(&pool, "echo", "[1]").await, "1");
    assert_eq!(sizes(&pool), [(0, 1)]);
    assert_eq!(most(&pool), 1);
    nothing_amiss(&pool);
    stop(pool).await;
}

#[tokio::test]
async fn a_burst_brings_as_many_as_may_be_and_no_more() {
    let yard = Yard::new();
    let pool = running(&yard, elastic(1, 3)).await;
    let calls = hold(&pool, 9);
    until("three work", || yard.lines("begun").len() == 3).await;
    let view = pool.info().view;
    assert_eq!((view.workers, view.queued), (3, 6));
    yard.give("go");
    all_end(calls).await;
    assert_eq!(most(&pool), 3);
    nothing_amiss(&pool);
    stop(pool).await;
}

#[tokio::test]
async fn a_pool_does_not_grow_while_everybody_is_served_at_once() {
    // Nobody waits this long.
    let settings = Settings { scale_up_after: 2 * LIMIT, ..elastic(1, 4) };
    let pool = running(&Yard::new(), settings).await;
    let crowd = Crowd::of(3, &pool, &call("echo", "[1]"));
    crowd.goes_on(100).await;
    crowd.goes_home().await;
    assert_eq!(sizes(&pool), []);
    assert_eq!(most(&pool), 1);
    stop(pool).await;
}

#[tokio::test]
async fn workers_that_idle_leave_until_the_pool_has_what_it_keeps() {
    for min in [0, 1] {
        let yard = Yard::new();
        let idle_ttl = Some(Duration::from_millis(100));
        let pool = running(&yard, Settings { idle_ttl, ..elastic(min, 3) }).await;
        let calls = hold(&pool, 3);
        until("three work", || yard.lines("begun").len() == 3).await;
        yard.give("go");
        all_end(calls).await;
        let leave = 3 - min as usize;
        until("the spare ones have left", || ends(&pool).len() == leave).await;
        assert!(ends(&pool).iter().all(|reason| *reason == "idle"), "{:?}", ends(&pool));
        until("the rest stays", || pool.info().workers.len() == min as usize).await;
        assert_eq!(ask(&pool, "echo", "[1]").await, "1");
        nothing_amiss(&pool);
        stop(pool).await;
    }
}

#[tokio::test]
async fn a_lease_that_waits_makes_a_pool_grow_too() {
    let pool = running(&Yard::new(), elastic(0, 2)).await;
    let request = LeaseRequest { workers: 2, timeout: LIMIT, ..LeaseRequest::default() };
    let lease = within("it is granted", pool.lease(request)).await.expect("two may be had");
    assert_eq!(lease.workers().iter().collect::<BTreeSet<_>>().len(), 2);
    drop(lease);
    stop(pool).await;
}

#[tokio::test]
async fn a_pool_is_made_larger_and_smaller_under_load_and_nothing_is_lost() {
    let yard = Yard::new();
    let pool = running(&yard, Settings { queue_timeout: LIMIT, ..brisk(2) }).await;
    within("all are ready", pool.all_ready()).await;
    let crowd = Crowd::of(6, &pool, &call("wait", "[0.002]"));
    for size in [4, 1, 3] {
        crowd.goes_on(20).await;
        let scale = Action::Scale { min: size, max: size };
        assert_eq!(order(&pool, scale).await, Reply::PoolDone);
        until("it has its size", || {
            let info = pool.info();
            info.view.ready == size as usize && info.workers.len() == size as usize
        })
        .await;
        let view = pool.info().view;
        assert_eq!((view.min, view.max, view.target), (size, size, size));
    }
    crowd.goes_on(20).await;
    crowd.goes_home().await;
    assert_eq!(sizes(&pool), [(2, 4), (4, 1), (1, 3)]);
    assert_eq!(ends(&pool), ["scaled"; 3]);
    assert_eq!(most(&pool), 4);
    nothing_amiss(&pool);
    stop(pool).await;
}

#[tokio::test]
async fn the_idle_go_first_when_a_pool_is_made_smaller_and_the_busy_finish() {
    let yard = Yard::new();
    let pool = running(&yard, Settings { queue_timeout: LIMIT, ..brisk(3) }).await;
    within("all are ready", pool.all_ready()).await;
    let calls = hold(&pool, 2);
    until("two work", || yard.lines("begun").len() == 2).await;
    let idle = pool.info().workers.into_iter().find(|worker| worker.view.load == 0);
    let idle = Process::find(idle.and_then(|worker| worker.pid).expect("one of three"));
    order(&pool, Action::Scale { min: 1, max: 1 }).await;
    gone(&idle).await;
    assert_eq!(pool.info().view.running, 2);
    yard.give("go");
    all_end(calls).await;
    until("one is left", || pool.info().workers.len() == 1).await;
    assert_eq!(ask(&pool, "echo", "[1]").await, "1");
    nothing_amiss(&pool);
    stop(pool).await;
}
