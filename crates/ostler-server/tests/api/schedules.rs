//! Schedules over HTTP: made, changed, held, ended; and what they submit.

use serde_json::json;

use super::support::*;

#[tokio::test]
async fn a_schedule_is_made_changed_held_and_ended() {
    let inn = Inn::of_size(1).await;
    let order = json!({
        "name": "nightly", "cron": "30 2 * * *", "timezone": "Europe/Zurich",
        "job": { "pool": "test", "function": "run", "payload": ["night"] },
    });
    let made = inn.post("/api/schedules", order.clone()).await;
    let schedule = made.expect(201);
    let path = format!("/api/schedules/{}", schedule["id"].as_str().unwrap());
    assert_eq!(made.header("location"), Some(path.as_str()));
    assert_eq!((&schedule["overlap"], &schedule["paused"]), (&json!("skip"), &json!(false)));
    assert!(schedule["next_at"].is_string());
    assert_eq!(inn.get("/api/schedules/nightly").await["job"]["payload"], json!(["night"]));
    assert_eq!(inn.post("/api/schedules", order).await.problem(409), "schedule_exists");
    let patch = json!({ "cron": "@every 1h", "overlap": "allow" });
    let changed = inn.send(ask("PATCH", &path).body(&patch)).await.expect(200);
    assert_eq!((&changed["cron"], &changed["overlap"]), (&json!("@every 1h"), &json!("allow")));
    assert_eq!(changed["job"]["function"], "run");
    let paused = inn.post(&format!("{path}/pause"), json!({})).await.expect(200);
    assert_eq!((&paused["paused"], &paused["next_at"]), (&json!(true), &json!(null)));
    let resumed = inn.post(&format!("{path}/resume"), json!({})).await.expect(200);
    assert_eq!(resumed["paused"], json!(false));
    assert_eq!(inn.get("/api/schedules").await["items"].as_array().unwrap().len(), 1);
    inn.send(ask("DELETE", &path)).await.expect(204);
    assert_eq!(inn.send(get(&path)).await.problem(404), "schedule_not_found");
    inn.close().await;
}

#[tokio::test]
async fn a_schedule_that_makes_no_sense_is_refused() {
    let inn = Inn::of_size(1).await;
    let job = json!({ "pool": "test", "function": "run" });
    let with = |field: &str, value: serde_json::Value| {
        let mut order = json!({ "name": "n", "cron": "@hourly", "job": job });
        order[field] = value;
        order
    };
    for order in [
        with("cron", json!("61 * * * *")),
        with("timezone", json!("Middle/Earth")),
        with("timezone", json!("")),
        with("overlap", json!("sometimes")),
        with("colour", json!("red")),
        with("job", json!({ "pool": "test", "function": "run", "run_at": "2030-01-01T00:00:00Z" })),
    ] {
        assert_eq!(
            inn.post("/api/schedules", order.clone()).await.problem(422),
            "validation",
            "{order}"
        );
    }
    let nowhere = with("job", json!({ "pool": "nowhere", "function": "run" }));
    assert_eq!(inn.post("/api/schedules", nowhere).await.problem(422), "unknown_pool");
    assert_eq!(inn.get("/api/schedules").await["items"], json!([]));
    inn.close().await;
}

#[tokio::test]
async fn a_schedule_submits_jobs_that_name_it() {
    let inn = Inn::of_size(1).await;
    let job = json!({ "pool": "test", "function": "run", "payload": ["tick"] });
    let order = json!({ "name": "often", "cron": "@every 1s", "job": job });
    let schedule = inn.post("/api/schedules", order).await.expect(201);
    inn.seen("run", 1).await;
    let jobs =
        inn.get(&format!("/api/jobs?schedule_id={}", schedule["id"].as_str().unwrap())).await;
    assert_eq!(jobs["items"][0]["schedule_id"], schedule["id"]);
    inn.close().await;
}
