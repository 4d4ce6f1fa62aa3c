//! `[jobs]`: how much durable work there may be, how large, and how long it is remembered.

use std::time::Duration;

use super::section::Section;
use super::server::BODY_CEILING;
use super::{DAY, HOUR, KIB, MIB, MILLISECOND, MINUTE};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jobs {
    /// Jobs without an end.
    pub max: u32,
    pub payload_max: u64,
    /// A job with a larger result fails.
    pub result_max: u64,
    /// Messages and log lines kept of one job.
    pub events_max: u32,
    /// How long a job is kept after its end.
    pub retention: Duration,
    /// For a job that names none; `None`: it may take for ever.
    pub timeout: Option<Duration>,
    pub schedules_max: u32,
}

impl Default for Jobs {
    fn default() -> Self {
        Self {
            max: 1_000_000,
            payload_max: 16 * MIB,
            result_max: 64 * MIB,
            events_max: 10_000,
            retention: 7 * DAY,
            timeout: Some(HOUR),
            schedules_max: 1_000,
        }
    }
}

impl Jobs {
    pub(super) fn read(section: &Section<'_>) -> Self {
        let defaults = Self::default();
        Self {
            max: section
                .key("max", "jobs without an end that there may be")
                .count(defaults.max, 1..=100_000_000),
            payload_max: section
                .key("payload_max", "largest payload of a job")
                .size(defaults.payload_max, KIB..=BODY_CEILING),
            result_max: section
                .key("result_max", "largest result; a job with a larger one fails")
                .size(defaults.result_max, KIB..=BODY_CEILING),
            events_max: section
                .key("events_max", "messages and log lines kept of one job; the rest is counted")
                .count(defaults.events_max, 0..=10_000_000),
            retention: section
                .key("retention", "how long a job is kept after its end, with all that it said")
                .duration(defaults.retention, MINUTE..=3_650 * DAY),
            timeout: timeout(section, defaults.timeout),
            schedules_max: section
                .key("schedules_max", "schedules that there may be")
                .count(defaults.schedules_max, 0..=1_000_000),
        }
    }
}

fn timeout(section: &Section<'_>, default: Option<Duration>) -> Option<Duration> {
    let about = "from the start of a job that names none to its end; 0: no bound";
    let timeout = section
        .key("timeout", about)
        .duration(default.unwrap_or_default(), Duration::ZERO..=365 * DAY);
    if !timeout.is_zero() && timeout < MILLISECOND {
        section.blame_key("timeout", "`timeout` is less than 1ms", "write 0 for no bound at all");
    }
    (!timeout.is_zero()).then_some(timeout)
}
