//! What kind of world a seed means: the pool's settings, how much is asked of it, and which
//! faults are about. Each fault is present in only some worlds, because a world full of one
//! fault hides what another would show.

use std::sync::Arc;
use std::time::Duration;

use ostler_core::{Admission, Backoff, CapacityFrom, Checkup, Heartbeat, Settings, Strategy};

use crate::own::Evenly;
use crate::prng::Prng;
use crate::stateful::Stateful;

const fn us(n: u64) -> Duration {
    Duration::from_micros(n)
}

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[derive(Debug, Clone)]
pub struct Profile {
    pub settings: Settings,
    pub load: Load,
    pub people: People,
    pub store: StoreFaults,
    pub faults: Faults,
    pub state: Stateful,
}

/// What callers ask.
#[derive(Debug, Clone)]
pub struct Load {
    /// Mean time between two arrivals.
    pub gap: Duration,
    /// Share of arrivals that bring many at once, and how many.
    pub bursts: f64,
    pub burst_max: u32,
    /// Mean time that a worker needs for one request.
    pub service: Duration,
    pub deadline: (Duration, Duration),
    pub owners: u32,
    pub priorities: bool,
    pub idempotent: f64,
    pub streams: f64,
    /// Share of callers that take their request back.
    pub cancels: f64,
    /// Share addressed to one worker.
    pub to_worker: f64,
    /// Different requests there are; none: no two are the same.
    pub kinds: u32,
    /// Share of executions that make a call of their own and wait for it.
    pub nested: f64,
}

/// What supervisors, lease holders and operators do.
#[derive(Debug, Clone)]
pub struct People {
    /// Mean time between two orders.
    pub order_gap: Option<Duration>,
    pub lease_gap: Option<Duration>,
    pub lease_ttl: (Duration, Duration),
    pub shutdown: Ending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Heal, and stay up.
    Stay,
    /// Heal, then shut down.
    ShutdownHealed,
    /// Shut down in the middle of it all.
    ShutdownFaulty,
}

#[derive(Debug, Clone)]
pub struct StoreFaults {
    pub latency: Duration,
    pub refuses: f64,
    /// Says that it does not know, whether or not it did the work.
    pub doubts: f64,
}

#[derive(Debug, Clone, Default)]
pub struct Faults {
    // One chance per process.
    pub spawn_exhausted: f64,
    pub spawn_broken: f64,
    pub never_ready: f64,
    pub dies_starting: f64,
    pub ignores_cancel: f64,
    pub ignores_term: f64,
    pub ignores_shutdown: f64,
    // One chance per execution.
    pub never_ends: f64,
    pub dies_running: f64,
    pub loses_answer: f64,
    pub dies_after_answer: f64,
    /// Share of the kinds that bring down whatever process runs them.
    pub poison: f64,
    pub fails: f64,
    pub fails_retryable: f64,
    pub gives_up: f64,
    pub answers_twice: f64,
    // One chance per check.
    pub falls_unwell: f64,
    pub falls_deaf: f64,
    // One chance per assignment.
    pub not_sent: f64,
    /// Mean time between two pieces of mischief, and which there are.
    pub mischief_gap: Duration,
    pub mischief: Vec<Mischief>,
}

/// Faults that come out of nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mischief {
    KillOne,
    KillAll,
    StopOne,
    ContinueOne,
    CloseStream,
    Violate,
    AskRetire,
    /// It says that it cannot be trusted any more.
    Taint,
    /// The kernel kills one for want of memory.
    OutOfMemory,
    /// A message that no longer, or never, means anything.
    Stale,
    /// The event loop does nothing for a while.
    Stall,
    StoreOutage,
}

const MISCHIEF: [Mischief; 12] = [
    Mischief::KillOne,
    Mischief::KillAll,
    Mischief::StopOne,
    Mischief::ContinueOne,
    Mischief::CloseStream,
    Mischief::Violate,
    Mischief::AskRetire,
    Mischief::Taint,
    Mischief::OutOfMemory,
    Mischief::Stale,
    Mischief::Stall,
    Mischief::StoreOutage,
];

impl Profile {
    pub fn draw(seed: u64) -> Self {
        let mut prng = Prng::new(seed ^ 0xa076_1d64_78bd_642f);
        let mut settings = settings(&mut prng);
        let state = Stateful::draw(&mut Prng::new(seed ^ 0xe703_7ed1_a0b4_28db), &mut settings);
        let load = load(&mut prng, &settings);
        let calm = prng.chance(0.1);
        let faults = if calm { Faults::default() } else { faults(&mut prng) };
        let store = if calm { StoreFaults::none() } else { store(&mut prng) };
        Profile { load, people: people(&mut prng), store, faults, state, settings }
    }

    /// A shutdown is bounded by the pool's own waits, not by a store that does not answer.
    pub fn heal_store(&mut self) {
        self.store = StoreFaults::none();
        self.faults.mischief.retain(|mischief| *mischief != Mischief::StoreOutage);
    }

    /// The same world with nothing wrong in it any more.
    pub fn heal(&mut self) {
        self.faults = Faults::default();
        self.state.heal();
        self.store = StoreFaults::none();
        self.people.order_gap = None;
        self.people.lease_gap = None;
        self.load.cancels = 0.0;
        self.load.kinds = 0;
        self.load.nested = 0.0;
        self.load.deadline = (ms(500), ms(1_000));
    }
}

impl StoreFaults {
    fn none() -> Self {
        StoreFaults { latency: us(200), refuses: 0.0, doubts: 0.0 }
    }
}

fn settings(prng: &mut Prng) -> Settings {
    let size = if prng.chance(0.5) { prng.between(1, 4) } else { prng.between(1, 16) };
    let interval = prng.span(ms(15), ms(200));
    let heartbeat = prng.chance(0.6).then(|| Heartbeat {
        interval,
        timeout: interval * prng.between(2, 5),
        misses: prng.between(1, 3),
        initial_delay: if prng.chance(0.5) { Duration::ZERO } else { ms(50) },
        independent: prng.chance(0.35),
    });
    let checkup = prng.chance(0.5).then(|| Checkup {
        interval: prng.span(ms(10), ms(300)),
        timeout: prng.span(ms(5), ms(100)),
        again: prng.span(ms(2), ms(100)),
        failures: prng.between(1, 3),
    });
    Settings {
        min: size,
        max: size,
        keyed: None,
        scale_up_after: ms(50),
        idle_ttl: None,
        ttl: None,
        ttl_jitter: 0.1,
        max_requests: None,
        max_memory: None,
        max_memory_hard: None,
        retire_max: 1,
        affinity_ttl: ms(300_000),
        save_timeout: ms(5_000),
        sweep: ms(100),
        capacity: if prng.chance(0.6) { 1 } else { prng.between(2, 4) },
        capacity_from: capacity_from(prng),
        dedicated_max: prng.between(0, 4),
        strategy: strategy(prng),
        admission: if prng.chance(0.3) { Admission::Deadline } else { Admission::Queue },
        queue_max: if prng.chance(0.1) { 0 } else { prng.between(1, 80) },
        queue_timeout: prng.span(ms(5), ms(5_000)),
        prefetch: prng.between(0, 2),
        prefetch_below: prng.span(us(100), ms(100)),
        prefetch_patience: prng.span(us(500), ms(20)),
        start_timeout: prng.span(ms(60), ms(500)),
        start_batch: prng.between(1, size),
        start_batch_delay: if prng.chance(0.7) { Duration::ZERO } else { ms(5) },
        cancel_grace: prng.span(ms(5), ms(200)),
        stop_grace: prng.span(ms(5), ms(100)),
        drain_timeout: prng.span(ms(20), ms(1_000)),
        supervisor_timeout: prng.span(ms(100), ms(2_000)),
        heartbeat,
        checkup,
        hang_timeout: prng.chance(0.3).then(|| prng.span(ms(500), ms(2_000))),
        backoff: Backoff {
            first: prng.span(ms(2), ms(50)),
            max: prng.span(ms(50), ms(300)),
            jitter: if prng.chance(0.5) { 0.2 } else { 0.0 },
        },
        restart_max: if prng.chance(0.3) { prng.between(1, 5) } else { (2 * size).max(5) * 4 },
        restart_period: prng.span(ms(200), ms(5_000)),
        restart_cooldown: prng.span(ms(50), ms(1_000)),
        attempts_max: prng.between(1, 4),
        retry_delay: prng.span(ms(1), ms(50)),
        quarantine: if prng.chance(0.3) { Duration::ZERO } else { prng.span(ms(20), ms(5_000)) },
        gang_patience: prng.span(ms(5), ms(500)),
        leases_max: prng.between(1, 20),
        record_retry: prng.span(ms(2), ms(50)),
        seed: prng.next(),
    }
}

fn capacity_from(prng: &mut Prng) -> CapacityFrom {
    [CapacityFrom::Pool, CapacityFrom::Worker, CapacityFrom::Min][prng.below(3) as usize]
}

fn strategy(prng: &mut Prng) -> Strategy {
    match prng.below(6) {
        0..=2 => Strategy::LeastLoaded,
        3 => Strategy::RoundRobin,
        4 => Strategy::Lru,
        _ => Strategy::Own(Arc::new(Evenly)),
    }
}

fn load(prng: &mut Prng, settings: &Settings) -> Load {
    let service = prng.span(us(100), ms(20));
    let places = f64::from(settings.max * settings.capacity);
    // From next to nothing to three times what the pool can carry.
    let pressure = [0.01, 0.1, 0.5, 0.9, 1.5, 3.0][prng.below(6) as usize];
    Load {
        gap: service.mul_f64(1.0 / (places * pressure)).max(us(1)),
        bursts: if prng.chance(0.5) { 0.02 } else { 0.0 },
        burst_max: 2 * settings.queue_max + 10,
        service,
        deadline: if prng.chance(0.5) { (ms(1), ms(500)) } else { (ms(200), ms(3_000)) },
        owners: if prng.chance(0.3) { 1 } else { prng.between(2, 5) },
        priorities: prng.chance(0.5),
        idempotent: [0.0, 0.5, 1.0][prng.below(3) as usize],
        streams: if prng.chance(0.5) { 0.2 } else { 0.0 },
        cancels: if prng.chance(0.6) { 0.1 } else { 0.0 },
        to_worker: if prng.chance(0.5) { 0.1 } else { 0.0 },
        kinds: if prng.chance(0.4) { 0 } else { prng.between(3, 300) },
        nested: if prng.chance(0.3) { [0.1, 0.5][prng.below(2) as usize] } else { 0.0 },
    }
}

fn people(prng: &mut Prng) -> People {
    People {
        order_gap: prng.chance(0.6).then(|| prng.span(ms(5), ms(200))),
        lease_gap: prng.chance(0.6).then(|| prng.span(ms(2), ms(100))),
        lease_ttl: (ms(1), ms(500)),
        shutdown: match prng.below(4) {
            0 => Ending::Stay,
            1 | 2 => Ending::ShutdownHealed,
            _ => Ending::ShutdownFaulty,
        },
    }
}

fn store(prng: &mut Prng) -> StoreFaults {
    StoreFaults {
        latency: prng.span(us(50), ms(20)),
        refuses: if prng.chance(0.4) { 0.1 } else { 0.0 },
        doubts: if prng.chance(0.4) { 0.2 } else { 0.0 },
    }
}

fn faults(prng: &mut Prng) -> Faults {
    let mut some = |share: f64| if prng.chance(0.3) { share } else { 0.0 };
    let mut faults = Faults {
        spawn_exhausted: some(0.1),
        spawn_broken: some(0.1),
        never_ready: some(0.1),
        dies_starting: some(0.1),
        ignores_cancel: some(0.3),
        ignores_term: some(0.5),
        ignores_shutdown: some(0.5),
        never_ends: some(0.01),
        dies_running: some(0.02),
        loses_answer: some(0.02),
        dies_after_answer: some(0.02),
        poison: some(0.05),
        falls_unwell: some(0.1),
        falls_deaf: some(0.1),
        fails: some(0.1),
        fails_retryable: some(0.2),
        gives_up: some(0.02),
        answers_twice: some(0.05),
        not_sent: some(0.03),
        mischief_gap: Duration::ZERO,
        mischief: Vec::new(),
    };
    faults.mischief_gap = prng.span(ms(2), ms(200));
    faults.mischief = MISCHIEF.into_iter().filter(|_| prng.chance(0.4)).collect();
    faults
}
