//! Workers with one vice each: the caller learns what happened, nothing else suffers, and the
//! worker's next process serves.

use std::time::Duration;

use ostler_runtime::core::{Exit, Lifecycle, LossReason, Settings, Started, StopReason};
use ostler_runtime::{Call, CallError, Failure, Line, Pool, Refused, Stream};

use super::support::*;

/// Lets the vice happen, and sees that the worker serves again on another process.
async fn after_its_vice(worker: &str) -> (Pool, Failure) {
    let pool = one(program(worker).await).await;
    let failure = failure(pool.call(call("vice", ""))).await;
    assert_eq!(ask(&pool, "echo", r#""after""#).await, r#""after""#, "{worker}");
    assert_eq!(generation(&pool), 2, "{worker}: {failure:?}");
    (pool, failure)
}

fn crashed(failure: &Failure) -> (Exit, LossReason) {
    match failure {
        Failure::Crashed { exit, reason, .. } => (*exit, *reason),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_program_that_dies_before_it_is_ready_fails_the_pool_with_the_cause() {
    let settings = Settings { restart_max: 2, ..brisk(1) };
    let pool = start(spec(program("dies-before-hello.sh").await, settings)).await;
    let refused = end(pool.call(call("echo", "1"))).await.unwrap_err();
    let CallError::Refused(Refused::PoolFailed { why }) = refused else { panic!("{refused:?}") };
    assert!(why.contains("code 3") && why.contains("no licence found"), "{why}");
    let info = pool.info();
    assert_eq!(info.view.lifecycle, Lifecycle::Failed);
    assert_eq!(info.last_failure, Some(why));
    stop(pool).await;
}

#[tokio::test]
async fn a_process_that_is_never_ready_is_replaced_while_its_request_waits() {
    let settings = Settings { start_timeout: Duration::from_millis(200), ..brisk(1) };
    let pool = start(spec(program("never-ready.sh").await, settings)).await;
    let first = Process::find(pid(&pool, 0).await);
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    assert!(generation(&pool) >= 2);
    gone(&first).await;
    stop(pool).await;
}

#[tokio::test]
async fn leaving_with_code_0_is_a_crash_for_the_request() {
    let (pool, failure) = after_its_vice("exits-0.sh").await;
    assert_eq!(crashed(&failure), (Exit::Code(0), LossReason::Crashed));
    stop(pool).await;
}

#[tokio::test]
async fn a_crash_tells_the_exit_code_and_the_last_lines_of_stderr() {
    let (pool, failure) = after_its_vice("dies-mid-request.sh").await;
    let Failure::Crashed { worker, exit, started, stderr, chunks, .. } = failure else {
        panic!("{failure:?}")
    };
    assert_eq!((&*worker, exit, started, chunks), ("test-1", Exit::Code(7), Started::Unknown, 0));
    assert_eq!(stderr, ["loading the model", "model is corrupt"]);
    stop(pool).await;
}

#[tokio::test]
async fn a_crash_tells_the_signal() {
    let (pool, failure) = after_its_vice("segfaults.sh").await;
    assert_eq!(crashed(&failure), (Exit::Signal(libc::SIGSEGV), LossReason::Crashed));
    assert!(failure.to_string().contains("SIGSEGV"), "{failure}");
    stop(pool).await;
}

#[tokio::test]
async fn a_stream_that_breaks_brings_its_chunks_and_their_number() {
    let pool = one(program("dies-mid-stream.sh").await).await;
    let mut running = pool.call(Call { stream: true, ..call("vice", "") });
    let (chunks, end) = drain(&mut running).await;
    assert_eq!(chunks, ["0", "1", "2"]);
    let Err(CallError::Failed(failure)) = end else { panic!("{end:?}") };
    assert!(matches!(failure, Failure::Crashed { chunks: 3, .. }), "{failure:?}");
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    stop(pool).await;
}

async fn is_a_violation(worker: &str, said: &str) {
    let (pool, failure) = after_its_vice(worker).await;
    let (_, reason) = crashed(&failure);
    assert_eq!(reason, LossReason::Stopped(StopReason::ProtocolViolation), "{worker}");
    let Failure::Crashed { stderr, .. } = failure else { unreachable!("looked at above") };
    assert!(stderr.iter().any(|line| line.contains(said)), "{worker}: {stderr:?}");
    stop(pool).await;
}

#[tokio::test]
async fn garbage_is_a_violation() {
    is_a_violation("writes-garbage.sh", "protocol violation").await;
}

#[tokio::test]
async fn a_line_without_end_is_a_violation() {
    is_a_violation("endless-line.sh", "protocol violation").await;
}

#[tokio::test]
async fn an_answer_for_another_request_is_a_violation() {
    is_a_violation("answers-for-another.sh", "999").await;
}

#[tokio::test]
async fn a_second_answer_is_a_violation_and_the_first_one_counts() {
    let pool = one(program("answers-twice.sh").await).await;
    assert_eq!(ask(&pool, "vice", "").await, "1");
    until("the worker is replaced", || generation(&pool) == 2).await;
    assert_eq!(ask(&pool, "echo", "3").await, "3");
    stop(pool).await;
}

#[tokio::test]
async fn a_word_before_ready_is_a_violation() {
    let pool = one(program("speaks-first.sh").await).await;
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    assert_eq!(generation(&pool), 2);
    stop(pool).await;
}

#[tokio::test]
async fn a_length_of_4_gib_is_refused_before_memory_is_taken_for_it() {
    let pool = one(program("four-gigabytes.sh").await).await;
    until("the worker is replaced", || generation(&pool) == 2).await;
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    stop(pool).await;
}

#[tokio::test]
async fn a_request_behind_half_a_frame_ends_with_its_process() {
    let pool = one(program("half-a-frame.sh").await).await;
    within("the worker is ready", pool.ready()).await;
    let running = pool.call(call("echo", "1"));
    send(pid(&pool, 0).await, libc::SIGKILL);
    let failure = failure(running).await;
    assert_eq!(crashed(&failure), (Exit::Signal(libc::SIGKILL), LossReason::Crashed));
    stop(pool).await;
}

#[tokio::test]
async fn an_answer_that_comes_one_byte_at_a_time_is_an_answer_and_holds_nobody_up() {
    let settings = Settings { checkup: None, ..brisk(2) };
    let pool = start(spec(program("one-byte-at-a-time.py").await, settings)).await;
    within("both are ready", pool.all_ready()).await;
    let slow = pool.call(call("any", "20"));
    for _ in 0..20 {
        assert_eq!(ask(&pool, "any", "0").await, "0");
    }
    assert_eq!(text(&end(slow).await.expect("it is only slow").body), "20");
    assert!(pool.info().workers.iter().all(|worker| worker.view.generation == 1));
    stop(pool).await;
}

#[tokio::test]
async fn an_answer_of_one_byte_a_second_is_too_late_and_its_worker_is_replaced() {
    let pool = one(program("one-byte-at-a-time.py").await).await;
    within("it is ready", pool.ready()).await;
    let slow = Process::find(pid(&pool, 0).await);
    let timeout = Some(Duration::from_millis(200));
    let failure = failure(pool.call(Call { timeout, ..call("any", "1000") })).await;
    assert!(matches!(failure, Failure::TimedOut { .. }), "{failure:?}");
    assert_eq!(ask(&pool, "any", "0").await, "0");
    assert_eq!(generation(&pool), 2);
    gone(&slow).await;
    stop(pool).await;
}

#[tokio::test]
async fn noise_on_stdout_is_output_whatever_it_looks_like() {
    let pool = one(program("noise-on-stdout.sh").await).await;
    assert_eq!(ask(&pool, "vice", "").await, r#""true""#);
    let info = pool.info();
    assert_eq!((info.workers[0].view.capacity, info.workers[0].view.generation), (1, 1));
    let output = pool.worker_output("test-1").expect("it wrote");
    let forged =
        |line: &std::sync::Arc<Line>| line.stream == Stream::Stdout && line.text.contains("forged");
    until("the noise is kept", || output.after(0).iter().any(forged)).await;
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    stop(pool).await;
}

#[tokio::test]
async fn a_worker_that_ignores_a_cancel_is_killed_and_the_caller_does_not_wait_for_it() {
    let yard = Yard::new();
    let pool = start(yard.around(spec(program("ignores-cancel.sh").await, brisk(1)))).await;
    let running = pool.call(call("vice", ""));
    until("the vice has begun", || !yard.lines("begun").is_empty()).await;
    let stubborn = Process::find(pid(&pool, 0).await);
    running.cancel();
    assert_eq!(failure(running).await, Failure::Cancelled { started: Started::Yes });
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    assert_eq!(generation(&pool), 2);
    assert!(!stubborn.lives(), "two processes served at a time");
    stop(pool).await;
}

#[tokio::test]
async fn a_pool_stops_though_its_worker_ignores_sigterm() {
    let pool = one(program("ignores-term.sh").await).await;
    assert_eq!(ask(&pool, "vice", "").await, "1");
    let stubborn = Process::find(pid(&pool, 0).await);
    stop(pool).await;
    assert!(!stubborn.lives());
}

#[tokio::test]
async fn a_flood_on_stderr_neither_blocks_the_worker_nor_is_it_kept() {
    let pool = one(program("floods-stderr.sh").await).await;
    assert_eq!(ask(&pool, "vice", "").await, r#""dry""#);
    let kept: usize = pool.info().workers[0].last_lines(usize::MAX).iter().map(String::len).sum();
    assert!(kept <= 64 << 10, "{kept} bytes");
    stop(pool).await;
}

#[tokio::test]
async fn a_grandchild_in_a_session_of_its_own_ends_with_the_pool() {
    let yard = Yard::new();
    let pool = start(yard.around(spec(program("forks-grandchild.sh").await, brisk(1)))).await;
    let grandchild = ask(&pool, "vice", "").await.parse().expect("a pid");
    let grandchild = Process::find(grandchild);
    stop(pool).await;
    assert!(!grandchild.lives());
}

#[tokio::test]
async fn a_grandchild_ends_with_its_process_when_that_crashes() {
    let yard = Yard::new();
    let pool = start(yard.around(spec(program("forks-grandchild.sh").await, brisk(1)))).await;
    let grandchild = ask(&pool, "vice", "").await.parse().expect("a pid");
    let grandchild = Process::find(grandchild);
    send(pid(&pool, 0).await, libc::SIGKILL);
    gone(&grandchild).await;
    stop(pool).await;
}

#[tokio::test]
async fn a_worker_that_hangs_up_and_lives_on_is_killed() {
    let pool = one(program("hangs-up.sh").await).await;
    within("the worker is ready", pool.ready()).await;
    let silent = Process::find(pid(&pool, 0).await);
    let failure = failure(pool.call(call("vice", ""))).await;
    assert_eq!(crashed(&failure).1, LossReason::Stopped(StopReason::StreamClosed));
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    assert!(!silent.lives());
    stop(pool).await;
}

#[tokio::test]
async fn an_answer_that_was_written_before_the_end_counts() {
    let settings = Settings { restart_max: 1_000, ..brisk(1) };
    let pool = start(spec(program("answers-and-dies.sh").await, settings)).await;
    for life in 1..=20 {
        let alive = || generation(&pool) == life && pool.info().view.ready == 1;
        until("the next process is ready", alive).await;
        let process = Process::find(pid(&pool, 0).await);
        let running = pool.call(call("vice", ""));
        // Nobody reads here meanwhile: answer and exit are both found at the same time.
        while process.lives() {
            std::thread::yield_now();
        }
        let answered = end(running).await.unwrap_or_else(|lost| panic!("life {life}: {lost:?}"));
        assert_eq!(text(&answered.body), "42");
    }
    stop(pool).await;
}

#[tokio::test]
async fn unknown_messages_and_late_chunks_are_harmless() {
    let pool = one(program("chatters.py").await).await;
    for _ in 0..3 {
        assert_eq!(ask(&pool, "any", "7").await, "7");
    }
    assert_eq!(generation(&pool), 1);
    stop(pool).await;
}

#[tokio::test]
async fn a_worker_without_standard_streams_serves() {
    let pool = one(program("closes-stdout.sh").await).await;
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    assert_eq!(generation(&pool), 1);
    stop(pool).await;
}
