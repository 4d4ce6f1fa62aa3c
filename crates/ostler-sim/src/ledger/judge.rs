//! Commands, each judged as it comes out: is it about something that is there, is it allowed, does
//! it agree with what really happened?

use ostler_core::{
    Bond, Change, Command, Continuity, LeaseId, LossReason, Notice, OrderId, Outcome, ProcessId,
    RecordId, Refusal, Reply, RequestId, Status, StopReason, Target, Time,
};

use super::Ledger;
use super::phase::Walk;
use super::process::{Held, Row, Rung};
use super::request::End;
use crate::violation::{Verdict, Violation, require};

impl Ledger {
    /// One command comes out.
    pub fn judge(&mut self, now: Time, command: &Command) -> Verdict {
        match command {
            Command::Spawn { process, edition } => self.judge_spawn(now, *process, *edition),
            Command::Assign {
                request, attempt, process, deadline, prefetched, continuity, ..
            } => {
                let what = (*request, *attempt);
                self.judged_bond = self.judge_belonging(now, *request, *process, *continuity)?;
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
                self.judge_loss(*request, *outcome)?;
                self.requests.end(now, *request, end, &self.settings)
            }
            Command::Refuse { request, refusal } => {
                let end = End::Refused(*refusal);
                self.judge_refusal(now, *refusal, *request)?;
                self.requests.end(now, *request, end, &self.settings)
            }
            Command::SaveSession { process, session } => self.judge_save(now, *process, *session),
            Command::Begin { request, process } => self.judge_begin(*request, *process),
            Command::Ping { process } => self.judge_ping(now, *process),
            Command::CheckHealth { process } => self.judge_check(now, *process),
            Command::AskShutdown { process } => self.judge_stop(now, *process, Rung::Asked),
            Command::Terminate { process } => self.judge_stop(now, *process, Rung::Terminated),
            Command::Kill { process } => self.judge_stop(now, *process, Rung::Killed),
            Command::Freeze { process } => self.judge_freeze(now, *process, true),
            Command::Thaw { process } => self.judge_freeze(now, *process, false),
            Command::Grant { lease, places } => self.judge_grant(now, *lease, places),
            Command::RefuseLease { lease, refusal } => {
                let settings = (&self.settings, self.control.draining);
                self.leases.refuse(now, *lease, *refusal, settings)
            }
            Command::LosePlace { lease, place } => {
                self.leases.lose_place(*lease, *place, &mut self.processes)
            }
            Command::EndLease { lease, reason } => {
                let shutting_down = self.shutdown.is_some();
                self.leases.end(now, *lease, *reason, &mut self.processes, shutting_down)
            }
            Command::Record { record, change } => self.judge_record(now, *record, *change),
            Command::Reply { order, reply } => self.judge_reply(*order, reply),
            Command::Notify(notice) => self.judge_notice(now, notice),
            Command::Stopped => self.judge_stopped(now),
        }
    }

    fn judge_notice(&mut self, now: Time, notice: &Notice) -> Verdict {
        match notice {
            Notice::PhaseChanged { process, from, to, reason, after } => {
                let walk = Walk { from: *from, to: *to, reason: *reason, after: *after };
                self.phases.walk(now, *process, walk, self.processes.get(*process))
            }
            Notice::Quarantined { request, .. } => {
                let fingerprint = self.spec(*request).fingerprint;
                require!(
                    self.kills.hold(now, fingerprint, &self.settings).is_some(),
                    "only who killed twice is kept out",
                    "{request:?} is said to have"
                );
                Ok(())
            }
            Notice::BreakerOpened { .. } | Notice::BreakerClosed => {
                self.note_breaker(notice);
                Ok(())
            }
            Notice::Session { session, process, step } => {
                self.judge_step(now, *session, *process, *step)
            }
            Notice::Retiring { worker, reason } => self.judge_retiring(now, *worker, *reason),
            Notice::Scaled { .. } | Notice::GrowthHeld => self.judge_size_notice(now, notice),
            Notice::ReloadBegun { .. } | Notice::Reloaded { .. } | Notice::ReloadFailed { .. } => {
                self.judge_reload_notice(notice)
            }
            Notice::PoolPaused
            | Notice::PoolResumed
            | Notice::PoolDraining
            | Notice::PoolDrained => self.judge_control_notice(notice),
            Notice::SweepFound { what } => {
                require!(false, "a sweep finds nothing", "{what}");
                Ok(())
            }
            _ => self.judge_health_notice(now, notice),
        }
    }

    /// No planned end costs a request.
    fn judge_loss(&self, request: RequestId, outcome: Outcome) -> Verdict {
        let Outcome::Lost { reason: LossReason::Stopped(StopReason::Retired(_)), .. } = outcome
        else {
            return Ok(());
        };
        require!(
            false,
            "nothing is lost by a planned end",
            "{request:?} is {outcome:?} at {:?}",
            self.requests.get(request).and_then(|row| row.last)
        );
        Ok(())
    }

    fn judge_belonging(
        &mut self,
        now: Time,
        request: RequestId,
        process: ProcessId,
        told: Option<Continuity>,
    ) -> Result<Option<Bond>, Violation> {
        require!(
            !self.control.paused,
            "nothing is given out while the pool is held",
            "{request:?} goes to {process}"
        );
        if self.requests.get(request).is_none() {
            return Ok(None);
        }
        self.judge_key(request, process)?;
        self.judge_bond(now, request, process, told)
    }

    fn judge_begin(&mut self, request: RequestId, process: ProcessId) -> Verdict {
        let at = self.begins.iter().position(|moved| *moved == (process, request));
        require!(
            at.is_some(),
            "whoever moves up is told to begin, once",
            "{request:?} is to begin on {process}, only {:?} moved up",
            self.begins
        );
        self.begins.swap_remove(at.expect("required above"));
        Ok(())
    }

    fn note_breaker(&mut self, notice: &Notice) {
        match notice {
            Notice::BreakerOpened { .. } => {
                self.breaker_open = true;
                self.processes.forget_retirements();
            }
            Notice::BreakerClosed => {
                self.breaker_open = false;
                self.restarts.forgive();
            }
            _ => {}
        }
    }

    fn judge_spawn(&mut self, now: Time, id: ProcessId, edition: u32) -> Verdict {
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
        if dedicated {
            worker.retiring = None;
        }
        self.restarts.spawned(now, id, &self.settings)?;
        self.reloads.spawned(id, edition)?;
        self.processes.spawn(now, id, (dedicated, edition), (&self.settings, self.beside()))
    }

    fn judge_assign(
        &mut self,
        now: Time,
        (request, attempt): (RequestId, u32),
        process: ProcessId,
        deadline: Time,
        prefetched: bool,
    ) -> Verdict {
        let spec = self.requests.get(request).map(|row| row.spec.clone());
        let kept_out =
            spec.as_ref().and_then(|s| self.kills.hold(now, s.fingerprint, &self.settings));
        require!(
            kept_out.is_none(),
            "who killed twice reaches nobody",
            "{request:?} goes to {process}, {kept_out:?}"
        );
        require!(
            !prefetched || spec.is_none_or(|spec| spec.ancestors.is_empty()),
            "nobody is put behind those who wait for him",
            "{request:?} is prefetched on {process}, {:?} wait for it",
            self.spec(request).ancestors
        );
        if !prefetched {
            self.check_choice(now, request, process)?;
        }
        self.requests.assign(now, (request, attempt), process, deadline, &self.settings)?;
        require!(
            self.workers.running(process.worker),
            "work goes to those who serve",
            "{request:?} is sent to {process}, whose worker is {:?}",
            self.workers.get(process.worker)
        );
        require!(
            self.phases.serves(process),
            "work goes to those who serve",
            "{request:?} is sent to {process}, which is {:?}",
            self.phases.of(process)
        );
        self.turns += 1;
        if let Some(worker) = self.workers.get_mut(process.worker) {
            worker.usage.used = now;
            worker.usage.turn = self.turns;
        }
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
        let bond = self.judged_bond.take();
        let held = Held { attempt, lease, bond, behind: prefetched, ..Held::of(request, now) };
        row.assign(held, prefetched)
    }

    fn judge_refusal(&mut self, now: Time, refusal: Refusal, request: RequestId) -> Verdict {
        match refusal {
            Refusal::DeadlineUnreachable { estimate, .. } => {
                self.judge_unreachable(now, request, estimate)?;
            }
            Refusal::NestedDeadlock => self.judge_circle(request)?,
            Refusal::PoolDraining => self.judge_draining(request)?,
            Refusal::SessionWorkerLost | Refusal::WorkerBusy => {
                self.judge_bond_refusal(now, request, refusal)?;
            }
            Refusal::KeyRequired => {
                let spec = self.spec(request);
                require!(
                    self.settings.keyed.is_some() && spec.key.is_none(),
                    "a refusal fits its request",
                    "{request:?} has a key, or needs none: {spec:?}"
                );
            }
            Refusal::Quarantined { exit, left } => {
                let fingerprint = self.spec(request).fingerprint;
                let truth = self.kills.hold(now, fingerprint, &self.settings);
                require!(
                    truth == Some((exit, left)),
                    "only who killed twice is kept out",
                    "{request:?} is told {refusal:?}, true is {truth:?}"
                );
            }
            _ => {}
        }
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

    fn judge_freeze(&mut self, now: Time, id: ProcessId, freeze: bool) -> Verdict {
        let status = self.workers.get(id.worker).and_then(|worker| worker.status);
        let shutting_down = self.shutdown.is_some();
        let row = self.processes.addressed(id, "Freeze or Thaw")?;
        row.frozen = freeze;
        row.health.frozen_or_thawed(now, &self.settings);
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
        if self.judge_reload_reply(order, reply)? {
            return Ok(());
        }
        let state = (self.shutdown.is_some(), self.settings.keyed.is_some());
        self.workers.reply(order, reply, dedicated_full, state)
    }

    fn judge_record(&mut self, now: Time, record: RecordId, change: Change) -> Verdict {
        self.judge_completion(record, change)?;
        let new = self.workers.get(record.worker).is_none();
        self.workers.record(now, record, change)?;
        if new && self.workers.is_regular(record.worker) { self.judge_creation() } else { Ok(()) }
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
