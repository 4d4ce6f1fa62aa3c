//! What a pool's owner decided. Every bound is here, finite by default.

use std::time::Duration;

use crate::strategy::Strategy;

#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Workers that the pool keeps, whatever happens.
    pub min: u32,
    /// Workers that it may have. Those above `min` come when requests wait and go when they idle.
    pub max: u32,
    /// One worker for each key, made on demand, instead of workers that serve anybody.
    pub keyed: Option<Keyed>,
    /// How long a request waits before another worker is made for it.
    pub scale_up_after: Duration,
    /// A worker above `min` that was idle this long leaves; never, if unset.
    pub idle_ttl: Option<Duration>,

    /// How long a process serves before it is replaced.
    pub ttl: Option<Duration>,
    /// Share of `ttl` that is random, to either side, so that those who came together do not go
    /// together.
    pub ttl_jitter: f64,
    /// Requests after which a process is replaced, however they ended.
    pub max_requests: Option<u64>,
    /// Resident bytes of a process and its descendants, beyond which it is replaced.
    pub max_memory: Option<u64>,
    /// And beyond which it is killed.
    pub max_memory_hard: Option<u64>,
    /// Workers that are replaced at a time.
    pub retire_max: u32,

    /// A session that was not heard of for this long has no worker any more, unless it is strict.
    pub affinity_ttl: Duration,
    /// How long a worker may take to hand over the state of one session.
    pub save_timeout: Duration,

    /// Requests that one process works on at a time.
    pub capacity: u32,
    pub capacity_from: CapacityFrom,
    /// Workers made by order, beside `max`.
    pub dedicated_max: u32,

    /// Which of the open workers is chosen.
    pub strategy: Strategy,

    pub admission: Admission,
    pub queue_max: u32,
    pub queue_timeout: Duration,
    /// Requests that may lie in a worker's stream behind those it works on.
    pub prefetch: u32,
    /// Prefetch only while calls are this short on average.
    pub prefetch_below: Duration,
    /// A prefetched request whose predecessor runs longer than this moves to an idle worker.
    pub prefetch_patience: Duration,

    pub start_timeout: Duration,
    /// Processes that start at the same time.
    pub start_batch: u32,
    pub start_batch_delay: Duration,

    pub cancel_grace: Duration,
    pub stop_grace: Duration,
    pub drain_timeout: Duration,
    /// How long an ordered start or completion may take before the worker is terminated.
    pub supervisor_timeout: Duration,

    pub heartbeat: Option<Heartbeat>,
    /// A worker with load that is silent this long is killed; never, if unset.
    pub hang_timeout: Option<Duration>,

    pub checkup: Option<Checkup>,

    pub backoff: Backoff,
    /// Unplanned restarts within `restart_period` beyond which the breaker opens.
    pub restart_max: u32,
    pub restart_period: Duration,
    pub restart_cooldown: Duration,

    /// Executions of one idempotent request, the first included.
    pub attempts_max: u32,
    /// Wait before the second attempt after a retryable error; doubled for each further one.
    pub retry_delay: Duration,

    /// How long a request is refused that killed two processes; zero for never.
    pub quarantine: Duration,

    /// After this long a waiting lease gets every place that comes free.
    pub gang_patience: Duration,
    pub leases_max: u32,

    /// How often the pool looks whether it agrees with itself.
    pub sweep: Duration,
    /// Wait before a change that the store did not confirm is sent to it again.
    pub record_retry: Duration,
    pub seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Heartbeat {
    pub interval: Duration,
    /// Silence that counts as the first miss; each further interval is one more.
    pub timeout: Duration,
    pub misses: u32,
    pub initial_delay: Duration,
    /// Misses are told of and nothing else comes of them.
    pub independent: bool,
}

/// A pool in which each key has a worker of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keyed {
    pub evict: Evict,
    /// A process younger than this is not evicted.
    pub evict_min_age: Duration,
}

/// Who goes when a new key needs a place: only ever one that has nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Evict {
    /// The one that has been idle longest.
    #[default]
    Lru,
    /// The one that was made first.
    Oldest,
    /// The one that served the fewest requests.
    LeastUsed,
}

/// Active checks of workers with nothing to do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Checkup {
    pub interval: Duration,
    pub timeout: Duration,
    /// The wait before the next check after one that failed.
    pub again: Duration,
    /// Failures in a row after which the process is replaced.
    pub failures: u32,
}

/// Whose word on a worker's capacity counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CapacityFrom {
    Pool,
    Worker,
    /// The smaller of both.
    #[default]
    Min,
}

/// Who is let into the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Admission {
    /// Everybody, as long as there is room.
    #[default]
    Queue,
    /// Only those who would be done before their deadline, as far as can be told.
    Deadline,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    pub first: Duration,
    pub max: Duration,
    /// Share of the delay that is random, to either side.
    pub jitter: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings::of_size(2)
    }
}

impl Settings {
    pub fn of_size(size: u32) -> Self {
        Settings {
            min: size,
            max: size,
            keyed: None,
            scale_up_after: Duration::from_millis(50),
            idle_ttl: Some(Duration::from_secs(300)),
            ttl: None,
            ttl_jitter: 0.1,
            max_requests: None,
            max_memory: None,
            max_memory_hard: None,
            retire_max: 1,
            affinity_ttl: Duration::from_secs(300),
            save_timeout: Duration::from_secs(5),
            capacity: 1,
            capacity_from: CapacityFrom::Min,
            dedicated_max: 10,
            strategy: Strategy::LeastLoaded,
            admission: Admission::Queue,
            queue_max: 1_000,
            queue_timeout: Duration::from_secs(10),
            prefetch: 1,
            prefetch_below: Duration::from_millis(2),
            prefetch_patience: Duration::from_millis(5),
            start_timeout: Duration::from_secs(30),
            start_batch: size.max(1),
            start_batch_delay: Duration::ZERO,
            cancel_grace: Duration::from_secs(5),
            stop_grace: Duration::from_secs(2),
            drain_timeout: Duration::from_secs(30),
            supervisor_timeout: Duration::from_secs(30),
            heartbeat: Some(Heartbeat {
                interval: Duration::from_secs(2),
                timeout: Duration::from_secs(10),
                misses: 3,
                initial_delay: Duration::ZERO,
                independent: false,
            }),
            hang_timeout: None,
            checkup: Some(Checkup {
                interval: Duration::from_secs(30),
                timeout: Duration::from_secs(5),
                again: Duration::from_secs(5),
                failures: 3,
            }),
            backoff: Backoff {
                first: Duration::from_millis(200),
                max: Duration::from_secs(30),
                jitter: 0.2,
            },
            restart_max: (2 * size).max(5),
            restart_period: Duration::from_secs(30),
            restart_cooldown: Duration::from_secs(30),
            attempts_max: 3,
            retry_delay: Duration::from_millis(50),
            quarantine: Duration::from_secs(60),
            gang_patience: Duration::from_secs(5),
            leases_max: 1_000,
            sweep: Duration::from_secs(60),
            record_retry: Duration::from_millis(200),
            seed: 0,
        }
    }
}
