//! A strategy that no pool comes with, to see that a stranger's is followed like the others.

use ostler_core::{Candidate, Rank, Ranking};

/// Answers that one worker may be ahead of another.
const LEAD: u64 = 8;

/// Everybody answers about as many; among those, the fullest first.
pub struct Evenly;

impl Ranking for Evenly {
    fn rank(&self, worker: &Candidate) -> Rank {
        Rank(worker.answered / LEAD, u64::from(worker.capacity - worker.load))
    }
}
