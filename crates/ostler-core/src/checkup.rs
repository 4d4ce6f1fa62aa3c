//! Active checks: an idle worker is asked whether it is well. One that says no, or nothing, is
//! degraded and asked again soon, without any traffic; after some failures in a row it is replaced.
//!
//! ```text
//!   resting ──interval──▶ asked ──well──▶ resting
//!                           └──unwell, or silent for the timeout──▶ failing ──again──▶ asked
//!                                                                     └──too often──▶ replaced
//! ```

use crate::command::{CheckResult, Command, Notice, PhaseReason, StopReason};
use crate::id::{ProcessId, WorkerId};
use crate::pool::{Cx, Pool};
use crate::process::Step;
use crate::timers::Timer;

impl Pool {
    pub(crate) fn begin_checkups(&mut self, cx: &Cx<'_>, id: WorkerId) {
        if let Some(checkup) = self.settings.checkup {
            self.timers.set(Timer::Checkup(id), cx.now.after(checkup.interval));
        }
    }

    pub(crate) fn on_checkup_due(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        let Some(checkup) = self.settings.checkup else { return };
        let Some(worker) = self.workers.get_mut(&id) else { return };
        let process_id = worker.process_id();
        let Some(process) = worker.process_mut().filter(|process| process.serving()) else {
            return;
        };
        let asked = process.asked_if_well.take().is_some();
        if !process.held.is_empty() || process.frozen {
            // Whoever works, or was stopped by order, need not answer.
            let next = if process.failed_checks > 0 { checkup.again } else { checkup.interval };
            return self.timers.set(Timer::Checkup(id), cx.now.after(next));
        }
        if asked && process.answers_checks {
            return self.fail_checkup(cx, process_id, CheckResult::TimedOut);
        }
        if asked {
            // It may be one of few words, who never learned to answer.
            cx.notify(Notice::Checked { process: process_id, result: CheckResult::TimedOut });
            return self.timers.set(Timer::Checkup(id), cx.now.after(checkup.interval));
        }
        process.asked_if_well = Some(cx.now);
        self.timers.set(Timer::Checkup(id), cx.now.after(checkup.timeout));
        cx.push(Command::CheckHealth { process: process_id });
    }

    pub(crate) fn on_health_reported(&mut self, cx: &mut Cx<'_>, id: ProcessId, well: bool) {
        let checkup = self.settings.checkup;
        let Some(worker) = self.current(cx, id) else { return };
        let process = worker.process_mut().expect("checked by `current`");
        let asked = process.asked_if_well.take().is_some() && process.serving();
        let Some(checkup) = checkup.filter(|_| asked) else { return self.stale(cx, id) };
        process.answers_checks = true;
        if !well {
            return self.fail_checkup(cx, id, CheckResult::Failed);
        }
        process.failed_checks = 0;
        cx.notify(Notice::Checked { process: id, result: CheckResult::Passed });
        self.timers.set(Timer::Checkup(id.worker), cx.now.after(checkup.interval));
        self.refresh(id.worker);
        self.show(cx, id.worker, PhaseReason::CheckPassed);
    }

    fn fail_checkup(&mut self, cx: &mut Cx<'_>, id: ProcessId, result: CheckResult) {
        let Some(checkup) = self.settings.checkup else { return };
        let worker = self.workers.get_mut(&id.worker).expect("it was asked");
        let process = worker.process_mut().expect("it was asked");
        process.failed_checks += 1;
        let failures = process.failed_checks;
        cx.notify(Notice::Checked { process: id, result });
        if failures >= checkup.failures {
            return self.stop(cx, id.worker, StopReason::Unhealthy, Step::Term);
        }
        self.timers.set(Timer::Checkup(id.worker), cx.now.after(checkup.again));
        self.refresh(id.worker);
        self.withdraw_prefetched(cx, id.worker);
        self.show(cx, id.worker, PhaseReason::CheckFailed);
    }
}
