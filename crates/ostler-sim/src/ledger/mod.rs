//! What really happened, kept by the world alone, and the judgement of it.
//!
//! The ledger sees what goes into the core and what comes out, and what workers, callers and the
//! store truly did. It never asks the core anything: a promise that only the promiser confirms is
//! worth nothing. Each noun has its book, and with it the checks that need nothing else; here are
//! those that need several.

mod lease;
mod line;
mod mend;
mod process;
mod request;
mod restart;
mod settle;
mod stop;
mod worker;

use ostler_core::{
    Action, Answer, Change, Command, Event, LeaseId, Notice, OrderId, ProcessId, RecordId, Refusal,
    Reply, RequestId, Settings, Status, Target, Time, Trigger, WorkerId,
};

use crate::violation::{Verdict, require};
use lease::Leases;
use process::{Held, Processes, Row, Rung};
use request::{End, Requests};
use restart::Restarts;
use worker::Workers;

#[derive(Debug)]
pub(crate) struct Ledger {
    settings: Settings,
    requests: Requests,
    processes: Processes,
    workers: Workers,
    leases: Leases,
    restarts: Restarts,
    /// Requests that this event interrupts.
    cancels: Vec<RequestId>,
    /// The event is that a deadline has come.
    woke: bool,
    shutdown: Option<Time>,
    /// Somebody could not wait for the shutdown.
    hurried: bool,
    stopped: Option<Time>,
}

impl Ledger {
    pub fn new(settings: Settings) -> Self {
        Ledger {
            settings,
            requests: Requests::new(),
            processes: Processes::default(),
            workers: Workers::default(),
            leases: Leases::default(),
            restarts: Restarts::default(),
            cancels: Vec::new(),
            woke: false,
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

    /// Its caller still waits.
    fn is_open(&self, request: RequestId) -> bool {
        self.requests.get(request).is_some_and(|row| row.end.is_none())
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
        match event {
            Event::PoolStarted | Event::DeadlineReached => {}
            Event::ShutdownRequested { now: at_once } => {
                self.shutdown = self.shutdown.or(Some(now));
                self.hurried |= at_once;
            }
            Event::RequestArrived { request, spec } => {
                self.requests.arrive(now, *request, spec, &self.settings);
            }
            Event::CancelRequested { request } => self.requests.cancel(*request),
            Event::LeaseRequested { lease, spec } => self.leases.ask(*lease, spec),
            Event::LeaseRenewed { lease, ttl } => self.leases.renew(now, *lease, *ttl),
            Event::LeaseReleased { lease, discard } => self.hear_release(*lease, *discard),
            Event::Ordered { order, action } => self.hear_order(*order, *action),
            Event::Recorded { record, result } => {
                self.restarts.settled(record.worker);
                if self.workers.recorded(*record, *result) {
                    self.processes.forget_retirements();
                }
            }
            Event::SpawnFailed { process, .. }
            | Event::ProcessReady { process, .. }
            | Event::Answered { process, .. }
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
        let Some(row) = self.processes.get_mut(id) else { return };
        match event {
            Event::ProcessCleared { .. } if row.exited => {
                if row.crashed && self.workers.surely_in_service(id.worker) {
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
                row.become_ready(now, *ready, &self.settings);
                self.restarts.ready(id.worker, row.dedicated);
            }
            Event::ProcessHeard { .. } => row.heard = now,
            Event::RetireAsked { .. } if row.ready.is_some() && row.stopping.is_none() => {
                row.retire_asked = true;
                row.leaving = true;
                self.ask_replacement(id.worker);
            }
            Event::StreamClosed { .. } | Event::ProtocolViolated { .. } => row.broken = true,
            Event::Answered { request, attempt, answer, .. } => {
                if let Some(held) = row.let_go(*request, *attempt) {
                    row.heard = now;
                    row.overstayed |= held.overdue(now, &self.settings);
                    self.restarts.settled(id.worker);
                    self.requests.answered(*request, (id, *attempt, *answer));
                }
            }
            Event::ProcessExited { exit, .. } => {
                row.exited = true;
                row.crashed = row.ends_by_itself(now, &self.settings);
                for held in std::mem::take(&mut row.held) {
                    self.requests.lost(held.request, *exit);
                }
            }
            _ => {}
        }
    }

    /// One command comes out.
    pub fn judge(&mut self, now: Time, command: &Command) -> Verdict {
        match command {
            Command::Spawn { process } => self.judge_spawn(now, *process),
            Command::Assign { request, attempt, process, deadline, prefetched, .. } => {
                let what = (*request, *attempt);
                self.judge_assign(now, what, *process, *deadline, *prefetched)
            }
            Command::Cancel { request, attempt, process, withdraw } => {
                let row = self.processes.addressed(*process, "Cancel")?;
                row.cancel(now, (*request, *attempt), *withdraw)?;
                if !withdraw {
                    self.cancels.push(*request);
                }
                Ok(())
            }
            Command::Resolve { request, outcome } => {
                let end = End::Resolved(*outcome);
                self.requests.end(now, *request, end, &self.settings)
            }
            Command::Refuse { request, refusal } => {
                let end = End::Refused(*refusal);
                self.judge_refusal(now, *refusal, *request)?;
                self.requests.end(now, *request, end, &self.settings)
            }
            Command::Ping { process } => self.processes.addressed(*process, "Ping").map(drop),
            Command::AskShutdown { process } => self.judge_stop(now, *process, Rung::Asked),
            Command::Terminate { process } => self.judge_stop(now, *process, Rung::Terminated),
            Command::Kill { process } => self.judge_stop(now, *process, Rung::Killed),
            Command::Freeze { process } => self.judge_freeze(*process, true),
            Command::Thaw { process } => self.judge_freeze(*process, false),
            Command::Grant { lease, places } => self.judge_grant(now, *lease, places),
            Command::RefuseLease { lease, refusal } => {
                self.leases.refuse(now, *lease, *refusal, &self.settings)
            }
            Command::LosePlace { lease, place } => {
                self.leases.lose_place(*lease, *place, &mut self.processes)
            }
            Command::EndLease { lease, reason } => {
                let shutting_down = self.shutdown.is_some();
                self.leases.end(now, *lease, *reason, &mut self.processes, shutting_down)
            }
            Command::Record { record, change } => self.judge_record(*record, *change),
            Command::Reply { order, reply } => self.judge_reply(*order, reply),
            // The one word of the core's that is taken: it only makes the judge milder.
            Command::Notify(Notice::BreakerClosed) => {
                self.restarts.forgive();
                Ok(())
            }
            Command::Notify(_) => Ok(()),
            Command::Stopped => self.judge_stopped(now),
        }
    }

    fn judge_spawn(&mut self, now: Time, id: ProcessId) -> Verdict {
        require!(
            self.shutdown.is_none(),
            "nothing is spawned once shutdown has begun",
            "{id} is spawned"
        );
        let Some(worker) = self.workers.get_mut(id.worker) else {
            require!(false, "only known workers run", "{id} is spawned, its worker is not known");
            return Ok(());
        };
        require!(
            worker.status == Some(Status::Running),
            "only running workers run",
            "{id} is spawned while its worker is {:?}",
            worker.status
        );
        require!(
            id.generation == worker.generation + 1,
            "incarnations are counted",
            "{id} follows incarnation {}",
            worker.generation
        );
        worker.generation = id.generation;
        let dedicated = worker.dedicated;
        self.restarts.spawned(now, id, &self.settings)?;
        self.processes.spawn(now, id, dedicated, &self.settings)
    }

    fn judge_assign(
        &mut self,
        now: Time,
        (request, attempt): (RequestId, u32),
        process: ProcessId,
        deadline: Time,
        prefetched: bool,
    ) -> Verdict {
        self.requests.assign(now, (request, attempt), process, deadline, &self.settings)?;
        require!(
            self.workers.running(process.worker),
            "work goes to those who serve",
            "{request:?} is sent to {process}, whose worker is {:?}",
            self.workers.get(process.worker)
        );
        let row = self.processes.addressed(process, "Assign")?;
        let target = self.requests.get(request).expect("assigned above").spec.target;
        let (fits, lease) = match target {
            Target::Any => (!row.dedicated, None),
            Target::Worker(worker) => (worker == process.worker, None),
            Target::Lease(lease, place) => {
                (self.leases.place(lease, place) == Some(process), Some(lease))
            }
        };
        require!(
            fits,
            "requests go where they are addressed",
            "{request:?} for {target:?} goes to {process}"
        );
        let held = Held { request, attempt, lease, since: now, withdrawn: false, cancelled: None };
        row.assign(held, prefetched)
    }

    fn judge_refusal(&self, now: Time, refusal: Refusal, request: RequestId) -> Verdict {
        require!(
            refusal != Refusal::ShuttingDown || self.shutdown.is_some(),
            "a refusal fits its request",
            "{request:?} is told of a shutdown that nobody asked for"
        );
        let serving =
            self.processes.rows().find(|row| !row.dedicated && self.surely_well(now, row));
        require!(
            refusal != Refusal::PoolFailed || serving.is_none(),
            "a refusal fits its request",
            "{request:?} is told that the pool failed while {serving:?} serves"
        );
        Ok(())
    }

    fn judge_freeze(&mut self, id: ProcessId, freeze: bool) -> Verdict {
        let status = self.workers.get(id.worker).and_then(|worker| worker.status);
        let shutting_down = self.shutdown.is_some();
        let row = self.processes.addressed(id, "Freeze or Thaw")?;
        row.frozen = freeze;
        require!(
            (status == Some(Status::Paused)) == freeze || shutting_down,
            "frozen means paused",
            "{id} is frozen: {freeze}, its worker is {status:?}"
        );
        Ok(())
    }

    fn judge_grant(&mut self, now: Time, lease: LeaseId, places: &[ProcessId]) -> Verdict {
        for place in places {
            require!(
                self.workers.running(place.worker),
                "a leased place is free and exclusive",
                "{lease:?} gets {place}, whose worker is {:?}",
                self.workers.get(place.worker)
            );
        }
        require!(self.shutdown.is_none(), "no lease once shutdown has begun", "{lease:?}");
        self.leases.grant(now, lease, places, &mut self.processes)
    }

    fn judge_reply(&mut self, order: OrderId, reply: &Reply) -> Verdict {
        if let Reply::Done { worker, status: Status::Terminated } = reply {
            let generation = self.generation(*worker);
            let left = self.processes.get(ProcessId { worker: *worker, generation });
            require!(
                left.is_none(),
                "terminated means gone",
                "{order:?} is done while there is {left:?}"
            );
        }
        let dying = |row: &&Row| row.dedicated && self.workers.ended(row.id.worker);
        let dying = self.processes.rows().filter(dying).count();
        let dedicated_full =
            self.workers.dedicated() + dying >= self.settings.dedicated_max as usize;
        self.workers.reply(order, reply, dedicated_full, self.shutdown.is_some())
    }

    fn judge_record(&mut self, record: RecordId, change: Change) -> Verdict {
        let retires = change.trigger == Trigger::Complete && change.order.is_none();
        require!(
            !retires || self.restarts.successor_was_ready(record.worker),
            "the successor is ready before the old one leaves",
            "{record:?} {change:?}"
        );
        self.workers.record(record, change)
    }

    fn judge_stopped(&mut self, now: Time) -> Verdict {
        require!(
            self.shutdown.is_some() && self.stopped.is_none() && self.processes.is_empty(),
            "stopped means that all are gone",
            "stopped for the first time: {}, left: {:?}",
            self.stopped.is_none(),
            self.processes
        );
        self.stopped = Some(now);
        Ok(())
    }
}
