//! The most urgent tasks of each pool, in memory, so that a claim asks the backend for nothing. It
//! holds what a query gave, and follows what this node changes; what it cannot follow (keys that
//! bound how many run, queues that are paused, time) makes it forget.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::id::JobId;
use super::row::{Millis, Task};

/// Tasks known of one pool.
const WINDOW_MAX: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Ready {
    pools: HashMap<String, Window>,
}

#[derive(Debug)]
struct Window {
    /// The first ones there are, without a gap.
    tasks: BTreeMap<Urgency, Task>,
    /// There are no others.
    all: bool,
}

/// Priority, since when, and age.
type Urgency = (Reverse<i8>, Millis, JobId);

fn urgency(task: &Task) -> Urgency {
    (Reverse(task.priority), task.run_at, task.job.clone())
}

impl Ready {
    pub fn forget(&mut self) {
        self.pools.clear();
    }

    /// What the backend gave when it was asked for `wanted`.
    pub fn learn(&mut self, pool: &str, tasks: Vec<Task>, wanted: usize) {
        let all = tasks.len() < wanted;
        let tasks = tasks.into_iter().map(|task| (urgency(&task), task)).collect();
        self.pools.insert(pool.to_owned(), Window { tasks, all });
    }

    /// The next ones, which leave it. None: the backend has to be asked.
    pub fn take(&mut self, pool: &str, limit: usize) -> Option<Vec<Task>> {
        let window = self.pools.get_mut(pool)?;
        if window.tasks.len() < limit && !window.all {
            return None;
        }
        let next = std::iter::from_fn(|| window.tasks.pop_first());
        Some(next.take(limit).map(|(_, task)| task).collect())
    }

    /// It may be claimed from now on.
    pub fn add(&mut self, task: &Task) {
        let Some(window) = self.pools.get_mut(&task.pool) else { return };
        let urgency = urgency(task);
        let last = window.tasks.last_key_value();
        if !window.all && last.is_none_or(|(last, _)| urgency > *last) {
            return;
        }
        window.tasks.insert(urgency, task.clone());
        if window.tasks.len() > WINDOW_MAX {
            window.tasks.pop_last();
            window.all = false;
        }
    }

    /// It may not be claimed any more.
    pub fn remove(&mut self, task: &Task) {
        if let Some(window) = self.pools.get_mut(&task.pool) {
            window.tasks.remove(&urgency(task));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(priority: i8, run_at: Millis) -> Task {
        Task {
            job: JobId::fresh(),
            pool: "py".to_owned(),
            queue: "default".to_owned(),
            workers: 1,
            priority,
            run_at,
            concurrency_key: None,
            concurrency_limit: 1,
            attempt: 0,
            fence: 0,
            node: None,
        }
    }

    fn taken(ready: &mut Ready, limit: usize) -> Option<Vec<(i8, Millis)>> {
        let tasks = ready.take("py", limit)?;
        Some(tasks.iter().map(|task| (task.priority, task.run_at)).collect())
    }

    #[test]
    fn of_a_pool_that_it_does_not_know_it_says_nothing() {
        let mut ready = Ready::default();
        ready.add(&task(0, 1));
        assert_eq!(taken(&mut ready, 1), None);
        ready.learn("other", Vec::new(), 8);
        assert_eq!(taken(&mut ready, 1), None);
    }

    #[test]
    fn what_comes_is_sorted_in_where_everything_is_known() {
        let mut ready = Ready::default();
        ready.learn("py", vec![task(0, 5)], 8);
        ready.add(&task(0, 9));
        ready.add(&task(3, 9));
        ready.add(&task(0, 1));
        assert_eq!(taken(&mut ready, 3), Some(vec![(3, 9), (0, 1), (0, 5)]));
        assert_eq!(taken(&mut ready, 3), Some(vec![(0, 9)]));
        assert_eq!(taken(&mut ready, 3), Some(Vec::new()), "there are no others");
    }

    #[test]
    fn behind_what_is_known_there_may_be_others_before_it() {
        let mut ready = Ready::default();
        ready.learn("py", vec![task(5, 1), task(4, 1)], 2);
        ready.add(&task(3, 1));
        ready.add(&task(5, 2));
        assert_eq!(taken(&mut ready, 4), None, "the backend knows what is behind");
        assert_eq!(taken(&mut ready, 3), Some(vec![(5, 1), (5, 2), (4, 1)]));
        ready.add(&task(9, 9));
        assert_eq!(taken(&mut ready, 1), None, "nothing is known any more");
    }

    #[test]
    fn what_left_is_not_given() {
        let mut ready = Ready::default();
        let (leaves, stays) = (task(1, 1), task(0, 1));
        ready.learn("py", vec![leaves.clone(), stays], 8);
        ready.remove(&leaves);
        assert_eq!(taken(&mut ready, 2), Some(vec![(0, 1)]));
    }

    #[test]
    fn it_is_bounded() {
        let mut ready = Ready::default();
        ready.learn("py", Vec::new(), 8);
        for at in 0..=WINDOW_MAX as Millis {
            ready.add(&task(0, at));
        }
        assert_eq!(taken(&mut ready, WINDOW_MAX + 1), None, "the last one was left out");
        assert_eq!(taken(&mut ready, WINDOW_MAX).map(|tasks| tasks.len()), Some(WINDOW_MAX));
    }
}
