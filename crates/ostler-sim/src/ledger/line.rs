//! Who waits, and whose turn it is: priority, then owners in turn, then arrival. Only requests
//! that were never sent anywhere are in line; what comes back from a worker has been served once.

use std::collections::{BTreeMap, VecDeque};

use ostler_core::{KeyId, LeaseId, RequestId, RequestSpec, SessionId, Target};

use crate::violation::{Verdict, require};

/// Requests that compete for the same workers.
type Door = (u8, u64, u32);

#[derive(Debug, Default)]
pub(super) struct Line {
    lanes: BTreeMap<(Door, i8), BTreeMap<u64, Lane>>,
    len: usize,
    /// Requests of keys have come: they share the line of their worker with those who named it.
    keyed: bool,
}

/// Those of one owner.
#[derive(Debug, Default)]
struct Lane {
    waiting: VecDeque<RequestId>,
    /// How often each other owner was served since this one last was.
    passed: BTreeMap<u64, u32>,
}

/// Those of a session go where it is bound, and those of a key to its worker.
fn door(spec: &RequestSpec) -> Door {
    match spec.target {
        Target::Any => match (spec.bond, spec.key) {
            (Some(bond), _) => (4, bond.session.0, u32::from(bond.affinity.strict())),
            (None, Some(key)) => (3, key.0, 0),
            (None, None) => (0, 0, 0),
        },
        Target::Worker(worker) => (1, worker.0, 0),
        Target::Lease(lease, place) => (2, lease.0, place),
    }
}

/// A place of a lease has one holder: there, only arrival counts.
fn key(spec: &RequestSpec) -> ((Door, i8), u64) {
    match spec.target {
        Target::Lease(..) => ((door(spec), 0), 0),
        // Reversed, so that the first is the one to be served.
        _ => ((door(spec), -spec.priority), spec.owner),
    }
}

impl Line {
    pub fn len(&self) -> usize {
        self.len
    }

    /// Someone waits whom any worker of the pool may serve.
    pub fn waits_for_any(&self) -> Option<RequestId> {
        let (((door, _), lanes), any) = (self.lanes.first_key_value()?, (0, 0, 0));
        let first = lanes.values().next().filter(|_| *door == any)?;
        first.waiting.front().copied()
    }

    pub fn waits_for(&self, worker: u64) -> bool {
        let door = (1, worker, 0);
        self.lanes.range((door, i8::MIN)..=(door, i8::MAX)).next().is_some()
    }

    pub fn waits_for_key(&self, key: KeyId) -> bool {
        let door = (3, key.0, 0);
        self.lanes.range((door, i8::MIN)..=(door, i8::MAX)).next().is_some()
    }

    /// The sessions of those who wait, and whether these insist on its process.
    pub fn waiting_sessions(&self) -> impl Iterator<Item = (SessionId, bool)> + '_ {
        let lanes = self.lanes.range(((4, 0, 0), i8::MIN)..);
        lanes.map(|(((_, session, strict), _), _)| (SessionId(*session), *strict == 1))
    }

    pub fn waited_for_leases(&self) -> impl Iterator<Item = (LeaseId, u32)> + '_ {
        let lanes = self.lanes.range(((2, 0, 0), i8::MIN)..((3, 0, 0), i8::MIN));
        lanes.map(|(((_, lease, place), _), _)| (LeaseId(*lease), *place))
    }

    pub fn join(&mut self, request: RequestId, spec: &RequestSpec) {
        let (band, owner) = key(spec);
        let lane = self.lanes.entry(band).or_default().entry(owner).or_default();
        lane.waiting.push_back(request);
        self.len += 1;
        self.keyed |= band.0.0 == 3;
    }

    pub fn leave(&mut self, request: RequestId, spec: &RequestSpec) {
        let (band, owner) = key(spec);
        let Some(lanes) = self.lanes.get_mut(&band) else { return };
        let Some(lane) = lanes.get_mut(&owner) else { return };
        let Ok(at) = lane.waiting.binary_search(&request) else { return };
        lane.waiting.remove(at);
        // One that ends when its turn comes has used the turn.
        lane.passed.clear();
        self.len -= 1;
        if lane.waiting.is_empty() {
            lanes.remove(&owner);
        }
        if lanes.is_empty() {
            self.lanes.remove(&band);
        }
    }

    /// A request that had been away comes to a worker again: that was its owner's turn, too.
    pub fn serve_again(&mut self, spec: &RequestSpec) -> Verdict {
        let (band, owner) = key(spec);
        self.use_turn(spec);
        if matches!(band.0.0, 3 | 4) || (self.keyed && band.0.0 == 1) {
            return Ok(());
        }
        self.lanes.get_mut(&band).map_or(Ok(()), |lanes| pass_others(lanes, owner))
    }

    /// An owner's turn came, whatever became of it.
    pub fn use_turn(&mut self, spec: &RequestSpec) {
        let (band, owner) = key(spec);
        let lane = self.lanes.get_mut(&band).and_then(|lanes| lanes.get_mut(&owner));
        if let Some(lane) = lane {
            lane.passed.clear();
        }
    }

    /// Takes a request out of line because a worker gets it.
    pub fn serve(&mut self, request: RequestId, spec: &RequestSpec) -> Verdict {
        let ((door, priority), owner) = key(spec);
        if spec.bond.is_some() && spec.target == Target::Any {
            // Sessions wait for their processes, not for a turn.
            self.leave(request, spec);
            return Ok(());
        }
        let better = self.lanes.range((door, i8::MIN)..(door, priority)).next();
        require!(
            better.is_none(),
            "higher priority goes first",
            "{request:?} of priority {} passed {better:?}",
            spec.priority
        );
        let lanes = self.lanes.get_mut(&(door, priority)).expect("it is in line");
        let own = lanes.get_mut(&owner).expect("it is in line");
        let first = own.waiting.front();
        require!(
            first == Some(&request),
            "first come, first served",
            "{request:?} of owner {owner} passed {first:?}"
        );
        own.passed.clear();
        // Whoever waits for a worker of its key begins anew when that is another one.
        if door.0 != 3 && !(self.keyed && door.0 == 1) {
            pass_others(lanes, owner)?;
        }
        self.leave(request, spec);
        Ok(())
    }
}

fn pass_others(lanes: &mut BTreeMap<u64, Lane>, owner: u64) -> Verdict {
    for (other, lane) in lanes.iter_mut().filter(|(other, _)| **other != owner) {
        let passed = lane.passed.entry(owner).or_default();
        *passed += 1;
        require!(
            *passed <= 1,
            "owners take turns",
            "owner {owner} was served {passed} times while {other} waited"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ostler_core::Time;

    use super::*;

    fn spec(priority: i8, owner: u64) -> RequestSpec {
        RequestSpec { priority, owner, ..RequestSpec::until(Time::from_nanos(1)) }
    }

    fn line(waiting: &[(u64, i8, u64)]) -> Line {
        let mut line = Line::default();
        for (id, priority, owner) in waiting {
            line.join(RequestId(*id), &spec(*priority, *owner));
        }
        line
    }

    fn finding(verdict: Verdict) -> &'static str {
        verdict.expect_err("it is a finding").checker
    }

    #[test]
    fn passing_a_higher_priority_is_a_finding() {
        let mut line = line(&[(1, 0, 1), (2, 50, 1)]);
        assert_eq!(finding(line.serve(RequestId(1), &spec(0, 1))), "higher priority goes first");
    }

    #[test]
    fn passing_an_elder_of_the_same_owner_is_a_finding() {
        let mut line = line(&[(1, 0, 1), (2, 0, 1)]);
        assert_eq!(finding(line.serve(RequestId(2), &spec(0, 1))), "first come, first served");
    }

    #[test]
    fn serving_one_owner_twice_while_another_waits_is_a_finding() {
        let mut line = line(&[(1, 0, 1), (2, 0, 1), (3, 0, 2)]);
        assert_eq!(line.serve(RequestId(1), &spec(0, 1)), Ok(()));
        assert_eq!(finding(line.serve(RequestId(2), &spec(0, 1))), "owners take turns");
    }

    #[test]
    fn who_leaves_no_longer_waits() {
        let mut line = line(&[(1, 50, 1), (2, 0, 1)]);
        line.leave(RequestId(1), &spec(50, 1));
        assert_eq!((line.len(), line.waits_for_any()), (1, Some(RequestId(2))));
        assert_eq!(line.serve(RequestId(2), &spec(0, 1)), Ok(()));
    }
}
