//! Orders about the whole pool: while it is held nothing is given out, while it is being emptied
//! nobody new comes in, and when it is empty somebody is told.

use ostler_core::{Action, Notice, Refusal, RequestId, Target};

use super::Ledger;
use super::request::End;
use crate::violation::{Verdict, require};

#[derive(Debug, Default)]
pub(super) struct Control {
    pub paused: bool,
    pub draining: bool,
    /// It was told that nobody is inside any more.
    drained: bool,
}

impl Ledger {
    pub(super) fn hear_pool_order(&mut self, action: Action) {
        match action {
            Action::PausePool => self.control.paused = true,
            Action::DrainPool => self.control.draining = true,
            Action::ResumePool => self.control = Control::default(),
            Action::Scale { min, max } => self.hear_scale(min, max),
            Action::RecyclePool => self.workers.recycle_all(),
            Action::Recycle(worker) => self.workers.recycle(worker),
            Action::Bind { session, worker } => self.bonds.bind_by_hand(session, worker),
            Action::Unbind(session) => self.end_session(session),
            _ => {}
        }
    }

    pub(super) fn judge_control_notice(&mut self, notice: &Notice) -> Verdict {
        let fits = match notice {
            Notice::PoolPaused => self.control.paused,
            Notice::PoolResumed => !self.control.paused && !self.control.draining,
            Notice::PoolDraining => self.control.draining,
            Notice::PoolDrained => {
                let empty = self.control.draining && self.is_empty();
                empty && !std::mem::replace(&mut self.control.drained, true)
            }
            _ => true,
        };
        require!(fits, "the pool is told of as it is", "{notice:?}: {:?}", self.control);
        Ok(())
    }

    /// Nobody waits, nobody is worked on, and nobody holds a place.
    fn is_empty(&self) -> bool {
        let held = self.processes.rows().any(|row| !row.held.is_empty());
        self.requests.open().next().is_none() && !held && self.leases.first().is_none()
    }

    /// Those inside wait for it: it is not new.
    fn is_inside(&self, request: RequestId) -> bool {
        let spec = self.spec(request);
        !spec.ancestors.is_empty() || matches!(spec.target, Target::Lease(..))
    }

    pub(super) fn judge_draining(&self, request: RequestId) -> Verdict {
        let new = self.arrived == Some(request) && !self.is_inside(request);
        require!(
            self.control.draining && new,
            "only newcomers are kept out of a pool that empties",
            "{request:?} {:?} is, draining: {}",
            self.spec(request),
            self.control.draining
        );
        Ok(())
    }

    /// Between two events: who came to a pool that empties is gone, and an empty one was told.
    pub(super) fn check_control(&self) -> Verdict {
        if !self.control.draining {
            return Ok(());
        }
        let newcomer = self.arrived.filter(|request| !self.is_inside(*request));
        let end = newcomer.and_then(|id| self.requests.get(id)).map(|row| row.end);
        require!(
            end.is_none_or(|end| end == Some(End::Refused(Refusal::PoolDraining))),
            "nobody new comes into a pool that empties",
            "{newcomer:?} {end:?}"
        );
        require!(
            self.control.drained || !self.is_empty(),
            "the end of a drain is told",
            "nobody is inside, and nobody was told"
        );
        Ok(())
    }
}
