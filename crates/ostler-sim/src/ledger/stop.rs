//! Why a process is stopped, and what it is allowed to finish first.

use ostler_core::{ProcessId, Status, Time};

use super::Ledger;
use super::process::{Row, Rung};
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
        require!(
            overdue.is_some() || self.shutdown.is_some(),
            "no process is stopped without a cause",
            "{row:?} of {worker:?}"
        );
        let wanted = row.held.iter().take(row.capacity);
        let wanted =
            wanted.filter(|h| h.cancelled.is_none()).find(|held| self.is_open(held.request));
        let forced = overdue.map(|since| since.after(self.settings.cancel_grace * 2));
        let drained = self.shutdown.map(|since| since.after(self.settings.drain_timeout));
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
