//! Calls that workers make while they work: to other pools, to their own, to the program around
//! them. They inherit deadline and cancel, and one that could never be served is told so.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ostler_runtime::core::Settings;
use ostler_runtime::{
    Body, Call, Directory, Failure, HostCall, HostError, LogLevel, Pool, PoolSpec, Stream,
};
use serde_json::{Value, json};

use super::support::*;

/// Pools by these names and sizes that may call each other, with one yard.
async fn neighbours(yard: &Yard, directory: &Directory, pools: &[(&str, Settings)]) -> Vec<Pool> {
    let mut started = Vec::new();
    for (name, settings) in pools {
        let program = functions("callers.py");
        let directory = directory.clone();
        let spec = PoolSpec { directory, ..PoolSpec::new(*name, program, settings.clone()) };
        started.push(start(yard.around(spec)).await);
    }
    for pool in &started {
        within("all are ready", pool.all_ready()).await;
    }
    started
}

/// A pool `caller` and a pool `called`, one worker each.
async fn two(yard: &Yard) -> (Pool, Pool) {
    let pools = [("caller", patient(1)), ("called", patient(1))];
    let mut pools = neighbours(yard, &Directory::new(), &pools).await;
    let called = pools.pop().expect("two");
    (pools.pop().expect("two"), called)
}

/// A pool that calls itself.
async fn alone(yard: &Yard, size: u32) -> Pool {
    neighbours(yard, &Directory::new(), &[("self", patient(size))]).await.remove(0)
}

async fn ask_json(pool: &Pool, function: &str, arguments: Value) -> Value {
    serde_json::from_str(&ask(pool, function, &arguments.to_string()).await).expect("JSON")
}

fn running(function: &str, arguments: Value) -> Call {
    call(function, &arguments.to_string())
}

#[tokio::test]
async fn a_function_calls_one_of_another_pool() {
    let yard = Yard::new();
    let (caller, called) = two(&yard).await;
    for relay in ["relay", "relay_from_a_thread", "relay_from_a_stranger"] {
        let answer = ask_json(&caller, relay, json!(["called", "echo", { "é": [1] }])).await;
        assert_eq!(answer, json!({ "é": [1] }), "{relay}");
    }
    assert_eq!(called.info().view.counters.resolved, 3);
    stop(caller).await;
    stop(called).await;
}

#[tokio::test]
async fn a_function_calls_its_own_pool_while_there_is_a_place() {
    let yard = Yard::new();
    let pool = alone(&yard, 2).await;
    for relay in ["relay", "relay_from_a_thread"] {
        assert_eq!(ask_json(&pool, relay, json!(["self", "echo", 7])).await, 7, "{relay}");
    }
    stop(pool).await;
}

#[tokio::test]
async fn a_thousand_calls_in_a_row_come_back_each_with_its_own_result() {
    let yard = Yard::new();
    let (caller, called) = two(&yard).await;
    let many = Call { timeout: Some(3 * LIMIT), ..running("many", json!(["called", 1000])) };
    let sum = tokio::time::timeout(3 * LIMIT, caller.call(many).result()).await;
    let sum = sum.expect("never seen: the thousandth").expect("it answers");
    assert_eq!(text(&sum.body), (0..1000).sum::<u64>().to_string());
    let counters = called.info().view.counters;
    assert_eq!((counters.arrived, counters.resolved), (1000, 1000), "{counters:?}");
    stop(caller).await;
    stop(called).await;
}

#[tokio::test]
async fn an_error_two_calls_deep_comes_back_through_both() {
    let yard = Yard::new();
    let (caller, called) = two(&yard).await;
    let deep = json!(["called", "relay", "host", "up", 20]);
    let told = ask_json(&caller, "problem_of", deep).await;
    assert_eq!(told["code"], "application_error", "{told}");
    assert!(told["detail"].as_str().unwrap().contains("has no function `up`"), "{told}");
    stop(caller).await;
    stop(called).await;
}

#[tokio::test]
async fn what_the_server_says_against_a_call_has_its_code() {
    let yard = Yard::new();
    let (caller, called) = two(&yard).await;
    let cases = [
        (json!(["nowhere", "echo"]), "pool_not_found", "called, caller"),
        (json!(["called", "nothing"]), "function_not_found", "nothing"),
        (json!(["called", "fail"]), "application_error", "as asked"),
        (json!(["called", "letters", "many"]), "invalid_arguments", "n"),
        (json!(["called", "die", 3]), "worker_crashed", "code 3"),
        (json!(["ostler", "session.get"]), "session_required", "session"),
    ];
    for (arguments, code, said) in cases {
        let told = ask_json(&caller, "problem_of", arguments).await;
        assert_eq!(told["code"], code, "{told}");
        assert!(told["detail"].as_str().unwrap().contains(said), "{told}");
    }
    assert_eq!(generation(&caller), 1, "the caller's process lives");
    stop(caller).await;
    stop(called).await;
}

#[tokio::test]
async fn a_nested_call_has_no_more_time_than_the_one_that_waits_for_it() {
    let yard = Yard::new();
    let (caller, called) = two(&yard).await;
    let timeout = Some(Duration::from_secs(20));
    for relay in ["relay", "relay_from_a_thread"] {
        let parent = Call { timeout, ..running(relay, json!(["called", "remaining"])) };
        let answered = end(caller.call(parent)).await.expect("it is in time");
        let left: f64 = text(&answered.body).parse().expect("seconds");
        assert!(left <= 20.0, "{relay}: {left} s");
    }
    stop(caller).await;
    stop(called).await;
}

#[tokio::test]
async fn a_deadline_of_the_parent_ends_what_it_called() {
    let yard = Yard::new();
    let (caller, called) = two(&yard).await;
    let timeout = Some(Duration::from_secs(1));
    let nested = json!(["called", "hold_and_leave_a_trace", "nested"]);
    let failure = failure(caller.call(Call { timeout, ..running("relay", nested) })).await;
    // The nested one ends first, by less than a millisecond: its caller may still hear of it.
    let heard = matches!(&failure, Failure::Application(error) if error.kind.as_deref() == Some("CallError"));
    assert!(heard || matches!(failure, Failure::TimedOut { .. }), "{failure:?}");
    assert!(failure.to_string().contains("deadline"), "{failure}");
    until("the nested one is over", || called.info().view.running == 0).await;
    assert_eq!(ask(&called, "echo", "[1]").await, "1");
    assert_eq!(ask(&caller, "echo", "[1]").await, "1");
    stop(caller).await;
    stop(called).await;
}

#[tokio::test]
async fn a_cancel_of_the_parent_cancels_what_it_called() {
    for relay in ["relay", "relay_from_a_thread"] {
        let yard = Yard::new();
        let (caller, called) = two(&yard).await;
        let nested = json!(["called", "hold_and_leave_a_trace", "nested"]);
        let parent = caller.call(running(relay, nested));
        until("the nested one runs", || yard.lines("begun").len() == 1).await;
        parent.cancel();
        assert!(matches!(failure(parent).await, Failure::Cancelled { .. }));
        until("the nested one was cancelled", || yard.lines("cancelled") == ["nested"]).await;
        until("both are free", || {
            [&caller, &called].iter().all(|pool| pool.info().view.running == 0)
        })
        .await;
        stop(caller).await;
        stop(called).await;
    }
}

#[tokio::test]
async fn a_worker_that_dies_takes_along_what_it_called() {
    let yard = Yard::new();
    let (caller, called) = two(&yard).await;
    let nested = json!(["called", "hold_and_leave_a_trace", "nested"]);
    let parent = caller.call(running("relay", nested));
    until("the nested one runs", || yard.lines("begun").len() == 1).await;
    send(pid(&caller, 0).await, libc::SIGKILL);
    assert!(matches!(failure(parent).await, Failure::Crashed { .. }));
    until("the nested one was cancelled", || yard.lines("cancelled") == ["nested"]).await;
    until("it is let go of", || called.info().view.running == 0).await;
    assert_eq!(generation(&called), 1, "the same process");
    stop(caller).await;
    stop(called).await;
}

#[tokio::test]
async fn a_caller_outlives_the_death_of_what_it_called() {
    let yard = Yard::new();
    let (caller, called) = two(&yard).await;
    let nested = json!(["called", "hold_and_leave_a_trace", "nested"]);
    let parent = caller.call(running("problem_of", nested));
    until("the nested one runs", || yard.lines("begun").len() == 1).await;
    send(pid(&called, 0).await, libc::SIGKILL);
    let told: Value = serde_json::from_str(&text(&end(parent).await.expect("told").body)).unwrap();
    assert_eq!((&told["code"], &told["outcome_unknown"]), (&json!("worker_crashed"), &json!(true)));
    assert_eq!(generation(&caller), 1);
    stop(caller).await;
    stop(called).await;
}

#[tokio::test]
async fn a_call_for_which_its_parent_holds_the_only_place_is_refused_at_once() {
    let yard = Yard::new();
    let pool = alone(&yard, 1).await;
    let told = ask_json(&pool, "meet_and_call", json!(["self", 1])).await;
    assert_eq!(told["code"], "nested_deadlock", "{told}");
    assert_eq!(ask(&pool, "echo", "[1]").await, "1");
    stop(pool).await;
}

/// Of two that wait for each other's place one is told so; then the other has its place.
#[tokio::test]
async fn of_parents_that_hold_every_place_one_is_refused_and_the_others_go_on() {
    for size in [2, 3] {
        let yard = Yard::new();
        let pool = alone(&yard, size).await;
        // Short calls before, so that the pool would prefetch.
        for n in 0..20 {
            assert_eq!(ask(&pool, "echo", &format!("[{n}]")).await, n.to_string());
        }
        let parents: Vec<_> =
            (0..size).map(|_| pool.call(running("meet_and_call", json!(["self", size])))).collect();
        let (mut refused, mut served) = (0, 0);
        for parent in parents {
            let told = text(&end(parent).await.expect("nobody hangs").body);
            match serde_json::from_str::<Value>(&told).expect("JSON") {
                told if told["code"] == "nested_deadlock" => refused += 1,
                told if told["result"] == "nested" => served += 1,
                told => panic!("{told}"),
            }
        }
        assert_eq!((refused, served), (1, size - 1));
        stop(pool).await;
    }
}

#[tokio::test]
async fn a_circle_through_another_pool_is_found_too() {
    let yard = Yard::new();
    let (caller, called) = two(&yard).await;
    let circle = json!(["called", "problem_of", "caller", "echo", 1]);
    let told = ask_json(&caller, "relay", circle).await;
    assert_eq!(told["code"], "nested_deadlock", "{told}");
    stop(caller).await;
    stop(called).await;
}

/// A pool whose workers may call these functions of this program.
async fn with_host(yard: &Yard, offer: impl FnOnce(&Directory)) -> Pool {
    let directory = Directory::new();
    offer(&directory);
    neighbours(yard, &directory, &[("guest", patient(1))]).await.remove(0)
}

#[tokio::test]
async fn a_host_function_gets_the_arguments_and_who_asks() {
    let yard = Yard::new();
    let asked: Arc<Mutex<Vec<HostCall>>> = Arc::default();
    let keep = Arc::clone(&asked);
    let pool = with_host(&yard, |host| {
        host.offer("double", move |call| {
            keep.lock().unwrap().push(call.clone());
            async move {
                let numbers: Vec<i64> = serde_json::from_slice(&call.body.to_json())?;
                Ok(Body::json((2 * numbers[0]).to_string()))
            }
        });
    })
    .await;
    let id = Some("mine".to_owned());
    for relay in ["relay", "relay_from_a_thread"] {
        let parent =
            Call { request_id: id.clone(), ..running(relay, json!(["host", "double", 21])) };
        assert_eq!(text(&end(pool.call(parent)).await.expect("it answers").body), "42");
    }
    for call in asked.lock().unwrap().iter() {
        assert_eq!((&*call.pool, &*call.worker), ("guest", "guest-1"));
        assert_eq!(call.request.as_deref(), Some("mine"));
        assert!(call.time_left <= Duration::from_secs(60), "{:?}", call.time_left);
    }
    assert_eq!(asked.lock().unwrap().len(), 2);
    stop(pool).await;
}

#[tokio::test]
async fn an_error_of_a_host_function_reaches_the_worker_as_it_is() {
    let yard = Yard::new();
    let pool = with_host(&yard, |host| {
        host.offer("never", |_| async {
            Err(HostError {
                code: "closed".to_owned(),
                retryable: true,
                ..HostError::new("at night")
            })
        });
    })
    .await;
    let told = ask_json(&pool, "problem_of", json!(["host", "never"])).await;
    assert_eq!(told, json!({ "code": "closed", "detail": "at night", "retryable": true }));
    let told = ask_json(&pool, "problem_of", json!(["host", "other"])).await;
    assert_eq!((&told["code"], &told["known"]), (&json!("function_not_found"), &json!(["never"])));
    stop(pool).await;
}

/// Counts those that are inside a host function which has no end.
struct Inside(Arc<AtomicUsize>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_host_function_is_dropped_at_the_deadline_and_at_a_cancel() {
    let yard = Yard::new();
    let inside: Arc<AtomicUsize> = Arc::default();
    let count = Arc::clone(&inside);
    let pool = with_host(&yard, |host| {
        host.offer("endless", move |_| {
            let count = Arc::clone(&count);
            async move {
                count.fetch_add(1, Ordering::SeqCst);
                let _inside = Inside(count);
                std::future::pending().await
            }
        });
    })
    .await;
    let parent = || running("relay", json!(["host", "endless"]));
    let late = Call { timeout: Some(Duration::from_secs(1)), ..parent() };
    assert!(matches!(failure(pool.call(late)).await, Failure::TimedOut { .. }));
    until("it was dropped", || inside.load(Ordering::SeqCst) == 0).await;
    let cancelled = pool.call(parent());
    until("it is inside", || inside.load(Ordering::SeqCst) == 1).await;
    cancelled.cancel();
    assert!(matches!(failure(cancelled).await, Failure::Cancelled { .. }));
    until("it was dropped", || inside.load(Ordering::SeqCst) == 0).await;
    assert_eq!(ask(&pool, "echo", "[1]").await, "1");
    stop(pool).await;
}

#[tokio::test]
async fn progress_and_log_lines_belong_to_their_request() {
    let yard = Yard::new();
    let pool = alone(&yard, 1).await;
    let given =
        Call { request_id: Some("mine".to_owned()), ..running("tell", json!([[1, 2], "a"])) };
    let parents = [pool.call(given), pool.call(running("tell", json!([0.5, "b"])))];
    until("the first has told", || yard.lines("told").len() == 1).await;
    assert_eq!(yard.lines("told"), ["mine"]);
    yard.give("go");
    for (parent, progress) in parents.into_iter().zip(["[1,2]", "0.5"]) {
        let id = parent.id();
        end(parent).await.expect("it ends");
        let record = pool.request(&id).expect("remembered").record;
        let told = record.progress.expect("it said how far it is");
        assert_eq!(told.get().replace(' ', ""), progress);
        let output = pool.worker_output("self-1").expect("it wrote");
        let line = output.after(0).into_iter().find(|line| line.request.as_deref() == Some(&*id));
        let line = line.unwrap_or_else(|| panic!("no line of {id}: {:?}", output.after(0)));
        assert_eq!((line.stream, line.level), (Stream::Log, LogLevel::Warning));
    }
    stop(pool).await;
}
