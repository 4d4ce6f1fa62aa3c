//! The book of sessions and their processes, from what really happened: who was sent where, which
//! process ended, what was handed over. What a request of a session finds is known here before the
//! core says it.

use std::collections::{BTreeMap, BTreeSet};

use ostler_core::{Bond, BondStep, Continuity, ProcessId, SessionId, Settings, Time, WorkerId};

#[derive(Debug, Default)]
pub(super) struct Bonds {
    pub rows: BTreeMap<SessionId, Row>,
    /// Assignments to the process of the session, and to another.
    pub hits: u64,
    pub misses: u64,
    /// What a process said with this event of a session that it was to hand over.
    pub said: Option<(SessionId, bool)>,
    /// Sessions whose process ended with this event, of which watchers are to be told.
    pub bereft: BTreeSet<SessionId>,
    /// And those among them who had insisted on it.
    pub told_now: BTreeSet<SessionId>,
    /// Sessions that ended or were taken from their process with this event.
    pub freed: BTreeSet<SessionId>,
    pub by_hand: Option<(SessionId, WorkerId)>,
    /// What watchers were told just before an assignment.
    pub tied: Option<(SessionId, ProcessId, BondStep)>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub state: State,
    pub strict: bool,
    pub used: Time,
    /// The process that it last saw, unless it was told that it is another one now.
    pub seen: Option<ProcessId>,
    /// Times that it was handed over and not restored.
    pub saves: u32,
    /// What the next request finds where it was bound by hand.
    pub by_hand: Option<Continuity>,
    /// Requests of it that its process holds.
    pub running: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    At(ProcessId),
    Saving(ProcessId, Time),
    /// What the next request finds.
    Free(Continuity),
    /// It insisted, and is to be told.
    Lost,
}

impl Row {
    pub fn at(process: ProcessId, now: Time) -> Self {
        Row {
            state: State::At(process),
            strict: false,
            used: now,
            seen: None,
            saves: 0,
            by_hand: None,
            running: 0,
        }
    }

    pub fn home(&self) -> Option<ProcessId> {
        match self.state {
            State::At(process) | State::Saving(process, _) => Some(process),
            State::Free(_) | State::Lost => None,
        }
    }

    /// Hints forget in time.
    pub fn fresh(&self, now: Time, settings: &Settings) -> bool {
        self.strict || self.running > 0 || now.since(self.used) < settings.affinity_ttl
    }
}

impl Bonds {
    pub fn next_event(&mut self) {
        self.freed.clear();
        self.told_now.clear();
        self.by_hand = None;
    }

    pub fn bind_by_hand(&mut self, session: SessionId, worker: WorkerId) {
        self.by_hand = Some((session, worker));
    }

    /// Told by the process, if it was asked and is still waited for.
    pub fn hear_saved(&mut self, process: ProcessId, session: SessionId, saved: bool) {
        let row = self.rows.get(&session);
        if row.is_some_and(|r| matches!(r.state, State::Saving(at, _) if at == process)) {
            self.said = Some((session, saved));
        }
    }

    pub fn hear_exit(&mut self, process: ProcessId) {
        for (session, row) in &mut self.rows {
            if row.home() != Some(process) {
                continue;
            }
            row.state = State::Free(Continuity::Restarted);
            self.bereft.insert(*session);
            if row.strict {
                row.state = State::Lost;
                self.told_now.insert(*session);
            }
        }
    }

    pub fn end(&mut self, session: SessionId) {
        if self.rows.remove(&session).is_some_and(|row| row.home().is_some()) {
            self.freed.insert(session);
        }
    }

    /// What a request of this session finds at this process; nothing, if it may not go there.
    pub fn finds(&self, now: Time, bond: Bond, at: ProcessId, s: &Settings) -> Option<Continuity> {
        let strict = bond.affinity.strict();
        let Some(row) = self.rows.get(&bond.session) else { return Some(Continuity::Bound) };
        match row.state {
            State::At(home) if home == at => Some(row.by_hand.unwrap_or(Continuity::Same)),
            State::At(_) | State::Saving(..) | State::Lost if strict => None,
            State::At(_) if !row.fresh(now, s) => Some(Continuity::Bound),
            State::At(_) | State::Saving(..) => Some(Continuity::Elsewhere),
            State::Free(found) => Some(found),
            State::Lost => Some(Continuity::Restarted),
        }
    }

    /// Where a request of this session has to go, or would rather go.
    pub fn home_of(&self, session: SessionId) -> Option<ProcessId> {
        match self.rows.get(&session)?.state {
            State::At(process) => Some(process),
            _ => None,
        }
    }

    /// And where it is until it has been handed over.
    pub fn process_of(&self, session: SessionId) -> Option<ProcessId> {
        self.rows.get(&session)?.home()
    }

    pub fn is_tied(&self, session: SessionId) -> bool {
        self.rows.get(&session).is_some_and(|row| row.home().is_some())
    }

    pub fn save_due(&self, settings: &Settings) -> Option<Time> {
        let saving = self.rows.values().filter_map(|row| match row.state {
            State::Saving(_, since) => Some(since.after(settings.save_timeout)),
            _ => None,
        });
        saving.min()
    }

    pub fn any_at(&self, process: ProcessId) -> bool {
        self.rows.values().any(|row| row.home() == Some(process))
    }

    pub fn assigned(
        &mut self,
        now: Time,
        bond: Bond,
        (at, running): (ProcessId, u32),
        found: Continuity,
    ) {
        let strict = bond.affinity.strict();
        let known = self.rows.get(&bond.session).map(|row| row.state);
        match known {
            Some(State::At(home)) if home == at => {
                self.hits += u64::from(found == Continuity::Same);
            }
            Some(_) => self.misses += 1,
            None => {}
        }
        let row = self.rows.entry(bond.session).or_insert(Row::at(at, now));
        row.used = now;
        row.saves -= u32::from(found == Continuity::Restored);
        if found != Continuity::Elsewhere {
            row.running = running;
            row.state = State::At(at);
            row.by_hand = None;
            row.strict |= strict;
            row.seen = Some(at);
            row.running += 1;
        }
    }

    /// A process let go of a request that was its own.
    pub fn finished(&mut self, now: Time, session: SessionId, process: ProcessId) {
        let row = self.rows.get_mut(&session);
        if let Some(row) = row.filter(|row| row.state == State::At(process)) {
            row.running = row.running.saturating_sub(1);
            row.used = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ostler_core::Affinity;

    use super::*;

    const SESSION: SessionId = SessionId(1);
    const HERE: ProcessId = ProcessId { worker: WorkerId(1), generation: 1 };
    const THERE: ProcessId = ProcessId { worker: WorkerId(2), generation: 1 };

    fn settings() -> Settings {
        Settings { affinity_ttl: Duration::from_secs(9), ..Settings::of_size(2) }
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO.after(Duration::from_secs(seconds))
    }

    fn bond(affinity: Affinity) -> Bond {
        Bond { session: SESSION, affinity }
    }

    /// A session that was served here, and is idle since.
    fn served(affinity: Affinity) -> Bonds {
        let mut bonds = Bonds::default();
        bonds.assigned(at(0), bond(affinity), (HERE, 0), Continuity::Bound);
        bonds.finished(at(0), SESSION, HERE);
        bonds
    }

    fn finds(
        bonds: &Bonds,
        now: u64,
        affinity: Affinity,
        at_process: ProcessId,
    ) -> Option<Continuity> {
        bonds.finds(at(now), bond(affinity), at_process, &settings())
    }

    #[test]
    fn a_strict_session_may_go_nowhere_else() {
        let bonds = served(Affinity::StrictQueue);
        assert_eq!(finds(&bonds, 1, Affinity::StrictQueue, HERE), Some(Continuity::Same));
        assert_eq!(finds(&bonds, 99, Affinity::StrictQueue, THERE), None);
    }

    #[test]
    fn a_hint_goes_elsewhere_and_in_time_forgets() {
        let bonds = served(Affinity::Hint);
        assert_eq!(finds(&bonds, 8, Affinity::Hint, THERE), Some(Continuity::Elsewhere));
        assert_eq!(finds(&bonds, 9, Affinity::Hint, THERE), Some(Continuity::Bound));
    }

    #[test]
    fn whoever_insisted_is_to_be_told_and_the_others_begin_anew() {
        let mut bonds = served(Affinity::StrictQueue);
        bonds.hear_exit(HERE);
        assert_eq!(finds(&bonds, 1, Affinity::StrictQueue, THERE), None);
        let mut bonds = served(Affinity::Hint);
        bonds.hear_exit(HERE);
        assert_eq!(finds(&bonds, 1, Affinity::StrictQueue, THERE), Some(Continuity::Restarted));
    }
}
