//! Workers that stand still, and shims that are killed in their place.

use std::time::Duration;

use ostler_runtime::core::{Heartbeat, Phase, Settings};
use ostler_runtime::{Call, CallError, Condition, EventKind, Failure, Pool};

use super::support::*;

/// Two seconds of silence are the first miss: a busy machine is silent for less.
const SILENCE: Duration = Duration::from_secs(2);

async fn watched(yard: &Yard, settings: Settings) -> Pool {
    let pool = start(yard.around(spec(functions("functions.py"), settings))).await;
    within("the worker is ready", pool.ready()).await;
    pool
}

fn watching(heartbeat: Heartbeat) -> Settings {
    Settings { heartbeat: Some(heartbeat), ..brisk(1) }
}

#[tokio::test]
async fn an_idle_worker_that_stands_still_is_degraded_then_replaced_and_the_reason_is_told() {
    let pool = watched(&Yard::new(), watching(quick_heartbeat(SILENCE))).await;
    let stopped = Process::find(pid(&pool, 0).await);
    send(stopped.pid, libc::SIGSTOP);
    let degraded = event(&pool, EventKind::WorkerDegraded).await;
    assert_eq!(degraded.reason, Some("heartbeat_missed"));
    until("it is replaced", || generation(&pool) == 2).await;
    gone(&stopped).await;
    assert_eq!(ask(&pool, "echo", "[1]").await, "1");
    let crashed = event(&pool, EventKind::WorkerCrashed).await;
    assert_eq!(crashed.detail["process_state"], "stopped", "{crashed:?}");
    let terminated = event(&pool, EventKind::WorkerTerminated).await;
    assert_eq!(terminated.reason, Some("heartbeat_lost"));
    assert_eq!(terminated.detail["planned"], false);
    stop(pool).await;
}

#[tokio::test]
async fn a_worker_that_is_silent_for_a_moment_only_is_well_again() {
    let patient = Heartbeat { misses: u32::MAX, ..quick_heartbeat(SILENCE) };
    let pool = watched(&Yard::new(), watching(patient)).await;
    let pid = pid(&pool, 0).await;
    send(pid, libc::SIGSTOP);
    until("it is degraded", || pool.info().workers[0].view.phase == Some(Phase::Degraded)).await;
    until("why is seen", || pool.info().workers[0].condition == Some(Condition::Stopped)).await;
    send(pid, libc::SIGCONT);
    until("it is ready", || pool.info().workers[0].view.phase == Some(Phase::Ready)).await;
    assert_eq!(event(&pool, EventKind::WorkerRecovered).await.reason, Some("heard"));
    assert_eq!(pool.info().workers[0].condition, None, "it is not stopped any more");
    assert_eq!(ask(&pool, "echo", "[1]").await, "1");
    assert_eq!(generation(&pool), 1, "the same process");
    stop(pool).await;
}

#[tokio::test]
async fn a_busy_worker_that_stands_still_is_marked_and_left_to_its_deadline() {
    let yard = Yard::new();
    let pool = watched(&yard, watching(quick_heartbeat(SILENCE))).await;
    let running = pool.call(call("hold", r#"["held"]"#));
    until("it runs", || yard.lines("begun").len() == 1).await;
    let pid = pid(&pool, 0).await;
    send(pid, libc::SIGSTOP);
    until("it is marked", || pool.info().workers[0].view.unresponsive).await;
    until("why is seen", || pool.info().workers[0].condition == Some(Condition::Stopped)).await;
    yard.give("go");
    send(pid, libc::SIGCONT);
    assert_eq!(text(&end(running).await.expect("it goes on").body), r#""held""#);
    until("the mark is gone", || !pool.info().workers[0].view.unresponsive).await;
    assert_eq!(pool.info().workers[0].condition, None, "it is not stopped any more");
    assert_eq!(generation(&pool), 1, "the same process");
    stop(pool).await;
}

#[tokio::test]
async fn a_deadline_that_passes_on_a_stopped_worker_says_that_it_was_stopped() {
    let yard = Yard::new();
    let pool = watched(&yard, watching(quick_heartbeat(Duration::from_millis(500)))).await;
    let timeout = Some(Duration::from_secs(4));
    let running = pool.call(Call { timeout, ..call("hold", r#"["held"]"#) });
    until("it runs", || yard.lines("begun").len() == 1).await;
    let stopped = Process::find(pid(&pool, 0).await);
    send(stopped.pid, libc::SIGSTOP);
    let failure = failure(running).await;
    let stopped_too = Some(Condition::Stopped);
    assert!(
        matches!(failure, Failure::TimedOut { condition, .. } if condition == stopped_too),
        "{failure:?}"
    );
    assert!(failure.to_string().contains("SIGSTOP"), "{failure}");
    assert_eq!(ask(&pool, "echo", "[1]").await, "1");
    gone(&stopped).await;
    stop(pool).await;
}

#[tokio::test]
async fn independent_heartbeats_only_report() {
    let heartbeat = Heartbeat { independent: true, ..quick_heartbeat(SILENCE) };
    let pool = watched(&Yard::new(), watching(heartbeat)).await;
    let pid = pid(&pool, 0).await;
    send(pid, libc::SIGSTOP);
    until("many are missed", || pool.tally().heartbeats_missed() > 10).await;
    let worker = pool.info().workers.remove(0);
    assert_eq!((worker.view.phase, worker.view.generation), (Some(Phase::Ready), 1));
    send(pid, libc::SIGCONT);
    assert_eq!(ask(&pool, "echo", "[1]").await, "1");
    assert_eq!(generation(&pool), 1, "the same process");
    stop(pool).await;
}

#[tokio::test]
async fn a_worker_that_is_silent_under_load_for_too_long_is_replaced_if_so_set() {
    let settings = watching(quick_heartbeat(SILENCE));
    let settings = Settings { hang_timeout: Some(SILENCE), ..settings };
    let pool = watched(&Yard::new(), settings).await;
    let running = pool.call(call("wait", "[600]"));
    let stopped = Process::find(pid(&pool, 0).await);
    send(stopped.pid, libc::SIGSTOP);
    let failure = failure(running).await;
    let told = failure.to_string();
    assert!(told.contains("hung") && told.contains("SIGSTOP"), "{told}");
    assert_eq!(CallError::from(failure).known().code, "worker_unresponsive");
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
