//! The sessions and keys that calls belong to, and what processes do when they are asked to hand a
//! session over. There are few of them, so that they meet.

use ostler_core::{Bond, Event, KeyId, ProcessId, SessionId, Target};

use super::process::Step;
use super::{Happening, World};
use crate::violation::Verdict;

/// Who owns the requests of a session: nobody else does.
const OWNERS: u64 = 1_000;

/// The current name of each; an ended one is followed by one of another name.
#[derive(Debug, Default)]
pub(crate) struct Names {
    sessions: Vec<SessionId>,
    keys: Vec<KeyId>,
    given: u64,
}

/// What a call belongs to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Belonging {
    pub bond: Option<Bond>,
    pub key: Option<KeyId>,
}

impl Belonging {
    pub fn owner(&self, target: Target) -> Option<u64> {
        self.bond.filter(|_| target == Target::Any).map(|bond| OWNERS + bond.session.0)
    }
}

impl Names {
    pub fn new(sessions: u32, keys: u32) -> Self {
        let mut names = Names::default();
        names.sessions = (0..sessions).map(|_| SessionId(names.name())).collect();
        names.keys = (0..keys).map(|_| KeyId(names.name())).collect();
        names
    }

    fn name(&mut self) -> u64 {
        self.given += 1;
        self.given
    }
}

impl World {
    /// A session always asks for the same key.
    pub(super) fn belonging(&mut self, target: Target) -> Belonging {
        let state = &self.profile.state;
        let (sessions, keys) = (self.names.sessions.len() as u64, self.names.keys.len() as u64);
        let slot = self.prng.chance(state.bonded).then(|| self.prng.below(sessions));
        let affinity = slot.and_then(|_| self.prng.pick(&self.profile.state.affinities));
        let bond = slot
            .zip(affinity)
            .map(|(slot, affinity)| Bond { session: self.names.sessions[slot as usize], affinity });
        if keys == 0 || target != Target::Any || self.prng.chance(0.02) {
            return Belonging { bond, key: None };
        }
        let key = slot.unwrap_or_else(|| self.prng.below(keys)) % keys;
        Belonging { bond, key: Some(self.names.keys[key as usize]) }
    }

    pub(super) fn some_session(&mut self) -> Option<SessionId> {
        self.prng.pick(&self.names.sessions)
    }

    pub(super) fn end_session(&mut self) -> Verdict {
        let slot = self.prng.below(self.names.sessions.len() as u64) as usize;
        self.end_session_at(slot)
    }

    fn end_session_at(&mut self, slot: usize) -> Verdict {
        let next = SessionId(self.names.name());
        let session = std::mem::replace(&mut self.names.sessions[slot], next);
        self.deliver(Event::SessionEnded { session })
    }

    /// The sessions of a key go with it.
    pub(super) fn end_key(&mut self) -> Verdict {
        let keys = self.names.keys.len();
        let slot = self.prng.below(keys as u64) as usize;
        for session in (slot..self.names.sessions.len()).step_by(keys) {
            self.end_session_at(session)?;
        }
        let next = KeyId(self.names.name());
        let key = std::mem::replace(&mut self.names.keys[slot], next);
        self.deliver(Event::KeyEnded { key })
    }

    pub(super) fn see_save(&mut self, id: ProcessId, session: SessionId) -> Verdict {
        let saving = self.profile.state.saving.clone();
        if self.processes[&id].stream_closed || self.prng.chance(saving.never_answers) {
            return Ok(());
        }
        if self.prng.chance(saving.dies) {
            let exit = self.own_end();
            return self.die(id, exit);
        }
        let saved = !self.prng.chance(saving.refuses);
        let wait = self.prng.wait(saving.takes);
        self.plan_in(wait, Happening::Step(id, Step::Saved { session, saved }));
        Ok(())
    }

    pub(super) fn saved(&mut self, id: ProcessId, session: SessionId, saved: bool) {
        if !self.processes[&id].stream_closed {
            self.report(id, Event::SessionSaved { process: id, session, saved });
        }
    }
}
