//! What an operator's hand on single workers may take, and how long jobs wait for several of them.

use std::time::Duration;

use super::pool::SIZE_MAX;
use super::section::Section;
use super::{HOUR, MINUTE, SECOND};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Supervision {
    /// Workers made by order, beside the pool's own.
    pub dedicated_max: u32,
    /// An order that has not taken effect after this terminates its worker.
    pub timeout: Duration,
    /// Who has waited this long for several workers gets every one that comes free.
    pub gang_patience: Duration,
}

impl Default for Supervision {
    fn default() -> Self {
        Self { dedicated_max: 10, timeout: 30 * SECOND, gang_patience: 5 * SECOND }
    }
}

impl Supervision {
    pub(super) fn read(section: &Section<'_>) -> Self {
        let defaults = Self::default();
        Self {
            dedicated_max: section
                .key("dedicated_max", "workers made by order, beside `max`; 0: none")
                .count(defaults.dedicated_max, 0..=SIZE_MAX),
            timeout: section
                .key("supervisor_timeout", "how long an order to a worker may take before it is terminated")
                .duration(defaults.timeout, SECOND..=HOUR),
            gang_patience: section
                .key("gang_patience", "how long one waits for several workers before those that come free are kept for it")
                .duration(defaults.gang_patience, Duration::ZERO..=10 * MINUTE),
        }
    }
}
