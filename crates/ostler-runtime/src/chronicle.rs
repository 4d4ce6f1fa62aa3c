//! What a pool remembers and tells: ended requests, counts, its workers' histories, events. The
//! driver writes it under its lock; nothing is decided by it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use ostler_core::{
    BondStep, Change, Continuity, Exit, IdMap, Notice, Phase, PhaseReason, ProcessId, RecordId,
    RequestId, Time, WorkerId,
};
use ostler_proto::Metric;
use ostler_store::ledger::worker::Worker as StoredWorker;

use crate::clock::Clock;
use crate::dossier::{Dossier, PhaseStep};
use crate::events::{EventDraft, EventKind, EventLog, reason};
use crate::link::Link;
use crate::output::{Output, OutputSettings};
use crate::record::{Register, RequestRecord, RequestState};
use crate::tally::{OK, Tally};

/// Workers whose dossiers are kept after their end.
const BURIED_KEPT: usize = 64;
/// The longest name or value of a label of a metric, and how many labels it may have.
const NAME_MAX: usize = 200;
const LABELS_MAX: usize = 16;
/// Series of the workers' own metrics.
const METRICS_MAX: usize = 256;

#[derive(Debug)]
pub(crate) struct Chronicle {
    pool: Arc<str>,
    clock: Clock,
    log: Arc<EventLog>,
    output: OutputSettings,
    pub register: Register,
    pub tally: Tally,
    pub dossiers: BTreeMap<WorkerId, Dossier>,
    /// Those whose workers have come to their end, in that order.
    buried: VecDeque<WorkerId>,
    /// Requests without an end whose callers gave them an id.
    pub named: HashMap<Arc<str>, RequestId>,
    /// What workers measured themselves, the last of each series.
    pub metrics: BTreeMap<MetricKey, f64>,
    pub metrics_dropped: u64,
    pace: Pace,
    /// How each process that is being cleared ended.
    exits: IdMap<WorkerId, (ProcessId, Exit)>,
}

/// A series: its name and its labels.
pub type MetricKey = (String, BTreeMap<String, String>);

impl Chronicle {
    pub fn new(
        pool: &str,
        clock: Clock,
        log: Arc<EventLog>,
        output: OutputSettings,
        kept: usize,
    ) -> Self {
        Chronicle {
            pool: pool.into(),
            clock,
            log,
            output,
            register: Register::new(kept),
            tally: Tally::default(),
            dossiers: BTreeMap::new(),
            buried: VecDeque::new(),
            named: HashMap::new(),
            metrics: BTreeMap::new(),
            metrics_dropped: 0,
            pace: Pace::default(),
            exits: IdMap::default(),
        }
    }

    pub fn log(&self) -> &Arc<EventLog> {
        &self.log
    }

    fn draft(&self, kind: EventKind) -> EventDraft {
        EventDraft::new(kind, &self.pool)
    }

    fn about(&self, kind: EventKind, process: ProcessId) -> EventDraft {
        let draft = self.draft(kind).generation(process.generation);
        match self.dossiers.get(&process.worker) {
            Some(dossier) => draft.worker(&dossier.name),
            None => draft,
        }
    }

    pub fn dossier(&mut self, worker: WorkerId) -> &mut Dossier {
        let (pool, clock, output) = (&self.pool, self.clock, self.output);
        self.dossiers.entry(worker).or_insert_with(|| {
            let name: Arc<str> = format!("{pool}-{}", worker.0).into();
            let now = clock.timestamp(clock.now());
            Dossier::new(Arc::clone(&name), Output::new(name, output), now)
        })
    }

    /// A worker that was there before this server.
    pub fn restore(&mut self, id: WorkerId, known: &StoredWorker) {
        let dossier = self.dossier(id);
        (dossier.created, dossier.updated) = (known.created_at, known.updated_at);
        dossier.workspace = Some(known.workspace.as_str().into());
    }

    /// A change of status was stored.
    pub fn record(&mut self, now: Time, record: RecordId, change: Change, workspace: Option<&str>) {
        let at = self.clock.timestamp(now);
        let dossier = self.dossier(record.worker);
        dossier.note_status(record, change, at);
        if let Some(workspace) = workspace {
            dossier.workspace = Some(workspace.into());
        }
        self.tally.note_status(change.from, change.to);
        if change.to.terminal() && !self.buried.contains(&record.worker) {
            self.buried.push_back(record.worker);
            if self.buried.len() > BURIED_KEPT {
                let first = self.buried.pop_front();
                first.and_then(|first| self.dossiers.remove(&first));
            }
        }
    }

    /// A request has ended. `name`: as its caller knows it.
    pub fn ended(&mut self, end: Ended, name: impl FnOnce() -> Arc<str>) {
        let Ended { record, cancelled_by, worker } = end;
        if let Some(dossier) = worker.and_then(|worker| self.dossiers.get_mut(&worker)) {
            dossier.outcomes.note(record.code.unwrap_or(OK));
        }
        if let Some(id) = &record.id
            && self.named.get(id) == Some(&record.number)
        {
            self.named.remove(id);
        }
        let outcome = record.code.unwrap_or(OK);
        self.tally.note_outcome(outcome);
        let (began, ended) = (record.began(), record.ended());
        if let Some(began) = began {
            self.tally.note_queue_wait(began.since(record.arrived));
        }
        if record.state == RequestState::Complete
            && let (Some(began), Some(ended)) = (record.last_began(), ended)
        {
            self.tally.note_service(ended.since(began));
        }
        if record.chunks > 0 {
            self.tally.note_chunks(record.chunks);
        }
        let ended = ended.unwrap_or_default();
        let followed = self.log.wants_requests();
        if followed || record.state != RequestState::Complete && self.pace.admits(ended) {
            let draft = self.end_event(&record, cancelled_by, name());
            let untold = std::mem::take(&mut self.pace.untold);
            self.log.publish(if untold > 0 { draft.detail("untold", untold) } else { draft });
        }
        self.register.keep(record);
    }

    fn end_event(
        &self,
        record: &RequestRecord,
        cancelled_by: CancelledBy,
        name: Arc<str>,
    ) -> EventDraft {
        let (kind, reason) = match (record.state, record.code) {
            (RequestState::Cancelled, _) => {
                (EventKind::RequestCancelled, Some(cancelled_by.name()))
            }
            (RequestState::Error, Some(code))
                if EventKind::RequestFailed.reasons().contains(&code) =>
            {
                (EventKind::RequestFailed, Some(code))
            }
            // Also where a worker turned it away: nothing ran.
            (_, Some(code)) => (EventKind::RequestRejected, Some(code)),
            (_, None) => (EventKind::RequestCompleted, None),
        };
        let took = record.ended().map_or(Duration::ZERO, |ended| ended.since(record.arrived));
        let mut draft = self.draft(kind).request(&*name).seconds(took.as_secs_f64());
        if let Some(worker) = &record.worker {
            draft = draft.worker(worker);
        }
        if let Some(reason) = reason {
            draft = draft.reason(reason);
        }
        draft.detail("function", &*record.function)
    }

    pub fn progress(&self, link: &Link, name: Arc<str>, progress: &str) {
        if self.log.wants_requests() {
            let value = serde_json::from_str(progress).unwrap_or(serde_json::Value::Null);
            let draft = self.about(EventKind::RequestProgress, link.process);
            self.log.publish(draft.request(&*name).detail("progress", value));
        }
    }

    pub fn metric(&mut self, metric: Metric) {
        let fits = is_plain(&metric.name)
            && metric.labels.len() <= LABELS_MAX
            && metric.labels.iter().all(|(key, value)| is_plain(key) && value.len() <= NAME_MAX);
        let key = (metric.name, metric.labels);
        let full = self.metrics.len() >= METRICS_MAX && !self.metrics.contains_key(&key);
        if !fits || full {
            self.metrics_dropped += 1;
            return;
        }
        self.metrics.insert(key, metric.value);
    }

    /// Tells of what the core noticed. `link`: that of the process it concerns.
    pub fn notice(&mut self, now: Time, notice: &Notice, link: Option<&Arc<Link>>) {
        match notice {
            Notice::PhaseChanged { process, from, to, reason, after } => {
                self.phase(now, *process, (*from, *to), *reason, *after);
            }
            Notice::StatusChanged { worker, change } => self.status(*worker, *change),
            Notice::Crashed { process, exit } => self.crash(*process, *exit, link),
            Notice::Unresponsive { process } => {
                let draft = self.about(EventKind::WorkerUnresponsive, *process);
                self.log.publish(draft.reason("heartbeat_missed"));
            }
            Notice::HeartbeatMissed { .. } => self.tally.note_heartbeat_missed(),
            Notice::Checked { result, .. } => {
                self.tally.note_check(*result, link.map(|link| link.since_check(now)));
            }
            Notice::RestartDelayed { worker, delay } => {
                let name = Arc::clone(&self.dossier(*worker).name);
                let draft = self.draft(EventKind::WorkerRestartDelayed).worker(&name);
                let draft = draft.reason("backoff");
                self.log.publish(draft.detail("delay_seconds", delay.as_secs_f64()));
            }
            Notice::BreakerOpened { .. } => {
                let draft = self.draft(EventKind::PoolFailed);
                self.log.publish(draft.reason("restart_budget_spent"));
            }
            Notice::BreakerClosed => self.log.publish(self.draft(EventKind::PoolRecovered)),
            Notice::FirstReady => self.log.publish(self.draft(EventKind::PoolReady)),
            Notice::AllReady => self.log.publish(self.draft(EventKind::PoolAllReady)),
            Notice::Retiring { worker, reason } => {
                let name = Arc::clone(&self.dossier(*worker).name);
                let draft = self.draft(EventKind::WorkerRetiring).worker(&name);
                self.tally.note_retirement(reason.name());
                self.log.publish(draft.reason(reason.name()));
            }
            Notice::Scaled { from, to } => {
                let reason = if to > from { "grown" } else { "shrunk" };
                let draft = self.draft(EventKind::PoolScaled).reason(reason);
                self.log.publish(draft.detail("from_workers", *from).detail("to_workers", *to));
            }
            Notice::GrowthHeld => {
                let draft = self.draft(EventKind::PoolGrowthHeld);
                self.log.publish(draft.reason("memory_pressure"));
            }
            Notice::PoolPaused => self.log.publish(self.draft(EventKind::PoolPaused)),
            Notice::PoolResumed => self.log.publish(self.draft(EventKind::PoolResumed)),
            Notice::PoolDraining => {
                self.log.publish(self.draft(EventKind::PoolDraining).reason("ordered"));
            }
            Notice::PoolDrained => self.log.publish(self.draft(EventKind::PoolDrained)),
            Notice::ReloadBegun { edition } => self.reload(EventKind::PoolReloading, *edition),
            Notice::Reloaded { edition } => self.reload(EventKind::PoolReloaded, *edition),
            Notice::ReloadFailed { edition } => self.reload(EventKind::PoolReloadFailed, *edition),
            Notice::SweepFound { what } => {
                let draft = self.draft(EventKind::PoolAlarm).reason("sweep");
                self.log.publish(draft.detail("found", what.as_str()));
            }
            // Told by what follows from them, or by the driver, which knows the request.
            Notice::Stopping { .. }
            | Notice::StaleDropped { .. }
            | Notice::Retried { .. }
            | Notice::Session { .. }
            | Notice::Quarantined { .. } => {}
        }
    }

    fn reload(&self, kind: EventKind, edition: u32) {
        self.log.publish(self.draft(kind).detail("edition", edition));
    }

    /// What became of a session's binding.
    pub fn session(&self, process: ProcessId, step: BondStep, id: &str) {
        let (kind, reason) = match step {
            BondStep::Bound => (EventKind::SessionBound, None),
            BondStep::Rebound(found) => (EventKind::SessionRebound, Some(continuity_name(found))),
            BondStep::Saved => (EventKind::SessionSaved, None),
            BondStep::Released => (EventKind::SessionReleased, None),
            BondStep::Lost => (EventKind::SessionLost, None),
            BondStep::Unbound => (EventKind::SessionUnbound, None),
        };
        let draft = self.about(kind, process).detail("session", id);
        self.log.publish(match reason {
            Some(reason) => draft.reason(reason),
            None => draft,
        });
    }

    pub fn retried(&self, name: Arc<str>, lost: bool) {
        let reason = if lost { "worker_lost" } else { "retryable_error" };
        self.log.publish(self.draft(EventKind::RequestRetried).request(&*name).reason(reason));
    }

    pub fn draining(&self) {
        self.log.publish(self.draft(EventKind::PoolDraining).reason("shutdown"));
    }

    pub fn stopped(&self) {
        self.log.publish(self.draft(EventKind::PoolStopped));
    }

    fn phase(
        &mut self,
        now: Time,
        process: ProcessId,
        (from, to): (Option<Phase>, Phase),
        reason: PhaseReason,
        after: Duration,
    ) {
        self.tally.note_phase(from, to, after);
        let flip = matches!(reason, PhaseReason::Filled | PhaseReason::Freed);
        if flip && !self.log.wants_requests() {
            self.dossier(process.worker).flips += 1;
            return;
        }
        let step = PhaseStep {
            generation: process.generation,
            from,
            to,
            reason,
            at: self.clock.timestamp(now),
            seconds: after.as_secs_f64(),
        };
        self.dossier(process.worker).note_phase(step);
        if let Some(draft) = self.phase_event(process, step) {
            self.log.publish(draft);
        }
    }

    fn phase_event(&self, process: ProcessId, step: PhaseStep) -> Option<EventDraft> {
        let kind = match (step.reason, step.to) {
            (PhaseReason::Spawned, _) => EventKind::WorkerSpawned,
            (PhaseReason::Ready, _) => EventKind::WorkerReady,
            (PhaseReason::Filled, _) => EventKind::WorkerBusy,
            (PhaseReason::Freed, _) => EventKind::WorkerIdle,
            (PhaseReason::HeartbeatMissed | PhaseReason::CheckFailed, _) => {
                EventKind::WorkerDegraded
            }
            (PhaseReason::Heard | PhaseReason::CheckPassed, _) => EventKind::WorkerRecovered,
            (PhaseReason::Stopped(_), _) => EventKind::WorkerStopping,
            // Its end is told when it has been cleared, with all that is known by then.
            (PhaseReason::Exited | PhaseReason::SpawnFailed, _) => return None,
        };
        let draft = self.about(kind, process).moved(step.from.map(phase_name), phase_name(step.to));
        let draft = draft.seconds(step.seconds);
        Some(match step.reason {
            PhaseReason::Spawned if process.generation == 1 => draft.reason("first"),
            PhaseReason::Spawned => draft.reason("restart"),
            PhaseReason::HeartbeatMissed
            | PhaseReason::CheckFailed
            | PhaseReason::Heard
            | PhaseReason::CheckPassed
            | PhaseReason::Stopped(_) => draft.reason(reason::of_phase(step.reason)),
            _ => draft,
        })
    }

    fn status(&mut self, worker: WorkerId, change: Change) {
        let name = Arc::clone(&self.dossier(worker).name);
        let draft = self.draft(EventKind::WorkerTransition).worker(&name);
        let draft = draft.moved(change.from.map(|from| from.name()), change.to.name());
        self.log.publish(draft.reason(change.trigger.name()));
    }

    fn crash(&mut self, process: ProcessId, exit: Exit, link: Option<&Arc<Link>>) {
        self.exits.insert(process.worker, (process, exit));
        let mut draft = self.about(EventKind::WorkerCrashed, process).reason(reason::of_exit(exit));
        match exit {
            Exit::Code(code) => draft = draft.detail("code", code),
            Exit::Signal(signal) => {
                draft = draft.detail("signal", crate::failure::signal_name(signal));
            }
            Exit::OutOfMemory | Exit::Unknown => {}
        }
        if let Some(link) = link {
            let stderr = link.last_words(10);
            draft = draft.detail("pid", link.pid).detail("stderr", stderr);
            if let Some(condition) = link.condition() {
                draft = draft.detail("process_state", condition.name());
            }
        }
        self.log.publish(draft);
    }

    /// Nothing is left of a process.
    pub fn cleared(&mut self, process: ProcessId, usage: Option<EndOfProcess>) {
        let planned = self.exits.remove(&process.worker).is_none_or(|(of, _)| of != process);
        let Some(dossier) = self.dossiers.get(&process.worker) else { return };
        let why = dossier.phases.iter().rev().find_map(|step| match step.reason {
            PhaseReason::Stopped(stop) if step.generation == process.generation => {
                Some(reason::of_stop(stop))
            }
            _ => None,
        });
        let why = why.unwrap_or("exited");
        let lifetime = dossier.started.map(|started| Timestamp::now().duration_since(started));
        let requests: u64 = dossier.outcomes.iter().map(|(_, count)| count).sum();
        let mut draft = self.about(EventKind::WorkerTerminated, process).reason(why);
        if let Some(lifetime) = lifetime {
            draft = draft.seconds(lifetime.as_secs_f64());
        }
        draft = draft.detail("planned", planned).detail("requests", requests);
        if let Some(EndOfProcess { cpu_seconds, max_rss }) = usage {
            draft = draft.detail("cpu_seconds", cpu_seconds).detail("max_rss_bytes", max_rss);
        }
        self.tally.note_end(why);
        self.log.publish(draft);
    }
}

pub fn continuity_name(continuity: Continuity) -> &'static str {
    match continuity {
        Continuity::Bound => "bound",
        Continuity::Same => "same",
        Continuity::Elsewhere => "elsewhere",
        Continuity::Restored => "restored",
        Continuity::Restarted => "restarted",
    }
}

/// A name that every monitoring system takes as it is.
fn is_plain(name: &str) -> bool {
    let mut chars = name.chars();
    let first = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first && name.len() <= NAME_MAX && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// How many requests that failed are told of: under overload they would push out of the log what
/// explains it.
#[derive(Debug, Default)]
struct Pace {
    since: Time,
    told: u32,
    /// Those since the last that was told of.
    untold: u64,
}

impl Pace {
    const PER_SECOND: u32 = 50;

    fn admits(&mut self, now: Time) -> bool {
        if now.since(self.since) >= Duration::from_secs(1) {
            (self.since, self.told) = (now, 0);
        }
        self.told += 1;
        let admitted = self.told <= Self::PER_SECOND;
        self.untold += u64::from(!admitted);
        admitted
    }
}

/// What is left of a request.
#[derive(Debug)]
pub(crate) struct Ended {
    pub record: RequestRecord,
    pub cancelled_by: CancelledBy,
    /// Who had it last.
    pub worker: Option<WorkerId>,
}

/// Who called a request off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum CancelledBy {
    /// Whoever made the call, and still wants to hear its end.
    #[default]
    Caller,
    /// The one who made it is gone.
    Disconnect,
    /// Somebody who named it.
    Order,
}

impl CancelledBy {
    fn name(self) -> &'static str {
        match self {
            CancelledBy::Caller => "caller",
            CancelledBy::Disconnect => "disconnected",
            CancelledBy::Order => "order",
        }
    }
}

/// What a process has cost, as the kernel tells at its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndOfProcess {
    pub cpu_seconds: f64,
    pub max_rss: u64,
}

pub fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Starting => "starting",
        Phase::Ready => "ready",
        Phase::Busy => "busy",
        Phase::Degraded => "degraded",
        Phase::Stopping => "stopping",
        Phase::Dead => "dead",
    }
}
