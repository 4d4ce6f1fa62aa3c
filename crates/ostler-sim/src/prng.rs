//! A small generator of its own, so that a seed means the same world for ever, whatever
//! dependencies do.

use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Prng(u64);

impl Prng {
    pub fn new(seed: u64) -> Self {
        let mut prng = Prng(seed ^ 0x5851_f42d_4c95_7f2d);
        prng.next();
        prng
    }

    /// splitmix64
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0..n; zero if there is nothing to choose from.
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { self.next() % n }
    }

    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(u64::from(high - low) + 1) as u32
    }

    pub fn chance(&mut self, share: f64) -> bool {
        share > 0.0 && self.unit() < share
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        if from.is_empty() { None } else { Some(from[self.below(from.len() as u64) as usize]) }
    }

    /// Each order of magnitude is as likely as the next.
    pub fn span(&mut self, low: Duration, high: Duration) -> Duration {
        let (low, high) = (low.as_nanos().max(1) as f64, high.as_nanos().max(1) as f64);
        Duration::from_nanos((low * (high / low).powf(self.unit())) as u64)
    }

    /// The wait for something that happens once in `mean` on average.
    pub fn wait(&mut self, mean: Duration) -> Duration {
        mean.mul_f64(-(1.0 - self.unit()).ln())
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
