//! One history, told again and again, with a bad moment at every place in it. Whatever fails is
//! asked for again. Nothing is acknowledged that is not stored, what was refused changed nothing,
//! and the history always ends the same.

use std::sync::atomic::{AtomicBool, Ordering};

use super::super::job::{JobFilter, Saying};
use super::super::key::{Answer, Begun, Key};
use super::super::schedule::{NewSchedule, Overlap, Schedule, ScheduleChange};
use super::super::worker::{Stored, Worker};
use super::faulty::{Fault, Faulty, Plan};
use super::workers::change;
use super::*;

/// Faults in a row: one, and so many that the first look after a commit fails too.
const LENGTHS: [i64; 2] = [1, 3];
/// Far beyond the operations of one history.
const LONGEST: i64 = 2_000;

pub(in crate::ledger) async fn a_refusal_at_any_moment_changes_nothing(world: World) -> World {
    every_moment(world, Fault::Refused).await
}

pub(in crate::ledger) async fn a_loss_at_any_moment_changes_nothing(world: World) -> World {
    every_moment(world, Fault::Lost).await
}

pub(in crate::ledger) async fn a_doubt_at_any_moment_is_settled(world: World) -> World {
    every_moment(world, Fault::Performed).await
}

async fn every_moment(mut world: World, fault: Fault) -> World {
    world.ledger.end().await;
    // Where each transaction waits for a disk, some moments stand for those beside them.
    let stride = if world.ground.quick() { 1 } else { 7 };
    // Two tellings back; each takes two hours.
    world.settings.retention = 3 * HOUR;
    world.settings.worker_retention = 3 * HOUR;
    for count in LENGTHS {
        for first in (count..LONGEST).step_by(stride) {
            let plan = Plan::new(fault, first - count, count);
            let name = format!("{fault:?}-{count}-{first}");
            let told = Told::begin(&world, &plan, &name).await;
            told.tell().await;
            if !plan.struck() {
                break;
            }
        }
    }
    (world.ledger, world.told) = start(&*world.ground, &world.settings, &world.clock).await;
    world
}

/// One telling of the history. Its workspace, its pool and its keys are its own.
struct Told<'a> {
    world: &'a World,
    ledger: Ledger,
    name: &'a str,
    /// Several things happen at once: what changed in between may be another's doing.
    crowd: AtomicBool,
}

/// What can be seen of it.
#[derive(Debug, PartialEq)]
struct Seen {
    /// Their versions count the lines of their stories.
    jobs: Vec<Job>,
    schedules: Vec<Schedule>,
    worker: Option<Worker>,
}

/// How a step went in the end.
struct Went<T> {
    answer: T,
    /// At least once nobody knew whether it had happened.
    doubted: bool,
}

impl<'a> Told<'a> {
    async fn begin(world: &'a World, plan: &Arc<Plan>, name: &'a str) -> Told<'a> {
        loop {
            let inner = world.ground.open().await;
            let backend = Box::new(Faulty { inner, plan: Arc::clone(plan) });
            let started = Ledger::start(backend, world.settings.clone(), world.clock.clone());
            if let Ok(ledger) = started.await {
                return Told { world, ledger, name, crowd: AtomicBool::new(false) };
            }
        }
    }

    /// Asks until it is answered. A refusal that is certain changed nothing.
    async fn step<T, F>(&self, ask: impl Fn() -> F) -> Went<Result<T, LedgerError>>
    where
        F: Future<Output = Result<T, LedgerError>>,
    {
        let mut doubted = false;
        for _ in 0..10 {
            let before = self.seen().await;
            match ask().await {
                Err(LedgerError::Unavailable { .. }) if self.crowded() => {}
                Err(LedgerError::Unavailable { .. }) => assert_eq!(self.seen().await, before),
                Err(LedgerError::Doubtful { .. }) => doubted = true,
                answer => return Went { answer, doubted },
            }
        }
        panic!("{}: the ledger does not recover", self.name);
    }

    async fn sure<T, F>(&self, ask: impl Fn() -> F) -> T
    where
        F: Future<Output = Result<T, LedgerError>>,
    {
        self.step(ask).await.answer.unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    async fn seen(&self) -> Seen {
        let filter = JobFilter { workspace: Some(self.name.to_owned()), ..JobFilter::default() };
        let jobs = self.ledger.jobs(&filter, 100).await.unwrap();
        let schedules = self.ledger.schedules(None, 100).await.unwrap();
        let worker = self.ledger.worker(&self.worker()).await.unwrap();
        Seen { jobs, schedules, worker }
    }

    fn crowded(&self) -> bool {
        self.crowd.load(Ordering::SeqCst)
    }

    fn worker(&self) -> String {
        format!("w_{}", self.name)
    }

    fn key(&self) -> Key {
        let (caller, route) = (self.name.to_owned(), "POST /api/jobs".to_owned());
        Key { caller, route, key: "k".to_owned() }
    }

    fn job(&self, unique_key: &str) -> NewJob {
        NewJob {
            workspace: self.name.to_owned(),
            pool: self.name.to_owned(),
            unique_key: Some(unique_key.to_owned()),
            ..new_job()
        }
    }

    async fn submit(&self, job: NewJob) -> JobId {
        self.sure(|| self.ledger.submit(vec![job.clone()], asked())).await.remove(0).job.id
    }

    async fn claim(&self) -> Claimed {
        let mut claimed = self.sure(|| self.ledger.claim(self.name, 1)).await;
        assert_eq!(claimed.len(), 1, "{}: what nobody runs can be claimed", self.name);
        claimed.remove(0)
    }

    async fn finish(&self, claimed: &Claimed, end: AttemptEnd) {
        let (id, fence) = (&claimed.job.id, claimed.fence);
        let went = self.step(|| self.ledger.finish(id, fence, end.clone())).await;
        match went.answer.unwrap() {
            Finished::Taken(_) => {}
            Finished::Stale => assert!(went.doubted, "{}: it is taken once", self.name),
        }
    }

    async fn tell(self) {
        self.tell_of_a_parent().await;
        self.tell_of_a_cancellation().await;
        self.tell_of_a_crowd().await;
        self.tell_of_a_schedule().await;
        self.tell_of_a_worker().await;
        self.ledger.end().await;
        let (ledger, _) = start(&*self.world.ground, &self.world.settings, &self.world.clock).await;
        let told = Told { ledger, ..self };
        told.check().await;
        told.ledger.end().await;
    }

    async fn tell_of_a_parent(&self) {
        let parent = self.submit(self.job("parent")).await;
        let claimed = self.claim().await;
        let key = self.key();
        let begun = self.sure(|| self.ledger.begin_key(&key, 7, true)).await;
        assert!(matches!(begun, Begun::Fresh | Begun::InFlight));
        let child = NewJob {
            parent: Some(parent.clone()),
            child_key: Some("child".to_owned()),
            ..self.job("child")
        };
        let keyed = Asked { key: Some(key.clone()), ..asked() };
        let submit = || self.ledger.submit(vec![child.clone()], keyed.clone());
        let id = self.sure(submit).await.remove(0).job.id;
        let begun = self.sure(|| self.ledger.begin_key(&key, 7, true)).await;
        assert_eq!(begun, Begun::Applied { resource: id.to_string() }, "with its effect");
        let answer = Answer {
            status: 202,
            headers: Vec::new(),
            body: "{}".into(),
            at: jiff::Timestamp::UNIX_EPOCH,
        };
        self.sure(|| self.ledger.finish_key(&key, answer.clone())).await;
        let words = vec![Saying::Progress(json!(1)), Saying::Message(json!("on"))];
        let say = || self.ledger.say(&parent, claimed.fence, words.clone());
        self.sure(say).await;
        self.finish(&claimed, done()).await;
        let first = self.claim().await;
        self.finish(&first, failed(AttemptFailure::Retryable)).await;
        self.world.clock.pass(HOUR);
        self.sure(|| self.ledger.keep_time()).await;
        let second = self.claim().await;
        assert_eq!((&second.job.id, second.attempt), (&id, 2));
        self.finish(&second, done()).await;
    }

    async fn tell_of_a_cancellation(&self) {
        let top = self.submit(self.job("top")).await;
        let working = self.claim().await;
        for name in ["left", "right"] {
            let parent = Some(top.clone());
            self.submit(NewJob { parent, ..self.job(name) }).await;
        }
        let busy = self.claim().await;
        let queue = self.name;
        self.sure(|| self.ledger.pause_queue(queue, asked())).await;
        self.sure(|| self.ledger.resume_queue(queue, asked())).await;
        self.sure(|| self.ledger.cancel(&top, asked())).await;
        self.finish(&working, AttemptEnd::Canceled).await;
        self.finish(&busy, done()).await;
    }

    /// Several at once, so that they share a transaction.
    async fn tell_of_a_crowd(&self) {
        self.crowd.store(true, Ordering::SeqCst);
        let submit = |name: &'static str| async move { self.submit(self.job(name)).await };
        let (a, b, c) = tokio::join!(submit("a"), submit("b"), submit("c"));
        let claimed = [self.claim().await, self.claim().await, self.claim().await];
        let mut ids: Vec<&JobId> = claimed.iter().map(|one| &one.job.id).collect();
        ids.sort();
        let mut all = [&a, &b, &c];
        all.sort();
        assert_eq!(ids, all);
        let finish = |index: usize| self.finish(&claimed[index], done());
        tokio::join!(finish(0), finish(1), finish(2));
        self.crowd.store(false, Ordering::SeqCst);
    }

    async fn tell_of_a_schedule(&self) {
        let new = NewSchedule {
            name: self.name.to_owned(),
            workspace: "default".to_owned(),
            cron: "@every 1h".to_owned(),
            timezone: "UTC".to_owned(),
            job: self.job("scheduled"),
            overlap: Overlap::Skip,
            paused: false,
        };
        let went = self.step(|| self.ledger.add_schedule(new.clone(), asked())).await;
        let exists = matches!(went.answer, Err(LedgerError::ScheduleExists { .. }));
        assert!(went.answer.is_ok() || (exists && went.doubted), "{:?}", went.answer);
        self.world.clock.pass(HOUR);
        self.sure(|| self.ledger.keep_time()).await;
        let pause = ScheduleChange { paused: Some(true), ..ScheduleChange::default() };
        let change = || self.ledger.change_schedule(self.name, pause.clone(), asked());
        self.sure(change).await;
        let went = self.step(|| self.ledger.delete_schedule(self.name, asked())).await;
        let gone = matches!(went.answer, Err(LedgerError::NoSchedule { .. }));
        assert!(went.answer.is_ok() || (gone && went.doubted), "{:?}", went.answer);
        let claimed = self.claim().await;
        self.finish(&claimed, done()).await;
    }

    async fn tell_of_a_worker(&self) {
        let id = self.worker();
        for seq in 1..=3 {
            let mut tries = 0;
            while self.ledger.record(change(&id, seq)).await != Stored::Yes {
                tries += 1;
                assert!(tries < 10, "{}: the ledger does not recover", self.name);
            }
        }
    }

    async fn check(&self) {
        let seen = self.seen().await;
        let mut ends: Vec<(String, &str)> = seen
            .jobs
            .iter()
            .map(|job| (job.spec.unique_key.clone().unwrap(), job.status.name()))
            .collect();
        ends.sort();
        let expected = [
            ("a", "COMPLETED"),
            ("b", "COMPLETED"),
            ("c", "COMPLETED"),
            ("child", "COMPLETED"),
            ("left", "CANCELED"),
            ("parent", "COMPLETED"),
            ("right", "CANCELED"),
            ("scheduled", "COMPLETED"),
            ("top", "CANCELED"),
        ];
        assert_eq!(ends, expected.map(|(name, status)| (name.to_owned(), status)), "{}", self.name);
        for job in &seen.jobs {
            let attempts = self.ledger.attempts(&job.id).await.unwrap();
            assert_eq!(attempts.len() as u32, job.attempt, "{}: attempts add up", self.name);
            assert!(attempts.iter().all(|one| one.ended_at.is_some()));
        }
        assert_eq!(seen.worker.map(|worker| worker.seq), Some(4), "{}", self.name);
        let report = self.ledger.verify().await.unwrap();
        assert_eq!(report.findings, [], "{}", self.name);
    }
}
