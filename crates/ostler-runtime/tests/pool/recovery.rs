//! What becomes of requests whose worker is killed: who runs again, and who must not.

use std::time::Duration;

use ostler_runtime::core::{Backoff, Exit, Lifecycle, LossReason, Settings};
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

/// Kills some worker of the pool, and nobody else's process: false if there is none just now.
fn kill_one(pool: &Pool, choice: usize) -> bool {
    let pids: Vec<i32> = pool.info().workers.iter().filter_map(|worker| worker.pid).collect();
    let ours = |pid: &i32| Process::lives_now(*pid) && Process::is_below_this_one(*pid);
    let victim = pids.get(choice % pids.len().max(1)).copied().filter(ours);
    victim.is_some_and(|pid| try_send(pid, libc::SIGKILL))
}

/// Sixty kills at random in a second and a half.
async fn storm(pool: Pool) {
    let mut random = 0x5eed_u64;
    let mut pace = tokio::time::interval(Duration::from_millis(25));
    for _ in 0..60 {
        pace.tick().await;
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let strike = || kill_one(&pool, (random >> 33) as usize);
        if !strike() {
            until("there is somebody to kill", || (0..8).any(|choice| kill_one(&pool, choice)))
                .await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_kills_fails_no_idempotent_request_and_the_pool_is_whole_again() {
    let gentle = brisk(8);
    let backoff = Backoff { max: Duration::from_millis(10), ..gentle.backoff };
    // These kills come faster than the three attempts of the default are made for.
    let attempts_max = 60;
    let settings =
        Settings { restart_max: 10_000, attempts_max, queue_timeout: LIMIT, backoff, ..gentle };
    let pool = start(spec(program("dawdles.sh").await, settings)).await;
    within("all are ready", pool.all_ready()).await;
    let storm = tokio::spawn(storm(pool.clone()));
    let call = |number: u32| Call { idempotent: true, ..call("vice", &number.to_string()) };
    let calls: Vec<_> = (0..200).map(|number| (number, pool.call(call(number)))).collect();
    for (number, running) in calls {
        let answered = end(running).await.unwrap_or_else(|lost| panic!("{number}: {lost:?}"));
        assert_eq!(text(&answered.body), number.to_string());
    }
    storm.await.expect("it passes");
    until("the pool is whole again", || {
        let view = pool.info().view;
        view.lifecycle == Lifecycle::Running && view.ready == 8 && view.running == 0
    })
    .await;
    let (info, tally) = (pool.info(), pool.tally());
    assert_eq!(info.workers.len(), 8);
    assert!(info.workers.iter().all(|worker| worker.pid.is_some_and(Process::lives_now)));
    assert_eq!((tally.outcomes().get("ok"), info.view.counters.resolved), (200, 200));
    assert!(info.view.counters.retried > 0, "no kill met a call: {:?}", info.view.counters);
    stop(pool).await;
}
