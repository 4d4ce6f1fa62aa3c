//! Payloads on their way to a worker that does not read them yet.

use bytes::Bytes;
use ostler_runtime::core::Settings;
use ostler_runtime::{Body, Call, Failure, Pool, Program};

use super::support::*;

const LARGE: usize = 32 << 20;

fn large(function: &str, fill: u8) -> Call {
    let body = Body::raw(Bytes::from(vec![fill; LARGE]), None);
    Call { function: function.to_owned(), body, ..Call::default() }
}

/// A pool whose worker is stopped, so that no write to it can end.
async fn with_a_stopped_worker(program: Program) -> (Pool, i32) {
    let settings = Settings { cancel_grace: LIMIT, heartbeat: None, ..Settings::of_size(1) };
    let pool = start(spec(program, settings)).await;
    within("the worker is ready", pool.ready()).await;
    let pid = pid(&pool, 0).await;
    send(pid, libc::SIGSTOP);
    (pool, pid)
}

async fn a_vanished_caller_leaves_the_stream_whole(program: Program) {
    let (pool, pid) = with_a_stopped_worker(program).await;
    for fill in [1, 2] {
        let running = pool.call(large("echo", fill));
        assert_eq!(running.worker().as_deref(), Some("test-1").filter(|_| fill == 1));
        drop(running);
    }
    let next = pool.call(large("echo", 3));
    send(pid, libc::SIGCONT);
    let answered = end(next).await.expect("it answers").body;
    assert_eq!(answered.len(), LARGE);
    assert!(answered.bytes.iter().all(|byte| *byte == 3), "bytes of another call");
    assert_eq!(generation(&pool), 1, "the same process");
    stop(pool).await;
}

#[tokio::test]
async fn a_caller_that_vanishes_mid_write_does_not_corrupt_the_stream_of_the_sdk() {
    a_vanished_caller_leaves_the_stream_whole(functions("functions.py")).await;
}

#[tokio::test]
async fn a_caller_that_vanishes_mid_write_does_not_corrupt_the_stream_of_a_plain_worker() {
    a_vanished_caller_leaves_the_stream_whole(program("echoes-frames.py").await).await;
}

#[tokio::test]
async fn a_worker_that_dies_mid_write_fails_that_call_only() {
    let (pool, pid) = with_a_stopped_worker(program("echoes-frames.py").await).await;
    let running = pool.call(large("echo", 1));
    send(pid, libc::SIGKILL);
    let failure = failure(running).await;
    assert!(matches!(failure, Failure::Crashed { .. }), "{failure:?}");
    let answered = end(pool.call(large("echo", 2))).await.expect("it answers").body;
    assert!(answered.len() == LARGE && answered.bytes.iter().all(|byte| *byte == 2));
    stop(pool).await;
}

#[tokio::test]
async fn a_payload_that_the_worker_cannot_be_sent_is_refused_and_the_worker_serves_on() {
    let pool = one(program("minimal.py").await).await;
    within("the worker is ready", pool.ready()).await;
    let line = format!("\"{}\"", "x".repeat(17 << 20));
    let error = end(pool.call(call("echo", &line))).await.unwrap_err();
    assert!(matches!(error, ostler_runtime::CallError::Refused(_)), "{error:?}");
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    assert_eq!(generation(&pool), 1);
    stop(pool).await;
}
