//! The kinds of events: a closed list, from which the catalogue in the documentation is made.

/// Lists end to end, so that what two kinds share is written once.
const fn join<const LEN: usize>(parts: &[&[&'static str]]) -> [&'static str; LEN] {
    let mut whole = [""; LEN];
    let (mut part, mut at, mut len) = (0, 0, 0);
    while part < parts.len() {
        if at == parts[part].len() {
            (part, at) = (part + 1, 0);
        } else {
            whole[len] = parts[part][at];
            (at, len) = (at + 1, len + 1);
        }
    }
    whole
}

macro_rules! joined {
    ($($part:expr),*) => {
        &join::<{ 0 $(+ { const PART: &[&str] = $part; PART.len() })* }>(&[$($part),*])
    };
}

const RETIREMENTS: &[&str] = &[
    "asked",
    "ordered",
    "ttl",
    "max_requests",
    "max_memory",
    "idle",
    "evicted",
    "scaled",
    "reloaded",
    "session_ended",
];

const STOP_REASONS: &[&str] = joined!(
    &["shutdown"],
    RETIREMENTS,
    &[
        "discarded",
        "terminated",
        "paused",
        "forced_cancel",
        "start_timeout",
        "stream_closed",
        "protocol_violation",
        "heartbeat_lost",
        "unhealthy",
        "tainted",
        "hung",
        "memory_exceeded",
        "gave_up",
    ]
);

const CRASH_CLASSES: &[&str] = &["segfault", "abort", "killed", "oom", "signal", "exit", "unknown"];

/// Stopped for one of the first, or ended by itself in one of the last.
const END_REASONS: &[&str] = joined!(STOP_REASONS, &["exited", "spawn_failed"]);

const REFUSALS: &[&str] = &[
    "pool_not_found",
    "function_not_found",
    "malformed",
    "invalid_arguments",
    "thread_unsafe",
    "quarantined",
    "pool_saturated",
    "queue_timeout",
    "deadline_unreachable",
    "shutting_down",
    "pool_failed",
    "worker_not_found",
    "worker_not_serving",
    "lease_not_found",
    "lease_timeout",
    "too_many_workers",
    "nested_deadlock",
    "nested_too_deep",
    "pool_draining",
    "session_worker_lost",
    "worker_busy",
    "session_required",
    "key_required",
    "not_in_keyed_pool",
    "session_not_found",
    "session_exists",
    "invalid_session",
    "version_conflict",
    "session_quota_exceeded",
    "program_not_found",
    "program_quota_exceeded",
    "metadata_too_large",
    "session_store_full",
    "store_unavailable",
    "operation_not_found",
];

/// Codes of problems, as the caller gets them. Those of refusals are among them: a request may be
/// turned away after it had reached a worker.
const FAILURES: &[&str] = joined!(
    &[
        "application_error",
        "deadline_exceeded",
        "worker_crashed",
        "worker_stopped",
        "worker_unresponsive",
        "worker_answered_nonsense",
        "result_too_large",
    ],
    REFUSALS
);

const JOB_FAILURES: &[&str] = &[
    "application_error",
    "worker_crashed",
    "lost",
    "invalid_arguments",
    "result_too_large",
    "child_failed",
];

const JOB_CANCELS: &[&str] =
    &["cancelled", "timeout", "parent_cancelled", "parent_failed", "sibling_failed"];

macro_rules! kinds {
    ($($kind:ident $($often:ident)? $name:literal because $reasons:expr, $about:literal;)*) => {
        /// What happened.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum EventKind {
            $($kind,)*
        }

        impl EventKind {
            pub const ALL: &'static [EventKind] = &[$(EventKind::$kind,)*];

            pub const fn name(self) -> &'static str {
                match self {
                    $(EventKind::$kind => $name,)*
                }
            }

            /// Comes with every call, and is made only while somebody follows all events.
            pub const fn frequent(self) -> bool {
                match self {
                    $(EventKind::$kind => kinds!(@ $($often)?),)*
                }
            }

            /// One sentence for the catalogue.
            pub const fn about(self) -> &'static str {
                match self {
                    $(EventKind::$kind => $about,)*
                }
            }

            /// Every reason that an event of this kind may have; none if it never has one.
            pub const fn reasons(self) -> &'static [&'static str] {
                match self {
                    $(EventKind::$kind => $reasons,)*
                }
            }
        }
    };
    (@ often) => { true };
    (@) => { false };
}

impl EventKind {
    pub fn named(name: &str) -> Option<EventKind> {
        EventKind::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

kinds! {
    WorkerSpawned "worker.spawned"
        because &["first", "restart"],
        "A process was started for the worker.";
    WorkerReady "worker.ready"
        because &[],
        "The process has said that it is ready; `seconds` is how long it took to start.";
    WorkerBusy often "worker.busy"
        because &[],
        "The worker's load has reached its capacity.";
    WorkerIdle often "worker.idle"
        because &[],
        "The worker's load has fallen below its capacity.";
    WorkerDegraded "worker.degraded"
        because &["heartbeat_missed", "check_failed"],
        "The worker gets no new work until a health check or a sign of life clears it.";
    WorkerRecovered "worker.recovered"
        because &["heard", "check_passed"],
        "A degraded worker is well again.";
    WorkerUnresponsive "worker.unresponsive"
        because &["heartbeat_missed"],
        "The worker is silent while it holds requests; it is left to their deadlines.";
    WorkerStopping "worker.stopping"
        because STOP_REASONS,
        "The process was told to end.";
    WorkerCrashed "worker.crashed"
        because CRASH_CLASSES,
        "The process ended and nobody had asked it to: `code` or `signal`, and the last lines of its `stderr`.";
    WorkerTerminated "worker.terminated"
        because END_REASONS,
        "Nothing is left of the process: `seconds` is how long it lived, `planned` whether it was meant to end, `requests` how many the worker has ended.";
    WorkerTransition "worker.transition"
        because &["create", "start", "pause", "resource_exhausted", "resume", "complete", "error_unrecoverable", "terminate"],
        "The worker's status has changed and the change is stored.";
    WorkerRestartDelayed "worker.restart_delayed"
        because &["backoff"],
        "The worker's next process waits for its backoff: `delay_seconds`.";
    WorkerRetiring "worker.retiring"
        because RETIREMENTS,
        "The worker did nothing wrong and is to go; mostly a new one comes first.";
    PoolReady "pool.ready"
        because &[],
        "The pool's first worker is ready.";
    PoolAllReady "pool.all_ready"
        because &[],
        "All workers of the pool were ready.";
    PoolFailed "pool.failed"
        because &["restart_budget_spent"],
        "The pool's restart budget is spent: no new processes for a while.";
    PoolRecovered "pool.recovered"
        because &[],
        "A worker came up again and the pool refills.";
    PoolDraining "pool.draining"
        because &["shutdown", "ordered"],
        "The pool takes no new requests and finishes those it has.";
    PoolStopped "pool.stopped"
        because &[],
        "Every process of the pool is gone.";
    PoolPaused "pool.paused"
        because &[],
        "Nothing new is given to workers; requests wait.";
    PoolResumed "pool.resumed"
        because &[],
        "Requests are let in and given to workers again.";
    PoolDrained "pool.drained"
        because &[],
        "Nobody is inside any more, since the pool lets nobody in.";
    PoolScaled "pool.scaled"
        because &["grown", "shrunk"],
        "The pool wants another number of workers: `from_workers`, `to_workers`.";
    PoolGrowthHeld "pool.growth_held"
        because &["memory_pressure"],
        "Requests wait and the pool might grow, but the machine is short of memory.";
    PoolReloading "pool.reloading"
        because &[],
        "One worker of a new kind is being tried: `edition`.";
    PoolReloaded "pool.reloaded"
        because &[],
        "The new kind has proved itself; the others are replaced one by one.";
    PoolReloadFailed "pool.reload_failed"
        because &[],
        "The new kind did not become ready; everything stays as it was.";
    PoolAlarm "pool.alarm"
        because &["sweep"],
        "The regular sweep found what should not be, and mended it: `found`. This is a bug worth a report.";
    RequestCompleted often "request.completed"
        because &[],
        "A request was answered.";
    RequestFailed "request.failed"
        because FAILURES,
        "A request ended in an error; the reason is the code that its caller got.";
    RequestCancelled "request.cancelled"
        because &["caller", "disconnected", "order"],
        "A request was given up before it had an answer.";
    RequestRejected "request.rejected"
        because REFUSALS,
        "A request was refused and nothing ran; the reason is the code that its caller got.";
    RequestRetried "request.retried"
        because &["worker_lost", "retryable_error"],
        "A request is tried again.";
    RequestProgress often "request.progress"
        because &[],
        "The function has said how far it is: `progress`, as it said it.";
    SessionCreated often "session.created"
        because &[],
        "A session came into being: `session`.";
    SessionDeleted often "session.deleted"
        because &[],
        "A session was deleted.";
    SessionExpired often "session.expired"
        because &[],
        "A session was not used for its ttl, or has reached its end.";
    SessionBound often "session.bound"
        because &[],
        "A session has a process of its own from now on.";
    SessionRebound "session.rebound"
        because &["bound", "restored", "restarted"],
        "A session has another process: `restored` with what the old one kept, `restarted` without.";
    SessionSaved "session.saved"
        because &[],
        "The process of a session has handed over what it kept, because it leaves.";
    SessionReleased "session.released"
        because &[],
        "The process of a session leaves, and what it kept is gone.";
    SessionLost "session.lost"
        because &[],
        "The process of a session ended, and with it what it kept.";
    SessionUnbound often "session.unbound"
        because &[],
        "The binding was taken away, or the session has ended.";
    SessionQuota "session.quota"
        because &["near_limit"],
        "Four fifths of the sessions that may live do: `current`, `max`.";
    JobSubmitted often "job.submitted"
        because &[],
        "A job was accepted and stored: `job`.";
    JobStarted often "job.started"
        because &[],
        "A job has its workers for the first time.";
    JobRetried "job.retried"
        because &["error", "retryable", "crashed", "lost"],
        "An attempt of a job failed, and it will be tried again: `attempt`.";
    JobCompleted often "job.completed"
        because &[],
        "A job has its result.";
    JobFailed "job.failed"
        because JOB_FAILURES,
        "A job has failed for good.";
    JobCanceled "job.canceled"
        because JOB_CANCELS,
        "A job was cancelled, or ran out of time.";
}
