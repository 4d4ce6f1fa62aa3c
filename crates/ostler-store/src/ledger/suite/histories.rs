//! Random histories. Nothing says what each step must come to; again and again what is
//! stored must fit together, and in the end everything that was submitted has its end.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;

use super::super::draft::Dice;
use super::super::job::{Children, JobFilter, Saying};
use super::super::row::Task;
use super::*;
use crate::clock::Clock as _;

const STEPS: usize = 80;

pub(in crate::ledger) async fn whatever_happens_what_is_stored_fits_together(
    mut world: World,
) -> World {
    for seed in 0..2 {
        world = History::tell(world, seed, 16).await;
    }
    world
}

#[tokio::test]
async fn many_histories_in_memory() {
    for seed in 100..140 {
        History::tell(World::on(MemoryGround::default()).await, seed, 4).await;
    }
}

struct History {
    world: World,
    dice: Dice,
    seed: u64,
    ids: Vec<JobId>,
    /// What this server has claimed and not finished.
    held: HashMap<JobId, Claimed>,
    /// Jobs that have ended, and how.
    ended: HashMap<JobId, Job>,
}

impl History {
    /// Looks at everything after `pace` steps each.
    async fn tell(world: World, seed: u64, pace: usize) -> World {
        let (ids, held, ended) = (Vec::new(), HashMap::new(), HashMap::new());
        let mut history = History { world, dice: Dice::seeded(seed), seed, ids, held, ended };
        for step in 0..STEPS {
            history.step().await;
            if step % pace == 0 {
                history.check().await;
            }
        }
        history.drain().await;
        history.world
    }

    fn roll(&mut self, sides: usize) -> usize {
        (self.dice.draw() * sides as f64) as usize
    }

    fn some_id(&mut self) -> Option<JobId> {
        let index = self.roll(self.ids.len());
        self.ids.get(index).cloned()
    }

    fn pool(&self) -> String {
        format!("pool-{}", self.seed)
    }

    async fn step(&mut self) {
        match self.roll(20) {
            0..=5 => self.submit().await,
            6..=8 => self.claim().await,
            9..=13 => self.finish().await,
            14 => self.cancel().await,
            15 => self.retry().await,
            16 => self.say().await,
            17 => {
                let millis = self.roll(3_000) as u64;
                self.world.pass(Duration::from_millis(millis)).await;
            }
            18 => self.switch_queue().await,
            _ => self.crash().await,
        }
    }

    fn random_job(&mut self) -> NewJob {
        let parent = if self.roll(2) == 0 { self.some_id() } else { None };
        let child_key = (parent.is_some() && self.roll(3) == 0).then(|| "child".to_owned());
        let key = ["x", "y"][self.roll(2)].to_owned();
        let unique = self.roll(8) == 0;
        let now = self.world.clock.wall();
        let later = Timestamp::from_millisecond(now + self.roll(2_000) as i64).unwrap();
        let max_attempts = 1 + self.roll(3) as u32;
        NewJob {
            pool: self.pool(),
            queue: ["one", "two"][self.roll(2)].to_owned(),
            parent,
            child_key,
            workspace: format!("space-{}", self.seed),
            worker_count: if self.roll(6) == 0 { 2 } else { 1 },
            priority: self.roll(3) as i8,
            run_at: (self.roll(5) == 0).then_some(later),
            timeout: (self.roll(6) == 0).then(|| Duration::from_millis(1_500)),
            retrying: Retrying { max_attempts, on_error: self.roll(2) == 0, ..Retrying::default() },
            children: if self.roll(4) == 0 { Children::Ignore } else { Children::Wait },
            unique_key: unique.then(|| key.clone()),
            concurrency_key: (self.roll(5) == 0).then_some(key),
            ..new_job()
        }
    }

    async fn submit(&mut self) {
        let jobs: Vec<NewJob> = (0..=self.roll(2)).map(|_| self.random_job()).collect();
        if let Ok(submitted) = self.world.ledger.submit(jobs, asked()).await {
            let new = submitted.into_iter().filter(|submitted| !submitted.known);
            self.ids.extend(new.map(|submitted| submitted.job.id));
        }
    }

    async fn claim(&mut self) {
        let pool = self.pool();
        let limit = 1 + self.roll(3);
        let mut claimed = self.world.ledger.claim(&pool, limit).await.unwrap();
        assert!(claimed.len() <= limit);
        if let Some((id, _)) = self.world.ledger.next_gang(&pool).await.unwrap() {
            claimed.extend(self.world.ledger.claim_job(&id).await.unwrap());
        }
        for one in claimed {
            let before = self.held.insert(one.job.id.clone(), one);
            assert!(before.is_none(), "nobody gets what somebody has");
        }
    }

    async fn finish(&mut self) {
        let index = self.roll(self.held.len());
        let mut ids: Vec<JobId> = self.held.keys().cloned().collect();
        ids.sort();
        let Some(id) = ids.get(index) else { return };
        let claimed = self.held.remove(id).expect("it is held");
        let end = match self.roll(8) {
            0..=3 => done(),
            4 => failed(AttemptFailure::Error),
            5 => failed(AttemptFailure::Crashed),
            6 => AttemptEnd::Released,
            _ => AttemptEnd::Canceled,
        };
        self.world.finish(&claimed, end).await;
        let again = self.world.ledger.finish(id, claimed.fence, done()).await.unwrap();
        assert_eq!(again, Finished::Stale, "an end is taken once");
    }

    async fn cancel(&mut self) {
        let Some(id) = self.some_id() else { return };
        let before = self.world.status(&id).await;
        let canceled = self.world.ledger.cancel(&id, asked()).await;
        assert_eq!(canceled.is_err(), before.terminal());
    }

    async fn retry(&mut self) {
        let Some(id) = self.some_id() else { return };
        if let Ok(job) = self.world.ledger.retry(&id, asked()).await {
            self.ids.push(job.id);
        }
    }

    async fn say(&mut self) {
        let Some(claimed) = self.held.values().next() else { return };
        let words = vec![Saying::Progress(json!(1)), Saying::Message(json!("on"))];
        self.world.ledger.say(&claimed.job.id, claimed.fence, words).await.unwrap();
    }

    async fn switch_queue(&mut self) {
        let name = ["one", "two"][self.roll(2)];
        let ledger = &self.world.ledger;
        match self.dice.draw() < 0.5 {
            true => ledger.pause_queue(name, asked()).await.unwrap(),
            false => ledger.resume_queue(name, asked()).await.unwrap(),
        };
    }

    async fn crash(&mut self) {
        self.world.crash().await;
        for (id, claimed) in std::mem::take(&mut self.held) {
            let late = self.world.ledger.finish(&id, claimed.fence, done()).await.unwrap();
            assert_eq!(late, Finished::Stale, "the old server has no say");
        }
    }

    /// Until nothing is open any more.
    async fn drain(&mut self) {
        for queue in ["one", "two"] {
            self.world.ledger.resume_queue(queue, asked()).await.unwrap();
        }
        for _ in 0..200 {
            self.claim().await;
            for (_, claimed) in std::mem::take(&mut self.held) {
                self.world.complete(&claimed).await;
            }
            let jobs = self.check().await;
            if jobs.values().all(|job| job.status.terminal()) {
                return;
            }
            self.world.pass(Duration::from_millis(700)).await;
        }
        panic!("seed {}: some never end", self.seed);
    }

    async fn check(&mut self) -> BTreeMap<JobId, Job> {
        let workspace = Some(format!("space-{}", self.seed));
        let filter = JobFilter { workspace, ..JobFilter::default() };
        let listed = self.world.ledger.jobs(&filter, 1_000).await.unwrap();
        let jobs: BTreeMap<JobId, Job> =
            listed.into_iter().map(|job| (job.id.clone(), job)).collect();
        assert_eq!(jobs.len(), self.ids.len(), "each is stored once");
        for job in jobs.values() {
            self.check_family(job, &jobs);
            self.check_work(job).await;
            self.check_end(job);
        }
        check_keys(&jobs);
        self.check_limits(&jobs);
        self.world.verified().await;
        jobs
    }

    fn check_family(&self, job: &Job, jobs: &BTreeMap<JobId, Job>) {
        let children = jobs.values().filter(|other| other.spec.parent.as_ref() == Some(&job.id));
        let open = children.filter(|child| !child.status.terminal()).count() as u32;
        assert_eq!(job.open_children, open, "seed {}: {} counts its children", self.seed, job.id);
        let (depth, root) = match &job.spec.parent {
            None => (0, &job.id),
            Some(parent) => (jobs[parent].depth + 1, &jobs[parent].root),
        };
        assert_eq!((job.depth, &job.root), (depth, root));
        assert!(job.depth <= 5);
        let waits = job.spec.children == Children::Wait;
        assert!(
            !(job.status == JobStatus::Completed && waits && open > 0),
            "seed {}: {} did not wait",
            self.seed,
            job.id
        );
    }

    async fn check_work(&self, job: &Job) {
        let task = self.task(&job.id).await;
        let held = self.held.get(&job.id);
        let working = !job.status.terminal() && !job.waiting;
        assert_eq!(task.is_some(), working, "seed {}: {:?} and {task:?}", self.seed, job);
        let node = task.as_ref().and_then(|task| task.node.as_deref());
        assert_eq!(node, held.map(|_| self.world.ledger.node()), "{}", job.id);
        if let (Some(task), Some(held)) = (&task, held) {
            assert_eq!((task.fence, task.attempt), (held.fence, held.attempt));
        }
        let attempts = self.world.ledger.attempts(&job.id).await.unwrap();
        let numbers: Vec<u32> = attempts.iter().map(|one| one.attempt).collect();
        assert_eq!(numbers, (1..=job.attempt).collect::<Vec<_>>(), "attempts add up");
        let open = attempts.iter().filter(|one| one.ended_at.is_none()).count();
        assert_eq!(open, usize::from(held.is_some()));
        assert!(job.attempt <= job.spec.retrying.max_attempts);
    }

    async fn task(&self, id: &JobId) -> Option<Task> {
        self.world.ledger.read().await.unwrap().task(id).await.unwrap()
    }

    fn check_end(&mut self, job: &Job) {
        let result = job.status == JobStatus::Completed;
        assert!(job.completed_at.is_some() == job.status.terminal());
        assert!(!result || job.reason.is_none());
        if let Some(end) = self.ended.get(&job.id) {
            let same = (end.status, end.completed_at, &end.reason, &end.error);
            assert_eq!((job.status, job.completed_at, &job.reason, &job.error), same);
        } else if job.status.terminal() {
            self.ended.insert(job.id.clone(), job.clone());
        }
    }

    fn check_limits(&self, jobs: &BTreeMap<JobId, Job>) {
        let mut running: BTreeMap<&str, u32> = BTreeMap::new();
        for id in self.held.keys() {
            if let Some(key) = &jobs[id].spec.concurrency_key {
                *running.entry(key).or_default() += 1;
            }
        }
        assert!(running.values().all(|count| *count <= 1), "seed {}: {running:?}", self.seed);
    }
}

fn check_keys(jobs: &BTreeMap<JobId, Job>) {
    let mut living = HashMap::new();
    for job in jobs.values().filter(|job| !job.status.terminal()) {
        let Some(key) = &job.spec.unique_key else { continue };
        let other = living.insert((&job.spec.function, key), &job.id);
        assert_eq!(other, None, "one of a kind");
    }
}
