//! What can be asked of the tables.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use ostler_core::JobStatus;

use super::super::audit::Entity;
use super::super::id::{JobId, ScheduleId};
use super::super::job::{JobCounts, JobFilter, Queue};
use super::super::key::Key;
use super::super::row::{
    AttemptRow, EventRow, JobFacts, JobState, Millis, ScheduleRow, Task, TransitionRow, WorkerRow,
};
use super::tables::Tables;
use crate::clock::timestamp;

impl Tables {
    pub fn job(&self, id: &JobId) -> Option<(JobFacts, JobState)> {
        Some((self.facts.get(id)?.clone(), self.states.get(id)?.clone()))
    }

    pub fn ready(&self, pool: &str, now: Millis, gangs: bool, limit: usize) -> Vec<Task> {
        let first = (pool.to_owned(), gangs, Reverse(i8::MAX));
        self.ready
            .range((first.0, first.1, first.2, Millis::MIN, lowest())..)
            .take_while(|(of, gang, ..)| of == pool && *gang == gangs)
            .filter(|(.., run_at, _)| *run_at <= now)
            .filter_map(|(.., id)| self.tasks.get(id))
            .filter(|task| !self.paused(&task.queue) && self.has_room(task))
            .take(limit)
            .cloned()
            .collect()
    }

    fn paused(&self, queue: &str) -> bool {
        self.queues.get(queue).is_some_and(|queue| queue.paused_at.is_some())
    }

    fn has_room(&self, task: &Task) -> bool {
        let Some(key) = &task.concurrency_key else { return true };
        self.running_with(key) < task.concurrency_limit
    }

    pub fn ready_pools(&self, since: Millis, now: Millis) -> Vec<String> {
        let tasks = self.ready_at.range((since.saturating_add(1), lowest())..);
        let tasks = tasks.take_while(|(at, _)| *at <= now);
        let pools = tasks.filter_map(|(_, id)| Some(self.tasks.get(id)?.pool.as_str()));
        pools.collect::<BTreeSet<&str>>().into_iter().map(str::to_owned).collect()
    }

    pub fn running_with(&self, concurrency_key: &str) -> u32 {
        let claimed = self.claimed.iter().filter_map(|id| self.tasks.get(id));
        claimed.filter(|task| task.concurrency_key.as_deref() == Some(concurrency_key)).count()
            as u32
    }

    pub fn due(&self, now: Millis, limit: usize) -> Vec<JobId> {
        let due = |id: &&JobId| self.tasks.get(*id).is_some_and(|task| task.run_at <= now);
        self.submitted.iter().filter(due).take(limit).cloned().collect()
    }

    pub fn overdue(&self, now: Millis, limit: usize) -> Vec<JobId> {
        let overdue = self.deadlines.iter().take_while(|(at, _)| *at <= now);
        overdue.take(limit).map(|(_, id)| id.clone()).collect()
    }

    pub fn next_due(&self, now: Millis) -> Option<Millis> {
        let after = (now.saturating_add(1), lowest());
        let task = self.ready_at.range(after.clone()..).next().map(|(at, _)| *at);
        let deadline = self.deadlines.range(after..).next().map(|(at, _)| *at);
        let schedule = self.schedules.values().filter_map(|schedule| schedule.next_at);
        let schedule = schedule.filter(|at| *at > now).min();
        [task, deadline, schedule].into_iter().flatten().min()
    }

    pub fn claimed_elsewhere(&self, node: &str, limit: usize) -> Vec<Task> {
        let claimed = self.claimed.iter().filter_map(|id| self.tasks.get(id));
        claimed.filter(|task| task.node.as_deref() != Some(node)).take(limit).cloned().collect()
    }

    pub fn open_children(&self, parent: &JobId) -> Vec<JobId> {
        let children = self.children.range((parent.clone(), lowest())..);
        let children = children.take_while(|(of, _)| of == parent).map(|(_, child)| child);
        children.filter(|child| self.open.contains(*child)).cloned().collect()
    }

    pub fn child_by_key(&self, parent: &JobId, child_key: &str) -> Option<JobId> {
        self.child_keys.get(&(parent.clone(), child_key.to_owned())).cloned()
    }

    pub fn by_unique_key(&self, workspace: &str, function: &str, key: &str) -> Option<JobId> {
        let key = (workspace.to_owned(), function.to_owned(), key.to_owned());
        self.unique_keys.get(&key).cloned()
    }

    pub fn list(&self, filter: &JobFilter, limit: usize) -> Vec<(JobFacts, JobState)> {
        let all = match &filter.before {
            Some(before) => self.facts.range(..before.clone()),
            None => self.facts.range::<JobId, _>(..),
        };
        let kept = all.rev().filter_map(|(id, facts)| Some((facts, self.states.get(id)?)));
        let fitting = kept.filter(|(facts, state)| fits(filter, facts, state));
        fitting.take(limit).map(|(facts, state)| (facts.clone(), state.clone())).collect()
    }

    pub fn counts(&self) -> JobCounts {
        let mut by_status = BTreeMap::new();
        for state in self.states.values() {
            *by_status.entry(state.status).or_default() += 1;
        }
        JobCounts { by_status, stale: 0 }
    }

    pub fn attempts_of(&self, id: &JobId) -> Vec<AttemptRow> {
        let range = (id.clone(), 0)..=(id.clone(), u32::MAX);
        self.attempts.range(range).map(|(_, attempt)| attempt.clone()).collect()
    }

    pub fn events_of(&self, id: &JobId, after: u64, limit: usize) -> Vec<EventRow> {
        let events = self.events.range((id.clone(), after.saturating_add(1))..);
        let events = events.take_while(|((job, _), _)| job == id);
        events.take(limit).map(|(_, event)| event.clone()).collect()
    }

    pub fn prunable(&self, before: Millis, limit: usize) -> Vec<JobId> {
        let ended = self.ended.iter().take_while(|(at, _)| *at < before).map(|(_, id)| id);
        ended.filter(|id| !self.has_open_parent(id)).take(limit).cloned().collect()
    }

    fn has_open_parent(&self, id: &JobId) -> bool {
        let parent = self.facts.get(id).and_then(|facts| facts.parent.as_ref());
        parent.is_some_and(|parent| self.open.contains(parent))
    }

    pub fn list_queues(&self) -> Vec<Queue> {
        let mut queues: BTreeMap<&str, Queue> = BTreeMap::new();
        let blank =
            |name: &str| Queue { name: name.to_owned(), paused_at: None, waiting: 0, running: 0 };
        for queue in self.queues.values() {
            let Some(at) = queue.paused_at else { continue };
            queues.entry(&queue.name).or_insert_with(|| blank(&queue.name)).paused_at =
                Some(timestamp(at));
        }
        for id in &self.open {
            let (Some(facts), Some(state)) = (self.facts.get(id), self.states.get(id)) else {
                continue;
            };
            let queue = queues.entry(&facts.queue).or_insert_with(|| blank(&facts.queue));
            match state.status {
                JobStatus::Running => queue.running += 1,
                _ => queue.waiting += 1,
            }
        }
        queues.into_values().collect()
    }

    pub fn schedule_named(&self, workspace: &str, name: &str) -> Option<ScheduleRow> {
        let named = |row: &&ScheduleRow| row.workspace == workspace && row.name == name;
        self.schedules.values().find(named).cloned()
    }

    pub fn list_schedules(&self, after: Option<&ScheduleId>, limit: usize) -> Vec<ScheduleRow> {
        let all = self.schedules.iter().filter(|(id, _)| after.is_none_or(|after| *id > after));
        all.take(limit).map(|(_, row)| row.clone()).collect()
    }

    pub fn schedules_due(&self, now: Millis, limit: usize) -> Vec<ScheduleRow> {
        let due = |row: &&ScheduleRow| row.next_at.is_some_and(|at| at <= now);
        self.schedules.values().filter(due).take(limit).cloned().collect()
    }

    pub fn worker(&self, id: &str) -> Option<WorkerRow> {
        let named = || self.workers.values().rev().find(|worker| worker.name == id);
        self.workers.get(id).or_else(named).cloned()
    }

    pub fn open_workers(&self, pool: Option<&str>) -> Vec<WorkerRow> {
        let of_pool = |worker: &&WorkerRow| pool.is_none_or(|pool| worker.pool == pool);
        let open = self.workers.values().filter(|worker| worker.finished_at.is_none());
        open.filter(of_pool).cloned().collect()
    }

    pub fn prunable_workers(&self, before: Millis, limit: usize) -> Vec<String> {
        let ended = |worker: &&WorkerRow| worker.finished_at.is_some_and(|at| at < before);
        self.workers.values().filter(ended).take(limit).map(|worker| worker.id.clone()).collect()
    }

    pub fn transitions_of(
        &self,
        entity: Entity,
        id: &str,
        after: u64,
        limit: usize,
    ) -> Vec<TransitionRow> {
        let trail = self.transitions.range((entity, id.to_owned(), after.saturating_add(1))..);
        let trail = trail.take_while(|((of, owner, _), _)| *of == entity && owner == id);
        trail.take(limit).map(|(_, step)| step.clone()).collect()
    }

    pub fn entities(&self, entity: Entity, after: &str, limit: usize) -> Vec<String> {
        let mut last = after.to_owned();
        let next = std::iter::from_fn(|| {
            last = self.entity_after(entity, &last)?;
            Some(last.clone())
        });
        next.take(limit).collect()
    }

    fn entity_after(&self, entity: Entity, id: &str) -> Option<String> {
        let after = (Bound::Excluded((entity, id.to_owned(), u64::MAX)), Bound::Unbounded);
        let trail = self.transitions.range(after).next().map(|(key, _)| key);
        let trail = trail.filter(|(of, ..)| *of == entity).map(|(_, id, _)| id.as_str());
        let after = (Bound::Excluded(id), Bound::Unbounded);
        let row = match entity {
            Entity::Job => self.facts.range::<str, _>(after).next().map(|(id, _)| id.as_str()),
            Entity::Worker => self.workers.range::<str, _>(after).next().map(|(id, _)| id.as_str()),
        };
        [trail, row].into_iter().flatten().min().map(str::to_owned)
    }

    pub fn expired_keys(&self, now: Millis, limit: usize) -> Vec<Key> {
        let expired = self.expiries.iter().take_while(|(at, _)| *at <= now);
        expired.take(limit).map(|(_, key)| key.clone()).collect()
    }
}

/// Before every id.
fn lowest() -> JobId {
    JobId::lowest()
}

fn fits(filter: &JobFilter, facts: &JobFacts, state: &JobState) -> bool {
    fn equal<T: PartialEq>(wanted: &Option<T>, is: &T) -> bool {
        wanted.as_ref().is_none_or(|wanted| wanted == is)
    }
    fn same<T: PartialEq>(wanted: &Option<T>, is: &Option<T>) -> bool {
        wanted.is_none() || wanted == is
    }
    equal(&filter.workspace, &facts.workspace)
        && equal(&filter.queue, &facts.queue)
        && equal(&filter.pool, &facts.pool)
        && equal(&filter.function, &facts.function)
        && equal(&filter.status, &state.status)
        && same(&filter.parent, &facts.parent)
        && equal(&filter.root, &facts.root)
        && same(&filter.schedule, &facts.schedule)
        && filter.tag.as_ref().is_none_or(|tag| facts.tags.contains(tag))
}
