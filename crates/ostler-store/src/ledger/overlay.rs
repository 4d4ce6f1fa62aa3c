//! What is known of one table without asking the backend: rows that were read or written lately,
//! and among them those that are not written yet. One node owns the ledger, so what it knows stays
//! true until it changes it itself.

use std::collections::HashMap;
use std::hash::Hash;

#[derive(Debug)]
pub(super) struct Overlay<K, V> {
    /// Two generations: what nobody asked for while the young one filled up is forgotten with the
    /// old one. None: there is no such row.
    young: HashMap<K, Slot<V>>,
    old: HashMap<K, Option<V>>,
    unwritten: Vec<K>,
    max: usize,
}

#[derive(Debug)]
struct Slot<V> {
    value: Option<V>,
    unwritten: bool,
}

impl<K: Clone + Eq + Hash, V: Clone> Overlay<K, V> {
    /// Knows at most `max` rows between two transactions.
    pub fn new(max: usize) -> Self {
        Overlay { young: HashMap::new(), old: HashMap::new(), unwritten: Vec::new(), max }
    }

    /// None: not known.
    pub fn get(&mut self, key: &K) -> Option<&Option<V>> {
        if let Some(value) = self.old.remove(key) {
            self.young.insert(key.clone(), Slot { value, unwritten: false });
        }
        self.young.get(key).map(|slot| &slot.value)
    }

    /// As it was read. What is known already is newer and stays.
    pub fn learn(&mut self, key: K, value: Option<V>) {
        if self.get(&key).is_none() {
            self.young.insert(key, Slot { value, unwritten: false });
        }
    }

    pub fn put(&mut self, key: K, value: Option<V>) {
        self.old.remove(&key);
        let before = self.young.insert(key.clone(), Slot { value, unwritten: true });
        if !before.is_some_and(|slot| slot.unwritten) {
            self.unwritten.push(key);
        }
    }

    /// What has to be written now, each row once, as it is by now.
    pub fn take_unwritten(&mut self) -> Vec<(K, Option<V>)> {
        let mut rows = Vec::with_capacity(self.unwritten.len());
        for key in self.unwritten.drain(..) {
            let slot = self.young.get_mut(&key).expect("what is unwritten is known");
            slot.unwritten = false;
            rows.push((key, slot.value.clone()));
        }
        rows
    }

    /// Between two transactions only.
    pub fn forget(&mut self, key: &K) {
        self.young.remove(key);
        self.old.remove(key);
    }

    /// Between two transactions only. `now`: whether it is full or not.
    pub fn age(&mut self, now: bool) {
        debug_assert!(self.unwritten.is_empty(), "what is unwritten must not be forgotten");
        if now || self.young.len() > self.max / 2 {
            self.old = self.young.drain().map(|(key, slot)| (key, slot.value)).collect();
        }
    }

    pub fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
        self.unwritten.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_written_once_as_it_is_in_the_end() {
        let mut overlay = Overlay::new(8);
        overlay.put("a", Some(1));
        overlay.put("b", None);
        overlay.put("a", Some(2));
        assert_eq!(overlay.take_unwritten(), [("a", Some(2)), ("b", None)]);
        assert_eq!(overlay.take_unwritten(), []);
        overlay.put("a", Some(3));
        assert_eq!(overlay.take_unwritten(), [("a", Some(3))]);
    }

    #[test]
    fn what_was_read_does_not_replace_what_is_to_be_written() {
        let mut overlay = Overlay::new(8);
        overlay.put("a", Some(2));
        overlay.learn("a", Some(1));
        assert_eq!(overlay.get(&"a"), Some(&Some(2)));
    }

    #[test]
    fn only_what_is_asked_for_stays_known() {
        let mut overlay = Overlay::new(4);
        for n in 0..3 {
            overlay.learn(n, Some(n));
        }
        overlay.age(false);
        assert_eq!(overlay.get(&0), Some(&Some(0)), "the old generation is still known");
        for n in 10..13 {
            overlay.learn(n, Some(n));
        }
        overlay.age(false);
        assert_eq!(overlay.get(&0), Some(&Some(0)));
        assert_eq!(overlay.get(&1), None);
    }
}
