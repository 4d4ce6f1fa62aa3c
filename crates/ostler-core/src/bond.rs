//! Sessions and the processes they are bound to.
//!
//! ```text
//!              ┌──────────────────── next request ◀─────────────────────┐
//!              ▼                                                        │
//!   (none) ─▶ Held ──its worker leaves──▶ Saving ──▶ Free(Restored | Restarted)
//!     ▲        │ └───────────────── knows no saving ──────▶ Free(Restarted)
//!     │        └──its process ends──▶ Lost (strict), Free(Restarted) (hint)
//!     └──────────────told once──────────┘
//! ```
//! A binding is to an incarnation, never to a worker: the next process of the same worker knows
//! nothing of the session.
//!
//! Who is bound where is written here and nowhere else. What follows from it is decided beside it:
//! whom a request may go to in `way`, how sessions leave a worker that is to go in `moving`.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::command::{BondStep, Command, Continuity, Notice, Refusal, Reply};
use crate::event::{Bond, Target};
use crate::id::{IdMap, OrderId, ProcessId, RequestId, SessionId, WorkerId};
use crate::pool::{Cx, Pool};
use crate::request::Place;
use crate::time::Time;

#[derive(Debug, Default)]
pub(crate) struct Bonds {
    ties: IdMap<SessionId, Tie>,
    /// The sessions of each process.
    at: BTreeSet<(ProcessId, SessionId)>,
    /// Those of them that are being saved.
    saving: BTreeSet<(ProcessId, SessionId)>,
}

#[derive(Debug)]
struct Tie {
    knot: Knot,
    /// It was insisted on: its loss is told.
    strict: bool,
    used: Time,
    /// Requests of the session that its process holds.
    running: u32,
    /// What the next request finds there, if it was bound by hand.
    finds: Option<Continuity>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Knot {
    Held(ProcessId),
    Saving {
        process: ProcessId,
        since: Time,
    },
    /// What the next request finds.
    Free(Continuity),
    Lost,
}

/// The worker that a session draws its requests to, and how strongly.
pub(crate) enum Pull {
    Rather(WorkerId),
    Only(WorkerId),
    /// The old one, until it has handed over.
    Awaits(WorkerId),
}

impl Bonds {
    pub fn pull(&self, now: Time, bond: Bond, ttl: Duration) -> Option<Pull> {
        let tie = self.ties.get(&bond.session)?;
        match (tie.knot, bond.affinity.strict()) {
            (Knot::Held(process), true) => Some(Pull::Only(process.worker)),
            (Knot::Held(process), false) => {
                let fresh = tie.strict || tie.running > 0 || now.since(tie.used) < ttl;
                fresh.then_some(Pull::Rather(process.worker))
            }
            (Knot::Saving { process, .. }, true) => Some(Pull::Awaits(process.worker)),
            (Knot::Saving { .. }, false) | (Knot::Free(_) | Knot::Lost, _) => None,
        }
    }

    pub fn is_lost(&self, session: SessionId) -> bool {
        self.ties.get(&session).is_some_and(|tie| tie.knot == Knot::Lost)
    }

    pub fn is_tied(&self, session: SessionId) -> bool {
        let knot = self.ties.get(&session).map(|tie| tie.knot);
        matches!(knot, Some(Knot::Held(_) | Knot::Saving { .. }))
    }

    /// The loss was told.
    pub fn told(&mut self, session: SessionId) {
        if self.is_lost(session) {
            self.ties.remove(&session);
        }
    }

    fn hold(&mut self, session: SessionId, process: ProcessId, tie: Tie) {
        self.untie(session);
        self.ties.insert(session, tie);
        self.at.insert((process, session));
    }

    /// What the next request of a session finds in a process that it is bound to by hand.
    fn found_by_hand(&self, session: SessionId, process: ProcessId) -> Option<Continuity> {
        let Some(tie) = self.ties.get(&session) else { return Some(Continuity::Bound) };
        match tie.knot {
            Knot::Held(held) if held == process => tie.finds,
            Knot::Free(found) => Some(found),
            Knot::Held(_) | Knot::Saving { .. } | Knot::Lost => Some(Continuity::Restarted),
        }
    }

    pub fn is_strict(&self, session: SessionId) -> bool {
        self.ties.get(&session).is_some_and(|tie| tie.strict)
    }

    /// Takes the session from its process, if it has one.
    fn untie(&mut self, session: SessionId) -> Option<ProcessId> {
        let tie = self.ties.get_mut(&session)?;
        let (Knot::Held(process) | Knot::Saving { process, .. }) = tie.knot else { return None };
        tie.knot = Knot::Free(Continuity::Restarted);
        tie.running = 0;
        self.at.remove(&(process, session));
        self.saving.remove(&(process, session));
        Some(process)
    }

    /// Takes the session from its process; `knot` is what is left of that.
    pub fn leave(&mut self, session: SessionId, knot: Knot) {
        self.untie(session);
        self.ties.get_mut(&session).expect("it was bound").knot = knot;
    }

    fn forget(&mut self, session: SessionId) -> Option<ProcessId> {
        let process = self.untie(session);
        self.ties.remove(&session);
        process
    }

    /// A request of the session was let go of.
    pub fn finished(&mut self, session: SessionId, process: ProcessId, now: Time) {
        let tie = self.ties.get_mut(&session);
        if let Some(tie) = tie.filter(|tie| tie.knot == Knot::Held(process)) {
            tie.running = tie.running.saturating_sub(1);
            tie.used = now;
        }
    }

    pub fn sessions_at(&self, process: ProcessId) -> impl Iterator<Item = SessionId> + '_ {
        let all = (process, SessionId(0))..=(process, SessionId(u64::MAX));
        self.at.range(all).map(|(_, session)| *session)
    }

    /// Those that could be moved now: nothing of them runs there, and they are not moving yet.
    pub fn quiet_at(&self, process: ProcessId) -> impl Iterator<Item = SessionId> + '_ {
        let quiet = move |session: &SessionId| {
            let tie = &self.ties[session];
            tie.running == 0 && tie.knot == Knot::Held(process)
        };
        self.sessions_at(process).filter(quiet)
    }

    pub fn save(&mut self, session: SessionId, process: ProcessId, now: Time) {
        self.ties.get_mut(&session).expect("it is bound there").knot =
            Knot::Saving { process, since: now };
        self.saving.insert((process, session));
    }

    /// Since when the process hands the session over, if it does.
    pub fn saving_since(&self, session: SessionId, process: ProcessId) -> Option<Time> {
        match self.ties.get(&session)?.knot {
            Knot::Saving { process: of, since } if of == process => Some(since),
            _ => None,
        }
    }

    pub fn saving_at(&self, process: ProcessId) -> Vec<SessionId> {
        let all = (process, SessionId(0))..=(process, SessionId(u64::MAX));
        self.saving.range(all).map(|(_, session)| *session).collect()
    }

    pub fn any_at(&self, process: ProcessId) -> bool {
        self.sessions_at(process).next().is_some()
    }

    pub fn process_of(&self, session: SessionId) -> Option<ProcessId> {
        match self.ties.get(&session)?.knot {
            Knot::Held(process) | Knot::Saving { process, .. } => Some(process),
            Knot::Free(_) | Knot::Lost => None,
        }
    }

    /// `holds`: how many requests of a session its process holds; `None` if there is no such process.
    pub fn check(
        &self,
        holds: impl Fn(ProcessId, SessionId) -> Option<usize>,
    ) -> Result<(), String> {
        let mut listed = 0;
        for (session, tie) in &self.ties {
            let (Knot::Held(process) | Knot::Saving { process, .. }) = tie.knot else { continue };
            listed += usize::from(self.at.contains(&(process, *session)));
            let saving = matches!(tie.knot, Knot::Saving { .. });
            if saving != self.saving.contains(&(process, *session)) {
                return Err(format!("{session:?} is {:?}, and listed otherwise", tie.knot));
            }
            match holds(process, *session) {
                None => return Err(format!("{session:?} is bound to {process}, which is gone")),
                Some(held) if (tie.running as usize) > held => {
                    return Err(format!("{session:?} runs {} at {process}: {held}", tie.running));
                }
                Some(_) => {}
            }
        }
        if listed != self.at.len() {
            return Err(format!("{listed} sessions are bound, {} listed", self.at.len()));
        }
        Ok(())
    }
}

impl Pool {
    /// A request of a session goes to a process: what does it find there?
    pub(crate) fn tie(&mut self, cx: &mut Cx<'_>, bond: Bond, process: ProcessId) -> Continuity {
        let strict = bond.affinity.strict();
        let knot = self.bonds.ties.get(&bond.session).map(|tie| tie.knot);
        let stays = self.bonds.pull(cx.now, bond, self.settings.affinity_ttl).is_some();
        let continuity = match knot {
            None => Continuity::Bound,
            Some(Knot::Held(held)) if held == process => {
                let tie = self.bonds.ties.get_mut(&bond.session).expect("it has a knot");
                let found = tie.finds.take();
                self.counters.affinity_hits += u64::from(found.is_none());
                return self.stay(bond, cx.now, found.unwrap_or(Continuity::Same));
            }
            Some(Knot::Held(_)) if stays && !strict => Continuity::Elsewhere,
            Some(Knot::Held(_)) if !strict => Continuity::Bound,
            Some(Knot::Saving { .. }) if !strict => Continuity::Elsewhere,
            Some(Knot::Free(found)) => found,
            Some(Knot::Held(_) | Knot::Saving { .. } | Knot::Lost) => Continuity::Restarted,
        };
        self.counters.affinity_misses += u64::from(knot.is_some());
        if continuity != Continuity::Elsewhere {
            self.hold(bond.session, process, cx.now, None);
            let step = match knot {
                None => BondStep::Bound,
                Some(_) => BondStep::Rebound(continuity),
            };
            cx.notify(Notice::Session { session: bond.session, process, step });
        }
        if let (Some(Knot::Held(old)), true) = (knot, continuity != Continuity::Elsewhere) {
            // Whoever waits there for the same session follows it.
            self.reroute(cx, old.worker, Some(bond.session));
        }
        self.stay(bond, cx.now, continuity)
    }

    fn stay(&mut self, bond: Bond, now: Time, continuity: Continuity) -> Continuity {
        let tie = self.bonds.ties.get_mut(&bond.session).expect("held by the caller, or before");
        tie.used = now;
        if continuity != Continuity::Elsewhere {
            tie.strict |= bond.affinity.strict();
            tie.running += 1;
        }
        continuity
    }

    fn hold(
        &mut self,
        session: SessionId,
        process: ProcessId,
        now: Time,
        finds: Option<Continuity>,
    ) {
        let strict = self.bonds.is_strict(session);
        // It may have been here before, with a request that is not done.
        let running = self.running_at(process, session).unwrap_or(0) as u32;
        let tie = Tie { knot: Knot::Held(process), strict, used: now, running, finds };
        self.bonds.hold(session, process, tie);
    }

    fn running_at(&self, process: ProcessId, session: SessionId) -> Option<usize> {
        let worker = self.workers.get(&process.worker)?;
        let live = worker.process().filter(|live| live.generation == process.generation)?;
        Some(live.held.iter().filter(|held| held.bond == Some(session)).count())
    }

    /// A process ended: whoever insisted on it is told, also those who wait already.
    pub(crate) fn lose_bonds(&mut self, cx: &mut Cx<'_>, process: ProcessId) {
        let sessions: Vec<SessionId> = self.bonds.sessions_at(process).collect();
        let mut lost = BTreeSet::new();
        for session in sessions {
            let strict = self.bonds.is_strict(session);
            let knot = if strict { Knot::Lost } else { Knot::Free(Continuity::Restarted) };
            self.bonds.leave(session, knot);
            cx.notify(Notice::Session { session, process, step: BondStep::Lost });
            if strict {
                lost.insert(session);
            } else {
                // Whoever waits here though nobody had insisted so far goes where it goes next.
                self.reroute(cx, process.worker, Some(session));
            }
        }
        if !lost.is_empty() {
            self.tell_those_who_wait(cx, &lost);
        }
    }

    pub(crate) fn tell_those_who_wait(&mut self, cx: &mut Cx<'_>, lost: &BTreeSet<SessionId>) {
        let insists = |bond: Bond| bond.affinity.strict() && lost.contains(&bond.session);
        let mut waiting: Vec<RequestId> = Vec::new();
        for (id, request) in &self.requests {
            let queued = matches!(request.place, Place::Queued(_));
            let any = request.spec.target == Target::Any;
            if queued && any && request.spec.bond.is_some_and(insists) {
                waiting.push(*id);
            }
        }
        waiting.sort_unstable();
        for id in waiting {
            self.unqueue(id);
            self.turn_away(cx, id, Refusal::SessionWorkerLost);
        }
    }

    pub(crate) fn on_session_ended(&mut self, cx: &mut Cx<'_>, session: SessionId) {
        self.unbind(cx, session);
        // Its requests are served, but nobody would end what they were bound by from now on.
        let of_it = |bond: Option<Bond>| bond.is_some_and(|bond| bond.session == session);
        for request in self.requests.values_mut().filter(|request| of_it(request.spec.bond)) {
            request.spec.bond = None;
        }
    }

    fn unbind(&mut self, cx: &mut Cx<'_>, session: SessionId) {
        if let Some(process) = self.bonds.forget(session) {
            cx.notify(Notice::Session { session, process, step: BondStep::Unbound });
            self.reroute(cx, process.worker, Some(session));
            self.after_release(cx, process.worker);
        }
    }

    pub(crate) fn on_bind_ordered(
        &mut self,
        cx: &mut Cx<'_>,
        order: OrderId,
        session: SessionId,
        worker: WorkerId,
    ) {
        let reply = match self.workers.get(&worker) {
            _ if self.settings.keyed.is_some() => Reply::NotInKeyedPool,
            None => Reply::NoSuchWorker,
            Some(known) if known.dedicated || !known.accepts() => Reply::NotServing,
            Some(known) => {
                let (process, status) = (known.process_id(), known.status);
                self.bind(cx, session, process);
                Reply::Done { worker, status }
            }
        };
        cx.push(Command::Reply { order, reply });
    }

    fn bind(&mut self, cx: &mut Cx<'_>, session: SessionId, process: ProcessId) {
        let finds = self.bonds.found_by_hand(session, process);
        let old = self.bonds.process_of(session).filter(|old| *old != process);
        self.hold(session, process, cx.now, finds);
        cx.notify(Notice::Session { session, process, step: BondStep::Bound });
        if let Some(old) = old {
            self.reroute(cx, old.worker, Some(session));
            self.after_release(cx, old.worker);
        }
    }

    pub(crate) fn on_unbind_ordered(
        &mut self,
        cx: &mut Cx<'_>,
        order: OrderId,
        session: SessionId,
    ) {
        self.unbind(cx, session);
        cx.push(Command::Reply { order, reply: Reply::PoolDone });
    }

    /// The sessions that are bound to a worker's process.
    pub fn sessions_of(&self, worker: WorkerId) -> impl Iterator<Item = SessionId> + '_ {
        let process = self.workers.get(&worker).map(|worker| worker.process_id());
        process.into_iter().flat_map(|process| self.bonds.sessions_at(process))
    }

    /// The worker and incarnation that a session is bound to.
    pub fn binding(&self, session: SessionId) -> Option<ProcessId> {
        self.bonds.process_of(session)
    }

    pub(crate) fn check_bonds(&self) -> Result<(), String> {
        self.bonds.check(|process, session| self.running_at(process, session))
    }
}
