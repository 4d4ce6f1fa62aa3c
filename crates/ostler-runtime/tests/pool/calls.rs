//! Calls of Python functions, their deadlines and their cancels.

use std::path::PathBuf;
use std::time::Duration;

use ostler_runtime::core::{Refusal, Settings, Started, Waiting};
use ostler_runtime::{Call, CallError, Failure, Item, Pool, PoolSpec, Program, Refused};

use super::support::*;

fn example(name: &str) -> Program {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    Program::Python { file, interpreter: "python3".to_owned() }
}

async fn hello(size: u32) -> Pool {
    let spec = PoolSpec::new("hello", example("hello.py"), Settings::of_size(size));
    let pool = Pool::start(spec).await.expect("python3 is there");
    pool.all_ready().await;
    pool
}

#[tokio::test]
async fn a_call_returns_what_the_function_returns() {
    let pool = hello(1).await;
    let answer = pool.call(call("greet", r#"{"name":"Ada"}"#)).result().await.unwrap();
    assert_eq!(&answer.body.bytes[..], br#""hello, Ada""#);
    assert_eq!(answer.worker.as_deref(), Some("hello-1"));
    pool.shut_down(false);
    pool.stopped().await;
}

#[tokio::test]
async fn a_generator_streams_and_ends() {
    let pool = hello(1).await;
    let mut running = pool.call(Call { stream: true, ..call("count", "[3]") });
    let mut seen = Vec::new();
    loop {
        match running.next().await {
            Item::Chunk(chunk) => seen.push(String::from_utf8(chunk.bytes.to_vec()).unwrap()),
            Item::End(end) => break drop(end.unwrap()),
        }
    }
    assert_eq!(seen, ["0", "1", "2"]);
    let gathered = pool.call(call("count", "[3]")).result().await.unwrap();
    assert_eq!(&gathered.body.bytes[..], b"[0,1,2]");
}

#[tokio::test]
async fn a_deadline_ends_a_call_and_the_worker_is_reused() {
    let pool = hello(1).await;
    let slow = Call { timeout: Some(Duration::from_millis(200)), ..call("count", "[1000000000]") };
    let error = pool.call(slow).result().await.unwrap_err();
    assert!(matches!(error, CallError::Failed(Failure::TimedOut { .. })), "{error:?}");
    let answer = pool.call(call("greet", "{}")).result().await.unwrap();
    assert_eq!(&answer.body.bytes[..], br#""hello, world""#);
    assert_eq!(pool.info().workers[0].view.generation, 1, "the same process");
}

#[tokio::test]
async fn a_deadline_in_the_queue_says_so_and_nothing_has_run() {
    let yard = Yard::new();
    let pool = start(yard.around(spec(functions("functions.py"), Settings::of_size(1)))).await;
    let holder = pool.call(call("hold", r#"["first"]"#));
    until("the worker is held", || yard.lines("begun").len() == 1).await;
    let timeout = Some(Duration::from_millis(50));
    let late = failure(pool.call(Call { timeout, ..call("record", r#"["late"]"#) })).await;
    assert_eq!(
        late,
        Failure::TimedOut { phase: Waiting::Queue, started: Started::No, condition: None }
    );
    yard.give("go");
    end(holder).await.expect("it was let go");
    assert_eq!(ask(&pool, "record", r#"["next"]"#).await, r#""next""#);
    assert_eq!(yard.lines("ledger"), ["next test-1#1"]);
    stop(pool).await;
}

#[tokio::test]
async fn a_full_queue_and_an_impatient_one_are_refusals() {
    let yard = Yard::new();
    let settings =
        Settings { queue_max: 1, queue_timeout: Duration::from_millis(50), ..Settings::of_size(1) };
    let pool = start(yard.around(spec(functions("functions.py"), settings))).await;
    within("the worker is ready", pool.ready()).await;
    let holder = pool.call(call("hold", r#"["first"]"#));
    until("the worker is held", || yard.lines("begun").len() == 1).await;
    let waits = pool.call(call("record", r#"["waits"]"#));
    let Err(CallError::Refused(Refused::Pool(Refusal::Saturated { queued, busy, .. }))) =
        end(pool.call(call("record", r#"["too many"]"#))).await
    else {
        panic!("it must be refused")
    };
    assert_eq!((queued, busy), (1, 1));
    let waited = end(waits).await.unwrap_err();
    assert_eq!(waited, CallError::Refused(Refused::Pool(Refusal::QueueTimeout)));
    yard.give("go");
    end(holder).await.expect("it was let go");
    assert!(yard.lines("ledger").is_empty());
    stop(pool).await;
}

#[tokio::test]
async fn thousands_of_deadlines_at_once_each_have_their_outcome() {
    let yard = Yard::new();
    let settings = Settings { queue_max: 10_000, queue_timeout: LIMIT, ..Settings::of_size(1) };
    let pool = start(yard.around(spec(functions("functions.py"), settings))).await;
    let holder = pool.call(call("hold", r#"["first"]"#));
    until("the worker is held", || yard.lines("begun").len() == 1).await;
    let timeout = Some(Duration::from_millis(300));
    let late: Vec<_> =
        (0..5_000).map(|_| pool.call(Call { timeout, ..call("record", r#"["late"]"#) })).collect();
    for running in late {
        let late = failure(running).await;
        assert_eq!(
            late,
            Failure::TimedOut { phase: Waiting::Queue, started: Started::No, condition: None }
        );
    }
    yard.give("go");
    end(holder).await.expect("it was let go");
    assert_eq!(ask(&pool, "echo", "[1]").await, "1");
    assert!(yard.lines("ledger").is_empty());
    stop(pool).await;
}
