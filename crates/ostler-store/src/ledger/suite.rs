//! What every backend must do, case by case. A backend brings a [`Ground`]; `conform!` makes one
//! test of every case on it.

pub(super) mod audit;
pub(super) mod cases;
pub(super) mod claims;
pub(super) mod ends;
pub(super) mod faults;
mod faulty;
pub(super) mod histories;
pub(super) mod keys;
pub(super) mod lists;
pub(super) mod nodes;
pub(super) mod schedules;
pub(super) mod submissions;
pub(super) mod time;
pub(super) mod trees;
pub(super) mod workers;

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ostler_core::{AttemptFailure, JobStatus, Retrying};
use serde_json::{Value, json};

use super::audit::{Entity, Transition};
use super::backend::Backend;
use super::error::LedgerError;
use super::handle::Ledger;
use super::id::JobId;
use super::job::{AttemptEnd, Claimed, Finished, Job, NewJob, Submitted};
use super::key::Asked;
use super::memory::Memory;
use super::notice::Notice;
use super::settings::LedgerSettings;
use crate::clock::tests::HandClock;
use crate::content::Content;

pub(super) use cases::conform;

/// 2026, in milliseconds.
pub(super) const START: i64 = 1_790_000_000_000;
pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const HOUR: Duration = Duration::from_secs(3600);

pub(super) type Opening<'a> = Pin<Box<dyn Future<Output = Box<dyn Backend>> + Send + 'a>>;

/// Where rows stay while servers come and go. One server at a time.
pub(crate) trait Ground: Send + Sync {
    fn open(&self) -> Opening<'_>;

    /// Nothing waits for a disk: what is tried many times may be tried more often.
    fn quick(&self) -> bool {
        false
    }
}

#[derive(Debug, Default)]
pub(super) struct MemoryGround(Memory);

impl Ground for MemoryGround {
    fn open(&self) -> Opening<'_> {
        let again = self.0.again();
        Box::pin(async move { Box::new(again) as Box<dyn Backend> })
    }

    fn quick(&self) -> bool {
        true
    }
}

/// One server after the other on one ground, by a clock in hand.
pub(crate) struct World {
    pub ground: Arc<dyn Ground>,
    pub settings: LedgerSettings,
    pub clock: HandClock,
    pub ledger: Ledger,
    pub told: Arc<Mutex<Vec<Notice>>>,
}

impl World {
    pub async fn on(ground: impl Ground + 'static) -> World {
        World::with(ground, LedgerSettings::default()).await
    }

    pub async fn with(ground: impl Ground + 'static, settings: LedgerSettings) -> World {
        let (ground, clock): (Arc<dyn Ground>, _) = (Arc::new(ground), HandClock::at(START));
        let (ledger, told) = start(&*ground, &settings, &clock).await;
        World { ground, settings, clock, ledger, told }
    }

    /// The server dies without a word, and another comes.
    pub async fn crash(&mut self) {
        self.ledger.end().await;
        (self.ledger, self.told) = start(&*self.ground, &self.settings, &self.clock).await;
    }

    /// It ends as it should, and another comes.
    pub async fn restart(&mut self) {
        self.ledger.close().await;
        (self.ledger, self.told) = start(&*self.ground, &self.settings, &self.clock).await;
    }

    /// With other bounds.
    pub async fn bounded(&mut self, change: impl FnOnce(&mut LedgerSettings)) {
        change(&mut self.settings);
        self.restart().await;
    }

    pub async fn submit(&self, job: NewJob) -> Job {
        let mut submitted = self.ledger.submit(vec![job], asked()).await.unwrap();
        assert!(!submitted[0].known, "it is new");
        submitted.remove(0).job
    }

    pub async fn try_submit(&self, job: NewJob) -> Result<Submitted, LedgerError> {
        self.ledger.submit(vec![job], asked()).await.map(|mut submitted| submitted.remove(0))
    }

    pub async fn refused(&self, job: NewJob) -> LedgerError {
        self.ledger.submit(vec![job], asked()).await.unwrap_err()
    }

    /// The only one that there is to claim.
    pub async fn claim(&self) -> Claimed {
        let mut claimed = self.ledger.claim("py", 1).await.unwrap();
        assert_eq!(claimed.len(), 1, "there is one to claim");
        claimed.remove(0)
    }

    pub async fn claim_all(&self) -> Vec<Claimed> {
        self.ledger.claim("py", 100).await.unwrap()
    }

    pub async fn submit_claimed(&self, job: NewJob) -> Claimed {
        let id = self.submit(job).await.id;
        self.ledger.claim_job(&id).await.unwrap().expect("it may be claimed")
    }

    pub async fn finish(&self, claimed: &Claimed, end: AttemptEnd) -> Job {
        match self.ledger.finish(&claimed.job.id, claimed.fence, end).await.unwrap() {
            Finished::Taken(job) => *job,
            Finished::Stale => panic!("attempt {} of {} is stale", claimed.attempt, claimed.job.id),
        }
    }

    pub async fn complete(&self, claimed: &Claimed) -> Job {
        self.finish(claimed, done()).await
    }

    pub async fn fail(&self, claimed: &Claimed) -> Job {
        self.finish(claimed, failed(AttemptFailure::Error)).await
    }

    pub async fn job(&self, id: &JobId) -> Job {
        self.ledger.job(id).await.unwrap()
    }

    pub async fn status(&self, id: &JobId) -> JobStatus {
        self.job(id).await.status
    }

    pub async fn cancel(&self, id: &JobId) -> Job {
        self.ledger.cancel(id, asked()).await.unwrap()
    }

    pub async fn trail(&self, id: &JobId) -> Vec<Transition> {
        self.ledger.transitions(Entity::Job, id.as_str(), 0, 100).await.unwrap()
    }

    /// Its statuses, in order.
    pub async fn path(&self, id: &JobId) -> Vec<String> {
        self.trail(id).await.into_iter().map(|step| step.to).collect()
    }

    /// What was told since somebody asked the last time.
    pub fn told(&self) -> Vec<Notice> {
        std::mem::take(&mut self.told.lock().unwrap())
    }

    pub async fn pass(&self, time: Duration) {
        self.clock.pass(time);
        self.ledger.keep_time().await.unwrap();
    }

    /// At the end of every case: whatever happened, the trail is whole.
    pub async fn verified(&self) {
        let report = self.ledger.verify().await.unwrap();
        assert_eq!(report.findings, [], "the trail is whole");
    }
}

async fn start(
    ground: &dyn Ground,
    settings: &LedgerSettings,
    clock: &HandClock,
) -> (Ledger, Arc<Mutex<Vec<Notice>>>) {
    let backend = ground.open().await;
    let ledger = Ledger::start(backend, settings.clone(), clock.clone()).await.unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&told);
    ledger.watch(move |notices| listener.lock().unwrap().extend_from_slice(notices));
    (ledger, told)
}

pub(super) fn asked() -> Asked {
    Asked { request_id: Some("r_1".to_owned()), ..Asked::by("tester") }
}

pub(super) fn content(text: &str) -> Content {
    Content::new("application/json", text.to_owned())
}

pub(super) fn new_job() -> NewJob {
    NewJob::new("py", "work", content("{\"n\":1}"))
}

pub(super) fn child_of(parent: &JobId) -> NewJob {
    NewJob { parent: Some(parent.clone()), ..new_job() }
}

pub(super) fn once() -> NewJob {
    let retrying = Retrying { max_attempts: 1, ..Retrying::default() };
    NewJob { retrying, ..new_job() }
}

pub(super) fn done() -> AttemptEnd {
    AttemptEnd::Completed(content("42"))
}

pub(super) fn error() -> Value {
    json!({ "code": "application_error", "message": "no" })
}

pub(super) fn failed(failure: AttemptFailure) -> AttemptEnd {
    AttemptEnd::Failed { failure, error: error() }
}

/// The field that was named.
pub(super) fn field(error: &LedgerError) -> &'static str {
    match error {
        LedgerError::Invalid { field, .. } => field,
        other => panic!("{other} names no field"),
    }
}
