//! Workers that are asked whether they are well, by the hook of their own program.

use std::time::Duration;

use ostler_runtime::core::{Checkup, Phase, Settings};
use ostler_runtime::{EventKind, Pool};

use super::support::*;

const SOON: Duration = Duration::from_millis(20);

/// Asked all the time, and degraded for as long as it says no.
const PATIENT: Checkup =
    Checkup { interval: SOON, timeout: LIMIT, again: SOON, failures: u32::MAX };

async fn examined(yard: &Yard, checkup: Checkup) -> Pool {
    let settings = Settings { checkup: Some(checkup), queue_timeout: LIMIT, ..brisk(1) };
    let pool = start(yard.around(spec(functions("unwell.py"), settings))).await;
    within("it is ready", pool.ready()).await;
    pool
}

fn phase(pool: &Pool) -> Option<Phase> {
    pool.info().workers[0].view.phase
}

/// Kinds and reasons of the events about the first worker, from its first process on.
fn told(pool: &Pool) -> Vec<(&'static str, Option<&'static str>)> {
    let of_it = |event: &std::sync::Arc<ostler_runtime::Event>| {
        event.worker.as_deref() == Some("test-1") && event.kind != EventKind::WorkerTransition
    };
    let events = events(pool).into_iter().filter(of_it);
    events.map(|event| (event.kind.name(), event.reason)).collect()
}

#[tokio::test]
async fn an_unwell_worker_gets_no_work_and_comes_back_without_traffic() {
    let yard = Yard::new();
    let pool = examined(&yard, PATIENT).await;
    for _ in 0..2 {
        yard.give("unwell");
        until("it is degraded", || phase(&pool) == Some(Phase::Degraded)).await;
        let info = pool.info();
        assert_eq!(info.workers[0].complaint.as_deref(), Some("the health hook said no"));
        yard.take_back("unwell");
        until("it is well again", || phase(&pool) == Some(Phase::Ready)).await;
        assert_eq!(pool.info().workers[0].complaint, None);
    }
    let ups_and_downs =
        [("worker.degraded", Some("check_failed")), ("worker.recovered", Some("check_passed"))];
    let begin = [("worker.spawned", Some("first")), ("worker.ready", None)];
    let wanted: Vec<_> = begin.into_iter().chain(ups_and_downs).chain(ups_and_downs).collect();
    assert_eq!(told(&pool), wanted);
    assert_eq!(generation(&pool), 1, "the same process");
    let tally = pool.tally();
    assert!(tally.checks().get("passed") >= 2 && tally.checks().get("failed") >= 2);
    stop(pool).await;
}

#[tokio::test]
async fn a_request_waits_for_a_worker_that_is_unwell() {
    let yard = Yard::new();
    let pool = examined(&yard, PATIENT).await;
    yard.give("unwell");
    until("it is degraded", || phase(&pool) == Some(Phase::Degraded)).await;
    let waiting = pool.call(call("echo", "[1]"));
    let asked = yard.lines("asked").len();
    until("it is asked again and again", || yard.lines("asked").len() > asked + 3).await;
    assert_eq!((waiting.worker(), pool.info().view.queued), (None, 1));
    yard.take_back("unwell");
    assert_eq!(text(&end(waiting).await.expect("it is well again").body), "1");
    stop(pool).await;
}

#[tokio::test]
async fn an_exception_in_the_hook_is_the_complaint() {
    let yard = Yard::new();
    let pool = examined(&yard, PATIENT).await;
    yard.give("lost");
    until("it is degraded", || phase(&pool) == Some(Phase::Degraded)).await;
    let complaint = pool.info().workers[0].complaint.clone();
    assert_eq!(complaint.as_deref(), Some("RuntimeError: the device is lost"));
    stop(pool).await;
}

async fn is_replaced(sign: &str, checkup: Checkup, result: &str) {
    let yard = Yard::new();
    let pool = examined(&yard, checkup).await;
    let old = Process::find(pid(&pool, 0).await);
    yard.give(sign);
    until("it is replaced", || generation(&pool) == 2).await;
    gone(&old).await;
    assert_eq!(ask(&pool, "echo", "[1]").await, "1");
    let told = told(&pool);
    let degraded =
        told.iter().position(|event| *event == ("worker.degraded", Some("check_failed")));
    let stopping = told.iter().position(|event| *event == ("worker.stopping", Some("unhealthy")));
    let terminated =
        told.iter().position(|event| *event == ("worker.terminated", Some("unhealthy")));
    assert!(degraded.is_some() && degraded < stopping && stopping < terminated, "{told:?}");
    assert!(pool.tally().checks().get(result) >= 3);
    assert_eq!(pool.info().view.counters.restarts_unplanned, 1);
    stop(pool).await;
}

#[tokio::test]
async fn three_failures_in_a_row_replace_the_process() {
    is_replaced("unwell", Checkup { failures: 3, ..PATIENT }, "failed").await;
}

#[tokio::test]
async fn a_hook_that_hangs_is_as_good_as_a_failure() {
    let timeout = Duration::from_millis(300);
    is_replaced("stuck", Checkup { failures: 3, timeout, ..PATIENT }, "timed_out").await;
}

#[tokio::test]
async fn a_handler_inside_c_code_is_neither_asked_nor_replaced_for_its_silence() {
    let yard = Yard::new();
    let mut pipe = yard.pipe("pipe");
    let hasty = Checkup { failures: 1, timeout: SOON, ..PATIENT };
    let heartbeat = quick_heartbeat(Duration::from_millis(200));
    let settings = Settings { checkup: Some(hasty), heartbeat: Some(heartbeat), ..brisk(1) };
    let pool = start(yard.around(spec(functions("unwell.py"), settings))).await;
    let computing = pool.call(call("compute", ""));
    until("it computes", || !yard.lines("begun").is_empty()).await;
    until("its silence is noticed", || pool.info().workers[0].view.unresponsive).await;
    let missed = pool.tally().heartbeats_missed();
    until("it goes on", || pool.tally().heartbeats_missed() > missed + 5).await;
    assert_eq!(pool.tally().checks().iter().count(), 0, "it was asked");
    std::io::Write::write_all(&mut pipe, b"x").expect("a byte");
    assert_eq!(text(&end(computing).await.expect("it was left alone").body), r#""computed""#);
    stop(pool).await;
}
