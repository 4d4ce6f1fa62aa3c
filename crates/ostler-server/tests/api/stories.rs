//! The stories that a user tells first: a worker made, started and paused by the API, and paused
//! twice by mistake. On both databases.

use serde_json::json;

use super::support::*;

macro_rules! on_both_databases {
    ($($story:ident),*) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $story() {
                super::$story(super::Inn::in_sqlite().await).await;
            })*
        }

        mod postgres {
            $(#[tokio::test]
            async fn $story() {
                super::$story(super::Inn::in_postgres().await).await;
            })*
        }
    };
}

on_both_databases!(
    a_worker_is_made_started_and_paused_by_the_api,
    a_pause_that_comes_twice_under_one_request_id_is_answered_as_the_first_time
);

async fn a_worker_is_made_started_and_paused_by_the_api(inn: Inn) {
    let made = inn.post("/api/workers", json!({ "workspace_id": "ws_1" })).await;
    let worker = made.expect(201);
    let id = worker["id"].as_str().unwrap();
    assert_eq!(made.header("location"), Some(&*format!("/api/workers/{id}")));
    assert_eq!((&worker["status"], &worker["workspace_id"]), (&json!("IDLE"), &json!("ws_1")));
    assert_eq!((&worker["dedicated"], &worker["pool"]), (&json!(true), &json!("test")));
    let started = inn.post(&format!("/api/workers/{id}/start"), json!({})).await.expect(200);
    assert_eq!(started["status"], "RUNNING");
    let pause = format!("/api/supervisor/workers/{id}/pause");
    let paused = inn.post(&pause, json!({ "reason": "maintenance" })).await.expect(200);
    assert_eq!(paused["status"], "PAUSED");
    assert_eq!(inn.get(&format!("/api/workers/{id}")).await["status"], "PAUSED");
    let trail = inn.get(&format!("/api/workers/{id}/transitions")).await;
    let steps: Vec<_> = trail["items"].as_array().unwrap().iter().collect();
    let statuses = steps.iter().filter(|step| step["machine"] == "status");
    let told: Vec<_> = statuses.map(|step| (&step["seq"], &step["to"], &step["reason"])).collect();
    let none = json!(null);
    let wanted = [
        (&json!(1), &json!("IDLE"), &none),
        (&json!(2), &json!("RUNNING"), &none),
        (&json!(3), &json!("PAUSED"), &json!("maintenance")),
    ];
    assert_eq!(told, wanted);
    inn.close().await;
}

async fn a_pause_that_comes_twice_under_one_request_id_is_answered_as_the_first_time(inn: Inn) {
    let pause = "/api/supervisor/workers/test-1/pause";
    let order = json!({ "request_id": "req_abc123", "reason": "lunch" });
    let first = inn.post(pause, order.clone()).await;
    assert_eq!(first.expect(200)["status"], "PAUSED");
    assert!(!first.replayed());
    let second = inn.post(pause, order).await;
    assert_eq!((second.expect(200), second.replayed()), (first.json(), true));
    let other = json!({ "request_id": "req_abc123", "reason": "dinner" });
    assert_eq!(inn.post(pause, other).await.problem(422), "key_reused");
    let anew = inn.post(pause, json!({ "request_id": "another" })).await;
    assert_eq!(anew.problem(409), "illegal_transition");
    let trail = inn.get("/api/workers/test-1/transitions").await;
    let pauses: Vec<_> =
        trail["items"].as_array().unwrap().iter().filter(|step| step["to"] == "PAUSED").collect();
    assert_eq!(pauses.len(), 1, "{pauses:?}");
    assert_eq!(
        (&pauses[0]["request_id"], &pauses[0]["actor"]),
        (&json!("req_abc123"), &json!("api"))
    );
    inn.close().await;
}
