-- Sessions and the ledger. Columns and their order are those of the SQLite files beside this
-- directory; so is their meaning. Texts that are searched by are ordered by their bytes, as everywhere
-- else in this program.
--
-- Times are milliseconds since 1970, flags are 0 or 1, and what nobody searches by is JSON text. A
-- checksum covers its row. Rows of a job are found by its id and removed together, by the server: a
-- declared reference would be looked up with every one of the twenty rows that a job writes.

-- Which opening of this database may write it, by part.
CREATE TABLE owner (
    part TEXT PRIMARY KEY,
    id   TEXT NOT NULL
);

-- The highest number of a session that was ever given: one row.
CREATE TABLE session_number (
    last BIGINT NOT NULL
);
INSERT INTO session_number VALUES (0);

CREATE TABLE session (
    number        BIGINT PRIMARY KEY,
    -- Unique among those that live; the server sees to that in memory.
    id            TEXT NOT NULL,
    version       BIGINT NOT NULL,
    metadata      TEXT NOT NULL,
    created_at    BIGINT NOT NULL,
    last_accessed BIGINT NOT NULL,
    ttl           BIGINT NOT NULL,
    expires_at    BIGINT,
    last_worker   TEXT,
    -- Where it is bound under a strict mode, and by which node: a JSON object, pool to node.
    strict_nodes  TEXT NOT NULL,
    checksum      BIGINT NOT NULL
);

CREATE TABLE session_program (
    session      BIGINT NOT NULL REFERENCES session ON DELETE CASCADE,
    name         TEXT COLLATE "C" NOT NULL,
    content_type TEXT NOT NULL,
    data         BYTEA NOT NULL,
    version      BIGINT NOT NULL,
    checksum     BIGINT NOT NULL,
    PRIMARY KEY (session, name)
);

-- What a worker remembered when it left, until the next one of its pool takes it.
CREATE TABLE session_state (
    session      BIGINT NOT NULL REFERENCES session ON DELETE CASCADE,
    pool         TEXT COLLATE "C" NOT NULL,
    content_type TEXT NOT NULL,
    data         BYTEA NOT NULL,
    checksum     BIGINT NOT NULL,
    PRIMARY KEY (session, pool)
);

-- Runs of servers.
CREATE TABLE node (
    id         TEXT COLLATE "C" PRIMARY KEY,
    version    TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    -- The lease by which it is known to live.
    expires_at BIGINT NOT NULL,
    ended_at   BIGINT
);

-- What never changes about a job.
CREATE TABLE job (
    id           TEXT COLLATE "C" PRIMARY KEY,
    workspace    TEXT COLLATE "C" NOT NULL,
    queue        TEXT COLLATE "C" NOT NULL,
    pool         TEXT COLLATE "C" NOT NULL,
    function     TEXT COLLATE "C" NOT NULL,
    parent       TEXT COLLATE "C",
    root         TEXT COLLATE "C" NOT NULL,
    depth        BIGINT NOT NULL CHECK (depth BETWEEN 0 AND 5),
    child_key    TEXT COLLATE "C",
    unique_key   TEXT COLLATE "C",
    schedule     TEXT COLLATE "C",
    retry_of     TEXT,
    spec         TEXT NOT NULL,
    tags         TEXT NOT NULL,
    payload_type TEXT NOT NULL,
    payload      BYTEA NOT NULL,
    created_at   BIGINT NOT NULL,
    checksum     BIGINT NOT NULL,
    CHECK ((parent IS NULL) = (depth = 0))
);
CREATE INDEX job_workspace ON job (workspace, id);
CREATE INDEX job_queue ON job (queue, id);
CREATE INDEX job_pool ON job (pool, id);
CREATE INDEX job_function ON job (function, id);
CREATE INDEX job_parent ON job (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX job_root ON job (root, id) WHERE parent IS NOT NULL;
CREATE INDEX job_schedule ON job (schedule, id) WHERE schedule IS NOT NULL;
CREATE UNIQUE INDEX job_child ON job (parent, child_key) WHERE child_key IS NOT NULL;

CREATE TABLE job_tag (
    job   TEXT COLLATE "C" NOT NULL,
    name  TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (job, name)
);
CREATE INDEX job_tag_value ON job_tag (name, value, job);

-- The unique keys of jobs without an end.
CREATE TABLE job_unique (
    workspace  TEXT COLLATE "C" NOT NULL,
    function   TEXT COLLATE "C" NOT NULL,
    unique_key TEXT COLLATE "C" NOT NULL,
    job        TEXT COLLATE "C" NOT NULL UNIQUE,
    PRIMARY KEY (workspace, function, unique_key)
);

-- What changes about a job.
CREATE TABLE job_state (
    id             TEXT COLLATE "C" PRIMARY KEY,
    status         TEXT NOT NULL
        CHECK (status IN ('SUBMITTED', 'PENDING', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELED')),
    attempt        BIGINT NOT NULL,
    waiting        BIGINT NOT NULL,
    open_children  BIGINT NOT NULL,
    child_error    TEXT,
    cancel_at      BIGINT,
    cancel_reason  TEXT,
    cancel_by      TEXT,
    cancel_note    TEXT,
    cancel_request TEXT,
    progress       TEXT,
    error          TEXT,
    reason         TEXT,
    version        BIGINT NOT NULL,
    seq            BIGINT NOT NULL,
    event_seq      BIGINT NOT NULL,
    events_dropped BIGINT NOT NULL,
    started_at     BIGINT,
    completed_at   BIGINT,
    deadline       BIGINT,
    checksum       BIGINT NOT NULL,
    CHECK ((completed_at IS NOT NULL) = (status IN ('COMPLETED', 'FAILED', 'CANCELED')))
) WITH (fillfactor = 80);
CREATE INDEX job_state_status ON job_state (status, id);
CREATE INDEX job_state_deadline ON job_state (deadline)
    WHERE deadline IS NOT NULL AND completed_at IS NULL AND cancel_at IS NULL;
CREATE INDEX job_state_ended ON job_state (completed_at, id) WHERE completed_at IS NOT NULL;

CREATE TABLE job_result (
    id           TEXT COLLATE "C" PRIMARY KEY,
    content_type TEXT NOT NULL,
    data         BYTEA NOT NULL,
    checksum     BIGINT NOT NULL
);

-- Work to be done or being done: small and hot.
CREATE TABLE task (
    job               TEXT COLLATE "C" PRIMARY KEY,
    pool              TEXT COLLATE "C" NOT NULL,
    queue             TEXT COLLATE "C" NOT NULL,
    workers           BIGINT NOT NULL CHECK (workers BETWEEN 1 AND 10),
    -- Of several workers.
    gang              BIGINT NOT NULL,
    priority          BIGINT NOT NULL,
    run_at            BIGINT NOT NULL,
    concurrency_key   TEXT COLLATE "C",
    concurrency_limit BIGINT NOT NULL,
    attempt           BIGINT NOT NULL,
    fence             BIGINT NOT NULL,
    node              TEXT COLLATE "C",
    -- Its job may be SUBMITTED: it waits for its time. So those that wait for hours and those that
    -- wait for a worker are not searched for each other.
    held              BIGINT NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
CREATE INDEX task_ready ON task (pool, gang, priority DESC, run_at, job)
    WHERE node IS NULL AND held = 0;
CREATE INDEX task_time ON task (run_at, pool) WHERE node IS NULL;
CREATE INDEX task_held ON task (run_at) WHERE node IS NULL AND held = 1;
CREATE INDEX task_key ON task (concurrency_key)
    WHERE concurrency_key IS NOT NULL AND node IS NOT NULL;

CREATE TABLE attempt (
    job        TEXT COLLATE "C" NOT NULL,
    attempt    BIGINT NOT NULL,
    fence      BIGINT NOT NULL,
    node       TEXT COLLATE "C" NOT NULL,
    workers    TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    ended_at   BIGINT,
    outcome    TEXT,
    error      TEXT,
    PRIMARY KEY (job, attempt)
);

-- The audit trail: never changed, without gaps.
CREATE TABLE transition (
    entity     TEXT COLLATE "C" NOT NULL CHECK (entity IN ('job', 'worker')),
    id         TEXT COLLATE "C" NOT NULL,
    seq        BIGINT NOT NULL,
    from_state TEXT,
    to_state   TEXT NOT NULL,
    cause      TEXT NOT NULL,
    reason     TEXT,
    actor      TEXT NOT NULL,
    node       TEXT COLLATE "C" NOT NULL,
    request_id TEXT,
    at         BIGINT NOT NULL,
    checksum   BIGINT NOT NULL,
    PRIMARY KEY (entity, id, seq)
);

CREATE TABLE job_event (
    job  TEXT COLLATE "C" NOT NULL,
    seq  BIGINT NOT NULL,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    at   BIGINT NOT NULL,
    PRIMARY KEY (job, seq)
);

CREATE TABLE queue (
    name      TEXT COLLATE "C" PRIMARY KEY,
    paused_at BIGINT
);

CREATE TABLE schedule (
    id         TEXT COLLATE "C" PRIMARY KEY,
    workspace  TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    spec       TEXT NOT NULL,
    next_at    BIGINT,
    last_at    BIGINT,
    last_job   TEXT,
    version    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (workspace, name)
);
CREATE INDEX schedule_next ON schedule (next_at) WHERE next_at IS NOT NULL;

CREATE TABLE schedule_fire (
    schedule TEXT COLLATE "C" NOT NULL,
    at       BIGINT NOT NULL,
    job      TEXT COLLATE "C",
    PRIMARY KEY (schedule, at)
);

CREATE TABLE worker (
    id          TEXT COLLATE "C" PRIMARY KEY,
    name        TEXT COLLATE "C" NOT NULL,
    pool        TEXT COLLATE "C" NOT NULL,
    workspace   TEXT COLLATE "C" NOT NULL,
    dedicated   BIGINT NOT NULL,
    node        TEXT COLLATE "C" NOT NULL,
    status      TEXT NOT NULL
        CHECK (status IN ('IDLE', 'RUNNING', 'PAUSED', 'COMPLETED', 'FAILED', 'TERMINATED')),
    seq         BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    finished_at BIGINT,
    checksum    BIGINT NOT NULL
);
CREATE INDEX worker_name ON worker (name, created_at, id);
CREATE INDEX worker_open ON worker (pool, id) WHERE finished_at IS NULL;
CREATE INDEX worker_ended ON worker (finished_at, id) WHERE finished_at IS NOT NULL;

CREATE TABLE pool (
    name        TEXT COLLATE "C" PRIMARY KEY,
    number      BIGINT NOT NULL UNIQUE,
    next_worker BIGINT NOT NULL
);

CREATE TABLE idempotency (
    caller      TEXT COLLATE "C" NOT NULL,
    route       TEXT COLLATE "C" NOT NULL,
    key         TEXT COLLATE "C" NOT NULL,
    fingerprint BIGINT NOT NULL,
    node        TEXT COLLATE "C" NOT NULL,
    stored      BIGINT NOT NULL,
    resource    TEXT,
    answer      TEXT,
    body        BYTEA,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL,
    PRIMARY KEY (caller, route, key)
);
CREATE INDEX idempotency_expires ON idempotency (expires_at);
