//! How often a pool may replace what died: backoff per worker, a budget and a breaker per pool.
//!
//! ```text
//!   Closed ──budget spent──▶ Open ──cooldown──▶ Probing ──ready──▶ Closed
//!                             ▲                    └──died──┐
//!                             └─────────────────────────────┘
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use crate::id::WorkerId;
use crate::settings::Settings;
use crate::time::Time;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breaker {
    Closed,
    Open {
        until: Time,
    },
    /// One new worker shows whether the cause is gone.
    Probing {
        worker: WorkerId,
    },
}

#[derive(Debug)]
pub(crate) struct Restarts {
    pub breaker: Breaker,
    recent: VecDeque<Time>,
    random: Random,
}

impl Restarts {
    pub fn new(seed: u64) -> Self {
        Restarts { breaker: Breaker::Closed, recent: VecDeque::new(), random: Random(seed) }
    }

    /// Counts one unplanned end; true if that spends the budget.
    pub fn spend(&mut self, now: Time, settings: &Settings) -> bool {
        self.recent.push_back(now);
        while self.recent.front().is_some_and(|at| now.since(*at) > settings.restart_period) {
            self.recent.pop_front();
        }
        self.recent.len() > settings.restart_max as usize
    }

    pub fn forget(&mut self) {
        self.recent.clear();
    }

    /// At once the first time, then doubling, with jitter.
    pub fn delay(&mut self, crashes: u32, settings: &Settings) -> Duration {
        if crashes <= 1 {
            return Duration::ZERO;
        }
        let backoff = settings.backoff;
        let doublings = (crashes - 2).min(20);
        let base = backoff.first.saturating_mul(1 << doublings).min(backoff.max);
        self.vary(base, backoff.jitter)
    }

    /// A little more or less.
    pub fn vary(&mut self, base: Duration, jitter: f64) -> Duration {
        base.mul_f64(1.0 + jitter * self.random.between_minus_one_and_one())
    }
}

/// SplitMix64: the same seed gives the same delays.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn between_minus_one_and_one(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_restart_is_at_once_and_the_rest_double_up_to_the_maximum() {
        let settings = Settings::default();
        let mut restarts = Restarts::new(7);
        assert_eq!(restarts.delay(1, &settings), Duration::ZERO);
        for (crashes, base_ms) in [(2, 200.0), (3, 400.0), (4, 800.0), (40, 30_000.0)] {
            let ms = restarts.delay(crashes, &settings).as_secs_f64() * 1_000.0;
            assert!((base_ms * 0.8..=base_ms * 1.2).contains(&ms), "{crashes}: {ms} ms");
        }
    }

    #[test]
    fn the_budget_is_a_window() {
        let settings = Settings { restart_max: 2, ..Settings::default() };
        let mut restarts = Restarts::new(0);
        let at = |s| Time::ZERO.after(Duration::from_secs(s));
        assert!(!restarts.spend(at(0), &settings));
        assert!(!restarts.spend(at(1), &settings));
        assert!(restarts.spend(at(2), &settings));
        assert!(!restarts.spend(at(60), &settings));
    }
}
