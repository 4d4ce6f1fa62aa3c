//! What must be true in the end: a pool whose faults have stopped is whole again, one that was
//! shut down is gone, and in both nobody still waits.

use std::time::Duration;

use ostler_core::{Outcome, Phase, Started, Time, Waiting, WorkerId};

use super::Ledger;
use super::request::End;
use crate::violation::{Verdict, require};

/// For the world's own latencies.
const SLACK: Duration = Duration::from_millis(200);

impl Ledger {
    /// The longest chain of waits that any fault may leave behind.
    pub fn mending_bound(&self) -> Duration {
        let s = &self.settings;
        let silence = s.heartbeat.map_or(Duration::ZERO, |beat| {
            beat.initial_delay + beat.timeout + beat.interval * (beat.misses + 1)
        });
        let checks = s.checkup.map_or(Duration::ZERO, |checkup| {
            checkup.interval + (checkup.again + checkup.timeout) * (checkup.failures + 1)
        });
        let starts = (s.start_timeout + s.start_batch_delay) * (s.max + 2);
        let stops = s.drain_timeout + s.stop_grace * 3 + s.cancel_grace * 3;
        let restarts = s.backoff.max * 2 + s.restart_cooldown * 2;
        let hang = s.hang_timeout.unwrap_or_default();
        (silence
            + checks
            + starts
            + stops
            + restarts
            + hang
            + s.supervisor_timeout
            + s.record_retry
            + s.save_timeout * (s.max + 2))
            * 2
            + Duration::from_secs(3)
    }

    /// Drain, ask, terminate, kill.
    pub fn stopping_bound(&self) -> Duration {
        let s = &self.settings;
        s.drain_timeout + s.stop_grace * 2 + s.record_retry + SLACK
    }

    /// After this long without a caller, nobody is busy any more.
    pub fn quiet_bound(&self) -> Duration {
        let s = &self.settings;
        Duration::from_secs(2)
            + s.idle_ttl.unwrap_or_default() * 4
            + s.cancel_grace * 3
            + s.stop_grace * 3
            + s.start_timeout * 3
    }

    pub fn serving_workers(&self) -> Vec<WorkerId> {
        let stays = |row: &super::Row| self.retirement(row.id.worker).is_none();
        let serving = self.processes.rows();
        let serving = serving.filter(|row| !row.dedicated && row.serves() && stays(row));
        serving.map(|row| row.id.worker).collect()
    }

    /// Those from `first` on went to a worker as they came.
    pub fn expect_taken(&self, first: u64) -> Verdict {
        let waits = self.requests.from(first).find(|row| row.attempts == 0);
        require!(waits.is_none(), "a whole pool serves", "{waits:?} waits in an idle pool");
        Ok(())
    }

    pub fn expect_answered(&self, first: u64) -> Verdict {
        let answered = Some(End::Resolved(Outcome::Answered));
        let late = Some(Outcome::TimedOut { phase: Waiting::Worker, started: Started::Yes });
        let late = late.map(End::Resolved);
        let not = self.requests.from(first).find(|row| row.end != answered && row.end != late);
        require!(not.is_none(), "a whole pool serves", "{not:?}");
        Ok(())
    }

    pub fn expect_whole(&self, now: Time) -> Verdict {
        self.expect_nobody_waits(now)?;
        self.expect_nobody_saves()?;
        self.expect_one_kind()?;
        self.expect_size()?;
        let whole = |row: &&super::Row| {
            !row.dedicated
                && row.serves()
                && self.phases.of(row.id) == Some(Phase::Ready)
                && self.workers.surely_running(row.id.worker)
        };
        let whole = self.processes.rows().filter(whole).count();
        require!(
            whole >= self.wanted(),
            "the pool is whole again",
            "{whole} of {} workers serve: {:#?} {:#?}",
            self.wanted(),
            self.processes,
            self.workers.living()
        );
        Ok(())
    }

    fn wanted(&self) -> usize {
        if self.settings.keyed.is_some() { 0 } else { self.size.target as usize }
    }

    /// As many as are wanted, and one more for each that is being replaced; and when nobody has
    /// called for long, as few as may be.
    fn expect_size(&self) -> Verdict {
        let s = &self.settings;
        let keyed = s.keyed.is_some();
        let replaced = if s.ttl.is_some() { s.retire_max } else { 0 } as usize;
        let most = if keyed { s.max as usize } else { self.wanted() } + replaced;
        let all = self.regulars().count();
        require!(
            all <= most,
            "sizes stay within their bounds",
            "{all} workers are left, {most} may be: {:?}",
            self.regulars().map(|id| (id, self.workers.get(id))).collect::<Vec<_>>()
        );
        let idles = s.idle_ttl.is_some_and(|idle| s.ttl.is_none_or(|ttl| ttl > idle * 4));
        let least = if keyed { 0 } else { s.min as usize };
        let left = if keyed { all } else { self.wanted() };
        require!(
            !idles || left == least || (s.min == s.max && !keyed),
            "spare workers leave",
            "{left} are left, {least} need be"
        );
        Ok(())
    }

    pub fn expect_stopped(&self, now: Time) -> Verdict {
        let left = self.processes.rows().next();
        require!(
            self.stopped.is_some() && left.is_none(),
            "a shutdown ends in time",
            "begun at {:?}, it is {now:?}, stopped: {:?}, left: {left:?}",
            self.shutdown,
            self.stopped
        );
        let told = self.phases.first();
        require!(told.is_none(), "every process dies once", "{told:?} is still told of");
        self.expect_nobody_waits(now)
    }

    fn expect_nobody_waits(&self, now: Time) -> Verdict {
        let request = self.requests.next_due().filter(|at| *at <= now);
        require!(request.is_none(), "every request ends", "one was due at {request:?}");
        if self.shutdown.is_some() {
            let open = self.requests.open().next();
            require!(open.is_none(), "every request ends", "{open:?} survived the shutdown");
        }
        let order = self.workers.open_order();
        require!(order.is_none(), "every order has its reply", "{order:?}");
        // Where processes grow old there is always one that is being replaced.
        let unsettled = self.workers.unsettled().filter(|_| self.settings.ttl.is_none());
        require!(unsettled.is_none(), "every change is settled", "{unsettled:?}");
        let lease = self.leases.first();
        require!(lease.is_none(), "every lease ends", "{lease:?}");
        let overdue = self
            .processes
            .rows()
            .flat_map(|row| &row.held)
            .find(|held| held.cancelled.is_some_and(|at| now.since(at) > self.mending_bound()));
        require!(overdue.is_none(), "a cancelled request is let go of", "{overdue:?}");
        Ok(())
    }
}
