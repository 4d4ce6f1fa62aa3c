//! What becomes of requests whose worker is killed: who runs again, and who must not.

use std::time::Duration;

use ostler_runtime::core::{Backoff, Exit, LossReason, Settings};
use ostler_runtime::{Call, Failure, Pool};

use super::support::*;

async fn yard_pool(yard: &Yard, settings: Settings) -> Pool {
    let pool = start(yard.around(spec(functions("functions.py"), settings))).await;
    within("all are ready", pool.all_ready()).await;
    pool
}

#[tokio::test]
async fn an_idempotent_request_runs_again_after_its_worker_was_killed() {
    let yard = Yard::new();
    let pool = yard_pool(&yard, brisk(1)).await;
    let running = pool.call(Call { idempotent: true, ..call("hold", r#"["again"]"#) });
    until("it runs", || yard.lines("begun").len() == 1).await;
    send(pid(&pool, 0).await, libc::SIGKILL);
    until("it runs again", || yard.lines("begun").len() == 2).await;
    yard.give("go");
    assert_eq!(text(&end(running).await.expect("it answers").body), r#""again""#);
    assert_eq!(yard.lines("begun"), ["again 1", "again 2"]);
    assert_eq!(pool.info().view.counters.retried, 1);
    stop(pool).await;
}

#[tokio::test]
async fn a_request_that_is_not_idempotent_runs_once_though_its_worker_was_killed() {
    let yard = Yard::new();
    let pool = yard_pool(&yard, brisk(1)).await;
    let running = pool.call(call("hold", r#"["once"]"#));
    until("it runs", || yard.lines("begun").len() == 1).await;
    send(pid(&pool, 0).await, libc::SIGKILL);
    let Failure::Crashed { exit, reason, .. } = failure(running).await else {
        panic!("it crashed")
    };
    assert_eq!((exit, reason), (Exit::Signal(libc::SIGKILL), LossReason::Crashed));
    assert_eq!(ask(&pool, "record", r#"["after"]"#).await, r#""after""#);
    assert_eq!(yard.lines("begun"), ["once 1"]);
    stop(pool).await;
}

#[tokio::test]
async fn an_idempotent_stream_is_not_repeated_once_its_caller_has_seen_a_chunk() {
    let yard = Yard::new();
    let pool = yard_pool(&yard, brisk(1)).await;
    let mut running =
        pool.call(Call { idempotent: true, stream: true, ..call("produce", "[1000000]") });
    within("a chunk", running.next()).await;
    send(pid(&pool, 0).await, libc::SIGKILL);
    let (_, end) = drain(&mut running).await;
    assert!(end.is_err(), "it began anew: {end:?}");
    assert_eq!(ask(&pool, "echo", "[1]").await, "1");
    stop(pool).await;
}

/// Prefetch from the second call on, and nobody moves a request but for a crash.
fn prefetching(size: u32) -> Settings {
    Settings { prefetch_below: LIMIT, prefetch_patience: LIMIT, ..brisk(size) }
}

#[tokio::test]
async fn a_prefetched_request_runs_exactly_once_after_the_one_before_it_crashed() {
    let yard = Yard::new();
    let pool = yard_pool(&yard, prefetching(1)).await;
    assert_eq!(ask(&pool, "echo", "[1]").await, "1");
    let doomed = pool.call(call("hold_and_die", ""));
    until("it runs", || yard.lines("begun").len() == 1).await;
    let behind = pool.call(call("record", r#"["behind"]"#));
    until("it lies in the stream", || pool.info().view.counters.prefetched == 1).await;
    yard.give("go");
    let lost = failure(doomed).await;
    assert!(matches!(lost, Failure::Crashed { exit: Exit::Code(1), .. }), "{lost:?}");
    end(behind).await.expect("it did not begin before");
    assert_eq!(yard.lines("ledger"), ["behind test-1#2"]);
    stop(pool).await;
}

#[tokio::test]
async fn a_prefetched_request_moves_to_a_worker_that_comes_free() {
    let yard = Yard::new();
    let settings = Settings { prefetch_patience: Duration::from_millis(1), ..prefetching(2) };
    let pool = yard_pool(&yard, settings).await;
    for _ in 0..4 {
        assert_eq!(ask(&pool, "echo", "[1]").await, "1");
    }
    let holders = ["a", "b"].map(|name| pool.call(call("hold", &format!("[{name:?}]"))));
    until("both are held", || yard.lines("begun").len() == 2).await;
    let behind: Vec<_> = (0..2).map(|n| pool.call(call("record", &format!("[\"{n}\"]")))).collect();
    until("they lie in the streams", || pool.info().view.counters.prefetched == 2).await;
    send(pid(&pool, 0).await, libc::SIGKILL);
    for running in behind {
        end(running).await.expect("it runs on the new process");
    }
    assert_eq!(yard.lines("ledger").len(), 2, "{:?}", yard.lines("ledger"));
    assert!(yard.lines("ledger").iter().all(|line| line.ends_with("test-1#2")));
    yard.give("go");
    let mut lost = 0;
    for holder in holders {
        lost += usize::from(end(holder).await.is_err());
    }
    assert_eq!(lost, 1);
    stop(pool).await;
}

/// Sixty kills, each of another worker, each as soon as the last one is being replaced.
async fn storm(pool: Pool) {
    for kill in 0..60 {
        let lives = |pool: &Pool| {
            let worker = pool.info().workers.swap_remove(5 * kill % 8);
            (worker.view.generation, worker.pid.filter(|pid| Process::lives_now(*pid)))
        };
        until("there is somebody to kill", || lives(&pool).1.is_some()).await;
        let (generation, Some(pid)) = lives(&pool) else { continue };
        send(pid, libc::SIGKILL);
        until("it is replaced", || lives(&pool).0 > generation).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_kills_fails_no_idempotent_request() {
    let gentle = brisk(8);
    let backoff = Backoff { max: Duration::from_millis(10), ..gentle.backoff };
    // These kills come faster than the three attempts of the default are made for.
    let attempts_max = 60;
    let settings =
        Settings { restart_max: 10_000, attempts_max, queue_timeout: LIMIT, backoff, ..gentle };
    let pool = start(spec(program("answers-twice.sh").await, settings)).await;
    within("all are ready", pool.all_ready()).await;
    let storm = tokio::spawn(storm(pool.clone()));
    let mut number = 0;
    while !storm.is_finished() || number < 200 {
        let wave = (0..8).map(|n| {
            let call = Call { idempotent: true, ..call("echo", &(number + n).to_string()) };
            (number + n, pool.call(call))
        });
        for (number, running) in wave.collect::<Vec<_>>() {
            assert_eq!(
                text(&end(running).await.expect("it is tried again").body),
                number.to_string()
            );
        }
        number += 8;
    }
    storm.await.expect("it passes");
    let counters = pool.info().view.counters;
    assert!(counters.restarts_unplanned >= 50, "{counters:?}");
    stop(pool).await;
}
