//! Orders about a whole pool: hold work back, let nobody in, and what that means for leases.

use std::time::Duration;

use ostler_runtime::core::{Action, LeaseEnd, Lifecycle, Refusal, Reply, Settings};
use ostler_runtime::{EventKind, Lease, LeaseRequest, Pool, Refused};

use super::crowd::*;
use super::support::*;

async fn running(yard: &Yard, size: u32) -> Pool {
    let settings = Settings { queue_timeout: LIMIT, ..brisk(size) };
    let pool = start(yard.around(spec(functions("keeps.py"), settings))).await;
    within("all are ready", pool.all_ready()).await;
    pool
}

async fn lease(pool: &Pool) -> Lease {
    let request = LeaseRequest { ttl: 2 * LIMIT, timeout: LIMIT, ..LeaseRequest::default() };
    within("the lease is granted", pool.lease(request)).await.expect("it is granted")
}

async fn done(pool: &Pool, action: Action) {
    assert_eq!(order(pool, action).await, Reply::PoolDone);
}

#[tokio::test]
async fn a_paused_pool_finishes_what_it_has_and_holds_back_the_rest() {
    let yard = Yard::new();
    let pool = running(&yard, 2).await;
    let inside = pool.call(call("hold", r#"["inside"]"#));
    until("it runs", || yard.lines("begun").len() == 1).await;
    done(&pool, Action::PausePool).await;
    let waiting: Vec<_> =
        (0..5).map(|n| pool.call(call("record", &format!("[\"{n}\"]")))).collect();
    until("they wait", || pool.info().view.queued == 5).await;
    assert!(pool.info().view.paused);
    yard.give("go");
    assert_eq!(text(&end(inside).await.expect("it ends").body), r#""inside""#);
    assert_eq!(pool.info().view.queued, 5, "somebody was let through");
    assert!(yard.lines("ledger").is_empty());
    done(&pool, Action::ResumePool).await;
    for running in waiting {
        end(running).await.expect("now they are served");
    }
    let kinds: Vec<_> =
        [EventKind::PoolPaused, EventKind::PoolResumed].map(|kind| told(&pool, kind).len()).into();
    assert_eq!(kinds, [1, 1]);
    nothing_amiss(&pool);
    stop(pool).await;
}

#[tokio::test]
async fn those_who_wait_in_a_paused_pool_wait_no_longer_than_they_may() {
    let settings = Settings { queue_timeout: Duration::from_millis(50), ..brisk(1) };
    let pool = start(spec(functions("functions.py"), settings)).await;
    within("it is ready", pool.all_ready()).await;
    done(&pool, Action::PausePool).await;
    assert_eq!(refusal(pool.call(call("echo", "[1]"))).await, Refusal::QueueTimeout);
    done(&pool, Action::ResumePool).await;
    assert_eq!(ask(&pool, "echo", "[1]").await, "1");
    stop(pool).await;
}

#[tokio::test]
async fn a_paused_pool_holds_back_calls_on_leases_too() {
    let yard = Yard::new();
    let pool = running(&yard, 1).await;
    let lease = lease(&pool).await;
    done(&pool, Action::PausePool).await;
    let waits = lease.call(call("record", r#"["leased"]"#));
    until("it waits", || pool.info().view.queued == 1).await;
    assert!(yard.lines("ledger").is_empty());
    done(&pool, Action::ResumePool).await;
    end(waits).await.expect("now it is served");
    stop(pool).await;
}

#[tokio::test]
async fn a_paused_pool_is_replaced_and_stopped_like_any_other() {
    let yard = Yard::new();
    let pool = running(&yard, 1).await;
    done(&pool, Action::PausePool).await;
    let old = Process::find(pid(&pool, 0).await);
    order(&pool, Action::RecyclePool).await;
    gone(&old).await;
    let waits = pool.call(call("echo", "[1]"));
    until("it waits", || pool.info().view.queued == 1).await;
    pool.shut_down(false);
    assert_eq!(refusal(waits).await, Refusal::ShuttingDown);
    within("the pool stops", pool.stopped()).await;
}

#[tokio::test]
async fn a_drained_pool_serves_those_inside_and_lets_nobody_in_until_it_is_resumed() {
    let yard = Yard::new();
    let pool = running(&yard, 1).await;
    let inside = pool.call(call("hold", r#"["inside"]"#));
    until("it runs", || yard.lines("begun").len() == 1).await;
    let behind = pool.call(call("echo", "[2]"));
    until("it waits", || pool.info().view.queued == 1).await;
    done(&pool, Action::DrainPool).await;
    assert_eq!(refusal(pool.call(call("echo", "[3]"))).await, Refusal::PoolDraining);
    let request = LeaseRequest::default();
    let refused = within("it is answered", pool.lease(request)).await.unwrap_err();
    assert_eq!(refused, Refused::Pool(Refusal::PoolDraining));
    assert!(!pool.info().view.drained);
    assert_eq!(pool.info().view.lifecycle, Lifecycle::Draining);
    yard.give("go");
    end(inside).await.expect("it was inside");
    end(behind).await.expect("it was inside too");
    event(&pool, EventKind::PoolDrained).await;
    assert!(pool.info().view.drained);
    let process = pid(&pool, 0).await;
    done(&pool, Action::ResumePool).await;
    assert_eq!(ask(&pool, "echo", "[4]").await, "4");
    assert_eq!(pid(&pool, 0).await, process, "the same process");
    stop(pool).await;
}

#[tokio::test]
async fn a_pool_is_drained_only_when_its_leases_are_given_back() {
    let pool = running(&Yard::new(), 2).await;
    let lease = lease(&pool).await;
    done(&pool, Action::DrainPool).await;
    let answered = end(lease.call(call("where", ""))).await.expect("a lease is inside");
    let again = end(lease.call(call("where", ""))).await.expect("a lease is inside");
    assert_eq!(answered.body, again.body);
    assert!(told(&pool, EventKind::PoolDrained).is_empty());
    drop(lease);
    event(&pool, EventKind::PoolDrained).await;
    stop(pool).await;
}

#[tokio::test]
async fn a_pool_under_load_is_paused_and_resumed_and_nothing_is_lost() {
    let yard = Yard::new();
    let pool = running(&yard, 2).await;
    let crowd = Crowd::of(6, &pool, &call("wait", "[0.002]"));
    for _ in 0..5 {
        crowd.goes_on(10).await;
        done(&pool, Action::PausePool).await;
        until("nothing runs", || pool.info().view.running == 0).await;
        done(&pool, Action::ResumePool).await;
    }
    crowd.goes_on(10).await;
    crowd.goes_home().await;
    nothing_amiss(&pool);
    stop(pool).await;
}

#[tokio::test]
async fn a_leased_worker_that_is_to_go_stays_until_it_is_given_back() {
    let pool = running(&Yard::new(), 1).await;
    let lease = lease(&pool).await;
    let old = Process::find(pid(&pool, 0).await);
    order(&pool, Action::RecyclePool).await;
    until("its successor is ready", || told(&pool, EventKind::WorkerReady).len() == 2).await;
    assert_eq!(ask(&pool, "echo", "[1]").await, "1");
    let mine = end(lease.call(call("where", ""))).await.expect("it is still held");
    assert_eq!(text(&mine.body), old.pid.to_string());
    assert_eq!(lease.ended(), None::<LeaseEnd>);
    drop(lease);
    gone(&old).await;
    nothing_amiss(&pool);
    stop(pool).await;
}
