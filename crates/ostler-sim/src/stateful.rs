//! What a world asks beyond plain calls: sessions and keys, a pool that breathes, workers that are
//! replaced in peace, and those who reload, pause and resize. Drawn apart from the rest, so that
//! the worlds without any of it stay as they are.

use std::time::Duration;

use ostler_core::{Affinity, Evict, Keyed, Settings, Strategy};

use crate::prng::Prng;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Resident bytes beyond which a process is replaced, and killed.
pub const MEMORY: (u64, u64) = (1_600, 1_850);
/// The most that any process is ever measured to have.
pub const MEMORY_MAX: u64 = 2_000;

#[derive(Debug, Clone, Default)]
pub struct Stateful {
    /// Sessions at a time, and the share of calls that belong to one.
    pub sessions: u32,
    pub bonded: f64,
    pub affinities: Vec<Affinity>,
    /// Keys at a time.
    pub keys: u32,
    /// Share of processes that hand over what they keep of a session.
    pub hooks: f64,
    pub saving: Saving,
    /// Mean time between two deeds, and which there are.
    pub deed_gap: Duration,
    pub deeds: Vec<Deed>,
    /// Share of reloads whose first process comes to nothing.
    pub bad_reloads: f64,
}

/// How a process answers when it is asked to hand over a session.
#[derive(Debug, Clone, Default)]
pub struct Saving {
    pub takes: Duration,
    pub refuses: f64,
    pub never_answers: f64,
    pub dies: f64,
}

/// What people and machines do to a pool as a whole, and to its sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    Scale,
    RecyclePool,
    PausePool,
    DrainPool,
    Bind,
    Unbind,
    EndSession,
    EndKey,
    Reload,
    MeasureMemory,
    Pressure,
}

const DEEDS: [Deed; 11] = [
    Deed::Scale,
    Deed::RecyclePool,
    Deed::PausePool,
    Deed::DrainPool,
    Deed::Bind,
    Deed::Unbind,
    Deed::EndSession,
    Deed::EndKey,
    Deed::Reload,
    Deed::MeasureMemory,
    Deed::Pressure,
];

impl Stateful {
    /// What this world has of it, with the settings that go with it.
    pub fn draw(prng: &mut Prng, settings: &mut Settings) -> Self {
        settings.sweep = prng.span(ms(20), ms(1_000));
        if prng.chance(0.35) {
            return Stateful::default();
        }
        settings.affinity_ttl = prng.span(ms(5), ms(2_000));
        settings.save_timeout = prng.span(ms(2), ms(100));
        settings.retire_max = prng.between(1, 2);
        breathe(prng, settings);
        retire(prng, settings);
        let keyed = prng.chance(0.25);
        if keyed {
            give_keys(prng, settings);
        }
        let sessions = if prng.chance(0.7) { prng.between(1, 2 * settings.max + 2) } else { 0 };
        let keys = settings.max + prng.between(0, settings.max + 1);
        Stateful {
            sessions,
            bonded: if sessions > 0 { [0.2, 0.7, 1.0][prng.below(3) as usize] } else { 0.0 },
            affinities: affinities(prng),
            keys: if keyed { keys } else { 0 },
            hooks: [0.0, 0.5, 1.0][prng.below(3) as usize],
            saving: saving(prng),
            deed_gap: prng.span(ms(3), ms(150)),
            deeds: deeds(prng, sessions > 0, keyed),
            bad_reloads: [0.0, 0.3, 0.8][prng.below(3) as usize],
        }
    }

    /// Nobody does anything to the pool any more, and every process hands over what it should.
    pub fn heal(&mut self) {
        self.deeds.clear();
        self.saving = Saving { takes: ms(1), ..Saving::default() };
    }
}

fn breathe(prng: &mut Prng, settings: &mut Settings) {
    if prng.chance(0.5) {
        settings.min = if prng.chance(0.4) { 0 } else { prng.between(0, settings.max) };
    }
    settings.scale_up_after = prng.span(ms(1), ms(50));
    settings.idle_ttl = prng.chance(0.6).then(|| prng.span(ms(20), ms(500)));
}

fn retire(prng: &mut Prng, settings: &mut Settings) {
    settings.ttl = prng.chance(0.25).then(|| prng.span(ms(50), ms(1_000)));
    settings.ttl_jitter = if prng.chance(0.5) { 0.3 } else { 0.0 };
    settings.max_requests = prng.chance(0.25).then(|| u64::from(prng.between(1, 50)));
    if prng.chance(0.3) {
        settings.max_memory = Some(MEMORY.0);
        settings.max_memory_hard = prng.chance(0.5).then_some(MEMORY.1);
    }
}

fn give_keys(prng: &mut Prng, settings: &mut Settings) {
    settings.max = settings.max.min(5);
    settings.min = 0;
    settings.keyed = Some(Keyed {
        evict: [Evict::Lru, Evict::Oldest, Evict::LeastUsed][prng.below(3) as usize],
        evict_min_age: if prng.chance(0.3) { Duration::ZERO } else { prng.span(ms(1), ms(100)) },
    });
}

fn affinities(prng: &mut Prng) -> Vec<Affinity> {
    match prng.below(5) {
        0 => vec![Affinity::Hint],
        1 => vec![Affinity::StrictQueue],
        2 => vec![Affinity::StrictFailFast],
        3 => vec![Affinity::Hint, Affinity::StrictQueue],
        _ => vec![Affinity::Hint, Affinity::StrictQueue, Affinity::StrictFailFast],
    }
}

fn saving(prng: &mut Prng) -> Saving {
    let takes = prng.span(ms(1), ms(60));
    let mut some = |share: f64| if prng.chance(0.3) { share } else { 0.0 };
    Saving { takes, refuses: some(0.3), never_answers: some(0.3), dies: some(0.2) }
}

fn deeds(prng: &mut Prng, sessions: bool, keyed: bool) -> Vec<Deed> {
    let fits = |deed: &Deed| match deed {
        Deed::Bind | Deed::Unbind | Deed::EndSession => sessions,
        Deed::EndKey => keyed,
        _ => true,
    };
    DEEDS.into_iter().filter(fits).filter(|_| prng.chance(0.35)).collect()
}

/// The settings of the next kind of worker.
pub fn reloaded(prng: &mut Prng, settings: &Settings) -> Settings {
    let mut next = settings.clone();
    (next.min, next.max) = sizes(prng, settings);
    if next.keyed.is_none() {
        next.strategy = [Strategy::LeastLoaded, Strategy::RoundRobin, Strategy::Lru]
            [prng.below(3) as usize]
            .clone();
    }
    next.prefetch = prng.between(0, 2);
    next.retire_max = prng.between(1, 2);
    next.max_requests = prng.chance(0.3).then(|| u64::from(prng.between(1, 50)));
    next
}

/// Another least and most.
pub fn sizes(prng: &mut Prng, settings: &Settings) -> (u32, u32) {
    let max = prng.between(1, if settings.keyed.is_some() { 5 } else { 8 });
    let fixed = settings.min == settings.max && prng.chance(0.5);
    (if fixed { max } else { prng.between(0, max) }, max)
}
