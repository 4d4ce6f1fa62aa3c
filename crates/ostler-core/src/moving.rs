//! Sessions move off a worker that is to go, each as soon as nothing of it runs there: with what the
//! process kept of it, if it can hand that over in time, and else without.
//!
//! Why the worker goes is decided elsewhere (`replace`, `scale`, `keyed`), and what a process has
//! kept is never seen here. A process that ended moves nothing: what it takes along is lost, in `bond`.

use std::collections::BTreeSet;

use crate::bond::Knot;
use crate::command::{BondStep, Command, Continuity, Notice, Retirement};
use crate::id::{ProcessId, SessionId, WorkerId};
use crate::pool::{Cx, Pool};
use crate::timers::Timer;

/// Sessions that a process is asked to hand over at a time, so that each has its time.
const SAVES_AT_A_TIME: usize = 16;

impl Pool {
    /// Moves the sessions of a worker that is to go, each as soon as nothing of it runs there.
    pub(crate) fn evacuate(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        let Some(worker) = self.workers.get(&id) else { return };
        let process_id = worker.process_id();
        let Some(process) = worker.process() else { return };
        let saves = process.saves_sessions && process.serving();
        let room = match saves {
            true => SAVES_AT_A_TIME.saturating_sub(self.bonds.saving_at(process_id).len()),
            false => usize::MAX,
        };
        let moving: Vec<SessionId> = self.bonds.quiet_at(process_id).take(room).collect();
        for session in moving {
            match saves {
                true => self.save(cx, session, process_id),
                false => self.let_go(cx, session, process_id, false),
            }
        }
    }

    fn save(&mut self, cx: &mut Cx<'_>, session: SessionId, process: ProcessId) {
        self.bonds.save(session, process, cx.now);
        cx.push(Command::SaveSession { process, session });
        let by = cx.now.after(self.settings.save_timeout);
        self.timers.set_earlier(Timer::Save(process.worker), by);
    }

    /// The session leaves its process in peace; those of it who wait go elsewhere.
    fn let_go(&mut self, cx: &mut Cx<'_>, session: SessionId, process: ProcessId, saved: bool) {
        let evicted = self.workers.get(&process.worker).and_then(|worker| worker.retirement)
            == Some(Retirement::Evicted);
        let (knot, step) = match saved {
            true => (Knot::Free(Continuity::Restored), BondStep::Saved),
            false if evicted && self.bonds.is_strict(session) => (Knot::Lost, BondStep::Lost),
            false => (Knot::Free(Continuity::Restarted), BondStep::Released),
        };
        self.bonds.leave(session, knot);
        cx.notify(Notice::Session { session, process, step });
        if knot == Knot::Lost {
            return self.tell_those_who_wait(cx, &BTreeSet::from([session]));
        }
        self.reroute(cx, process.worker, Some(session));
    }

    pub(crate) fn on_session_saved(
        &mut self,
        cx: &mut Cx<'_>,
        process: ProcessId,
        session: SessionId,
        saved: bool,
    ) {
        if self.bonds.saving_since(session, process).is_none() {
            return self.stale(cx, process);
        }
        self.let_go(cx, session, process, saved);
        self.after_release(cx, process.worker);
    }

    /// What a worker has not handed over by now, it will not.
    pub(crate) fn on_save_overdue(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        let Some(process) = self.workers.get(&id).map(|worker| worker.process_id()) else { return };
        for session in self.bonds.saving_at(process) {
            let Some(since) = self.bonds.saving_since(session, process) else { continue };
            let by = since.after(self.settings.save_timeout);
            if by <= cx.now {
                self.let_go(cx, session, process, false);
            } else {
                self.timers.set_earlier(Timer::Save(id), by);
            }
        }
        self.after_release(cx, id);
    }
}
