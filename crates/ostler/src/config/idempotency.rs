//! `[idempotency]`: how long an answer is kept under the key that its request came with.

use std::time::Duration;

use super::section::Section;
use super::{DAY, HOUR, SECOND};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Idempotency {
    pub ttl: Duration,
    /// Keys at once.
    pub max: u32,
}

impl Default for Idempotency {
    fn default() -> Self {
        Self { ttl: HOUR, max: 1_000_000 }
    }
}

impl Idempotency {
    pub(super) fn read(section: &Section<'_>) -> Self {
        let defaults = Self::default();
        Self {
            ttl: section
                .key("ttl", "how long the same key means the same request")
                .duration(defaults.ttl, SECOND..=365 * DAY),
            max: section
                .key("max", "keys that are kept; beyond that a request with one is refused")
                .count(defaults.max, 1..=100_000_000),
        }
    }
}
