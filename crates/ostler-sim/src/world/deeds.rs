//! What is done to the pool as a whole: by people who resize, hold, empty, recycle and reload it,
//! and by a machine that runs short of memory.

use std::time::Duration;

use ostler_core::{Action, Event, Notice, ProcessId, SpawnFailure, WorkerId};

use super::process::{Life, Step};
use super::{Happening, World};
use crate::stateful::{Deed, MEMORY_MAX, reloaded, sizes};
use crate::violation::Verdict;

/// How the first process of a new kind is going to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trial {
    Proves,
    Dies,
    NeverReady,
    Refused(SpawnFailure),
}

impl World {
    pub(super) fn plan_deed(&mut self) {
        if !self.profile.state.deeds.is_empty() {
            let wait = self.prng.wait(self.profile.state.deed_gap);
            self.plan_in(wait, Happening::Deed);
        }
    }

    pub(super) fn do_deed(&mut self) -> Verdict {
        let Some(deed) = self.prng.pick(&self.profile.state.deeds) else { return Ok(()) };
        self.plan_deed();
        if self.ledger.shuts_down() {
            return Ok(());
        }
        match deed {
            Deed::Scale => self.scale(),
            Deed::RecyclePool => self.seldom(Action::RecyclePool),
            Deed::PausePool => self.hold(Action::PausePool),
            Deed::DrainPool => self.hold(Action::DrainPool),
            Deed::Bind => {
                let session = self.some_session().expect("only a world with sessions binds");
                let worker = self.some_worker().unwrap_or(WorkerId(9));
                self.order(Action::Bind { session, worker })
            }
            Deed::Unbind => {
                let session = self.some_session().expect("only a world with sessions unbinds");
                self.order(Action::Unbind(session))
            }
            Deed::EndSession => self.end_session(),
            Deed::EndKey => self.end_key(),
            Deed::Reload => self.reload(),
            Deed::MeasureMemory => self.measure_memory(),
            Deed::Pressure => {
                let high = self.prng.chance(0.5);
                self.deliver(Event::PressureChanged { high })
            }
        }
    }

    fn order(&mut self, action: Action) -> Verdict {
        let order = self.order_id();
        self.deliver(Event::Ordered { order, action })
    }

    /// A pool that is replaced all the time shows nothing else.
    fn seldom(&mut self, action: Action) -> Verdict {
        if self.prng.chance(0.2) { self.order(action) } else { Ok(()) }
    }

    /// For a while.
    fn hold(&mut self, action: Action) -> Verdict {
        let wait = self.prng.span(Duration::from_millis(1), Duration::from_millis(200));
        self.plan_in(wait, Happening::ResumePool);
        self.seldom(action)
    }

    pub(super) fn resume_pool(&mut self) -> Verdict {
        self.order(Action::ResumePool)
    }

    fn scale(&mut self) -> Verdict {
        let (min, max) = sizes(&mut self.prng, &self.profile.settings);
        (self.profile.settings.min, self.profile.settings.max) = (min, max);
        self.order(Action::Scale { min, max })
    }

    fn reload(&mut self) -> Verdict {
        let bad = self.prng.chance(self.profile.state.bad_reloads);
        let kinds = [
            Trial::Dies,
            Trial::NeverReady,
            Trial::Refused(SpawnFailure::Broken),
            Trial::Refused(SpawnFailure::Exhausted),
        ];
        let trial = if bad { kinds[self.prng.below(4) as usize] } else { Trial::Proves };
        let settings = reloaded(&mut self.prng, &self.profile.settings);
        let order = self.order_id();
        if self.reloading.is_none() {
            self.reloading = Some((trial, settings.clone()));
        }
        self.deliver(Event::ReloadOrdered { order, settings: Box::new(settings) })
    }

    /// The first process of a new kind is spawned.
    pub(super) fn spawn_trial(&mut self, id: ProcessId) {
        let wait = self.prng.span(Duration::from_millis(1), Duration::from_millis(50));
        match self.reloading.as_ref().map_or(Trial::Proves, |(trial, _)| *trial) {
            Trial::Refused(cause) => {
                let failed = Event::SpawnFailed { process: id, cause };
                self.plan_in(wait, Happening::Report(failed));
            }
            Trial::Proves => self.come_up(id, Some(Step::BecomeReady)),
            Trial::Dies => self.come_up(id, Some(Step::Die)),
            Trial::NeverReady => self.come_up(id, None),
        }
    }

    pub(super) fn note_reload(&mut self, notice: &Notice) {
        match notice {
            Notice::Reloaded { edition } => {
                self.edition = *edition;
                if let Some((_, settings)) = self.reloading.take() {
                    self.profile.settings = settings;
                }
            }
            Notice::ReloadFailed { .. } => self.reloading = None,
            _ => {}
        }
    }

    fn measure_memory(&mut self) -> Verdict {
        let up = self.processes.values().filter(|process| process.life != Life::Dead);
        let mut up: Vec<ProcessId> = up.map(|process| process.id).collect();
        up.sort();
        let Some(process) = self.prng.pick(&up) else { return Ok(()) };
        let bytes = self.prng.below(MEMORY_MAX);
        self.deliver(Event::MemoryMeasured { process, bytes })
    }
}
