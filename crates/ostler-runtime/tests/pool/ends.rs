//! Ends that used to leave something behind: descriptors, a place, a caller without an answer, a
//! pool that cannot stop.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ostler_runtime::core::{LossReason, Settings, StopReason};
use ostler_runtime::{
    Call, Directory, Failure, HostError, Pool, PoolSpec, ProcessSettings, Running,
};
use serde_json::{Value, json};

use super::support::*;

/// Sockets and processes that this program holds: what a link to a worker consists of.
fn descriptors() -> usize {
    let open = std::fs::read_dir("/proc/self/fd").expect("a proc").flatten();
    let targets = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    let counted = |target: &std::path::PathBuf| {
        let target = target.to_string_lossy();
        target.starts_with("socket:") || target.contains("pidfd")
    };
    targets.filter(counted).count()
}

/// Tests that run beside this one hold descriptors too, but never for long as many as these.
#[tokio::test]
async fn a_process_that_ends_with_a_request_in_flight_leaves_no_descriptor() {
    const CRASHES: usize = 40;
    const FORCED_CANCELS: usize = 5;
    let yard = Yard::new();
    let settings = Settings { restart_max: 1_000, quarantine: Duration::ZERO, ..brisk(1) };
    let dying = start(spec(program("dies-mid-request.sh").await, settings.clone())).await;
    let stubborn = spec(program("ignores-cancel.sh").await, settings);
    let stubborn = start(yard.around(stubborn)).await;
    for pool in [&dying, &stubborn] {
        assert_eq!(ask(pool, "echo", "1").await, "1");
    }
    let before = descriptors();
    for _ in 0..CRASHES {
        assert!(matches!(failure(dying.call(call("vice", ""))).await, Failure::Crashed { .. }));
        assert_eq!(ask(&dying, "echo", "1").await, "1");
    }
    for cancelled in 1..=FORCED_CANCELS {
        let running = stubborn.call(call("vice", ""));
        until("the vice has begun", || yard.lines("begun").len() == cancelled).await;
        running.cancel();
        assert!(matches!(failure(running).await, Failure::Cancelled { .. }));
        assert_eq!(ask(&stubborn, "echo", "1").await, "1");
    }
    // Two for each would be growth; it takes five to hold a process.
    let bearable = before + 2 * (CRASHES + FORCED_CANCELS);
    until("descriptors are given back", || descriptors() < bearable).await;
    stop(dying).await;
    stop(stubborn).await;
}

/// A pool whose only worker holds one request, with another behind it that failed once and is
/// waiting for its next attempt.
async fn retried_behind_another(yard: &Yard) -> (Pool, Running, Running) {
    let settings = Settings {
        // After one call that is shorter, everything is prefetched.
        prefetch_below: LIMIT,
        retry_delay: Duration::from_millis(1),
        ..patient(1)
    };
    let pool = start(yard.around(spec(program("gives-back.py").await, settings))).await;
    assert_eq!(ask(&pool, "quick", "").await, "null");
    let prefetched = |n| pool.info().view.counters.prefetched == n;
    let retried = pool.call(Call { idempotent: true, ..call("retry", "") });
    until("it is there", || retried.worker().is_some()).await;
    let before_it = pool.call(call("hold", ""));
    until("the other one is behind it", || prefetched(1)).await;
    yard.give("fail");
    until("it is behind the other one", || prefetched(2)).await;
    (pool, retried, before_it)
}

async fn ended_as_its_first_attempt(retried: Running) {
    let failure = failure(retried).await;
    let Failure::Application(error) = failure else { panic!("{failure:?}") };
    assert_eq!((&*error.code, &*error.message), ("busy", "come back later"));
}

#[tokio::test]
async fn a_retried_request_that_is_given_back_to_a_draining_pool_ends_with_its_own_error() {
    let yard = Yard::new();
    yard.give("generous");
    let (pool, retried, before_it) = retried_behind_another(&yard).await;
    pool.shut_down(false);
    ended_as_its_first_attempt(retried).await;
    yard.give("go");
    end(before_it).await.expect("it may finish");
    within("the pool stops", pool.stopped()).await;
}

#[tokio::test]
async fn a_retried_request_whose_process_dies_in_a_draining_pool_ends_with_its_own_error() {
    let yard = Yard::new();
    let (pool, retried, before_it) = retried_behind_another(&yard).await;
    pool.shut_down(false);
    send(pid(&pool, 0).await, libc::SIGKILL);
    ended_as_its_first_attempt(retried).await;
    assert!(matches!(failure(before_it).await, Failure::Crashed { .. }));
    within("the pool stops", pool.stopped()).await;
}

#[tokio::test]
async fn a_process_that_exits_before_it_has_connected_is_replaced() {
    for variables in [vec![], vec![("CONTROL_FIRST".to_owned(), String::new())]] {
        let processes =
            ProcessSettings { named_socket: true, env: variables, ..ProcessSettings::default() };
        let spec = spec(program("exits-unconnected.py").await, brisk(1));
        let pool = start(PoolSpec { processes, ..spec }).await;
        assert_eq!(ask(&pool, "echo", "1").await, "1");
        assert_eq!(generation(&pool), 2);
        stop(pool).await;
    }
}

#[tokio::test]
async fn a_pool_whose_processes_never_connect_fails_and_stops() {
    let settings = Settings { restart_max: 2, ..brisk(1) };
    let processes = ProcessSettings { named_socket: true, ..ProcessSettings::default() };
    let spec = spec(program("dies-before-hello.sh").await, settings);
    let pool = start(PoolSpec { processes, ..spec }).await;
    let refused = end(pool.call(call("echo", "1"))).await.unwrap_err();
    assert!(refused.to_string().contains("no licence found"), "{refused}");
    stop(pool).await;
}

/// One that hangs up after it shows when the other, judged like it, would have been killed.
#[tokio::test]
async fn a_worker_that_closes_a_control_stream_it_never_read_lives() {
    let content = one(program("closes-control.sh").await).await;
    assert_eq!(ask(&content, "echo", "1").await, "1");
    let process = Process::find(pid(&content, 0).await);
    let hanging_up = one(program("hangs-up.sh").await).await;
    let failure = failure(hanging_up.call(call("vice", ""))).await;
    let closed = LossReason::Stopped(StopReason::StreamClosed);
    assert!(matches!(failure, Failure::Crashed { reason, .. } if reason == closed), "{failure:?}");
    assert_eq!(ask(&content, "echo", "2").await, "2");
    assert_eq!(generation(&content), 1);
    assert!(process.lives());
    stop(content).await;
    stop(hanging_up).await;
}

#[tokio::test]
async fn an_end_that_nobody_follows_is_no_restart() {
    let pool = one(program("answers-twice.sh").await).await;
    within("it is ready", pool.ready()).await;
    send(pid(&pool, 0).await, libc::SIGKILL);
    until("the next one is ready", || generation(&pool) == 2 && pool.info().view.ready == 1).await;
    pool.shut_down(false);
    within("the pool stops", pool.stopped()).await;
    let counters = pool.info().view.counters;
    assert_eq!((counters.restarts_unplanned, counters.restarts_planned), (1, 0));
}

/// A pool of `calls-late.py`, and how many are inside a host function that has no end.
async fn calling_late(yard: &Yard) -> (Pool, Arc<AtomicUsize>) {
    struct Inside(Arc<AtomicUsize>);
    impl Drop for Inside {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let inside: Arc<AtomicUsize> = Arc::default();
    let count = Arc::clone(&inside);
    let directory = Directory::new();
    directory.offer("endless", move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        let inside = Inside(Arc::clone(&count));
        async move {
            let _inside = inside;
            std::future::pending().await
        }
    });
    let spec = spec(program("calls-late.py").await, patient(1));
    (start(yard.around(PoolSpec { directory, ..spec })).await, inside)
}

#[tokio::test]
async fn a_call_that_comes_after_the_cancel_of_its_request_is_called_off() {
    let yard = Yard::new();
    let (pool, inside) = calling_late(&yard).await;
    let running = pool.call(call("call_after_cancel", ""));
    until("it has begun", || yard.lines("begun").len() == 1).await;
    running.cancel();
    assert!(matches!(failure(running).await, Failure::Cancelled { .. }));
    until("its call is answered", || yard.lines("answers") == ["cancelled"]).await;
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    assert_eq!((generation(&pool), inside.load(Ordering::SeqCst)), (1, 0));
    stop(pool).await;
}

#[tokio::test]
async fn a_call_that_belongs_to_no_request_ends_with_its_process() {
    let yard = Yard::new();
    let (pool, inside) = calling_late(&yard).await;
    let running = pool.call(call("call_for_nobody", ""));
    until("the host is called", || inside.load(Ordering::SeqCst) == 1).await;
    send(pid(&pool, 0).await, libc::SIGKILL);
    assert!(matches!(failure(running).await, Failure::Crashed { .. }));
    until("the call is over", || inside.load(Ordering::SeqCst) == 0).await;
    stop(pool).await;
}

#[tokio::test]
async fn a_host_function_that_panics_is_an_error_of_the_call() {
    let directory = Directory::new();
    let calls: Arc<Mutex<usize>> = Arc::default();
    let count = Arc::clone(&calls);
    directory.offer("panic", move |_| {
        *count.lock().unwrap() += 1;
        async { if true { panic!("as part of the test") } else { Err(HostError::new("never")) } }
    });
    let spec = PoolSpec { directory, ..spec(functions("callers.py"), brisk(1)) };
    let pool = start(spec).await;
    for n in 1..=2 {
        let told = ask(&pool, "problem_of", &json!(["host", "panic"]).to_string()).await;
        let told: Value = serde_json::from_str(&told).expect("JSON");
        assert_eq!(told["code"], "host_error", "{told}");
        assert_eq!(*calls.lock().unwrap(), n);
    }
    assert_eq!(generation(&pool), 1);
    stop(pool).await;
}
