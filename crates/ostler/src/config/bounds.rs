//! What a pool grants its requests and processes: how many, how long, how large.
//!
//! Separate from the pool because these are numbers only; each is finite by default.

use std::time::Duration;

use super::declared::Choice;
use super::pool::SIZE_MAX;
use super::section::Section;
use super::server::BODY_CEILING;
use super::{DAY, HOUR, KIB, MIB, MILLISECOND, MINUTE, SECOND};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    pub timeout: Duration,
    pub batch: u32,
    pub batch_delay: Duration,
}

impl Start {
    pub(super) fn of_size(size: u32) -> Self {
        Self { timeout: 30 * SECOND, batch: size, batch_delay: Duration::ZERO }
    }

    pub(super) fn read(section: &Section<'_>, defaults: Self) -> Self {
        Self {
            timeout: section
                .key("start_timeout", "from spawn to ready")
                .duration(defaults.timeout, 100 * MILLISECOND..=HOUR),
            batch: section
                .key("start_batch", "processes that start at a time")
                .usually("cores")
                .count(defaults.batch, 1..=SIZE_MAX),
            batch_delay: section
                .key("start_batch_delay", "pause between batches")
                .duration(defaults.batch_delay, Duration::ZERO..=MINUTE),
        }
    }
}

/// Who is let into the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Everybody, as long as there is room.
    Queue,
    /// Only those who would be done before their deadline, by the pool's own estimate.
    Deadline,
}

impl Choice for Admission {
    const WORDS: &'static [(&'static str, Self)] =
        &[("queue", Self::Queue), ("deadline", Self::Deadline)];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue {
    pub admission: Admission,
    /// 0: no request waits.
    pub max: u32,
    pub timeout: Duration,
    /// Requests written to a busy worker ahead of time.
    pub prefetch: u32,
}

impl Default for Queue {
    fn default() -> Self {
        Self { admission: Admission::Queue, max: 1_000, timeout: 10 * SECOND, prefetch: 1 }
    }
}

impl Queue {
    pub(super) fn read(section: &Section<'_>, defaults: Self) -> Self {
        Self {
            max: section
                .key("queue_max", "requests that wait; 0: none")
                .count(defaults.max, 0..=1_000_000),
            timeout: section
                .key("queue_timeout", "how long they wait")
                .duration(defaults.timeout, MILLISECOND..=DAY),
            admission: section
                .key("admission", "who may wait: all, or those whose deadline can be met")
                .choice(defaults.admission),
            prefetch: section
                .key("prefetch", "requests in a worker's stream behind the one it works on")
                .count(defaults.prefetch, 0..=64),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub timeout: Duration,
    pub cancel_grace: Duration,
    /// Executions of one idempotent request, the first included.
    pub attempts: u32,
    /// Wait before the second attempt; doubled for each further one.
    pub retry_delay: Duration,
    pub max_body: u64,
    pub max_result: u64,
    pub max_line: u64,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            timeout: MINUTE,
            cancel_grace: 5 * SECOND,
            attempts: 3,
            retry_delay: 50 * MILLISECOND,
            max_body: 64 * MIB,
            max_result: 64 * MIB,
            max_line: 16 * MIB,
        }
    }
}

impl Request {
    pub(super) fn read(section: &Section<'_>, defaults: Self, server_max_body: u64) -> Self {
        let request = Self {
            timeout: section
                .key("request_timeout", "deadline of a request that names none")
                .duration(defaults.timeout, MILLISECOND..=7 * DAY),
            cancel_grace: section
                .key("cancel_grace", "how long a worker may take to let go of a cancelled request")
                .duration(defaults.cancel_grace, Duration::ZERO..=10 * MINUTE),
            attempts: section
                .key("attempts", "executions of an idempotent request, the first included")
                .count(defaults.attempts, 1..=100),
            retry_delay: section
                .key("retry_delay", "wait before its second attempt, doubled for each further one")
                .duration(defaults.retry_delay, Duration::ZERO..=MINUTE),
            max_body: section
                .key("max_body", "largest payload")
                .usually("the server's")
                .size(server_max_body, KIB..=BODY_CEILING),
            max_result: section
                .key("max_result", "largest result")
                .size(defaults.max_result, KIB..=BODY_CEILING),
            max_line: section
                .key("max_line", "longest line of an NDJSON worker")
                .size(defaults.max_line, KIB..=BODY_CEILING),
        };
        if request.max_body > server_max_body {
            section.blame_key(
                "max_body",
                "`max_body` is larger than the server's",
                "raise `max_body` in [server] as well",
            );
        }
        request
    }
}

/// The breaker: more than `max` unplanned restarts within `period` open it for `cooldown`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restart {
    pub max: u32,
    pub period: Duration,
    pub cooldown: Duration,
}

impl Restart {
    /// Twice the pool may die and come back; small pools get a little more.
    pub(super) fn of_size(size: u32) -> Self {
        Self { max: (2 * size).max(5), period: 30 * SECOND, cooldown: 30 * SECOND }
    }

    pub(super) fn read(section: &Section<'_>, size: u32) -> Self {
        let defaults = Self::of_size(size);
        Self {
            max: section
                .key(
                    "restart_max",
                    "unplanned restarts within the period, beyond which none follow",
                )
                .usually("max(5, 2 × `max`)")
                .count(defaults.max, 1..=10_000),
            period: section
                .key("restart_period", "the period in which they are counted")
                .duration(defaults.period, SECOND..=HOUR),
            cooldown: section
                .key("restart_cooldown", "how long none follow")
                .duration(defaults.cooldown, SECOND..=HOUR),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    pub min: Duration,
    pub max: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { min: 200 * MILLISECOND, max: 30 * SECOND }
    }
}

impl Backoff {
    pub(super) fn read(section: &Section<'_>, defaults: Self) -> Self {
        let range = MILLISECOND..=HOUR;
        let min = section
            .key("backoff_min", "wait before a worker that crashed again gets its next process")
            .duration(defaults.min, range.clone());
        let max = section
            .key("backoff_max", "the most that this wait is doubled to, ± 20 %")
            .duration(defaults.max.max(min), range);
        if min > max {
            section.blame_key(
                "backoff_max",
                "`backoff_max` is less than `backoff_min`",
                "raise it, or lower `backoff_min`",
            );
        }
        Self { min, max }
    }
}
