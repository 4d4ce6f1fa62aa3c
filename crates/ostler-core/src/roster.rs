//! Which workers are open, in the order in which they should be chosen. An index over the
//! workers: `refresh` after every change of one of them, `check` finds a forgotten call.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{IdMap, WorkerId};
use crate::strategy::{Rank, Strategy};
use crate::worker::{Openness, Worker};

type OpenKey = (Rank, WorkerId);

#[derive(Debug)]
pub(crate) struct Roster {
    strategy: Strategy,
    open: BTreeSet<OpenKey>,
    prefetch: BTreeSet<(u32, WorkerId)>,
    entries: IdMap<WorkerId, Entry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    Open(OpenKey),
    Prefetch(u32, WorkerId),
}

impl Roster {
    pub fn new(strategy: Strategy) -> Self {
        Roster {
            strategy,
            open: BTreeSet::new(),
            prefetch: BTreeSet::new(),
            entries: IdMap::default(),
        }
    }

    /// Built anew, in the order of another strategy.
    pub fn rebuild<'a>(&mut self, strategy: Strategy, workers: impl Iterator<Item = &'a Worker>) {
        *self = Roster::new(strategy);
        for worker in workers {
            self.refresh(worker);
        }
    }

    pub fn refresh(&mut self, worker: &Worker) {
        let entry = self.entry_of(worker);
        let old = match entry {
            Some(entry) => self.entries.insert(worker.id, entry),
            None => self.entries.remove(&worker.id),
        };
        if old == entry {
            return;
        }
        match old {
            Some(Entry::Open(key)) => drop(self.open.remove(&key)),
            Some(Entry::Prefetch(used, id)) => drop(self.prefetch.remove(&(used, id))),
            None => {}
        }
        match entry {
            Some(Entry::Open(key)) => drop(self.open.insert(key)),
            Some(Entry::Prefetch(used, id)) => drop(self.prefetch.insert((used, id))),
            None => {}
        }
    }

    pub fn best(&self) -> Option<WorkerId> {
        self.open.first().map(|(_, id)| *id)
    }

    pub fn open(&self) -> impl Iterator<Item = WorkerId> + '_ {
        self.open.iter().map(|(_, id)| *id)
    }

    pub fn open_count(&self) -> usize {
        self.open.len()
    }

    /// Full workers in whose stream one more may lie, the emptiest first.
    pub fn prefetchable(&self) -> impl Iterator<Item = WorkerId> + '_ {
        self.prefetch.iter().map(|(_, id)| *id)
    }

    pub fn check(&self, workers: &BTreeMap<WorkerId, Worker>) -> Result<(), String> {
        for worker in workers.values() {
            let (is, should) = (self.entries.get(&worker.id).copied(), self.entry_of(worker));
            if is != should {
                return Err(format!("roster has {is:?} for {:?}, not {should:?}", worker.id));
            }
        }
        let listed = self.open.len() + self.prefetch.len();
        if listed != self.entries.len() || listed > workers.len() {
            return Err(format!("roster lists {listed}, knows {}", self.entries.len()));
        }
        Ok(())
    }

    fn entry_of(&self, worker: &Worker) -> Option<Entry> {
        match worker.openness() {
            Openness::Closed => None,
            Openness::Prefetch { used } => Some(Entry::Prefetch(used, worker.id)),
            Openness::Open(candidate) => {
                Some(Entry::Open((self.strategy.rank(&candidate), worker.id)))
            }
        }
    }
}
