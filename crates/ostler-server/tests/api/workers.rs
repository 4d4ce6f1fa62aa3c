//! Workers under orders: who they serve, what is remembered of them, how many there may be.

use ostler_runtime::core::Settings;
use serde_json::json;

use super::support::*;

#[tokio::test]
async fn a_worker_made_by_order_serves_only_calls_addressed_to_it() {
    let inn = Inn::of_size(1).await;
    let worker = inn.post("/api/workers", json!({})).await.expect(201);
    let (id, name) = (worker["id"].as_str().unwrap(), worker["name"].as_str().unwrap());
    let call = format!("/api/workers/{id}/call/echo");
    assert_eq!(inn.post(&call, json!(["early"])).await.problem(409), "worker_not_serving");
    inn.post(&format!("/api/workers/{name}/start"), json!({})).await.expect(200);
    let answer = inn.post(&call, json!(["mine"])).await;
    assert_eq!(answer.expect(200), "mine");
    assert_eq!(answer.header("ostler-worker"), Some(name));
    for _ in 0..5 {
        let other = inn.post("/api/pools/test/call/echo", json!(["anyone"])).await;
        assert_eq!(
            (other.expect(200), other.header("ostler-worker")),
            (json!("anyone"), Some("test-1"))
        );
    }
    let nobody = inn.post("/api/workers/test-99/call/echo", json!([])).await;
    assert_eq!(nobody.problem(404), "worker_not_found");
    let query = inn.post(&format!("{call}?place=0"), json!([])).await;
    assert_eq!(query.problem(422), "validation");
    inn.close().await;
}

#[tokio::test]
async fn a_worker_of_the_pool_can_be_called_paused_and_frozen_too() {
    let inn = Inn::of_size(2).await;
    let answer = inn.post("/api/workers/test-2/call/echo", json!([2])).await;
    assert_eq!((answer.expect(200), answer.header("ostler-worker")), (json!(2), Some("test-2")));
    let frozen = json!({ "freeze": true, "reason": "look at it" });
    let paused = inn.post("/api/supervisor/workers/test-2/pause", frozen).await.expect(200);
    assert_eq!(paused["status"], "PAUSED");
    let refused = inn.post("/api/workers/test-2/call/echo", json!([2])).await;
    assert_eq!(refused.problem(409), "worker_not_serving");
    assert_eq!(refused.json()["worker_status"], "PAUSED");
    let resumed = inn.post("/api/supervisor/workers/test-2/resume", json!({})).await.expect(200);
    assert_eq!(resumed["status"], "RUNNING");
    assert_eq!(inn.post("/api/workers/test-2/call/echo", json!([3])).await.expect(200), 3);
    inn.close().await;
}

#[tokio::test]
async fn an_ended_worker_is_remembered_with_its_whole_trail() {
    let inn = Inn::of_size(1).await;
    let worker = inn.post("/api/workers", json!({ "workspace_id": "ws" })).await.expect(201);
    let id = worker["id"].as_str().unwrap();
    let end = json!({ "reason": "not needed", "request_id": "r-1" });
    let ended = inn.post(&format!("/api/supervisor/workers/{id}/terminate"), end).await;
    assert_eq!(ended.expect(200)["status"], "TERMINATED");
    let late = inn.post(&format!("/api/workers/{id}/call/echo"), json!([])).await;
    assert_eq!(late.problem(409), "worker_not_serving");
    let listed = inn.get("/api/workers?limit=1000").await;
    assert!(listed["items"].as_array().unwrap().iter().all(|known| known["id"] != id));
    let shown = inn.get(&format!("/api/workers/{id}")).await;
    assert_eq!((&shown["status"], &shown["workspace_id"]), (&json!("TERMINATED"), &json!("ws")));
    let page = inn.get(&format!("/api/workers/{id}/transitions?limit=1")).await;
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
    assert_eq!((&page["items"][0]["to"], &page["next_cursor"]), (&json!("IDLE"), &json!("1")));
    let last = inn.get(&format!("/api/workers/{id}/transitions?cursor=1")).await;
    let step = &last["items"][0];
    assert_eq!((&step["from"], &step["to"]), (&json!("IDLE"), &json!("TERMINATED")));
    assert_eq!((&step["trigger"], &step["reason"]), (&json!("terminate"), &json!("not needed")));
    assert_eq!((&step["actor"], &step["request_id"]), (&json!("api"), &json!("r-1")));
    assert_eq!(last["next_cursor"], json!(null));
    inn.close().await;
}

#[tokio::test]
async fn dedicated_workers_have_a_bound_and_a_pool() {
    let few = Settings { dedicated_max: 1, ..brisk(1) };
    let inn = Inn::with(few, |_| {}).await;
    let unknown = inn.post("/api/workers", json!({ "pool": "nowhere" })).await;
    assert_eq!(unknown.problem(404), "pool_not_found");
    assert_eq!(inn.post("/api/workers", json!({ "puul": "x" })).await.problem(422), "validation");
    inn.post("/api/workers", json!({})).await.expect(201);
    // What is refused leaves the key unused.
    let again = json!({ "request_id": "one more" });
    assert_eq!(inn.post("/api/workers", again.clone()).await.problem(429), "dedicated_full");
    assert_eq!(inn.post("/api/workers", again).await.problem(429), "dedicated_full");
    inn.close().await;
}

#[tokio::test]
async fn a_worker_that_is_recycled_goes_when_its_successor_is_ready() {
    let inn = Inn::of_size(1).await;
    let order = json!({ "reason": "tired" });
    inn.post("/api/supervisor/workers/test-1/recycle", order).await.expect(202);
    until("the old one has gone", async || {
        inn.get("/api/workers/test-1").await["status"] == "COMPLETED"
    })
    .await;
    let answer = inn.post("/api/pools/test/call/echo", json!([1])).await;
    assert_eq!(answer.header("ostler-worker"), Some("test-2"));
    inn.close().await;
}
