//! Durations, counted in buckets: exact to 1.6 %, in the same small space however many there are.

use std::time::Duration;

/// Buckets per power of two.
const SPLIT: u64 = 64;
const SPLIT_BITS: u32 = SPLIT.trailing_zeros();
const BUCKETS: usize = (SPLIT as usize) * (65 - SPLIT_BITS as usize);

#[derive(Debug, Clone)]
pub(super) struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    max: Duration,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: vec![0; BUCKETS], count: 0, max: Duration::ZERO }
    }
}

impl Histogram {
    pub fn record(&mut self, duration: Duration) {
        self.buckets[bucket(nanos(duration))] += 1;
        self.count += 1;
        self.max = self.max.max(duration);
    }

    pub fn add(&mut self, other: &Self) {
        for (own, others) in self.buckets.iter_mut().zip(&other.buckets) {
            *own += others;
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn max(&self) -> Duration {
        self.max
    }

    /// The least duration that this share of all does not exceed.
    pub fn quantile(&self, share: f64) -> Duration {
        let rank = (share * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Duration::from_nanos(upper(index)).min(self.max);
            }
        }
        self.max
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Below `SPLIT` each value has a bucket; above, each power of two is split into that many.
fn bucket(nanos: u64) -> usize {
    let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(SPLIT_BITS + 1);
    let within = nanos >> shift;
    usize::try_from(u64::from(shift) * SPLIT + within).expect("a small number")
}

/// The largest value of a bucket.
fn upper(index: usize) -> u64 {
    let index = index as u64;
    if index < 2 * SPLIT {
        return index;
    }
    let shift = index / SPLIT - 1;
    let within = index % SPLIT + SPLIT;
    (within << shift) | ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_its_value_within_a_sixtieth() {
        let mut value = 1_u64;
        while value < u64::MAX / 3 {
            for near in [value - 1, value, value + 1] {
                let top = upper(bucket(near));
                assert!(top >= near, "{near} is above its bucket, {top}");
                assert!(top - near <= near / 60, "{near} is far below its bucket, {top}");
            }
            value += value / 4 + 1;
        }
        assert!(bucket(u64::MAX) < BUCKETS);
    }

    #[test]
    fn quantiles_are_those_of_what_was_recorded() {
        let (mut low, mut high) = (Histogram::default(), Histogram::default());
        for n in 1..=50 {
            low.record(Duration::from_nanos(n));
            high.record(Duration::from_nanos(n + 50));
        }
        low.add(&high);
        assert_eq!(low.count(), 100);
        for (share, nanos) in [(0.0, 1), (0.5, 50), (0.9, 90), (0.99, 99), (1.0, 100)] {
            assert_eq!(low.quantile(share), Duration::from_nanos(nanos), "{share}");
        }
        assert_eq!(low.max(), Duration::from_nanos(100));
        assert_eq!(Histogram::default().quantile(0.5), Duration::ZERO);
    }
}
