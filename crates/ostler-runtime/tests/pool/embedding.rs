//! A pool inside another program: described step by step, called with the program's own types,
//! chosen for by its own rule, and gone with its last handle, however that goes.

use std::sync::Arc;
use std::time::Duration;

use ostler_runtime::core::{Candidate, Rank, Ranking, Refusal, Strategy};
use ostler_runtime::{
    Body, CallError, Directory, EventLog, Failure, Item, Pool, PoolBuilder, Profile, Refused,
};
use serde::Deserialize;

use super::support::*;

fn builder(file: &str) -> PoolBuilder {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workers").join(file);
    Pool::python("lib", file)
}

/// No arguments.
const NONE: [u32; 0] = [];

#[derive(Debug, PartialEq, Deserialize, serde::Serialize)]
struct Point {
    x: i32,
    y: Option<String>,
}

#[tokio::test]
async fn a_function_is_invoked_with_the_programs_own_types() {
    let pool = builder("functions.py").size(1).start().await.expect("it starts");
    let point = Point { x: 7, y: Some("é".to_owned()) };
    let back: Point = within("it answers", pool.invoke("echo", &(&point,))).await.expect("a point");
    assert_eq!(back, point);
    let named = serde_json::json!({ "n": 3 });
    let letters: String = pool.invoke("letters", &named).await.expect("a text");
    assert_eq!(letters, "xxx");
    let nothing: Option<u32> = pool.invoke("echo", &NONE).await.expect("nothing");
    assert_eq!(nothing, None);
    let counted: Vec<u32> = pool.invoke("count", &3).await.expect("a list");
    assert_eq!(counted, [0, 1, 2]);
    stop(pool).await;
}

#[tokio::test]
async fn an_invocation_that_fails_says_how() {
    let pool = builder("functions.py").size(1).start().await.expect("it starts");
    let wrong = pool.invoke::<Point>("echo", &("no point",)).await.unwrap_err();
    let CallError::Failed(Failure::Application(error)) = wrong else { panic!("{wrong:?}") };
    assert_eq!(error.kind.as_deref(), Some("unexpected_result"));
    let raised = pool.invoke::<()>("fail", &NONE).await.unwrap_err();
    assert_eq!(
        (raised.known().code, raised.to_string().contains("as asked")),
        ("application_error", true)
    );
    let unfit = pool.invoke::<String>("letters", &("many",)).await.unwrap_err();
    assert_eq!(unfit.known().code, "invalid_arguments");
    let unknown = pool.invoke::<()>("nothing", &NONE).await.unwrap_err();
    let CallError::Refused(Refused::FunctionNotFound { known, .. }) = &unknown else {
        panic!("{unknown:?}")
    };
    assert!(known.iter().any(|name| name == "echo"), "{known:?}");
    stop(pool).await;
}

#[tokio::test]
async fn a_stream_brings_its_items_one_by_one() {
    let pool = builder("functions.py").size(1).start().await.expect("it starts");
    let mut running = pool.stream("count", &3).expect("arguments");
    let (chunks, end) = drain(&mut running).await;
    assert_eq!(chunks, ["0", "1", "2"]);
    end.expect("it completes");
    stop(pool).await;
}

#[tokio::test]
async fn a_pool_is_described_step_by_step() {
    let yard = Yard::new();
    let (directory, log) = (Directory::new(), Arc::new(EventLog::new(10)));
    let pool = builder("sides.py")
        .size(2)
        .interpreter("python3")
        .profile(Profile::Thread { threads: 3 })
        .env("YARD", yard.path("").display().to_string())
        .queue_max(0)
        .request_timeout(LIMIT)
        .directory(&directory)
        .events(&log)
        .host_function("name", |call| async move { Ok(Body::json(format!("{:?}", call.worker))) })
        .settings(|settings| settings.stop_grace = Duration::from_millis(100))
        .spec(|spec| spec.max_body = 100)
        .start()
        .await
        .expect("it starts");
    within("all are ready", pool.all_ready()).await;
    let info = pool.info();
    assert_eq!((info.workers.len(), info.view.capacity), (2, 6));
    assert_eq!((pool.name(), pool.max_body()), ("lib", 100));
    assert!(Arc::ptr_eq(&pool.event_log(), &log));
    let held: Vec<_> =
        (0..6).map(|_| pool.stream("side_hold", &("x",)).expect("arguments")).collect();
    until("every place is held", || yard.lines("begun").len() == 6).await;
    let seventh = pool.call(call("quick", ""));
    assert!(matches!(refusal(seventh).await, Refusal::Saturated { queued: 0, busy: 6, .. }));
    yard.give("go");
    for running in held {
        end(running).await.expect("it ends");
    }
    stop(pool).await;
}

#[tokio::test]
async fn a_pool_of_a_command_serves_too() {
    let script =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workers/answers-twice.sh");
    let pool = Pool::command("lib", ["/bin/sh".into(), script.into_os_string()]).size(1);
    let pool = pool.start().await.expect("it starts");
    let back: u32 = within("it answers", pool.invoke("echo", &5)).await.expect("a number");
    assert_eq!(back, 5);
    stop(pool).await;
}

#[tokio::test]
async fn a_pool_that_cannot_start_says_why_at_once() {
    let no_file = builder("no-such-file.py").start().await.unwrap_err().to_string();
    assert!(no_file.contains("lib") && no_file.contains("no-such-file.py"), "{no_file}");
    let no_python = builder("functions.py").interpreter("no-such-python").start().await;
    let no_python = no_python.unwrap_err().to_string();
    assert!(no_python.contains("no-such-python"), "{no_python}");
}

/// The last one first.
struct Youngest;

impl Ranking for Youngest {
    fn rank(&self, worker: &Candidate) -> Rank {
        Rank(u64::MAX - worker.id.0, 0)
    }
}

async fn turns(strategy: Strategy) -> Vec<String> {
    let settings = ostler_runtime::core::Settings { strategy, ..brisk(3) };
    let pool = start(spec(program("answers-twice.sh").await, settings)).await;
    within("all are ready", pool.all_ready()).await;
    let mut turns = Vec::new();
    for _ in 0..6 {
        let answered = end(pool.call(call("echo", "1"))).await.expect("it is served");
        turns.push(answered.worker.expect("somebody").replace("test-", ""));
    }
    stop(pool).await;
    turns
}

#[tokio::test]
async fn a_rule_of_ones_own_chooses_the_worker() {
    assert_eq!(turns(Strategy::Own(Arc::new(Youngest))).await, ["3"; 6]);
}

#[tokio::test]
async fn round_robin_and_lru_give_everybody_a_turn_and_the_least_loaded_is_kept_warm() {
    let mut robin = turns(Strategy::RoundRobin).await;
    assert_eq!(robin[..3], robin[3..], "in the same order again");
    robin.sort_unstable();
    assert_eq!(robin, ["1", "1", "2", "2", "3", "3"]);
    let mut idle_longest = turns(Strategy::Lru).await;
    idle_longest.sort_unstable();
    assert_eq!(idle_longest, ["1", "1", "2", "2", "3", "3"]);
    let warm = turns(Strategy::LeastLoaded).await;
    assert!(warm.iter().all(|worker| *worker == warm[0]), "{warm:?}");
}

/// A pool with a call inside, and its processes.
async fn with_a_call(yard: &Yard) -> (Pool, ostler_runtime::Running, Vec<Process>) {
    let pool = start(yard.around(spec(functions("functions.py"), brisk(1)))).await;
    let running = pool.call(call("hold", r#"["inside"]"#));
    until("it runs", || yard.lines("begun").len() == 1).await;
    let line = Process::lineage(pid(&pool, 0).await);
    (pool, running, line)
}

async fn all_gone(line: &[Process]) {
    for process in line {
        gone(process).await;
    }
}

#[tokio::test]
async fn a_call_outlives_the_handle_that_made_it_and_the_pool_goes_with_the_call() {
    let yard = Yard::new();
    let (pool, running, line) = with_a_call(&yard).await;
    drop(pool);
    yard.give("go");
    assert_eq!(text(&end(running).await.expect("it was inside").body), r#""inside""#);
    all_gone(&line).await;
}

#[tokio::test]
async fn a_pool_dropped_inside_a_task_with_a_call_in_flight_leaves_no_process() {
    let yard = Yard::new();
    let (pool, mut running, line) = with_a_call(&yard).await;
    let task = tokio::spawn(async move {
        tokio::select! {
            item = running.next() => panic!("{item:?}"),
            () = std::future::ready(()) => drop(pool),
        }
        drop(running);
    });
    within("the task ends", task).await.expect("it does not panic");
    all_gone(&line).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_with_a_call_in_flight_leaves_no_process() {
    let yard = Yard::new();
    let (pool, mut running, line) = with_a_call(&yard).await;
    let task = tokio::spawn(async move {
        let _pool = pool;
        let Item::End(end) = running.next().await else { panic!("nothing streams") };
        end.expect("as part of the test: it fails");
    });
    send(line[0].pid, libc::SIGKILL);
    within("the task ends", task).await.expect_err("it panicked");
    all_gone(&line).await;
}

#[tokio::test]
async fn a_pool_dropped_with_a_call_to_itself_in_flight_leaves_no_process() {
    let yard = Yard::new();
    let pool = start(yard.around(spec(functions("callers.py"), brisk(2)))).await;
    let running = pool.call(call("relay", r#"["test", "hold", "nested"]"#));
    until("the nested one runs", || yard.lines("begun").len() == 1).await;
    let mut line = Process::lineage(pid(&pool, 0).await);
    line.extend(Process::lineage(pid(&pool, 1).await));
    drop(pool);
    drop(running);
    all_gone(&line).await;
}

#[tokio::test]
async fn a_wait_for_the_end_of_a_dropped_pool_ends() {
    let yard = Yard::new();
    let (pool, running, line) = with_a_call(&yard).await;
    let mut stopped = pool.readiness();
    drop((pool, running));
    all_gone(&line).await;
    // Nobody is left who could say so: the channel is closed, which ends the wait.
    within("the wait ends", async { while stopped.changed().await.is_ok() {} }).await;
}

/// The driver may be about to start the next process on one thread while the last handle goes on
/// another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_dropped_while_a_crash_is_dealt_with_leaves_no_process() {
    for round in 0..40 {
        let pool = one(program("exits-0.sh").await).await;
        within("it is ready", pool.ready()).await;
        let line = Process::lineage(pid(&pool, 0).await);
        let mut running = pool.call(call("vice", ""));
        let task = tokio::spawn(async move {
            running.next().await;
            for _ in 0..round * 20 {
                std::hint::black_box(std::fs::metadata("/proc/self/stat").is_ok());
            }
            drop((pool, running));
        });
        within("the task ends", task).await.expect("it does not panic");
        all_gone(&line).await;
    }
}

/// Runs this where there is no runtime.
async fn elsewhere<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::spawn(work);
    until("the thread ends", || thread.is_finished()).await;
    thread.join().expect("it does not panic")
}

#[tokio::test]
async fn a_pool_is_used_from_threads_without_a_runtime() {
    let pool = one(functions("functions.py")).await;
    within("it is ready", pool.ready()).await;
    let caller = pool.clone();
    let running = elsewhere(move || caller.call(call("echo", "[1]"))).await;
    assert_eq!(text(&end(running).await.expect("it answers").body), "1");
    let waiting = pool.call(call("wait", "[600]"));
    until("it runs", || waiting.worker().is_some()).await;
    elsewhere(move || drop(waiting)).await;
    assert_eq!(ask(&pool, "echo", "[2]").await, "2");
    stop(pool).await;
}

#[tokio::test]
async fn a_pool_is_shut_down_from_a_thread_without_a_runtime() {
    for now in [false, true] {
        let pool = one(functions("functions.py")).await;
        within("it is ready", pool.ready()).await;
        let line = Process::lineage(pid(&pool, 0).await);
        let handle = pool.clone();
        elsewhere(move || handle.shut_down(now)).await;
        within("the pool stops", pool.stopped()).await;
        all_gone(&line).await;
    }
}
