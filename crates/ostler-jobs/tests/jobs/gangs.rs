//! Jobs of several workers: all at once or none.

use std::collections::BTreeSet;
use std::time::Duration;

use ostler_core::JobStatus;
use ostler_runtime::LeaseRequest;
use ostler_runtime::core::{Action, Settings};
use ostler_store::ledger::job::NewJob;
use ostler_store::ledger::key::Asked;
use serde_json::json;

use super::support::*;

fn gang(workers: u32, function: &str, arguments: &str) -> NewJob {
    NewJob { worker_count: workers, ..job(function, arguments) }
}

#[tokio::test]
async fn each_shard_has_a_worker_of_its_own_and_the_result_is_a_list() {
    let inn = Inn::of_size(3).await;
    let ended = inn.run(gang(3, "who", "")).await;
    let shards = result(&ended);
    let shards = shards.as_array().expect("a list");
    for (n, shard) in shards.iter().enumerate() {
        assert_eq!((&shard["shard"], &shard["shard_count"]), (&json!(n), &json!(3)));
    }
    let pids: BTreeSet<String> = shards.iter().map(|shard| shard["pid"].to_string()).collect();
    assert_eq!(pids.len(), 3);
    let workers: BTreeSet<String> =
        inn.attempts(&ended.id).await.remove(0).workers.into_iter().collect();
    assert_eq!(workers.len(), 3);
    inn.close().await;
}

#[tokio::test]
async fn the_first_shard_to_fail_stops_the_others() {
    let inn = Inn::of_size(2).await;
    let ended = inn.run(gang(2, "only_one_fails", "")).await;
    let (reason, error) = failed(&ended);
    assert_eq!(reason, "application_error");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("the second shard")));
    inn.all_free().await;
    inn.close().await;
}

#[tokio::test]
async fn a_gang_that_is_cancelled_lets_go_of_all_its_workers() {
    let inn = Inn::of_size(2).await;
    let id = inn.submit(gang(2, "hold", r#"["a"]"#)).await;
    inn.seen("begun", 2).await;
    inn.cancel(&id).await;
    assert_eq!(inn.end(&id).await.status, JobStatus::Canceled);
    inn.all_free().await;
    inn.close().await;
}

#[tokio::test]
async fn a_gang_is_pending_until_it_has_all_its_workers() {
    let inn = Inn::of_size(2).await;
    let held = within("a place", inn.pool.lease(LeaseRequest::default())).await.expect("a place");
    let id = inn.submit(gang(2, "who", "")).await;
    until("it waits for them", async || inn.pool.info().view.leases == 2).await;
    assert_eq!(inn.job(&id).await.status, JobStatus::Pending);
    drop(held);
    assert_eq!(result(&inn.end(&id).await).as_array().map(Vec::len), Some(2));
    inn.close().await;
}

#[tokio::test]
async fn a_gang_that_is_cancelled_while_it_waits_waits_no_more() {
    let inn = Inn::of_size(2).await;
    let held = within("a place", inn.pool.lease(LeaseRequest::default())).await.expect("a place");
    let id = inn.submit(gang(2, "who", "")).await;
    until("it waits for them", async || inn.pool.info().view.leases == 2).await;
    assert_eq!(inn.cancel(&id).await.status, JobStatus::Canceled);
    until("nobody waits", async || inn.pool.info().view.leases == 1).await;
    drop(held);
    inn.close().await;
}

#[tokio::test]
async fn gangs_and_small_jobs_share_a_pool_and_all_end() {
    let inn = Inn::of_size(2).await;
    let mut jobs = vec![gang(2, "who", ""), gang(2, "who", "")];
    jobs.extend((0..40).map(|n| job("run", &format!("[\"{n}\"]"))));
    jobs.push(gang(2, "who", ""));
    for id in inn.submit_all(jobs).await {
        result(&inn.end(&id).await);
    }
    inn.all_free().await;
    inn.close().await;
}

#[tokio::test]
async fn a_gang_does_not_starve_under_a_stream_of_small_jobs() {
    let settings = Settings { gang_patience: Duration::from_millis(50), ..brisk(2) };
    let inn = Inn::with(settings, |_| {}).await;
    let id = inn.submit(gang(2, "who", "")).await;
    let ended = inn.under_load(inn.end(&id)).await;
    assert_eq!(result(&ended).as_array().map(Vec::len), Some(2));
    inn.close().await;
}

#[tokio::test]
async fn a_shard_whose_worker_dies_fails_the_attempt_of_all() {
    let inn = Inn::of_size(2).await;
    let ended = inn.run(gang(2, "die", "[2]")).await;
    assert_eq!(result(&ended), json!(["survived", "survived"]));
    assert_eq!(inn.attempts(&ended.id).await.len(), 2);
    inn.close().await;
}

#[tokio::test]
async fn a_gang_whose_pool_became_too_small_waits_until_it_has_grown() {
    let inn = Inn::of_size(2).await;
    inn.ledger().pause_queue("later", Asked::by("test")).await.expect("it is paused");
    let id = inn.submit(NewJob { queue: "later".to_owned(), ..gang(2, "who", "") }).await;
    inn.pool.order(Action::Scale { min: 1, max: 1 }).await;
    inn.ledger().resume_queue("later", Asked::by("test")).await.expect("it is resumed");
    // Whoever looks for gangs has had time to look.
    for n in 0..20 {
        inn.run(job("echo", &format!("[{n}]"))).await;
    }
    assert_eq!(inn.job(&id).await.status, JobStatus::Pending);
    inn.pool.order(Action::Scale { min: 2, max: 2 }).await;
    assert_eq!(result(&inn.end(&id).await).as_array().map(Vec::len), Some(2));
    inn.close().await;
}
