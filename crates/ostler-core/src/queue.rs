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

    /// How many go before one more request of this owner: all of a higher priority, and of each
    /// owner at its own one as many as it has turns until then. Looks at each owner.
    pub fn len_before(&self, priority: i8, owner: u64) -> usize {
        let higher =
            self.bands.range(..Reverse(priority)).flat_map(|(_, band)| band.lanes.values());
        let higher: usize = higher.map(|lane| lane.waiting.len()).sum();
        let Some(band) = self.bands.get(&Reverse(priority)) else { return higher };
        let own = band.lanes.get(&owner).map_or(0, |lane| lane.waiting.len());
        let before = |(of, lane): (&u64, &Lane)| {
            lane.waiting.len().min(if *of == owner { own } else { own + 1 })
        };
        higher + band.lanes.iter().map(before).sum::<usize>()
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
    fn those_before_a_newcomer_are_counted_by_turns() {
        let mut queue = FairQueue::default();
        for id in 0..100 {
            queue.push(0, 1, RequestId(id));
        }
        queue.push(0, 2, RequestId(100));
        queue.push(5, 3, RequestId(101));
        assert_eq!(queue.len_before(0, 1), 1 + 100 + 1);
        assert_eq!(queue.len_before(0, 2), 1 + 2 + 1);
        assert_eq!(queue.len_before(0, 9), 1 + 1 + 1);
        assert_eq!((queue.len_before(5, 9), queue.len_before(6, 9)), (1, 0));
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
