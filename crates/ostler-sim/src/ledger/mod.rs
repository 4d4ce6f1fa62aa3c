//! What really happened, kept by the world alone, and the judgement of it.
//!
//! The ledger sees what goes into the core and what comes out, and what workers, callers and the
//! store truly did. It never asks the core anything: a promise that only the promiser confirms is
//! worth nothing. Each noun has its book, and with it the checks that need nothing else. Checks that
//! need several are in `judge` (a command), `stop` (the end of a process), `settle` (between two
//! events) and `mend` (in the end).

mod admission;
mod bond;
mod choice;
mod control;
mod health;
mod judge;
mod keyed;
mod lease;
mod line;
mod mend;
mod nesting;
mod phase;
mod process;
mod quarantine;
mod reload;
mod request;
mod restart;
mod retire;
mod session;
mod settle;
mod size;
mod stop;
mod worker;

use ostler_core::{
    Action, Answer, Bond, Change, Event, Exit, LeaseId, OrderId, Phase, ProcessId, RecordId,
    RequestId, RequestSpec, Settings, Time, WorkerId,
};

use crate::violation::Verdict;
use admission::Service;
use bond::Bonds;
use control::Control;
use health::Said;
use keyed::Keys;
use lease::Leases;
use phase::Phases;
use process::{Held, Processes, Row};
use quarantine::Kills;
use reload::Reloads;
use request::Requests;
use restart::Restarts;
use retire::Replacements;
use size::Size;
use worker::Workers;

#[derive(Debug)]
pub(crate) struct Ledger {
    settings: Settings,
    requests: Requests,
    processes: Processes,
    workers: Workers,
    leases: Leases,
    restarts: Restarts,
    phases: Phases,
    kills: Kills,
    service: Service,
    bonds: Bonds,
    keys: Keys,
    size: Size,
    replacements: Replacements,
    reloads: Reloads,
    control: Control,
    /// What the assignment that is being judged belongs to.
    judged_bond: Option<Bond>,
    /// When this event was heard.
    heard_at: Time,
    /// Assignments so far.
    turns: u64,
    /// The request that came with this event.
    arrived: Option<RequestId>,
    /// Those that moved up with this event and are to be told so.
    begins: Vec<(ProcessId, RequestId)>,
    /// What a process that was asked said with this event.
    said: Option<Said>,
    /// When the core wanted to be woken, by its last word.
    awaited: Option<Time>,
    /// Requests that this event interrupts.
    cancels: Vec<RequestId>,
    /// The event is that a deadline has come.
    woke: bool,
    /// By the core's own word, which here only makes the judge milder.
    breaker_open: bool,
    shutdown: Option<Time>,
    /// Somebody could not wait for the shutdown.
    hurried: bool,
    stopped: Option<Time>,
}

impl Ledger {
    pub fn new(settings: Settings) -> Self {
        Ledger {
            service: Service::new(&settings),
            bonds: Bonds::default(),
            keys: Keys::default(),
            size: Size::new(&settings),
            replacements: Replacements::default(),
            reloads: Reloads::new(&settings),
            control: Control::default(),
            judged_bond: None,
            heard_at: Time::ZERO,
            phases: Phases::default(),
            kills: Kills::default(),
            turns: 0,
            arrived: None,
            begins: Vec::new(),
            said: None,
            awaited: None,
            settings,
            requests: Requests::new(),
            processes: Processes::default(),
            workers: Workers::default(),
            leases: Leases::default(),
            restarts: Restarts::default(),
            cancels: Vec::new(),
            woke: false,
            breaker_open: false,
            shutdown: None,
            hurried: false,
            stopped: None,
        }
    }

    /// Requests, executions, spawns.
    pub fn counts(&self) -> (u64, u64, u64) {
        (self.requests.count(), self.requests.executions, self.processes.spawns)
    }

    pub fn known_workers(&self) -> &[WorkerId] {
        self.workers.known()
    }

    pub fn paused_workers(&self) -> Vec<WorkerId> {
        self.workers.paused()
    }

    pub fn generation(&self, worker: WorkerId) -> u32 {
        self.workers.get(worker).map_or(0, |row| row.generation)
    }

    /// Everything that some process holds, by what the core was told.
    pub fn held(&self) -> Vec<(ProcessId, RequestId, u32)> {
        let of = |row: &Row| {
            let held = row.held.iter().map(|held| (row.id, held.request, held.attempt));
            held.collect::<Vec<_>>()
        };
        self.processes.rows().flat_map(of).collect()
    }

    pub fn shuts_down(&self) -> bool {
        self.shutdown.is_some()
    }

    /// Its caller still waits.
    pub fn is_open(&self, request: RequestId) -> bool {
        self.requests.get(request).is_some_and(|row| row.end.is_none())
    }

    pub fn spec(&self, request: RequestId) -> &RequestSpec {
        &self.requests.get(request).expect("only what arrived is spoken of").spec
    }

    // What the world did.

    pub fn began(&mut self, process: ProcessId, request: RequestId) -> Verdict {
        self.requests.began(request, process, &self.settings)
    }

    pub fn streamed(&mut self, request: RequestId) {
        self.requests.streamed(request);
    }

    pub fn wrote(&mut self, process: ProcessId, request: RequestId, attempt: u32, answer: Answer) {
        self.requests.wrote(request, (process, attempt, answer));
    }

    pub fn silence(&mut self, process: ProcessId) {
        if let Some(row) = self.processes.get_mut(process) {
            row.was_silent = true;
        }
    }

    pub fn stored(&mut self, record: RecordId, change: Change) {
        self.workers.stored(record, change);
    }

    /// What the core is told. Messages that mean nothing change nothing here either.
    pub fn hear(&mut self, now: Time, event: &Event) {
        self.woke = *event == Event::DeadlineReached;
        self.cancels.clear();
        self.begins.clear();
        self.arrived = None;
        self.heard_at = now;
        self.bonds.next_event();
        self.size.next_event();
        self.forgive_own_stall(now);
        match event {
            Event::PoolStarted | Event::DeadlineReached => {}
            Event::ShutdownRequested { now: at_once } => {
                self.shutdown = self.shutdown.or(Some(now));
                self.hurried |= at_once;
            }
            Event::RequestArrived { request, spec } => {
                self.arrived = Some(*request);
                self.requests.arrive(now, *request, spec, &self.settings);
            }
            Event::CancelRequested { request } => self.requests.cancel(*request),
            Event::LeaseRequested { lease, spec } => self.leases.ask(now, *lease, spec),
            Event::LeaseRenewed { lease, ttl } => self.leases.renew(now, *lease, *ttl),
            Event::LeaseReleased { lease, discard } => self.hear_release(*lease, *discard),
            Event::Ordered { order, action } => self.hear_order(*order, *action),
            Event::Recorded { record, result } => {
                self.restarts.settled(record.worker);
                if self.workers.recorded(*record, *result) {
                    self.processes.forget_retirements();
                }
            }
            Event::PressureChanged { high } => self.size.hear_pressure(*high),
            Event::SessionEnded { session } => {
                self.end_session(*session);
                self.requests.unbind(*session);
            }
            Event::KeyEnded { key } => self.keys.end(*key),
            Event::ReloadOrdered { order, settings } => self.reloads.order(*order, settings),
            Event::SpawnFailed { process, .. }
            | Event::MemoryMeasured { process, .. }
            | Event::SessionSaved { process, .. }
            | Event::ProcessReady { process, .. }
            | Event::Answered { process, .. }
            | Event::HealthReported { process, .. }
            | Event::ProcessTainted { process }
            | Event::ProcessHeard { process }
            | Event::RetireAsked { process }
            | Event::StreamClosed { process }
            | Event::ProtocolViolated { process }
            | Event::ProcessExited { process, .. }
            | Event::ProcessCleared { process } => self.hear_of_process(now, *process, event),
        }
    }

    fn hear_release(&mut self, lease: LeaseId, discard: bool) {
        for process in self.leases.release(lease) {
            if let Some(row) = self.processes.get_mut(process) {
                row.discarded |= discard;
            }
        }
    }

    fn hear_order(&mut self, order: OrderId, action: Action) {
        self.workers.ordered(order, action);
        if self.shutdown.is_none() {
            self.hear_pool_order(action);
        }
        if let Action::Recycle(worker) = action {
            self.ask_replacement(worker);
        }
    }

    fn ask_replacement(&mut self, worker: WorkerId) {
        if let Some(row) = self.workers.get_mut(worker) {
            row.replacement_asked = true;
        }
    }

    fn hear_of_process(&mut self, now: Time, id: ProcessId, event: &Event) {
        let goes_on = self.phases.of(id) != Some(Phase::Stopping);
        let Some(row) = self.processes.get_mut(id) else { return };
        match event {
            Event::ProcessCleared { .. } if row.exited => {
                let tried = self.reloads.was_trial(id.worker);
                if row.crashed && !tried && self.workers.surely_in_service(id.worker) {
                    self.restarts.lost(now, id.worker, &self.settings);
                } else {
                    self.restarts.settled(id.worker);
                }
                self.processes.remove(id);
                self.processes.forget_retirements();
            }
            _ if row.exited => {}
            Event::SpawnFailed { .. } if row.ready.is_none() => self.processes.remove(id),
            Event::ProcessReady { ready, .. } => {
                if self.phases.of(id) == Some(Phase::Starting)
                    && let Some(worker) = self.workers.get_mut(id.worker)
                {
                    worker.usage.used = now;
                }
                let settings = self.reloads.settings_of(id.worker).unwrap_or(&self.settings);
                row.become_ready(now, *ready, settings);
                if self.restarts.ready(id.worker, row.dedicated) {
                    self.replacements.ready(now, id.worker);
                }
            }
            Event::ProcessHeard { .. } => {
                row.heard = now;
                row.mute = false;
                row.health.silent = false;
            }
            Event::RetireAsked { .. } if row.ready.is_some() && row.stopping.is_none() => {
                row.retire_asked = true;
                row.leaving = !self.breaker_open;
                self.ask_replacement(id.worker);
            }
            Event::MemoryMeasured { bytes, .. } => {
                row.memory = *bytes;
                row.measured = Some(now);
                self.note_wear(id);
            }
            Event::SessionSaved { session, saved, .. } => {
                self.bonds.hear_saved(id, *session, *saved);
            }
            Event::HealthReported { well, .. } => self.hear_of_health(id, *well),
            Event::ProcessTainted { .. } if goes_on => row.tainted = row.tainted.or(Some(now)),
            Event::StreamClosed { .. } | Event::ProtocolViolated { .. } => row.broken = true,
            Event::Answered { request, attempt, answer, .. } => {
                self.hear_answer(now, id, (*request, *attempt), *answer);
            }
            Event::ProcessExited { exit, .. } => self.hear_exit(now, id, *exit),
            _ => {}
        }
    }

    fn hear_answer(
        &mut self,
        now: Time,
        id: ProcessId,
        (request, attempt): (RequestId, u32),
        answer: Answer,
    ) {
        let Some(row) = self.processes.get_mut(id) else { return };
        let Some(held) = row.let_go(request, attempt) else { return };
        row.heard = now;
        row.mute = answer == Answer::NotSent;
        row.health.silent = false;
        row.overstayed |= held.overdue(now, &self.settings);
        if let Some(moved) = row.move_up() {
            self.begins.push((id, moved));
        }
        if row.held.is_empty() {
            row.health.has_nothing_to_do(now);
        }
        let took = now.since(held.since.max(row.last_answer));
        row.last_answer = now;
        row.served += 1;
        if let Some(bond) = held.bond {
            self.bonds.finished(now, bond.session, id);
        }
        self.note_wear(id);
        let usage = self.workers.get_mut(id.worker).map(|worker| &mut worker.usage);
        let usage = usage.expect("a process has its worker");
        usage.used = now;
        if matches!(answer, Answer::Completed | Answer::Failed { .. }) {
            usage.answered += 1;
            self.service.note(took);
        }
        self.restarts.settled(id.worker);
        // Nobody but the end of its process asked for that.
        let cut_short = self.phases.of(id) == Some(Phase::Stopping);
        if answer == (Answer::Cancelled { started: true }) && cut_short {
            self.requests.lost(request, Exit::Unknown);
        } else {
            self.requests.answered(now, request, (id, attempt, answer), &self.settings);
        }
    }

    fn hear_exit(&mut self, now: Time, id: ProcessId, exit: Exit) {
        let by_itself = self.phases.of(id) != Some(Phase::Stopping);
        let Some(row) = self.processes.get_mut(id) else { return };
        row.exited = true;
        self.bonds.hear_exit(id);
        row.crashed = row.ends_by_itself(now, &self.settings);
        if by_itself {
            let fingerprint =
                |held: &Held| self.requests.get(held.request).map_or(0, |r| r.spec.fingerprint);
            self.kills.note(now, row, exit, &self.settings, fingerprint);
        }
        for held in std::mem::take(&mut row.held) {
            self.requests.lost(held.request, exit);
        }
    }
}
