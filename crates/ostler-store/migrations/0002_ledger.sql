-- The ledger. Columns and their order are those of migrations/postgres; so is their meaning.
--
-- Times are milliseconds since 1970, flags are 0 or 1, and what nobody searches by is JSON text. A
-- checksum covers its row. Rows of a job are found by its id and removed together, by the server: a
-- declared reference would be looked up with every one of the twenty rows that a job writes.

-- Which opening of this file may write it: one row.
ALTER TABLE node RENAME TO owner;

-- Runs of servers.
CREATE TABLE node (
    id         TEXT PRIMARY KEY,
    version    TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    -- The lease by which it is known to live.
    expires_at INTEGER NOT NULL,
    ended_at   INTEGER
) STRICT, WITHOUT ROWID;

-- What never changes about a job.
CREATE TABLE job (
    id           TEXT PRIMARY KEY,
    workspace    TEXT NOT NULL,
    queue        TEXT NOT NULL,
    pool         TEXT NOT NULL,
    function     TEXT NOT NULL,
    parent       TEXT,
    root         TEXT NOT NULL,
    depth        INTEGER NOT NULL CHECK (depth BETWEEN 0 AND 5),
    child_key    TEXT,
    unique_key   TEXT,
    schedule     TEXT,
    retry_of     TEXT,
    spec         TEXT NOT NULL,
    tags         TEXT NOT NULL,
    payload_type TEXT NOT NULL,
    payload      BLOB NOT NULL,
    created_at   INTEGER NOT NULL,
    checksum     INTEGER NOT NULL,
    CHECK ((parent IS NULL) = (depth = 0))
) STRICT;
CREATE INDEX job_workspace ON job (workspace, id);
CREATE INDEX job_queue ON job (queue, id);
CREATE INDEX job_pool ON job (pool, id);
CREATE INDEX job_function ON job (function, id);
CREATE INDEX job_parent ON job (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX job_root ON job (root, id) WHERE parent IS NOT NULL;
CREATE INDEX job_schedule ON job (schedule, id) WHERE schedule IS NOT NULL;
CREATE UNIQUE INDEX job_child ON job (parent, child_key) WHERE child_key IS NOT NULL;

CREATE TABLE job_tag (
    job   TEXT NOT NULL,
    name  TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (job, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_tag_value ON job_tag (name, value, job);

-- The unique keys of jobs without an end.
CREATE TABLE job_unique (
    workspace  TEXT NOT NULL,
    function   TEXT NOT NULL,
    unique_key TEXT NOT NULL,
    job        TEXT NOT NULL UNIQUE,
    PRIMARY KEY (workspace, function, unique_key)
) STRICT, WITHOUT ROWID;

-- What changes about a job.
CREATE TABLE job_state (
    id             TEXT PRIMARY KEY,
    status         TEXT NOT NULL
        CHECK (status IN ('SUBMITTED', 'PENDING', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELED')),
    attempt        INTEGER NOT NULL,
    waiting        INTEGER NOT NULL,
    open_children  INTEGER NOT NULL,
    child_error    TEXT,
    cancel_at      INTEGER,
    cancel_reason  TEXT,
    cancel_by      TEXT,
    cancel_note    TEXT,
    cancel_request TEXT,
    progress       TEXT,
    error          TEXT,
    reason         TEXT,
    version        INTEGER NOT NULL,
    seq            INTEGER NOT NULL,
    event_seq      INTEGER NOT NULL,
    events_dropped INTEGER NOT NULL,
    started_at     INTEGER,
    completed_at   INTEGER,
    deadline       INTEGER,
    checksum       INTEGER NOT NULL,
    CHECK ((completed_at IS NOT NULL) = (status IN ('COMPLETED', 'FAILED', 'CANCELED')))
) STRICT, WITHOUT ROWID;
CREATE INDEX job_state_status ON job_state (status, id);
CREATE INDEX job_state_deadline ON job_state (deadline)
    WHERE deadline IS NOT NULL AND completed_at IS NULL AND cancel_at IS NULL;
CREATE INDEX job_state_ended ON job_state (completed_at, id) WHERE completed_at IS NOT NULL;

CREATE TABLE job_result (
    id           TEXT PRIMARY KEY,
    content_type TEXT NOT NULL,
    data         BLOB NOT NULL,
    checksum     INTEGER NOT NULL
) STRICT;

-- Work to be done or being done: small and hot.
CREATE TABLE task (
    job               TEXT PRIMARY KEY,
    pool              TEXT NOT NULL,
    queue             TEXT NOT NULL,
    workers           INTEGER NOT NULL CHECK (workers BETWEEN 1 AND 10),
    -- Of several workers.
    gang              INTEGER NOT NULL,
    priority          INTEGER NOT NULL,
    run_at            INTEGER NOT NULL,
    concurrency_key   TEXT,
    concurrency_limit INTEGER NOT NULL,
    attempt           INTEGER NOT NULL,
    fence             INTEGER NOT NULL,
    node              TEXT,
    -- Its job may be SUBMITTED: it waits for its time. So those that wait for hours and those that
    -- wait for a worker are not searched for each other.
    held              INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX task_ready ON task (pool, gang, priority DESC, run_at, job)
    WHERE node IS NULL AND held = 0;
CREATE INDEX task_time ON task (run_at, pool) WHERE node IS NULL;
CREATE INDEX task_held ON task (run_at) WHERE node IS NULL AND held = 1;
CREATE INDEX task_key ON task (concurrency_key)
    WHERE concurrency_key IS NOT NULL AND node IS NOT NULL;

CREATE TABLE attempt (
    job        TEXT NOT NULL,
    attempt    INTEGER NOT NULL,
    fence      INTEGER NOT NULL,
    node       TEXT NOT NULL,
    workers    TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at   INTEGER,
    outcome    TEXT,
    error      TEXT,
    PRIMARY KEY (job, attempt)
) STRICT, WITHOUT ROWID;

-- The audit trail: never changed, without gaps.
CREATE TABLE transition (
    entity     TEXT NOT NULL CHECK (entity IN ('job', 'worker')),
    id         TEXT NOT NULL,
    seq        INTEGER NOT NULL,
    from_state TEXT,
    to_state   TEXT NOT NULL,
    cause      TEXT NOT NULL,
    reason     TEXT,
    actor      TEXT NOT NULL,
    node       TEXT NOT NULL,
    request_id TEXT,
    at         INTEGER NOT NULL,
    checksum   INTEGER NOT NULL,
    PRIMARY KEY (entity, id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE job_event (
    job  TEXT NOT NULL,
    seq  INTEGER NOT NULL,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    at   INTEGER NOT NULL,
    PRIMARY KEY (job, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE queue (
    name      TEXT PRIMARY KEY,
    paused_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE schedule (
    id         TEXT PRIMARY KEY,
    workspace  TEXT NOT NULL,
    name       TEXT NOT NULL,
    spec       TEXT NOT NULL,
    next_at    INTEGER,
    last_at    INTEGER,
    last_job   TEXT,
    version    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (workspace, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX schedule_next ON schedule (next_at) WHERE next_at IS NOT NULL;

CREATE TABLE schedule_fire (
    schedule TEXT NOT NULL,
    at       INTEGER NOT NULL,
    job      TEXT,
    PRIMARY KEY (schedule, at)
) STRICT, WITHOUT ROWID;

CREATE TABLE worker (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    pool        TEXT NOT NULL,
    workspace   TEXT NOT NULL,
    dedicated   INTEGER NOT NULL,
    node        TEXT NOT NULL,
    status      TEXT NOT NULL
        CHECK (status IN ('IDLE', 'RUNNING', 'PAUSED', 'COMPLETED', 'FAILED', 'TERMINATED')),
    seq         INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    finished_at INTEGER,
    checksum    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX worker_name ON worker (name, created_at, id);
CREATE INDEX worker_open ON worker (pool, id) WHERE finished_at IS NULL;
CREATE INDEX worker_ended ON worker (finished_at, id) WHERE finished_at IS NOT NULL;

CREATE TABLE pool (
    name        TEXT PRIMARY KEY,
    number      INTEGER NOT NULL UNIQUE,
    next_worker INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency (
    caller      TEXT NOT NULL,
    route       TEXT NOT NULL,
    key         TEXT NOT NULL,
    fingerprint INTEGER NOT NULL,
    node        TEXT NOT NULL,
    stored      INTEGER NOT NULL,
    resource    TEXT,
    answer      TEXT,
    body        BLOB,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    PRIMARY KEY (caller, route, key)
) STRICT;
CREATE INDEX idempotency_expires ON idempotency (expires_at);
