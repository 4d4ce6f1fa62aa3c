//! What is remembered of requests: their way, their ids, and as many as were asked for.

use std::time::Duration;

use ostler_runtime::core::Settings;
use ostler_runtime::{Call, EventKind, Failure, Pool, PoolSpec, RequestInfo, Running};

use super::support::*;

async fn pool_of(yard: &Yard, settings: Settings) -> Pool {
    let pool = start(yard.around(spec(functions("functions.py"), settings))).await;
    within("it is ready", pool.ready()).await;
    pool
}

fn info(pool: &Pool, id: &str) -> RequestInfo {
    pool.request(id).unwrap_or_else(|| panic!("{id} is not remembered"))
}

/// The states of a request, each with the attempt and who worked on it.
fn way(info: &RequestInfo) -> Vec<(&'static str, u32, Option<String>)> {
    let steps = info.record.history.iter();
    steps.map(|s| (s.state.name(), s.attempt, s.worker.as_deref().map(str::to_owned))).collect()
}

/// Lets a call end and tells its way.
async fn way_of(pool: &Pool, running: Running) -> Vec<(&'static str, u32, Option<String>)> {
    let id = running.id();
    let _ = end(running).await;
    let info = info(pool, &id);
    assert_eq!(info.times.len(), info.record.history.iter().count());
    assert!(info.times.is_sorted(), "{:?}", info.times);
    way(&info)
}

fn step(state: &'static str, attempt: u32) -> (&'static str, u32, Option<String>) {
    let worker = match state {
        "PENDING" => None,
        _ => Some("test-1".to_owned()),
    };
    (state, attempt, worker)
}

#[tokio::test]
async fn a_request_is_pending_then_processing_then_complete() {
    let yard = Yard::new();
    let pool = pool_of(&yard, brisk(1)).await;
    let plain = way_of(&pool, pool.call(call("echo", "[1]"))).await;
    assert_eq!(plain, [step("PENDING", 0), step("PROCESSING", 1), step("COMPLETE", 1)]);
    let streamed = way_of(&pool, pool.call(call("count", "[3]"))).await;
    let streaming = step("STREAMING", 1);
    assert_eq!(
        streamed,
        [step("PENDING", 0), step("PROCESSING", 1), streaming, step("COMPLETE", 1)]
    );
    let raised = way_of(&pool, pool.call(call("fail", ""))).await;
    assert_eq!(raised, [step("PENDING", 0), step("PROCESSING", 1), step("ERROR", 1)]);
    stop(pool).await;
}

#[tokio::test]
async fn a_request_that_is_tried_again_remembers_both_attempts() {
    let yard = Yard::new();
    let pool = pool_of(&yard, brisk(1)).await;
    let twice = [
        step("PENDING", 0),
        step("PROCESSING", 1),
        step("PENDING", 1),
        step("PROCESSING", 2),
        step("COMPLETE", 2),
    ];
    let again = Call { idempotent: true, ..call("fails_at_first", "") };
    assert_eq!(way_of(&pool, pool.call(again)).await, twice);

    let lost = pool.call(Call { idempotent: true, ..call("hold", r#"["lost"]"#) });
    until("it runs", || yard.lines("begun").len() == 1).await;
    send(pid(&pool, 0).await, libc::SIGKILL);
    yard.give("go");
    assert_eq!(way_of(&pool, lost).await, twice);

    let retried: Vec<_> = events(&pool)
        .into_iter()
        .filter(|event| event.kind == EventKind::RequestRetried)
        .map(|event| event.reason)
        .collect();
    assert_eq!(retried, [Some("retryable_error"), Some("worker_lost")]);
    stop(pool).await;
}

#[tokio::test]
async fn a_request_that_never_ran_remembers_that() {
    let yard = Yard::new();
    let settings = Settings { queue_max: 3, queue_timeout: LIMIT, ..brisk(1) };
    let pool = pool_of(&yard, settings).await;
    let holder = pool.call(call("hold", r#"["first"]"#));
    until("it runs", || yard.lines("begun").len() == 1).await;
    let never = |timeout: Option<Duration>| Call { timeout, ..call("record", r#"["never"]"#) };
    let cancelled = pool.call(never(None));
    let late = pool.call(never(Some(Duration::from_millis(20))));
    let fills = pool.call(call("record", r#"["third"]"#));
    let too_many = pool.call(never(None));
    let unknown = pool.call(call("no such function", ""));
    cancelled.cancel();
    for (running, last, code) in [
        (cancelled, "CANCELLED", "cancelled"),
        (late, "ERROR", "deadline_exceeded"),
        (too_many, "REJECTED", "pool_saturated"),
        (unknown, "REJECTED", "function_not_found"),
    ] {
        let id = running.id();
        let way = way_of(&pool, running).await;
        assert_eq!(way, [("PENDING", 0, None), (last, 0, None)]);
        assert_eq!(info(&pool, &id).record.code, Some(code));
    }
    yard.give("go");
    for running in [holder, fills] {
        end(running).await.expect("it is served");
    }
    assert_eq!(yard.lines("ledger"), ["third test-1#1"]);
    stop(pool).await;
}

#[tokio::test]
async fn ids_are_the_callers_own_or_made_and_both_are_found() {
    let yard = Yard::new();
    let pool = pool_of(&yard, brisk(1)).await;
    let running =
        pool.call(Call { request_id: Some("mine".to_owned()), ..call("hold", r#"["a"]"#) });
    assert_eq!(&*running.id(), "mine");
    until("it runs", || yard.lines("begun").len() == 1).await;
    assert_eq!(info(&pool, "mine").record.state.name(), "PROCESSING");
    assert_eq!(&*pool.info().workers[0].requests[0], "mine");
    let made = pool.call(call("echo", "[1]"));
    let made_id = made.id();
    assert!(made_id.starts_with("r_"), "{made_id}");
    assert_eq!(info(&pool, &made_id).record.state.name(), "PENDING");
    yard.give("go");
    for running in [running, made] {
        end(running).await.expect("it is served");
    }
    for id in ["mine", &*made_id] {
        assert_eq!(&*info(&pool, id).id, id);
        assert_eq!(info(&pool, id).record.state.name(), "COMPLETE");
    }
    assert!(pool.request("nobody's").is_none());
    let ids: Vec<String> = pool.requests().iter().map(|info| info.id.to_string()).collect();
    assert_eq!(ids, [&*made_id, "mine"], "the newest first");
    stop(pool).await;
}

#[tokio::test]
async fn of_two_requests_with_one_id_the_last_is_found() {
    let pool = pool_of(&Yard::new(), brisk(1)).await;
    let twice = |function: &str, arguments: &str| Call {
        request_id: Some("twice".to_owned()),
        ..call(function, arguments)
    };
    end(pool.call(twice("echo", "[1]"))).await.expect("it is served");
    failure(pool.call(twice("fail", ""))).await;
    assert_eq!(info(&pool, "twice").record.code, Some("application_error"));
    stop(pool).await;
}

#[tokio::test]
async fn a_request_is_cancelled_by_its_id_wherever_it_is() {
    let yard = Yard::new();
    let settings = Settings { cancel_grace: LIMIT, queue_timeout: LIMIT, ..brisk(1) };
    let pool = pool_of(&yard, settings).await;
    let running =
        pool.call(Call { request_id: Some("mine".to_owned()), ..call("hold", r#"["a"]"#) });
    until("it runs", || yard.lines("begun").len() == 1).await;
    let queued = pool.call(call("record", r#"["queued"]"#));
    let queued_id = queued.id();
    for (running, id) in [(queued, &*queued_id), (running, "mine")] {
        assert_eq!(pool.cancel(id), Some(true));
        assert!(matches!(failure(running).await, Failure::Cancelled { .. }), "{id}");
        assert_eq!(pool.cancel(id), Some(false), "{id} has its end");
        assert_eq!(info(&pool, id).record.state.name(), "CANCELLED");
    }
    assert_eq!(pool.cancel("nobody's"), None);
    let cancels: Vec<_> = events(&pool)
        .into_iter()
        .filter(|event| event.kind == EventKind::RequestCancelled)
        .map(|event| (event.request.clone().expect("whose"), event.reason))
        .collect();
    let by_order = |id: &str| (id.to_owned(), Some("order"));
    assert_eq!(cancels, [by_order(&queued_id), by_order("mine")]);
    assert_eq!(ask(&pool, "echo", "[1]").await, "1");
    assert!(yard.lines("ledger").is_empty());
    assert_eq!(generation(&pool), 1, "the same process");
    stop(pool).await;
}

#[tokio::test]
async fn no_more_ended_requests_are_remembered_than_were_asked_for() {
    let yard = Yard::new();
    let spec = spec(functions("functions.py"), brisk(1));
    let pool = start(yard.around(PoolSpec { requests_kept: 3, ..spec })).await;
    let mut ids = Vec::new();
    for number in 0..10 {
        let request_id = (number % 2 == 0).then(|| format!("given-{number}"));
        let running = pool.call(Call { request_id, ..call("echo", "[1]") });
        ids.push(running.id());
        end(running).await.expect("it is served");
    }
    let (forgotten, kept) = ids.split_at(7);
    assert!(forgotten.iter().all(|id| pool.request(id).is_none()), "{forgotten:?}");
    assert!(kept.iter().all(|id| pool.request(id).is_some()), "{kept:?}");
    assert_eq!(pool.requests().len(), 3);
    assert_eq!(pool.cancel(&forgotten[0]), None);
    stop(pool).await;
}
