//! What the tests of jobs share: an inn with one pool, and waiting for facts.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ostler_core::{JobBackoff, JobStatus};
use ostler_jobs::{JobSettings, Jobs};
use ostler_runtime::core::{Backoff, Settings};
use ostler_runtime::{Body, Call, Directory, EventLog, Pool, PoolSpec, Program};
use ostler_store::Content;
use ostler_store::ledger::job::{Attempt, Job, JobEvent, NewJob, Submitted};
use ostler_store::ledger::key::Asked;
use ostler_store::ledger::{JobId, Ledger, LedgerSettings};
use serde_json::Value;

/// Nothing here takes seconds; a test that waits this long has failed.
pub const LIMIT: Duration = Duration::from_secs(30);

pub async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, work).await.unwrap_or_else(|_| panic!("never seen: {what}"))
}

/// Waits until something is so.
pub async fn until(what: &str, mut fact: impl AsyncFnMut() -> bool) {
    let look = async {
        while !fact().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    within(what, look).await;
}

/// Settings under which a restart costs no time and an unwilling process little.
pub fn brisk(size: u32) -> Settings {
    Settings {
        backoff: Backoff { first: Duration::from_millis(1), ..Settings::default().backoff },
        cancel_grace: Duration::from_millis(500),
        stop_grace: Duration::from_millis(100),
        // A job that dies three times is not what is tested where this matters.
        quarantine: Duration::ZERO,
        restart_max: 100,
        ..Settings::of_size(size)
    }
}

/// A job of the pool `test`, tried again without delay.
pub fn job(function: &str, arguments: &str) -> NewJob {
    let payload = Content::new("application/json", arguments.to_owned());
    let mut job = NewJob::new("test", function, payload);
    job.retrying.backoff =
        JobBackoff { initial: Duration::from_millis(1), ..JobBackoff::default() };
    job
}

/// A ledger, a pool `test`, the jobs between them, and a yard.
pub struct Inn {
    pub jobs: Jobs,
    pub pool: Pool,
    pub directory: Directory,
    pub events: Arc<EventLog>,
    pub yard: tempfile::TempDir,
}

pub fn pool_spec(name: &str, settings: Settings, yard: &Path, directory: &Directory) -> PoolSpec {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workers/tasks.py");
    let program = Program::Python { file, interpreter: "python3".to_owned() };
    let mut spec = PoolSpec::new(name, program, settings);
    spec.directory = directory.clone();
    spec.processes.env.push(("YARD".to_owned(), yard.display().to_string()));
    spec
}

impl Inn {
    pub async fn of_size(size: u32) -> Inn {
        Inn::with(brisk(size), |_| {}).await
    }

    pub async fn with(settings: Settings, change: impl FnOnce(&mut PoolSpec)) -> Inn {
        let yard = tempfile::tempdir().expect("a directory");
        let ledger = Ledger::in_memory(LedgerSettings::default());
        Inn::on(ledger, yard, settings, change).await
    }

    pub async fn on(
        ledger: Ledger,
        yard: tempfile::TempDir,
        settings: Settings,
        change: impl FnOnce(&mut PoolSpec),
    ) -> Inn {
        let directory = Directory::new();
        let events = Arc::new(EventLog::new(1_000));
        let jobs =
            Jobs::start(ledger, directory.clone(), Arc::clone(&events), JobSettings::default());
        let mut spec = pool_spec("test", settings, yard.path(), &directory);
        change(&mut spec);
        let pool = Pool::start(spec).await.expect("a pool starts");
        Inn { jobs, pool, directory, events, yard }
    }

    pub fn ledger(&self) -> &Ledger {
        self.jobs.ledger()
    }

    pub async fn submit(&self, job: NewJob) -> JobId {
        self.submit_all(vec![job]).await.remove(0)
    }

    pub async fn submit_all(&self, jobs: Vec<NewJob>) -> Vec<JobId> {
        let submitted = self.jobs.submit(jobs, Asked::by("test")).await.expect("they are taken");
        submitted.into_iter().map(|Submitted { job, .. }| job.id).collect()
    }

    /// As it is now.
    pub async fn job(&self, id: &JobId) -> Job {
        self.ledger().job(id).await.expect("it is there")
    }

    /// Once it has its end.
    pub async fn end(&self, id: &JobId) -> Job {
        let job = self.jobs.wait(id, LIMIT).await.expect("it is there");
        assert!(job.status.terminal(), "it never ended: {job:?}");
        job
    }

    pub async fn run(&self, job: NewJob) -> Job {
        let id = self.submit(job).await;
        self.end(&id).await
    }

    /// Does it while there are always small jobs that wait.
    pub async fn under_load<T>(&self, work: impl Future<Output = T>) -> T {
        let load = async {
            loop {
                let counts = self.ledger().counts().await.expect("counts");
                if counts.by_status.get(&JobStatus::Pending).is_none_or(|pending| *pending < 50) {
                    let jobs = (0..50).map(|n| job("echo", &format!("[{n}]"))).collect();
                    self.submit_all(jobs).await;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::select! {
            done = work => done,
            () = load => unreachable!("it never ends"),
        }
    }

    pub async fn cancel(&self, id: &JobId) -> Job {
        self.ledger().cancel(id, Asked::by("test")).await.expect("it has no end yet")
    }

    pub async fn attempts(&self, id: &JobId) -> Vec<Attempt> {
        self.ledger().attempts(id).await.expect("it is there")
    }

    /// What its story has of one kind.
    pub async fn story(&self, id: &JobId, kind: &str) -> Vec<JobEvent> {
        let events = self.ledger().events(id, 0, 1_000).await.expect("it is there");
        events.into_iter().filter(|event| event.kind == kind).collect()
    }

    pub fn lines(&self, file: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.yard.path().join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until so many have left their name.
    pub async fn seen(&self, file: &str, count: usize) {
        until(&format!("{count} lines in {file}"), async || self.lines(file).len() >= count).await;
    }

    pub fn give(&self, sign: &str) {
        std::fs::write(self.yard.path().join(sign), "").expect("a sign");
    }

    pub async fn call(&self, function: &str, arguments: &str) -> Value {
        let call = Call::new(function, Body::json(arguments.to_owned()));
        let answered = within("the call ends", self.pool.call(call).result()).await;
        serde_json::from_slice(&answered.expect("it answers").body.bytes).expect("JSON")
    }

    /// Nobody has a place of the pool.
    pub async fn all_free(&self) {
        until("all places are given back", async || {
            let view = self.pool.info().view;
            view.leases == 0 && view.running == 0 && view.queued == 0
        })
        .await;
    }

    pub async fn close(self) {
        within("the jobs stop", self.jobs.stop(LIMIT)).await;
        self.pool.shut_down(false);
        within("the pool stops", self.pool.stopped()).await;
    }
}

pub fn result(job: &Job) -> Value {
    assert_eq!(job.status, JobStatus::Completed, "{:?} {:?}", job.reason, job.error);
    let content = job.result.as_ref().expect("a completed job has a result");
    serde_json::from_slice(&content.bytes).expect("JSON")
}

pub fn failed(job: &Job) -> (&str, &Value) {
    assert_eq!(job.status, JobStatus::Failed, "{job:?}");
    (job.reason.as_deref().expect("a reason"), job.error.as_ref().expect("an error"))
}
