//! The pools that are served just now. They come and go while the server runs: what wants to look
//! at all of them takes a copy, so that nobody waits for anybody.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use ostler_runtime::Pool;

/// A handle; all clones are one.
#[derive(Debug, Clone, Default)]
pub struct Pools {
    roster: Arc<RwLock<Roster>>,
}

#[derive(Debug, Default)]
struct Roster {
    served: Vec<Served>,
    /// Not served any more, but not gone either: the server does not end before they have.
    leaving: Vec<Pool>,
    /// How many there ever were.
    places: usize,
    /// The server ends, and whoever comes now ends with it: at once, or after its calls.
    ending: Option<bool>,
}

/// A pool and its place. No two pools ever have the same one.
#[derive(Debug, Clone)]
pub(crate) struct Served {
    pub place: usize,
    pub pool: Pool,
}

impl Pools {
    pub(crate) fn of(pools: Vec<Pool>) -> Self {
        let roster = Pools::default();
        pools.into_iter().for_each(|pool| roster.add(pool));
        roster
    }

    /// From now on it is served, in place of another one of its name.
    pub fn add(&self, pool: Pool) {
        let mut roster = self.write();
        if let Some(now) = roster.ending {
            pool.shut_down(now);
        }
        let place = roster.places;
        roster.places += 1;
        roster.served.retain(|served| served.pool.name() != pool.name());
        roster.served.push(Served { place, pool });
    }

    /// It is not served any more. What becomes of it is up to whoever takes it, until the server
    /// ends.
    pub fn remove(&self, name: &str) -> Option<Pool> {
        let mut roster = self.write();
        let found = roster.served.iter().position(|served| served.pool.name() == name)?;
        let pool = roster.served.remove(found).pool;
        roster.leaving.retain(|pool| !pool.readiness().borrow().stopped);
        roster.leaving.push(pool.clone());
        Some(pool)
    }

    pub fn find(&self, name: &str) -> Option<Pool> {
        let roster = self.read();
        let found = roster.served.iter().find(|served| served.pool.name() == name)?;
        Some(found.pool.clone())
    }

    pub(crate) fn all(&self) -> Vec<Served> {
        self.read().served.clone()
    }

    /// Ends them all, and whoever is added later.
    pub(crate) fn end(&self, now: bool) {
        let mut roster = self.write();
        roster.ending = Some(now);
        let served = roster.served.iter().map(|served| &served.pool);
        served.chain(&roster.leaving).for_each(|pool| pool.shut_down(now));
    }

    /// Waits until none is left that runs.
    pub(crate) async fn ended(&self) {
        while let Some(pool) = self.running() {
            pool.stopped().await;
        }
    }

    fn running(&self) -> Option<Pool> {
        let roster = self.read();
        let served = roster.served.iter().map(|served| &served.pool);
        let runs = |pool: &&Pool| !pool.readiness().borrow().stopped;
        served.chain(&roster.leaving).find(runs).cloned()
    }

    fn read(&self) -> RwLockReadGuard<'_, Roster> {
        self.roster.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Roster> {
        self.roster.write().unwrap_or_else(PoisonError::into_inner)
    }
}
