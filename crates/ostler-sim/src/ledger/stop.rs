//! Why a process is stopped, and what it is allowed to finish first.

use ostler_core::{ProcessId, Settings, Status, Time};

use super::Ledger;
use super::process::{Row, Rung, Stop};
use crate::violation::{Verdict, require};

impl Ledger {
    pub(super) fn judge_stop(&mut self, now: Time, id: ProcessId, rung: Rung) -> Verdict {
        self.processes.addressed(id, "a stop")?;
        let row = self.processes.get(id).expect("addressed above");
        if row.stopping.is_none() {
            self.check_cause(now, row)?;
        }
        self.processes.addressed(id, "a stop")?.stop(now, rung)
    }

    fn check_cause(&self, now: Time, row: &Row) -> Verdict {
        let worker = self.workers.get(row.id.worker);
        let dismissed = worker.is_some_and(|worker| {
            worker.paused_by_system
                || (worker.dedicated && worker.replacement_asked)
                || worker.status.is_some_and(Status::terminal)
        });
        if dismissed || self.hurried || row.may_be_stopped(now, &self.settings) {
            return Ok(());
        }
        let overdue = self.overdue_since(now, row);
        let ends = [self.shutdown, row.tainted];
        require!(
            overdue.is_some() || ends.iter().any(Option::is_some),
            "no process is stopped without a cause",
            "{row:?} of {worker:?}"
        );
        let wanted = row.held.iter().take(row.capacity);
        let wanted =
            wanted.filter(|h| h.cancelled.is_none()).find(|held| self.is_open(held.request));
        let forced = overdue.map(|since| since.after(self.settings.cancel_grace * 2));
        let drained = ends.into_iter().flatten();
        let drained = drained.map(|since| since.after(self.settings.drain_timeout));
        let patience = forced.into_iter().chain(drained).min();
        require!(
            wanted.is_none() || row.ready.is_none() || patience.is_some_and(|at| now >= at),
            "those inside may finish",
            "{wanted:?} is wanted, its process could wait until {patience:?}: {row:?}"
        );
        Ok(())
    }

    /// Since when it should have let go of something, if the grace for that is over.
    fn overdue_since(&self, now: Time, row: &Row) -> Option<Time> {
        let overdue = row.held.iter().filter(|held| !self.is_open(held.request));
        let overdue = overdue.filter(|held| held.overdue(now, &self.settings));
        overdue.filter_map(|held| held.cancelled).min()
    }
}

impl Row {
    pub fn ends_by_itself(&self, now: Time, settings: &Settings) -> bool {
        let overdue = self.held.iter().any(|held| held.overdue(now, settings));
        self.stopping.is_none() && !overdue && !self.may_be_stopped(now, settings)
    }

    /// Something that the core was told, or that the time says, justifies ending this process.
    pub fn may_be_stopped(&self, now: Time, settings: &Settings) -> bool {
        let late = self.ready.is_none() && now >= self.spawned.after(settings.start_timeout);
        self.broken
            || self.overstayed
            || self.discarded
            || late
            || (self.dedicated && self.retire_asked)
            || self.silent_for_too_long(now, settings)
            || self.too_unwell(settings)
            || self.far_too_large(settings)
    }

    pub fn silent_for_too_long(&self, now: Time, settings: &Settings) -> bool {
        let silence = now.since(self.heard);
        let missed = settings.heartbeat.is_some_and(|beat| {
            self.was_silent
                && !beat.independent
                && self.ready.is_some_and(|ready| ready.heartbeat)
                && self.held.is_empty()
                && silence >= beat.timeout + beat.interval * (beat.misses - 1)
        });
        let hung = settings.hang_timeout.is_some_and(|limit| silence >= limit);
        missed || (hung && !self.held.is_empty())
    }

    pub fn stop(&mut self, now: Time, rung: Rung) -> Verdict {
        require!(
            self.stopping.is_none_or(|stop| stop.rung < rung),
            "the ladder only goes down",
            "{rung:?} after {:?} for {}",
            self.stopping,
            self.id
        );
        self.stopping = Some(Stop { rung, since: now });
        Ok(())
    }

    /// When the next rung of the ladder must come; the last one needs no other.
    pub fn next_rung_due(&self, settings: &Settings) -> Option<Time> {
        let stop = self.stopping.filter(|stop| stop.rung != Rung::Killed && !self.exited)?;
        Some(stop.since.after(settings.stop_grace))
    }

    /// When a tainted one has had enough time to finish.
    pub fn drain_due(&self, settings: &Settings) -> Option<Time> {
        let drains = self.tainted.filter(|_| !self.exited && self.stopping.is_none());
        drains.map(|since| since.after(settings.drain_timeout))
    }

    /// When it has been starting for too long.
    pub fn start_due(&self, settings: &Settings) -> Option<Time> {
        let starting = self.ready.is_none() && !self.exited && self.stopping.is_none();
        starting.then(|| self.spawned.after(settings.start_timeout))
    }
}
