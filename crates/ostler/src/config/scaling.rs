//! How many workers a pool has, and when it grows and shrinks between its bounds.

use std::time::Duration;

use super::pool::SIZE_MAX;
use super::section::Section;
use super::{DAY, MILLISECOND, MINUTE};

/// How a pool moves between `min` workers and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scaling {
    /// Workers that stay when there is nothing to do.
    pub min: u32,
    /// A worker above `min` that was idle this long leaves; never, if `None`.
    pub idle_ttl: Option<Duration>,
    /// One more worker is made when a request has waited this long.
    pub up_after: Duration,
}

impl Scaling {
    pub(super) fn of_min(min: u32) -> Self {
        Self { min, idle_ttl: Some(5 * MINUTE), up_after: 50 * MILLISECOND }
    }

    /// The most workers, and how the pool gets there. In a pool with a key workers are made on
    /// demand, so none is there before it is needed.
    pub(super) fn read(section: &Section<'_>, cores: u32) -> (u32, Self) {
        let keyed = section.has("key");
        let size = section
            .key("size", "workers: `min` and `max` in one")
            .usually("cores")
            .count_if_any(1..=SIZE_MAX);
        let min = section
            .key("min", "workers that stay when there is nothing to do")
            .usually("`size`; 1 beside `max`; 0 in a pool with `key`")
            .count_if_any(0..=SIZE_MAX);
        let max = section
            .key("max", "workers that there may be")
            .usually("cores, or `min` if that is more")
            .count_if_any(1..=SIZE_MAX);
        let most = max.or(size).unwrap_or_else(|| cores.max(min.unwrap_or(0)));
        let least = match (min, keyed) {
            (Some(min), _) => min,
            (None, true) => 0,
            (None, false) if max.is_some() => 1,
            (None, false) => most,
        };
        agree(section, least, most, keyed);
        let defaults = Self::of_min(least);
        let idle_ttl = section
            .key("idle_ttl", "idle time after which a worker above `min` leaves; 0: never")
            .duration(defaults.idle_ttl.unwrap_or_default(), Duration::ZERO..=30 * DAY);
        let up_after = section
            .key("scale_up_after", "how long a request waits before one more worker is made")
            .duration(defaults.up_after, Duration::ZERO..=MINUTE);
        let idle_ttl = (!idle_ttl.is_zero()).then_some(idle_ttl);
        (most, Self { min: least, idle_ttl, up_after })
    }
}

fn agree(section: &Section<'_>, min: u32, max: u32, keyed: bool) {
    if section.has("size") && (section.has("min") || section.has("max")) {
        section.blame_key(
            "size",
            "`size` has no place beside `min` and `max`",
            "`size = 4` is short for `min = 4` and `max = 4`; keep one of the two ways",
        );
    } else if keyed && min > 0 {
        section.blame_key(
            "min",
            "`min` must be 0 in a pool with `key`: its workers are made for their keys",
            "remove `min`, or `key`",
        );
    } else if min > max {
        section.blame_key("max", "`max` is less than `min`", "raise it, or lower `min`");
    }
}
