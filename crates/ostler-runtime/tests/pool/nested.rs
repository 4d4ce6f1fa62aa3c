//! Calls inside calls under other conditions: side by side in one process, over the plain wire,
//! with bytes, on a lease, and while the pools around them come to their end.

use std::time::Duration;

use ostler_runtime::core::Settings;
use ostler_runtime::{
    Body, Call, Directory, Encoding, Failure, LeaseRequest, Pool, PoolSpec, ProcessSettings,
    Profile, Program, Running,
};
use serde_json::{Value, json};

use super::support::*;

const THREADS: Profile = Profile::Thread { threads: 4 };
const TASKS: Profile = Profile::Async { concurrency: 4 };

/// A pool of a directory.
struct Neighbour<'a> {
    name: &'a str,
    program: Program,
    profile: Profile,
    settings: Settings,
}

impl<'a> Neighbour<'a> {
    fn of(name: &'a str, file: &str) -> Self {
        Neighbour {
            name,
            program: functions(file),
            profile: Profile::Process,
            settings: patient(1),
        }
    }

    fn beside(name: &'a str, profile: Profile) -> Self {
        Neighbour { profile, ..Neighbour::of(name, "sides.py") }
    }

    async fn start(self, yard: &Yard, directory: &Directory) -> Pool {
        let processes = ProcessSettings { profile: self.profile, ..ProcessSettings::default() };
        let directory = directory.clone();
        let spec = PoolSpec::new(self.name, self.program, self.settings);
        let pool = start(yard.around(PoolSpec { processes, directory, ..spec })).await;
        within("all are ready", pool.all_ready()).await;
        pool
    }
}

/// One that calls and one that is called.
async fn pair(yard: &Yard, caller: Neighbour<'_>, called: Neighbour<'_>) -> (Pool, Pool) {
    let directory = Directory::new();
    let called = called.start(yard, &directory).await;
    (caller.start(yard, &directory).await, called)
}

async fn stop_both((caller, called): (Pool, Pool)) {
    stop(caller).await;
    stop(called).await;
}

fn send_off(pool: &Pool, function: &str, arguments: Value) -> Running {
    pool.call(call(function, &arguments.to_string()))
}

#[tokio::test]
async fn siblings_call_at_the_same_time() {
    for (profile, relay) in [(THREADS, "side_relay"), (TASKS, "async_relay")] {
        let yard = Yard::new();
        let caller = Neighbour::beside("caller", profile);
        let pools = pair(&yard, caller, Neighbour::beside("called", THREADS)).await;
        let meeting: Vec<_> =
            (0..4).map(|_| send_off(&pools.0, relay, json!(["called", "meet", 4]))).collect();
        for running in meeting {
            end(running).await.unwrap_or_else(|error| panic!("{relay}: {error}"));
        }
        stop_both(pools).await;
    }
}

#[tokio::test]
async fn a_cancel_of_one_sibling_ends_what_it_called_and_nothing_else() {
    for (profile, relay) in [(THREADS, "side_relay"), (TASKS, "async_relay")] {
        let yard = Yard::new();
        let caller = Neighbour::beside("caller", profile);
        let pools = pair(&yard, caller, Neighbour::beside("called", THREADS)).await;
        let nested = |name: &str| json!(["called", "side_hold_or_tell", name]);
        let [kept, cancelled] = ["kept", "cancelled"].map(|n| send_off(&pools.0, relay, nested(n)));
        until("both are inside", || yard.lines("begun").len() == 2).await;
        cancelled.cancel();
        assert!(matches!(failure(cancelled).await, Failure::Cancelled { .. }));
        until("it was cancelled", || yard.lines("cancelled") == ["cancelled"]).await;
        yard.give("go");
        let answered = end(kept).await.expect("nobody cancelled it");
        assert_eq!(text(&answered.body), r#""kept""#, "{relay}");
        assert_eq!(yard.lines("cancelled").len(), 1);
        assert_eq!((generation(&pools.0), generation(&pools.1)), (1, 1), "the same processes");
        stop_both(pools).await;
    }
}

#[tokio::test]
async fn a_nested_call_takes_another_place_of_the_same_process() {
    let yard = Yard::new();
    let pool = Neighbour::beside("self", THREADS).start(&yard, &Directory::new()).await;
    let three: Vec<_> =
        (0..3).map(|_| send_off(&pool, "side_meet_and_call", json!(["self", 3]))).collect();
    for running in three {
        let answered = end(running).await.expect("there is a fourth place");
        assert_eq!(text(&answered.body), r#""nested""#);
    }
    stop(pool).await;
}

#[tokio::test]
async fn parents_in_every_place_of_one_process_are_not_left_to_wait() {
    let yard = Yard::new();
    let pool = Neighbour::beside("self", THREADS).start(&yard, &Directory::new()).await;
    let four: Vec<_> =
        (0..4).map(|_| send_off(&pool, "side_meet_and_call", json!(["self", 4]))).collect();
    let mut told = Vec::new();
    for running in four {
        told.push(text(&end(running).await.expect("nobody hangs").body));
    }
    told.sort_unstable();
    let nested = r#""nested""#;
    assert_eq!(told, [nested, nested, nested, r#""nested_deadlock""#]);
    stop(pool).await;
}

#[tokio::test]
async fn calls_inside_calls_without_end_stop_at_a_depth() {
    let yard = Yard::new();
    let many = Neighbour::beside("self", Profile::Thread { threads: 32 });
    let pool = many.start(&yard, &Directory::new()).await;
    let relay = |depth: usize| {
        let mut arguments = ["self", "side_relay"].repeat(depth);
        arguments.extend(["self", "quick"]);
        send_off(&pool, "side_relay", json!(arguments))
    };
    end(relay(15)).await.expect("sixteen wait for one another, which is allowed");
    let told = failure(relay(16)).await.to_string();
    assert!(told.contains("16 deep"), "{told}");
    stop(pool).await;
}

#[tokio::test]
async fn a_worker_of_lines_calls_too() {
    let yard = Yard::new();
    let plain = Neighbour {
        program: program("calls-back.py").await,
        ..Neighbour::of("caller", "callers.py")
    };
    let pools = pair(&yard, plain, Neighbour::of("called", "callers.py")).await;
    let answered = end(send_off(&pools.0, "any", json!(["called", "echo", [[1, "é"]]]))).await;
    let back: Value = serde_json::from_slice(&answered.expect("it answers").body.bytes).unwrap();
    assert_eq!(back, json!([1, "é"]));
    let answered = end(send_off(&pools.0, "any", json!(["nowhere", "echo", null]))).await;
    let told: Value = serde_json::from_slice(&answered.expect("it answers").body.bytes).unwrap();
    assert_eq!(told["code"], "pool_not_found", "{told}");
    // It names no deadline, so the one of its request is all there is.
    let timeout = Some(Duration::from_secs(20));
    let arguments = json!(["called", "remaining", null]).to_string();
    let answered = end(pools.0.call(Call { timeout, ..call("any", &arguments) })).await;
    let left: f64 = text(&answered.expect("it is in time").body).parse().expect("seconds");
    assert!(left <= 20.0, "{left} s");
    stop_both(pools).await;
}

#[tokio::test]
async fn bytes_go_through_calls_as_they_are() {
    let yard = Yard::new();
    let caller = Neighbour::of("caller", "callers.py");
    let pools = pair(&yard, caller, Neighbour::of("called", "callers.py")).await;
    let bytes: Vec<u8> = (0..3 << 20).map(|n: u32| (n % 251) as u8).collect();
    let body = Body { bytes: bytes.clone().into(), encoding: Encoding::Raw { content_type: None } };
    let relayed = Call { function: "relay_bytes".to_owned(), body, ..Call::default() };
    let answered = end(pools.0.call(relayed)).await.expect("it answers");
    assert!(answered.body.is_raw());
    assert!(answered.body.bytes.iter().eq(bytes.iter().rev()), "other bytes");
    stop_both(pools).await;
}

#[tokio::test]
async fn hundreds_of_calls_from_many_threads_of_one_handler_find_their_own_results() {
    let yard = Yard::new();
    let called = Neighbour { settings: patient(2), ..Neighbour::of("called", "callers.py") };
    let pools = pair(&yard, Neighbour::of("caller", "callers.py"), called).await;
    let answered = end(send_off(&pools.0, "crowd", json!(["called", 20, 400]))).await;
    assert_eq!(text(&answered.expect("it answers").body), "[]", "results of others");
    stop_both(pools).await;
}

#[tokio::test]
async fn a_caller_that_goes_away_takes_the_nested_call_along() {
    let yard = Yard::new();
    let caller = Neighbour::of("caller", "callers.py");
    let pools = pair(&yard, caller, Neighbour::of("called", "callers.py")).await;
    let nested = json!(["called", "hold_and_leave_a_trace", "nested"]);
    let parent = send_off(&pools.0, "relay", nested);
    until("the nested one runs", || yard.lines("begun").len() == 1).await;
    drop(parent);
    until("it was cancelled", || yard.lines("cancelled") == ["nested"]).await;
    until("both are free", || pools.0.info().view.running + pools.1.info().view.running == 0).await;
    stop_both(pools).await;
}

#[tokio::test]
async fn on_a_lease_too_a_call_that_can_never_be_served_is_refused() {
    let yard = Yard::new();
    let pool = Neighbour::of("self", "callers.py").start(&yard, &Directory::new()).await;
    let lease = pool.lease(LeaseRequest { ttl: 2 * LIMIT, ..LeaseRequest::default() });
    let lease = within("it is granted", lease).await.expect("it is granted");
    let nested = json!(["self", "echo", 1]).to_string();
    let answered = end(lease.call(call("problem_of", &nested))).await.expect("it is told");
    let told: Value = serde_json::from_slice(&answered.body.bytes).expect("JSON");
    assert_eq!(told["code"], "nested_deadlock", "{told}");
    stop(pool).await;
}

#[tokio::test]
async fn a_pool_that_drains_refuses_the_calls_of_those_inside_and_lets_them_finish() {
    let yard = Yard::new();
    let settings = patient(2);
    let neighbour = Neighbour { settings, ..Neighbour::of("self", "callers.py") };
    let pool = neighbour.start(&yard, &Directory::new()).await;
    let inside = send_off(&pool, "call_when_told", json!(["self"]));
    until("it is inside", || yard.lines("begun").len() == 1).await;
    pool.shut_down(false);
    yard.give("go");
    let answered = end(inside).await.expect("it finishes");
    let told: Value = serde_json::from_slice(&answered.body.bytes).expect("JSON");
    assert_eq!(told["code"], "shutting_down", "{told}");
    within("the pool stops", pool.stopped()).await;
}

#[tokio::test]
async fn a_call_to_a_pool_that_is_dropped_meanwhile_comes_back() {
    let yard = Yard::new();
    let caller = Neighbour::of("caller", "callers.py");
    let (caller, called) = pair(&yard, caller, Neighbour::of("called", "callers.py")).await;
    let nested = json!(["called", "hold_and_leave_a_trace", "nested"]);
    let parent = send_off(&caller, "problem_of", nested);
    until("the nested one runs", || yard.lines("begun").len() == 1).await;
    drop(called);
    let answered = end(parent).await.expect("it is told");
    let told: Value = serde_json::from_slice(&answered.body.bytes).expect("JSON");
    assert_eq!(told["code"], "shutting_down", "{told}");
    let again = end(send_off(&caller, "problem_of", json!(["called", "echo"]))).await;
    let told: Value = serde_json::from_slice(&again.expect("it is told").body.bytes).expect("JSON");
    assert_eq!(told["code"], "pool_not_found", "{told}");
    stop(caller).await;
}
