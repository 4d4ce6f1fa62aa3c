//! What is remembered of one worker across its processes, and for a while after its end.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;
use ostler_core::{Change, Phase, PhaseReason, RecordId};

use crate::output::Output;
use crate::tally::Counts;

/// Changes of phase that are kept.
const PHASES_KEPT: usize = 64;
/// Changes of status that are kept.
const STATUSES_KEPT: usize = 64;

#[derive(Debug, Clone)]
pub(crate) struct Dossier {
    pub name: Arc<str>,
    pub output: Arc<Output>,
    /// Whom a worker made by order belongs to.
    pub workspace: Option<Arc<str>>,
    pub created: Timestamp,
    pub updated: Timestamp,
    /// When its process was started.
    pub started: Option<Timestamp>,
    /// Its requests, by how they ended.
    pub outcomes: Counts,
    /// Times it went from ready to busy or back: too many to keep each.
    pub flips: u64,
    pub phases: VecDeque<PhaseStep>,
    pub statuses: VecDeque<StatusStep>,
}

/// One change of phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PhaseStep {
    pub generation: u32,
    pub from: Option<Phase>,
    pub to: Phase,
    pub reason: PhaseReason,
    pub at: Timestamp,
    /// Spent in `from`.
    pub seconds: f64,
}

/// One change of status.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StatusStep {
    pub seq: u64,
    pub change: Change,
    pub at: Timestamp,
}

impl Dossier {
    pub fn new(name: Arc<str>, output: Output, now: Timestamp) -> Self {
        Dossier {
            name,
            output: Arc::new(output),
            workspace: None,
            created: now,
            updated: now,
            started: None,
            outcomes: Counts::default(),
            flips: 0,
            phases: VecDeque::new(),
            statuses: VecDeque::new(),
        }
    }

    pub fn note_phase(&mut self, step: PhaseStep) {
        self.updated = step.at;
        if step.to == Phase::Starting {
            self.started = Some(step.at);
        }
        if matches!(step.reason, PhaseReason::Filled | PhaseReason::Freed) {
            self.flips += 1;
            return;
        }
        keep(&mut self.phases, step, PHASES_KEPT);
    }

    pub fn note_status(&mut self, record: RecordId, change: Change, at: Timestamp) {
        self.updated = at;
        keep(&mut self.statuses, StatusStep { seq: record.seq, change, at }, STATUSES_KEPT);
    }
}

fn keep<T>(ring: &mut VecDeque<T>, step: T, kept: usize) {
    if ring.len() == kept {
        ring.pop_front();
    }
    ring.push_back(step);
}
