//! New kinds of workers: one has to prove itself, then its settings count and only its kind is
//! spawned; if it comes to nothing, nothing of it is left.

use ostler_core::{Notice, OrderId, ProcessId, Reply, Settings, WorkerId};

use super::Ledger;
use super::process::Row;
use crate::violation::{Verdict, require};

#[derive(Debug)]
pub(super) struct Reloads {
    pub edition: u32,
    /// The most that were replaced at a time before: some of them may be long in leaving.
    pub retire_max: u32,
    under_way: Option<(OrderId, Box<Settings>)>,
    /// Orders that came while another was under way.
    others: Vec<OrderId>,
    trial: Option<WorkerId>,
    /// The reply that is due for what was told, and the worker that proved itself last.
    due: Option<(OrderId, bool)>,
    last: Option<WorkerId>,
}

impl Reloads {
    pub fn new(settings: &Settings) -> Self {
        Reloads {
            edition: 1,
            retire_max: settings.retire_max,
            under_way: None,
            others: Vec::new(),
            trial: None,
            due: None,
            last: None,
        }
    }

    pub fn under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// What this worker was made for, if it has to prove itself.
    pub fn settings_of(&self, worker: WorkerId) -> Option<&Settings> {
        let (_, settings) = self.under_way.as_ref()?;
        (self.trial == Some(worker)).then_some(settings)
    }

    pub fn was_trial(&self, worker: WorkerId) -> bool {
        self.trial == Some(worker) || self.last == Some(worker)
    }

    pub fn order(&mut self, order: OrderId, settings: &Settings) {
        match self.under_way {
            None => self.under_way = Some((order, Box::new(settings.clone()))),
            Some(_) => self.others.push(order),
        }
    }

    fn knows(&self, order: OrderId) -> bool {
        let first = self.under_way.as_ref().map(|(order, _)| *order);
        let due = self.due.map(|(order, _)| order);
        first == Some(order) || due == Some(order) || self.others.contains(&order)
    }

    pub fn spawned(&mut self, id: ProcessId, edition: u32) -> Verdict {
        let tried = self.under_way() && self.trial == Some(id.worker);
        let first = self.under_way() && self.trial.is_none() && id.generation == 1;
        let fits = match edition.checked_sub(self.edition) {
            Some(0) => !tried,
            Some(1) => first,
            _ => false,
        };
        require!(
            fits,
            "only the current kind is spawned",
            "{id} is of edition {edition}, current is {}, on trial {:?}",
            self.edition,
            self.trial
        );
        if edition > self.edition {
            self.trial = Some(id.worker);
        }
        Ok(())
    }
}

impl Ledger {
    pub(super) fn judge_reload_notice(&mut self, notice: &Notice) -> Verdict {
        let next = self.reloads.edition + 1;
        let trial = self.reloads.trial.and_then(|trial| self.processes.of(trial));
        let ready = trial.is_some_and(|row| row.ready.is_some() && !row.exited);
        let left = trial.is_some();
        let fits = match notice {
            Notice::ReloadBegun { edition } => self.reloads.under_way() && *edition == next,
            Notice::Reloaded { edition } => {
                let under_way = self.reloads.under_way.take();
                let fits = ready && *edition == next && under_way.is_some();
                if let Some((order, settings)) = under_way {
                    self.adopt(order, *settings);
                }
                fits
            }
            Notice::ReloadFailed { edition } => {
                let gone = self.reloads.trial.is_none_or(|trial| self.workers.ended(trial));
                let under_way = self.reloads.under_way.take();
                self.reloads.due = under_way.as_ref().map(|(order, _)| (*order, false));
                self.reloads.trial = None;
                self.begin_ttls_anew();
                gone && !left && *edition == next && under_way.is_some()
            }
            _ => true,
        };
        require!(fits, "a reload ends as its first worker does", "{notice:?}: {:?}", self.reloads);
        Ok(())
    }

    /// Whoever was paired with the one that came to nothing has all its time again.
    fn begin_ttls_anew(&mut self) {
        let (now, jitter) = (self.heard_at, 1.0 + self.settings.ttl_jitter * 1.001);
        let by = self.settings.ttl.map(|ttl| now.after(ttl.mul_f64(jitter)));
        for row in self.processes.rows_mut() {
            row.ttl_by = row.ttl_by.and(by);
        }
    }

    fn adopt(&mut self, order: OrderId, settings: Settings) {
        self.reloads.edition += 1;
        self.reloads.due = Some((order, true));
        self.reloads.last = self.reloads.trial.take();
        self.reloads.retire_max = self.reloads.retire_max.max(self.settings.retire_max);
        self.settings = settings;
        self.size.resize();
    }

    /// False, if the order was about something else.
    pub(super) fn judge_reload_reply(
        &mut self,
        order: OrderId,
        reply: &Reply,
    ) -> Result<bool, crate::violation::Violation> {
        if !self.reloads.knows(order) {
            return Ok(false);
        }
        let due = self.reloads.due.take_if(|(due, _)| *due == order);
        let other = self.reloads.others.iter().position(|other| *other == order);
        let fits = match reply {
            Reply::Reloaded { edition } => {
                due == Some((order, true)) && *edition == self.reloads.edition
            }
            Reply::ReloadFailed { .. } => due == Some((order, false)),
            Reply::ReloadUnderway => other.is_some() && self.reloads.under_way(),
            Reply::ShuttingDown => self.shutdown.is_some(),
            _ => false,
        };
        require!(fits, "a reload ends as its first worker does", "{reply:?}: {:?}", self.reloads);
        if let Some(at) = other {
            self.reloads.others.swap_remove(at);
        } else if due.is_none() {
            self.reloads.under_way = None;
        }
        Ok(true)
    }

    /// Between two events: whoever proved itself has taken over.
    pub(super) fn check_reload(&self) -> Verdict {
        let trial = self.reloads.trial.and_then(|trial| self.processes.of(trial));
        let proven = trial.filter(|row| self.phases.serves(row.id));
        require!(
            proven.is_none() && self.reloads.due.is_none(),
            "a reload ends as its first worker does",
            "{proven:?}: {:?}",
            self.reloads
        );
        Ok(())
    }

    pub(super) fn expect_one_kind(&self) -> Verdict {
        require!(
            !self.reloads.under_way(),
            "every reload ends",
            "{:?} on trial {:?}",
            self.reloads.under_way.as_ref().map(|(order, _)| order),
            self.reloads.trial
        );
        let older = |row: &&Row| row.edition != self.reloads.edition;
        let older = self.processes.rows().find(older);
        require!(
            older.is_none(),
            "in the end all are of the current kind",
            "edition {}: {older:?}",
            self.reloads.edition
        );
        Ok(())
    }
}
