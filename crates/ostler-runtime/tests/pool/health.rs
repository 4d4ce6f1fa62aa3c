//! Workers that stand still, and shims that are killed in their place.

use std::time::Duration;

use ostler_runtime::Pool;
use ostler_runtime::core::{Heartbeat, Settings};

use super::support::*;

async fn watched(yard: &Yard) -> Pool {
    let heartbeat = Heartbeat {
        interval: Duration::from_millis(100),
        timeout: Duration::from_millis(500),
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
    let hang_timeout = Some(Duration::from_millis(500));
    let heartbeat = Heartbeat {
        interval: Duration::from_millis(100),
        timeout: Duration::from_millis(200),
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
    assert!(failure.to_string().contains("Hung"), "{failure}");
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
async fn a_pool_whose_root_shim_is_killed_serves_on_and_starts_new_workers() {
    let pool = one(program("dies-mid-request.sh").await).await;
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    let line = Process::lineage(pid(&pool, 0).await);
    send(line.last().expect("a root shim").pid, libc::SIGKILL);
    gone(line.last().expect("a root shim")).await;
    assert_eq!(ask(&pool, "echo", "2").await, "2");
    failure(pool.call(call("vice", ""))).await;
    assert_eq!(ask(&pool, "echo", "3").await, "3");
    assert_eq!(generation(&pool), 2);
    let new = Process::lineage(pid(&pool, 0).await);
    stop(pool).await;
    assert!(!new[0].lives());
}
