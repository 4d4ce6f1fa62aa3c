//! A real pool of real Python processes.

use std::path::PathBuf;
use std::time::Duration;

use ostler_runtime::core::Settings;
use ostler_runtime::{Body, Call, CallError, Failure, Item, Pool, PoolSpec, Program};

ostler_runtime::enter_before_main!();

fn example(name: &str) -> Program {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    Program::Python { file, interpreter: "python3".to_owned() }
}

fn call(function: &str, arguments: &str) -> Call {
    Call {
        function: function.to_owned(),
        body: Body::json(arguments.to_owned()),
        ..Call::default()
    }
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
