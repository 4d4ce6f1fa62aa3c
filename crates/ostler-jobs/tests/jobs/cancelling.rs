//! The end of a job that somebody asked for, or that its time did.

use std::time::Duration;

use ostler_core::JobStatus;

use super::support::*;

#[tokio::test]
async fn a_running_job_lets_go_of_its_worker() {
    let inn = Inn::of_size(1).await;
    let id = inn.submit(job("hold", r#"["a"]"#)).await;
    inn.seen("begun", 1).await;
    inn.cancel(&id).await;
    let ended = inn.end(&id).await;
    assert_eq!((ended.status, ended.reason.as_deref()), (JobStatus::Canceled, Some("cancelled")));
    inn.all_free().await;
    assert_eq!(result(&inn.run(job("echo", "[1]")).await), 1);
    assert!(inn.lines("ended").is_empty(), "it was not let to its end");
    inn.close().await;
}

#[tokio::test]
async fn a_waiting_job_is_never_run() {
    let inn = Inn::of_size(1).await;
    let first = inn.submit(job("hold", r#"["a"]"#)).await;
    inn.seen("begun", 1).await;
    let second = inn.submit(job("run", r#"["b"]"#)).await;
    assert_eq!(inn.cancel(&second).await.status, JobStatus::Canceled);
    inn.give("go");
    inn.end(&first).await;
    inn.run(job("run", r#"["c"]"#)).await;
    assert_eq!(inn.lines("run"), ["c"]);
    inn.close().await;
}

#[tokio::test]
async fn cancelled_against_completed_there_is_one_end() {
    let inn = Inn::of_size(2).await;
    for round in 0..100 {
        let id = inn.submit(job("echo", "[1]")).await;
        if round % 2 == 0 {
            let mut changes = inn.jobs.changes(&id);
            while inn.job(&id).await.status == JobStatus::Pending {
                within("it begins", changes.changed()).await.expect("it is told on");
            }
        }
        // Either of them may come too late.
        let cancelled = inn.ledger().cancel(&id, Default::default()).await.is_ok();
        let ended = inn.end(&id).await;
        let expected = if cancelled { JobStatus::Canceled } else { JobStatus::Completed };
        assert_eq!(ended.status, expected);
        let ends = inn.story(&id, "status").await;
        let ends = ends.iter().filter(|event| {
            event.data["to"].as_str().and_then(JobStatus::named).is_some_and(JobStatus::terminal)
        });
        assert_eq!(ends.count(), 1);
    }
    inn.all_free().await;
    inn.close().await;
}

#[tokio::test]
async fn a_job_that_takes_too_long_is_cancelled() {
    let inn = Inn::of_size(1).await;
    let mut slow = job("hold", r#"["a"]"#);
    slow.timeout = Some(Duration::from_millis(300));
    let ended = inn.run(slow).await;
    assert_eq!((ended.status, ended.reason.as_deref()), (JobStatus::Canceled, Some("timeout")));
    inn.all_free().await;
    inn.close().await;
}

#[tokio::test]
async fn children_that_run_let_go_with_their_parent() {
    let inn = Inn::of_size(2).await;
    let parent = inn.submit(job("hold", r#"["parent"]"#)).await;
    inn.seen("begun", 1).await;
    let mut child = job("hold", r#"["child"]"#);
    child.parent = Some(parent.clone());
    let child = inn.submit(child).await;
    inn.seen("begun", 2).await;
    inn.cancel(&parent).await;
    assert_eq!(inn.end(&parent).await.reason.as_deref(), Some("cancelled"));
    let child = inn.end(&child).await;
    assert_eq!(child.status, JobStatus::Canceled);
    assert_eq!(child.reason.as_deref(), Some("parent_cancelled"));
    inn.all_free().await;
    inn.close().await;
}
