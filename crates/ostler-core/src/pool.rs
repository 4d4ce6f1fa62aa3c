//! The pool: its state, the one way in, and the little that every part of it needs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::bond::Bonds;
use crate::command::{Command, Notice, PhaseReason};
use crate::event::Event;
use crate::id::{IdMap, LeaseId, ProcessId, RequestId, WorkerId};
use crate::keyed::Keys;
use crate::lease::Lease;
use crate::process::Process;
use crate::quarantine::Quarantine;
use crate::queue::FairQueue;
use crate::reload::Reload;
use crate::request::{Place, Request};
use crate::restart::{Breaker, Restarts};
use crate::roster::Roster;
use crate::settings::Settings;
use crate::time::Time;
use crate::timers::{Timer, Timers};
use crate::worker::{Worker, WorkerView};

#[derive(Debug)]
pub struct Pool {
    pub(crate) settings: Settings,
    pub(crate) stage: Stage,
    /// Nothing new is given to workers.
    pub(crate) paused: bool,
    /// Nobody new is let in.
    pub(crate) closed: bool,
    /// And nobody is inside any more.
    pub(crate) drained: bool,
    /// Which kind of worker the pool has.
    pub(crate) edition: u32,
    pub(crate) reload: Option<Reload>,
    /// How many workers the pool wants.
    pub(crate) target: u32,
    /// Memory is short.
    pub(crate) strained: bool,
    /// And somebody was told that the pool does not grow for that.
    pub(crate) growth_held: bool,
    pub(crate) workers: BTreeMap<WorkerId, Worker>,
    /// Workers that reached a terminal status, the last of them, so that orders about them are
    /// answered by their status.
    pub(crate) buried: BTreeMap<WorkerId, Worker>,
    pub(crate) next_worker: u64,

    pub(crate) requests: IdMap<RequestId, Request>,
    pub(crate) queue: FairQueue,
    /// Requests that only one worker may serve.
    pub(crate) own: BTreeMap<WorkerId, FairQueue>,
    pub(crate) keys: Keys,
    pub(crate) bonds: Bonds,
    /// Length of all queues together.
    pub(crate) queued: usize,
    /// Moving average of how long a worker takes for a request.
    pub(crate) service: Duration,
    /// It is more than a first guess.
    pub(crate) service_known: bool,
    /// Queued requests that were made by one that waits for them.
    pub(crate) nested: BTreeSet<RequestId>,
    pub(crate) quarantine: Quarantine,

    pub(crate) leases: BTreeMap<LeaseId, Lease>,
    pub(crate) waiting_leases: BTreeSet<LeaseId>,

    pub(crate) roster: Roster,
    pub(crate) timers: Timers,
    pub(crate) restarts: Restarts,

    pub(crate) start_queue: VecDeque<WorkerId>,
    /// Processes that were spawned and are neither ready nor gone.
    pub(crate) starting: u32,
    pub(crate) launched_in_batch: u32,
    pub(crate) next_launch: Time,

    /// The workers that are being replaced, and those whose turn comes.
    pub(crate) replacing: BTreeSet<WorkerId>,
    pub(crate) to_replace: VecDeque<WorkerId>,

    pub(crate) was_ready: bool,
    pub(crate) was_all_ready: bool,
    pub(crate) counters: Counters,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    New,
    Open,
    Draining,
    Stopped,
}

/// How full a pool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occupancy {
    /// It has no worker that serves.
    Idle,
    Active,
    AtCapacity,
}

/// A pool as others see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifecycle {
    Starting,
    Running,
    Draining,
    Stopped,
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    pub arrived: u64,
    pub assigned: u64,
    pub prefetched: u64,
    pub moved: u64,
    pub retried: u64,
    pub refused: u64,
    pub resolved: u64,
    pub stale: u64,
    pub illegal_orders: u64,
    pub restarts_planned: u64,
    pub restarts_unplanned: u64,
    /// Requests of a session that went to its process.
    pub affinity_hits: u64,
    /// And those that went to another one.
    pub affinity_misses: u64,
    /// What the sweep found, in all.
    pub sweep_findings: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PoolView {
    pub lifecycle: Lifecycle,
    pub min: u32,
    pub max: u32,
    /// Workers that it wants just now.
    pub target: u32,
    /// Workers that it has, dedicated ones not counted.
    pub workers: usize,
    pub paused: bool,
    /// Nobody is inside any more, since it lets nobody in.
    pub drained: bool,
    /// Memory is short, and it does not grow.
    pub strained: bool,
    pub edition: u32,
    pub queued: usize,
    pub oldest_waits: Duration,
    pub ready: usize,
    /// Places of the workers that serve.
    pub capacity: u32,
    /// How many of them are in use.
    pub running: u32,
    pub occupancy: Occupancy,
    pub leases: usize,
    pub service: Duration,
    pub counters: Counters,
}

/// One event being handled: when, and what comes of it.
pub(crate) struct Cx<'a> {
    pub now: Time,
    pub out: &'a mut Vec<Command>,
}

impl Cx<'_> {
    pub fn push(&mut self, command: Command) {
        self.out.push(command);
    }

    pub fn notify(&mut self, notice: Notice) {
        self.out.push(Command::Notify(notice));
    }
}

impl Pool {
    pub fn new(settings: Settings) -> Self {
        Pool {
            restarts: Restarts::new(settings.seed),
            // No prefetch before the first calls have shown that they are short.
            service: settings.prefetch_below,
            service_known: false,
            nested: BTreeSet::new(),
            quarantine: Quarantine::default(),
            roster: Roster::new(settings.strategy.clone()),
            target: settings.min,
            settings,
            stage: Stage::New,
            paused: false,
            closed: false,
            drained: false,
            edition: 1,
            reload: None,
            strained: false,
            growth_held: false,
            workers: BTreeMap::new(),
            buried: BTreeMap::new(),
            next_worker: 1,
            requests: IdMap::default(),
            queue: FairQueue::default(),
            own: BTreeMap::new(),
            keys: Keys::default(),
            bonds: Bonds::default(),
            queued: 0,
            leases: BTreeMap::new(),
            waiting_leases: BTreeSet::new(),
            timers: Timers::default(),
            start_queue: VecDeque::new(),
            starting: 0,
            launched_in_batch: 0,
            next_launch: Time::ZERO,
            replacing: BTreeSet::new(),
            to_replace: VecDeque::new(),
            was_ready: false,
            was_all_ready: false,
            counters: Counters::default(),
        }
    }

    /// Takes in one fact and appends what is to be done about it.
    pub fn handle(&mut self, now: Time, event: Event, commands: &mut Vec<Command>) {
        let cx = &mut Cx { now, out: commands };
        self.forgive_own_stall(cx);
        self.on_event(cx, event);
        self.feed(cx);
        self.note_if_drained(cx);
    }

    /// When to send `DeadlineReached`.
    pub fn next_deadline(&self) -> Option<Time> {
        self.timers.next()
    }

    fn on_event(&mut self, cx: &mut Cx<'_>, event: Event) {
        match event {
            Event::PoolStarted => self.on_pool_started(cx),
            Event::DeadlineReached => self.on_deadline_reached(cx),
            Event::ShutdownRequested { now } => self.on_shutdown_requested(cx, now),
            Event::RequestArrived { request, spec } => self.on_request_arrived(cx, request, spec),
            Event::CancelRequested { request } => self.on_cancel_requested(cx, request),
            Event::SpawnFailed { process, cause } => self.on_spawn_failed(cx, process, cause),
            Event::ProcessReady { process, ready } => self.on_process_ready(cx, process, ready),
            Event::Answered { process, request, attempt, answer, streamed } => {
                self.on_answered(cx, process, (request, attempt), answer, streamed);
            }
            Event::HealthReported { process, well } => self.on_health_reported(cx, process, well),
            Event::MemoryMeasured { process, bytes } => {
                self.on_memory_measured(cx, process, bytes);
            }
            Event::PressureChanged { high } => self.on_pressure_changed(high),
            Event::SessionSaved { process, session, saved } => {
                self.on_session_saved(cx, process, session, saved);
            }
            Event::SessionEnded { session } => self.on_session_ended(cx, session),
            Event::KeyEnded { key } => self.on_key_ended(cx, key),
            Event::ProcessTainted { process } => self.on_process_tainted(cx, process),
            Event::ProcessHeard { process } => self.on_process_heard(cx, process),
            Event::RetireAsked { process } => self.on_retire_asked(cx, process),
            Event::StreamClosed { process } => self.on_stream_closed(cx, process),
            Event::ProtocolViolated { process } => self.on_protocol_violated(cx, process),
            Event::ProcessExited { process, exit, streamed } => {
                self.on_process_exited(cx, process, exit, &streamed);
            }
            Event::ProcessCleared { process } => self.on_process_cleared(cx, process),
            Event::LeaseRequested { lease, spec } => self.on_lease_requested(cx, lease, spec),
            Event::LeaseRenewed { lease, ttl } => self.on_lease_renewed(cx, lease, ttl),
            Event::LeaseReleased { lease, discard } => self.on_lease_released(cx, lease, discard),
            Event::Ordered { order, action } => self.on_ordered(cx, order, action),
            Event::ReloadOrdered { order, settings } => {
                self.on_reload_ordered(cx, order, settings);
            }
            Event::Recorded { record, result } => self.on_recorded(cx, record, result),
        }
    }

    fn on_pool_started(&mut self, cx: &mut Cx<'_>) {
        assert!(self.stage == Stage::New, "a pool starts once");
        self.stage = Stage::Open;
        self.begin_sweeps(cx);
        self.take_up_restored(cx);
        self.note_who_serves(cx);
        self.replenish(cx);
        self.begin_trial(cx);
    }

    fn on_deadline_reached(&mut self, cx: &mut Cx<'_>) {
        while let Some(timer) = self.timers.pop_due(cx.now) {
            match timer {
                Timer::Request(request) => self.on_request_timer(cx, request),
                Timer::Process(worker) => self.on_process_timer(cx, worker),
                Timer::Grace(worker) => self.on_grace_over(cx, worker),
                Timer::Heartbeat(worker) => self.on_heartbeat_due(cx, worker),
                Timer::Checkup(worker) => self.on_checkup_due(cx, worker),
                Timer::Patience(worker) => self.on_patience_over(cx, worker),
                Timer::Restart(worker) => self.on_restart_due(cx, worker),
                Timer::Supervise(worker) => self.on_supervisor_timeout(cx, worker),
                Timer::Record(worker) => self.on_record_due(cx, worker),
                Timer::Save(worker) => self.on_save_overdue(cx, worker),
                Timer::Idle(worker) => self.on_idle_due(cx, worker),
                Timer::Ttl(worker) => self.on_ttl_due(cx, worker),
                Timer::Lease(lease) => self.on_lease_timer(cx, lease),
                Timer::Launch => self.launch(cx),
                Timer::Breaker => self.on_cooldown_over(cx),
                Timer::Grow => self.on_growth_due(cx),
                Timer::Sweep => self.on_sweep_due(cx),
                // Losing patience is a state that `feed` looks at, and so is coming of age.
                Timer::Gang => self.set_gang_timer(cx.now),
                Timer::Evict => {}
            }
        }
    }

    /// The worker whose current process this is, or `None` for a message that came too late.
    pub(crate) fn current(&mut self, cx: &mut Cx<'_>, process: ProcessId) -> Option<&mut Worker> {
        let current = self.workers.get(&process.worker).is_some_and(|worker| {
            worker.generation == process.generation && worker.process().is_some()
        });
        if !current {
            self.counters.stale += 1;
            cx.notify(Notice::StaleDropped { process });
            return None;
        }
        self.workers.get_mut(&process.worker)
    }

    pub(crate) fn stale(&mut self, cx: &mut Cx<'_>, process: ProcessId) {
        self.counters.stale += 1;
        cx.notify(Notice::StaleDropped { process });
    }

    /// After every change of a worker that could open or close it.
    pub(crate) fn refresh(&mut self, worker: WorkerId) {
        if let Some(worker) = self.workers.get(&worker) {
            self.roster.refresh(worker);
        }
    }

    pub(crate) fn serving_count(&self) -> usize {
        self.workers.values().filter(|w| w.process().is_some_and(Process::serving)).count()
    }

    /// No worker of the pool itself lives, and none will be made before the cooldown is over.
    pub(crate) fn failed(&self) -> bool {
        let serves =
            |worker: &Worker| !worker.dedicated && worker.process().is_some_and(Process::serving);
        self.restarts.breaker != Breaker::Closed && !self.workers.values().any(serves)
    }

    pub fn lifecycle(&self) -> Lifecycle {
        match self.stage {
            Stage::New => Lifecycle::Starting,
            Stage::Draining => Lifecycle::Draining,
            Stage::Stopped => Lifecycle::Stopped,
            Stage::Open if self.closed => Lifecycle::Draining,
            Stage::Open if self.failed() => Lifecycle::Failed,
            Stage::Open if !self.was_ready => Lifecycle::Starting,
            Stage::Open => Lifecycle::Running,
        }
    }

    pub fn view(&self, now: Time) -> PoolView {
        let serving = || {
            let regular = self.workers.values().filter(|worker| !worker.dedicated);
            regular.filter_map(Worker::process).filter(|process| process.serving())
        };
        let capacity = serving().map(|process| process.capacity).sum();
        let used = |process: &Process| (process.used() as u32).min(process.capacity);
        let running = serving().map(used).sum();
        PoolView {
            capacity,
            running,
            occupancy: self.occupancy(capacity, running),
            lifecycle: self.lifecycle(),
            min: self.settings.min,
            max: self.settings.max,
            target: self.target,
            workers: self.regular_count(),
            paused: self.paused,
            drained: self.drained,
            strained: self.strained,
            edition: self.edition,
            queued: self.queued,
            oldest_waits: self.oldest_waits(now),
            ready: self.serving_count(),
            leases: self.leases.len(),
            service: self.service,
            counters: self.counters,
        }
    }

    /// A keyed pool is full when it has all its workers: the next key has to wait or to evict.
    fn occupancy(&self, capacity: u32, running: u32) -> Occupancy {
        let all_made = self.regular_count() >= self.settings.max as usize;
        match capacity {
            0 => Occupancy::Idle,
            _ if all_made && (self.settings.keyed.is_some() || running >= capacity) => {
                Occupancy::AtCapacity
            }
            _ => Occupancy::Active,
        }
    }

    /// The living workers, in the order of their ids.
    pub fn workers(&self) -> impl Iterator<Item = WorkerView> + '_ {
        self.workers.values().map(Worker::view)
    }

    pub fn worker(&self, id: WorkerId) -> Option<WorkerView> {
        self.workers.get(&id).or_else(|| self.buried.get(&id)).map(Worker::view)
    }

    /// Where a request without an outcome is; `None` once it has one.
    pub fn request(&self, id: RequestId) -> Option<(Option<ProcessId>, u32)> {
        let request = self.requests.get(&id)?;
        let process = match request.place {
            Place::Held(process) => Some(process),
            Place::Queued(_) | Place::Retrying => None,
        };
        Some((process, request.attempt))
    }

    /// Which kind of worker it has; a reload makes the next one.
    pub fn edition(&self) -> u32 {
        self.edition
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Tells of a change of phase, if there is one to tell of.
    pub(crate) fn show(&mut self, cx: &mut Cx<'_>, id: WorkerId, reason: PhaseReason) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        let process_id = worker.process_id();
        let Some(process) = worker.process_mut() else { return };
        let to = process.phase();
        let (from, since) = process.shown;
        if from != to {
            process.shown = (to, cx.now);
            let after = cx.now.since(since);
            let process = process_id;
            cx.notify(Notice::PhaseChanged { process, from: Some(from), to, reason, after });
        }
    }
}
