//! Streams whose reader is slow: what is produced stays within the credit, others go on.

use std::time::Duration;

use ostler_runtime::core::{Heartbeat, Settings};
use ostler_runtime::{Call, Failure, Item, PoolSpec};

use super::support::*;

/// The credit that a stream begins with.
const CREDIT: u64 = 256;

fn million(function: &str) -> Call {
    Call { stream: true, timeout: Some(2 * LIMIT), ..call(function, "[1000000]") }
}

#[tokio::test]
async fn a_stalled_reader_holds_a_million_chunks_back_and_nobody_else() {
    let yard = Yard::new();
    let pool = start(yard.around(spec(functions("functions.py"), Settings::of_size(2)))).await;
    within("both are ready", pool.all_ready()).await;
    let mut stalled = pool.call(million("produce"));
    let first = within("a chunk", stalled.next()).await;
    assert!(matches!(first, Item::Chunk(_)), "{first:?}");
    until("the credit is used up", || yard.size_of("produced") >= CREDIT).await;
    for number in 0..200 {
        assert_eq!(ask(&pool, "echo", &format!("[{number}]")).await, number.to_string());
    }
    // One more may have been made before it was found that it could not be sent.
    let produced = yard.size_of("produced");
    assert!(produced <= CREDIT + 1, "{produced} chunks for a reader that took one");

    for number in 1..1_000 {
        let Item::Chunk(chunk) = within("it goes on", stalled.next()).await else {
            panic!("the stream ended")
        };
        assert_eq!(text(&chunk), number.to_string());
    }
    drop(stalled);
    until("the producer is free", || pool.info().workers.iter().all(|w| w.view.load == 0)).await;
    assert!(yard.size_of("produced") <= 1_000 + 2 * CREDIT, "it went on producing");
    assert!(pool.info().workers.iter().all(|worker| worker.view.generation == 1));
    stop(pool).await;
}

#[tokio::test]
async fn a_worker_answers_pings_while_its_reader_stalls() {
    let yard = Yard::new();
    let heartbeat = Heartbeat {
        independent: false,
        interval: Duration::from_millis(5),
        timeout: LIMIT,
        misses: 3,
        initial_delay: Duration::ZERO,
    };
    let settings = Settings { heartbeat: Some(heartbeat), ..Settings::of_size(1) };
    let pool = start(yard.around(spec(program("counts-pings.py").await, settings))).await;
    let mut stalled = pool.call(million("produce"));
    within("a chunk", stalled.next()).await;
    until("the credit is used up", || yard.size_of("produced") == CREDIT).await;
    let pings = yard.size_of("pings");
    until("more pings are answered", || yard.size_of("pings") > pings + 5).await;
    assert_eq!(yard.size_of("produced"), CREDIT);
    drop(stalled);
    stop(pool).await;
}

#[tokio::test]
async fn a_worker_that_knows_no_credit_is_not_read_while_its_reader_stalls() {
    let yard = Yard::new();
    let pool = start(yard.around(spec(program("pours.py").await, brisk(1)))).await;
    let mut stalled = pool.call(million("pour"));
    within("a chunk", stalled.next()).await;
    until("its writes block", || yard.lines("blocked").len() == 1).await;
    // A window here, what the socket holds, and what was read at once.
    let produced = yard.size_of("produced") * 8192;
    assert!(produced < 16 << 20, "{produced} bytes for a reader that took one chunk");
    drop(stalled);
    until("the worker is free", || pool.info().workers[0].view.load == 0).await;
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    stop(pool).await;
}

#[tokio::test]
async fn a_long_stream_comes_whole_and_in_order() {
    let pool = one(functions("functions.py")).await;
    let mut running = pool.call(Call { stream: true, ..call("count", "[20000]") });
    let (chunks, end) = drain(&mut running).await;
    end.expect("it completes");
    assert_eq!(chunks.len(), 20_000);
    let out_of_place = chunks.iter().enumerate().find(|(n, chunk)| **chunk != n.to_string());
    assert_eq!(out_of_place, None);
    stop(pool).await;
}

#[tokio::test]
async fn a_result_over_the_limit_ends_its_call_only() {
    let spec = PoolSpec { max_result: 4096, ..spec(functions("functions.py"), brisk(1)) };
    let pool = start(spec).await;
    let failure = failure(pool.call(call("count", "[100000]"))).await;
    assert_eq!(failure, Failure::ResultTooLarge { limit: 4096 });
    assert_eq!(ask(&pool, "echo", "[1]").await, "1");
    stop(pool).await;
}

#[tokio::test]
async fn a_single_result_over_the_limit_ends_its_call_only() {
    let spec = PoolSpec { max_result: 4096, ..spec(functions("functions.py"), brisk(1)) };
    let pool = start(spec).await;
    let failure = failure(pool.call(call("letters", "[100000]"))).await;
    assert_eq!(failure, Failure::ResultTooLarge { limit: 4096 });
    assert_eq!(ask(&pool, "echo", "[1]").await, "1");
    stop(pool).await;
}

#[tokio::test]
async fn a_worker_that_dies_while_its_reader_stalls_is_replaced_all_the_same() {
    let yard = Yard::new();
    let pool = start(yard.around(spec(program("pours.py").await, brisk(1)))).await;
    let mut stalled = pool.call(million("pour"));
    within("a chunk", stalled.next()).await;
    until("its writes block", || yard.lines("blocked").len() == 1).await;
    send(pid(&pool, 0).await, libc::SIGKILL);
    until("the worker has a new process", || generation(&pool) == 2).await;
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    let (_, end) = drain(&mut stalled).await;
    assert!(end.is_err(), "{end:?}");
    stop(pool).await;
}
