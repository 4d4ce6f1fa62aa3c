//! How a pool finds out that a worker is not well.

use std::time::Duration;

use super::section::Section;
use super::units::show_duration;
use super::{DAY, HOUR, MILLISECOND, MINUTE, SECOND};

/// Signs of life that workers are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    pub interval: Duration,
    /// Silence that counts as the first miss; each further interval is one more.
    pub timeout: Duration,
    pub misses: u32,
    pub initial_delay: Duration,
    /// Misses are reported and have no consequence.
    pub independent: bool,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self {
            interval: 2 * SECOND,
            timeout: 10 * SECOND,
            misses: 3,
            initial_delay: Duration::ZERO,
            independent: false,
        }
    }
}

/// The question whether a worker without load is well, answered by its own function if it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    pub interval: Duration,
    pub timeout: Duration,
    /// Wait before the next check after a failed one.
    pub again: Duration,
    /// Failures in a row that replace the worker.
    pub failures: u32,
}

impl Default for Check {
    fn default() -> Self {
        Self { interval: 30 * SECOND, timeout: 5 * SECOND, again: 5 * SECOND, failures: 3 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Health {
    /// `None`: switched off.
    pub heartbeat: Option<Heartbeat>,
    /// `None`: switched off.
    pub check: Option<Check>,
    /// A worker with load that is silent this long is killed; never, if `None`.
    pub hang_timeout: Option<Duration>,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            heartbeat: Some(Heartbeat::default()),
            check: Some(Check::default()),
            hang_timeout: None,
        }
    }
}

impl Health {
    pub(super) fn read(section: &Section<'_>) -> Self {
        let hang_timeout = section
            .key("hang_timeout", "silence after which a worker with load is killed")
            .usually("never")
            .duration_if_any(SECOND..=DAY);
        let health = Self {
            hang_timeout,
            heartbeat: section.key("heartbeat", "signs of life").table(Heartbeat::read),
            check: section.key("check", "active checks of workers without load").table(Check::read),
        };
        health.agree(section);
        health
    }

    /// Silence means something only where signs of life are asked for.
    fn agree(&self, section: &Section<'_>) {
        let Some(hang_timeout) = self.hang_timeout else {
            return;
        };
        match self.heartbeat {
            None => section.blame_key(
                "hang_timeout",
                "`hang_timeout` needs heartbeats, and they are switched off",
                format!("remove it, or `enabled = false` in {}", heartbeat_title(section)),
            ),
            Some(Heartbeat { independent: true, .. }) => section.blame_key(
                "hang_timeout",
                "`hang_timeout` kills by heartbeats, and they are to report only",
                format!("remove it, or `independent = true` in {}", heartbeat_title(section)),
            ),
            Some(Heartbeat { timeout, .. }) if hang_timeout < timeout => section.blame_key(
                "hang_timeout",
                "`hang_timeout` is shorter than the first miss of a heartbeat",
                format!(
                    "make it at least {}, the `timeout` of {}",
                    show_duration(timeout),
                    heartbeat_title(section)
                ),
            ),
            Some(_) => {}
        }
    }
}

fn heartbeat_title(section: &Section<'_>) -> String {
    section.inner("heartbeat", None, None).title()
}

impl Heartbeat {
    /// `None` when they are switched off; the other settings are checked all the same.
    fn read(section: &Section<'_>) -> Option<Self> {
        let defaults = Self::default();
        let enabled = section.key("enabled", "whether workers are asked at all").flag(true);
        let heartbeat = Self {
            interval: section
                .key("interval", "between two questions")
                .duration(defaults.interval, 10 * MILLISECOND..=HOUR),
            timeout: section
                .key(
                    "timeout",
                    "silence that counts as the first miss; each interval more is one more",
                )
                .duration(defaults.timeout, 10 * MILLISECOND..=HOUR),
            misses: section
                .key("misses", "misses that replace a worker without load")
                .count(defaults.misses, 1..=1_000),
            initial_delay: section
                .key("initial_delay", "from ready to the first question")
                .duration(defaults.initial_delay, Duration::ZERO..=HOUR),
            independent: section
                .key("independent", "only report misses, act on none")
                .flag(defaults.independent),
        };
        if heartbeat.timeout < heartbeat.interval {
            section.blame_key(
                "timeout",
                "`timeout` is less than `interval`: every worker would miss",
                format!("make it at least {}", show_duration(heartbeat.interval)),
            );
        }
        enabled.then_some(heartbeat)
    }
}

impl Check {
    /// `None` when they are switched off; the other settings are checked all the same.
    fn read(section: &Section<'_>) -> Option<Self> {
        let defaults = Self::default();
        let enabled = section.key("enabled", "whether workers are checked at all").flag(true);
        let check = Self {
            interval: section
                .key("interval", "between two checks")
                .duration(defaults.interval, 100 * MILLISECOND..=DAY),
            timeout: section
                .key("timeout", "how long an answer may take")
                .duration(defaults.timeout, 10 * MILLISECOND..=10 * MINUTE),
            again: section
                .key("again", "from a failed check to the next one")
                .duration(defaults.again, 10 * MILLISECOND..=DAY),
            failures: section
                .key("failures", "failures in a row that replace the worker")
                .count(defaults.failures, 1..=1_000),
        };
        enabled.then_some(check)
    }
}
