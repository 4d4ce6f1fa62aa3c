//! What the core noticed: remembered, told, and logged in one place.

use std::sync::Arc;

use ostler_core::{CheckResult, Notice, ProcessId, StopReason, Time};

use super::orders::{Act, Afterwards};
use super::{Driver, Inner};
use crate::link::Link;

impl Driver {
    pub(super) fn announce(
        &self,
        inner: &mut Inner,
        now: Time,
        notice: &Notice,
        after: &mut Afterwards,
    ) {
        let link = concerned(notice).and_then(|process| inner.links.get(&process)).cloned();
        inner.chronicle.notice(now, notice, link.as_ref());
        if let Some(link) = link.as_ref().filter(|_| tells_of_silence(notice)) {
            after.acts.push(Act::Examine(Arc::clone(link)));
        }
        match notice {
            Notice::FirstReady => self.readiness.send_modify(|ready| ready.first_ready = true),
            Notice::AllReady => self.readiness.send_modify(|ready| ready.all_ready = true),
            Notice::Retried { request, lost } => {
                if let Some(exchange) = inner.exchanges.get(request) {
                    exchange.waits_again(now);
                    inner.chronicle.retried(exchange.name(self.number), *lost);
                }
            }
            Notice::Session { session, process, step } => {
                if let Some(id) = self.session_id(*session) {
                    inner.chronicle.session(*process, *step, &id);
                }
            }
            Notice::Stopping { process, reason: StopReason::StartTimeout } => {
                self.launcher.note_late(*process);
                after.told.push((notice.clone(), link));
            }
            Notice::PhaseChanged { .. } | Notice::HeartbeatMissed { .. } => {}
            other => after.told.push((other.clone(), link)),
        }
    }

    /// The one place where what the core noticed is logged. Never under the lock: whoever reads
    /// the log may be slow.
    pub(super) fn log(&self, notice: &Notice, link: Option<&Link>) {
        let name = |process: &ProcessId| self.launcher.name(*process);
        match notice {
            Notice::Crashed { process, exit } => {
                let stderr = link.map(|link| link.last_words(3));
                tracing::warn!(worker = name(process), ?exit, ?stderr, "worker ended unplanned");
            }
            Notice::Stopping { process, reason } if !reason.planned() => {
                tracing::warn!(worker = name(process), ?reason, "worker is stopped");
            }
            Notice::Unresponsive { process } => {
                tracing::warn!(worker = name(process), "worker is busy and silent");
            }
            Notice::BreakerOpened { .. } => {
                let pool = self.launcher.pool();
                tracing::error!(pool, "workers keep failing; no new ones for restart_cooldown");
            }
            Notice::Quarantined { process, exit, .. } => {
                tracing::warn!(
                    worker = name(process),
                    ?exit,
                    "a request has ended two processes; it is refused for a while"
                );
            }
            Notice::SweepFound { what } => {
                let pool = self.launcher.pool();
                tracing::error!(pool, what, "the sweep found what should not be, and mended it");
            }
            Notice::GrowthHeld => {
                let pool = self.launcher.pool();
                tracing::warn!(pool, "requests wait, but memory is short: no new workers");
            }
            other => tracing::debug!(?other),
        }
    }
}

/// The process that a notice is about.
fn concerned(notice: &Notice) -> Option<ProcessId> {
    match notice {
        Notice::Crashed { process, .. }
        | Notice::Unresponsive { process }
        | Notice::HeartbeatMissed { process, .. }
        | Notice::Stopping { process, .. }
        | Notice::Checked { process, .. } => Some(*process),
        _ => None,
    }
}

/// Somebody does not answer: a look at the process may tell why, as long as it is there.
fn tells_of_silence(notice: &Notice) -> bool {
    match notice {
        Notice::HeartbeatMissed { .. } | Notice::Unresponsive { .. } => true,
        Notice::Checked { result, .. } => *result == CheckResult::TimedOut,
        Notice::Stopping { reason, .. } => {
            matches!(reason, StopReason::Hung | StopReason::HeartbeatLost)
        }
        _ => false,
    }
}
