//! When sessions may be gone, soonest first.
//!
//! A session is used far more often than it expires, so its place here is not moved when it is used:
//! it is a moment before which it cannot be gone. Whoever finds it due looks at the session itself
//! and puts it back under its true moment if it was used since, at most once per ttl.

use std::collections::BTreeSet;

use crate::clock::Millis;

#[derive(Debug, Default)]
pub(crate) struct Expiry {
    places: BTreeSet<(Millis, u64)>,
    /// Places that were looked at.
    pub looks: u64,
}

impl Expiry {
    pub fn insert(&mut self, at: Millis, number: u64) {
        self.places.insert((at, number));
    }

    pub fn remove(&mut self, at: Millis, number: u64) {
        self.places.remove(&(at, number));
    }

    /// Those whose places are not after now.
    pub fn due(&self, now: Millis) -> impl Iterator<Item = (Millis, u64)> + '_ {
        self.places.range(..=(now, u64::MAX)).copied()
    }
}
