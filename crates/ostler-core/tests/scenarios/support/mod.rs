//! The world around one pool, reduced to a script: it holds the time, tells the pool what
//! happened, plays the store, and sorts what the pool orders into deeds, records and notices.
//! After every single event the pool has to agree with itself, and with what it said before.

mod deeds;
mod orders;
mod sessions;
mod witness;

use std::collections::VecDeque;
use std::time::Duration;

use ostler_core::{
    Answer, Backoff, Change, Command, Counters, Event, Exit, LeaseId, LeaseSpec, Notice, Phase,
    Pool, ProcessId, Ready, RecordId, Recording, RequestId, RequestSpec, Settings, SpawnFailure,
    Status, Target, Time, WorkerId, WorkerView,
};

pub use deeds::*;
pub use sessions::*;
use witness::Witness;

/// A deadline that no scenario reaches by accident.
pub const FAR: Time = Time::from_nanos(3_600_000_000_000);

/// A process that can do all that the protocol knows.
pub const READY: Ready =
    Ready { capacity: None, heartbeat: true, gives_back: true, saves_sessions: true };

pub const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

pub const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub fn ids(requests: &[u64]) -> Vec<RequestId> {
    requests.iter().copied().map(RequestId).collect()
}

/// The `generation`-th process of a worker.
pub fn p(worker: u64, generation: u32) -> ProcessId {
    ProcessId { worker: WorkerId(worker), generation }
}

/// The defaults without pings, without checks and without chance.
pub fn calm(size: u32) -> Settings {
    let settings = Settings::of_size(size);
    let backoff = Backoff { jitter: 0.0, ..settings.backoff };
    Settings { heartbeat: None, checkup: None, backoff, ..settings }
}

/// How the store takes what it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    Answers(Recording),
    Silent,
}

#[derive(Debug)]
pub struct Stage {
    pub pool: Pool,
    pub now: Time,
    pub store: Store,
    /// Whether processes answer pings.
    pub pongs: bool,
    /// Whether they answer checks by themselves, and well.
    pub well: bool,
    deeds: Vec<Command>,
    records: Vec<(RecordId, Change)>,
    notices: Vec<Notice>,
    orders: u64,
    witness: Witness,
}

impl Stage {
    pub fn new(settings: Settings) -> Self {
        Stage {
            pool: Pool::new(settings),
            now: Time::ZERO,
            store: Store::Answers(Recording::Stored),
            pongs: true,
            well: false,
            deeds: Vec::new(),
            records: Vec::new(),
            notices: Vec::new(),
            orders: 0,
            witness: Witness::default(),
        }
    }

    /// A pool that was told to start; its first processes are on their way.
    pub fn started(settings: Settings) -> Self {
        let mut stage = Stage::new(settings);
        stage.feed(Event::PoolStarted);
        stage
    }

    /// A pool with every worker ready that it keeps, and nothing left to look at.
    pub fn ready(settings: Settings) -> Self {
        let size = if settings.keyed.is_some() { 0 } else { settings.min };
        let mut stage = Stage::started(settings);
        for worker in 1..=u64::from(size) {
            stage.become_ready(p(worker, 1));
        }
        stage.forget();
        stage
    }

    pub fn feed(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let what = format!("{event:?}");
            self.witness.see(&event);
            let mut out = Vec::new();
            self.pool.handle(self.now, event, &mut out);
            if let Err(disagreement) = self.pool.check() {
                panic!("after {what}: {disagreement}");
            }
            for command in out {
                self.witness.hear(self.now, &command);
                events.extend(self.sort_in(command));
            }
            self.witness.compare(&self.pool);
        }
    }

    /// Keeps a command; the event that the world answers it with, if it does so by itself.
    fn sort_in(&mut self, command: Command) -> Option<Event> {
        match command {
            Command::Notify(notice) => {
                self.notices.push(notice);
                None
            }
            Command::Record { record, change } => {
                self.records.push((record, change));
                match self.store {
                    Store::Answers(result) => Some(Event::Recorded { record, result }),
                    Store::Silent => None,
                }
            }
            Command::Ping { process } if self.pongs => Some(Event::ProcessHeard { process }),
            Command::CheckHealth { process } if self.well => {
                Some(Event::HealthReported { process, well: true })
            }
            command => {
                self.deeds.push(command);
                None
            }
        }
    }

    /// What the pool ordered since the last look, apart from records and notices.
    pub fn take(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.deeds)
    }

    pub fn records(&mut self) -> Vec<(RecordId, Change)> {
        std::mem::take(&mut self.records)
    }

    pub fn notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// How often that was told since the last look, without looking away.
    pub fn told(&self, notice: &Notice) -> usize {
        self.notices.iter().filter(|told| *told == notice).count()
    }

    pub fn forget(&mut self) {
        self.deeds.clear();
        self.records.clear();
        self.notices.clear();
    }

    /// Lets time pass; every deadline on the way is reported when it comes.
    pub fn advance(&mut self, span: Duration) {
        let end = self.now.after(span);
        for _ in 0..1_000_000 {
            let Some(due) = self.pool.next_deadline().filter(|due| *due <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(due);
            self.feed(Event::DeadlineReached);
        }
        panic!("the pool always has something due before {end:?}");
    }

    /// Time passes and nobody looks at the deadlines, as if the shell had been asleep.
    pub fn oversleep(&mut self, span: Duration) {
        self.now = self.now.after(span);
    }

    pub fn arrive(&mut self, id: u64) {
        self.arrive_as(id, |_| {});
    }

    pub fn arrive_as(&mut self, id: u64, shape: impl FnOnce(&mut RequestSpec)) {
        let mut spec = RequestSpec { fingerprint: id, ..RequestSpec::until(FAR) };
        shape(&mut spec);
        self.feed(Event::RequestArrived { request: RequestId(id), spec });
    }

    pub fn arrive_idempotent(&mut self, id: u64) {
        self.arrive_as(id, |spec| spec.idempotent = true);
    }

    pub fn arrive_for(&mut self, id: u64, target: Target) {
        self.arrive_as(id, |spec| spec.target = target);
    }

    /// A call that those requests made and wait for.
    pub fn arrive_from(&mut self, id: u64, ancestors: &[u64]) {
        self.arrive_as(id, |spec| spec.ancestors = ids(ancestors));
    }

    pub fn cancel(&mut self, id: u64) {
        self.feed(Event::CancelRequested { request: RequestId(id) });
    }

    /// The first attempt of a request completed.
    pub fn complete(&mut self, id: u64, process: ProcessId) {
        self.answer(id, 1, process, Answer::Completed);
    }

    pub fn answer(&mut self, id: u64, attempt: u32, process: ProcessId, answer: Answer) {
        let request = RequestId(id);
        self.feed(Event::Answered { process, request, attempt, answer, streamed: false });
    }

    pub fn answer_after_chunks(&mut self, id: u64, process: ProcessId, answer: Answer) {
        let request = RequestId(id);
        self.feed(Event::Answered { process, request, attempt: 1, answer, streamed: true });
    }

    pub fn become_ready(&mut self, process: ProcessId) {
        self.feed(Event::ProcessReady { process, ready: READY });
    }

    pub fn become_ready_for(&mut self, capacity: Option<u32>, process: ProcessId) {
        self.feed(Event::ProcessReady { process, ready: Ready { capacity, ..READY } });
    }

    /// The answer to a check.
    pub fn report(&mut self, process: ProcessId, well: bool) {
        self.feed(Event::HealthReported { process, well });
    }

    pub fn taint(&mut self, process: ProcessId) {
        self.feed(Event::ProcessTainted { process });
    }

    pub fn exit(&mut self, process: ProcessId, exit: Exit) {
        self.feed(Event::ProcessExited { process, exit, streamed: Vec::new() });
    }

    pub fn clear(&mut self, process: ProcessId) {
        self.feed(Event::ProcessCleared { process });
    }

    /// Gone as it was asked to.
    pub fn leave(&mut self, process: ProcessId) {
        self.exit(process, Exit::Code(0));
        self.clear(process);
    }

    /// Gone by a fault of its own.
    pub fn crash(&mut self, process: ProcessId) {
        self.exit(process, Exit::Signal(11));
        self.clear(process);
    }

    pub fn fail_spawn(&mut self, process: ProcessId, cause: SpawnFailure) {
        self.feed(Event::SpawnFailed { process, cause });
    }

    pub fn ask_lease(&mut self, id: u64, workers: u32) {
        self.ask_lease_until(id, workers, FAR);
    }

    pub fn ask_lease_until(&mut self, id: u64, workers: u32, deadline: Time) {
        let spec = LeaseSpec { workers, ttl: secs(60), deadline };
        self.feed(Event::LeaseRequested { lease: LeaseId(id), spec });
    }

    pub fn release(&mut self, id: u64) {
        self.feed(Event::LeaseReleased { lease: LeaseId(id), discard: false });
    }

    pub fn discard(&mut self, id: u64) {
        self.feed(Event::LeaseReleased { lease: LeaseId(id), discard: true });
    }

    pub fn view(&self, worker: u64) -> WorkerView {
        self.pool.worker(WorkerId(worker)).expect("the scenario knows this worker")
    }

    pub fn phase(&self, worker: u64) -> Option<Phase> {
        self.view(worker).phase
    }

    pub fn status(&self, worker: u64) -> Status {
        self.view(worker).status
    }

    pub fn stale(&self) -> u64 {
        self.counters().stale
    }

    pub fn counters(&self) -> Counters {
        self.pool.view(self.now).counters
    }
}
