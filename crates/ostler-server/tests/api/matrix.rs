//! Every status of a worker and every order to it, by HTTP, with real workers.

use std::time::Duration;

use ostler_runtime::core::{Settings, Status};
use serde_json::{Value, json};

use super::support::*;

/// An order by its path, the one status it begins in (none: any) and where it leads.
const ORDERS: [(&str, Option<Status>, Status); 5] = [
    ("/api/workers/{id}/start", Some(Status::Idle), Status::Running),
    ("/api/supervisor/workers/{id}/pause", Some(Status::Running), Status::Paused),
    ("/api/supervisor/workers/{id}/resume", Some(Status::Paused), Status::Running),
    ("/api/supervisor/workers/{id}/complete", Some(Status::Running), Status::Completed),
    ("/api/supervisor/workers/{id}/terminate", None, Status::Terminated),
];

async fn order(inn: &Inn, id: &str, to: &str) -> Value {
    let path = ORDERS.iter().find(|(path, ..)| path.ends_with(to)).unwrap().0;
    inn.post(&path.replace("{id}", id), json!({})).await.expect(200)
}

/// A new worker in that status.
async fn worker_in(inn: &Inn, status: Status) -> String {
    if status == Status::Failed {
        return failed_worker(inn).await;
    }
    let made = inn.post("/api/workers", json!({ "pool": "test" })).await.expect(201);
    let id = made["id"].as_str().unwrap();
    let way: &[&str] = match status {
        Status::Idle | Status::Failed => &[],
        Status::Running => &["start"],
        Status::Paused => &["start", "pause"],
        Status::Completed => &["start", "complete"],
        Status::Terminated => &["terminate"],
    };
    for step in way {
        order(inn, id, step).await;
    }
    id.to_owned()
}

/// One that its pool has given up.
async fn failed_worker(inn: &Inn) -> String {
    let mut failed = None;
    until("a worker has failed", async || {
        for number in 1..=20 {
            let answer = inn.send(get(&format!("/api/workers/doomed-{number}"))).await;
            if answer.status == 200 && answer.json()["status"] == "FAILED" {
                failed = answer.json()["id"].as_str().map(str::to_owned);
            }
        }
        failed.is_some()
    })
    .await;
    failed.expect("seen above")
}

#[tokio::test]
async fn every_order_in_every_status_works_or_is_refused_with_what_is_allowed() {
    let many = Settings { dedicated_max: 100, ..brisk(1) };
    let inn = Inn::with(many, |_| {}).await;
    // Its breaker opens, and makes a new worker that fails, now and then.
    let doomed =
        Settings { restart_max: 0, restart_cooldown: Duration::from_millis(20), ..brisk(1) };
    inn.add_pool("doomed", "doomed.py", doomed).await;
    for from in Status::ALL {
        for (path, begins, to) in ORDERS {
            let legal = match begins {
                Some(begins) => begins == from,
                None => from != Status::Terminated,
            };
            let id = worker_in(&inn, from).await;
            let place = format!("/api/workers/{id}");
            let before = inn.get(&place).await;
            assert_eq!(before["status"], from.name(), "{before}");
            let answer = inn.post(&path.replace("{id}", &id), json!({})).await;
            let what = format!("{} {path}", from.name());
            if legal {
                assert_eq!(answer.expect(200)["status"], to.name(), "{what}");
                continue;
            }
            assert_eq!(answer.problem(409), "illegal_transition", "{what}");
            let problem = answer.json();
            assert_eq!(
                (&problem["from"], &problem["to"]),
                (&from.name().into(), &to.name().into())
            );
            let mut allowed: Vec<&str> = from.allowed().into_iter().map(Status::name).collect();
            allowed.sort_unstable();
            assert_eq!(problem["allowed"], json!(allowed), "{what}");
            assert_eq!(inn.get(&place).await["status"], from.name(), "{what} changes nothing");
            if !from.terminal() {
                order(&inn, &id, "terminate").await;
            }
        }
    }
    inn.close().await;
}
