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
        "workers.recycle",
        &[
            NO_WORKER,
            ("409", "illegal_transition, in_transition, worker_not_serving"),
            UNFIT,
            ENDING,
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
