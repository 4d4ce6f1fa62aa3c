//! Ends that come at the same moment as something else.

use std::collections::BTreeMap;
use std::io::Write as _;

use ostler_runtime::core::Settings;
use ostler_runtime::{CallError, Failure, Item, PoolSpec, ProcessSettings, Profile, Running};

use super::support::*;

/// The one end of a call. There is no second one to be had.
async fn only_end(mut running: Running) -> &'static str {
    let Item::End(end) = within("it ends", running.next()).await else { panic!("nothing streams") };
    let again = std::future::poll_fn(|cx| std::task::Poll::Ready(running.poll_next(cx))).await;
    assert!(again.is_pending(), "it ended twice: {again:?}");
    match end {
        Ok(_) => "completed",
        Err(CallError::Failed(Failure::Cancelled { .. })) => "cancelled",
        Err(other) => panic!("{other:?}"),
    }
}

/// The handler is let go and its call is cancelled, now the one first and now the other.
async fn cancel_against_completion(profile: Profile, races: u64) {
    let yard = Yard::new();
    let mut pipe = yard.pipe("pipe");
    let settings = Settings { cancel_grace: 2 * LIMIT, ..Settings::of_size(1) };
    let processes = ProcessSettings { profile, ..ProcessSettings::default() };
    let spec = PoolSpec { processes, ..spec(functions("functions.py"), settings) };
    let pool = start(yard.around(spec)).await;
    within("the worker is ready", pool.ready()).await;
    let mut ends = BTreeMap::new();
    for race in 1..=races {
        let running = pool.call(call("await_token", &format!("[{race}]")));
        let let_go = race.to_le_bytes();
        match race % 4 {
            0 => running.cancel(),
            _ => pipe.write_all(&let_go).expect("room in the pipe"),
        }
        for _ in 0..race % 40 {
            tokio::task::yield_now().await;
            std::hint::black_box(std::fs::metadata("/proc/self/stat").is_ok());
        }
        match race % 4 {
            0 => pipe.write_all(&let_go).expect("room in the pipe"),
            _ => running.cancel(),
        }
        *ends.entry(only_end(running).await).or_insert(0) += 1;
    }
    assert_eq!(ends.values().sum::<u64>(), races);
    assert_eq!(ends.len(), 2, "no race at all: {ends:?}");
    assert_eq!(ask(&pool, "echo", r#"["after"]"#).await, r#""after""#);
    assert_eq!(generation(&pool), 1, "the same process");
    until("everything is let go of", || pool.info().view.running == 0).await;
    let (counters, tally) = (pool.info().view.counters, pool.tally());
    assert_eq!((counters.arrived, counters.resolved, counters.refused), (races + 1, races + 1, 0));
    assert_eq!(tally.outcomes().get("ok"), ends["completed"] + 1);
    assert_eq!(tally.outcomes().get("cancelled"), ends["cancelled"]);
    stop(pool).await;
}

#[tokio::test]
async fn a_thousand_cancels_against_completion_have_one_end_each_and_harm_nobody() {
    cancel_against_completion(Profile::Process, 1_000).await;
}

#[tokio::test]
async fn cancels_against_completion_in_threads_have_one_end_each() {
    cancel_against_completion(Profile::Thread { threads: 2 }, 300).await;
}
