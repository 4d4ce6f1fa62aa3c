//! What a worker or a caller may send without end, and what holds it: nothing else suffers.

use std::sync::Arc;

use ostler_runtime::core::{Action, LossReason, Reply, Settings, StopReason, WorkerId};
use ostler_runtime::{
    Call, CallError, Directory, Event, EventKind, Failure, Line, Pool, PoolSpec, Refused, Running,
    Stream,
};
use serde_json::{Value, json};

use super::support::*;

#[tokio::test]
async fn thousands_of_queued_requests_that_cannot_be_sent_are_all_refused() {
    const QUEUED: u32 = 3_000;
    let settings = Settings { queue_max: QUEUED, queue_timeout: LIMIT, ..patient(1) };
    let pool = start(spec(program("minimal.py").await, settings)).await;
    let busy = pool.call(call("wait", ""));
    until("the worker is busy", || busy.worker().is_some()).await;
    let nonsense: Vec<Running> =
        (0..QUEUED).map(|_| pool.call(call("echo", "{nonsense"))).collect();
    busy.cancel();
    for running in nonsense {
        let error = end(running).await.unwrap_err();
        assert!(matches!(error, CallError::Refused(Refused::Unsendable { .. })), "{error:?}");
    }
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    assert_eq!(generation(&pool), 1);
    stop(pool).await;
}

/// A worker commits an offence while another one works; that one goes on.
async fn is_replaced_alone(worker: &str, offence: Call) {
    let yard = Yard::new();
    let pool = start(yard.around(spec(program(worker).await, patient(2)))).await;
    within("both are ready", pool.all_ready()).await;
    let other = pool.call(call("hold", ""));
    let mut offender = pool.call(offence);
    // Nothing of what it sends is taken before.
    until("the offender is replaced", || pool.info().workers.iter().any(is_second)).await;
    let Err(CallError::Failed(failure)) = drain(&mut offender).await.1 else { panic!("it ended") };
    let Failure::Crashed { reason, stderr, .. } = &failure else { panic!("{failure:?}") };
    assert_eq!(*reason, LossReason::Stopped(StopReason::ProtocolViolation), "{stderr:?}");
    assert!(stderr.iter().any(|line| line.contains("protocol violation")), "{stderr:?}");
    yard.give("go");
    assert_eq!(text(&end(other).await.expect("it goes on").body), r#""held""#);
    assert_eq!(pool.info().workers.iter().filter(|worker| is_second(worker)).count(), 1);
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    stop(pool).await;
}

fn is_second(worker: &ostler_runtime::WorkerInfo) -> bool {
    worker.view.generation == 2
}

fn streamed(function: &str, arguments: &str) -> Call {
    Call { stream: true, ..call(function, arguments) }
}

#[tokio::test]
async fn a_worker_that_sends_more_chunks_than_it_has_credit_for_is_replaced() {
    is_replaced_alone("overdraws.py", streamed("pour", "[1, 1000]")).await;
}

#[tokio::test]
async fn a_worker_that_sends_more_bytes_than_it_has_credit_for_is_replaced() {
    is_replaced_alone("overdraws.py", streamed("pour", "[100000, 100]")).await;
}

#[tokio::test]
async fn a_worker_that_calls_and_never_reads_the_answers_is_replaced() {
    is_replaced_alone("never-reads.py", call("call_and_call", r#""data""#)).await;
}

#[tokio::test]
async fn a_worker_that_has_its_answers_on_the_control_stream_is_to_read_them_too() {
    is_replaced_alone("never-reads.py", call("call_and_call", r#""control""#)).await;
}

/// The caller's lines are shorter than what it asks for.
#[tokio::test]
async fn a_result_that_is_too_long_for_the_wire_of_its_caller_is_an_error_of_the_call() {
    let directory = Directory::new();
    let called = PoolSpec::new("called", functions("functions.py"), brisk(1));
    let called = start(PoolSpec { directory: directory.clone(), ..called }).await;
    let caller = spec(program("calls-back.py").await, brisk(1));
    let caller = start(PoolSpec { directory, max_line: 64 << 10, ..caller }).await;
    let arguments = json!(["called", "letters", [100_000]]).to_string();
    let told = ask(&caller, "any", &arguments).await;
    let told: Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(told["code"], "result_too_large", "{told:.200}");
    assert_eq!(generation(&caller), 1);
    stop(caller).await;
    stop(called).await;
}

async fn says_too_much() -> Pool {
    one(program("says-too-much.py").await).await
}

#[tokio::test]
async fn progress_of_any_size_is_heard_and_only_what_is_small_is_kept() {
    let pool = says_too_much().await;
    for (size, kept) in [(100, "x".repeat(100)), (1 << 20, "small".to_owned())] {
        let running = pool.call(call("progress", &size.to_string()));
        let id = running.id();
        end(running).await.expect("it is no offence");
        let progress = pool.request(&id).expect("remembered").record.progress.expect("told");
        assert_eq!(progress.get(), format!("{kept:?}"));
    }
    stop(pool).await;
}

/// The lines that a message became.
async fn logged(pool: &Pool, function: &str, arguments: &str) -> Vec<Arc<Line>> {
    end(pool.call(call(function, arguments))).await.expect("it ends");
    let lines = pool.worker_output("test-1").expect("it logged").after(0);
    lines.into_iter().filter(|line| line.stream == Stream::Log).collect()
}

#[tokio::test]
async fn a_message_of_several_lines_is_several_lines() {
    let pool = says_too_much().await;
    let message = json!("one\n2031-01-01 ERROR forged\r\nthree\rfour\n").to_string();
    let lines = logged(&pool, "log", &message).await;
    let texts: Vec<&str> = lines.iter().map(|line| &*line.text).collect();
    assert_eq!(texts, ["one", "2031-01-01 ERROR forged", "three", "four"]);
    assert!(lines.iter().all(|line| line.request.is_some() && line.level == lines[0].level));
    stop(pool).await;
}

#[tokio::test]
async fn a_message_longer_than_all_that_is_kept_is_cut_and_its_end_is_kept() {
    let pool = says_too_much().await;
    let lines = logged(&pool, "log_at_length", "100000").await;
    assert!(lines.iter().all(|line| (1..=8 << 10).contains(&line.text.len())));
    let kept: usize = lines.iter().map(|line| line.text.len()).sum();
    assert!((32 << 10..=64 << 10).contains(&kept), "{kept} bytes in {} lines", lines.len());
    stop(pool).await;
}

/// Events that tell of a refusal, and how many refusals they stand for.
fn refusals(pool: &Pool) -> (u64, u64) {
    let told = events(pool).into_iter().filter(|event| event.kind == EventKind::RequestRejected);
    let untold = |event: &Event| event.detail.get("untold").and_then(|untold| untold.as_u64());
    told.fold((0, 0), |(told, all), event| (told + 1, all + 1 + untold(&event).unwrap_or(0)))
}

#[tokio::test]
async fn a_burst_of_refusals_is_counted_and_pushes_nothing_out_of_the_log() {
    const BURST: u64 = 6_000;
    let pool = one(functions("functions.py")).await;
    within("it is ready", pool.all_ready()).await;
    let refused = async || {
        let error = end(pool.call(call("no_such_function", ""))).await.unwrap_err();
        assert!(matches!(error, CallError::Refused(_)), "{error:?}");
    };
    for _ in 0..BURST {
        refused().await;
    }
    let kinds: Vec<EventKind> = events(&pool).iter().map(|event| event.kind).collect();
    assert!(kinds.contains(&EventKind::WorkerSpawned) && kinds.contains(&EventKind::WorkerReady));
    let mut made = BURST;
    let counted = async {
        while refusals(&pool).1 != made {
            refused().await;
            made += 1;
        }
    };
    within("every refusal is counted", counted).await;
    assert!(refusals(&pool).0 < BURST, "each was told");
    stop(pool).await;
}

/// Replaces a worker by a new one, and waits until it has left.
async fn recycle(pool: &Pool, worker: u64) {
    let reply = within("it is answered", pool.order(Action::Recycle(WorkerId(worker)))).await;
    assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
    let left = || pool.info().workers.iter().all(|info| info.view.id != WorkerId(worker));
    until("it has left", left).await;
}

#[tokio::test]
async fn of_the_workers_that_are_gone_those_that_left_first_are_forgotten() {
    const KEPT: u64 = 64;
    let pool = start(spec(program("answers-twice.sh").await, brisk(2))).await;
    within("both are ready", pool.all_ready()).await;
    let known = |worker: u64| pool.worker_history(&format!("test-{worker}")).is_some();
    for worker in 2..2 + KEPT {
        recycle(&pool, worker).await;
    }
    assert!(known(2));
    recycle(&pool, 1).await;
    assert!(known(1), "it is the last that left");
    assert!(!known(2), "it is the first that left");
    assert_eq!(pool.outputs().len() as u64, KEPT + 2);
    stop(pool).await;
}

#[tokio::test]
async fn functions_beyond_the_numbers_of_the_wire_are_called_by_name() {
    let pool = one(program("announces-many.py").await).await;
    for function in ["f0", "f65534", "f65535", "f65536", "f65545"] {
        assert_eq!(ask(&pool, function, "").await, format!("{function:?}"));
    }
    stop(pool).await;
}
