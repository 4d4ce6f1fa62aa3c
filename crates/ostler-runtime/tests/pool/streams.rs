//! Streams whose reader is slow: what is produced stays within the credit, others go on.

use std::time::Duration;

use ostler_runtime::core::{Heartbeat, Settings};
use ostler_runtime::{Call, Failure, Item, PoolSpec, ProcessSettings, Profile, RequestState};

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
async fn a_stalled_reader_holds_back_neither_siblings_nor_pings_of_its_process() {
    let threads = (Profile::Thread { threads: 4 }, "side_produce");
    let tasks = (Profile::Async { concurrency: 4 }, "async_produce");
    for (profile, produce) in [threads, tasks] {
        let yard = Yard::new();
        let settings = Settings { heartbeat: Some(quick_heartbeat(LIMIT)), ..Settings::of_size(1) };
        let processes = ProcessSettings { profile, ..ProcessSettings::default() };
        let spec = PoolSpec { processes, ..spec(functions("sides.py"), settings) };
        let pool = start(yard.around(spec)).await;
        let mut stalled = pool.call(million(produce));
        within("a chunk", stalled.next()).await;
        until("the credit is used up", || yard.size_of("produced") >= CREDIT).await;
        let pongs = pool.tally().heartbeat_time().count();
        for number in 0..100 {
            assert_eq!(ask(&pool, "quick", &format!("[{number}]")).await, number.to_string());
        }
        until("pings are answered", || pool.tally().heartbeat_time().count() > pongs + 3).await;
        let produced = yard.size_of("produced");
        assert!(produced <= CREDIT + 1, "{produce}: {produced} chunks");
        drop(stalled);
        until("its place is free", || pool.info().view.running == 0).await;
        assert_eq!(generation(&pool), 1, "{produce}: the same process");
        stop(pool).await;
    }
}

#[tokio::test]
async fn a_worker_of_lines_that_knows_credit_stays_within_it() {
    let yard = Yard::new();
    let pool = start(yard.around(spec(program("counts-credit.py").await, patient(1)))).await;
    let mut stalled = pool.call(million("produce"));
    within("a chunk", stalled.next()).await;
    until("the credit is used up", || yard.lines("spent") == ["256"]).await;
    for number in 1..1_000 {
        let Item::Chunk(chunk) = within("it goes on", stalled.next()).await else {
            panic!("the stream ended")
        };
        assert_eq!(text(&chunk), number.to_string());
    }
    until("more credit is used up", || yard.lines("spent").len() > 1).await;
    let produced: u64 = yard.lines("spent").last().expect("a count").parse().expect("a number");
    assert!(produced <= 1_000 + CREDIT, "{produced} chunks for a reader that took a thousand");
    drop(stalled);
    until("the worker is free", || pool.info().view.running == 0).await;
    assert_eq!(generation(&pool), 1, "the same process");
    stop(pool).await;
}

#[tokio::test]
async fn a_stream_that_continues_without_its_caller_runs_to_its_end() {
    let yard = Yard::new();
    let pool = start(yard.around(spec(functions("functions.py"), brisk(1)))).await;
    let mut running = pool.call(Call { stream: true, ..call("produce", "[5000]") });
    within("a chunk", running.next()).await;
    let id = running.id();
    running.continue_when_dropped();
    drop(running);
    let state = || pool.request(&id).expect("it is remembered").record.state;
    until("it has its end", || state().ended()).await;
    assert_eq!(state(), RequestState::Complete);
    assert_eq!(yard.size_of("produced"), 5_000);
    assert_eq!(pool.request(&id).expect("it is remembered").record.chunks, 5_000);
    stop(pool).await;
}

#[tokio::test]
async fn a_call_that_continues_without_its_caller_runs_to_its_end() {
    let yard = Yard::new();
    let pool = start(yard.around(spec(functions("functions.py"), brisk(1)))).await;
    let mut holder = pool.call(call("hold", r#"["first"]"#));
    until("it runs", || yard.lines("begun").len() == 1).await;
    let mut queued = pool.call(call("record", r#"["second"]"#));
    until("it waits", || pool.info().view.queued == 1).await;
    for running in [&mut holder, &mut queued] {
        running.continue_when_dropped();
    }
    drop((holder, queued));
    yard.give("go");
    until("both have run", || yard.lines("ledger") == ["second test-1#1"]).await;
    until("both have their end", || pool.info().view.counters.resolved == 2).await;
    assert_eq!(pool.tally().outcomes().get("ok"), 2);
    stop(pool).await;
}

#[tokio::test]
async fn a_stream_of_the_sdk_that_breaks_says_how_many_chunks_came() {
    let yard = Yard::new();
    let pool = start(yard.around(spec(functions("functions.py"), brisk(1)))).await;
    let mut running = pool.call(Call { stream: true, ..call("produce_and_die", "[300]") });
    for number in 0..300 {
        let Item::Chunk(chunk) = within("it goes on", running.next()).await else {
            panic!("the stream ended")
        };
        assert_eq!(text(&chunk), number.to_string());
    }
    yard.give("go");
    let failure = failure(running).await;
    assert!(matches!(failure, Failure::Crashed { chunks: 300, .. }), "{failure:?}");
    assert_eq!(ask(&pool, "echo", "[1]").await, "1");
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
