//! Jobs over HTTP: submitted, followed, cancelled, listed.

use serde_json::{Value, json};

use super::support::*;

fn job(function: &str, payload: Value) -> Value {
    json!({ "pool": "test", "function": function, "payload": payload })
}

#[tokio::test]
async fn a_job_is_submitted_runs_and_shows_all_of_its_way() {
    let inn = Inn::of_size(1).await;
    let mut order = job("echo", json!([{ "deep": [1] }]));
    order["task_description"] = "say it again".into();
    order["tags"] = json!({ "team": "a" });
    let submitted = inn.post("/api/jobs", order).await;
    let id = submitted.expect(202)["id"].as_str().unwrap().to_owned();
    assert_eq!(submitted.header("location"), Some(&*format!("/api/jobs/{id}")));
    let ended = inn.end(&id).await;
    assert_eq!(
        (&ended["status"], &ended["result"]),
        (&json!("COMPLETED"), &json!({ "deep": [1] }))
    );
    assert_eq!((&ended["payload"], &ended["attempts"]), (&json!([{ "deep": [1] }]), &json!(1)));
    assert_eq!(ended["tags"], json!({ "team": "a" }));
    let history = ended["state_history"].as_array().unwrap();
    let steps: Vec<_> =
        history.iter().map(|step| (step["seq"].as_u64(), step["to"].as_str())).collect();
    let wanted = ["SUBMITTED", "PENDING", "RUNNING", "COMPLETED"];
    assert_eq!(steps, (1..).map(Some).zip(wanted.map(Some)).collect::<Vec<_>>());
    assert_eq!(history[0]["actor"], "api");
    assert_eq!(inn.get(&format!("/api/jobs/{id}/result")).await, json!({ "deep": [1] }));
    let attempts = inn.get(&format!("/api/jobs/{id}/attempts")).await;
    assert_eq!(attempts["items"][0]["outcome"], "completed");
    assert_eq!(attempts["items"][0]["workers"], json!(["test-1"]));
    let page = inn.get(&format!("/api/jobs/{id}/transitions?limit=3")).await;
    assert_eq!(page["next_cursor"], "3");
    let rest = inn.get(&format!("/api/jobs/{id}/transitions?cursor=3")).await;
    assert_eq!(rest["items"][0]["to"], "COMPLETED");
    inn.close().await;
}

#[tokio::test]
async fn a_client_that_waits_gets_the_end() {
    let inn = Inn::of_size(1).await;
    let ask = post("/api/jobs", &job("echo", json!([7]))).header("Prefer", "wait=60");
    let answer = inn.send(ask).await;
    let ended = answer.expect(200);
    assert_eq!((&ended["status"], &ended["result"]), (&json!("COMPLETED"), &json!(7)));
    assert_eq!(answer.header("preference-applied"), Some("wait=60"));
    let held = post("/api/jobs", &job("hold", json!(["a"]))).header("Prefer", "wait=0");
    let answer = inn.send(held).await;
    assert_eq!(answer.expect(202)["known"], json!(false));
    inn.give("go");
    inn.end(answer.json()["id"].as_str().unwrap()).await;
    inn.close().await;
}

#[tokio::test]
async fn what_does_not_fit_is_refused_and_nothing_is_stored() {
    let inn = Inn::of_size(1).await;
    let refused = |order: Value| inn.post("/api/jobs", order);
    let nowhere = json!({ "pool": "nowhere", "function": "f" });
    assert_eq!(refused(nowhere).await.problem(422), "unknown_pool");
    for count in [2, 11] {
        let many = json!({ "function": "echo", "worker_count": count });
        assert_eq!(refused(many).await.problem(422), "too_many_workers");
    }
    for order in [
        json!({}),
        json!({ "function": "" }),
        json!({ "function": "echo", "worker_count": 0 }),
        json!({ "function": "echo", "priority": 101 }),
        json!({ "function": "echo", "max_attempts": 0 }),
        json!({ "function": "echo", "timeout": 0 }),
        json!({ "function": "echo", "parent_job_id": "j_1" }),
        json!({ "function": "echo", "depth": 1 }),
        json!({ "function": "echo", "fuction": "echo" }),
        json!({ "function": "echo", "backoff": { "factor": 0 } }),
        json!({ "function": "echo", "retry_on": ["rain"] }),
        json!({ "function": "echo", "request_id": "" }),
        json!([]),
    ] {
        assert_eq!(refused(order.clone()).await.problem(422), "validation", "{order}");
    }
    assert_eq!(inn.get("/api/jobs").await["items"], json!([]));
    inn.close().await;
}

#[tokio::test]
async fn a_batch_is_taken_as_a_whole_or_not_at_all() {
    let inn = Inn::of_size(1).await;
    let good = job("echo", json!([1]));
    let bad = json!({ "jobs": [good, { "function": "echo", "max_attempts": 0 }] });
    let refused = inn.post("/api/jobs/batch", bad).await;
    assert_eq!((refused.problem(422), &refused.json()["index"]), ("validation".into(), &json!(1)));
    assert_eq!(inn.post("/api/jobs/batch", json!({ "jobs": [] })).await.problem(422), "validation");
    assert_eq!(inn.get("/api/jobs").await["items"], json!([]));
    let jobs: Vec<Value> = (0..3).map(|n| job("echo", json!([n]))).collect();
    let order = json!({ "jobs": jobs, "request_id": "batch-1" });
    let taken = inn.post("/api/jobs/batch", order.clone()).await;
    let ids: Vec<Value> =
        taken.expect(202)["jobs"].as_array().unwrap().iter().map(|job| job["id"].clone()).collect();
    assert_eq!(ids.len(), 3);
    let again = inn.post("/api/jobs/batch", order).await;
    assert_eq!((again.expect(202), again.replayed()), (taken.json(), true));
    for (id, number) in ids.iter().zip(0..) {
        assert_eq!(inn.end(id.as_str().unwrap()).await["result"], number);
    }
    assert_eq!(inn.get("/api/jobs").await["items"].as_array().unwrap().len(), 3);
    inn.close().await;
}

#[tokio::test]
async fn a_job_with_a_unique_key_is_there_once_while_it_has_no_end() {
    let inn = Inn::of_size(1).await;
    let mut order = job("hold", json!(["only"]));
    order["unique_key"] = "only".into();
    let first = inn.post("/api/jobs", order.clone()).await.expect(202);
    let second = inn.post("/api/jobs", order.clone()).await.expect(200);
    assert_eq!((&second["id"], &second["known"]), (&first["id"], &json!(true)));
    inn.give("go");
    inn.end(first["id"].as_str().unwrap()).await;
    let third = inn.post("/api/jobs", order).await.expect(202);
    assert_ne!(third["id"], first["id"]);
    inn.end(third["id"].as_str().unwrap()).await;
    inn.close().await;
}

#[tokio::test]
async fn a_cancelled_job_lets_go_and_may_be_tried_again() {
    let inn = Inn::of_size(1).await;
    let id = inn.submit(job("hold", json!(["a"]))).await;
    inn.seen("begun", 1).await;
    let order = json!({ "reason": "no longer needed" });
    let asked = inn.post(&format!("/api/jobs/{id}/cancel"), order).await;
    assert!([200, 202].contains(&asked.status), "{asked:?}");
    let ended = inn.end(&id).await;
    assert_eq!((&ended["status"], &ended["reason"]), (&json!("CANCELED"), &json!("cancelled")));
    let again = inn.post(&format!("/api/jobs/{id}/cancel"), json!({})).await;
    assert_eq!(again.problem(409), "illegal_transition");
    let problem = again.json();
    assert_eq!((&problem["from"], &problem["to"]), (&json!("CANCELED"), &json!("CANCELED")));
    assert_eq!(problem["allowed"], json!([]));
    let none = inn.send(get(&format!("/api/jobs/{id}/result"))).await;
    assert_eq!(
        (none.problem(409), &none.json()["job_status"]),
        ("no_result".into(), &json!("CANCELED"))
    );
    inn.give("go");
    let retried = inn.post(&format!("/api/jobs/{id}/retry"), json!({})).await.expect(202);
    assert_eq!(retried["retry_of"], *id);
    assert_eq!(inn.end(retried["id"].as_str().unwrap()).await["status"], "COMPLETED");
    inn.close().await;
}

#[tokio::test]
async fn jobs_are_listed_by_what_they_are_page_by_page() {
    let inn = Inn::of_size(1).await;
    let mut ids = Vec::new();
    for number in 0..5 {
        let mut order = job("echo", json!([number]));
        order["queue"] = if number % 2 == 0 { "even" } else { "odd" }.into();
        order["tags"] = json!({ "n": number.to_string() });
        ids.push(inn.submit(order).await);
    }
    for id in &ids {
        inn.end(id).await;
    }
    ids.reverse();
    let listed = async |query: &str| {
        let page = inn.get(&format!("/api/jobs?{query}")).await;
        let ids = page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|job| job["id"].as_str().unwrap().to_owned());
        (ids.collect::<Vec<_>>(), page["next_cursor"].as_str().map(str::to_owned))
    };
    assert_eq!(listed("").await, (ids.clone(), None));
    assert_eq!(listed("queue=odd").await.0, [ids[1].clone(), ids[3].clone()]);
    assert_eq!(listed("tag=n:4").await.0, [ids[0].clone()]);
    assert_eq!(listed("status=RUNNING").await.0.len(), 0);
    let (first, cursor) = listed("limit=2").await;
    assert_eq!(first, ids[..2]);
    let (second, cursor) = listed(&format!("limit=2&cursor={}", cursor.unwrap())).await;
    assert_eq!(second, ids[2..4]);
    let (third, cursor) = listed(&format!("limit=2&cursor={}", cursor.unwrap())).await;
    assert_eq!((third, cursor), (ids[4..].to_vec(), None));
    for wrong in ["status=DONE", "tag=n", "cursor=1", "limit=0", "colour=red"] {
        assert_eq!(inn.send(get(&format!("/api/jobs?{wrong}"))).await.problem(422), "validation");
    }
    inn.close().await;
}

#[tokio::test]
async fn the_story_of_a_job_is_followed_to_its_end_and_taken_up_again() {
    let inn = Inn::of_size(1).await;
    let id = inn.submit(job("steps", json!([3]))).await;
    let path = format!("/api/jobs/{id}/events");
    let story = inn.events(get(&path)).await;
    let (kind, last, end) = story.last().unwrap();
    assert_eq!((kind.as_str(), &end["status"]), ("end", &json!("COMPLETED")));
    let messages: Vec<&Value> = of_kind(&story, "message");
    assert_eq!(messages.len(), 3, "{story:?}");
    assert!(!of_kind(&story, "progress").is_empty());
    let statuses: Vec<&Value> =
        of_kind(&story, "status").into_iter().map(|data| &data["to"]).collect();
    assert_eq!(statuses.last(), Some(&&json!("COMPLETED")));
    let ids: Vec<u64> = story[..story.len() - 1].iter().map(|(_, id, _)| *id).collect();
    assert!(ids.is_sorted_by(|one, other| one < other), "{ids:?}");
    let half = ids[ids.len() / 2];
    let rest = inn.events(get(&path).header("Last-Event-ID", &half.to_string())).await;
    let later: Vec<_> =
        story.iter().filter(|(kind, id, _)| *id > half || kind == "end").cloned().collect();
    assert_eq!(rest, later);
    let only_end = inn.events(get(&format!("{path}?after={last}"))).await;
    assert_eq!(only_end.len(), 1);
    let unknown = format!("/api/jobs/j_{}/events", "0".repeat(32));
    assert_eq!(inn.send(get(&unknown)).await.problem(404), "job_not_found");
    inn.close().await;
}

/// What events of one kind say.
fn of_kind<'s>(story: &'s [(String, u64, Value)], kind: &str) -> Vec<&'s Value> {
    let found = story.iter().filter(|(known, ..)| known == kind);
    found.map(|(_, _, event)| &event["data"]).collect()
}

#[tokio::test]
async fn what_there_is_of_a_story_can_be_read_without_waiting() {
    let inn = Inn::of_size(1).await;
    let id = inn.submit(job("hold", json!(["a"]))).await;
    inn.seen("begun", 1).await;
    let story = inn.events(get(&format!("/api/jobs/{id}/events?follow=false"))).await;
    assert!(story.iter().all(|(kind, ..)| kind != "end"), "{story:?}");
    assert!(!of_kind(&story, "status").is_empty());
    inn.give("go");
    inn.end(&id).await;
    inn.close().await;
}

#[tokio::test]
async fn the_jobs_of_a_paused_queue_wait() {
    let inn = Inn::of_size(1).await;
    let paused = inn.post("/api/queues/slow/pause", json!({})).await.expect(200);
    assert_eq!((&paused["name"], &paused["paused"]), (&json!("slow"), &json!(true)));
    let mut order = job("run", json!(["slow"]));
    order["queue"] = "slow".into();
    let waiting = inn.submit(order).await;
    let other = inn.submit(job("run", json!(["other"]))).await;
    inn.end(&other).await;
    let queues = inn.get("/api/queues").await;
    let slow =
        queues["items"].as_array().unwrap().iter().find(|queue| queue["name"] == "slow").unwrap();
    assert_eq!((&slow["waiting"], &slow["running"]), (&json!(1), &json!(0)));
    assert_eq!(inn.lines("run"), ["other"]);
    let resumed = inn.post("/api/queues/slow/resume", json!({})).await.expect(200);
    assert_eq!(resumed["paused"], json!(false));
    assert_eq!(inn.end(&waiting).await["status"], "COMPLETED");
    inn.close().await;
}

#[tokio::test]
async fn bytes_are_shown_as_such_and_given_as_they_are() {
    let inn = Inn::of_size(1).await;
    let id = inn.submit(job("picture", json!([]))).await;
    let ended = inn.end(&id).await;
    assert!(ended["result"]["$bytes"].is_string(), "{ended}");
    let result = inn.send(get(&format!("/api/jobs/{id}/result"))).await;
    assert_eq!((result.status, &*result.body), (200, &b"\x89PNG"[..]));
    inn.close().await;
}

#[tokio::test]
async fn jobs_and_keys_are_measured() {
    let inn = Inn::of_size(1).await;
    let ask = post("/api/jobs", &job("echo", json!([1]))).key("m");
    let id = inn.send(ask.clone()).await.expect(202)["id"].as_str().unwrap().to_owned();
    assert!(inn.send(ask).await.replayed());
    inn.end(&id).await;
    let text = String::from_utf8(inn.send(get("/metrics")).await.body.to_vec()).unwrap();
    for line in [
        "ostler_jobs{status=\"COMPLETED\"} 1",
        "ostler_jobs{status=\"FAILED\"} 0",
        "ostler_job_transitions_total{from=\"RUNNING\",to=\"COMPLETED\"} 1",
        "ostler_job_stale_words_total 0",
        "ostler_idempotency_keys_total{result=\"fresh\"} 1",
        "ostler_idempotency_keys_total{result=\"replayed\"} 1",
    ] {
        assert!(text.lines().any(|known| known == line), "{line} is not in\n{text}");
    }
    inn.close().await;
}
