//! The trail and the store, looked into from outside.

use serde_json::json;

use super::support::*;

#[tokio::test]
async fn the_trail_is_replayed_and_found_whole() {
    let inn = Inn::of_size(1).await;
    let id = inn.submit(json!({ "function": "echo" })).await;
    inn.end(&id).await;
    let report = inn.get("/api/audit/verify").await;
    assert_eq!((&report["ok"], &report["findings"]), (&json!(true), &json!([])));
    assert_eq!((&report["jobs"], &report["workers"]), (&json!(1), &json!(1)));
    assert_eq!(report["transitions"], json!(4 + 2));
    let checked = inn.post("/api/store/check", json!({})).await.expect(200);
    assert_eq!((&checked["ok"], &checked["audit"]["jobs"]), (&json!(true), &json!(1)));
    inn.close().await;
}

#[tokio::test]
async fn a_copy_of_the_store_can_be_opened() {
    let inn = Inn::stored_in(tempfile::tempdir().expect("a directory")).await;
    let id = inn.submit(json!({ "function": "echo" })).await;
    inn.end(&id).await;
    let target = tempfile::tempdir().expect("a directory");
    let copy = json!({ "path": target.path().join("ostler.db") });
    let written = inn.send_locally(post("/api/store/backup", &copy)).await.expect(201);
    assert!(written["bytes"].as_u64().unwrap() > 0);
    inn.close().await;
    let inn = Inn::stored_in(target).await;
    assert_eq!(inn.get(&format!("/api/jobs/{id}")).await["status"], "COMPLETED");
    inn.close().await;
}

#[tokio::test]
async fn files_are_written_only_for_those_at_the_socket() {
    let inn = Inn::of_size(1).await;
    let copy = |path: &std::path::Path| post("/api/store/backup", &json!({ "path": path }));
    let target = inn.yard.path().join("copy.db");
    assert_eq!(inn.send(copy(&target)).await.problem(403), "socket_only");
    assert!(!target.exists());
    let relative = inn.send_locally(copy("copy.db".as_ref())).await;
    assert_eq!(relative.problem(422), "validation");
    std::fs::write(&target, "mine").unwrap();
    assert_eq!(inn.send_locally(copy(&target)).await.problem(409), "file_exists");
    assert_eq!(std::fs::read(&target).unwrap(), b"mine");
    inn.close().await;
}
