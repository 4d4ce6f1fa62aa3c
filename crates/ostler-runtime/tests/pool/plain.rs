//! A worker of twenty lines in plain Python: the base messages, over either kind of socket.

use std::path::Path;
use std::time::Duration;

use ostler_runtime::core::{Checkup, Settings, Started};
use ostler_runtime::{Call, CallError, EventKind, Failure, Pool, PoolSpec, ProcessSettings};

use super::support::*;

const SOCKETS: [bool; 2] = [false, true];

async fn minimal(named_socket: bool) -> Pool {
    let settings = Settings { cancel_grace: LIMIT, ..Settings::of_size(1) };
    let processes = ProcessSettings { named_socket, ..ProcessSettings::default() };
    let spec = spec(program("minimal.py").await, settings);
    start(PoolSpec { processes, ..spec }).await
}

#[tokio::test]
async fn it_answers_whatever_it_prints() {
    for named in SOCKETS {
        let pool = minimal(named).await;
        for argument in ["1", r#"{"a":[null,"é"]}"#, r#""\u0000""#] {
            assert_eq!(
                ask(&pool, "echo", argument).await.replace(' ', ""),
                argument.replace("é", "\\u00e9")
            );
        }
        let output = pool.info().workers[0].last_lines(20);
        assert!(output.iter().any(|line| line == "loading"), "{output:?}");
        assert_eq!(generation(&pool), 1, "named: {named}");
        stop(pool).await;
    }
}

#[tokio::test]
async fn it_streams() {
    for named in SOCKETS {
        let pool = minimal(named).await;
        let mut running = pool.call(Call { stream: true, ..call("count", "3") });
        let (chunks, end) = drain(&mut running).await;
        assert_eq!(chunks, ["0", "1", "2"], "named: {named}");
        assert_eq!(text(&end.expect("it completes")), r#""done""#);
        stop(pool).await;
    }
}

#[tokio::test]
async fn its_error_is_a_text() {
    let pool = minimal(false).await;
    let Failure::Application(error) = failure(pool.call(call("other", ""))).await else {
        panic!("it raised")
    };
    assert_eq!((&*error.message, &*error.code), ("no such function", "application_error"));
    stop(pool).await;
}

#[tokio::test]
async fn it_hears_a_cancel_and_is_kept() {
    for named in SOCKETS {
        let pool = minimal(named).await;
        let running = pool.call(call("wait", ""));
        until("it runs", || running.worker().is_some()).await;
        running.cancel();
        let cancelled = failure(running).await;
        assert_eq!(cancelled, Failure::Cancelled { started: Started::Yes });
        assert_eq!(ask(&pool, "echo", "2").await, "2");
        assert_eq!(generation(&pool), 1, "named: {named}");
        stop(pool).await;
    }
}

const HASTY: Checkup = Checkup {
    interval: Duration::from_millis(50),
    timeout: Duration::from_millis(500),
    again: Duration::from_millis(50),
    failures: 3,
};

#[tokio::test]
async fn one_that_stands_still_is_found_by_its_checks() {
    let settings = Settings { checkup: Some(HASTY), ..brisk(1) };
    let pool = start(spec(program("minimal.py").await, settings)).await;
    until("it answers checks", || pool.tally().checks().get("passed") > 2).await;
    let generation = generation(&pool);
    let stopped = Process::find(pid(&pool, 0).await);
    send(stopped.pid, libc::SIGSTOP);
    until("it is replaced", || super::support::generation(&pool) > generation).await;
    gone(&stopped).await;
    let crashed = event(&pool, EventKind::WorkerCrashed).await;
    assert_eq!(crashed.detail["process_state"], "stopped", "{crashed:?}");
    assert_eq!(ask(&pool, "echo", "2").await, "2");
    stop(pool).await;
}

/// Only `ready` and one answer per query are required of a worker.
#[tokio::test]
async fn one_that_knows_no_checks_is_not_replaced_for_that() {
    let settings = Settings { checkup: Some(HASTY), ..brisk(1) };
    let pool = start(spec(program("answers-twice.sh").await, settings)).await;
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    until("it is asked in vain", || pool.tally().checks().get("timed_out") >= 3).await;
    assert_eq!(ask(&pool, "echo", "2").await, "2");
    assert_eq!(generation(&pool), 1, "it did all that is required");
    stop(pool).await;
}

#[tokio::test]
async fn a_named_socket_is_gone_with_its_worker() {
    let pool = minimal(true).await;
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    let environ = std::fs::read(format!("/proc/{}/environ", pid(&pool, 0).await)).unwrap();
    let environ = String::from_utf8(environ).unwrap();
    let socket = environ.split('\0').find_map(|pair| pair.strip_prefix("OSTLER_SOCKET="));
    let socket = Path::new(socket.expect("it was told"));
    stop(pool).await;
    assert!(!socket.exists(), "{} is left", socket.display());
    assert!(!socket.parent().expect("a directory").exists());
}

#[tokio::test]
async fn a_wrong_token_is_not_let_in() {
    let processes = ProcessSettings { named_socket: true, ..ProcessSettings::default() };
    let spec = spec(program("wrong-token.py").await, brisk(1));
    let pool = start(PoolSpec { processes, ..spec }).await;
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    assert_eq!(generation(&pool), 2, "the first process was replaced");
    stop(pool).await;
}

#[tokio::test]
async fn a_worker_that_announces_nothing_is_asked_for_any_function() {
    let pool = minimal(false).await;
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    assert!(pool.functions().is_empty());
    let error = end(pool.call(call("surely not there", ""))).await.unwrap_err();
    assert!(matches!(error, CallError::Failed(Failure::Application(_))), "{error:?}");
    stop(pool).await;
}

#[tokio::test]
async fn the_sdk_connects_both_of_its_streams_to_a_named_socket() {
    let settings = Settings { cancel_grace: LIMIT, ..Settings::of_size(1) };
    let processes = ProcessSettings { named_socket: true, ..ProcessSettings::default() };
    let pool = start(PoolSpec { processes, ..spec(functions("functions.py"), settings) }).await;
    assert_eq!(ask(&pool, "echo", "[1]").await, "1");
    let running = pool.call(call("wait", "[600]"));
    until("it runs", || running.worker().is_some()).await;
    running.cancel();
    let cancelled = failure(running).await;
    assert_eq!(cancelled, Failure::Cancelled { started: Started::Yes });
    assert_eq!(ask(&pool, "echo", "[2]").await, "2");
    assert_eq!(generation(&pool), 1, "the cancel was heard while it worked");
    stop(pool).await;
}
