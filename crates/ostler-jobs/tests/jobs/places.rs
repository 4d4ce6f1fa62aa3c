//! Jobs and the places of their pool: who waits for whom.

use std::time::Duration;

use ostler_core::JobStatus;
use ostler_runtime::core::{Action, Keyed, Settings};
use ostler_runtime::{KeyedBy, Pool, Profile};
use serde_json::json;

use super::support::*;

#[tokio::test]
async fn what_has_no_place_is_pending() {
    let inn = Inn::of_size(1).await;
    let first = inn.submit(job("hold", r#"["a"]"#)).await;
    inn.seen("begun", 1).await;
    let others = inn.submit_all((0..5).map(|_| job("echo", "[1]")).collect()).await;
    for id in &others {
        assert_eq!(inn.job(id).await.status, JobStatus::Pending);
    }
    assert_eq!(inn.job(&first).await.status, JobStatus::Running);
    inn.give("go");
    for id in &others {
        result(&inn.end(id).await);
    }
    inn.close().await;
}

#[tokio::test]
async fn calls_are_answered_while_jobs_wait_in_line() {
    let inn = Inn::of_size(1).await;
    let answer = inn.under_load(inn.call("echo", r#"["me first"]"#)).await;
    assert_eq!(answer, "me first");
    inn.close().await;
}

#[tokio::test]
async fn a_paused_pool_leaves_its_jobs_pending() {
    let inn = Inn::of_size(1).await;
    inn.pool.order(Action::PausePool).await;
    let id = inn.submit(job("echo", "[1]")).await;
    until("somebody waits for a place", async || inn.pool.info().view.leases == 1).await;
    assert_eq!(inn.job(&id).await.status, JobStatus::Pending);
    inn.pool.order(Action::ResumePool).await;
    assert_eq!(result(&inn.end(&id).await), 1);
    inn.close().await;
}

#[tokio::test]
async fn a_pool_that_lets_nobody_in_gets_its_jobs_when_it_opens() {
    let inn = Inn::of_size(1).await;
    inn.pool.order(Action::DrainPool).await;
    let id = inn.submit(job("echo", "[1]")).await;
    assert_eq!(inn.job(&id).await.status, JobStatus::Pending);
    inn.pool.order(Action::ResumePool).await;
    assert_eq!(result(&inn.end(&id).await), 1);
    inn.close().await;
}

#[tokio::test]
async fn a_pool_without_workers_makes_one_for_one_job() {
    let settings = Settings { min: 0, max: 3, ..brisk(3) };
    let inn = Inn::with(settings, |_| {}).await;
    assert!(inn.pool.info().workers.is_empty(), "nobody wants anything");
    let mut pids = Vec::new();
    for _ in 0..3 {
        pids.push(result(&inn.run(job("who", "")).await)["pid"].clone());
    }
    assert!(pids.iter().all(|pid| *pid == pids[0]), "{pids:?}");
    inn.close().await;
}

#[tokio::test]
async fn a_pool_that_comes_later_runs_what_waits_for_it() {
    let inn = Inn::of_size(1).await;
    let mut waiting = job("echo", r#"["late"]"#);
    waiting.pool = "later".to_owned();
    // Not by way of those who know the pools: this one is still to come.
    let submitted = inn.ledger().submit(vec![waiting], Default::default()).await.expect("taken");
    let id = submitted[0].job.id.clone();
    let later = pool_spec("later", brisk(1), inn.yard.path(), &inn.directory);
    let later = Pool::start(later).await.expect("it starts");
    assert_eq!(result(&inn.end(&id).await), "late");
    later.shut_down(false);
    within("it stops", later.stopped()).await;
    inn.close().await;
}

#[tokio::test]
async fn a_job_of_a_session_runs_where_its_session_is() {
    let inn = Inn::of_size(3).await;
    let mut pids = Vec::new();
    for _ in 0..4 {
        let mut bound = job("who", "");
        bound.session = Some("guest".to_owned());
        pids.push(result(&inn.run(bound).await)["pid"].clone());
    }
    assert!(pids.iter().all(|pid| *pid == pids[0]), "{pids:?}");
    inn.close().await;
}

#[tokio::test]
async fn a_job_of_a_session_has_a_place_in_a_pool_of_one() {
    let inn = Inn::of_size(1).await;
    let mut bound = job("echo", "[1]");
    bound.session = Some("guest".to_owned());
    assert_eq!(result(&inn.run(bound).await), 1);
    inn.all_free().await;
    inn.close().await;
}

#[tokio::test]
async fn in_a_pool_with_keys_each_workspace_has_its_worker() {
    let keyed = Keyed { evict: Default::default(), evict_min_age: Duration::ZERO };
    let settings = Settings { keyed: Some(keyed), min: 0, max: 2, ..brisk(2) };
    let inn = Inn::with(settings, |spec| spec.key = Some(KeyedBy::Workspace)).await;
    let pid_of = async |workspace: &str| {
        let mut own = job("who", "");
        own.workspace = workspace.to_owned();
        result(&inn.run(own).await)["pid"].clone()
    };
    let (a, b) = (pid_of("a").await, pid_of("b").await);
    assert_ne!(a, b);
    assert_eq!(pid_of("a").await, a);
    inn.close().await;
}

#[tokio::test]
async fn a_worker_that_is_killed_while_it_holds_a_job_costs_one_attempt() {
    let inn = Inn::of_size(1).await;
    let id = inn.submit(job("hold", r#"["a"]"#)).await;
    inn.seen("begun", 1).await;
    let worker = inn.pool.info().workers[0].view.id;
    inn.pool.order(Action::Terminate(worker)).await;
    inn.seen("begun", 2).await;
    inn.give("go");
    let ended = inn.end(&id).await;
    assert_eq!(result(&ended), "a");
    let outcomes: Vec<_> =
        inn.attempts(&id).await.into_iter().filter_map(|attempt| attempt.outcome).collect();
    assert_eq!(json!(outcomes), json!(["crashed", "completed"]));
    inn.close().await;
}

#[tokio::test]
async fn as_many_jobs_run_at_once_as_the_pool_has_places() {
    const PLACES: usize = 300;
    let profile = Profile::Async { concurrency: PLACES as u32 };
    let inn = Inn::with(brisk(1), |spec| spec.processes.profile = profile).await;
    let jobs = (0..PLACES).map(|n| job("hold_together", &format!("[\"{n}\"]")));
    let ids = inn.submit_all(jobs.collect()).await;
    inn.seen("begun", PLACES).await;
    inn.give("go");
    for id in &ids {
        result(&inn.end(id).await);
    }
    inn.close().await;
}
