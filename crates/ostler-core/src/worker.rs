//! One place in the pool: a durable identity with a status, and what it runs on.

use crate::command::{Change, Phase, Retirement, StopReason};
use crate::event::Exit;
use crate::id::{KeyId, OrderId, ProcessId, RequestId, WorkerId};
use crate::process::{Hold, Process};
use crate::status::{Status, Trigger};
use crate::strategy::Candidate;
use crate::time::Time;

#[derive(Debug)]
pub(crate) struct Worker {
    pub id: WorkerId,
    pub dedicated: bool,
    /// Whom it belongs to, in a keyed pool.
    pub key: Option<KeyId>,
    pub status: Status,
    /// Changes of status stored so far.
    pub seq: u64,
    pub pending: Option<Pending>,
    /// A change that the core itself wants once the pending one is settled.
    pub wanted: Option<Trigger>,
    pub generation: u32,
    pub engine: Engine,
    /// Unplanned ends in a row, without an answer in between.
    pub crashes: u32,
    pub last_exit: Option<Exit>,
    pub last_used: Time,
    /// When its process became ready.
    pub ready_since: Time,
    /// Requests that the pool had given out when this one was last given one.
    pub last_turn: u64,
    pub answered: u64,
    pub paused_by_system: bool,
    /// The worker that takes over from this one, once it is ready.
    pub successor: Option<WorkerId>,
    pub replaces: Option<WorkerId>,
    /// Why it is to go.
    pub retirement: Option<Retirement>,
    /// It goes, and nobody comes in its place.
    pub departing: bool,
    /// No new work; COMPLETED as soon as it is idle.
    pub retiring: bool,
    /// The order that a completion answers.
    pub completing: Option<OrderId>,
    /// The order that the end of the process answers.
    pub terminating: Option<OrderId>,
    /// An ordered start that must lead to a ready process in time.
    pub proving: bool,
}

/// A change of status on its way to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pending {
    pub change: Change,
    pub freeze: bool,
    pub since: Time,
    /// The store has not said anything yet. It is not asked twice at a time: the second answer
    /// could be taken for one to the next change.
    pub asked: bool,
    /// Its order has been answered `TimedOut`; terminate when it is settled.
    pub overdue: bool,
    /// The store once could not say whether it has it: from then on only a yes counts.
    pub doubted: bool,
}

#[derive(Debug)]
pub(crate) enum Engine {
    /// No process, and none to come without an order.
    Parked,
    /// The next incarnation waits for its backoff.
    Waiting,
    /// The next incarnation waits for its batch.
    Queued,
    Live(Process),
}

/// How far a worker is open for new requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Openness {
    Closed,
    /// Full, but one more may lie in its stream.
    Prefetch {
        used: u32,
    },
    Open(Candidate),
}

impl Worker {
    pub fn new(id: WorkerId, dedicated: bool, now: Time) -> Self {
        Worker {
            id,
            dedicated,
            key: None,
            status: Status::Idle,
            seq: 0,
            pending: None,
            wanted: None,
            generation: 0,
            engine: Engine::Parked,
            crashes: 0,
            last_exit: None,
            last_used: now,
            ready_since: now,
            last_turn: 0,
            answered: 0,
            paused_by_system: false,
            successor: None,
            replaces: None,
            retirement: None,
            departing: false,
            retiring: false,
            completing: None,
            terminating: None,
            proving: false,
        }
    }

    pub fn process(&self) -> Option<&Process> {
        match &self.engine {
            Engine::Live(process) => Some(process),
            _ => None,
        }
    }

    pub fn process_mut(&mut self) -> Option<&mut Process> {
        match &mut self.engine {
            Engine::Live(process) => Some(process),
            _ => None,
        }
    }

    pub fn process_id(&self) -> ProcessId {
        ProcessId { worker: self.id, generation: self.generation }
    }

    pub fn load(&self) -> usize {
        self.process().map_or(0, |process| process.held.len())
    }

    /// In service, apart from how full it is.
    pub fn in_service(&self) -> bool {
        self.status == Status::Running
            && !self.retiring
            && self.completing.is_none()
            && self.pending.is_none_or(|pending| pending.change.to == Status::Running)
    }

    pub fn accepts(&self) -> bool {
        self.in_service() && self.process().is_some_and(Process::well)
    }

    /// A lease outlives the wish to retire, but not a pause or a stop.
    pub fn serves_its_leases(&self) -> bool {
        self.status == Status::Running
            && self.pending.is_none_or(|pending| pending.change.to == Status::Running)
            && self.process().is_some_and(Process::serving)
    }

    pub fn free_places(&self) -> usize {
        match self.process() {
            Some(process) if self.accepts() => {
                (process.capacity as usize).saturating_sub(process.used())
            }
            _ => 0,
        }
    }

    pub fn openness(&self) -> Openness {
        let Some(process) = self.process() else { return Openness::Closed };
        if !self.accepts() || self.dedicated || self.key.is_some() {
            return Openness::Closed;
        }
        let used = process.used() as u32;
        if used < process.capacity {
            Openness::Open(Candidate {
                id: self.id,
                load: used,
                capacity: process.capacity,
                last_used: self.last_used,
                last_turn: self.last_turn,
                answered: self.answered,
            })
        } else if process.leases.is_empty() && used < process.capacity + process.prefetch {
            Openness::Prefetch { used }
        } else {
            Openness::Closed
        }
    }

    pub fn view(&self) -> WorkerView {
        let process = self.process();
        WorkerView {
            id: self.id,
            dedicated: self.dedicated,
            status: self.status,
            phase: process.map(Process::phase),
            generation: self.generation,
            capacity: process.map_or(0, |process| process.capacity),
            held: process.map_or_else(Vec::new, |process| {
                let live = process.held.iter().filter(|held| held.hold == Hold::Live);
                live.map(|held| held.request).collect()
            }),
            load: self.load() as u32,
            answered: self.answered,
            crashes: self.crashes,
            last_exit: self.last_exit,
            unresponsive: process.is_some_and(|process| process.unresponsive),
            failed_checks: process.map_or(0, |process| process.failed_checks),
            stopping: process.and_then(Process::stopping),
            retiring: self.retiring,
            retirement: self.retirement,
            key: self.key,
            edition: process.map_or(0, |process| process.edition),
            served: process.map_or(0, |process| process.served),
            memory: process.map_or(0, |process| process.memory),
            last_used: self.last_used,
        }
    }
}

/// A worker as others see it.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerView {
    pub id: WorkerId,
    pub dedicated: bool,
    pub status: Status,
    /// `None` while it has no process.
    pub phase: Option<Phase>,
    pub generation: u32,
    pub capacity: u32,
    pub load: u32,
    /// Requests that it holds and that still want an answer.
    pub held: Vec<RequestId>,
    pub answered: u64,
    pub crashes: u32,
    pub last_exit: Option<Exit>,
    pub unresponsive: bool,
    pub failed_checks: u32,
    /// Why it is on its way out.
    pub stopping: Option<StopReason>,
    pub retiring: bool,
    /// Why it is to go.
    pub retirement: Option<Retirement>,
    pub key: Option<KeyId>,
    /// Which kind of worker its process is.
    pub edition: u32,
    /// Requests that its process has let go of.
    pub served: u64,
    /// Resident bytes, as last measured; 0 before that.
    pub memory: u64,
    pub last_used: Time,
}
