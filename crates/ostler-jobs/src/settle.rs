//! Has the end of an attempt stored. It is offered again until the ledger takes it or says that it
//! comes too late: an end that was forgotten would leave its job running for ever.

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

pub(crate) async fn settle(office: &Office, charge: Charge, ending: Ending) {
    let Ending { mut end, mut said, .. } = ending;
    let (job, fence) = (charge.id(), charge.fence());
    let mut wait = FIRST_WAIT;
    loop {
        // Both are handed in at once and taken in this order: one commit, not two.
        let say = async {
            if said.is_empty() { Ok(()) } else { office.ledger.say(job, fence, said.clone()).await }
        };
        let finish = office.ledger.finish(job, fence, end.clone());
        let (stored, finished) = tokio::join!(say, finish);
        if stored.is_ok() {
            said.clear();
        }
        match finished {
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
mod tests {
    use std::sync::Arc;

    use ostler_runtime::{Directory, EventLog};
    use ostler_store::Content;
    use ostler_store::ledger::job::{NewJob, Saying};
    use ostler_store::ledger::key::Asked;
    use ostler_store::ledger::{JobId, Ledger, LedgerSettings};
    use serde_json::Value;

    use super::*;
    use crate::office::JobSettings;

    async fn office() -> Arc<Office> {
        let ledger = Ledger::in_memory(LedgerSettings { result_max: 8, ..Default::default() });
        let job = NewJob::new("py", "f", Content::new("application/json", ""));
        ledger.submit(vec![job], Asked::default()).await.expect("it is taken");
        let log = Arc::new(EventLog::new(1));
        Office::open(ledger, Directory::new(), log, JobSettings::default())
    }

    async fn claim(office: &Office) -> Charge {
        let claimed = office.ledger.claim("py", 1).await.expect("it is there").remove(0);
        office.roll.claiming().take(claimed)
    }

    fn completed(text: &'static str) -> Ending {
        let end = AttemptEnd::Completed(Content::new("application/json", text));
        Ending { end, said: vec![Saying::Message(1.into())], time: Duration::ZERO }
    }

    async fn job(office: &Office, id: &JobId) -> Job {
        office.ledger.job(id).await.expect("it is there")
    }

    #[tokio::test]
    async fn what_was_said_is_stored_before_the_end() {
        let office = office().await;
        let charge = claim(&office).await;
        let id = charge.id().clone();
        settle(&office, charge, completed("7")).await;
        assert_eq!(job(&office, &id).await.status, JobStatus::Completed);
        let story = office.ledger.events(&id, 0, 100).await.expect("it is there");
        let kinds: Vec<&str> = story.iter().map(|event| &*event.kind).rev().take(2).collect();
        assert_eq!(kinds, ["status", "message"]);
        assert!(!office.roll.holds(&id));
    }

    #[tokio::test]
    async fn an_end_that_comes_too_late_changes_nothing() {
        let office = office().await;
        let late = claim(&office).await;
        let id = late.id().clone();
        let released = AttemptEnd::Released;
        office.ledger.finish(&id, late.fence(), released).await.expect("it is taken");
        let next = claim(&office).await;
        settle(&office, late, completed("7")).await;
        assert_eq!(job(&office, &id).await.status, JobStatus::Running);
        settle(&office, next, completed("8")).await;
        assert_eq!(&job(&office, &id).await.result.expect("one").bytes[..], b"8");
    }

    #[tokio::test]
    async fn a_result_that_is_too_large_fails_the_job() {
        let office = office().await;
        let charge = claim(&office).await;
        let id = charge.id().clone();
        settle(&office, charge, completed(r#""more than eight""#)).await;
        let job = job(&office, &id).await;
        assert_eq!(job.status, JobStatus::Failed);
        assert_ne!(job.error, None::<Value>);
    }
}
