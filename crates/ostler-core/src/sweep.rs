//! The pool acts on events. Once in a while it looks whether that left anything undone. In a
//! healthy pool it finds nothing; what it finds is a bug, told as an alarm and mended.

use crate::command::Notice;
use crate::id::WorkerId;
use crate::pool::{Cx, Pool, Stage};
use crate::restart::Breaker;
use crate::status::Status;
use crate::timers::Timer;
use crate::worker::{Engine, Worker};

impl Pool {
    pub(crate) fn begin_sweeps(&mut self, cx: &Cx<'_>) {
        self.timers.set(Timer::Sweep, cx.now.after(self.settings.sweep));
    }

    pub(crate) fn on_sweep_due(&mut self, cx: &mut Cx<'_>) {
        if self.stage != Stage::Open {
            return;
        }
        self.begin_sweeps(cx);
        if let Err(what) = self.check().and_then(|()| self.check_supervision()) {
            self.counters.sweep_findings += 1;
            cx.notify(Notice::SweepFound { what });
            self.mend(cx);
        }
    }

    /// Is everybody waited for who should come, and does nobody wait in vain?
    fn check_supervision(&self) -> Result<(), String> {
        if let Some(id) = self.stranded().next() {
            return Err(format!("{id:?} is RUNNING without a process, and none will come"));
        }
        if self.restarts.breaker == Breaker::Closed && self.missing() > 0 {
            return Err(format!("{} workers are missing, and none will come", self.missing()));
        }
        for worker in self.workers.values() {
            let degraded = worker.process().is_some_and(|p| p.serving() && p.degraded());
            let watched = self.timers.has(Timer::Heartbeat(worker.id))
                || self.timers.has(Timer::Checkup(worker.id));
            if degraded && !watched {
                return Err(format!("{:?} is degraded, and nothing will end that", worker.id));
            }
        }
        Ok(())
    }

    fn stranded(&self) -> impl Iterator<Item = WorkerId> + '_ {
        let stranded = |worker: &&Worker| {
            let parked = matches!(worker.engine, Engine::Parked);
            let forgotten = match worker.engine {
                Engine::Parked => !worker.retiring && worker.completing.is_none(),
                Engine::Waiting => !self.timers.has(Timer::Restart(worker.id)),
                Engine::Queued => !self.start_queue.contains(&worker.id),
                Engine::Live(_) => false,
            };
            let settled = worker.pending.is_none() && worker.wanted.is_none();
            let coming = parked && self.timers.has(Timer::Restart(worker.id));
            worker.status == Status::Running && settled && forgotten && !coming
        };
        self.workers.values().filter(stranded).map(|worker| worker.id)
    }

    fn mend(&mut self, cx: &mut Cx<'_>) {
        self.roster.rebuild(self.settings.strategy.clone(), self.workers.values());
        let stranded: Vec<WorkerId> = self.stranded().collect();
        for id in stranded {
            self.want_process(cx, id);
        }
        self.replenish(cx);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Command, Event, Ready, Recording, Settings, Time};

    /// A pool of one worker, which is ready.
    fn pool() -> (Pool, Time) {
        let mut pool =
            Pool::new(Settings { heartbeat: None, checkup: None, ..Settings::of_size(1) });
        let mut facts = vec![Event::PoolStarted];
        let mut commands = Vec::new();
        while let Some(fact) = facts.pop() {
            pool.handle(Time::ZERO, fact, &mut commands);
            for command in commands.drain(..) {
                match command {
                    Command::Record { record, .. } => {
                        facts.push(Event::Recorded { record, result: Recording::Stored });
                    }
                    Command::Spawn { process, .. } => {
                        let ready = Ready {
                            capacity: None,
                            heartbeat: false,
                            gives_back: false,
                            saves_sessions: false,
                        };
                        facts.push(Event::ProcessReady { process, ready });
                    }
                    _ => {}
                }
            }
        }
        (pool, Time::ZERO)
    }

    fn sweep(pool: &mut Pool, now: Time) -> Vec<Command> {
        let mut commands = Vec::new();
        pool.handle(now.after(Duration::from_secs(60)), Event::DeadlineReached, &mut commands);
        commands
    }

    fn alarm(commands: &[Command]) -> bool {
        let found =
            |command: &Command| matches!(command, Command::Notify(Notice::SweepFound { .. }));
        commands.iter().any(found)
    }

    #[test]
    fn a_healthy_pool_has_nothing_to_find() {
        let (mut pool, now) = pool();
        assert!(!alarm(&sweep(&mut pool, now)));
        assert_eq!(pool.view(now).counters.sweep_findings, 0);
    }

    #[test]
    fn a_worker_that_was_forgotten_is_found_and_started() {
        let (mut pool, now) = pool();
        let id = *pool.workers.keys().next().expect("one worker");
        pool.workers.get_mut(&id).expect("just listed").engine = Engine::Parked;
        let commands = sweep(&mut pool, now);
        assert!(alarm(&commands));
        assert!(commands.iter().any(|command| matches!(command, Command::Spawn { .. })));
    }

    #[test]
    fn a_missing_worker_is_found_and_made() {
        let (mut pool, now) = pool();
        pool.target += 1;
        pool.settings.max += 1;
        let commands = sweep(&mut pool, now);
        assert!(alarm(&commands));
        assert!(commands.iter().any(|command| matches!(command, Command::Record { .. })));
    }

    #[test]
    fn an_index_that_drifted_is_found_and_built_anew() {
        let (mut pool, now) = pool();
        let id = *pool.workers.keys().next().expect("one worker");
        pool.workers.get_mut(&id).expect("just listed").last_used =
            Time::ZERO.after(Duration::from_secs(7));
        assert!(alarm(&sweep(&mut pool, now)));
        pool.check().expect("mended");
    }
}
