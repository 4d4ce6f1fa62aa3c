//! Places held for several calls: one process with what it remembers, nobody else in between.

use std::time::Duration;

use ostler_runtime::core::{LeaseEnd, Refusal, Settings, StopReason};
use ostler_runtime::{Failure, Lease, LeaseRequest, Pool, Refused};
use serde_json::{Value, json};

use super::support::*;

async fn keeping(yard: &Yard, size: u32) -> Pool {
    let settings = Settings { queue_timeout: LIMIT, ..brisk(size) };
    let pool = start(yard.around(spec(functions("keeps.py"), settings))).await;
    within("all are ready", pool.all_ready()).await;
    pool
}

async fn lease(pool: &Pool, request: LeaseRequest) -> Lease {
    within("the lease is granted", pool.lease(request)).await.expect("it is granted")
}

/// One place, for longer than the test.
fn long() -> LeaseRequest {
    LeaseRequest { ttl: 2 * LIMIT, timeout: LIMIT, ..LeaseRequest::default() }
}

async fn keep(lease: &Lease, value: u32) -> Value {
    let answered = end(lease.call(call("keep", &json!([value]).to_string()))).await;
    serde_json::from_slice(&answered.expect("it is served").body.bytes).expect("JSON")
}

fn free(pool: &Pool) -> bool {
    let view = pool.info().view;
    view.leases == 0 && view.running == 0 && view.queued == 0
}

#[tokio::test]
async fn calls_on_a_lease_meet_one_process_and_what_it_remembers() {
    let pool = keeping(&Yard::new(), 3).await;
    let lease = lease(&pool, long()).await;
    let first = keep(&lease, 0).await;
    for value in 1..5 {
        let next = keep(&lease, value).await;
        assert_eq!(next["pid"], first["pid"]);
        assert_eq!(next["kept"], json!((0..=value).collect::<Vec<_>>()));
    }
    let named = &lease.workers()[0];
    let holder = pool.info().workers.into_iter().find(|worker| worker.name == **named);
    assert_eq!(holder.and_then(|worker| worker.pid).map(Value::from), Some(first["pid"].clone()));
    stop(pool).await;
}

#[tokio::test]
async fn calls_made_at_once_on_one_place_run_in_their_order() {
    let pool = keeping(&Yard::new(), 2).await;
    let lease = lease(&pool, long()).await;
    let calls: Vec<_> = (0..20).map(|n| lease.call(call("keep", &format!("[{n}]")))).collect();
    let mut last = Value::Null;
    for running in calls {
        let answered = end(running).await.expect("it is served");
        last = serde_json::from_slice(&answered.body.bytes).expect("JSON");
    }
    assert_eq!(last["kept"], json!((0..20).collect::<Vec<_>>()));
    stop(pool).await;
}

#[tokio::test]
async fn others_wait_for_a_leased_place_until_it_is_given_back() {
    let yard = Yard::new();
    let pool = keeping(&yard, 1).await;
    let lease = lease(&pool, long()).await;
    let other = pool.call(call("record", r#"["other"]"#));
    until("it waits", || pool.info().view.queued == 1).await;
    for value in 0..3 {
        keep(&lease, value).await;
    }
    assert!(yard.lines("ledger").is_empty(), "it came between");
    drop(lease);
    end(other).await.expect("now it has the place");
    assert!(free(&pool), "{:?}", pool.info().view);
    assert_eq!(generation(&pool), 1, "the same process");
    stop(pool).await;
}

#[tokio::test]
async fn others_use_the_workers_that_are_not_leased() {
    let pool = keeping(&Yard::new(), 2).await;
    let lease = lease(&pool, long()).await;
    for _ in 0..5 {
        let answered = end(pool.call(call("where", ""))).await.expect("the other one serves");
        assert_ne!(answered.worker.as_deref(), Some(&*lease.workers()[0]));
    }
    stop(pool).await;
}

#[tokio::test]
async fn a_renewed_lease_outlives_one_that_was_not() {
    let pool = keeping(&Yard::new(), 2).await;
    let brief = LeaseRequest { ttl: Duration::from_secs(2), ..long() };
    let renewed = lease(&pool, brief).await;
    renewed.renew(2 * LIMIT);
    let other = lease(&pool, brief).await;
    until("the other one expires", || other.ended() == Some(LeaseEnd::Expired)).await;
    assert_eq!(renewed.ended(), None);
    assert_eq!(keep(&renewed, 1).await["kept"], json!([1]));
    stop(pool).await;
}

#[tokio::test]
async fn an_expired_lease_comes_back_by_itself_and_serves_no_more() {
    let pool = keeping(&Yard::new(), 1).await;
    let lease = lease(&pool, LeaseRequest { ttl: Duration::from_millis(50), ..long() }).await;
    until("it expires", || lease.ended() == Some(LeaseEnd::Expired)).await;
    assert_eq!(refusal(lease.call(call("where", ""))).await, Refusal::NoSuchLease);
    lease.renew(LIMIT);
    assert_eq!(refusal(lease.call(call("where", ""))).await, Refusal::NoSuchLease);
    end(pool.call(call("where", ""))).await.expect("others have the place");
    assert_eq!(generation(&pool), 1, "the same process");
    stop(pool).await;
}

#[tokio::test]
async fn what_runs_when_its_lease_expires_runs_to_its_end() {
    let yard = Yard::new();
    let pool = keeping(&yard, 1).await;
    let lease = lease(&pool, LeaseRequest { ttl: Duration::from_secs(2), ..long() }).await;
    let inside = lease.call(call("hold", r#"["inside"]"#));
    let behind = lease.call(call("where", ""));
    until("it runs", || yard.lines("begun").len() == 1).await;
    until("the lease expires", || lease.ended() == Some(LeaseEnd::Expired)).await;
    assert_eq!(refusal(behind).await, Refusal::NoSuchLease);
    yard.give("go");
    assert_eq!(text(&end(inside).await.expect("it was begun").body), r#""inside""#);
    until("the place is free", || free(&pool)).await;
    stop(pool).await;
}

#[tokio::test]
async fn a_closed_lease_discards_the_process_and_that_is_no_failure() {
    let pool = keeping(&Yard::new(), 1).await;
    let first = lease(&pool, long()).await;
    let before = keep(&first, 1).await;
    let old = Process::find(before["pid"].as_i64().expect("a pid") as i32);
    first.close();
    gone(&old).await;
    let second = lease(&pool, long()).await;
    let after = keep(&second, 2).await;
    assert_eq!(after["kept"], json!([2]), "it remembers what was discarded");
    assert_ne!(after["pid"], before["pid"]);
    let counters = pool.info().view.counters;
    assert_eq!((counters.restarts_planned, counters.restarts_unplanned), (1, 0));
    let stopping = event(&pool, ostler_runtime::EventKind::WorkerStopping).await;
    assert_eq!(stopping.reason, Some(ostler_runtime::stop_reason(StopReason::Discarded)));
    stop(pool).await;
}

#[tokio::test]
async fn a_dropped_wait_for_a_lease_leaves_nothing() {
    let pool = keeping(&Yard::new(), 1).await;
    let holder = lease(&pool, long()).await;
    for _ in 0..10 {
        let waiting = tokio::spawn({
            let pool = pool.clone();
            async move { pool.lease(long()).await.map(drop) }
        });
        until("it waits", || pool.info().view.leases == 2).await;
        waiting.abort();
        until("nothing is left of it", || pool.info().view.leases == 1).await;
    }
    drop(holder);
    until("the place is free", || free(&pool)).await;
    end(pool.call(call("where", ""))).await.expect("anybody may have it");
    stop(pool).await;
}

#[tokio::test]
async fn a_lease_ends_with_its_process() {
    let yard = Yard::new();
    let pool = keeping(&yard, 1).await;
    let lease = lease(&pool, long()).await;
    let inside = lease.call(call("hold", r#"["inside"]"#));
    let behind = lease.call(call("where", ""));
    until("it runs", || yard.lines("begun").len() == 1).await;
    send(pid(&pool, 0).await, libc::SIGKILL);
    assert!(matches!(failure(inside).await, Failure::Crashed { .. }));
    assert_eq!(refusal(behind).await, Refusal::NoSuchLease);
    assert_eq!(lease.ended(), Some(LeaseEnd::Lost));
    assert_eq!(refusal(lease.call(call("where", ""))).await, Refusal::NoSuchLease);
    end(pool.call(call("where", ""))).await.expect("the next process serves");
    assert!(free(&pool), "{:?}", pool.info().view);
    stop(pool).await;
}

#[tokio::test]
async fn a_lease_of_several_workers_comes_all_at_once_or_not_at_all() {
    let pool = keeping(&Yard::new(), 2).await;
    let first = lease(&pool, long()).await;
    let both = LeaseRequest { workers: 2, ..long() };
    let impatient = LeaseRequest { timeout: Duration::from_millis(50), ..both };
    let refused = within("it is answered", pool.lease(impatient)).await.unwrap_err();
    assert_eq!(refused, Refused::Pool(Refusal::LeaseTimeout));
    let three = LeaseRequest { workers: 3, ..long() };
    let refused = within("it is answered", pool.lease(three)).await.unwrap_err();
    assert_eq!(refused, Refused::Pool(Refusal::TooManyWorkers));
    drop(first);
    let both = lease(&pool, both).await;
    let mut pids = Vec::new();
    for place in [0, 1] {
        let answered = end(both.call_on(place, call("where", ""))).await.expect("it is served");
        assert_eq!(answered.worker.as_ref(), Some(&both.workers()[place as usize]));
        pids.push(text(&answered.body));
    }
    assert_ne!(pids[0], pids[1]);
    assert_eq!(refusal(both.call_on(2, call("where", ""))).await, Refusal::NoSuchLease);
    stop(pool).await;
}

#[tokio::test]
async fn a_lease_does_not_keep_its_pool_from_stopping() {
    let pool = keeping(&Yard::new(), 1).await;
    let lease = lease(&pool, long()).await;
    pool.shut_down(false);
    within("the pool stops", pool.stopped()).await;
    assert_eq!(lease.ended(), Some(LeaseEnd::ShuttingDown));
    assert_eq!(refusal(lease.call(call("where", ""))).await, Refusal::ShuttingDown);
}
