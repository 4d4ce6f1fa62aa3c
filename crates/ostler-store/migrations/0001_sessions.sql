-- Times and durations are milliseconds; times since 1970.
-- A checksum covers its row but for what is written late (last_accessed, last_worker).

-- The run of the server that owns this file: one row.
CREATE TABLE node (
    id         TEXT PRIMARY KEY
) STRICT;

CREATE TABLE session (
    -- Never given twice.
    number        INTEGER PRIMARY KEY AUTOINCREMENT,
    -- Unique among those that live; the server sees to that in memory.
    id            TEXT NOT NULL,
    version       INTEGER NOT NULL,
    metadata      TEXT NOT NULL,
    created_at    INTEGER NOT NULL,
    last_accessed INTEGER NOT NULL,
    ttl           INTEGER NOT NULL,
    expires_at    INTEGER,
    last_worker   TEXT,
    -- Where it is bound under a strict mode, and by which node: a JSON object, pool to node.
    strict_nodes  TEXT NOT NULL,
    checksum      INTEGER NOT NULL
) STRICT;

CREATE TABLE session_program (
    session      INTEGER NOT NULL REFERENCES session ON DELETE CASCADE,
    name         TEXT NOT NULL,
    content_type TEXT NOT NULL,
    data         BLOB NOT NULL,
    version      INTEGER NOT NULL,
    checksum     INTEGER NOT NULL,
    PRIMARY KEY (session, name)
) STRICT;

-- What a worker remembered when it left, until the next one of its pool takes it.
CREATE TABLE session_state (
    session      INTEGER NOT NULL REFERENCES session ON DELETE CASCADE,
    pool         TEXT NOT NULL,
    content_type TEXT NOT NULL,
    data         BLOB NOT NULL,
    checksum     INTEGER NOT NULL,
    PRIMARY KEY (session, pool)
) STRICT;
