//! The problems that each operation can answer with, by status: for the description, so that clients
//! know what to expect. What every operation can answer with is not repeated here.

/// An operation and the statuses and codes of its problems.
pub(crate) type Refusals = (&'static str, &'static [(&'static str, &'static str)]);

const NO_POOL: (&str, &str) = ("404", "pool_not_found");
const NO_WORKER: (&str, &str) = ("404", "worker_not_found");
const NO_LEASE: (&str, &str) = ("404", "lease_not_found");
const NO_SESSION: (&str, &str) = ("404", "session_not_found");
const NO_PROGRAM: (&str, &str) = ("404", "session_not_found, program_not_found");
const UNFIT: (&str, &str) = ("422", "validation");
const UNFIT_SESSION: (&str, &str) = ("422", "validation, invalid_session");
const LATE: (&str, &str) = ("408", "body_timeout");
const LARGE: (&str, &str) = ("413", "body_too_large");
const LARGE_SESSION: (&str, &str) = ("413", "body_too_large, metadata_too_large");
const KIND: (&str, &str) = ("415", "unsupported_media_type");
const CONFLICT: (&str, &str) = ("412", "version_conflict");
const ENDING: (&str, &str) = ("503", "shutting_down");
const STORE: (&str, &str) = ("503", "store_unavailable");
const FULL: (&str, &str) = ("507", "session_store_full");
const NO_JOB: (&str, &str) = ("404", "job_not_found");
const NO_SCHEDULE: (&str, &str) = ("404", "schedule_not_found");
const NO_ROOM: (&str, &str) = ("507", "store_full");
const DOUBT: (&str, &str) = ("500", "store_doubtful");
const UNFIT_JOB: (&str, &str) = ("422", "validation, unknown_pool, too_many_workers");
const STATUS: (&str, &str) = ("409", "illegal_transition, in_transition, worker_not_serving");
const LATE_ORDER: (&str, &str) = ("504", "supervisor_timeout");
const ORDERED: (&str, &str) = ("503", "shutting_down, store_unavailable");

pub(crate) const REFUSALS: &[Refusals] = &[
    (
        "server.reload",
        &[
            NO_POOL,
            LATE,
            ("409", "reload_failed, reload_underway"),
            LARGE,
            KIND,
            ("422", "invalid_configuration, validation"),
            ("500", "reload_failed"),
            ("501", "not_available"),
        ],
    ),
    ("server.stop", &[LATE, LARGE, KIND]),
    ("pools.pause", &[NO_POOL, UNFIT, ENDING]),
    ("pools.resume", &[NO_POOL, UNFIT, ENDING]),
    ("pools.drain", &[NO_POOL, UNFIT, ENDING]),
    ("pools.scale", &[NO_POOL, LATE, LARGE, KIND, UNFIT, ENDING]),
    ("pools.recycle", &[NO_POOL, UNFIT, ENDING]),
    (
        "workers.create",
        &[
            NO_POOL,
            LATE,
            LARGE,
            KIND,
            ("409", "not_in_keyed_pool"),
            UNFIT,
            ("429", "dedicated_full"),
            ORDERED,
        ],
    ),
    ("workers.start", &[NO_WORKER, LATE, STATUS, LARGE, KIND, UNFIT, ORDERED, LATE_ORDER]),
    ("workers.pause", &[NO_WORKER, LATE, STATUS, LARGE, KIND, UNFIT, ORDERED, LATE_ORDER]),
    ("workers.resume", &[NO_WORKER, LATE, STATUS, LARGE, KIND, UNFIT, ORDERED, LATE_ORDER]),
    ("workers.complete", &[NO_WORKER, LATE, STATUS, LARGE, KIND, UNFIT, ORDERED, LATE_ORDER]),
    ("workers.terminate", &[NO_WORKER, LATE, STATUS, LARGE, KIND, UNFIT, ORDERED, LATE_ORDER]),
    ("workers.recycle", &[NO_WORKER, LATE, STATUS, LARGE, KIND, UNFIT, ORDERED, LATE_ORDER]),
    ("workers.transitions", &[NO_WORKER, UNFIT, STORE]),
    ("workers.get", &[NO_WORKER, UNFIT, STORE]),
    (
        "jobs.submit",
        &[LATE, LARGE, KIND, UNFIT_JOB, ("429", "job_quota_exceeded"), DOUBT, STORE, NO_ROOM],
    ),
    (
        "jobs.submit_batch",
        &[LATE, LARGE, KIND, UNFIT_JOB, ("429", "job_quota_exceeded"), DOUBT, STORE, NO_ROOM],
    ),
    ("jobs.list", &[UNFIT, STORE]),
    ("jobs.get", &[NO_JOB, UNFIT, STORE]),
    ("jobs.transitions", &[NO_JOB, UNFIT, STORE]),
    ("jobs.attempts", &[NO_JOB, UNFIT, STORE]),
    ("jobs.children", &[NO_JOB, UNFIT, STORE]),
    ("jobs.result", &[NO_JOB, ("409", "no_result"), UNFIT, STORE]),
    ("jobs.events", &[NO_JOB, UNFIT, STORE]),
    (
        "jobs.cancel",
        &[NO_JOB, LATE, ("409", "illegal_transition"), LARGE, KIND, UNFIT, DOUBT, STORE, NO_ROOM],
    ),
    (
        "jobs.retry",
        &[
            NO_JOB,
            LATE,
            ("409", "illegal_transition"),
            LARGE,
            KIND,
            UNFIT,
            ("429", "job_quota_exceeded"),
            DOUBT,
            STORE,
            NO_ROOM,
        ],
    ),
    ("queues.list", &[UNFIT, STORE]),
    ("queues.pause", &[LATE, LARGE, KIND, UNFIT, DOUBT, STORE, NO_ROOM]),
    ("queues.resume", &[LATE, LARGE, KIND, UNFIT, DOUBT, STORE, NO_ROOM]),
    (
        "schedules.create",
        &[
            LATE,
            ("409", "schedule_exists"),
            LARGE,
            KIND,
            ("422", "validation, unknown_pool"),
            ("429", "schedule_quota_exceeded"),
            DOUBT,
            STORE,
            NO_ROOM,
        ],
    ),
    ("schedules.list", &[UNFIT, STORE]),
    ("schedules.get", &[NO_SCHEDULE, UNFIT, STORE]),
    (
        "schedules.patch",
        &[
            NO_SCHEDULE,
            LATE,
            LARGE,
            KIND,
            ("422", "validation, unknown_pool"),
            DOUBT,
            STORE,
            NO_ROOM,
        ],
    ),
    ("schedules.delete", &[NO_SCHEDULE, UNFIT, DOUBT, STORE, NO_ROOM]),
    ("schedules.pause", &[NO_SCHEDULE, LATE, LARGE, KIND, UNFIT, DOUBT, STORE, NO_ROOM]),
    ("schedules.resume", &[NO_SCHEDULE, LATE, LARGE, KIND, UNFIT, DOUBT, STORE, NO_ROOM]),
    ("audit.verify", &[UNFIT, STORE]),
    ("store.check", &[UNFIT, STORE]),
    (
        "store.backup",
        &[
            ("403", "socket_only, host_not_allowed, origin_not_allowed"),
            LATE,
            ("409", "file_exists"),
            LARGE,
            KIND,
            UNFIT,
            STORE,
            NO_ROOM,
        ],
    ),
    (
        "leases.create",
        &[
            NO_POOL,
            LATE,
            ("409", "not_in_keyed_pool"),
            LARGE,
            KIND,
            ("422", "validation, too_many_workers"),
            ("429", "too_many_leases"),
            ("503", "lease_timeout, pool_draining, pool_failed, shutting_down"),
        ],
    ),
    ("leases.list", &[NO_POOL, UNFIT]),
    ("leases.get", &[NO_LEASE, UNFIT]),
    ("leases.renew", &[NO_LEASE, LATE, LARGE, KIND, UNFIT]),
    ("leases.delete", &[NO_LEASE, LATE, LARGE, KIND, UNFIT]),
    (
        "sessions.create",
        &[
            LATE,
            ("409", "session_exists"),
            LARGE_SESSION,
            KIND,
            UNFIT_SESSION,
            ("429", "session_quota_exceeded"),
            STORE,
            FULL,
        ],
    ),
    ("sessions.list", &[UNFIT]),
    ("sessions.get", &[NO_SESSION, UNFIT]),
    (
        "sessions.patch",
        &[
            NO_SESSION,
            LATE,
            CONFLICT,
            LARGE_SESSION,
            KIND,
            UNFIT_SESSION,
            ("428", "version_required"),
            STORE,
            FULL,
        ],
    ),
    ("sessions.delete", &[NO_SESSION, CONFLICT, UNFIT, STORE]),
    ("sessions.stats", &[UNFIT]),
    ("sessions.figures", &[NO_SESSION, UNFIT]),
    ("sessions.sweep", &[UNFIT]),
    ("programs.list", &[NO_SESSION, UNFIT]),
    ("programs.get", &[NO_PROGRAM, UNFIT]),
    (
        "programs.put",
        &[
            NO_SESSION,
            LATE,
            CONFLICT,
            LARGE,
            ("422", "validation, invalid_session, program_quota_exceeded"),
            STORE,
            FULL,
        ],
    ),
    ("programs.delete", &[NO_PROGRAM, CONFLICT, UNFIT, STORE]),
    ("binding.get", &[NO_SESSION, UNFIT]),
    (
        "binding.put",
        &[
            ("404", "session_not_found, worker_not_found, pool_not_found"),
            LATE,
            ("409", "worker_not_serving, not_in_keyed_pool"),
            LARGE,
            KIND,
            UNFIT,
            ENDING,
        ],
    ),
    ("binding.delete", &[("404", "session_not_found, pool_not_found"), UNFIT, ENDING]),
];
