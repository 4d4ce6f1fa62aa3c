//! What must hold between two events: nobody is forgotten, nobody idles while someone waits.

use ostler_core::Time;

use super::Ledger;
use super::process::Row;
use crate::violation::{Verdict, require};

impl Ledger {
    /// The event has been handled: what must hold between two events?
    pub fn settle(&mut self, now: Time, next_deadline: Option<Time>) -> Verdict {
        self.check_cancels()?;
        self.check_begins()?;
        self.check_health()?;
        self.check_phases()?;
        self.check_bonds()?;
        self.check_reload_unless_over()?;
        self.awaited = next_deadline;
        self.check_wake(now, next_deadline)?;
        require!(
            self.requests.line.len() <= self.settings.queue_max as usize,
            "the queue is bounded",
            "{} wait, {} may",
            self.requests.line.len(),
            self.settings.queue_max
        );
        if self.shutdown.is_some() {
            return Ok(());
        }
        self.check_control()?;
        self.check_wear()?;
        self.check_completion()?;
        self.check_ended_key()?;
        self.check_size()?;
        self.check_idleness(now)?;
        self.check_admission(now)?;
        self.check_circles(now)?;
        if self.woke && next_deadline.is_none_or(|at| at > now) {
            self.check_patience(now)?;
            self.check_growth(now)?;
        }
        Ok(())
    }

    /// What lies behind a long request moves to a worker that has nothing to do.
    fn check_patience(&mut self, now: Time) -> Verdict {
        let reserved = self.leases.any_waits();
        let open = |row: &Row| !reserved && !row.dedicated && self.surely_open(now, row);
        let open: Vec<_> =
            self.processes.rows().filter(|row| open(row)).map(|row| row.id).collect();
        let patience = self.settings.prefetch_patience;
        let mut idle = None;
        for row in self.processes.rows_mut() {
            row.open_since = open.contains(&row.id).then(|| row.open_since.unwrap_or(now));
            if row.open_since.is_some_and(|since| now.since(since) > patience) {
                idle = Some(row.id);
            }
        }
        let Some(idle) = idle else { return Ok(()) };
        for row in self.processes.rows().filter(|row| row.stopping.is_none()) {
            let stuck = row.held.iter().skip(row.capacity).find(|held| {
                held.cancelled.is_none() && !held.withdrawn && now.since(held.since) > patience * 2
            });
            require!(
                stuck.is_none(),
                "what is stuck behind another moves",
                "{stuck:?} lies on {} while {idle} has been open for long",
                row.id
            );
        }
        Ok(())
    }

    fn check_begins(&self) -> Verdict {
        let first = self.begins.first();
        require!(
            first.is_none(),
            "whoever moves up is told to begin, once",
            "{first:?} moved up and was not told"
        );
        Ok(())
    }

    fn check_phases(&self) -> Verdict {
        let mut living = 0;
        for row in self.processes.rows() {
            living += usize::from(!row.exited);
            self.phases.check(row)?;
        }
        self.phases.check_count(living)
    }

    /// Only a request whose caller waits no longer is interrupted.
    fn check_cancels(&self) -> Verdict {
        for request in &self.cancels {
            require!(
                !self.is_open(*request),
                "nobody interrupts what is wanted",
                "{request:?} is cancelled, its caller still waits"
            );
        }
        Ok(())
    }

    /// Whatever must happen at some moment needs a wake by then.
    fn check_wake(&self, now: Time, next_deadline: Option<Time>) -> Verdict {
        let ladder = |row: &Row| {
            let rung = row.next_rung_due(&self.settings).or_else(|| row.start_due(&self.settings));
            let rung = rung.or_else(|| row.drain_due(&self.settings));
            let care = [self.care_due(row), self.ttl_due(row)].into_iter().flatten().min();
            rung.into_iter().chain(care).min()
        };
        let due = self.processes.rows().filter_map(ladder);
        let due = due.chain(self.requests.next_due()).chain(self.leases.next_due());
        let due = due.chain(self.bonds.save_due(&self.settings)).min();
        let Some(due) = due else { return Ok(()) };
        require!(
            next_deadline.is_some_and(|at| at <= due.max(now)),
            "whatever has a deadline is woken for",
            "at {now:?} something is due at {due:?}, the next wake is at {next_deadline:?}: requests {:?}, leases {:?}",
            self.requests.next_due(),
            self.leases.next_due()
        );
        Ok(())
    }

    fn check_idleness(&self, now: Time) -> Verdict {
        if self.requests.line.len() == 0 {
            return Ok(());
        }
        let any = self.requests.line.waits_for_any().filter(|_| !self.leases.any_waits());
        for row in self.processes.rows().filter(|row| self.surely_open(now, row)) {
            let worker = row.id.worker;
            let waits = !row.dedicated && any.is_some();
            require!(
                !waits && (self.leases.any_waits() || !self.requests.line.waits_for(worker.0)),
                "no idle worker while someone waits for it",
                "{any:?} or another waits, and there is {row:?}"
            );
            self.check_own(row)?;
        }
        for (lease, place) in self.requests.line.waited_for_leases() {
            let row = self.leases.place(lease, place).and_then(|id| self.processes.get(id));
            let idle = row.filter(|row| {
                self.surely_well(now, row) && !row.held.iter().any(|held| held.lease == Some(lease))
            });
            require!(
                idle.is_none(),
                "no idle place while its holder waits for it",
                "{lease:?} place {place}: {idle:?}"
            );
        }
        Ok(())
    }

    /// Nobody waits for a worker of his own that is free.
    fn check_own(&self, row: &Row) -> Verdict {
        let key = row.key.filter(|key| self.requests.line.waits_for_key(*key));
        let session = self.requests.line.waiting_sessions().find(|(session, strict)| {
            let home = self.bonds.home_of(*session) == Some(row.id);
            (home && *strict) || (!strict && !row.dedicated && self.settings.keyed.is_none())
        });
        require!(
            self.leases.any_waits() || (key.is_none() && session.is_none()),
            "no idle worker while someone waits for it",
            "{key:?} or {session:?} waits, and there is {row:?}"
        );
        Ok(())
    }

    fn check_reload_unless_over(&self) -> Verdict {
        if self.shutdown.is_some() { Ok(()) } else { self.check_reload() }
    }

    pub(super) fn surely_open(&self, now: Time, row: &Row) -> bool {
        row.used() < row.capacity && row.held.len() < row.capacity && self.surely_well(now, row)
    }

    /// Nothing that the ledger knows of keeps this process from taking work.
    pub(super) fn surely_well(&self, now: Time, row: &Row) -> bool {
        let beat = self.settings.heartbeat;
        let fresh = beat.is_none_or(|beat| beat.independent || now.since(row.heard) < beat.timeout);
        let worker = row.id.worker;
        row.serves()
            && !self.control.paused
            && !row.overstayed
            && !row.mute
            && !row.held.iter().any(|held| held.overdue(now, &self.settings))
            && fresh
            && self.workers.surely_in_service(worker)
    }
}
