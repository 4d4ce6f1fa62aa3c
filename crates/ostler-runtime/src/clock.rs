//! The shell's time in the core's terms, and in people's.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use ostler_core::Time;

#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Instant,
    /// The same moment by the calendar.
    began: Timestamp,
}

impl Clock {
    pub fn start() -> Self {
        Clock { origin: Instant::now(), began: Timestamp::now() }
    }

    pub fn now(&self) -> Time {
        Time::ZERO.after(self.origin.elapsed())
    }

    pub fn instant(&self, time: Time) -> Instant {
        self.origin + Duration::from_nanos(time.as_nanos())
    }

    pub fn timestamp(&self, time: Time) -> Timestamp {
        let since = SignedDuration::from_nanos(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
        self.began.checked_add(since).unwrap_or(Timestamp::MAX)
    }
}
