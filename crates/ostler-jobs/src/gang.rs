//! Jobs of several workers. Their places are had first, all at once or none, and only then is the
//! job claimed: a gang that waits for its workers is PENDING and holds nothing.
//!
//! One gang waits at a time, the most urgent; those that run do not keep the next one from waiting.

use std::sync::Arc;
use std::time::Duration;

use ostler_runtime::{Lease, LeaseRequest, Pool};
use ostler_store::ledger::{JobId, LedgerError};
use tokio::sync::oneshot;

use crate::attempt::{self, Place};
use crate::foreman::Foreman;
use crate::hand::FOR_EVER;
use crate::office::Stage;
use crate::roll::Charge;
use crate::settle;

/// Most news is of small jobs: no need to look more often.
const LOOKS_APART: Duration = Duration::from_millis(50);
/// After a refusal, or when the ledger does not answer.
const AGAIN: Duration = Duration::from_millis(500);

pub(crate) async fn seek(foreman: Arc<Foreman>) {
    let mut stage = foreman.office.stage.subscribe();
    let working = async {
        loop {
            foreman.gangs.notified().await;
            let pause = match next(&foreman).await {
                Looked::Nothing => LOOKS_APART,
                Looked::Done => {
                    foreman.gangs.notify_one();
                    continue;
                }
                Looked::NotNow => {
                    foreman.gangs.notify_one();
                    AGAIN
                }
            };
            tokio::time::sleep(pause).await;
        }
    };
    tokio::select! {
        () = working => {}
        _ = stage.wait_for(|stage| *stage != Stage::Working) => {}
    }
}

enum Looked {
    Nothing,
    Done,
    NotNow,
}

async fn next(foreman: &Arc<Foreman>) -> Looked {
    let office = &foreman.office;
    let (Ok(gang), Some(pool)) =
        (office.ledger.next_gang(&foreman.pool).await, foreman.running_pool())
    else {
        return Looked::NotNow;
    };
    let Some((job, workers)) = gang else { return Looked::Nothing };
    let request = LeaseRequest { workers, ttl: FOR_EVER, timeout: FOR_EVER };
    let leased = tokio::select! {
        leased = pool.lease(request) => leased,
        () = gone(foreman, &job) => return Looked::Done,
    };
    // Also where the pool has too few workers: it had enough when the job was taken, and may again.
    let Ok(lease) = leased else { return Looked::NotNow };
    // A task of its own: what the ledger has given must be taken, whatever becomes of this one.
    let (claimed, answer) = oneshot::channel();
    office.tasks.spawn(begin(Arc::clone(foreman), job, (pool, lease), claimed));
    match answer.await {
        Ok(true) => Looked::Done,
        Ok(false) | Err(_) => Looked::NotNow,
    }
}

/// Waits until the job cannot be had any more.
async fn gone(foreman: &Foreman, job: &JobId) {
    let mut changes = foreman.office.followers.follow(job);
    loop {
        match foreman.office.ledger.job(job).await {
            Ok(job) if !job.status.terminal() => {}
            Ok(_) | Err(LedgerError::NoJob { .. }) => return,
            Err(_) => {}
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

async fn begin(
    foreman: Arc<Foreman>,
    job: JobId,
    (pool, lease): (Pool, Lease),
    claimed: oneshot::Sender<bool>,
) {
    let charge = claim(&foreman, &job).await;
    // Nobody hears it who has stopped looking.
    let _ = claimed.send(charge.is_ok());
    let Ok(Some(charge)) = charge else { return };
    let ending = attempt::run(&charge, Place::Leased(&pool, &lease), &foreman.office).await;
    drop(lease);
    settle::settle(&foreman.office, charge, ending).await;
}

/// None: somebody else has it, or it has its end.
async fn claim(foreman: &Arc<Foreman>, job: &JobId) -> Result<Option<Charge>, LedgerError> {
    let books = foreman.books.read().await;
    let claiming = foreman.office.roll.claiming();
    let claimed = foreman.office.ledger.claim_job(job).await;
    let charge = claimed.map(|claimed| claimed.map(|claimed| claiming.take(claimed)));
    drop((claiming, books));
    match &charge {
        Ok(Some(_)) => foreman.change(|crew| crew.fewer(1)),
        Ok(None) => {}
        Err(error) => foreman.claim_failed(error),
    }
    charge
}
