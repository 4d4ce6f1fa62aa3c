//! The driver tells the core everything, and the core decides by nothing else.

use std::collections::BTreeMap;
use std::time::Duration;

use ostler_runtime::core::{Action, Phase, Settings};
use ostler_runtime::{Call, CallError, Failure, Pool, PoolSpec};

use super::support::*;

/// One call of a mixed load: what became of it, in a word.
async fn mixed(pool: Pool, number: u64) -> &'static str {
    let owned = |call: Call| Call { owner: number % 3, priority: (number % 5) as i8, ..call };
    let running = match number % 8 {
        0 | 1 => pool.call(owned(call("echo", "[1]"))),
        2 => pool.call(owned(Call { stream: true, ..call("count", "[700]") })),
        3 => pool.call(owned(call("fail", ""))),
        4 => pool.call(owned(Call { idempotent: number % 16 == 4, ..call("die", "") })),
        5 => {
            let timeout = Some(Duration::from_millis(5 + number % 40));
            pool.call(owned(Call { timeout, ..call("wait", "") }))
        }
        _ => pool.call(owned(call("count", "[100000000]"))),
    };
    match number % 8 {
        6 => {
            until("it runs or has ended", || running.worker().is_some()).await;
            running.cancel();
        }
        7 => {
            until("it runs or has ended", || running.worker().is_some()).await;
            drop(running);
            return "dropped";
        }
        _ => {}
    }
    match end(running).await {
        Ok(_) => "answered",
        Err(CallError::Refused(_)) => "refused",
        Err(CallError::Failed(Failure::Application(_))) => "raised",
        Err(CallError::Failed(Failure::Cancelled { .. })) => "cancelled",
        Err(CallError::Failed(Failure::TimedOut { .. })) => "timed out",
        Err(CallError::Failed(Failure::Crashed { .. })) => "crashed",
        Err(CallError::Failed(Failure::ResultTooLarge { .. })) => "too large",
    }
}

/// Somebody who pauses, resumes, recycles and kills while others call.
async fn meddle(pool: Pool) {
    for round in 0..30 {
        let workers = pool.info().workers;
        let worker = &workers[round % workers.len()];
        let id = worker.view.id;
        let action = match round % 5 {
            0 => Action::Pause { worker: id, freeze: round % 10 == 0 },
            1 => Action::Create,
            2 => Action::Terminate(id),
            _ => Action::Recycle(id),
        };
        let _ = within("the order is answered", pool.order(action)).await;
        for worker in &workers {
            let _ =
                within("the order is answered", pool.order(Action::Resume(worker.view.id))).await;
        }
        if let (Some(pid), Some(Phase::Ready)) = (worker.pid, worker.view.phase)
            && Process::lives_now(pid)
        {
            send(pid, libc::SIGKILL);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mixed_load_replays_in_the_core_to_the_same_commands() {
    let settings = Settings {
        restart_max: 10_000,
        queue_timeout: LIMIT,
        cancel_grace: Duration::from_secs(5),
        seed: 7,
        ..brisk(3)
    };
    let settings = Settings {
        backoff: ostler_runtime::core::Backoff {
            max: Duration::from_millis(20),
            ..settings.backoff
        },
        ..settings
    };
    let spec = PoolSpec { traced: true, ..spec(functions("functions.py"), settings) };
    let pool = start(spec).await;
    let calls: Vec<_> = (0..160).map(|number| tokio::spawn(mixed(pool.clone(), number))).collect();
    let meddler = tokio::spawn(meddle(pool.clone()));
    let mut ends = BTreeMap::new();
    for call in calls {
        *ends.entry(call.await.expect("it ends in one way")).or_insert(0) += 1;
    }
    meddler.await.expect("every order is answered");
    for wanted in ["answered", "raised", "cancelled", "timed out", "crashed", "dropped"] {
        assert!(ends.contains_key(wanted), "nothing {wanted}: {ends:?}");
    }
    pool.shut_down(false);
    within("the pool stops", pool.stopped()).await;
    let counters = pool.info().view.counters;
    assert_eq!(counters.arrived, counters.resolved + counters.refused, "{counters:?}");
    assert_eq!(counters.arrived, 160);
    let trace = pool.take_trace().expect("it was traced");
    assert!(trace.len() > 500, "{} steps", trace.len());
    trace.replay().expect("the same commands");
}
