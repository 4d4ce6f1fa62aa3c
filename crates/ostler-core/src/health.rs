//! Signs of life. A silent idle worker is degraded, then replaced; a silent busy one is only
//! marked, because a handler may compute for minutes inside C code.

use std::time::Duration;

use crate::command::{Command, Notice, PhaseReason, StopReason};
use crate::id::{ProcessId, WorkerId};
use crate::pool::{Cx, Pool};
use crate::process::Step;
use crate::settings::Heartbeat;
use crate::timers::Timer;

/// A shell that comes this late has itself been asleep: silence in that time proves nothing.
const STALL: Duration = Duration::from_secs(1);

impl Pool {
    pub(crate) fn forgive_own_stall(&mut self, cx: &Cx<'_>) {
        let late = self.timers.next().is_some_and(|due| cx.now.since(due) > STALL);
        if late {
            for worker in self.workers.values_mut() {
                if let Some(process) = worker.process_mut() {
                    process.heard = cx.now;
                    process.pinged = None;
                    process.asked_if_well = None;
                }
            }
        }
    }

    pub(crate) fn begin_heartbeat(&mut self, cx: &Cx<'_>, id: WorkerId) {
        let process = self.workers[&id].process().expect("it just became ready");
        if let Some(heartbeat) = self.settings.heartbeat.filter(|_| process.heartbeat) {
            self.timers.set(Timer::Heartbeat(id), cx.now.after(heartbeat.initial_delay));
        }
    }

    pub(crate) fn on_heartbeat_due(&mut self, cx: &mut Cx<'_>, id: WorkerId) {
        let Some(heartbeat) = self.settings.heartbeat else { return };
        let hang_timeout = self.settings.hang_timeout;
        let Some(worker) = self.workers.get_mut(&id) else { return };
        let process_id = worker.process_id();
        let Some(process) = worker.process_mut().filter(|process| process.serving()) else {
            return;
        };
        self.timers.set(Timer::Heartbeat(id), cx.now.after(heartbeat.interval));
        if process.frozen {
            return;
        }
        cx.push(Command::Ping { process: process_id });
        let pinged = *process.pinged.get_or_insert(cx.now);
        let silence = cx.now.since(process.heard.max(pinged));
        let missed = misses(silence, &heartbeat);
        let hung = hang_timeout.is_some_and(|limit| silence >= limit);
        if !process.held.is_empty() && hung {
            return self.stop(cx, id, StopReason::Hung, Step::Kill);
        }
        if missed == 0 {
            return;
        }
        cx.notify(Notice::HeartbeatMissed { process: process_id, misses: missed });
        if heartbeat.independent {
            return;
        }
        if process.held.is_empty() {
            if missed >= heartbeat.misses {
                return self.stop(cx, id, StopReason::HeartbeatLost, Step::Kill);
            }
            self.degrade(cx, process_id);
        } else if !process.unresponsive {
            process.unresponsive = true;
            cx.notify(Notice::Unresponsive { process: process_id });
        }
    }

    fn degrade(&mut self, cx: &mut Cx<'_>, id: ProcessId) {
        let worker = self.workers.get_mut(&id.worker).expect("its heartbeat is due");
        let process = worker.process_mut().expect("its heartbeat is due");
        process.silent = true;
        self.refresh(id.worker);
        self.show(cx, id.worker, PhaseReason::HeartbeatMissed);
    }

    pub(crate) fn on_process_heard(&mut self, cx: &mut Cx<'_>, id: ProcessId) {
        let Some(worker) = self.current(cx, id) else { return };
        let process = worker.process_mut().expect("checked by `current`");
        if process.exited() {
            return self.stale(cx, id);
        }
        process.heard = cx.now;
        process.pinged = None;
        process.unresponsive = false;
        let was_silent = std::mem::take(&mut process.silent);
        if std::mem::take(&mut process.mute) || was_silent {
            self.refresh(id.worker);
            self.show(cx, id.worker, PhaseReason::Heard);
        }
    }
}

/// Silence for the timeout is the first miss, each further interval one more.
fn misses(silence: Duration, heartbeat: &Heartbeat) -> u32 {
    let Some(beyond) = silence.checked_sub(heartbeat.timeout) else { return 0 };
    let interval = heartbeat.interval.as_nanos().max(1);
    1 + u32::try_from(beyond.as_nanos() / interval).unwrap_or(u32::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_counted_in_misses() {
        let heartbeat = crate::Settings::default().heartbeat.expect("on by default");
        let after = |s: f64| misses(Duration::from_secs_f64(s), &heartbeat);
        assert_eq!(after(9.9), 0);
        assert_eq!(after(10.0), 1);
        assert_eq!(after(11.9), 1);
        assert_eq!(after(12.0), 2);
        assert_eq!(after(14.0), 3);
    }
}
