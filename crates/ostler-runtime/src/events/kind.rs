//! The kinds of events: a closed list, from which the catalogue in the documentation is made.

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    WorkerSpawned,
    WorkerReady,
    WorkerBusy,
    WorkerIdle,
    WorkerDegraded,
    WorkerRecovered,
    WorkerUnresponsive,
    WorkerStopping,
    WorkerCrashed,
    WorkerTerminated,
    WorkerTransition,
    WorkerRestartDelayed,
    PoolReady,
    PoolAllReady,
    PoolFailed,
    PoolRecovered,
    PoolDraining,
    PoolStopped,
    RequestCompleted,
    RequestFailed,
    RequestCancelled,
    RequestRejected,
    RequestRetried,
    RequestProgress,
}

const STOP_REASONS: &[&str] = &[
    "shutdown",
    "retired",
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
    "gave_up",
];

const CRASH_CLASSES: &[&str] = &["segfault", "abort", "killed", "oom", "signal", "exit", "unknown"];

/// Stopped for one of the first, or ended by itself in one of the last.
const END_REASONS: &[&str] = &[
    "shutdown",
    "retired",
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
    "gave_up",
    "exited",
    "spawn_failed",
];

/// Codes of problems, as the caller gets them. Those of refusals are among them: a request may be
/// turned away after it had reached a worker.
const FAILURES: &[&str] = &[
    "application_error",
    "deadline_exceeded",
    "worker_crashed",
    "worker_stopped",
    "worker_unresponsive",
    "worker_answered_nonsense",
    "result_too_large",
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
];

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
];

impl EventKind {
    pub const ALL: [EventKind; 24] = [
        EventKind::WorkerSpawned,
        EventKind::WorkerReady,
        EventKind::WorkerBusy,
        EventKind::WorkerIdle,
        EventKind::WorkerDegraded,
        EventKind::WorkerRecovered,
        EventKind::WorkerUnresponsive,
        EventKind::WorkerStopping,
        EventKind::WorkerCrashed,
        EventKind::WorkerTerminated,
        EventKind::WorkerTransition,
        EventKind::WorkerRestartDelayed,
        EventKind::PoolReady,
        EventKind::PoolAllReady,
        EventKind::PoolFailed,
        EventKind::PoolRecovered,
        EventKind::PoolDraining,
        EventKind::PoolStopped,
        EventKind::RequestCompleted,
        EventKind::RequestFailed,
        EventKind::RequestCancelled,
        EventKind::RequestRejected,
        EventKind::RequestRetried,
        EventKind::RequestProgress,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            EventKind::WorkerSpawned => "worker.spawned",
            EventKind::WorkerReady => "worker.ready",
            EventKind::WorkerBusy => "worker.busy",
            EventKind::WorkerIdle => "worker.idle",
            EventKind::WorkerDegraded => "worker.degraded",
            EventKind::WorkerRecovered => "worker.recovered",
            EventKind::WorkerUnresponsive => "worker.unresponsive",
            EventKind::WorkerStopping => "worker.stopping",
            EventKind::WorkerCrashed => "worker.crashed",
            EventKind::WorkerTerminated => "worker.terminated",
            EventKind::WorkerTransition => "worker.transition",
            EventKind::WorkerRestartDelayed => "worker.restart_delayed",
            EventKind::PoolReady => "pool.ready",
            EventKind::PoolAllReady => "pool.all_ready",
            EventKind::PoolFailed => "pool.failed",
            EventKind::PoolRecovered => "pool.recovered",
            EventKind::PoolDraining => "pool.draining",
            EventKind::PoolStopped => "pool.stopped",
            EventKind::RequestCompleted => "request.completed",
            EventKind::RequestFailed => "request.failed",
            EventKind::RequestCancelled => "request.cancelled",
            EventKind::RequestRejected => "request.rejected",
            EventKind::RequestRetried => "request.retried",
            EventKind::RequestProgress => "request.progress",
        }
    }

    pub fn named(name: &str) -> Option<EventKind> {
        EventKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Comes with every call, and is made only while somebody follows all events.
    pub const fn frequent(self) -> bool {
        match self {
            EventKind::WorkerBusy
            | EventKind::WorkerIdle
            | EventKind::RequestCompleted
            | EventKind::RequestProgress => true,
            EventKind::WorkerSpawned
            | EventKind::WorkerReady
            | EventKind::WorkerDegraded
            | EventKind::WorkerRecovered
            | EventKind::WorkerUnresponsive
            | EventKind::WorkerStopping
            | EventKind::WorkerCrashed
            | EventKind::WorkerTerminated
            | EventKind::WorkerTransition
            | EventKind::WorkerRestartDelayed
            | EventKind::PoolReady
            | EventKind::PoolAllReady
            | EventKind::PoolFailed
            | EventKind::PoolRecovered
            | EventKind::PoolDraining
            | EventKind::PoolStopped
            | EventKind::RequestFailed
            | EventKind::RequestCancelled
            | EventKind::RequestRejected
            | EventKind::RequestRetried => false,
        }
    }

    /// One sentence for the catalogue.
    pub const fn about(self) -> &'static str {
        match self {
            EventKind::WorkerSpawned => "A process was started for the worker.",
            EventKind::WorkerReady => {
                "The process has said that it is ready; `seconds` is how long it took to start."
            }
            EventKind::WorkerBusy => "The worker's load has reached its capacity.",
            EventKind::WorkerIdle => "The worker's load has fallen below its capacity.",
            EventKind::WorkerDegraded => {
                "The worker gets no new work until a health check or a sign of life clears it."
            }
            EventKind::WorkerRecovered => "A degraded worker is well again.",
            EventKind::WorkerUnresponsive => {
                "The worker is silent while it holds requests; it is left to their deadlines."
            }
            EventKind::WorkerStopping => "The process was told to end.",
            EventKind::WorkerCrashed => {
                "The process ended and nobody had asked it to: `code` or `signal`, and the last lines of its `stderr`."
            }
            EventKind::WorkerTerminated => {
                "Nothing is left of the process: `seconds` is how long it lived, `planned` whether it was meant to end, `requests` how many the worker has ended."
            }
            EventKind::WorkerTransition => {
                "The worker's status has changed and the change is stored."
            }
            EventKind::WorkerRestartDelayed => {
                "The worker's next process waits for its backoff: `delay_seconds`."
            }
            EventKind::PoolReady => "The pool's first worker is ready.",
            EventKind::PoolAllReady => "All workers of the pool were ready.",
            EventKind::PoolFailed => {
                "The pool's restart budget is spent: no new processes for a while."
            }
            EventKind::PoolRecovered => "A worker came up again and the pool refills.",
            EventKind::PoolDraining => "The pool takes no new requests and finishes those it has.",
            EventKind::PoolStopped => "Every process of the pool is gone.",
            EventKind::RequestCompleted => "A request was answered.",
            EventKind::RequestFailed => {
                "A request ended in an error; the reason is the code that its caller got."
            }
            EventKind::RequestCancelled => "A request was given up before it had an answer.",
            EventKind::RequestRejected => {
                "A request was refused and nothing ran; the reason is the code that its caller got."
            }
            EventKind::RequestRetried => "A request is tried again.",
            EventKind::RequestProgress => {
                "The function has said how far it is: `progress`, as it said it."
            }
        }
    }

    /// Every reason that an event of this kind may have; none if it never has one.
    pub const fn reasons(self) -> &'static [&'static str] {
        match self {
            EventKind::WorkerSpawned => &["first", "restart"],
            EventKind::WorkerDegraded => &["heartbeat_missed", "check_failed"],
            EventKind::WorkerRecovered => &["heard", "check_passed"],
            EventKind::WorkerUnresponsive => &["heartbeat_missed"],
            EventKind::WorkerStopping => STOP_REASONS,
            EventKind::WorkerCrashed => CRASH_CLASSES,
            EventKind::WorkerTerminated => END_REASONS,
            EventKind::WorkerTransition => &[
                "create",
                "start",
                "pause",
                "resource_exhausted",
                "resume",
                "complete",
                "error_unrecoverable",
                "terminate",
            ],
            EventKind::WorkerRestartDelayed => &["backoff"],
            EventKind::PoolFailed => &["restart_budget_spent"],
            EventKind::PoolDraining => &["shutdown", "ordered"],
            EventKind::RequestFailed => FAILURES,
            EventKind::RequestCancelled => &["caller", "disconnected", "order"],
            EventKind::RequestRejected => REFUSALS,
            EventKind::RequestRetried => &["worker_lost", "retryable_error"],
            EventKind::WorkerReady
            | EventKind::WorkerBusy
            | EventKind::WorkerIdle
            | EventKind::PoolReady
            | EventKind::PoolAllReady
            | EventKind::PoolRecovered
            | EventKind::PoolStopped
            | EventKind::RequestCompleted
            | EventKind::RequestProgress => &[],
        }
    }
}
