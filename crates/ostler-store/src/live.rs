//! Every session that lives, in memory: by number, by id in order, by expiry.
//!
//! The durable part of an entry is replaced only by the writer, after the commit. What is written
//! late is changed by whoever uses the session. An entry that has expired may still be here; nobody
//! is shown it.

use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::ops::Bound;
use std::sync::Arc;

use crate::clock::Millis;
use crate::expiry::Expiry;
use crate::kept::{Kept, Seen};
use crate::session::Session;

#[derive(Debug, Default)]
pub(crate) struct Live {
    by_number: HashMap<u64, Entry>,
    by_id: BTreeMap<Arc<str>, u64>,
    expiry: Expiry,
    /// Used since they were last written, each once.
    used: Vec<u64>,
    bytes: u64,
    pub counts: Counts,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub kept: Arc<Kept>,
    pub seen: Seen,
    /// Its place in the index of expiry, never after the moment when it is gone.
    place: Millis,
    /// Whether it stands among the used.
    unwritten: bool,
}

/// Since the store was opened.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub created: u64,
    pub deleted: u64,
    pub expired: u64,
    pub sweeps: u64,
    pub commits: u64,
    pub rows_written: u64,
    pub disk_refusals: u64,
}

impl Entry {
    pub fn gone_at(&self) -> Millis {
        self.kept.gone_at(self.seen.accessed)
    }

    pub fn gone(&self, now: Millis) -> bool {
        self.gone_at() <= now
    }

    pub fn shown(&self) -> Session {
        self.kept.shown(&self.seen)
    }
}

impl Live {
    /// Entries, expired ones among them.
    pub fn len(&self) -> u64 {
        self.by_number.len() as u64
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn expiry_looks(&self) -> u64 {
        self.expiry.looks
    }

    /// The entry under an id, expired or not.
    pub fn under(&self, id: &str) -> Option<&Entry> {
        self.by_number.get(self.by_id.get(id)?)
    }

    /// The entry of a number, expired or not.
    pub fn entry(&self, number: u64) -> Option<&Entry> {
        self.by_number.get(&number)
    }

    pub fn find(&self, id: &str, now: Millis) -> Option<&Entry> {
        self.under(id).filter(|entry| !entry.gone(now))
    }

    pub fn numbered(&self, number: u64, now: Millis) -> Option<&Entry> {
        self.entry(number).filter(|entry| !entry.gone(now))
    }

    /// In the order of ids, those after `after`.
    pub fn list(&self, after: Option<&str>, now: Millis) -> impl Iterator<Item = &Entry> {
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.by_id
            .range::<str, _>((after, Bound::Unbounded))
            .filter_map(move |(_, number)| self.numbered(*number, now))
    }

    /// Somebody uses it now.
    pub fn touch(&mut self, number: u64, now: Millis) {
        if let Some(entry) = self.by_number.get_mut(&number) {
            entry.seen.accessed = entry.seen.accessed.max(now);
            mark_used(&mut self.used, entry, number);
        }
    }

    pub fn note_worker(&mut self, number: u64, worker: &str) {
        let Some(entry) = self.by_number.get_mut(&number) else { return };
        if entry.seen.worker.as_deref() != Some(worker) {
            entry.seen.worker = Some(Arc::from(worker));
            mark_used(&mut self.used, entry, number);
        }
    }

    /// A session that is new, or the next version of one. Uses in between are not undone.
    pub fn put(&mut self, kept: Arc<Kept>, accessed: Millis) {
        let number = kept.number;
        self.bytes += kept.size();
        match self.by_number.get_mut(&number) {
            Some(entry) => {
                self.bytes -= entry.kept.size();
                entry.kept = kept;
                entry.seen.accessed = entry.seen.accessed.max(accessed);
                let gone_at = entry.gone_at();
                if gone_at < entry.place {
                    self.expiry.remove(entry.place, number);
                    self.expiry.insert(gone_at, number);
                    entry.place = gone_at;
                }
            }
            None => self.insert(kept, Seen { accessed, worker: None }),
        }
    }

    /// A session that was read from the disk.
    pub fn load(&mut self, kept: Kept, seen: Seen) {
        self.bytes += kept.size();
        self.insert(Arc::new(kept), seen);
    }

    fn insert(&mut self, kept: Arc<Kept>, seen: Seen) {
        let (number, place) = (kept.number, kept.gone_at(seen.accessed));
        self.expiry.insert(place, number);
        self.by_id.insert(Arc::clone(&kept.id), number);
        self.by_number.insert(number, Entry { kept, seen, place, unwritten: false });
    }

    pub fn remove(&mut self, number: u64) {
        let Some(entry) = self.by_number.remove(&number) else { return };
        self.bytes -= entry.kept.size();
        self.expiry.remove(entry.place, number);
        if self.by_id.get(&entry.kept.id) == Some(&number) {
            self.by_id.remove(&entry.kept.id);
        }
    }

    /// Up to `limit` that have expired, without those that `known` names.
    pub fn expired(&mut self, now: Millis, limit: usize, known: impl Fn(u64) -> bool) -> Vec<u64> {
        let (mut expired, mut used_since) = (Vec::new(), Vec::new());
        for (place, number) in self.expiry.due(now) {
            if expired.len() == limit {
                break;
            }
            let gone_at = self.by_number.get(&number).map_or(place, Entry::gone_at);
            if gone_at > now {
                used_since.push((place, number, gone_at));
            } else if !known(number) {
                expired.push(number);
            }
        }
        self.expiry.looks += (expired.len() + used_since.len()) as u64;
        for (place, number, gone_at) in used_since {
            self.expiry.remove(place, number);
            self.expiry.insert(gone_at, number);
            if let Some(entry) = self.by_number.get_mut(&number) {
                entry.place = gone_at;
            }
        }
        expired
    }

    /// How many live.
    pub fn current(&self, now: Millis) -> u64 {
        let due = self.expiry.due(now);
        let gone = due.filter(|(_, n)| self.entry(*n).is_some_and(|entry| entry.gone(now))).count();
        self.len() - gone as u64
    }

    /// Up to `limit` of those used since they were written; they count as written from now on.
    pub fn take_used(&mut self, limit: usize) -> Vec<(u64, Seen)> {
        let mut taken = Vec::new();
        while taken.len() < limit
            && let Some(number) = self.used.pop()
        {
            if let Some(entry) = self.by_number.get_mut(&number) {
                entry.unwritten = false;
                taken.push((number, entry.seen.clone()));
            }
        }
        taken
    }

    /// What was taken could not be written.
    pub fn give_back_used(&mut self, numbers: impl Iterator<Item = u64>) {
        for number in numbers {
            if let Some(entry) = self.by_number.get_mut(&number) {
                mark_used(&mut self.used, entry, number);
            }
        }
    }
}

fn mark_used(used: &mut Vec<u64>, entry: &mut Entry, number: u64) {
    if !mem::replace(&mut entry.unwritten, true) {
        used.push(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::Programs;
    use crate::metadata;

    fn live(numbers: std::ops::RangeInclusive<u64>) -> Live {
        let mut live = Live::default();
        for number in numbers {
            live.put(Arc::new(kept(number)), 0);
        }
        live
    }

    fn kept(number: u64) -> Kept {
        Kept {
            number,
            id: format!("s{number}").into(),
            version: 1,
            metadata: metadata::empty(),
            created: 0,
            ttl: 100,
            expires: None,
            programs: Programs::new(),
            saved: BTreeMap::new(),
            strict: BTreeMap::new(),
        }
    }

    fn numbers(used: &[(u64, Seen)]) -> Vec<u64> {
        let mut numbers: Vec<u64> = used.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers
    }

    #[test]
    fn what_was_used_is_written_once_in_pieces_and_again_when_it_was_used_again() {
        let mut live = live(1..=4);
        for number in [1, 2, 1, 3, 2, 9] {
            live.touch(number, 10);
        }
        let mut written = live.take_used(2);
        written.extend(live.take_used(2));
        assert_eq!(numbers(&written), [1, 2, 3]);
        assert!(written.iter().all(|(_, seen)| seen.accessed == 10));
        assert!(live.take_used(2).is_empty());
        live.touch(2, 20);
        assert_eq!(numbers(&live.take_used(2)), [2]);
    }

    #[test]
    fn what_could_not_be_written_is_given_back_unless_it_is_gone() {
        let mut live = live(1..=3);
        for number in 1..=3 {
            live.touch(number, 10);
        }
        let taken = numbers(&live.take_used(10));
        live.touch(1, 20);
        live.remove(2);
        live.give_back_used(taken.into_iter());
        live.remove(3);
        assert_eq!(numbers(&live.take_used(1)), [1], "those that are gone are passed over");
    }

    #[test]
    fn a_use_while_a_change_is_committed_is_not_undone_by_it() {
        let mut live = live(1..=1);
        live.touch(1, 50);
        live.note_worker(1, "py-1");
        live.put(Arc::new(Kept { version: 2, ..kept(1) }), 30);
        let entry = live.entry(1).unwrap();
        assert_eq!((entry.kept.version, entry.seen.accessed), (2, 50));
        assert_eq!(entry.seen.worker.as_deref(), Some("py-1"));
    }
}
