//! The rows of one transaction while operations decide. Each of them sees what those before it
//! changed. Rows are read by id from what is known, and written together, many of a kind at once:
//! before a question that only the backend can answer, and at the end.

mod job_rows;
mod other_rows;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::backend::{Backend, Failed};
use super::doubt::Doubt;
use super::id::{JobId, ScheduleId};
use super::key::Key;
use super::notice::Notice;
use super::overlay::Overlay;
use super::ready::Ready;
use super::row::{
    AttemptRow, JobFacts, JobState, KeyRow, Millis, PoolRow, QueueRow, Row, ScheduleRow, Task,
    WorkerRow,
};
use super::settings::LedgerSettings;
use super::spec::Spec;

/// Rows of one kind that are known between two transactions.
const KNOWN_MAX: usize = 32 * 1024;
/// Bytes of payloads that are known between two transactions, or twice that.
const KNOWN_BYTES: usize = 32 << 20;

/// A job as operations decide on it.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub facts: Arc<JobFacts>,
    pub spec: Arc<Spec>,
    pub state: JobState,
}

#[derive(Debug)]
pub(super) struct Draft {
    pub node: Arc<str>,
    pub settings: Arc<LedgerSettings>,
    /// Of the operation whose turn it is.
    pub now: Millis,
    pub dice: Dice,
    /// Up to when time was kept, and what keeping it said about the next time.
    pub kept_until: Millis,
    pub next_due: Millis,
    backend: Box<dyn Backend>,
    begun: bool,
    written: bool,
    /// Counts changes, so that an operation that is refused is known to have made none.
    changes: u64,
    facts: Overlay<JobId, (Arc<JobFacts>, Arc<Spec>)>,
    facts_bytes: usize,
    states: Overlay<JobId, JobState>,
    tasks: Overlay<JobId, Task>,
    attempts: Overlay<(JobId, u32), AttemptRow>,
    keys: Overlay<Key, KeyRow>,
    /// Keys with an answer that this transaction has seen.
    answered: Vec<Key>,
    workers: Overlay<String, WorkerRow>,
    pools: Overlay<String, PoolRow>,
    queues: Overlay<String, QueueRow>,
    schedules: Overlay<ScheduleId, ScheduleRow>,
    open_jobs: Option<u64>,
    keys_count: Option<u64>,
    /// Rows that are only ever added, in the order in which kinds are written.
    new_facts: Vec<Row>,
    results: Vec<Row>,
    transitions: Vec<Row>,
    events: Vec<Row>,
    others: Vec<Row>,
    ready: Ready,
    /// Before then nothing becomes due by itself.
    pub quiet_until: Millis,
    ended: Vec<JobId>,
    notices: Vec<Notice>,
    said: BTreeMap<JobId, u64>,
    /// Pools that have something to claim by now.
    ready_pools: BTreeSet<String>,
    due_sooner: bool,
    /// A job whose state this transaction changes: by it one can tell whether it was committed.
    witness: Option<JobId>,
    /// What this transaction claims, and under which fence.
    claims: Vec<(JobId, u64)>,
}

/// Spreads delays.
#[derive(Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub fn seeded(seed: u64) -> Dice {
        Dice(seed)
    }

    /// 0..1.
    pub fn draw(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

impl Draft {
    pub fn new(backend: Box<dyn Backend>, node: Arc<str>, settings: Arc<LedgerSettings>) -> Draft {
        Draft {
            node,
            settings,
            now: 0,
            dice: Dice::seeded(uuid::Uuid::now_v7().as_u128() as u64),
            kept_until: 0,
            next_due: Millis::MAX,
            backend,
            begun: false,
            written: false,
            changes: 0,
            facts: Overlay::new(KNOWN_MAX),
            facts_bytes: 0,
            states: Overlay::new(KNOWN_MAX),
            tasks: Overlay::new(KNOWN_MAX),
            attempts: Overlay::new(KNOWN_MAX),
            keys: Overlay::new(KNOWN_MAX),
            answered: Vec::new(),
            workers: Overlay::new(KNOWN_MAX),
            pools: Overlay::new(KNOWN_MAX),
            queues: Overlay::new(KNOWN_MAX),
            schedules: Overlay::new(KNOWN_MAX),
            open_jobs: None,
            keys_count: None,
            new_facts: Vec::new(),
            results: Vec::new(),
            transitions: Vec::new(),
            events: Vec::new(),
            others: Vec::new(),
            ready: Ready::default(),
            quiet_until: Millis::MIN,
            ended: Vec::new(),
            notices: Vec::new(),
            said: BTreeMap::new(),
            ready_pools: BTreeSet::new(),
            due_sooner: false,
            witness: None,
            claims: Vec::new(),
        }
    }

    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Between two transactions.
    pub fn backend_mut(&mut self) -> &mut dyn Backend {
        &mut *self.backend
    }

    pub fn into_backend(self) -> Box<dyn Backend> {
        self.backend
    }

    // ---- the transaction ----

    /// Everything is stored, or nothing is and nothing of it is known any more.
    pub async fn commit(&mut self) -> Result<Vec<Notice>, Failed> {
        self.write().await?;
        match (self.begun, self.written) {
            (true, true) => self.backend.commit().await?,
            (true, false) => self.backend.rollback().await?,
            (false, _) => {}
        }
        (self.begun, self.written) = (false, false);
        self.settle_memory();
        Ok(self.told())
    }

    fn told(&mut self) -> Vec<Notice> {
        let mut notices = std::mem::take(&mut self.notices);
        let pools = std::mem::take(&mut self.ready_pools);
        notices.extend(pools.into_iter().map(|pool| Notice::Ready { pool }));
        if std::mem::take(&mut self.due_sooner) {
            notices.push(Notice::DueSooner);
        }
        let said = std::mem::take(&mut self.said);
        notices.extend(said.into_iter().map(|(job, last_seq)| Notice::JobSaid { job, last_seq }));
        notices
    }

    /// After a commit of which nobody knows what came of it.
    pub fn take_doubt(&mut self) -> Option<Doubt> {
        let witness = self.states.get(&self.witness.take()?)?.clone()?;
        let (notices, claims) = (self.told(), std::mem::take(&mut self.claims));
        Some(Doubt { witness, notices, claims })
    }

    /// Whether a job is stored as this state shows it. Ends the transaction.
    pub async fn is_stored(&mut self, witness: &JobState) -> Result<bool, Failed> {
        let row = match self.began().await {
            Ok(backend) => backend.job(&witness.id).await,
            Err(failed) => Err(failed),
        };
        self.rollback().await;
        Ok(row?.is_some_and(|(_, state)| state == *witness))
    }

    pub async fn rollback(&mut self) {
        // If that fails the backend begins anew by itself.
        if let Err(failed) = self.backend.rollback().await {
            tracing::debug!(reason = %failed.reason, "a transaction could not be rolled back");
        }
        self.forget();
    }

    fn settle_memory(&mut self) {
        for id in std::mem::take(&mut self.ended) {
            self.facts.forget(&id);
            self.states.forget(&id);
            self.tasks.forget(&id);
        }
        for key in std::mem::take(&mut self.answered) {
            self.keys.forget(&key);
        }
        self.witness = None;
        self.claims.clear();
        let heavy = self.facts_bytes > KNOWN_BYTES;
        if heavy {
            self.facts_bytes = 0;
        }
        self.facts.age(heavy);
        self.states.age(false);
        self.tasks.age(false);
        self.attempts.age(false);
        self.keys.age(false);
        self.workers.age(false);
        self.pools.age(false);
        self.queues.age(false);
        self.schedules.age(false);
    }

    fn forget(&mut self) {
        self.facts.clear();
        self.facts_bytes = 0;
        self.states.clear();
        self.tasks.clear();
        self.attempts.clear();
        self.keys.clear();
        self.answered.clear();
        self.workers.clear();
        self.pools.clear();
        self.queues.clear();
        self.schedules.clear();
        (self.open_jobs, self.keys_count) = (None, None);
        self.new_facts.clear();
        self.results.clear();
        self.transitions.clear();
        self.events.clear();
        self.others.clear();
        self.ready.forget();
        self.ended.clear();
        self.notices.clear();
        self.said.clear();
        self.ready_pools.clear();
        self.due_sooner = false;
        self.witness = None;
        self.claims.clear();
        (self.begun, self.written) = (false, false);
        // What was told about time may not have been heard.
        (self.kept_until, self.next_due, self.quiet_until) = (0, Millis::MAX, Millis::MIN);
    }

    async fn began(&mut self) -> Result<&mut dyn Backend, Failed> {
        if !self.begun {
            self.backend.begin().await?;
            self.begun = true;
        }
        Ok(&mut *self.backend)
    }

    /// The backend, to be asked what only it can answer: it has been told everything.
    pub async fn stored(&mut self) -> Result<&mut dyn Backend, Failed> {
        self.write().await?;
        self.began().await
    }

    async fn write(&mut self) -> Result<(), Failed> {
        let rows = self.unwritten();
        if rows.is_empty() {
            return Ok(());
        }
        self.written = true;
        self.began().await?.write(rows).await
    }

    fn unwritten(&mut self) -> Vec<Row> {
        let mut rows = std::mem::take(&mut self.new_facts);
        // Facts are never changed: those that are known were read, or are among the new ones.
        self.facts.take_unwritten();
        let states = self.states.take_unwritten().into_iter();
        rows.extend(states.filter_map(|(_, state)| Some(Row::State(Box::new(state?)))));
        rows.append(&mut self.results);
        let tasks = self.tasks.take_unwritten().into_iter();
        rows.extend(tasks.map(|(id, task)| task.map_or(Row::NoTask(id), Row::Task)));
        let attempts = self.attempts.take_unwritten().into_iter();
        rows.extend(attempts.map(|((id, attempt), row)| {
            row.map_or_else(|| Row::NoAttempt(id, attempt), Row::Attempt)
        }));
        rows.append(&mut self.transitions);
        rows.append(&mut self.events);
        let schedules = self.schedules.take_unwritten().into_iter();
        rows.extend(schedules.map(|(id, row)| match row {
            Some(row) => Row::Schedule(Box::new(row)),
            None => Row::NoSchedule(id),
        }));
        let keys = self.keys.take_unwritten().into_iter();
        rows.extend(keys.map(|(key, row)| match row {
            Some(row) => Row::Key(Box::new(row)),
            None => Row::NoKey(key),
        }));
        let queues = self.queues.take_unwritten().into_iter();
        rows.extend(queues.filter_map(|(_, row)| row.map(Row::Queue)));
        let workers = self.workers.take_unwritten().into_iter();
        rows.extend(workers.filter_map(|(_, row)| row.map(Row::Worker)));
        let pools = self.pools.take_unwritten().into_iter();
        rows.extend(pools.filter_map(|(_, row)| row.map(Row::Pool)));
        rows.append(&mut self.others);
        rows
    }
}
