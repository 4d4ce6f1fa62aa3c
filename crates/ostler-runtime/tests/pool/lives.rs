//! The events of a worker's life and of its pool's, in their order.

use std::sync::Arc;

use ostler_runtime::core::Settings;
use ostler_runtime::{Event, EventKind, EventLog, Followed, Follower, Pool, PoolSpec};

use super::support::*;

/// `worker.ready`, or with its reason `worker.spawned/first`.
fn label(event: &Event) -> String {
    match event.reason {
        Some(reason) => format!("{}/{reason}", event.kind.name()),
        None => event.kind.name().to_owned(),
    }
}

fn life(pool: &Pool) -> Vec<String> {
    events(pool).iter().map(|event| label(event)).collect()
}

async fn running(settings: Settings) -> Pool {
    let pool = start(spec(program("answers-twice.sh").await, settings)).await;
    within("all are ready", pool.all_ready()).await;
    pool
}

const BIRTH: [&str; 6] = [
    "worker.transition/create",
    "worker.transition/start",
    "worker.spawned/first",
    "worker.ready",
    "pool.ready",
    "pool.all_ready",
];

#[tokio::test]
async fn a_quiet_life_is_told_from_birth_to_the_planned_end() {
    let pool = running(brisk(1)).await;
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    pool.shut_down(false);
    within("the pool stops", pool.stopped()).await;
    let end = ["pool.draining/shutdown", "worker.stopping/shutdown", "worker.terminated/shutdown"];
    let wanted: Vec<&str> = BIRTH.into_iter().chain(end).chain(["pool.stopped"]).collect();
    assert_eq!(life(&pool), wanted);
    let events = events(&pool);
    let terminated = event(&pool, EventKind::WorkerTerminated).await;
    assert_eq!(
        (&terminated.detail["planned"], &terminated.detail["requests"]),
        (&true.into(), &1.into())
    );
    assert!(terminated.seconds.is_some_and(|lifetime| lifetime > 0.0), "{terminated:?}");
    assert!(events.windows(2).all(|pair| pair[0].seq < pair[1].seq && pair[0].at <= pair[1].at));
    assert!(events.iter().all(|event| &*event.pool == "test"));
}

#[tokio::test]
async fn a_crash_is_told_before_its_clearance_and_the_next_process_after_both() {
    let pool = running(brisk(1)).await;
    send(pid(&pool, 0).await, libc::SIGKILL);
    until("the next process is ready", || generation(&pool) == 2 && pool.info().view.ready == 1)
        .await;
    let after: Vec<String> = life(&pool).split_off(BIRTH.len());
    let wanted = ["worker.crashed/killed", "worker.terminated/exited", "worker.spawned/restart"];
    assert_eq!(after[..3], wanted);
    assert_eq!(after[3..], ["worker.ready"]);
    let crashed = event(&pool, EventKind::WorkerCrashed).await;
    assert_eq!(crashed.detail["signal"], "SIGKILL");
    assert_eq!(event(&pool, EventKind::WorkerTerminated).await.detail["planned"], false);
    stop(pool).await;
}

#[tokio::test]
async fn a_restart_that_waits_for_its_backoff_is_told() {
    let pool = running(brisk(1)).await;
    for life in 1..=2 {
        until("it is ready", || generation(&pool) == life && pool.info().view.ready == 1).await;
        send(pid(&pool, 0).await, libc::SIGKILL);
    }
    let delayed = event(&pool, EventKind::WorkerRestartDelayed).await;
    assert!(delayed.detail["delay_seconds"].as_f64().is_some_and(|delay| delay > 0.0));
    stop(pool).await;
}

#[tokio::test]
async fn a_pool_that_fails_and_recovers_says_so() {
    let brief = std::time::Duration::from_millis(50);
    let yard = Yard::new();
    let settings = Settings { restart_max: 2, restart_cooldown: brief, ..brisk(1) };
    let pool = start(yard.around(spec(program("waits-for-a-licence.sh").await, settings))).await;
    event(&pool, EventKind::PoolFailed).await;
    yard.give("licence");
    let recovered = event(&pool, EventKind::PoolRecovered).await;
    let failed = event(&pool, EventKind::PoolFailed).await;
    assert_eq!(failed.reason, Some("restart_budget_spent"));
    assert!(failed.seq < recovered.seq);
    until("it serves", || pool.info().view.ready == 1).await;
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    stop(pool).await;
}

async fn next(follower: &mut Follower) -> Arc<Event> {
    match within("the next event", follower.next()).await {
        Followed::Event(event) => event,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn who_follows_everything_sees_each_call() {
    let pool = running(brisk(1)).await;
    let mut follower = pool.event_log().follow_all(None);
    let running = pool.call(call("echo", "1"));
    let id = running.id().to_string();
    end(running).await.expect("it is served");
    let mut told = Vec::new();
    while told.len() < 3 {
        let event = next(&mut follower).await;
        if event.kind == EventKind::RequestCompleted {
            assert_eq!(event.request.as_ref(), Some(&id));
            assert_eq!(event.detail["function"], "echo");
        }
        told.push(event.kind.name());
    }
    told.sort_unstable();
    assert_eq!(told, ["request.completed", "worker.busy", "worker.idle"]);
    stop(pool).await;
}

#[tokio::test]
async fn nobody_makes_events_of_calls_that_nobody_follows() {
    let pool = running(brisk(1)).await;
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    let mut follower = pool.event_log().follow_all(Some(0));
    while let Some(Followed::Event(event)) = follower.try_next() {
        assert!(!event.kind.frequent(), "{event:?}");
    }
    stop(pool).await;
}

#[tokio::test]
async fn pools_that_share_a_log_are_told_apart_and_in_one_order() {
    let log = Arc::new(EventLog::new(1_000));
    let mut pools = Vec::new();
    for name in ["one", "two"] {
        let program = program("answers-twice.sh").await;
        let spec = PoolSpec { events: Arc::clone(&log), ..PoolSpec::new(name, program, brisk(1)) };
        pools.push(start(spec).await);
    }
    for pool in &pools {
        within("it is ready", pool.all_ready()).await;
    }
    let told = events(&pools[0]);
    for name in ["one", "two"] {
        let of_it = told.iter().filter(|event| &*event.pool == name);
        assert_eq!(of_it.map(|event| label(event)).collect::<Vec<_>>(), BIRTH);
    }
    assert!(told.windows(2).all(|pair| pair[0].seq + 1 == pair[1].seq), "no gaps");
    for pool in pools {
        stop(pool).await;
    }
}
