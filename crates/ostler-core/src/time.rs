//! A point in time, as the shell told it. The core never reads a clock.

use std::time::Duration;

/// Nanoseconds since an origin that only the shell knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    pub const ZERO: Time = Time(0);

    pub const fn from_nanos(nanos: u64) -> Self {
        Time(nanos)
    }

    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Time(self.0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// How long ago `earlier` was; zero if it is in the future.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}
