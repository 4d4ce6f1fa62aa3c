//! The shell's time in the core's terms.

use std::time::{Duration, Instant};

use ostler_core::Time;

#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    pub fn start() -> Self {
        Clock { origin: Instant::now() }
    }

    pub fn now(&self) -> Time {
        Time::ZERO.after(self.origin.elapsed())
    }

    pub fn instant(&self, time: Time) -> Instant {
        self.origin + Duration::from_nanos(time.as_nanos())
    }
}
