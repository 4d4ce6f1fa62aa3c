//! A new kind of worker. One of it has to become ready first, in the place of an old one; only
//! then do the new settings count and the others follow. If it comes to nothing, nothing changed.
//!
//! A process that starts later, for whatever reason, is of the current kind.

use std::time::Duration;

use crate::command::{Command, Notice, Reply, Retirement};
use crate::id::{OrderId, WorkerId};
use crate::pool::{Cx, Pool, Stage};
use crate::restart::Breaker;
use crate::settings::Settings;
use crate::worker::Worker;

#[derive(Debug)]
pub(crate) struct Reload {
    order: OrderId,
    settings: Box<Settings>,
    /// The worker that has to prove itself.
    trial: Option<WorkerId>,
}

impl Pool {
    pub(crate) fn on_reload_ordered(
        &mut self,
        cx: &mut Cx<'_>,
        order: OrderId,
        settings: Box<Settings>,
    ) {
        let refusal = match self.stage {
            Stage::Draining | Stage::Stopped => Some(Reply::ShuttingDown),
            Stage::New | Stage::Open => self.reload.is_some().then_some(Reply::ReloadUnderway),
        };
        if let Some(reply) = refusal {
            return cx.push(Command::Reply { order, reply });
        }
        self.reload = Some(Reload { order, settings, trial: None });
        cx.notify(Notice::ReloadBegun { edition: self.edition + 1 });
        self.begin_trial(cx);
    }

    /// In the place of another one, if one may be replaced.
    pub(crate) fn begin_trial(&mut self, cx: &mut Cx<'_>) {
        let waits = self.reload.as_ref().is_some_and(|reload| reload.trial.is_none());
        let full = self.replacing.len() >= self.settings.retire_max.max(1) as usize;
        if !waits || self.stage != Stage::Open {
            return;
        }
        // Somebody who is long in leaving does not hold up the others: then it comes beside them.
        let old = self.predecessor_of_trial().filter(|_| !full);
        let trial = self.create_worker(cx, None, false);
        self.reload.as_mut().expect("looked up above").trial = Some(trial);
        if let Some(old) = old {
            self.pair(cx, old, trial, Retirement::Reloaded);
        }
    }

    /// In a keyed pool the trial belongs to nobody and goes when it has proved itself.
    fn predecessor_of_trial(&self) -> Option<WorkerId> {
        if self.settings.keyed.is_some() {
            return None;
        }
        let may = |worker: &&Worker| {
            !worker.dedicated
                && worker.in_service()
                && worker.successor.is_none()
                && worker.replaces.is_none()
        };
        let coldest = self.workers.values().filter(may).min_by_key(|worker| worker.last_used);
        coldest.map(|worker| worker.id)
    }

    pub(crate) fn is_trial(&self, id: WorkerId) -> bool {
        self.reload.as_ref().is_some_and(|reload| reload.trial == Some(id))
    }

    pub(crate) fn trial(&self) -> Option<WorkerId> {
        self.reload.as_ref().and_then(|reload| reload.trial)
    }

    /// The trial is given the time that it will have.
    pub(crate) fn start_timeout_of(&self, id: WorkerId) -> Duration {
        match &self.reload {
            Some(reload) if reload.trial == Some(id) => reload.settings.start_timeout,
            _ => self.settings.start_timeout,
        }
    }

    /// Which kind the next process of a worker is.
    pub(crate) fn edition_of(&self, id: WorkerId) -> u32 {
        self.edition + u32::from(self.is_trial(id))
    }

    /// The trial is ready: from now on its kind is the pool's.
    pub(crate) fn adopt_if_trial(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        if !self.is_trial(id) {
            return;
        }
        let reload = self.reload.take().expect("it has a trial");
        self.edition += 1;
        let edition = self.edition;
        cx.notify(Notice::Reloaded { edition });
        cx.push(Command::Reply { order: reload.order, reply: Reply::Reloaded { edition } });
        self.aim_within_bounds(cx);
        if self.restarts.breaker != Breaker::Closed {
            self.close_breaker(cx);
        }
        if self.settings.keyed.is_some() {
            self.depart(cx, id, Retirement::Reloaded);
        }
        self.resize(cx);
        self.retire_older_editions(cx);
    }

    /// The trial is about to serve: under the settings that it was made for.
    pub(crate) fn adopt_settings(&mut self) {
        let reload = self.reload.as_ref().expect("there is a trial");
        self.settings = Settings::clone(&reload.settings);
        self.roster.rebuild(self.settings.strategy.clone(), self.workers.values());
    }

    /// A worker too many that nobody counts until it has proved itself.
    pub(crate) fn is_extra(&self, worker: &Worker) -> bool {
        self.is_trial(worker.id) && worker.replaces.is_none()
    }

    fn retire_older_editions(&mut self, cx: &mut Cx<'_>) {
        let edition = self.edition;
        let older = |worker: &&Worker| worker.process().is_some_and(|p| p.edition < edition);
        let older: Vec<WorkerId> = self.workers.values().filter(older).map(|w| w.id).collect();
        for id in older {
            self.retire(cx, id, Retirement::Reloaded);
        }
    }

    /// The trial left the pool before it was ready.
    pub(crate) fn fail_reload_of(&mut self, cx: &mut Cx<'_>, gone: &Worker) {
        if !self.is_trial(gone.id) {
            return;
        }
        let reload = self.reload.take().expect("it has a trial");
        cx.notify(Notice::ReloadFailed { edition: self.edition + 1 });
        let reply = Reply::ReloadFailed { worker: gone.id, exit: gone.last_exit };
        cx.push(Command::Reply { order: reload.order, reply });
    }

    pub(crate) fn give_up_reload(&mut self, cx: &mut Cx<'_>) {
        if let Some(reload) = self.reload.take() {
            cx.push(Command::Reply { order: reload.order, reply: Reply::ShuttingDown });
        }
    }
}
