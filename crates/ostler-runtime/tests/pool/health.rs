//! Workers that stand still, and shims that are killed in their place.

use std::time::Duration;

use ostler_runtime::Pool;
use ostler_runtime::core::{Heartbeat, Settings};

use super::support::*;

async fn watched(yard: &Yard) -> Pool {
    let heartbeat = Heartbeat {
        independent: false,
        interval: Duration::from_millis(200),
        timeout: Duration::from_secs(2),
        misses: 3,
        initial_delay: Duration::ZERO,
    };
    let settings = Settings { heartbeat: Some(heartbeat), ..brisk(1) };
    let pool = start(yard.around(spec(functions("functions.py"), settings))).await;
    within("the worker is ready", pool.ready()).await;
    pool
}

#[tokio::test]
async fn an_idle_worker_that_stands_still_is_replaced() {
    let pool = watched(&Yard::new()).await;
    let stopped = Process::find(pid(&pool, 0).await);
    send(stopped.pid, libc::SIGSTOP);
    until("it is replaced", || generation(&pool) == 2).await;
    gone(&stopped).await;
    assert_eq!(ask(&pool, "echo", "[1]").await, "1");
    stop(pool).await;
}

#[tokio::test]
async fn a_busy_worker_that_stands_still_is_marked_and_left_to_its_deadline() {
    let yard = Yard::new();
    let pool = watched(&yard).await;
    let running = pool.call(call("hold", r#"["held"]"#));
    until("it runs", || yard.lines("begun").len() == 1).await;
    let pid = pid(&pool, 0).await;
    send(pid, libc::SIGSTOP);
    until("it is marked", || pool.info().workers[0].view.unresponsive).await;
    yard.give("go");
    send(pid, libc::SIGCONT);
    assert_eq!(text(&end(running).await.expect("it goes on").body), r#""held""#);
    until("the mark is gone", || !pool.info().workers[0].view.unresponsive).await;
    assert_eq!(generation(&pool), 1, "the same process");
    stop(pool).await;
}

#[tokio::test]
async fn a_worker_that_is_silent_under_load_for_too_long_is_replaced_if_so_set() {
    let hang_timeout = Some(Duration::from_secs(2));
    let heartbeat = Heartbeat {
        independent: false,
        interval: Duration::from_millis(200),
        timeout: Duration::from_secs(2),
        misses: 3,
        initial_delay: Duration::ZERO,
    };
    let settings = Settings { hang_timeout, heartbeat: Some(heartbeat), ..brisk(1) };
    let pool = start(spec(functions("functions.py"), settings)).await;
    within("the worker is ready", pool.ready()).await;
    let running = pool.call(call("wait", "[600]"));
    let stopped = Process::find(pid(&pool, 0).await);
    send(stopped.pid, libc::SIGSTOP);
    let failure = failure(running).await;
    let told = failure.to_string();
    assert!(told.contains("hung") && told.contains("SIGSTOP"), "{told}");
    assert_eq!(ask(&pool, "echo", "[1]").await, "1");
    assert!(!stopped.lives());
    stop(pool).await;
}

#[tokio::test]
async fn a_worker_whose_shim_is_killed_is_replaced_and_nothing_is_left() {
    let pool = one(program("answers-twice.sh").await).await;
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    let line = Process::lineage(pid(&pool, 0).await);
    assert!(line.len() >= 2, "a worker and its shim: {line:?}");
    send(line[1].pid, libc::SIGKILL);
    gone(&line[0]).await;
    until("it has a new process", || generation(&pool) == 2).await;
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    stop(pool).await;
}

#[tokio::test]
async fn a_pool_whose_root_shim_is_killed_loses_no_call_and_gets_another_one() {
    let pool = start(spec(program("answers-twice.sh").await, brisk(2))).await;
    within("all are ready", pool.all_ready()).await;
    let old = Process::lineage(pid(&pool, 0).await);
    let root = old.last().expect("a root shim");
    send(root.pid, libc::SIGKILL);
    gone(root).await;
    let under_a_new_one = || {
        let workers = pool.info().workers;
        let ours = |pid: Option<i32>| pid.is_some_and(Process::is_below_this_one);
        workers.len() >= 2 && workers.iter().all(|worker| ours(worker.pid))
    };
    let calls = async {
        for call in 0.. {
            assert_eq!(ask(&pool, "echo", "1").await, "1", "call {call}");
            if call >= 100 && under_a_new_one() {
                return;
            }
        }
    };
    within("all are below a new root shim", calls).await;
    gone(&old[0]).await;
    assert_eq!(pool.info().view.counters.restarts_unplanned, 0);
    stop(pool).await;
}
