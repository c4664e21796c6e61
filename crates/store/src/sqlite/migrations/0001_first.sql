-- The first schema. Instants are Unix milliseconds, spans are milliseconds, ids are their 16 bytes, words are the
-- codes of `codes.rs` (2 and up: SQLite stores 0 and 1 in no byte at all, and a row that keeps its size is
-- overwritten in place).
--
-- Ledger records stand where they are written once: the row of a message is its `message` record; the row of a
-- delivery holds both its events, `opened` (its key is that record's seq) and the final one (`closed_*`).

CREATE TABLE meta (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    -- The last seq given; written once a commit.
    seq INTEGER NOT NULL,
    -- The organisation's contract.
    contract INTEGER REFERENCES contract (key),
    -- How many deliveries came to each end, written with seq.
    succeeded INTEGER NOT NULL,
    dead INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    -- How many messages retention took away; their deliveries are counted in `tombstone`.
    removed_messages INTEGER NOT NULL
) STRICT;

CREATE TABLE contract (
    key INTEGER PRIMARY KEY,
    rev TEXT NOT NULL UNIQUE,
    canonical TEXT NOT NULL
) STRICT;
INSERT INTO meta (id, seq, succeeded, dead, cancelled, removed_messages) VALUES (1, 0, 0, 0, 0, 0);

CREATE TABLE boot (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE
) STRICT;

-- A node and its last sign of life.
CREATE TABLE node (
    key INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    boot INTEGER NOT NULL REFERENCES boot (key),
    wall INTEGER NOT NULL,
    mono INTEGER NOT NULL,
    -- False after a `down`: a start that finds it true follows a crash.
    up INTEGER NOT NULL
) STRICT;

CREATE TABLE node_event (
    seq INTEGER PRIMARY KEY,
    node INTEGER NOT NULL REFERENCES node (key),
    at INTEGER NOT NULL,
    boot INTEGER NOT NULL REFERENCES boot (key),
    mono INTEGER NOT NULL,
    event INTEGER NOT NULL,
    size_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE app (
    key INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    uid TEXT,
    name TEXT NOT NULL,
    throttle_rate INTEGER,
    metadata TEXT NOT NULL,
    contract INTEGER REFERENCES contract (key),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER
) STRICT;
CREATE UNIQUE INDEX app_uid ON app (uid) WHERE uid IS NOT NULL AND deleted_at IS NULL;

CREATE TABLE endpoint (
    key INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    app INTEGER NOT NULL REFERENCES app (key),
    uid TEXT,
    url TEXT NOT NULL,
    description TEXT NOT NULL,
    state INTEGER NOT NULL,
    event_types TEXT,
    channels TEXT,
    throttle_rate INTEGER,
    metadata TEXT NOT NULL,
    headers TEXT NOT NULL,
    secrets TEXT NOT NULL,
    contract INTEGER REFERENCES contract (key),
    failing_since INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
-- 5 is `deleted`.
CREATE UNIQUE INDEX endpoint_uid ON endpoint (app, uid) WHERE uid IS NOT NULL AND state <> 5;
CREATE INDEX endpoint_of_app ON endpoint (app, id) WHERE state <> 5;

CREATE TABLE endpoint_event (
    seq INTEGER PRIMARY KEY,
    endpoint INTEGER NOT NULL REFERENCES endpoint (key),
    at INTEGER NOT NULL,
    state INTEGER NOT NULL,
    why TEXT,
    by TEXT NOT NULL
) STRICT;
CREATE INDEX endpoint_event_of ON endpoint_event (endpoint);

CREATE TABLE token (
    id BLOB PRIMARY KEY,
    name TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;

-- Below is the hot path: no foreign keys, since each would be one more look-up a row.

-- The key is the seq of the `message` record.
CREATE TABLE message (
    key INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    app INTEGER NOT NULL,
    event_id TEXT,
    event_type TEXT NOT NULL,
    channels TEXT,
    contract INTEGER,
    accepted_at INTEGER NOT NULL,
    -- The deliveries opened with it: their keys are the `deliveries` numbers that follow its own.
    deliveries INTEGER NOT NULL,
    payload BLOB
) STRICT;
CREATE UNIQUE INDEX message_id ON message (id);
CREATE INDEX message_of_app ON message (app, id);
CREATE UNIQUE INDEX message_event ON message (app, event_id) WHERE event_id IS NOT NULL;

CREATE TABLE idempotency (
    app INTEGER NOT NULL,
    key TEXT NOT NULL,
    message INTEGER NOT NULL,
    PRIMARY KEY (app, key)
) STRICT, WITHOUT ROWID;

-- For retention, which comes from the message.
CREATE INDEX idempotency_of ON idempotency (message);

-- The key is the seq of its `opened` event. A delivery has a due time until it has an end.
CREATE TABLE delivery (
    key INTEGER PRIMARY KEY,
    message INTEGER NOT NULL,
    endpoint INTEGER NOT NULL,
    delivery_no INTEGER NOT NULL,
    -- 1 when a person opened it: it then stands outside its message's range of keys.
    resent INTEGER NOT NULL,
    state INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    trigger INTEGER NOT NULL,
    opened_at INTEGER NOT NULL,
    opened_retry INTEGER NOT NULL,
    first_started_at INTEGER,
    due_at INTEGER,
    due_mono INTEGER,
    due_boot INTEGER,
    wait_ms INTEGER,
    retry INTEGER,
    closed_seq INTEGER,
    closed_at INTEGER,
    closed_retry INTEGER,
    reason TEXT
) STRICT;
-- 2 is `pending`, 5 `dead`.
CREATE INDEX delivery_due ON delivery (endpoint, due_at, due_mono, due_boot) WHERE state = 2;
CREATE INDEX delivery_dead ON delivery (endpoint) WHERE state = 5;
CREATE INDEX delivery_resent ON delivery (message, endpoint, delivery_no) WHERE resent = 1;

CREATE TABLE attempt (
    delivery INTEGER NOT NULL,
    attempt_no INTEGER NOT NULL,
    endpoint INTEGER NOT NULL,
    -- The claim's reading: part of the attempt's id, together with the primary key.
    claimed_at INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    node INTEGER NOT NULL,
    trigger INTEGER NOT NULL,
    retry INTEGER NOT NULL,
    pacing INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    wait_ms INTEGER,
    started_at INTEGER NOT NULL,
    -- In flight: 2, the claim's reading and 999, since NULLs would make the row grow when it is settled.
    outcome INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    status INTEGER NOT NULL,
    error TEXT,
    retry_after TEXT,
    PRIMARY KEY (delivery, attempt_no)
) STRICT, WITHOUT ROWID;
CREATE INDEX attempt_of_endpoint ON attempt (endpoint, claimed_at);
-- What a crash leaves behind, superseded deliveries' too.
CREATE INDEX attempt_in_flight ON attempt (outcome) WHERE outcome = 2;

CREATE TABLE response (
    delivery INTEGER NOT NULL,
    attempt_no INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (delivery, attempt_no)
) STRICT, WITHOUT ROWID;

-- What retention took away, an endpoint.
CREATE TABLE tombstone (
    endpoint INTEGER PRIMARY KEY,
    succeeded INTEGER NOT NULL,
    dead INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    attempts INTEGER NOT NULL
) STRICT;
