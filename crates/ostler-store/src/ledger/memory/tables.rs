//! The tables themselves, and the indexes that follow them. Every change is one cell, and setting a
//! cell gives what was there: that is all an undo needs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use ostler_core::JobStatus;

use super::super::audit::Entity;
use super::super::id::{JobId, ScheduleId};
use super::super::key::Key;
use super::super::row::{
    AttemptRow, EventRow, FireRow, JobFacts, JobResult, JobState, KeyRow, Millis, NodeRow, PoolRow,
    QueueRow, Row, ScheduleRow, Task, TransitionRow, WorkerRow,
};

pub(super) type TrailKey = (Entity, String, u64);
/// Pool, gang, and the order in which tasks are claimed.
pub(super) type ReadyKey = (String, bool, Reverse<i8>, Millis, JobId);

#[derive(Debug, Default)]
pub(super) struct Tables {
    pub facts: BTreeMap<JobId, JobFacts>,
    pub states: BTreeMap<JobId, JobState>,
    pub results: BTreeMap<JobId, JobResult>,
    pub tasks: BTreeMap<JobId, Task>,
    pub attempts: BTreeMap<(JobId, u32), AttemptRow>,
    pub events: BTreeMap<(JobId, u64), EventRow>,
    pub transitions: BTreeMap<TrailKey, TransitionRow>,
    pub queues: BTreeMap<String, QueueRow>,
    pub schedules: BTreeMap<ScheduleId, ScheduleRow>,
    pub fires: BTreeMap<(ScheduleId, Millis), FireRow>,
    pub workers: BTreeMap<String, WorkerRow>,
    pub pools: BTreeMap<String, PoolRow>,
    pub keys: BTreeMap<Key, KeyRow>,
    pub nodes: BTreeMap<String, NodeRow>,
    // What follows from the tables above.
    /// Jobs without an end.
    pub open: BTreeSet<JobId>,
    pub submitted: BTreeSet<JobId>,
    pub ended: BTreeSet<(Millis, JobId)>,
    pub deadlines: BTreeSet<(Millis, JobId)>,
    pub ready: BTreeSet<ReadyKey>,
    pub ready_at: BTreeSet<(Millis, JobId)>,
    pub claimed: BTreeSet<JobId>,
    pub expiries: BTreeSet<(Millis, Key)>,
    /// Parent and child.
    pub children: BTreeSet<(JobId, JobId)>,
    pub child_keys: BTreeMap<(JobId, String), JobId>,
    /// Of jobs without an end.
    pub unique_keys: BTreeMap<(String, String, String), JobId>,
}

/// One place in one table, and what is there. None: nothing.
#[derive(Debug)]
pub(super) enum Cell {
    Facts(JobId, Option<Box<JobFacts>>),
    State(JobId, Option<Box<JobState>>),
    Result(JobId, Option<JobResult>),
    Task(JobId, Option<Task>),
    Attempt((JobId, u32), Option<AttemptRow>),
    Event((JobId, u64), Option<EventRow>),
    Transition(TrailKey, Option<TransitionRow>),
    Queue(String, Option<QueueRow>),
    Schedule(ScheduleId, Option<Box<ScheduleRow>>),
    Fire((ScheduleId, Millis), Option<FireRow>),
    Worker(String, Option<WorkerRow>),
    Pool(String, Option<PoolRow>),
    Key(Key, Option<Box<KeyRow>>),
    Node(String, Option<NodeRow>),
}

fn swap<K: Ord + Clone, V>(table: &mut BTreeMap<K, V>, key: &K, value: Option<V>) -> Option<V> {
    match value {
        Some(value) => table.insert(key.clone(), value),
        None => table.remove(key),
    }
}

impl Tables {
    /// The cell as it was.
    pub fn set(&mut self, cell: Cell) -> Cell {
        match cell {
            Cell::Facts(id, value) => {
                let old = self.set_facts(&id, value.map(|value| *value));
                Cell::Facts(id, old.map(Box::new))
            }
            Cell::State(id, value) => {
                let old = self.set_state(&id, value.map(|value| *value));
                Cell::State(id, old.map(Box::new))
            }
            Cell::Task(id, value) => {
                let old = self.set_task(&id, value);
                Cell::Task(id, old)
            }
            Cell::Result(id, value) => {
                let old = swap(&mut self.results, &id, value);
                Cell::Result(id, old)
            }
            Cell::Attempt(key, value) => {
                let old = swap(&mut self.attempts, &key, value);
                Cell::Attempt(key, old)
            }
            Cell::Event(key, value) => {
                let old = swap(&mut self.events, &key, value);
                Cell::Event(key, old)
            }
            Cell::Transition(key, value) => {
                let old = swap(&mut self.transitions, &key, value);
                Cell::Transition(key, old)
            }
            Cell::Queue(name, value) => {
                let old = swap(&mut self.queues, &name, value);
                Cell::Queue(name, old)
            }
            Cell::Schedule(id, value) => {
                let old = swap(&mut self.schedules, &id, value.map(|value| *value));
                Cell::Schedule(id, old.map(Box::new))
            }
            Cell::Fire(key, value) => {
                let old = swap(&mut self.fires, &key, value);
                Cell::Fire(key, old)
            }
            Cell::Worker(id, value) => {
                let old = swap(&mut self.workers, &id, value);
                Cell::Worker(id, old)
            }
            Cell::Pool(name, value) => {
                let old = swap(&mut self.pools, &name, value);
                Cell::Pool(name, old)
            }
            Cell::Key(key, value) => {
                let old = self.set_key(&key, value.map(|value| *value));
                Cell::Key(key, old.map(Box::new))
            }
            Cell::Node(id, value) => {
                let old = swap(&mut self.nodes, &id, value);
                Cell::Node(id, old)
            }
        }
    }

    /// What a row changes. The error says why it cannot be taken.
    pub fn cells(&self, row: Row) -> Result<Vec<Cell>, String> {
        Ok(vec![match row {
            Row::Facts(facts) => {
                unused(&self.facts, &facts.id, "job")?;
                Cell::Facts(facts.id.clone(), Some(facts))
            }
            Row::State(state) => {
                if state.status.terminal() != state.completed_at.is_some() {
                    return Err(format!("job {} has half an end", state.id));
                }
                Cell::State(state.id.clone(), Some(state))
            }
            Row::Result(result) => {
                unused(&self.results, &result.id, "result")?;
                Cell::Result(result.id.clone(), Some(result))
            }
            Row::Task(task) => Cell::Task(task.job.clone(), Some(task)),
            Row::NoTask(id) => Cell::Task(id, None),
            Row::Attempt(attempt) => {
                Cell::Attempt((attempt.job.clone(), attempt.attempt), Some(attempt))
            }
            Row::NoAttempt(id, attempt) => Cell::Attempt((id, attempt), None),
            Row::Transition(step) => {
                let key = (step.entity, step.id.clone(), step.seq);
                unused(&self.transitions, &key, "transition")?;
                Cell::Transition(key, Some(step))
            }
            Row::Event(event) => {
                let key = (event.job.clone(), event.seq);
                unused(&self.events, &key, "event")?;
                Cell::Event(key, Some(event))
            }
            Row::Queue(queue) => Cell::Queue(queue.name.clone(), Some(queue)),
            Row::Schedule(schedule) => Cell::Schedule(schedule.id.clone(), Some(schedule)),
            Row::NoSchedule(id) => return Ok(self.schedule_cells(id)),
            Row::Fire(fire) => {
                let key = (fire.schedule.clone(), fire.at);
                unused(&self.fires, &key, "fire")?;
                Cell::Fire(key, Some(fire))
            }
            Row::Worker(worker) => Cell::Worker(worker.id.clone(), Some(worker)),
            Row::Pool(pool) => Cell::Pool(pool.name.clone(), Some(pool)),
            Row::Key(row) => {
                let (caller, route, key) = (row.caller.clone(), row.route.clone(), row.key.clone());
                Cell::Key(Key { caller, route, key }, Some(row))
            }
            Row::NoKey(key) => Cell::Key(key, None),
            Row::Node(node) => Cell::Node(node.id.clone(), Some(node)),
            Row::Prune(id) => return Ok(self.job_cells(&id)),
            Row::PruneWorker(id) => {
                let mut cells = self.trail_cells(Entity::Worker, &id);
                cells.push(Cell::Worker(id, None));
                return Ok(cells);
            }
        }])
    }

    fn schedule_cells(&self, id: ScheduleId) -> Vec<Cell> {
        let range = (id.clone(), Millis::MIN)..=(id.clone(), Millis::MAX);
        let fires = self.fires.range(range).map(|(key, _)| Cell::Fire(key.clone(), None));
        let mut cells: Vec<Cell> = fires.collect();
        cells.push(Cell::Schedule(id, None));
        cells
    }

    fn job_cells(&self, id: &JobId) -> Vec<Cell> {
        let mut cells = self.trail_cells(Entity::Job, id.as_str());
        let attempts = self.attempts.range((id.clone(), 0)..=(id.clone(), u32::MAX));
        cells.extend(attempts.map(|(key, _)| Cell::Attempt(key.clone(), None)));
        let events = self.events.range((id.clone(), 0)..=(id.clone(), u64::MAX));
        cells.extend(events.map(|(key, _)| Cell::Event(key.clone(), None)));
        cells.push(Cell::Task(id.clone(), None));
        cells.push(Cell::Result(id.clone(), None));
        // The indexes of a state are found by its facts: these go last.
        cells.push(Cell::State(id.clone(), None));
        cells.push(Cell::Facts(id.clone(), None));
        cells
    }

    fn trail_cells(&self, entity: Entity, id: &str) -> Vec<Cell> {
        let range = (entity, id.to_owned(), 0)..=(entity, id.to_owned(), u64::MAX);
        self.transitions.range(range).map(|(key, _)| Cell::Transition(key.clone(), None)).collect()
    }

    fn set_facts(&mut self, id: &JobId, value: Option<JobFacts>) -> Option<JobFacts> {
        if let Some(facts) = self.facts.get(id)
            && let Some(parent) = &facts.parent
        {
            self.children.remove(&(parent.clone(), id.clone()));
            if let Some(key) = &facts.child_key {
                self.child_keys.remove(&(parent.clone(), key.clone()));
            }
        }
        if let Some(facts) = &value
            && let Some(parent) = &facts.parent
        {
            self.children.insert((parent.clone(), id.clone()));
            if let Some(key) = &facts.child_key {
                self.child_keys.insert((parent.clone(), key.clone()), id.clone());
            }
        }
        swap(&mut self.facts, id, value)
    }

    fn set_state(&mut self, id: &JobId, value: Option<JobState>) -> Option<JobState> {
        if let Some(state) = self.states.get(id).cloned() {
            self.index_state(&state, false);
        }
        if let Some(state) = &value {
            self.index_state(state, true);
        }
        swap(&mut self.states, id, value)
    }

    fn index_state(&mut self, state: &JobState, there: bool) {
        let id = &state.id;
        if let Some(at) = state.completed_at {
            mark(&mut self.ended, (at, id.clone()), there);
            return;
        }
        mark(&mut self.open, id.clone(), there);
        if state.status == JobStatus::Submitted {
            mark(&mut self.submitted, id.clone(), there);
        }
        if let (Some(at), None) = (state.deadline, state.cancel_at) {
            mark(&mut self.deadlines, (at, id.clone()), there);
        }
        if let Some(facts) = self.facts.get(id)
            && let Some(key) = &facts.unique_key
        {
            let key = (facts.workspace.clone(), facts.function.clone(), key.clone());
            swap(&mut self.unique_keys, &key, there.then(|| id.clone()));
        }
    }

    fn set_task(&mut self, id: &JobId, value: Option<Task>) -> Option<Task> {
        if let Some(task) = self.tasks.get(id).cloned() {
            self.index_task(&task, false);
        }
        if let Some(task) = &value {
            self.index_task(task, true);
        }
        swap(&mut self.tasks, id, value)
    }

    fn set_key(&mut self, key: &Key, value: Option<KeyRow>) -> Option<KeyRow> {
        if let Some(row) = self.keys.get(key) {
            self.expiries.remove(&(row.expires_at, key.clone()));
        }
        if let Some(row) = &value {
            self.expiries.insert((row.expires_at, key.clone()));
        }
        swap(&mut self.keys, key, value)
    }

    fn index_task(&mut self, task: &Task, there: bool) {
        let id = task.job.clone();
        if task.node.is_some() {
            mark(&mut self.claimed, id, there);
            return;
        }
        let gang = task.workers > 1;
        let key = (task.pool.clone(), gang, Reverse(task.priority), task.run_at, id.clone());
        mark(&mut self.ready, key, there);
        mark(&mut self.ready_at, (task.run_at, id), there);
    }
}

fn mark<T: Ord>(set: &mut BTreeSet<T>, value: T, there: bool) {
    if there {
        set.insert(value);
    } else {
        set.remove(&value);
    }
}

fn unused<K: Ord + std::fmt::Debug, V>(
    table: &BTreeMap<K, V>,
    key: &K,
    what: &str,
) -> Result<(), String> {
    match table.contains_key(key) {
        true => Err(format!("there is a {what} {key:?} already")),
        false => Ok(()),
    }
}
