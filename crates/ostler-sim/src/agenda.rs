//! What is going to happen, in the order of time; things of the same moment in the order in
//! which they were planned.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use ostler_core::Time;

#[derive(Debug)]
pub struct Agenda<T> {
    entries: BinaryHeap<Entry<T>>,
    planned: u64,
}

#[derive(Debug)]
struct Entry<T> {
    at: Time,
    turn: u64,
    what: T,
}

impl<T> Agenda<T> {
    pub fn new() -> Self {
        Agenda { entries: BinaryHeap::new(), planned: 0 }
    }

    pub fn plan(&mut self, at: Time, what: T) {
        self.planned += 1;
        self.entries.push(Entry { at, turn: self.planned, what });
    }

    pub fn next_at(&self) -> Option<Time> {
        self.entries.peek().map(|entry| entry.at)
    }

    pub fn take(&mut self) -> Option<T> {
        self.entries.pop().map(|entry| entry.what)
    }
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Agenda::new()
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        // The heap gives the greatest first; the soonest is wanted.
        (other.at, other.turn).cmp(&(self.at, self.turn))
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Entry<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soonest_comes_first_and_equals_keep_their_order() {
        let mut agenda = Agenda::new();
        for (at, what) in [(5, "c"), (1, "a"), (5, "d"), (3, "b")] {
            agenda.plan(Time::from_nanos(at), what);
        }
        assert_eq!(agenda.next_at(), Some(Time::from_nanos(1)));
        let order: Vec<_> = std::iter::from_fn(|| agenda.take()).collect();
        assert_eq!(order, ["a", "b", "c", "d"]);
    }
}
