//! Sessions and keys, and what becomes of them.

use ostler_core::{
    Action, Affinity, Bond, BondStep, Event, KeyId, Notice, OrderId, ProcessId, Ready, SessionId,
    WorkerId,
};

use super::{READY, Stage};

pub const HINT: Affinity = Affinity::Hint;
pub const STRICT: Affinity = Affinity::StrictQueue;
pub const AT_ONCE: Affinity = Affinity::StrictFailFast;

/// What is told of a session and a process.
pub fn step(session: u64, process: ProcessId, step: BondStep) -> Notice {
    Notice::Session { session: SessionId(session), process, step }
}

impl Stage {
    /// A request of a session.
    pub fn arrive_in(&mut self, id: u64, session: u64, affinity: Affinity) {
        let bond = Some(Bond { session: SessionId(session), affinity });
        self.arrive_as(id, |spec| spec.bond = bond);
    }

    /// A request of a key.
    pub fn arrive_of(&mut self, id: u64, key: u64) {
        self.arrive_as(id, |spec| spec.key = Some(KeyId(key)));
    }

    /// A request of a session that is the key of its worker.
    pub fn arrive_keyed(&mut self, id: u64, session: u64, affinity: Affinity) {
        let bond = Some(Bond { session: SessionId(session), affinity });
        self.arrive_as(id, |spec| (spec.bond, spec.key) = (bond, Some(KeyId(session))));
    }

    /// A process that cannot hand over what it keeps of a session.
    pub fn become_ready_without_hooks(&mut self, process: ProcessId) {
        let ready = Ready { saves_sessions: false, ..READY };
        self.feed(Event::ProcessReady { process, ready });
    }

    pub fn saved(&mut self, session: u64, process: ProcessId) {
        self.answer_save(session, process, true);
    }

    pub fn not_saved(&mut self, session: u64, process: ProcessId) {
        self.answer_save(session, process, false);
    }

    fn answer_save(&mut self, session: u64, process: ProcessId, saved: bool) {
        self.feed(Event::SessionSaved { process, session: SessionId(session), saved });
    }

    pub fn end_session(&mut self, session: u64) {
        self.feed(Event::SessionEnded { session: SessionId(session) });
    }

    pub fn end_key(&mut self, key: u64) {
        self.feed(Event::KeyEnded { key: KeyId(key) });
    }

    pub fn bind(&mut self, session: u64, worker: u64) -> OrderId {
        self.order(Action::Bind { session: SessionId(session), worker: WorkerId(worker) })
    }

    pub fn unbind(&mut self, session: u64) -> OrderId {
        self.order(Action::Unbind(SessionId(session)))
    }

    pub fn binding(&self, session: u64) -> Option<ProcessId> {
        self.pool.binding(SessionId(session))
    }

    /// What was told of sessions since the last look.
    pub fn steps(&mut self) -> Vec<Notice> {
        let of_sessions = |notice: &Notice| matches!(notice, Notice::Session { .. });
        self.notices().into_iter().filter(of_sessions).collect()
    }

    pub fn hits_and_misses(&self) -> (u64, u64) {
        let counters = self.counters();
        (counters.affinity_hits, counters.affinity_misses)
    }
}
