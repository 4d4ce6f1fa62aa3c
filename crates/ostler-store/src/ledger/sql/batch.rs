//! Many rows of all kinds at once, each kind with as few statements as it can have.

use std::collections::{HashMap, HashSet};

use ostler_core::JobStatus;

use crate::ledger::id::{JobId, ScheduleId};
use crate::ledger::key::Key;
use crate::ledger::row::{
    AttemptRow, EventRow, FireRow, JobFacts, JobResult, JobState, KeyRow, NodeRow, PoolRow,
    QueueRow, Row, ScheduleRow, Task, TransitionRow, WorkerRow,
};
use crate::sql::{Link, Texts, Trouble};

use super::job::{Tag, Unique};
use super::key;
use super::task::Held;

/// The rows by kind. A key is at most once in each.
#[derive(Default)]
struct Batch<'a> {
    facts: Vec<&'a JobFacts>,
    states: Vec<&'a JobState>,
    results: Vec<&'a JobResult>,
    tasks: Vec<&'a Task>,
    no_tasks: Vec<&'a str>,
    attempts: Vec<&'a AttemptRow>,
    no_attempts: Vec<(&'a JobId, u32)>,
    transitions: Vec<&'a TransitionRow>,
    events: Vec<&'a EventRow>,
    queues: Vec<&'a QueueRow>,
    schedules: Vec<&'a ScheduleRow>,
    no_schedules: Vec<&'a ScheduleId>,
    fires: Vec<&'a FireRow>,
    workers: Vec<&'a WorkerRow>,
    pools: Vec<&'a PoolRow>,
    keys: Vec<&'a KeyRow>,
    no_keys: Vec<&'a Key>,
    nodes: Vec<&'a NodeRow>,
    pruned: Vec<&'a str>,
    pruned_workers: Vec<&'a str>,
}

pub(super) async fn write(link: &mut Link, texts: &mut Texts, rows: &[Row]) -> Result<(), Trouble> {
    let batch = Batch::of(rows);
    batch.write_jobs(link, texts).await?;
    batch.write_work(link, texts).await?;
    batch.write_rest(link, texts).await?;
    batch.prune(link, texts).await
}

impl<'a> Batch<'a> {
    fn of(rows: &'a [Row]) -> Self {
        let mut batch = Batch::default();
        for row in rows {
            match row {
                Row::Facts(row) => batch.facts.push(row),
                Row::State(row) => batch.states.push(row),
                Row::Result(row) => batch.results.push(row),
                Row::Task(row) => batch.tasks.push(row),
                Row::NoTask(id) => batch.no_tasks.push(id.as_str()),
                Row::Attempt(row) => batch.attempts.push(row),
                Row::NoAttempt(id, attempt) => batch.no_attempts.push((id, *attempt)),
                Row::Transition(row) => batch.transitions.push(row),
                Row::Event(row) => batch.events.push(row),
                Row::Queue(row) => batch.queues.push(row),
                Row::Schedule(row) => batch.schedules.push(row),
                Row::NoSchedule(id) => batch.no_schedules.push(id),
                Row::Fire(row) => batch.fires.push(row),
                Row::Worker(row) => batch.workers.push(row),
                Row::Pool(row) => batch.pools.push(row),
                Row::Key(row) => batch.keys.push(row),
                Row::NoKey(key) => batch.no_keys.push(key),
                Row::Node(row) => batch.nodes.push(row),
                Row::Prune(id) => batch.pruned.push(id.as_str()),
                Row::PruneWorker(id) => batch.pruned_workers.push(id),
            }
        }
        batch
    }

    async fn write_jobs(&self, link: &mut Link, texts: &mut Texts) -> Result<(), Trouble> {
        let ended = self.ended();
        let free: Vec<&str> = ended.iter().copied().collect();
        texts.for_each_of(link, "DELETE FROM job_unique WHERE job IN", &free).await?;
        texts.insert(link, &self.facts).await?;
        texts.insert(link, &self.tags()).await?;
        texts.insert(link, &self.unique(&ended)).await?;
        texts.insert(link, &self.states).await?;
        texts.insert(link, &self.results).await
    }

    /// Jobs whose unique key is free from now on.
    fn ended(&self) -> HashSet<&'a str> {
        let ended = self.states.iter().filter(|state| state.completed_at.is_some());
        ended.map(|state| state.id.as_str()).collect()
    }

    fn tags(&self) -> Vec<Tag<'a>> {
        let of = |facts: &&'a JobFacts| {
            let facts: &'a JobFacts = facts;
            facts.tags.iter().map(|(name, value)| Tag(&facts.id, name, value))
        };
        self.facts.iter().flat_map(of).collect()
    }

    fn unique(&self, ended: &HashSet<&str>) -> Vec<Unique<'a>> {
        let keyed = self.facts.iter().filter(|facts| !ended.contains(facts.id.as_str()));
        keyed.filter_map(|facts| Some(Unique(facts, facts.unique_key.as_deref()?))).collect()
    }

    async fn write_work(&self, link: &mut Link, texts: &mut Texts) -> Result<(), Trouble> {
        let status: HashMap<&JobId, JobStatus> =
            self.states.iter().map(|state| (&state.id, state.status)).collect();
        let held = |task: &&'a Task| Held {
            task,
            held: status.get(&task.job).is_none_or(|status| *status == JobStatus::Submitted),
        };
        let tasks: Vec<Held<'_>> = self.tasks.iter().map(held).collect();
        texts.insert(link, &tasks).await?;
        texts.for_each_of(link, RELEASE, &self.released()).await?;
        texts.for_each_of(link, "DELETE FROM task WHERE job IN", &self.no_tasks).await?;
        texts.insert(link, &self.attempts).await?;
        for (job, attempt) in &self.no_attempts {
            let args = link.args().with_text(job.as_str()).with_int((*attempt).into());
            const ONE: &str = "DELETE FROM attempt WHERE job = $1 AND attempt = $2";
            link.execute(ONE, args).await?;
        }
        texts.insert(link, &self.transitions).await?;
        texts.insert(link, &self.events).await
    }

    /// Jobs that are PENDING by now and whose tasks were not written again.
    fn released(&self) -> Vec<&'a str> {
        let written: HashSet<&JobId> = self.tasks.iter().map(|task| &task.job).collect();
        let pending = self.states.iter().filter(|state| state.status == JobStatus::Pending);
        let released = pending.filter(|state| !written.contains(&state.id));
        released.map(|state| state.id.as_str()).collect()
    }

    async fn write_rest(&self, link: &mut Link, texts: &mut Texts) -> Result<(), Trouble> {
        texts.insert(link, &self.nodes).await?;
        texts.insert(link, &self.queues).await?;
        texts.insert(link, &self.workers).await?;
        texts.insert(link, &self.pools).await?;
        texts.insert(link, &self.keys).await?;
        for key in &self.no_keys {
            key::remove(link, key).await?;
        }
        let gone: Vec<&str> = self.no_schedules.iter().map(|id| id.as_str()).collect();
        texts.for_each_of(link, "DELETE FROM schedule WHERE id IN", &gone).await?;
        texts.for_each_of(link, "DELETE FROM schedule_fire WHERE schedule IN", &gone).await?;
        texts.insert(link, &self.schedules).await?;
        texts.insert(link, &self.fires).await
    }

    async fn prune(&self, link: &mut Link, texts: &mut Texts) -> Result<(), Trouble> {
        for statement in OF_A_JOB {
            texts.for_each_of(link, statement, &self.pruned).await?;
        }
        for statement in OF_A_WORKER {
            texts.for_each_of(link, statement, &self.pruned_workers).await?;
        }
        Ok(())
    }
}

const RELEASE: &str = "UPDATE task SET held = 0 WHERE held = 1 AND job IN";

const OF_A_JOB: [&str; 9] = [
    "DELETE FROM transition WHERE entity = 'job' AND id IN",
    "DELETE FROM job_event WHERE job IN",
    "DELETE FROM attempt WHERE job IN",
    "DELETE FROM task WHERE job IN",
    "DELETE FROM job_result WHERE id IN",
    "DELETE FROM job_tag WHERE job IN",
    "DELETE FROM job_unique WHERE job IN",
    "DELETE FROM job_state WHERE id IN",
    "DELETE FROM job WHERE id IN",
];

const OF_A_WORKER: [&str; 2] =
    ["DELETE FROM transition WHERE entity = 'worker' AND id IN", "DELETE FROM worker WHERE id IN"];
