//! Workers that run several requests at a time, in threads or as tasks, and those that run one.

use std::time::Duration;

use ostler_runtime::core::{CapacityFrom, Occupancy, Phase, Settings, StopReason};
use ostler_runtime::{
    CallError, Failure, Pool, PoolSpec, ProcessSettings, Profile, Refused, ThreadSafety,
};
use serde_json::Value;

use super::support::*;

const THREADS: Profile = Profile::Thread { threads: 4 };
const TASKS: Profile = Profile::Async { concurrency: 4 };

fn side_by_side(yard: &Yard, profile: Profile, settings: Settings) -> PoolSpec {
    let processes = ProcessSettings { profile, ..ProcessSettings::default() };
    yard.around(PoolSpec { processes, ..spec(functions("sides.py"), settings) })
}

async fn one_of(yard: &Yard, profile: Profile, settings: Settings) -> Pool {
    let pool = start(side_by_side(yard, profile, settings)).await;
    within("it is ready", pool.ready()).await;
    pool
}

/// One who waits for the sign `go`, in either profile.
fn hold(profile: Profile) -> &'static str {
    match profile {
        Profile::Async { .. } => "async_hold",
        _ => "side_hold",
    }
}

#[tokio::test]
async fn four_threads_are_inside_at_the_same_time() {
    let yard = Yard::new();
    let pool = one_of(&yard, THREADS, brisk(1)).await;
    let meeting: Vec<_> = (0..4).map(|_| pool.call(call("meet", "[4]"))).collect();
    let (mut last_begin, mut first_end) = (f64::MIN, f64::MAX);
    for running in meeting {
        let answered = end(running).await.expect("they meet");
        let [begun, ended]: [f64; 2] = serde_json::from_slice(&answered.body.bytes).expect("two");
        last_begin = last_begin.max(begun);
        first_end = first_end.min(ended);
    }
    assert!(last_begin < first_end, "by their own clock");
    assert_eq!(generation(&pool), 1);
    stop(pool).await;
}

#[tokio::test]
async fn four_tasks_are_inside_at_the_same_time_on_one_thread() {
    let yard = Yard::new();
    let pool = one_of(&yard, TASKS, brisk(1)).await;
    let meeting: Vec<_> = (0..4).map(|_| pool.call(call("async_meet", "[4]"))).collect();
    for running in meeting {
        let answered = end(running).await.expect("they meet");
        assert_eq!(text(&answered.body), r#""MainThread""#);
    }
    stop(pool).await;
}

#[tokio::test]
async fn plain_functions_of_the_async_profile_run_beside_its_tasks() {
    let yard = Yard::new();
    let pool = one_of(&yard, TASKS, brisk(1)).await;
    let mixed = ["meet", "async_meet", "meet", "async_meet"];
    let mixed: Vec<_> = mixed.map(|function| pool.call(call(function, "[4]"))).into();
    for running in mixed {
        end(running).await.expect("they meet");
    }
    stop(pool).await;
}

#[tokio::test]
async fn load_and_capacity_are_those_of_the_places() {
    for profile in [THREADS, TASKS] {
        let yard = Yard::new();
        let pool = one_of(&yard, profile, brisk(1)).await;
        let info = pool.info();
        assert_eq!((info.view.capacity, info.view.running), (4, 0));
        let mut holders = Vec::new();
        for load in 1..=4 {
            holders.push(pool.call(call(hold(profile), r#"["held"]"#)));
            until("it is inside", || yard.lines("begun").len() == load).await;
            let info = pool.info();
            let worker = &info.workers[0];
            assert_eq!((worker.view.load, worker.view.capacity), (load as u32, 4));
            assert_eq!(worker.requests.len(), load);
            let full = load == 4;
            assert_eq!(worker.view.phase, Some(if full { Phase::Busy } else { Phase::Ready }));
            assert_eq!(info.view.occupancy == Occupancy::AtCapacity, full);
        }
        let fifth = pool.call(call("quick", "[5]"));
        until("the fifth waits", || pool.info().view.queued == 1).await;
        yard.give("go");
        for running in holders.into_iter().chain([fifth]) {
            end(running).await.expect("it ends");
        }
        until("all places are free", || pool.info().view.running == 0).await;
        stop(pool).await;
    }
}

#[tokio::test]
async fn a_cancel_of_one_leaves_its_siblings_alone() {
    for profile in [THREADS, TASKS] {
        let yard = Yard::new();
        let pool = one_of(&yard, profile, Settings { cancel_grace: LIMIT, ..brisk(1) }).await;
        let names = ["a", "b", "c"];
        let mut siblings: Vec<_> = names
            .iter()
            .map(|name| pool.call(call(hold(profile), &format!("[{name:?}]"))))
            .collect();
        until("all are inside", || yard.lines("begun").len() == 3).await;
        let cancelled = siblings.remove(1);
        cancelled.cancel();
        assert!(matches!(failure(cancelled).await, Failure::Cancelled { .. }));
        until("its place is free", || pool.info().workers[0].view.load == 2).await;
        assert_eq!(ask(&pool, "quick", "[1]").await, "1");
        yard.give("go");
        for (running, name) in siblings.into_iter().zip(["a", "c"]) {
            let answered = end(running).await.expect("nobody asked it to stop");
            assert_eq!(text(&answered.body), format!("{name:?}"));
        }
        assert_eq!(generation(&pool), 1, "the same process");
        stop(pool).await;
    }
}

/// A stubborn request that was cancelled, a sibling beside it, and the process on its way out.
async fn stopping(yard: &Yard, grace: Duration) -> (Pool, ostler_runtime::Running) {
    let pool = one_of(yard, THREADS, Settings { cancel_grace: grace, ..brisk(1) }).await;
    let stubborn = pool.call(call("stubborn", ""));
    let sibling = pool.call(call("side_hold", r#"["sibling"]"#));
    until("both are inside", || yard.lines("begun").len() == 2).await;
    stubborn.cancel();
    assert!(matches!(failure(stubborn).await, Failure::Cancelled { .. }));
    until("its cancel is forced", || {
        pool.info().workers[0].view.stopping == Some(StopReason::ForcedCancel)
    })
    .await;
    (pool, sibling)
}

#[tokio::test]
async fn a_forced_kill_waits_for_siblings_that_end_within_the_grace() {
    let yard = Yard::new();
    let (pool, sibling) = stopping(&yard, Duration::from_secs(3)).await;
    let later = pool.call(call("quick", r#"["later"]"#));
    yard.give("go");
    let answered = end(sibling).await.expect("it had the time");
    assert_eq!(text(&answered.body), r#""sibling""#);
    assert_eq!(text(&end(later).await.expect("the next process serves").body), r#""later""#);
    assert_eq!(generation(&pool), 2);
    stop(pool).await;
}

#[tokio::test]
async fn a_sibling_that_outlasts_the_grace_is_told_why_it_ended() {
    let yard = Yard::new();
    let (pool, sibling) = stopping(&yard, Duration::from_millis(200)).await;
    let failure = failure(sibling).await;
    assert!(failure.to_string().contains("forced_cancel"), "{failure}");
    assert_eq!(ask(&pool, "quick", "[1]").await, "1");
    stop(pool).await;
}

#[tokio::test]
async fn a_crash_tells_every_sibling() {
    let yard = Yard::new();
    let pool = one_of(&yard, THREADS, brisk(1)).await;
    let siblings: Vec<_> = (0..4).map(|_| pool.call(call("side_hold", r#"["lost"]"#))).collect();
    until("all are inside", || yard.lines("begun").len() == 4).await;
    send(pid(&pool, 0).await, libc::SIGKILL);
    for running in siblings {
        assert!(matches!(failure(running).await, Failure::Crashed { .. }));
    }
    assert_eq!(ask(&pool, "quick", "[1]").await, "1");
    stop(pool).await;
}

#[tokio::test]
async fn capacity_is_the_pools_the_workers_or_the_smaller_of_both() {
    let cases = [
        (CapacityFrom::Pool, 3, "8", 3),
        (CapacityFrom::Pool, 3, "2", 3),
        (CapacityFrom::Worker, 3, "8", 8),
        (CapacityFrom::Worker, 3, "2", 2),
        (CapacityFrom::Min, 3, "8", 3),
        (CapacityFrom::Min, 3, "2", 2),
    ];
    for (capacity_from, capacity, says, wanted) in cases {
        let settings = Settings { capacity_from, capacity, ..brisk(1) };
        let mut spec = spec(program("says-its-capacity.py").await, settings);
        spec.processes.env.push(("SAYS".to_owned(), says.to_owned()));
        let pool = start(spec).await;
        within("it is ready", pool.ready()).await;
        assert_eq!(pool.info().workers[0].view.capacity, wanted, "{capacity_from:?} {says}");
        // It answers when it holds that many, so that many it was given.
        let calls: Vec<_> =
            (0..wanted).map(|_| pool.call(call("any", &wanted.to_string()))).collect();
        for running in calls {
            end(running).await.expect("they come together");
        }
        stop(pool).await;
    }
}

async fn environment(profile: Profile, own: &[(&str, &str)]) -> Value {
    let yard = Yard::new();
    let mut spec = side_by_side(&yard, profile, brisk(1));
    let own = own.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    spec.processes.env.extend(own);
    let pool = start(spec).await;
    let environment = ask(&pool, "environment", "").await;
    stop(pool).await;
    serde_json::from_str(&environment).expect("JSON")
}

#[tokio::test]
async fn one_request_at_a_time_means_one_thread_for_numeric_libraries() {
    let environment = environment(Profile::Process, &[("OMP_NUM_THREADS", "2")]).await;
    let single = ["OPENBLAS", "MKL", "NUMEXPR"].map(|library| format!("{library}_NUM_THREADS"));
    for variable in single.iter().map(String::as_str).chain(["VECLIB_MAXIMUM_THREADS"]) {
        assert_eq!(environment[variable], "1", "{variable}");
    }
    assert_eq!(environment["GRPC_POLL_STRATEGY"], "poll");
    assert_eq!(environment["OMP_NUM_THREADS"], "2", "what the pool says counts");
    assert_eq!(
        (&environment["OSTLER_PROFILE"], &environment["OSTLER_CAPACITY"]),
        (&"process".into(), &"1".into())
    );
}

#[tokio::test]
async fn several_requests_at_a_time_may_use_several_threads_each() {
    for (profile, name) in [(THREADS, "thread"), (TASKS, "async")] {
        let environment = environment(profile, &[]).await;
        assert_ne!(environment["OPENBLAS_NUM_THREADS"], "1", "{name}");
        assert_eq!(environment["OSTLER_PROFILE"], name);
        assert_eq!(environment["OSTLER_CAPACITY"], "4");
    }
}

fn refusing(mut spec: PoolSpec) -> PoolSpec {
    spec.processes.thread_safety = ThreadSafety::Refuse;
    spec
}

#[tokio::test]
async fn functions_that_nobody_declared_thread_safe_are_not_served_in_threads_if_so_set() {
    let settings = Settings { restart_max: 1, ..brisk(1) };
    let processes = ProcessSettings { profile: THREADS, ..ProcessSettings::default() };
    let spec = PoolSpec { processes, ..spec(functions("functions.py"), settings) };
    let pool = start(refusing(spec)).await;
    let refused = end(pool.call(call("echo", "[1]"))).await.unwrap_err();
    let CallError::Refused(Refused::PoolFailed { why }) = refused else { panic!("{refused:?}") };
    assert!(why.contains("not declared thread-safe") && why.contains("echo"), "{why}");
    stop(pool).await;
}

#[tokio::test]
async fn a_second_request_inside_an_unsafe_function_is_refused_if_so_set() {
    let yard = Yard::new();
    let pool = start(refusing(side_by_side(&yard, THREADS, brisk(1)))).await;
    let first = pool.call(call("by_turns", ""));
    until("it is inside", || yard.lines("begun").len() == 1).await;
    let second = end(pool.call(call("by_turns", ""))).await.unwrap_err();
    assert_eq!(second.known().code, "thread_unsafe", "{second:?}");
    assert!(second.known().retryable && matches!(second, CallError::Refused(_)), "{second:?}");
    assert_eq!(ask(&pool, "quick", "[1]").await, "1");
    yard.give("go");
    end(first).await.expect("it was there before");
    assert_eq!(yard.lines("begun").len(), 1);
    stop(pool).await;
}
