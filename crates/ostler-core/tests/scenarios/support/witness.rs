//! Remembers what the pool said and ordered, and catches it contradicting itself: phases that were
//! told differ from those that are shown, a second outcome, a beginning of what never lay behind.

use std::collections::{BTreeMap, BTreeSet};

use ostler_core::{Command, Notice, Phase, Pool, ProcessId, RequestId, Time};

#[derive(Debug, Default)]
pub struct Witness {
    /// The phase that was last told, and when.
    phases: BTreeMap<ProcessId, (Phase, Time)>,
    ended: BTreeSet<RequestId>,
    /// Assigned and not yet said to begin.
    behind: BTreeSet<(RequestId, ProcessId)>,
}

impl Witness {
    pub fn hear(&mut self, now: Time, command: &Command) {
        match command {
            Command::Notify(Notice::PhaseChanged { process, from, to, after, .. }) => {
                let (was, since) = self.phases.insert(*process, (*to, now)).unzip();
                assert_eq!(*from, was, "{process} is told to come from where it was");
                assert_ne!(*from, Some(*to), "{process}: only a change is told");
                let spent = since.map_or_else(Default::default, |since| now.since(since));
                assert_eq!(*after, spent, "{process}: the time in {from:?}");
            }
            Command::Resolve { request, .. } | Command::Refuse { request, .. } => {
                assert!(self.ended.insert(*request), "{request:?} has one outcome");
                self.behind.retain(|(behind, _)| behind != request);
            }
            Command::Assign { request, process, prefetched, .. } => {
                assert!(!self.ended.contains(request), "{request:?} is over");
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

    /// After every event: what was told is what is shown.
    pub fn compare(&self, pool: &Pool) {
        for worker in pool.workers().filter(|worker| worker.generation > 0) {
            let process = ProcessId { worker: worker.id, generation: worker.generation };
            let told = self.phases.get(&process).map(|(phase, _)| *phase);
            let shown = worker.phase.unwrap_or(Phase::Dead);
            assert_eq!(told, Some(shown), "{process}: told, and shown");
        }
    }
}
