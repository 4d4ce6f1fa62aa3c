//! Who may serve a request, as things stand: by its target, its session, its key. Where a request
//! waits, whether it is sent at once and whether it can ever be served all follow from this.
//!
//! It is asked anew whenever that may have changed, and remembered by nobody. Whether the worker is
//! free, and which one of several, is for `dispatch`.

use crate::bond::Pull;
use crate::command::Refusal;
use crate::event::{Affinity, Bond, RequestSpec, Target};
use crate::id::{KeyId, LeaseId, RequestId, SessionId, WorkerId};
use crate::pool::{Cx, Pool};
use crate::time::Time;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Anyone,
    /// This one if it is free.
    Rather(WorkerId),
    Only(WorkerId),
    /// The worker of this key, which is not there.
    Key(KeyId),
    Place(LeaseId, u32),
}

impl Pool {
    /// Who may serve a request.
    pub(crate) fn way(&self, now: Time, spec: &RequestSpec) -> Way {
        match spec.target {
            Target::Worker(worker) => return Way::Only(worker),
            Target::Lease(lease, place) => return Way::Place(lease, place),
            Target::Any => {}
        }
        let keyed = spec.key.filter(|_| self.settings.keyed.is_some());
        if let (Some(_), Some(old)) = (keyed, self.leaving_with(spec.bond)) {
            return Way::Only(old);
        }
        let ttl = self.settings.affinity_ttl;
        let pull = spec.bond.and_then(|bond| self.bonds.pull(now, bond, ttl));
        match (pull, keyed) {
            (Some(Pull::Awaits(worker)), _) => Way::Only(worker),
            (_, Some(key)) => self.keyed_way(key),
            (Some(Pull::Only(worker)), None) => Way::Only(worker),
            (Some(Pull::Rather(worker)), None) => Way::Rather(worker),
            (None, None) => Way::Anyone,
        }
    }

    /// The worker that a session is bound to, if that one is on its way out: it has what the next
    /// one is to be given.
    fn leaving_with(&self, bond: Option<Bond>) -> Option<WorkerId> {
        let process = self.bonds.process_of(bond?.session)?;
        self.workers.get(&process.worker).filter(|worker| worker.retiring).map(|worker| worker.id)
    }

    /// A session that insisted on its process is told once that it is gone.
    pub(crate) fn bond_refusal(&self, spec: &RequestSpec) -> Option<Refusal> {
        let bond = spec.bond.filter(|_| spec.target == Target::Any)?;
        let lost = bond.affinity.strict() && self.bonds.is_lost(bond.session);
        lost.then_some(Refusal::SessionWorkerLost)
    }

    /// A session that does not wait, and whose worker cannot take it now.
    pub(crate) fn busy_refusal(&self, spec: &RequestSpec) -> Option<Refusal> {
        let bond = spec.bond.filter(|_| spec.target == Target::Any)?;
        let at_once = bond.affinity == Affinity::StrictFailFast;
        (at_once && self.bonds.is_tied(bond.session)).then_some(Refusal::WorkerBusy)
    }

    /// Those who wait for this worker look anew where they may go.
    pub(crate) fn reroute(
        &mut self,
        cx: &mut Cx<'_>,
        worker: WorkerId,
        session: Option<SessionId>,
    ) {
        let Some(queue) = self.own.get(&worker) else { return };
        let concerned = |id: &RequestId| {
            let spec = &self.requests[id].spec;
            let of_it = session.is_none_or(|of| spec.bond.is_some_and(|bond| bond.session == of));
            spec.target == Target::Any && of_it
        };
        let moving: Vec<RequestId> = queue.iter().filter(concerned).collect();
        for id in moving {
            self.unqueue(id);
            self.requeue(cx, id);
        }
    }
}
