//! Everything at once: jobs that end, fail, die and are cancelled, on workers that are killed.

use ostler_core::JobStatus;
use ostler_runtime::core::Action;
use ostler_store::ledger::job::NewJob;

use super::support::*;

fn mixed(n: usize) -> NewJob {
    let name = format!("[\"{n}\"]");
    match n % 6 {
        0 => job("die", "[2]"),
        1 => job("retry_until", "[2]"),
        2 => NewJob { worker_count: 2, ..job("run", &name) },
        3 => job("count", "[20]"),
        4 => job("scatter", "[2,2]"),
        _ => job("run", &name),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_job_has_one_end_and_nothing_is_left() {
    let inn = Inn::of_size(3).await;
    let ids = inn.submit_all((0..90).map(mixed).collect()).await;
    for (n, id) in ids.iter().enumerate() {
        match n % 10 {
            1 => drop(inn.pool.order(Action::PausePool).await),
            2 => drop(inn.pool.order(Action::ResumePool).await),
            3 => drop(inn.ledger().cancel(id, Default::default()).await),
            7 => {
                let workers = inn.pool.info().workers;
                if let Some(worker) = workers.iter().find(|worker| !worker.view.status.terminal()) {
                    inn.pool.order(Action::Terminate(worker.view.id)).await;
                }
            }
            _ => {}
        }
    }
    for id in &ids {
        let ended = inn.end(id).await;
        let attempts = inn.attempts(id).await;
        assert!(attempts.iter().all(|attempt| attempt.outcome.is_some()), "{attempts:?}");
        assert_eq!(attempts.len() as u32, ended.attempt, "{ended:?} {attempts:?}");
        let numbers: Vec<u32> = attempts.iter().map(|attempt| attempt.attempt).collect();
        assert_eq!(numbers, (1..=ended.attempt).collect::<Vec<_>>());
    }
    let counts = inn.ledger().counts().await.expect("counts");
    let open = |status: &JobStatus| !status.terminal();
    assert!(counts.by_status.iter().all(|(status, count)| !open(status) || *count == 0));
    let report = inn.ledger().verify().await.expect("it is looked at");
    assert!(report.findings.is_empty(), "{report:?}");
    inn.all_free().await;
    inn.close().await;
}
