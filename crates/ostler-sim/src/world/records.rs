//! The world's store at work: slow, refusing, or doing the work and saying that it does not know.

use ostler_core::{Change, Event, RecordId, Recording};

use super::{Happening, World};
use crate::violation::Verdict;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Done,
    Refused,
    /// The answer is lost, the work was done.
    DoneUnheard,
    /// The answer came too early: the work is done later.
    DoneLater,
    NotDone,
    /// Work of an earlier sending, of which nobody is told any more.
    Belated,
}

impl World {
    pub(super) fn record(&mut self, record: RecordId, change: Change) {
        let wait = self.prng.wait(self.profile.store.latency);
        let fate = self.fate(record);
        self.store.send(record);
        self.plan_in(wait, Happening::StoreWorks { record, change, fate });
    }

    fn fate(&mut self, record: RecordId) -> Fate {
        let faults = self.profile.store.clone();
        if self.store.out || self.prng.chance(faults.doubts) {
            return match self.prng.below(3) {
                0 => Fate::DoneUnheard,
                1 => Fate::DoneLater,
                _ => Fate::NotDone,
            };
        }
        if self.store.may_refuse(record) && self.prng.chance(faults.refuses) {
            return Fate::Refused;
        }
        Fate::Done
    }

    pub(super) fn work(&mut self, record: RecordId, change: Change, fate: Fate) -> Verdict {
        if fate == Fate::Belated {
            return self.keep(record, change);
        }
        self.store.arrive(record);
        let result = match fate {
            // In doubt since it was sent: then nothing can be ruled out any more.
            Fate::Refused if self.store.may_refuse(record) => Recording::Refused,
            Fate::Refused | Fate::Done => {
                self.keep(record, change)?;
                Recording::Stored
            }
            Fate::DoneUnheard => {
                self.keep(record, change)?;
                Recording::Unknown
            }
            Fate::DoneLater => {
                self.store.doubt(record, change);
                let wait = self.prng.wait(self.profile.store.latency * 4);
                self.plan_in(wait, Happening::StoreWorks { record, change, fate: Fate::Belated });
                Recording::Unknown
            }
            Fate::NotDone | Fate::Belated => Recording::Unknown,
        };
        self.deliver(Event::Recorded { record, result })
    }

    fn keep(&mut self, record: RecordId, change: Change) -> Verdict {
        self.store.keep(record, change)?;
        self.ledger.stored(record, change);
        Ok(())
    }
}
