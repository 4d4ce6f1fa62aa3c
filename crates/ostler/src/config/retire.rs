//! When a worker has served long enough and a fresh one takes its place.

use std::time::Duration;

use super::pool::SIZE_MAX;
use super::section::Section;
use super::{DAY, GIB, MIB, MILLISECOND, MINUTE, SECOND};

/// The most that a limit of memory may be.
const MEMORY_CEILING: u64 = 1024 * GIB;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retire {
    /// Never, if `None`.
    pub ttl: Option<Duration>,
    /// Share of `ttl` that is random, to either side, so that workers do not all leave at once.
    pub ttl_jitter: f64,
    pub max_requests: Option<u64>,
    /// Beyond this a worker leaves after its request.
    pub max_memory: Option<u64>,
    /// Beyond this it is killed.
    pub max_memory_hard: Option<u64>,
    /// Workers that are replaced at a time.
    pub max_at_once: u32,
    /// How long a worker that leaves may take to save one session.
    pub save_timeout: Duration,
}

impl Default for Retire {
    fn default() -> Self {
        Self {
            ttl: None,
            ttl_jitter: 0.1,
            max_requests: None,
            max_memory: None,
            max_memory_hard: None,
            max_at_once: 1,
            save_timeout: 5 * SECOND,
        }
    }
}

impl Retire {
    pub(super) fn read(section: &Section<'_>) -> Self {
        let defaults = Self::default();
        let retire = Self {
            ttl: section
                .key("ttl", "age at which a worker is replaced")
                .usually("none")
                .duration_if_any(100 * MILLISECOND..=30 * DAY),
            ttl_jitter: section
                .key("ttl_jitter", "share of `ttl` that is random, to either side")
                .share(defaults.ttl_jitter, 0.0..=0.5),
            max_requests: section
                .key("max_requests", "requests after which a worker is replaced")
                .usually("none")
                .count_if_any(1..=1_000_000_000)
                .map(u64::from),
            max_memory: section
                .key(
                    "max_memory",
                    "memory of a worker and its descendants beyond which it is replaced",
                )
                .usually("none")
                .size_if_any(MIB..=MEMORY_CEILING),
            max_memory_hard: section
                .key("max_memory_hard", "memory beyond which it is killed, whatever it does")
                .usually("none")
                .size_if_any(MIB..=MEMORY_CEILING),
            max_at_once: section
                .key("retire_max", "workers that are replaced at a time")
                .count(defaults.max_at_once, 1..=SIZE_MAX),
            save_timeout: section
                .key("save_timeout", "how long a worker that leaves may take to save a session")
                .duration(defaults.save_timeout, 10 * MILLISECOND..=10 * MINUTE),
        };
        retire.agree(section);
        retire
    }

    fn agree(&self, section: &Section<'_>) {
        if section.has("ttl_jitter") && !section.has("ttl") {
            section.blame_key(
                "ttl_jitter",
                "`ttl_jitter` has no meaning without `ttl`",
                "add a `ttl` such as \"1h\", or remove `ttl_jitter`",
            );
        }
        if let (Some(soft), Some(hard)) = (self.max_memory, self.max_memory_hard)
            && hard < soft
        {
            section.blame_key(
                "max_memory_hard",
                "`max_memory_hard` is less than `max_memory`",
                "raise it, or lower `max_memory`",
            );
        }
    }
}
