//! Keys across the end of a server, also an abrupt one.

use serde_json::json;

use super::support::*;

#[tokio::test]
async fn an_answer_is_kept_across_a_restart() {
    let inn = Inn::stored_in(tempfile::tempdir().expect("a directory")).await;
    let submit = post("/api/jobs", &json!({ "function": "run", "payload": ["once"] })).key("j");
    let call = post("/api/pools/test/call/run", &json!(["call"])).key("c");
    let (job, called) = (inn.send(submit.clone()).await, inn.send(call.clone()).await);
    inn.end(job.expect(202)["id"].as_str().unwrap()).await;
    let inn = Inn::stored_in(inn.crash().await).await;
    for (ask, before) in [(submit, job), (call, called)] {
        let after = inn.send(ask).await;
        assert_eq!((after.status, &after.body), (before.status, &before.body));
        assert!(after.replayed());
    }
    assert_eq!(inn.lines("run").len(), 2);
    inn.close().await;
}

#[tokio::test]
async fn what_was_stored_without_its_answer_is_answered_from_what_is_there() {
    let inn = Inn::stored_in(tempfile::tempdir().expect("a directory")).await;
    let order = json!({ "function": "hold", "payload": ["a"], "request_id": "j" });
    let submit = post("/api/jobs", &order).header("Prefer", "wait=60");
    let waiting = tokio::spawn({
        let (address, submit) = (inn.address, submit.clone());
        async move { send(address, &submit).await }
    });
    inn.seen("begun", 1).await;
    // Its answer is not there yet, its job is.
    let meanwhile = inn.send(submit.clone()).await;
    assert!(meanwhile.replayed());
    let id = meanwhile.expect(202)["id"].as_str().unwrap().to_owned();
    let pause = post("/api/supervisor/workers/test-1/pause", &json!({ "request_id": "p" }));
    inn.send(pause.clone()).await.expect(200);
    waiting.abort();
    let inn = Inn::stored_in(inn.crash().await).await;
    let after = inn.send(submit).await;
    assert_eq!((after.expect(202)["id"].as_str(), after.replayed()), (Some(id.as_str()), true));
    assert_eq!(inn.get("/api/jobs").await["items"].as_array().unwrap().len(), 1);
    assert_eq!(inn.send(pause).await.expect(200)["status"], "PAUSED", "as it was answered");
    inn.give("go");
    assert_eq!(inn.end(&id).await["status"], "COMPLETED");
    inn.close().await;
}

#[tokio::test]
async fn of_a_call_that_a_crash_cut_off_nobody_knows_what_came_of_it() {
    let inn = Inn::stored_in(tempfile::tempdir().expect("a directory")).await;
    let call = post("/api/pools/test/call/hold", &json!(["a"])).key("c");
    let client = tokio::spawn({
        let (address, call) = (inn.address, call.clone());
        async move { send(address, &call).await }
    });
    inn.seen("begun", 1).await;
    let yard = inn.crash().await;
    client.abort();
    let inn = Inn::stored_in(yard).await;
    for _ in 0..2 {
        assert_eq!(inn.send(call.clone()).await.problem(409), "outcome_unknown");
    }
    assert_eq!(inn.lines("begun"), ["a"], "it is not run again");
    inn.close().await;
}

#[tokio::test]
async fn a_worker_made_by_order_is_there_after_a_restart_and_its_numbers_go_on() {
    let inn = Inn::stored_in(tempfile::tempdir().expect("a directory")).await;
    let made = post("/api/workers", &json!({ "workspace_id": "ws", "request_id": "w" }));
    let worker = inn.send(made.clone()).await.expect(201);
    let id = worker["id"].as_str().unwrap();
    inn.post(&format!("/api/workers/{id}/start"), json!({})).await.expect(200);
    let inn = Inn::stored_in(inn.crash().await).await;
    let after = inn.get(&format!("/api/workers/{id}")).await;
    assert_eq!((&after["status"], &after["workspace_id"]), (&json!("RUNNING"), &json!("ws")));
    assert_eq!(inn.send(made).await.expect(201)["id"], id);
    let before = inn.get("/api/workers/test-1").await;
    assert!(["TERMINATED", "COMPLETED"].contains(&before["status"].as_str().unwrap()), "{before}");
    let ended = inn.post("/api/supervisor/workers/test-1/terminate", json!({})).await;
    match before["status"].as_str() {
        Some("COMPLETED") => assert_eq!(ended.expect(200)["status"], "TERMINATED"),
        _ => assert_eq!(ended.problem(409), "illegal_transition"),
    }
    let listed = inn.get("/api/workers?pool=test").await;
    let numbers = listed["items"].as_array().unwrap().iter().map(|worker| worker["id"].clone());
    assert!(numbers.clone().all(|id| id != before["id"]), "{listed}");
    inn.close().await;
}
