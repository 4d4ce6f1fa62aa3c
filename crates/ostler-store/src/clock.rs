//! The time of the store, in milliseconds since 1970: it must mean the same after a restart, so it
//! follows the wall clock; it must not give sessions back or keep them for ever when somebody sets
//! that clock, so within one run it never goes back. When the wall clock falls behind what was
//! seen, time goes on from there at the pace of the monotonic clock.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// Since 1970.
pub(crate) type Millis = i64;

/// No session waits longer than a century; sums of times stay far from where they overflow.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

pub(crate) trait Clock: Send + Sync + 'static {
    fn wall(&self) -> Millis;

    /// Since some moment; never goes back.
    fn elapsed(&self) -> Millis;
}

/// The machine's.
#[derive(Debug)]
pub(crate) struct MachineClock(Instant);

impl MachineClock {
    pub fn new() -> Self {
        MachineClock(Instant::now())
    }
}

impl Clock for MachineClock {
    fn wall(&self) -> Millis {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, millis)
    }

    fn elapsed(&self) -> Millis {
        millis(self.0.elapsed())
    }
}

pub(crate) struct Time {
    clock: Box<dyn Clock>,
    latest: Mutex<Latest>,
}

struct Latest {
    now: Millis,
    elapsed: Millis,
}

impl Time {
    pub fn new(clock: impl Clock) -> Self {
        let latest = Latest { now: clock.wall(), elapsed: clock.elapsed() };
        Time { clock: Box::new(clock), latest: Mutex::new(latest) }
    }

    pub fn now(&self) -> Millis {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        // In this order: what passes between the two is counted next time, never twice.
        let wall = self.clock.wall();
        let elapsed = self.clock.elapsed();
        let passed = (elapsed - latest.elapsed).max(0);
        latest.elapsed = elapsed;
        latest.now = wall.max(latest.now + passed);
        latest.now
    }
}

impl std::fmt::Debug for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Time").finish_non_exhaustive()
    }
}

/// Rounded up, so that what is not zero stays so.
pub(crate) fn millis(duration: Duration) -> Millis {
    let duration = duration.min(LONGEST);
    duration.as_nanos().div_ceil(1_000_000) as Millis
}

pub(crate) fn timestamp(at: Millis) -> Timestamp {
    Timestamp::from_millisecond(at).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;

    /// Stands still until it is set.
    #[derive(Debug, Clone)]
    pub(crate) struct HandClock {
        wall: Arc<AtomicI64>,
        elapsed: Arc<AtomicI64>,
    }

    impl HandClock {
        pub fn at(wall: Millis) -> Self {
            HandClock { wall: Arc::new(wall.into()), elapsed: Arc::default() }
        }

        /// Time passes.
        pub fn pass(&self, duration: Duration) {
            self.wall.fetch_add(millis(duration), Ordering::SeqCst);
            self.elapsed.fetch_add(millis(duration), Ordering::SeqCst);
        }

        /// Somebody sets the wall clock.
        pub fn set(&self, wall: Millis) {
            self.wall.store(wall, Ordering::SeqCst);
        }
    }

    impl Clock for HandClock {
        fn wall(&self) -> Millis {
            self.wall.load(Ordering::SeqCst)
        }

        fn elapsed(&self) -> Millis {
            self.elapsed.load(Ordering::SeqCst)
        }
    }

    #[test]
    fn a_clock_that_jumps_back_does_not_turn_time_back() {
        let clock = HandClock::at(1_000_000);
        let time = Time::new(clock.clone());
        clock.pass(Duration::from_millis(500));
        assert_eq!(time.now(), 1_000_500);
        clock.set(10);
        assert_eq!(time.now(), 1_000_500);
        clock.pass(Duration::from_millis(250));
        assert_eq!(time.now(), 1_000_750, "and time goes on meanwhile");
        clock.set(2_000_000);
        assert_eq!(time.now(), 2_000_000);
    }

    /// Time passes after every look at it: somebody else had the processor.
    struct Interrupted(HandClock);

    impl Clock for Interrupted {
        fn wall(&self) -> Millis {
            let wall = self.0.wall();
            self.0.pass(Duration::from_millis(3));
            wall
        }

        fn elapsed(&self) -> Millis {
            let elapsed = self.0.elapsed();
            self.0.pass(Duration::from_millis(3));
            elapsed
        }
    }

    #[test]
    fn time_does_not_run_ahead_of_the_clock_it_follows() {
        let clock = HandClock::at(1_000_000);
        let time = Time::new(Interrupted(clock.clone()));
        for _ in 0..1_000 {
            let now = time.now();
            assert!(now <= clock.wall(), "{now} is after {}", clock.wall());
        }
    }

    #[test]
    fn durations_are_rounded_up_and_bounded() {
        assert_eq!(millis(Duration::ZERO), 0);
        assert_eq!(millis(Duration::from_nanos(1)), 1);
        assert_eq!(millis(Duration::from_millis(7)), 7);
        assert_eq!(millis(Duration::MAX), millis(LONGEST));
    }

    #[test]
    fn times_beyond_the_calendar_are_its_end() {
        assert_eq!(timestamp(i64::MAX), Timestamp::MAX);
    }
}
