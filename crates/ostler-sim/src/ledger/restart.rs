//! How often workers came back by themselves, counted from crashes that nobody can doubt: the
//! true count may be higher, never lower.

use std::collections::VecDeque;

use ostler_core::{IdMap, ProcessId, Settings, Time, WorkerId};

use crate::violation::{Verdict, require};

#[derive(Debug, Default)]
pub(super) struct Restarts {
    recent: VecDeque<Time>,
    rows: IdMap<WorkerId, Row>,
}

#[derive(Debug, Default)]
struct Row {
    /// Crashes in a row, with nothing else in between.
    crashes: u32,
    lost: Time,
    /// The pool's budget was spent when it crashed.
    beyond_budget: bool,
    was_ready: bool,
}

impl Restarts {
    /// A worker in service lost its process by a crash.
    pub fn lost(&mut self, now: Time, worker: WorkerId, settings: &Settings) {
        self.recent.push_back(now);
        while self.recent.front().is_some_and(|at| now.since(*at) > settings.restart_period) {
            self.recent.pop_front();
        }
        let row = self.rows.entry(worker).or_default();
        row.crashes += 1;
        row.lost = now;
        row.beyond_budget = self.recent.len() > settings.restart_max as usize;
    }

    /// Something else happened to it: an answer, a change of status, a planned end.
    pub fn settled(&mut self, worker: WorkerId) {
        if let Some(row) = self.rows.get_mut(&worker) {
            row.crashes = 0;
        }
    }

    /// A new worker that is ready may be the proof that closes the breaker. True, if it is new.
    pub fn ready(&mut self, worker: WorkerId, dedicated: bool) -> bool {
        let row = self.rows.entry(worker).or_default();
        let first = !dedicated && !std::mem::replace(&mut row.was_ready, true);
        if first {
            self.recent.clear();
        }
        first
    }

    /// The pool says that it begins to count anew.
    pub fn forgive(&mut self) {
        self.recent.clear();
    }

    pub fn spawned(&mut self, now: Time, id: ProcessId, settings: &Settings) -> Verdict {
        let Some(row) = self.rows.get(&id.worker) else { return Ok(()) };
        require!(
            !row.beyond_budget,
            "the restart budget holds",
            "{id} is spawned, the budget of {} was spent when its worker crashed",
            settings.restart_max
        );
        let backoff = settings.backoff;
        let least = backoff.first.min(backoff.max).mul_f64((1.0 - backoff.jitter) * 0.999);
        require!(
            row.crashes < 2 || now >= row.lost.after(least),
            "a worker that crashes again waits",
            "{id} is spawned {:?} after the {}th crash in a row",
            now.since(row.lost),
            row.crashes
        );
        Ok(())
    }
}
