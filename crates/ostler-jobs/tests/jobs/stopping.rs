//! The end of the engine: what runs, what was to run, and what is left behind.

use std::time::Duration;

use ostler_core::JobStatus;

use super::support::*;

#[tokio::test]
async fn what_runs_has_its_grace_and_nothing_else_begins() {
    let inn = Inn::of_size(1).await;
    let first = inn.submit(job("hold", r#"["a"]"#)).await;
    inn.seen("begun", 1).await;
    let second = inn.submit(job("run", r#"["b"]"#)).await;
    let stopping = tokio::spawn({
        let jobs = inn.jobs.clone();
        async move { jobs.stop(LIMIT).await }
    });
    inn.give("go");
    within("it stops", stopping).await.expect("it stops");
    assert_eq!(result(&inn.job(&first).await), "a");
    let second = inn.job(&second).await;
    assert_eq!((second.status, second.attempt), (JobStatus::Pending, 0));
    assert!(inn.lines("run").is_empty());
    inn.all_free().await;
    inn.close().await;
}

#[tokio::test]
async fn what_has_not_ended_in_time_is_lost() {
    let inn = Inn::of_size(2).await;
    let mut once = job("hold", r#"["once"]"#);
    once.retrying.max_attempts = 1;
    let ids = inn.submit_all(vec![once, job("hold", r#"["again"]"#)]).await;
    inn.seen("begun", 2).await;
    within("it stops", inn.jobs.stop(Duration::ZERO)).await;
    let once = inn.job(&ids[0]).await;
    assert_eq!(failed(&once).0, "lost");
    let again = inn.job(&ids[1]).await;
    assert_eq!((again.status, again.attempt), (JobStatus::Running, 1), "it is tried again");
    let attempts = inn.attempts(&ids[1]).await;
    assert_eq!(attempts[0].outcome.as_deref(), Some("lost"));
    inn.all_free().await;
    inn.close().await;
}

#[tokio::test]
async fn what_was_fetched_and_not_begun_does_not_count() {
    let inn = Inn::of_size(1).await;
    // Short ones first, so that some are fetched ahead.
    let warm = inn.submit_all((0..50).map(|_| job("echo", "[1]")).collect()).await;
    for id in &warm {
        inn.end(id).await;
    }
    let mut jobs = vec![job("hold", r#"["a"]"#)];
    jobs.extend((0..50).map(|_| job("run", r#"["b"]"#)));
    let ids = inn.submit_all(jobs).await;
    inn.seen("begun", 1).await;
    let stopping = tokio::spawn({
        let jobs = inn.jobs.clone();
        async move { jobs.stop(LIMIT).await }
    });
    inn.give("go");
    within("it stops", stopping).await.expect("it stops");
    for id in &ids[1..] {
        let job = inn.job(id).await;
        let runs = inn.attempts(id).await.len();
        assert!(job.status == JobStatus::Completed || runs == 0, "{job:?}");
    }
    inn.close().await;
}

#[tokio::test]
async fn a_second_stop_waits_for_the_same_end() {
    let inn = Inn::of_size(1).await;
    inn.run(job("echo", "[1]")).await;
    within("it stops", async { tokio::join!(inn.jobs.stop(LIMIT), inn.jobs.stop(LIMIT)) }).await;
    within("it has stopped", inn.jobs.stop(LIMIT)).await;
    inn.close().await;
}

#[tokio::test]
async fn when_the_last_handle_goes_places_are_given_back() {
    let inn = Inn::of_size(1).await;
    inn.submit(job("hold", r#"["a"]"#)).await;
    inn.seen("begun", 1).await;
    let Inn { jobs, pool, yard: _yard, .. } = inn;
    drop(jobs);
    until("nobody holds a place", async || {
        let view = pool.info().view;
        view.leases == 0 && view.running == 0
    })
    .await;
    pool.shut_down(false);
    within("the pool stops", pool.stopped()).await;
}
