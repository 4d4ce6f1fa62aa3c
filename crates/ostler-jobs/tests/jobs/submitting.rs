//! What is checked and filled in before the ledger takes a job.

use std::time::Duration;

use ostler_core::JobStatus;
use ostler_jobs::JobError;
use ostler_runtime::Pool;
use ostler_store::ledger::LedgerError;
use ostler_store::ledger::job::NewJob;
use ostler_store::ledger::key::Asked;

use super::support::*;

async fn refusal(inn: &Inn, job: NewJob) -> JobError {
    inn.jobs.submit(vec![job], Asked::default()).await.expect_err("it is refused")
}

#[tokio::test]
async fn an_unknown_pool_is_refused_with_those_that_there_are() {
    let inn = Inn::of_size(1).await;
    let mut lost = job("echo", "");
    lost.pool = "tset".to_owned();
    let error = refusal(&inn, lost).await;
    let known = vec!["test".to_owned()];
    assert_eq!(error, JobError::UnknownPool { pool: "tset".to_owned(), known });
    assert_eq!(error.to_string(), "there is no pool `tset`; known: test");
    inn.close().await;
}

#[tokio::test]
async fn more_workers_than_the_pool_may_have_are_refused() {
    let inn = Inn::of_size(2).await;
    let large = NewJob { worker_count: 3, ..job("echo", "") };
    assert_eq!(refusal(&inn, large).await, JobError::TooManyWorkers { asked: 3, max: 2 });
    inn.close().await;
}

#[tokio::test]
async fn several_workers_and_a_session_do_not_go_together() {
    let inn = Inn::of_size(2).await;
    let session = Some("guest".to_owned());
    let both = NewJob { worker_count: 2, session, ..job("echo", "") };
    let error = refusal(&inn, both).await;
    assert!(
        matches!(&error, JobError::Ledger(LedgerError::Invalid { field: "session", .. })),
        "{error:?}"
    );
    inn.close().await;
}

#[tokio::test]
async fn of_a_batch_all_are_taken_or_none() {
    let inn = Inn::of_size(1).await;
    let wrong = NewJob { pool: "nowhere".to_owned(), ..job("echo", "") };
    let batch = vec![job("echo", ""), wrong];
    inn.jobs.submit(batch, Asked::default()).await.expect_err("one does not fit");
    let counts = inn.ledger().counts().await.expect("counts");
    assert_eq!(counts.by_status.values().sum::<u64>(), 0);
    inn.close().await;
}

#[tokio::test]
async fn a_job_without_a_pool_goes_to_the_only_one() {
    let inn = Inn::of_size(1).await;
    let anywhere = NewJob { pool: String::new(), ..job("echo", "[1]") };
    let ended = inn.run(anywhere.clone()).await;
    assert_eq!((&*ended.spec.pool, result(&ended)), ("test", 1.into()));

    let other = pool_spec("other", brisk(1), inn.yard.path(), &inn.directory);
    let other = Pool::start(other).await.expect("it starts");
    let error = refusal(&inn, anywhere).await;
    assert!(matches!(&error, JobError::UnknownPool { pool, .. } if pool.is_empty()), "{error}");
    other.shut_down(false);
    within("it stops", other.stopped()).await;
    inn.close().await;
}

#[tokio::test]
async fn a_job_without_a_timeout_has_the_usual_one() {
    let inn = Inn::of_size(1).await;
    let ended = inn.run(job("echo", "[1]")).await;
    assert_eq!(ended.spec.timeout, Some(Duration::from_secs(3600)));
    inn.close().await;
}

#[tokio::test]
async fn who_waits_too_short_gets_the_job_as_it_is() {
    let inn = Inn::of_size(1).await;
    let id = inn.submit(job("hold", r#"["a"]"#)).await;
    inn.seen("begun", 1).await;
    let job = inn.jobs.wait(&id, Duration::ZERO).await.expect("it is there");
    assert_eq!(job.status, JobStatus::Running);
    inn.give("go");
    inn.end(&id).await;
    inn.close().await;
}
