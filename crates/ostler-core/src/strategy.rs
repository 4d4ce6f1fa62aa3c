//! Which of the open workers is chosen: the one of the lowest rank. A rank is computed when a
//! worker changes and kept in order, so that choosing does not cost more with more workers.

use std::fmt;
use std::sync::Arc;

use crate::id::WorkerId;
use crate::time::Time;

/// How a pool chooses among the workers that have a free place.
#[derive(Clone, Default)]
pub enum Strategy {
    /// The least loaded; among equals the most recently used, so that spare ones go cold.
    #[default]
    LeastLoaded,
    /// The one whose last turn is longest ago.
    RoundRobin,
    /// The one that has been idle longest.
    Lru,
    /// One's own.
    Own(Arc<dyn Ranking>),
}

/// Puts open workers in an order of one's own. It must be a function of the candidate and of
/// nothing else: a rank is asked for when a worker changes, not when one is chosen.
///
/// ```
/// use std::sync::Arc;
/// use ostler_core::{Candidate, Rank, Ranking, Settings, Strategy};
///
/// /// Fill one worker before the next is touched.
/// struct Fullest;
///
/// impl Ranking for Fullest {
///     fn rank(&self, worker: &Candidate) -> Rank {
///         Rank(u64::from(worker.capacity - worker.load), worker.id.0)
///     }
/// }
///
/// let settings = Settings { strategy: Strategy::Own(Arc::new(Fullest)), ..Settings::of_size(4) };
/// # assert_ne!(settings.strategy, Strategy::LeastLoaded);
/// ```
pub trait Ranking: Send + Sync {
    fn rank(&self, worker: &Candidate) -> Rank;
}

/// The lowest is chosen; among equals the worker that was made first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(pub u64, pub u64);

/// An open worker, as a strategy sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    pub id: WorkerId,
    /// Places in use.
    pub load: u32,
    pub capacity: u32,
    /// When it was last given a request or let go of one.
    pub last_used: Time,
    /// Requests that the pool had given out when it was this worker's turn.
    pub last_turn: u64,
    /// Requests it has answered.
    pub answered: u64,
}

impl Strategy {
    pub(crate) fn rank(&self, worker: &Candidate) -> Rank {
        let used = worker.last_used.as_nanos();
        match self {
            Strategy::LeastLoaded => Rank(u64::from(worker.load), u64::MAX - used),
            Strategy::RoundRobin => Rank(worker.last_turn, 0),
            Strategy::Lru => Rank(used, 0),
            Strategy::Own(ranking) => ranking.rank(worker),
        }
    }
}

impl PartialEq for Strategy {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Strategy::Own(a), Strategy::Own(b)) => Arc::ptr_eq(a, b),
            (Strategy::LeastLoaded, Strategy::LeastLoaded)
            | (Strategy::RoundRobin, Strategy::RoundRobin)
            | (Strategy::Lru, Strategy::Lru) => true,
            _ => false,
        }
    }
}

impl fmt::Debug for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Strategy::LeastLoaded => "LeastLoaded",
            Strategy::RoundRobin => "RoundRobin",
            Strategy::Lru => "Lru",
            Strategy::Own(_) => "Own",
        })
    }
}
