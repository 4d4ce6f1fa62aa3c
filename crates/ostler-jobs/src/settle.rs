//! Has the end of an attempt stored. It is offered again until the ledger takes it or says that it
//! comes too late: an end that was forgotten would leave its job running for ever.
//!
//! What was said last is stored before the end, because nothing can be said after it. Under load that
//! costs no commit: the words of one job go with the end of another.

use std::time::Duration;

use ostler_core::{AttemptFailure, JobStatus};
use ostler_store::ledger::LedgerError;
use ostler_store::ledger::job::{AttemptEnd, Finished, Job};
use serde_json::json;

use crate::attempt::Ending;
use crate::events;
use crate::office::Office;
use crate::roll::Charge;

const FIRST_WAIT: Duration = Duration::from_millis(20);
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// An end does not wait for ever for words that the store does not want.
const WORDS_TRIES: u32 = 16;

pub(crate) async fn settle(office: &Office, charge: Charge, ending: Ending) {
    let Ending { mut end, mut said, .. } = ending;
    let (job, fence) = (charge.id(), charge.fence());
    let (mut wait, mut tries) = (FIRST_WAIT, 0);
    loop {
        tries += 1;
        if tries == WORDS_TRIES {
            said.clear();
        }
        let finished = office.ledger.finish_saying(job, fence, said.clone(), end.clone());
        match finished.await {
            Ok(Finished::Taken(job)) => return tell(office, &job, &end),
            Ok(Finished::Stale) | Err(LedgerError::NoJob { .. }) => return,
            Err(error) if passes(&error) => {
                tracing::warn!(%job, "the end of a job's attempt cannot be stored yet: {error}");
                tokio::time::sleep(wait).await;
                wait = (2 * wait).min(LONGEST_WAIT);
            }
            Err(error) => match refused(&end, &error) {
                Some(instead) => end = instead,
                None => {
                    tracing::error!(%job, "the end of a job's attempt is not taken: {error}");
                    return;
                }
            },
        }
    }
}

/// The store may take it later.
fn passes(error: &LedgerError) -> bool {
    match error {
        LedgerError::Full { .. }
        | LedgerError::Unavailable { .. }
        | LedgerError::Doubtful { .. } => true,
        LedgerError::NoJob { .. }
        | LedgerError::NoSchedule { .. }
        | LedgerError::ScheduleExists { .. }
        | LedgerError::Invalid { .. }
        | LedgerError::Illegal { .. }
        | LedgerError::Quota { .. }
        | LedgerError::ScheduleQuota { .. }
        | LedgerError::KeyQuota { .. } => false,
    }
}

/// A result that the ledger does not want is a failure of the job.
fn refused(end: &AttemptEnd, error: &LedgerError) -> Option<AttemptEnd> {
    matches!(end, AttemptEnd::Completed(_)).then(|| AttemptEnd::Failed {
        failure: AttemptFailure::Error,
        error: json!({ "code": "result_refused", "message": error.to_string() }),
    })
}

/// That it is tried again changes no status, so only this place knows.
fn tell(office: &Office, job: &Job, end: &AttemptEnd) {
    let again = job.status == JobStatus::Running && !job.waiting;
    if let AttemptEnd::Failed { failure, .. } = end
        && again
    {
        events::publish_retried(&office.log, job, *failure);
    }
}

#[cfg(test)]
mod tests;
