//! What the core says and does about sessions, judged by the book of them: nobody sees another
//! process untold, nobody is told of a loss twice, and what is handed over arrives once.

use ostler_core::{
    Affinity, Bond, BondStep, Continuity, Counters, ProcessId, Refusal, RequestId, Retirement,
    SessionId, Time, WorkerId,
};

use super::Ledger;
use super::bond::{Bonds, Row, State};
use crate::violation::{Verdict, require};

impl Ledger {
    pub(super) fn end_session(&mut self, session: SessionId) {
        self.bonds.end(session);
        self.forget_work_of(session);
    }

    /// Whatever of it still runs is no longer its own.
    fn forget_work_of(&mut self, session: SessionId) {
        let held = self.processes.rows_mut().flat_map(|row| &mut row.held);
        for held in held.filter(|held| held.bond.is_some_and(|bond| bond.session == session)) {
            held.freed = true;
        }
    }

    /// A request goes to a process, which is told this of its session. Its own bond, if it counts.
    pub(super) fn judge_bond(
        &mut self,
        now: Time,
        request: RequestId,
        process: ProcessId,
        told: Option<Continuity>,
    ) -> Result<Option<Bond>, crate::violation::Violation> {
        let bond = self.requests.bond(request);
        let finds = bond.and_then(|bond| self.bonds.finds(now, bond, process, &self.settings));
        require_bond(self, request, process, told, bond, finds)?;
        let Some((bond, found)) = bond.zip(finds) else { return Ok(None) };
        self.check_seen(now, request, (bond, process), found)?;
        self.check_tied(request, (bond, process), found)?;
        let running = self.running_at(process, bond.session);
        self.bonds.assigned(now, bond, (process, running), found);
        Ok(Some(bond).filter(|_| found != Continuity::Elsewhere))
    }

    fn check_seen(
        &self,
        now: Time,
        request: RequestId,
        (bond, process): (Bond, ProcessId),
        found: Continuity,
    ) -> Verdict {
        let row = self.bonds.rows.get(&bond.session);
        let other = row.and_then(|row| row.seen).filter(|seen| *seen != process);
        let says = matches!(found, Continuity::Restored | Continuity::Restarted);
        require!(
            !bond.affinity.strict() || other.is_none() || says,
            "a strict session never sees another process untold",
            "{request:?} goes to {process} as {found:?}, {bond:?} last saw {other:?}"
        );
        require!(
            found != Continuity::Restored || row.is_some_and(|row| row.saves > 0),
            "restored only what was handed over, once",
            "{request:?} {bond:?} at {process}: {row:?}"
        );
        let elsewhere = self.processes.rows().filter(|row| row.id != process && !row.exited);
        let elsewhere = elsewhere.flat_map(|row| &row.held).find(|held| {
            let insists = |of: Bond| of.session == bond.session && of.affinity.strict();
            !held.freed && held.bond.is_some_and(insists)
        });
        require!(
            !bond.affinity.strict() || elsewhere.is_none(),
            "a strict session runs on one process at a time",
            "{request:?} {bond:?} goes to {process}, beside {elsewhere:?}"
        );
        let home = row.filter(|row| row.fresh(now, &self.settings));
        let home = home.and_then(|_| self.bonds.home_of(bond.session));
        let home = home.filter(|home| *home != process && !self.leases.any_waits());
        let free = home.and_then(|id| self.processes.get(id));
        let free = free.filter(|row| self.surely_open(now, row));
        require!(
            free.is_none(),
            "a session goes to its own if that is free",
            "{request:?} {bond:?} goes to {process}, free is {free:?}"
        );
        Ok(())
    }

    /// Watchers are told of every new binding, and of no other.
    fn check_tied(
        &mut self,
        request: RequestId,
        (bond, process): (Bond, ProcessId),
        found: Continuity,
    ) -> Verdict {
        let told = self.bonds.tied.take();
        let stays = self.bonds.home_of(bond.session) == Some(process);
        let step = match found {
            _ if stays => None,
            Continuity::Elsewhere => None,
            _ if self.bonds.rows.contains_key(&bond.session) => Some(BondStep::Rebound(found)),
            _ => Some(BondStep::Bound),
        };
        let truth = step.map(|step| (bond.session, process, step));
        require!(
            told == truth,
            "watchers are told of bindings",
            "{request:?} {bond:?} finds {found:?} at {process}, told was {told:?}"
        );
        Ok(())
    }

    /// A session that has lost its process, or whose process is busy.
    pub(super) fn judge_bond_refusal(
        &mut self,
        now: Time,
        request: RequestId,
        refusal: Refusal,
    ) -> Verdict {
        let bond = self.requests.bond(request);
        let bond = bond.filter(|bond| bond.affinity.strict());
        let session = bond.map(|bond| bond.session);
        if refusal == Refusal::SessionWorkerLost {
            let lost = |s: &SessionId| {
                let row = self.bonds.rows.get(s);
                row.is_some_and(|row| row.state == State::Lost) || self.bonds.told_now.contains(s)
            };
            require!(
                session.is_some_and(|session| lost(&session)),
                "a session is told of its loss once",
                "{request:?} {bond:?}: {:?}",
                session.and_then(|session| self.bonds.rows.get(&session))
            );
            self.bonds.rows.remove(&session.expect("required above"));
            return Ok(());
        }
        let at_once = bond.is_some_and(|bond| bond.affinity == Affinity::StrictFailFast);
        let tied = session.is_some_and(|session| self.bonds.is_tied(session));
        let home = session.and_then(|session| self.bonds.home_of(session));
        let free = home.and_then(|id| self.processes.get(id));
        let free = free.filter(|row| self.surely_open(now, row) && !self.leases.any_waits());
        require!(
            at_once && tied && free.is_none(),
            "busy is what is not free",
            "{request:?} {bond:?}, tied: {tied}, free: {free:?}"
        );
        Ok(())
    }

    pub(super) fn judge_save(&mut self, now: Time, id: ProcessId, session: SessionId) -> Verdict {
        let leaves = self.leaves(id.worker);
        let serves = self.phases.serves(id);
        let row = self.processes.addressed(id, "SaveSession")?;
        let runs = row.held.iter().find(|h| h.bond.is_some_and(|bond| bond.session == session));
        let knows = row.ready.is_some_and(|ready| ready.saves_sessions);
        let state = self.bonds.rows.get(&session).map(|row| row.state);
        require!(
            state == Some(State::At(id)) && runs.is_none() && knows && serves && leaves,
            "a session is handed over once nothing of it runs",
            "{session:?} is {state:?}, {id} leaves: {leaves}, knows how: {knows}, runs {runs:?}"
        );
        if let Some(row) = self.bonds.rows.get_mut(&session) {
            row.state = State::Saving(id, now);
        }
        Ok(())
    }

    /// Somebody or something wants this worker to go.
    fn leaves(&self, worker: WorkerId) -> bool {
        let told = self.workers.get(worker).is_some_and(|row| row.retiring.is_some());
        told || self.workers.completing(worker)
    }

    pub(super) fn judge_step(
        &mut self,
        now: Time,
        session: SessionId,
        process: ProcessId,
        step: BondStep,
    ) -> Verdict {
        let fits = match step {
            BondStep::Bound if self.bonds.by_hand.is_some_and(|(of, _)| of == session) => {
                self.bound_by_hand(now, session, process)
            }
            BondStep::Bound | BondStep::Rebound(_) => {
                let before = self.bonds.tied.replace((session, process, step));
                before.is_none()
            }
            BondStep::Unbound => self.bonds.freed.remove(&session),
            BondStep::Saved => self.let_go(session, process, Continuity::Restored, |bonds| {
                bonds.said.take() == Some((session, true))
            }),
            BondStep::Lost if self.bonds.bereft.remove(&session) => true,
            BondStep::Released | BondStep::Lost => {
                let strict = self.bonds.rows.get(&session).is_some_and(|row| row.strict);
                let lost = strict && self.retirement(process.worker) == Some(Retirement::Evicted);
                let may = self.may_release(now, session, process);
                let released = self.let_go(session, process, Continuity::Restarted, |bonds| {
                    bonds.said.take() == Some((session, false)) || may
                });
                if let Some(row) = self.bonds.rows.get_mut(&session).filter(|_| lost) {
                    row.state = State::Lost;
                    self.bonds.told_now.insert(session);
                }
                released && lost == (step == BondStep::Lost)
            }
        };
        require!(
            fits,
            "a session leaves its process for a cause",
            "{session:?} {step:?} of {process}: {:?}",
            self.bonds.rows.get(&session)
        );
        Ok(())
    }

    fn let_go(
        &mut self,
        session: SessionId,
        process: ProcessId,
        finds: Continuity,
        may: impl Fn(&mut Bonds) -> bool,
    ) -> bool {
        let allowed = may(&mut self.bonds);
        let Some(row) = self.bonds.rows.get_mut(&session) else { return false };
        let home = row.home() == Some(process);
        row.state = State::Free(finds);
        row.saves = u32::from(finds == Continuity::Restored);
        allowed && home
    }

    /// It took too long, or never knew how; and nothing of the session runs there.
    fn may_release(&self, now: Time, session: SessionId, process: ProcessId) -> bool {
        let Some(row) = self.processes.get(process) else { return false };
        let runs = row.held.iter().any(|h| h.bond.is_some_and(|bond| bond.session == session));
        let knows = row.ready.is_some_and(|ready| ready.saves_sessions);
        let late = match self.bonds.rows.get(&session).map(|row| row.state) {
            Some(State::Saving(_, since)) => now >= since.after(self.settings.save_timeout),
            _ => !knows || !self.phases.serves(process),
        };
        late && !runs && self.leaves(process.worker)
    }

    fn running_at(&self, process: ProcessId, session: SessionId) -> u32 {
        let of = |held: &&super::Held| held.bond.is_some_and(|bond| bond.session == session);
        let row = self.processes.get(process);
        row.map_or(0, |row| row.held.iter().filter(of).count() as u32)
    }

    /// It is told on its next request what it finds there.
    fn bound_by_hand(&mut self, now: Time, session: SessionId, process: ProcessId) -> bool {
        let Some((_, worker)) = self.bonds.by_hand.take() else { return false };
        self.forget_work_of(session);
        let serves = self.phases.serves(process) && worker == process.worker;
        let before = self.bonds.rows.get(&session).copied();
        let finds = match before.map(|row| row.state) {
            None => Some(Continuity::Bound),
            Some(State::At(home)) if home == process => before.and_then(|row| row.by_hand),
            Some(State::Free(found)) => Some(found),
            Some(State::At(_) | State::Saving(..) | State::Lost) => Some(Continuity::Restarted),
        };
        let row = before.unwrap_or(Row::at(process, now));
        let stayed = row.state == State::At(process);
        let running = self.running_at(process, session);
        let row = Row { state: State::At(process), used: now, by_hand: finds, running, ..row };
        self.bonds.rows.insert(session, row);
        serves && (stayed || finds.is_some())
    }

    /// Between two events: whoever lost something was told, and what was said was heard.
    pub(super) fn check_bonds(&mut self) -> Verdict {
        let bonds = &mut self.bonds;
        let untold = bonds.bereft.pop_first().or(bonds.freed.pop_first());
        require!(untold.is_none(), "a session leaves its process for a cause", "{untold:?} untold");
        let unheard = bonds.said.take();
        require!(unheard.is_none(), "what is handed over is taken", "{unheard:?}");
        let unused = bonds.tied.take();
        require!(unused.is_none(), "watchers are told of bindings", "{unused:?} is not so");
        self.check_at_once()?;
        if self.bonds.told_now.is_empty() {
            return Ok(());
        }
        let lost = |id: RequestId| {
            let bond = self.requests.bond(id).filter(|bond| bond.affinity.strict());
            bond.is_some_and(|bond| self.bonds.told_now.contains(&bond.session))
        };
        let waiting = self.requests.open().filter(|id| self.requests.waits_in_line(*id));
        let untold = waiting.into_iter().find(|id| lost(*id));
        require!(
            untold.is_none() || self.shutdown.is_some(),
            "those who wait for a lost process are told at once",
            "{untold:?}"
        );
        Ok(())
    }

    /// Who does not want to wait for the process of its session does not.
    fn check_at_once(&self) -> Verdict {
        let Some(request) = self.arrived.filter(|id| self.requests.waits(*id)) else {
            return Ok(());
        };
        let bond = self.requests.bond(request);
        let bond = bond.filter(|bond| bond.affinity == Affinity::StrictFailFast);
        require!(
            !bond.is_some_and(|bond| self.bonds.is_tied(bond.session)),
            "who does not wait is told at once",
            "{request:?} {bond:?} waits"
        );
        Ok(())
    }

    pub fn check_counters(&self, counters: &Counters) -> Verdict {
        let (hits, misses) = (counters.affinity_hits, counters.affinity_misses);
        require!(
            (hits, misses) == (self.bonds.hits, self.bonds.misses),
            "hits and misses are counted",
            "{hits} and {misses} are, {} and {} were",
            self.bonds.hits,
            self.bonds.misses
        );
        Ok(())
    }

    pub(super) fn expect_nobody_saves(&self) -> Verdict {
        let saving = |row: &Row| matches!(row.state, State::Saving(..));
        let stuck = self.bonds.rows.iter().find(|(_, row)| saving(row));
        require!(stuck.is_none(), "no session stays between two processes", "{stuck:?}");
        Ok(())
    }
}

fn require_bond(
    ledger: &Ledger,
    request: RequestId,
    process: ProcessId,
    told: Option<Continuity>,
    bond: Option<Bond>,
    finds: Option<Continuity>,
) -> Verdict {
    let row = bond.and_then(|bond| ledger.bonds.rows.get(&bond.session));
    require!(
        bond.is_none() || finds.is_some(),
        "a strict session stays with its process",
        "{request:?} {bond:?} goes to {process} as {told:?}: {row:?}"
    );
    require!(
        told == finds,
        "a session is told what it finds",
        "{request:?} {bond:?} finds {finds:?} at {process} and is told {told:?}: {row:?}"
    );
    Ok(())
}
