//! Jobs that workers hand in, and their parents.

use ostler_core::JobStatus;
use ostler_store::ledger::JobId;
use ostler_store::ledger::job::{Children, Job, JobFilter};
use serde_json::{Value, json};

use super::support::*;

async fn children(inn: &Inn, parent: &JobId) -> Vec<Job> {
    let filter = JobFilter { parent: Some(parent.clone()), ..JobFilter::default() };
    inn.ledger().jobs(&filter, 100).await.expect("they are there")
}

fn id_of(told: &Value) -> JobId {
    told.as_str().and_then(|id| id.parse().ok()).unwrap_or_else(|| panic!("no id: {told}"))
}

#[tokio::test]
async fn five_levels_below_finish_on_a_pool_of_two() {
    let inn = Inn::of_size(2).await;
    let ended = inn.run(job("descend", "[5]")).await;
    assert_eq!(result(&ended), 5);
    let expected: Vec<String> = (0..=5).map(|depth| format!("{} {depth}", 5 - depth)).collect();
    assert_eq!(inn.lines("run"), expected);
    inn.close().await;
}

#[tokio::test]
async fn a_child_below_the_last_level_is_refused() {
    let inn = Inn::of_size(1).await;
    let ended = inn.run(job("descend", "[6]")).await;
    assert_eq!(failed(&ended).0, "child_failed");
    assert_eq!(inn.lines("run").len(), 6);
    inn.close().await;
}

#[tokio::test]
async fn a_parent_that_is_tried_again_finds_its_children() {
    let inn = Inn::of_size(2).await;
    let ended = inn.run(job("scatter", "[3,3]")).await;
    assert_eq!(result(&ended), json!([true, true, true, true]));
    assert_eq!(ended.attempt, 3);
    let mut run = inn.lines("run");
    run.sort();
    assert_eq!(run, ["child 0", "child 0", "child 1", "child 2"]);
    assert_eq!(children(&inn, &ended.id).await.len(), 4);
    inn.close().await;
}

#[tokio::test]
async fn a_parent_ends_after_its_children_and_holds_no_worker_meanwhile() {
    let inn = Inn::of_size(1).await;
    let parent = inn.submit(job("hold", r#"["parent"]"#)).await;
    inn.seen("begun", 1).await;
    let mut child = job("run", r#"["child"]"#);
    child.parent = Some(parent.clone());
    let child = inn.submit(child).await;
    inn.give("go");
    let parent = inn.end(&parent).await;
    let child = inn.job(&child).await;
    assert_eq!(parent.status, JobStatus::Completed);
    assert!(child.completed_at.expect("it ended") <= parent.completed_at.expect("it ended"));
    inn.close().await;
}

#[tokio::test]
async fn a_child_that_fails_fails_its_parent_unless_that_does_not_care() {
    let inn = Inn::of_size(2).await;
    for (care, expected) in
        [(Children::Wait, JobStatus::Failed), (Children::Ignore, JobStatus::Completed)]
    {
        let mut parent = job("hold", r#"["parent"]"#);
        parent.children = care;
        let before = inn.lines("begun").len();
        let parent = inn.submit(parent).await;
        inn.seen("begun", before + 1).await;
        let mut child = job("fail", "");
        child.parent = Some(parent.clone());
        // Its parent may be the quicker one once the sign is there.
        let child = inn.ledger().submit(vec![child], Default::default()).await;
        inn.give("go");
        assert_eq!(inn.end(&parent).await.status, expected, "{care:?}");
        if let Ok(child) = child {
            assert_eq!(inn.end(&child[0].job.id).await.status, JobStatus::Failed);
        }
        std::fs::remove_file(inn.yard.path().join("go")).expect("the sign");
    }
    inn.close().await;
}

#[tokio::test]
async fn a_worker_can_ask_about_a_job_and_cancel_it() {
    let inn = Inn::of_size(1).await;
    let known = inn.run(job("echo", r#"["known"]"#)).await;
    let told = result(&inn.run(job("asks_about", &json!([known.id.as_str()]).to_string())).await);
    assert_eq!((&told["status"], &told["result"]), (&json!("COMPLETED"), &json!("known")));
    let told = result(&inn.run(job("asks_about", r#"["j_nobody"]"#)).await);
    assert_eq!(told, "job_not_found");
    let root = json!([{ "parent_job_id": null }]).to_string();
    let handed_in = result(&inn.run(job("hands_in", &root)).await);
    assert_eq!(inn.end(&id_of(&handed_in)).await.status, JobStatus::Canceled);
    inn.close().await;
}

#[tokio::test]
async fn what_a_worker_hands_in_wrongly_is_refused_with_a_code() {
    let inn = Inn::of_size(1).await;
    for (options, code) in [
        (json!([{ "pool": "nowhere" }]), "pool_not_found"),
        (json!([{ "worker_count": 2 }]), "too_many_workers"),
        (json!([{ "timeout": 0 }]), "validation"),
        (json!([{ "max_attempts": 0 }]), "validation"),
    ] {
        let ended = inn.run(job("hands_in", &options.to_string())).await;
        assert_eq!(result(&ended), code, "{options}");
    }
    inn.close().await;
}

#[tokio::test]
async fn a_plain_call_may_hand_in_a_job_too() {
    let inn = Inn::of_size(1).await;
    let handed_in = inn.call("hands_in", "[{}]").await;
    let handed_in = inn.end(&id_of(&handed_in)).await;
    assert_eq!((handed_in.status, handed_in.spec.parent), (JobStatus::Canceled, None));
    inn.close().await;
}

#[tokio::test]
async fn children_whose_payloads_are_hard_to_read_are_told_apart_and_run() {
    let inn = Inn::of_size(2).await;
    let ended = inn.run(job("hands_in_what_is_hard_to_read", "")).await;
    assert_eq!(result(&ended), json!([4, 4]));
    for child in children(&inn, &ended.id).await {
        assert_eq!(child.status, JobStatus::Completed, "{:?}", child.error);
    }
    inn.close().await;
}
