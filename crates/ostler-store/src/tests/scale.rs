//! Many sessions cost each operation no more than few do. Counted, not timed.

use tempfile::TempDir;

use super::*;
use crate::Content;

/// Rows written, transactions, and places of the index of expiry looked at, by each operation.
async fn costs(sessions: &Sessions) -> Vec<(&'static str, [u64; 3])> {
    let mut costs = Vec::new();
    let mut before = counted(sessions);
    let mut count = |operation| {
        let now = counted(sessions);
        costs.push((operation, [now[0] - before[0], now[1] - before[1], now[2] - before[2]]));
        before = now;
    };
    let content = || Content::new("text/plain", &b"program"[..]);
    sessions.create(named("new")).await.unwrap();
    count("create");
    let number = sessions.enter("new", Some("pool")).await.unwrap().number;
    count("enter strictly");
    sessions.enter("new", Some("pool")).await.unwrap();
    count("enter again");
    sessions.get("new").await.unwrap();
    count("get");
    sessions.patch("new", merge(r#"{"a":1}"#)).await.unwrap();
    count("patch");
    sessions.put_program("new", "p", content(), None).await.unwrap();
    count("put a program");
    sessions.get_program("new", "p").await.unwrap();
    count("get a program");
    sessions.save_state(number, "pool", content()).await.unwrap();
    count("save");
    sessions.take_state(number, "pool").await.unwrap();
    count("take");
    assert_eq!(sessions.list(Some("s-5"), 50).len(), 50);
    count("list");
    sessions.delete("new", None).await.unwrap();
    count("delete");
    assert_eq!(sessions.sweep().await, 0);
    count("sweep");
    costs
}

fn counted(sessions: &Sessions) -> [u64; 3] {
    let stats = sessions.stats();
    [stats.rows_written, stats.commits, stats.expiry_looks]
}

async fn fill(sessions: &Sessions, range: std::ops::Range<u32>) {
    let creators: Vec<_> = (0..500)
        .map(|first| {
            let (sessions, range) = (sessions.clone(), range.clone());
            tokio::spawn(async move {
                for n in range.skip(first).step_by(500) {
                    sessions.create(named(&format!("s-{n}"))).await.unwrap();
                }
            })
        })
        .collect();
    for creator in creators {
        creator.await.unwrap();
    }
}

#[tokio::test]
async fn a_hundred_thousand_sessions_cost_each_operation_what_a_thousand_do() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("db");
    let settings = SessionSettings { max: 200_000, ..SessionSettings::default() };
    let clock = HandClock::at(START);
    let sessions = Sessions::open_by(&path, settings.clone(), clock.clone()).await.unwrap();
    fill(&sessions, 0..1000).await;
    let few = costs(&sessions).await;
    fill(&sessions, 1000..100_000).await;
    let many = costs(&sessions).await;
    assert_eq!(few, many);
    let rows: Vec<_> = few.iter().map(|(operation, cost)| (*operation, cost[0])).collect();
    let expected = [
        ("create", 1),
        ("enter strictly", 1),
        ("enter again", 0),
        ("get", 0),
        ("patch", 1),
        ("put a program", 2),
        ("get a program", 0),
        ("save", 1),
        ("take", 1),
        ("list", 0),
        ("delete", 1),
        ("sweep", 0),
    ];
    assert_eq!(rows, expected);
    assert!(few.iter().all(|(_, cost)| cost[1] == cost[0].min(1)), "one commit each: {few:?}");

    assert_eq!(sessions.stats().current, 100_000);
    let commits = sessions.stats().commits;
    assert!(commits < 20_000, "{commits} commits for 100 000 creations: they are not grouped");
    sessions.close().await;
    let again = Sessions::open_by(&path, settings, clock.clone()).await.unwrap();
    assert_eq!(again.stats().current, 100_000, "all are there after a restart");
    clock.pass(HOUR);
    assert_eq!(again.sweep().await, 100_000);
    assert_eq!(again.stats().memory_bytes, 0);
}
