//! Remembers what the pool said and ordered, and catches it contradicting itself: phases that were
//! told differ from those that are shown, a second outcome, a beginning of what never lay behind, a
//! session that changes its process untold, two workers that serve one key.

use std::collections::{BTreeMap, BTreeSet};

use ostler_core::{
    Bond, BondStep, Command, Continuity, Event, KeyId, Notice, Phase, Pool, ProcessId, Refusal,
    RequestId, SessionId, Time,
};

#[derive(Debug, Default)]
pub struct Witness {
    /// The phase that was last told, and when.
    phases: BTreeMap<ProcessId, (Phase, Time)>,
    ended: BTreeSet<RequestId>,
    /// Assigned and not yet said to begin.
    behind: BTreeSet<(RequestId, ProcessId)>,
    /// The sessions that requests belong to.
    bonds: BTreeMap<RequestId, Bond>,
    /// Where each session was last served as its own.
    homes: BTreeMap<SessionId, ProcessId>,
    /// Requests that run where their session is at home.
    at_home: BTreeMap<(ProcessId, RequestId), SessionId>,
}

impl Witness {
    pub fn see(&mut self, event: &Event) {
        match event {
            Event::RequestArrived { request, spec } => {
                self.bonds.extend(spec.bond.map(|bond| (*request, bond)));
            }
            Event::Answered { process, request, .. } => {
                self.at_home.remove(&(*process, *request));
            }
            _ => {}
        }
    }

    pub fn hear(&mut self, now: Time, command: &Command) {
        match command {
            Command::Notify(Notice::PhaseChanged { process, from, to, after, .. }) => {
                let (was, since) = self.phases.insert(*process, (*to, now)).unzip();
                assert_eq!(*from, was, "{process} is told to come from where it was");
                assert_ne!(*from, Some(*to), "{process}: only a change is told");
                let spent = since.map_or_else(Default::default, |since| now.since(since));
                assert_eq!(*after, spent, "{process}: the time in {from:?}");
            }
            Command::Notify(Notice::SweepFound { what }) => {
                panic!("something was forgotten: {what}")
            }
            Command::Notify(Notice::Session { session, process, step }) => match step {
                BondStep::Bound => drop(self.homes.insert(*session, *process)),
                BondStep::Unbound => drop(self.homes.remove(session)),
                BondStep::Rebound(_) | BondStep::Saved | BondStep::Released | BondStep::Lost => {}
            },
            Command::SaveSession { process, session } => {
                let runs = |((at, _), of): (&(ProcessId, _), &_)| at == process && of == session;
                assert!(!self.at_home.iter().any(runs), "{session:?} still runs on {process}");
            }
            Command::Resolve { request, .. } | Command::Refuse { request, .. } => {
                self.hear_of_loss(command);
                assert!(self.ended.insert(*request), "{request:?} has one outcome");
                self.behind.retain(|(behind, _)| behind != request);
            }
            Command::Assign { request, process, prefetched, continuity, .. } => {
                assert!(!self.ended.contains(request), "{request:?} is over");
                self.hear_of_home(*request, *process, *continuity);
                self.behind.retain(|(behind, _)| behind != request);
                if *prefetched {
                    self.behind.insert((*request, *process));
                }
            }
            Command::Begin { request, process } => {
                let lay_behind = self.behind.remove(&(*request, *process));
                assert!(lay_behind, "{request:?} did not lie behind another on {process}");
            }
            _ => {}
        }
    }

    /// A session is where it was, or is told that it is not.
    fn hear_of_home(
        &mut self,
        request: RequestId,
        process: ProcessId,
        continuity: Option<Continuity>,
    ) {
        let Some(continuity) = continuity else { return };
        let bond = self.bonds[&request];
        let strict = bond.affinity.strict();
        let home = self.homes.get(&bond.session).copied();
        match continuity {
            Continuity::Elsewhere => {
                assert!(!strict, "{request:?} insists, and goes elsewhere");
                assert_ne!(home, Some(process), "{request:?} is at home on {process}");
                return;
            }
            Continuity::Same => assert_eq!(home, Some(process), "{request:?} is at home"),
            Continuity::Bound => {
                assert!(!strict || home.is_none_or(|home| home == process), "{request:?} is told");
            }
            Continuity::Restored | Continuity::Restarted => {}
        }
        self.homes.insert(bond.session, process);
        self.at_home.insert((process, request), bond.session);
    }

    fn hear_of_loss(&mut self, command: &Command) {
        if let Command::Refuse { request, refusal: Refusal::SessionWorkerLost } = command {
            self.homes.remove(&self.bonds[request].session);
        }
    }

    /// After every event: what was told is what is shown.
    pub fn compare(&self, pool: &Pool) {
        self.compare_keys(pool);
        for worker in pool.workers().filter(|worker| worker.generation > 0) {
            let process = ProcessId { worker: worker.id, generation: worker.generation };
            let told = self.phases.get(&process).map(|(phase, _)| *phase);
            let shown = worker.phase.unwrap_or(Phase::Dead);
            assert_eq!(told, Some(shown), "{process}: told, and shown");
        }
    }

    /// A key has one worker that takes its requests.
    fn compare_keys(&self, pool: &Pool) {
        let mut keys: BTreeSet<KeyId> = BTreeSet::new();
        let serves = |phase| matches!(phase, Phase::Ready | Phase::Busy | Phase::Degraded);
        for worker in pool.workers().filter(|worker| worker.phase.is_some_and(serves)) {
            let Some(key) = worker.key.filter(|_| !worker.retiring) else { continue };
            assert!(keys.insert(key), "{key:?} has two workers");
        }
    }
}
