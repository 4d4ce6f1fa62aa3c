//! Calls that are made by requests while they run. The outer one keeps its place until the inner
//! one has ended; when the outer one ends first, or its process dies, the inner one is taken back.

use ostler_core::{Event, IdMap, ProcessId, RequestId, RequestSpec, Target};

use super::process::{End, Inner, Life, Step, Work};
use super::sessions::Belonging;
use super::{Happening, World};
use crate::prng::Prng;
use crate::violation::Verdict;

/// Calls inside calls.
const DEPTH: usize = 4;

#[derive(Debug, Default)]
pub(crate) struct Nested {
    /// Who waits for an inner call: the process, the outer request, and its attempt.
    outer: IdMap<RequestId, (ProcessId, RequestId, u32)>,
    /// The call that a request waits for.
    inner: IdMap<RequestId, RequestId>,
}

impl World {
    pub(super) fn calls_out(&mut self, request: RequestId) -> bool {
        let deep = self.ledger.spec(request).ancestors.len() >= DEPTH;
        !deep && self.prng.chance(self.profile.load.nested)
    }

    /// One in so many kinds kills whoever runs it, always.
    pub(super) fn is_poison(&self, request: RequestId) -> bool {
        let fingerprint = self.ledger.spec(request).fingerprint;
        Prng::new(fingerprint ^ self.profile.settings.seed).chance(self.profile.faults.poison)
    }

    /// The handler has come to the line where it calls. What it wrote before is read before.
    pub(super) fn call_out(&mut self, id: ProcessId, outer: RequestId, attempt: u32) {
        let at = self.report_time(id);
        let process = self.processes.get_mut(&id).expect("the step found it");
        let closed = process.stream_closed;
        if process.working(outer, attempt).is_some_and(|work| work.inner == Some(Inner::ToCome))
            && !closed
        {
            self.agenda.plan(at, Happening::InnerCall(id, outer, attempt));
        }
    }

    /// The call is read. Whoever is not waited for any more is not let through.
    pub(super) fn take_inner_call(
        &mut self,
        id: ProcessId,
        outer: RequestId,
        attempt: u32,
    ) -> Verdict {
        if !self.ledger.is_open(outer) {
            self.go_on(id, outer, attempt);
            return Ok(());
        }
        let inner = RequestId(self.next_request);
        self.next_request += 1;
        let process = self.processes.get_mut(&id).filter(|process| process.life != Life::Dead);
        if let Some(work) = process.and_then(|process| process.working(outer, attempt)) {
            work.inner = Some(Inner::Awaited(inner));
            self.nested.outer.insert(inner, (id, outer, attempt));
            self.nested.inner.insert(outer, inner);
        } else {
            self.take_back(inner);
        }
        let spec = self.inner_spec(inner, outer);
        self.deliver(Event::RequestArrived { request: inner, spec })
    }

    fn inner_spec(&mut self, inner: RequestId, outer: RequestId) -> RequestSpec {
        let fingerprint = self.fingerprint(inner);
        let idempotent = self.prng.chance(self.profile.load.idempotent);
        let elsewhere = self.prng.chance(0.1);
        let worker = self.some_worker();
        let spec = self.ledger.spec(outer);
        let target = match (elsewhere, spec.target, worker) {
            (true, Target::Lease(lease, place), _) => Target::Lease(lease, place),
            (true, _, Some(worker)) => Target::Worker(worker),
            _ => Target::Any,
        };
        let mut ancestors = spec.ancestors.clone();
        ancestors.push(outer);
        let belonging = Belonging { bond: spec.bond, key: spec.key };
        let owner = belonging.owner(target).unwrap_or(spec.owner);
        RequestSpec { target, owner, idempotent, fingerprint, ancestors, ..spec.clone() }
    }

    /// A caller has its outcome: whoever waited for it goes on, what it waits for is taken back.
    pub(super) fn end_call(&mut self, request: RequestId) {
        if let Some(inner) = self.nested.inner.remove(&request) {
            self.take_back(inner);
        }
        if let Some((process, outer, attempt)) = self.nested.outer.remove(&request) {
            self.nested.inner.remove(&outer);
            self.go_on(process, outer, attempt);
        }
    }

    /// The execution of the outer one is over before the inner one is.
    pub(super) fn abandon_inner(&mut self, work: Work) {
        let Some(Inner::Awaited(inner)) = work.inner else { return };
        if self.nested.outer.remove(&inner).is_some() {
            self.nested.inner.remove(&work.request);
            self.take_back(inner);
        }
    }

    fn take_back(&mut self, inner: RequestId) {
        let wait = self.latency();
        self.plan_in(wait, Happening::CallerLeaves(inner));
    }

    fn go_on(&mut self, id: ProcessId, outer: RequestId, attempt: u32) {
        let wait = self.prng.wait(self.profile.load.service / 2);
        let Some(process) = self.processes.get_mut(&id) else { return };
        let Some(work) = process.working(outer, attempt) else { return };
        work.inner = None;
        if work.end != End::Never {
            self.plan_in(wait, Happening::Step(id, Step::Finish { request: outer, attempt }));
        }
    }
}
