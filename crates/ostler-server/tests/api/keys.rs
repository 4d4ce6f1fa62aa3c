//! Requests that come again under the same key.

use serde_json::{Value, json};

use super::support::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_posts_with_one_key_make_one_job() {
    let inn = Inn::of_size(1).await;
    let ask = post("/api/jobs", &json!({ "function": "run", "payload": ["once"] })).key("one");
    let mut posts = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (address, ask) = (inn.address, ask.clone());
        posts.spawn(async move {
            let mut answers = Vec::new();
            for _ in 0..125 {
                answers.push(send(address, &ask).await);
            }
            answers
        });
    }
    let answers: Vec<Answer> = posts.join_all().await.into_iter().flatten().collect();
    assert_eq!(answers.len(), 1_000);
    let (taken, others): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 202);
    assert!(others.iter().all(|other| other.problem(409) == "key_in_flight"));
    assert_eq!(taken.iter().filter(|answer| !answer.replayed()).count(), 1);
    let id = taken[0].json()["id"].as_str().unwrap().to_owned();
    assert!(taken.iter().all(|answer| answer.json()["id"] == *id));
    inn.end(&id).await;
    assert_eq!(inn.get("/api/jobs").await["items"].as_array().unwrap().len(), 1);
    assert_eq!(inn.lines("run"), ["once"]);
    inn.close().await;
}

#[tokio::test]
async fn a_call_under_a_key_runs_once_and_goes_on_without_its_client() {
    let inn = Inn::of_size(1).await;
    let ask = post("/api/pools/test/call/hold", &json!(["a"])).key("k");
    let client = tokio::spawn({
        let (address, ask) = (inn.address, ask.clone());
        async move { send(address, &ask).await }
    });
    inn.seen("begun", 1).await;
    let meanwhile = inn.send(ask.clone()).await;
    assert_eq!(meanwhile.problem(409), "key_in_flight");
    assert_eq!(
        (meanwhile.header("retry-after"), &meanwhile.json()["retryable"]),
        (Some("1"), &json!(true))
    );
    let other = post("/api/pools/test/call/hold", &json!(["b"])).key("k");
    assert_eq!(inn.send(other).await.problem(422), "key_reused");
    client.abort();
    assert!(client.await.unwrap_err().is_cancelled());
    inn.give("go");
    let mut answer = None;
    until("the answer is kept", async || {
        let again = inn.send(ask.clone()).await;
        let there = again.status == 200;
        answer = Some(again);
        there
    })
    .await;
    let answer = answer.unwrap();
    assert_eq!((answer.json(), answer.replayed()), (json!("a"), true));
    assert_eq!(answer.header("ostler-worker"), Some("test-1"));
    assert_eq!(
        (inn.lines("begun"), inn.lines("ended")),
        (vec!["a".to_owned()], vec!["a".to_owned()])
    );
    inn.close().await;
}

#[tokio::test]
async fn an_error_of_a_function_is_an_answer_and_a_refusal_is_none() {
    let inn = Inn::of_size(1).await;
    let fail = ask("POST", "/api/pools/test/call/fail").key("f");
    let first = inn.send(fail.clone()).await;
    assert_eq!(first.problem(500), "application_error");
    let second = inn.send(fail).await;
    assert_eq!((second.expect(500), second.replayed()), (first.json(), true));
    assert_eq!(inn.lines("run"), ["fail"]);
    let unknown = post("/api/pools/test/call/nothing", &json!([])).key("u");
    for _ in 0..2 {
        let refused = inn.send(unknown.clone()).await;
        assert_eq!(
            (refused.problem(404), refused.replayed()),
            ("function_not_found".into(), false)
        );
    }
    inn.close().await;
}

#[tokio::test]
async fn every_route_that_changes_something_takes_a_key() {
    let inn = Inn::of_size(1).await;
    let twice = async |ask: Ask, status: u16| {
        let first = inn.send(ask.clone()).await;
        let body = first.expect(status);
        assert!(!first.replayed());
        let second = inn.send(ask).await;
        assert_eq!((second.expect(status), second.replayed()), (body.clone(), true));
        assert_eq!(second.header("location"), first.header("location"));
        assert_ne!(second.header("ostler-request-id"), first.header("ostler-request-id"));
        body
    };
    twice(post("/api/sessions", &json!({ "id": "ada" })).key("a"), 201).await;
    let put = ask("PUT", "/api/sessions/ada/programs/p").body(&json!(1)).key("a");
    twice(put, 200).await;
    twice(ask("DELETE", "/api/sessions/ada").key("a"), 204).await;
    let lease = twice(post("/api/pools/test/leases", &json!({})).key("a"), 201).await;
    let lease = format!("/api/leases/{}", lease["id"].as_str().unwrap());
    twice(post(&format!("{lease}/call/run"), &json!(["leased"])).key("a"), 200).await;
    twice(ask("DELETE", &lease).key("a"), 204).await;
    twice(post("/api/pools/test/scale", &json!({ "size": 1 })).key("a"), 200).await;
    twice(post("/api/queues/q/pause", &json!({ "request_id": "a" })), 200).await;
    twice(post("/api/workers/test-1/call/run", &json!(["direct"])).key("a"), 200).await;
    let worker = twice(post("/api/workers", &json!({ "request_id": "a" })), 201).await;
    let start = format!("/api/workers/{}/start", worker["id"].as_str().unwrap());
    twice(post(&start, &json!({ "request_id": "a" })), 200).await;
    assert_eq!(inn.lines("run"), ["leased", "direct"]);
    inn.close().await;
}

#[tokio::test]
async fn keys_that_contradict_or_cannot_be_read_are_refused() {
    let inn = Inn::of_size(1).await;
    let job = json!({ "function": "echo", "request_id": "a" });
    assert_eq!(inn.send(post("/api/jobs", &job).key("b")).await.problem(400), "malformed");
    inn.send(post("/api/jobs", &job).key("a")).await.expect(202);
    for bad in ["", "ü", &"x".repeat(256)] {
        let ask = post("/api/jobs", &json!({ "function": "echo" })).key(bad);
        assert_eq!(inn.send(ask).await.problem(400), "malformed", "{bad}");
    }
    let stream = post("/api/pools/test/call/steps", &json!([1])).key("s");
    let stream = stream.header("Accept", "text/event-stream");
    assert_eq!(inn.send(stream).await.problem(422), "validation");
    assert_eq!(inn.get("/api/jobs").await["items"].as_array().unwrap().len(), 1);
    inn.close().await;
}

#[tokio::test]
async fn a_refused_submission_leaves_its_key_unused() {
    let inn = Inn::of_size(1).await;
    let key = |body: &Value| post("/api/jobs", body).key("k");
    let bad = json!({ "function": "echo", "max_attempts": 0 });
    assert_eq!(inn.send(key(&bad)).await.problem(422), "validation");
    inn.send(key(&json!({ "function": "echo" }))).await.expect(202);
    inn.close().await;
}

#[tokio::test]
async fn a_large_answer_is_given_once_and_not_kept() {
    let inn = Inn::of_size(1).await;
    let ask = post("/api/pools/test/call/large", &json!([(1 << 20) + 1])).key("k");
    let first = inn.send(ask.clone()).await;
    assert_eq!((first.status, first.body.len()), (200, (1 << 20) + 3));
    let second = inn.send(ask).await;
    assert_eq!((second.problem(409), second.replayed()), ("answer_not_kept".into(), true));
    inn.close().await;
}
