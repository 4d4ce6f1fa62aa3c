//! Attempts that this node has claimed and does not know of. A claim whose commit was in doubt may
//! have been stored all the same; what it claimed is found again and given back.

use std::sync::Arc;
use std::time::Duration;

use ostler_core::JobStatus;
use ostler_store::ledger::LedgerError;
use ostler_store::ledger::job::{Attempt, AttemptEnd, Job, JobFilter};

use crate::foreman::Foreman;

const PAGE: usize = 100;
const AGAIN: Duration = Duration::from_secs(1);

/// Looks until it could look at everything once.
pub(crate) async fn give_back(foreman: Arc<Foreman>) {
    let mut stage = foreman.office.stage.subscribe();
    while let Err(error) = look(&foreman).await {
        tracing::warn!(pool = &*foreman.pool, "claims in doubt cannot be looked at: {error}");
        tokio::select! {
            () = tokio::time::sleep(AGAIN) => {}
            _ = stage.changed() => return,
        }
    }
}

async fn look(foreman: &Foreman) -> Result<(), LedgerError> {
    let mut filter = JobFilter {
        pool: Some(foreman.pool.to_string()),
        status: Some(JobStatus::Running),
        ..JobFilter::default()
    };
    loop {
        let page = foreman.office.ledger.jobs(&filter, PAGE).await?;
        for job in &page {
            release(foreman, job).await?;
        }
        match page.last() {
            Some(last) if page.len() == PAGE => filter.before = Some(last.id.clone()),
            _ => return Ok(()),
        }
    }
}

async fn release(foreman: &Foreman, job: &Job) -> Result<(), LedgerError> {
    let office = &foreman.office;
    let _books = foreman.books.write().await;
    let attempts = office.ledger.attempts(&job.id).await?;
    let open = attempts.last().filter(|attempt| attempt.ended_at.is_none());
    let ours = |attempt: &&Attempt| attempt.node == office.ledger.node();
    if let Some(attempt) = open.filter(ours).filter(|_| !office.roll.holds(&job.id)) {
        office.ledger.finish(&job.id, attempt.fence, AttemptEnd::Released).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ostler_runtime::{Directory, EventLog};
    use ostler_store::Content;
    use ostler_store::ledger::job::NewJob;
    use ostler_store::ledger::key::Asked;
    use ostler_store::ledger::{Ledger, LedgerSettings};

    use super::*;
    use crate::office::{JobSettings, Office};

    async fn of_a_ledger_with(jobs: usize) -> Arc<Foreman> {
        let ledger = Ledger::in_memory(LedgerSettings::default());
        let job = NewJob::new("py", "f", Content::new("application/json", ""));
        ledger.submit(vec![job; jobs], Asked::default()).await.expect("they are taken");
        let log = Arc::new(EventLog::new(1));
        let office = Office::open(ledger, Directory::new(), log, JobSettings::default());
        Foreman::hire(office, "py")
    }

    #[tokio::test]
    async fn what_was_claimed_and_never_heard_of_can_be_claimed_again() {
        let foreman = of_a_ledger_with(PAGE + 1).await;
        let ledger = &foreman.office.ledger;
        let claimed = ledger.claim("py", PAGE + 1).await.expect("they are there");
        assert_eq!(claimed.len(), PAGE + 1);
        give_back(Arc::clone(&foreman)).await;
        let again = ledger.claim("py", PAGE + 1).await.expect("they are there");
        assert_eq!(again.len(), PAGE + 1);
        assert!(again.iter().all(|claimed| claimed.attempt == 1), "it does not count");
        foreman.office.tasks.abort();
    }

    #[tokio::test]
    async fn what_is_on_the_roll_stays_where_it_is() {
        let foreman = of_a_ledger_with(1).await;
        let ledger = &foreman.office.ledger;
        let claimed = ledger.claim("py", 1).await.expect("it is there").remove(0);
        let charge = foreman.office.roll.claiming().take(claimed);
        give_back(Arc::clone(&foreman)).await;
        assert_eq!(ledger.claim("py", 1).await.expect("it is asked").len(), 0);
        drop(charge);
        foreman.office.tasks.abort();
    }
}
