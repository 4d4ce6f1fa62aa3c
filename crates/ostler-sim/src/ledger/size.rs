//! How many workers there are, and how many should be: within the bounds, whatever is ordered,
//! growing only for those who wait, and never below what is wanted.

use ostler_core::{Notice, Settings, Target, Time, WorkerId};

use super::Ledger;
use crate::violation::{Verdict, require};

#[derive(Debug)]
pub(super) struct Size {
    /// How many the pool wants, as it was told.
    pub target: u32,
    /// More than these may not be: what the settings allow, or what is left of a larger pool.
    ceiling: usize,
    pub strained: bool,
    growth_held: bool,
    /// The bounds changed with this event.
    resized: bool,
    /// Since when somebody waits for whom the pool could grow, as far as was looked.
    wanting: Option<Time>,
}

impl Size {
    pub fn new(settings: &Settings) -> Self {
        Size {
            target: settings.min,
            ceiling: 0,
            strained: false,
            growth_held: false,
            resized: false,
            wanting: None,
        }
    }

    pub fn next_event(&mut self) {
        self.resized = false;
    }

    pub fn resize(&mut self) {
        self.resized = true;
    }

    pub fn hear_pressure(&mut self, high: bool) {
        self.strained = high;
        self.growth_held &= high;
    }
}

impl Ledger {
    pub(super) fn hear_scale(&mut self, min: u32, max: u32) {
        self.settings.max = max.max(1);
        self.settings.min = min.min(self.settings.max);
        self.size.resize();
    }

    /// The pool's own workers, also those of which something is left.
    pub(super) fn regulars(&self) -> impl Iterator<Item = WorkerId> + '_ {
        let living = self.workers.alive().filter(|id| self.workers.is_regular(*id));
        let ended = self.processes.rows().map(|row| row.id.worker);
        let ended = ended.filter(|id| self.workers.is_regular(*id) && self.workers.ended(*id));
        living.chain(ended)
    }

    /// Without those who go and are not replaced.
    pub(super) fn staying(&self) -> usize {
        self.regulars().filter(|id| !self.departs(*id)).count()
    }

    /// As many as the pool may have in the long run.
    pub(super) fn allowed(&self) -> usize {
        let keyed = self.settings.keyed.is_some();
        if keyed { self.settings.max as usize } else { self.size.target as usize }
    }

    fn most(&self) -> usize {
        let replaced = self.reloads.retire_max.max(self.settings.retire_max);
        (self.settings.max + replaced) as usize
    }

    /// The first of a new kind comes beside all others.
    fn on_trial(&self) -> usize {
        usize::from(self.reloads.under_way())
    }

    /// Somebody new is made.
    pub(super) fn judge_creation(&mut self) -> Verdict {
        let staying = self.regulars().filter(|id| !self.may_depart(*id)).count();
        let most = self.most().max(self.size.ceiling) + self.on_trial();
        require!(
            staying <= most,
            "sizes stay within their bounds",
            "{staying} workers with the new one, {most} may be"
        );
        Ok(())
    }

    pub(super) fn judge_size_notice(&mut self, now: Time, notice: &Notice) -> Verdict {
        match notice {
            Notice::Scaled { from, to } => self.judge_scaled(now, *from, *to),
            Notice::GrowthHeld => {
                let first = !std::mem::replace(&mut self.size.growth_held, true);
                require!(
                    self.size.strained && first,
                    "that growth is held is told once",
                    "strained: {}, first: {first}",
                    self.size.strained
                );
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn judge_scaled(&mut self, now: Time, from: u32, to: u32) -> Verdict {
        let s = &self.settings;
        let up = to > from;
        let others = self.regulars().count().saturating_sub(usize::from(s.keyed.is_some()));
        require!(
            !up || self.size.resized || !self.size.strained || others == 0,
            "no growth while memory is short",
            "from {from} to {to} with {others} workers"
        );
        if s.keyed.is_some() {
            return Ok(());
        }
        require!(
            from == self.size.target && (s.min..=s.max).contains(&to),
            "sizes stay within their bounds",
            "from {from} to {to}, was {} of {}..{}",
            self.size.target,
            s.min,
            s.max
        );
        require!(
            !up || self.size.resized || from == 0 || self.waited_since(now) >= s.scale_up_after,
            "a pool grows for those who wait",
            "from {from} to {to}, somebody waits for {:?}",
            self.waited_since(now)
        );
        self.size.target = to;
        self.size.wanting = None;
        Ok(())
    }

    /// How long the first who waits for anybody has waited.
    fn waited_since(&self, now: Time) -> std::time::Duration {
        let waiting = self.requests.open().filter(|id| self.requests.waits(*id));
        let waiting = waiting.filter_map(|id| self.requests.get(id));
        let waiting = waiting.filter(|row| row.spec.target == Target::Any);
        let first = waiting.map(|row| row.arrived).chain(self.leases.first_asked()).min();
        first.map_or(std::time::Duration::ZERO, |first| now.since(first))
    }

    /// Between two events: nobody is missing, and what was too much does not come back.
    pub(super) fn check_size(&mut self) -> Verdict {
        let staying = self.staying().saturating_sub(self.on_trial());
        self.size.ceiling = staying.min(self.size.ceiling.max(self.most()));
        if self.breaker_open || self.settings.keyed.is_some() {
            return Ok(());
        }
        let all = self.regulars().count();
        require!(
            all >= self.size.target as usize,
            "nobody is missing",
            "{all} workers of {}",
            self.size.target
        );
        Ok(())
    }

    /// Somebody waits, everybody there is was ready, and more could be: then more will be.
    pub(super) fn check_growth(&mut self, now: Time) -> Verdict {
        let waits = self.requests.line.waits_for_any().is_some();
        let may = waits
            && self.size.target < self.settings.max
            && self.settings.keyed.is_none()
            && !self.size.strained
            && !self.control.paused
            && !self.breaker_open;
        let coming =
            |id: WorkerId| self.processes.of(id).is_none_or(|row| !self.phases.serves(row.id));
        if !may || self.regulars().any(coming) {
            self.size.wanting = None;
            return Ok(());
        }
        let since = *self.size.wanting.get_or_insert(now);
        let first = self.requests.line.waits_for_any().and_then(|id| self.requests.get(id));
        let since = first.map_or(since, |row| since.max(row.arrived));
        require!(
            now.since(since) <= self.settings.scale_up_after,
            "a pool grows for those who wait",
            "{:?} waits, and {} of {} workers are wanted since {since:?}",
            self.requests.line.waits_for_any(),
            self.size.target,
            self.settings.max
        );
        Ok(())
    }
}
