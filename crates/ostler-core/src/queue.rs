//! Requests that wait: priority first, then owners in turn, then arrival. Every operation is
//! O(log n), so that a long queue makes nobody slower.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::id::{IdMap, RequestId};

#[derive(Debug, Default)]
pub(crate) struct FairQueue {
    bands: BTreeMap<Reverse<i8>, Band>,
    len: usize,
}

/// The waiting requests of one priority.
#[derive(Debug, Default)]
struct Band {
    /// Owners in the order in which they come next.
    turns: BTreeMap<u64, u64>,
    lanes: IdMap<u64, Lane>,
    next_turn: u64,
}

/// The waiting requests of one owner, in order of arrival (ids rise).
#[derive(Debug)]
struct Lane {
    turn: u64,
    waiting: BTreeSet<RequestId>,
}

impl FairQueue {
    pub fn push(&mut self, priority: i8, owner: u64, request: RequestId) {
        self.len += 1;
        self.bands.entry(Reverse(priority)).or_default().push(owner, request);
    }

    pub fn pop(&mut self) -> Option<RequestId> {
        let mut band = self.bands.first_entry()?;
        let request = band.get_mut().pop();
        if band.get().turns.is_empty() {
            band.remove();
        }
        self.len -= 1;
        Some(request)
    }

    pub fn remove(&mut self, priority: i8, owner: u64, request: RequestId) -> bool {
        let Some(band) = self.bands.get_mut(&Reverse(priority)) else { return false };
        if !band.remove(owner, request) {
            return false;
        }
        if band.turns.is_empty() {
            self.bands.remove(&Reverse(priority));
        }
        self.len -= 1;
        true
    }

    /// The first to have arrived. Looks at one request per owner.
    pub fn oldest(&self) -> Option<RequestId> {
        let lanes = self.bands.values().flat_map(|band| band.lanes.values());
        lanes.filter_map(|lane| lane.waiting.first()).min().copied()
    }

    /// The one that `pop` would take.
    pub fn first(&self) -> Option<RequestId> {
        let (_, band) = self.bands.first_key_value()?;
        let (_, owner) = band.turns.first_key_value()?;
        band.lanes[owner].waiting.first().copied()
    }

    /// How many of this priority or a higher one wait. Looks at each owner.
    pub fn len_before(&self, priority: i8) -> usize {
        let before = self.bands.range(..=Reverse(priority)).map(|(_, band)| band);
        before.flat_map(|band| band.lanes.values()).map(|lane| lane.waiting.len()).sum()
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All of them, by priority, then by owner.
    pub fn iter(&self) -> impl Iterator<Item = RequestId> + '_ {
        let turns =
            self.bands.values().flat_map(|band| band.turns.values().map(move |o| (band, o)));
        turns.flat_map(|(band, owner)| band.lanes[owner].waiting.iter().copied())
    }
}

impl Band {
    fn push(&mut self, owner: u64, request: RequestId) {
        let (turns, next_turn) = (&mut self.turns, &mut self.next_turn);
        let lane = self.lanes.entry(owner).or_insert_with(|| {
            let turn = *next_turn;
            *next_turn += 1;
            turns.insert(turn, owner);
            Lane { turn, waiting: BTreeSet::new() }
        });
        lane.waiting.insert(request);
    }

    fn pop(&mut self) -> RequestId {
        let (_, owner) = self.turns.pop_first().expect("a band is never empty");
        let lane = self.lanes.get_mut(&owner).expect("an owner with a turn has a lane");
        let request = lane.waiting.pop_first().expect("a lane is never empty");
        if lane.waiting.is_empty() {
            self.lanes.remove(&owner);
        } else {
            lane.turn = self.next_turn;
            self.turns.insert(self.next_turn, owner);
            self.next_turn += 1;
        }
        request
    }

    fn remove(&mut self, owner: u64, request: RequestId) -> bool {
        let Some(lane) = self.lanes.get_mut(&owner) else { return false };
        let removed = lane.waiting.remove(&request);
        if lane.waiting.is_empty() {
            self.turns.remove(&lane.turn);
            self.lanes.remove(&owner);
        }
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(queue: &mut FairQueue) -> Vec<u64> {
        std::iter::from_fn(|| queue.pop()).map(|id| id.0).collect()
    }

    #[test]
    fn higher_priority_goes_first_and_equals_keep_their_order() {
        let mut queue = FairQueue::default();
        for (priority, id) in [(0, 1), (5, 2), (0, 3), (-3, 4), (5, 5)] {
            queue.push(priority, 0, RequestId(id));
        }
        assert_eq!(drain(&mut queue), [2, 5, 1, 3, 4]);
    }

    #[test]
    fn owners_take_turns() {
        let mut queue = FairQueue::default();
        for id in 0..5 {
            queue.push(0, 1, RequestId(id));
        }
        queue.push(0, 2, RequestId(10));
        queue.push(0, 2, RequestId(11));
        assert_eq!(drain(&mut queue), [0, 10, 1, 11, 2, 3, 4]);
    }

    #[test]
    fn a_removed_request_is_never_taken_and_its_owner_loses_the_turn() {
        let mut queue = FairQueue::default();
        queue.push(0, 1, RequestId(1));
        queue.push(0, 2, RequestId(2));
        assert!(queue.remove(0, 1, RequestId(1)));
        assert!(!queue.remove(0, 1, RequestId(1)));
        assert_eq!(queue.oldest(), Some(RequestId(2)));
        assert_eq!(drain(&mut queue), [2]);
        assert!(queue.is_empty());
    }

    #[test]
    fn the_second_owner_waits_for_at_most_one_of_the_first_per_request_of_its_own() {
        let mut queue = FairQueue::default();
        for id in 0..1_000 {
            queue.push(0, 1, RequestId(id));
        }
        for id in 1_000..1_010 {
            queue.push(0, 2, RequestId(id));
        }
        let order = drain(&mut queue);
        for k in 1..=10 {
            let at = order.iter().position(|id| *id == 1_000 + k - 1).unwrap();
            assert!(at as u64 <= 2 * k, "the {k}-th of B came at {at}");
        }
    }
}
