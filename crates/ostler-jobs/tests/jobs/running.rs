//! One job on one worker: its attempts, its result, and what it says.

use ostler_core::JobStatus;
use ostler_runtime::Followed;
use ostler_runtime::core::Settings;
use serde_json::{Value, json};

use super::support::*;

#[tokio::test]
async fn a_job_runs_and_its_result_is_kept() {
    let inn = Inn::of_size(1).await;
    let job = inn.run(job("echo", r#"[{"a":1}]"#)).await;
    assert_eq!(result(&job), json!({ "a": 1 }));
    let attempts = inn.attempts(&job.id).await;
    assert_eq!(attempts.len(), 1);
    assert_eq!(attempts[0].workers, ["test-1"]);
    assert_eq!(attempts[0].outcome.as_deref(), Some("completed"));
    inn.close().await;
}

#[tokio::test]
async fn the_handler_is_told_which_job_it_is_part_of() {
    let inn = Inn::of_size(1).await;
    let job = inn.run(job("who", "")).await;
    let told = result(&job);
    assert_eq!(told["id"], job.id.as_str());
    assert_eq!((&told["attempt"], &told["depth"]), (&json!(1), &json!(0)));
    assert_eq!((&told["shard"], &told["shard_count"]), (&json!(0), &json!(1)));
    inn.close().await;
}

#[tokio::test]
async fn what_says_that_another_try_may_help_is_tried_again() {
    let inn = Inn::of_size(1).await;
    let job = inn.run(job("retry_until", "[3]")).await;
    assert_eq!(result(&job), 3);
    assert_eq!(inn.lines("attempts"), ["1", "2", "3"]);
    let outcomes: Vec<_> =
        inn.attempts(&job.id).await.into_iter().filter_map(|attempt| attempt.outcome).collect();
    assert_eq!(outcomes, ["retryable", "retryable", "completed"]);
    inn.close().await;
}

#[tokio::test]
async fn another_exception_fails_the_job_at_once_unless_it_is_to_be_retried() {
    let inn = Inn::of_size(1).await;
    let once = inn.run(job("fail", "")).await;
    let (reason, error) = failed(&once);
    assert_eq!((reason, &error["code"]), ("application_error", &json!("application_error")));
    assert!(error["message"].as_str().is_some_and(|message| message.contains("as asked")));
    assert_eq!(inn.lines("attempts"), ["1"]);

    let mut stubborn = job("fail", "[3]");
    stubborn.retrying.on_error = true;
    assert_eq!(result(&inn.run(stubborn).await), "at last");
    inn.close().await;
}

#[tokio::test]
async fn a_worker_that_dies_uses_an_attempt() {
    let inn = Inn::of_size(1).await;
    assert_eq!(result(&inn.run(job("die", "[2]")).await), "survived");
    assert_eq!(inn.lines("attempts"), ["1", "2"]);

    let mut once = job("die", "");
    once.retrying.max_attempts = 1;
    let once = inn.run(once).await;
    let (reason, error) = failed(&once);
    assert_eq!((reason, &error["code"]), ("worker_crashed", &json!("worker_crashed")));
    assert_eq!(inn.lines("attempts").len(), 3, "and it never ran twice");
    inn.close().await;
}

#[tokio::test]
async fn what_was_the_end_of_two_processes_is_not_given_a_third() {
    let quarantine = LIMIT;
    let inn = Inn::with(Settings { quarantine, ..brisk(1) }, |_| {}).await;
    let mut deadly = job("die", "");
    deadly.retrying.max_attempts = 4;
    let ended = inn.run(deadly).await;
    assert_eq!(failed(&ended).1["code"], "quarantined");
    assert_eq!(ended.attempt, 4);
    assert_eq!(inn.lines("attempts").len(), 2);
    inn.close().await;
}

#[tokio::test]
async fn what_becomes_of_jobs_is_told_with_the_events_of_the_server() {
    let inn = Inn::of_size(1).await;
    let mut follower = inn.events.follow_all(None);
    inn.run(job("retry_until", "[2]")).await;
    inn.run(job("fail", "")).await;
    let mut told = Vec::new();
    while let Some(Followed::Event(event)) = follower.try_next() {
        if event.kind.name().starts_with("job.") {
            told.push((event.kind.name(), event.reason));
        }
    }
    let expected = [
        ("job.submitted", None),
        ("job.started", None),
        ("job.retried", Some("retryable")),
        ("job.completed", None),
        ("job.submitted", None),
        ("job.started", None),
        ("job.failed", Some("application_error")),
    ];
    assert_eq!(told, expected);
    inn.close().await;
}

#[tokio::test]
async fn what_no_worker_can_run_is_not_tried_again() {
    let inn = Inn::of_size(1).await;
    inn.pool.ready().await;
    for (function, arguments) in [("nowhere", ""), ("needs", r#"{"nmber":1}"#)] {
        let ended = inn.run(job(function, arguments)).await;
        assert_eq!(failed(&ended).0, "invalid_arguments", "{function}");
        assert_eq!(inn.attempts(&ended.id).await.len(), 1, "{function}");
    }
    inn.close().await;
}

#[tokio::test]
async fn what_a_generator_yields_is_told_in_order_and_is_its_result() {
    let inn = Inn::of_size(1).await;
    let job = inn.run(job("count", "[200]")).await;
    let numbers: Vec<Value> = (0..200).map(Value::from).collect();
    assert_eq!(result(&job), Value::from(numbers.clone()));
    let messages = inn.story(&job.id, "message").await;
    let told: Vec<Value> = messages.iter().map(|event| event.data.clone()).collect();
    assert_eq!(told, numbers);
    let end = inn.story(&job.id, "status").await.pop().expect("its end");
    assert!(messages.iter().all(|message| message.seq < end.seq), "nothing is told after the end");
    inn.close().await;
}

#[tokio::test]
async fn a_generator_that_yields_nothing_has_an_empty_list() {
    let inn = Inn::of_size(1).await;
    assert_eq!(result(&inn.run(job("count", "[0]")).await), json!([]));
    inn.close().await;
}

#[tokio::test]
async fn progress_and_lines_are_kept_with_the_job() {
    let inn = Inn::of_size(1).await;
    let job = inn.run(job("says", "")).await;
    assert_eq!(result(&job), "said");
    assert_eq!(job.progress, Some(json!({ "done": 2 })));
    let told = inn.story(&job.id, "progress").await.pop().expect("it is told");
    assert!(told.data.to_string().contains(r#"{"done":2}"#), "{told:?}");
    let lines = inn.story(&job.id, "log").await;
    assert_eq!(lines.len(), 1);
    assert!(lines[0].data.to_string().contains("a line"), "{lines:?}");
    inn.close().await;
}

#[tokio::test]
async fn many_short_jobs_all_end_once() {
    let inn = Inn::of_size(2).await;
    let jobs = (0..300).map(|n| job("run", &format!("[\"{n}\"]"))).collect();
    let ids = inn.submit_all(jobs).await;
    for (n, id) in ids.iter().enumerate() {
        let ended = inn.end(id).await;
        assert_eq!(result(&ended), n.to_string());
        assert_eq!(ended.attempt, 1);
    }
    let mut run = inn.lines("run");
    run.sort();
    run.dedup();
    assert_eq!((inn.lines("run").len(), run.len()), (300, 300));
    inn.all_free().await;
    inn.close().await;
}

#[tokio::test]
async fn a_job_is_told_to_whoever_follows_it() {
    let inn = Inn::of_size(1).await;
    let id = inn.submit(job("hold", r#"["a"]"#)).await;
    let mut changes = inn.jobs.changes(&id);
    inn.seen("begun", 1).await;
    changes.mark_unchanged();
    inn.give("go");
    within("it is told", changes.wait_for(|_| true)).await.expect("it is told on");
    assert_eq!(inn.end(&id).await.status, JobStatus::Completed);
    inn.close().await;
}
