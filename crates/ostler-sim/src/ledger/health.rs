//! Questions and answers about the health of processes: who was asked, who was overtaken by work,
//! who failed how often, and when somebody must look again.

use std::time::Duration;

use ostler_core::{CheckResult, Checkup, Notice, ProcessId, Ready, Settings, StopReason, Time};

use super::Ledger;
use super::process::Row;
use crate::violation::{Verdict, require};

/// A shell that is later than this was asleep itself.
const STALL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Health {
    asked: Option<Asked>,
    /// Since when it has rested: the last verdict, or its readiness.
    rested: Time,
    /// The last moment at which the wait for the next question may have begun.
    waits: Time,
    /// The last moment at which it must be pinged.
    ping_due: Time,
    /// It is known to answer: without heartbeats, once it has.
    answers: bool,
    /// Checks that failed in a row.
    pub failed: u32,
    /// It missed a heartbeat and has said nothing since.
    pub silent: bool,
    /// It has missed so many, with nothing to do, that it should be gone by the next.
    overdue: bool,
}

#[derive(Debug, Clone, Copy)]
struct Asked {
    at: Time,
    /// Something came between: an answer may or may not count, and none says nothing.
    doubtful: bool,
    /// It was work: not even a bad answer says anything.
    overtaken: bool,
}

/// What a process said of itself in this event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Said {
    process: ProcessId,
    well: bool,
    /// Nothing speaks against it.
    counts: bool,
}

impl Health {
    pub fn new(now: Time) -> Self {
        Health {
            asked: None,
            rested: now,
            waits: now,
            ping_due: now,
            answers: false,
            failed: 0,
            silent: false,
            overdue: false,
        }
    }

    pub fn degraded(&self) -> bool {
        self.silent || self.failed > 0
    }

    pub fn become_ready(&mut self, now: Time, ready: Ready, settings: &Settings) {
        self.answers = ready.heartbeat;
        self.rested = now;
        self.waits = now;
        let delay = settings.heartbeat.map_or(Duration::ZERO, |beat| beat.initial_delay);
        self.ping_due = now.after(delay);
    }

    /// Whoever is given work while a question is under way owes no answer.
    pub fn given_work(&mut self) {
        self.doubt();
        if let Some(asked) = &mut self.asked {
            asked.overtaken = true;
        }
    }

    pub fn has_nothing_to_do(&mut self, now: Time) {
        self.waits = now;
    }

    pub fn frozen_or_thawed(&mut self, now: Time, settings: &Settings) {
        self.waits = now;
        let interval = settings.heartbeat.map_or(Duration::ZERO, |beat| beat.interval);
        self.ping_due = self.ping_due.max(now.after(interval));
        self.doubt();
    }

    fn doubt(&mut self) {
        if let Some(asked) = &mut self.asked {
            asked.doubtful = true;
        }
    }

    fn conclude(&mut self, now: Time, result: CheckResult) {
        self.asked = None;
        self.rested = now;
        self.waits = now;
        self.answers |= result != CheckResult::TimedOut;
        match result {
            CheckResult::Passed => self.failed = 0,
            CheckResult::Failed | CheckResult::TimedOut => self.failed += u32::from(self.answers),
        }
    }

    /// The earliest moment at which it may be asked.
    fn may_be_asked(&self, checkup: &Checkup) -> Time {
        match self.asked {
            Some(asked) => asked.at.after(checkup.timeout),
            None if self.failed > 0 => self.rested.after(checkup.again),
            None => self.rested.after(checkup.interval),
        }
    }

    /// The last moment at which somebody must look whether it is to be asked, or has answered.
    fn must_be_looked_at(&self, checkup: &Checkup) -> Time {
        let next = if self.failed > 0 { checkup.again } else { checkup.interval };
        self.waits.after(next.max(checkup.timeout))
    }
}

impl Ledger {
    /// Nothing that a process did not say while the shell slept is held against it.
    pub(super) fn forgive_own_stall(&mut self, now: Time) {
        if self.awaited.is_some_and(|due| now.since(due) > STALL) {
            for row in self.processes.rows_mut() {
                row.health.doubt();
            }
        }
    }

    pub(super) fn hear_of_health(&mut self, id: ProcessId, well: bool) {
        let serves = self.phases.serves(id);
        let Some(row) = self.processes.get_mut(id).filter(|row| serves && !row.exited) else {
            return;
        };
        if let Some(asked) = row.health.asked {
            self.said = Some(Said { process: id, well, counts: !asked.doubtful });
        }
    }

    pub(super) fn judge_ping(&mut self, now: Time, id: ProcessId) -> Verdict {
        let interval = self.settings.heartbeat.map_or(Duration::ZERO, |beat| beat.interval);
        let row = self.processes.addressed(id, "Ping")?;
        row.health.ping_due = now.after(interval);
        Ok(())
    }

    pub(super) fn judge_check(&mut self, now: Time, id: ProcessId) -> Verdict {
        let serves = self.phases.serves(id);
        let row = self.processes.addressed(id, "CheckHealth")?;
        require!(
            serves && row.held.is_empty() && !row.frozen,
            "only the idle are asked how they are",
            "CheckHealth goes to {row:?}"
        );
        let due = self.settings.checkup.map(|checkup| row.health.may_be_asked(&checkup));
        let doubtful = row.health.asked.is_some_and(|asked| asked.doubtful);
        require!(
            due.is_some_and(|due| now >= due) && (row.health.asked.is_none() || doubtful),
            "nobody is asked more often than the settings say",
            "CheckHealth at {now:?}, due at {due:?}: {row:?}"
        );
        row.health.asked = Some(Asked { at: now, doubtful: false, overtaken: false });
        row.health.waits = now;
        Ok(())
    }

    pub(super) fn judge_health_notice(&mut self, now: Time, notice: &Notice) -> Verdict {
        match notice {
            Notice::Checked { process, result } => self.judge_verdict(now, *process, *result),
            Notice::HeartbeatMissed { process, misses } => self.judge_miss(now, *process, *misses),
            Notice::Stopping { process, reason } => self.judge_stop_reason(now, *process, *reason),
            _ => Ok(()),
        }
    }

    fn judge_verdict(&mut self, now: Time, id: ProcessId, result: CheckResult) -> Verdict {
        let said = self.said.take().filter(|said| said.process == id);
        let row = self.processes.addressed(id, "the verdict of a check")?;
        let timeout = self.settings.checkup.map_or(Duration::MAX, |checkup| checkup.timeout);
        let asked = row.health.asked;
        let late = asked.is_some_and(|asked| now >= asked.at.after(timeout) && !asked.doubtful);
        let overtaken = asked.is_none_or(|asked| asked.overtaken);
        let fits = match result {
            CheckResult::Passed => said.is_some_and(|said| said.well),
            CheckResult::Failed => !overtaken && said.is_some_and(|said| !said.well),
            CheckResult::TimedOut => late && row.held.is_empty() && !row.frozen,
        };
        require!(
            fits,
            "a check is judged by its answer",
            "{result:?} at {now:?}, said {said:?}: {row:?}"
        );
        row.health.conclude(now, result);
        Ok(())
    }

    fn judge_miss(&mut self, now: Time, id: ProcessId, misses: u32) -> Verdict {
        let beat = self.settings.heartbeat;
        let row = self.processes.addressed(id, "a missed heartbeat")?;
        let silence = now.since(row.heard);
        require!(
            beat.is_some_and(|beat| silence >= beat.timeout) && row.was_silent,
            "only the silent miss heartbeats",
            "{silence:?} of silence: {row:?}"
        );
        let matters = beat.is_some_and(|beat| !beat.independent) && row.held.is_empty();
        row.health.silent |= matters;
        let overdue = matters && beat.is_some_and(|beat| misses >= beat.misses);
        let was_overdue = std::mem::replace(&mut row.health.overdue, overdue);
        require!(
            !(was_overdue && overdue),
            "the silent are replaced",
            "{misses} misses of {beat:?}: {row:?}"
        );
        Ok(())
    }

    fn judge_stop_reason(&mut self, now: Time, id: ProcessId, reason: StopReason) -> Verdict {
        self.processes.addressed(id, "the reason of a stop")?;
        let row = self.processes.get(id).expect("addressed above");
        let settings = &self.settings;
        let fits = match reason {
            StopReason::Unhealthy => row.too_unwell(settings),
            StopReason::Tainted => row.tainted.is_some(),
            StopReason::HeartbeatLost | StopReason::Hung => row.silent_for_too_long(now, settings),
            StopReason::StartTimeout => row.start_due(settings).is_some_and(|due| now >= due),
            StopReason::StreamClosed | StopReason::ProtocolViolation => row.broken,
            StopReason::Shutdown => self.shutdown.is_some(),
            StopReason::Retired(reason) => {
                let again = row.dedicated && self.has_cause(now, id.worker, reason);
                again || self.is_completed(id.worker)
            }
            StopReason::MemoryExceeded => row.far_too_large(settings),
            StopReason::Discarded
            | StopReason::Terminated
            | StopReason::Paused
            | StopReason::ForcedCancel
            | StopReason::GaveUp => true,
        };
        require!(fits, "a stop names its cause", "{reason:?} at {now:?}: {row:?}");
        if matches!(reason, StopReason::Retired(_)) {
            self.ask_replacement(id.worker);
        }
        Ok(())
    }

    /// Between two events: what was said has been judged, and who failed too often is on its way.
    pub(super) fn check_health(&mut self) -> Verdict {
        let unheard = self.said.take().filter(|said| said.counts);
        require!(unheard.is_none(), "a check is judged by its answer", "{unheard:?} was ignored");
        let serves = |row: &&Row| self.phases.serves(row.id);
        let unwell = |row: &&Row| row.too_unwell(&self.settings) || row.tainted.is_some();
        let kept = self.processes.rows().filter(serves).find(unwell);
        require!(kept.is_none(), "the unwell and the tainted are replaced", "{kept:?} serves on");
        Ok(())
    }

    /// When somebody must look after this process, without any traffic.
    pub(super) fn care_due(&self, row: &Row) -> Option<Time> {
        if row.frozen || !self.phases.serves(row.id) {
            return None;
        }
        let check = self.settings.checkup.filter(|_| row.held.is_empty());
        let check = check.map(|checkup| row.health.must_be_looked_at(&checkup));
        let beats = row.ready.is_some_and(|ready| ready.heartbeat);
        let beat = self.settings.heartbeat.filter(|_| beats).map(|_| row.health.ping_due);
        check.into_iter().chain(beat).min()
    }
}

impl Row {
    pub fn too_unwell(&self, settings: &Settings) -> bool {
        settings.checkup.is_some_and(|checkup| self.health.failed >= checkup.failures)
    }

    pub fn far_too_large(&self, settings: &Settings) -> bool {
        settings.max_memory_hard.is_some_and(|most| self.memory >= most)
    }
}
