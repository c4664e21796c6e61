-- The typed tables of a ledger in SQLite (3.39 or later): from raw text to STRICT columns, and the contracts taken apart.
--
-- Before: raw_attempts, raw_delivery_events, raw_messages, raw_endpoint_events, raw_node_events, raw_contracts, all text,
-- and raw_received, a receiver's log, one JSON object a line (ledger.sqlite-import.sql). After: the tables that ledger.sql judges. A text that is no whole number, an unknown word
-- or a missing value stops the load: a ledger that cannot be read is not judged.
--
-- In the export `-` is null, `\-` is the text -, and \\ \t \n \r are a backslash, a tab, a line feed and a carriage return.
-- char(1) stands in for the backslash while the others are put back.
CREATE TABLE attempts (
  attempt_id TEXT NOT NULL, seq INTEGER NOT NULL, message_id TEXT NOT NULL, endpoint_id TEXT NOT NULL,
  delivery_no INTEGER NOT NULL CHECK (delivery_no >= 1), attempt_no INTEGER NOT NULL CHECK (attempt_no >= 1),
  retry_rev TEXT NOT NULL, endpoint_rev TEXT NOT NULL, due_at INTEGER NOT NULL, started_at INTEGER NOT NULL, ended_at INTEGER,
  outcome TEXT CHECK (outcome IN ('succeeded', 'failed', 'timed_out', 'refused', 'interrupted')), status INTEGER, error TEXT,
  retry_after TEXT, wait_ms INTEGER CHECK (wait_ms >= 0), node TEXT NOT NULL,
  trigger TEXT NOT NULL CHECK (trigger IN ('scheduled', 'manual'))
) STRICT;
CREATE TABLE delivery_events (
  seq INTEGER NOT NULL, message_id TEXT NOT NULL, endpoint_id TEXT NOT NULL,
  delivery_no INTEGER NOT NULL CHECK (delivery_no >= 1), at INTEGER NOT NULL,
  event TEXT NOT NULL CHECK (event IN ('opened', 'succeeded', 'dead', 'cancelled', 'superseded')), reason TEXT,
  retry_rev TEXT NOT NULL
) STRICT;
CREATE TABLE messages (
  seq INTEGER NOT NULL, message_id TEXT NOT NULL, at INTEGER NOT NULL, deliveries INTEGER NOT NULL CHECK (deliveries >= 0)
) STRICT;
CREATE TABLE endpoint_events (
  seq INTEGER NOT NULL, endpoint_id TEXT NOT NULL, at INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('active', 'draining', 'disabled', 'deleted')), why TEXT, "by" TEXT NOT NULL
) STRICT;
CREATE TABLE node_events (
  seq INTEGER NOT NULL, node TEXT NOT NULL, at INTEGER NOT NULL, boot_id TEXT NOT NULL, mono_ms INTEGER NOT NULL,
  event TEXT NOT NULL CHECK (event IN ('up', 'down', 'step')), size_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE contracts (
  rev TEXT NOT NULL, canonical TEXT NOT NULL
) STRICT;

-- `-` is null, and no column that must be there takes it.
INSERT INTO attempts SELECT
  nullif(attempt_id, '-'), nullif(seq, '-'), nullif(message_id, '-'), nullif(endpoint_id, '-'), nullif(delivery_no, '-'),
  nullif(attempt_no, '-'), nullif(retry_rev, '-'), nullif(endpoint_rev, '-'), nullif(due_at, '-'), nullif(started_at, '-'),
  nullif(ended_at, '-'), nullif(outcome, '-'), nullif(status, '-'), nullif(error, '-'), nullif(retry_after, '-'),
  nullif(wait_ms, '-'), nullif(node, '-'), nullif(trigger, '-')
FROM raw_attempts;
INSERT INTO delivery_events SELECT
  nullif(seq, '-'), nullif(message_id, '-'), nullif(endpoint_id, '-'), nullif(delivery_no, '-'), nullif(at, '-'),
  nullif(event, '-'), nullif(reason, '-'), nullif(retry_rev, '-')
FROM raw_delivery_events;
INSERT INTO messages SELECT
  nullif(seq, '-'), nullif(message_id, '-'), nullif(at, '-'), nullif(deliveries, '-')
FROM raw_messages;
INSERT INTO endpoint_events SELECT
  nullif(seq, '-'), nullif(endpoint_id, '-'), nullif(at, '-'), nullif(state, '-'), nullif(why, '-'), nullif("by", '-')
FROM raw_endpoint_events;
INSERT INTO node_events SELECT
  nullif(seq, '-'), nullif(node, '-'), nullif(at, '-'), nullif(boot_id, '-'), nullif(mono_ms, '-'), nullif(event, '-'),
  nullif(size_ms, '-')
FROM raw_node_events;
INSERT INTO contracts SELECT
  nullif(rev, '-'), nullif(canonical, '-')
FROM raw_contracts;
-- The escapes, where there are any.
UPDATE attempts SET attempt_id = replace(replace(replace(replace(replace(replace(attempt_id, '\\', char(1)), '\t', char(9)), '\n', char(10)), '\r', char(13)), '\-', '-'), char(1), '\') WHERE instr(attempt_id, '\') > 0;
UPDATE attempts SET message_id = replace(replace(replace(replace(replace(replace(message_id, '\\', char(1)), '\t', char(9)), '\n', char(10)), '\r', char(13)), '\-', '-'), char(1), '\') WHERE instr(message_id, '\') > 0;
UPDATE attempts SET endpoint_id = replace(replace(replace(replace(replace(replace(endpoint_id, '\\', char(1)), '\t', char(9)), '\n', char(10)), '\r', char(13)), '\-', '-'), char(1), '\') WHERE instr(endpoint_id, '\') > 0;
UPDATE attempts SET retry_rev = replace(replace(replace(replace(replace(replace(retry_rev, '\\', char(1)), '\t', char(9)), '\n', char(10)), '\r', char(13)), '\-', '-'), char(1), '\') WHERE instr(retry_rev, '\') > 0;
UPDATE attempts SET endpoint_rev = replace(replace(replace(replace(replace(replace(endpoint_rev, '\\', char(1)), '\t', char(9)), '\n', char(10)), '\r', char(13)), '\-', '-'), char(1), '\') WHERE instr(endpoint_rev, '\') > 0;
UPDATE attempts SET error = replace(replace(replace(replace(replace(replace(error, '\\', char(1)), '\t', char(9)), '\n', char(10)), '\r', char(13)), '\-', '-'), char(1), '\') WHERE instr(error, '\') > 0;
UPDATE attempts SET retry_after = replace(replace(replace(replace(replace(replace(retry_after, '\\', char(1)), '\t', char(9)), '\n', char(10)), '\r', char(13)), '\-', '-'), char(1), '\') WHERE instr(retry_after, '\') > 0;
UPDATE attempts SET node = replace(replace(replace(replace(replace(replace(node, '\\', char(1)), '\t', char(9)), '\n', char(10)), '\r', char(13)), '\-', '-'), char(1), '\') WHERE instr(node, '\') > 0;
UPDATE delivery_events SET message_id = replace(replace(replace(replace(replace(replace(message_id, '\\', char(1)), '\t', char(9)), '\n', char(10)), '\r', char(13)), '\-', '-'), char(1), '\') WHERE instr(message_id, '\') > 0;
UPDATE delivery_events SET endpoint_id = replace(replace(replace(replace(replace(replace(endpoint_id, '\\', char(1)), '\t', char(9)), '\n', char(10)), '\r', char(13)), '\-', '-'), char(1), '\') WHERE instr(endpoint_id, '\') > 0;
UPDATE delivery_events SET reason = replace(replace(replace(replace(replace(replace(reason, '\\', char(1)), '\t', char(9)), '\n', char(10)), '\r', char(13)), '\-', '-'), char(1), '\') WHERE instr(reason, '\') > 0;
UPDATE delivery_events SET retry_rev = replace(replace(replace(replace(replace(replace(retry_rev, '\\', char(1)), '\t', char(9)), '\n', char(10)), '\r', char(13)), '\-', '-'), char(1), '\') WHERE instr(retry_rev, '\') > 0;
UPDATE messages SET message_id = replace(replace(replace(replace(replace(replace(message_id, '\\', char(1)), '\t', char(9)), '\n', char(10)), '\r', char(13)), '\-', '-'), char(1), '\') WHERE instr(message_id, '\') > 0;
UPDATE endpoint_events SET endpoint_id = replace(replace(replace(replace(replace(replace(endpoint_id, '\\', char(1)), '\t', char(9)), '\n', char(10)), '\r', char(13)), '\-', '-'), char(1), '\') WHERE instr(endpoint_id, '\') > 0;
UPDATE endpoint_events SET why = replace(replace(replace(replace(replace(replace(why, '\\', char(1)), '\t', char(9)), '\n', char(10)), '\r', char(13)), '\-', '-'), char(1), '\') WHERE instr(why, '\') > 0;
UPDATE endpoint_events SET "by" = replace(replace(replace(replace(replace(replace("by", '\\', char(1)), '\t', char(9)), '\n', char(10)), '\r', char(13)), '\-', '-'), char(1), '\') WHERE instr("by", '\') > 0;
UPDATE node_events SET node = replace(replace(replace(replace(replace(replace(node, '\\', char(1)), '\t', char(9)), '\n', char(10)), '\r', char(13)), '\-', '-'), char(1), '\') WHERE instr(node, '\') > 0;
UPDATE node_events SET boot_id = replace(replace(replace(replace(replace(replace(boot_id, '\\', char(1)), '\t', char(9)), '\n', char(10)), '\r', char(13)), '\-', '-'), char(1), '\') WHERE instr(boot_id, '\') > 0;
UPDATE contracts SET rev = replace(replace(replace(replace(replace(replace(rev, '\\', char(1)), '\t', char(9)), '\n', char(10)), '\r', char(13)), '\-', '-'), char(1), '\') WHERE instr(rev, '\') > 0;
UPDATE contracts SET canonical = replace(replace(replace(replace(replace(replace(canonical, '\\', char(1)), '\t', char(9)), '\n', char(10)), '\r', char(13)), '\-', '-'), char(1), '\') WHERE instr(canonical, '\') > 0;
CREATE TABLE received AS SELECT rowid AS line, CAST(line ->> '$.attempt_id' AS TEXT) AS attempt_id FROM raw_received WHERE line <> '';
CREATE INDEX attempts_by_id ON attempts (attempt_id);
CREATE INDEX attempts_by_seq ON attempts (seq);
CREATE INDEX attempts_by_delivery ON attempts (message_id, endpoint_id, delivery_no, seq);
CREATE INDEX delivery_events_by_delivery ON delivery_events (message_id, endpoint_id, delivery_no, event);
CREATE INDEX endpoint_events_by_endpoint ON endpoint_events (endpoint_id, seq);

-- Each contract in clauses: its canonical JSON, read and not interpreted.
CREATE TABLE contract_clause AS
  SELECT rev, canonical ->> '$.retry.max_attempts' AS max_attempts, canonical ->> '$.retry.max_age_ms' AS max_age_ms,
         canonical ->> '$.retry.anchor' AS anchor, canonical ->> '$.retry.slack_ms' AS slack_ms, canonical ->> '$.retry.late_after_ms' AS late_after_ms,
         canonical ->> '$.retry.backoff.cap_ms' AS cap_ms, canonical ->> '$.retry.backoff.floor_ms' AS floor_ms,
         canonical ->> '$.retry.jitter.kind' AS jitter, canonical ->> '$.retry.jitter.ratio_ppm' AS ratio_ppm, canonical ->> '$.retry.jitter.direction' AS direction,
         canonical ->> '$.retry.jitter.cap_after_jitter' AS cap_after_jitter,
         canonical ->> '$.retry.retry_after.rule' AS ra_rule, canonical ->> '$.retry.retry_after.max_ms' AS ra_max_ms, canonical ->> '$.retry.retry_after.times' AS ra_times,
         canonical ->> '$.endpoint.min_gap_ms' AS min_gap_ms, canonical ->> '$.endpoint.rate.starts' AS rate_starts,
         canonical ->> '$.endpoint.rate.window_ms' AS rate_window_ms, canonical ->> '$.endpoint.in_flight' AS in_flight
  FROM contracts WHERE json_valid(canonical);
CREATE INDEX contract_clause_by_rev ON contract_clause (rev);
-- A law that stands alone is its own only part.
CREATE TABLE contract_part AS
  SELECT c.rev, j.key + 1 AS part_no, j.value ->> '$.law' AS law, j.value ->> '$.base_ms' AS base_ms, j.value ->> '$.step_ms' AS step_ms,
         j.value ->> '$.factor_ppm' AS factor_ppm, j.value ->> '$.power' AS power, j.value ->> '$.then' AS then_word, j.value -> '$.waits_ms' AS waits, j.value ->> '$.count' AS count
  FROM contracts AS c,
       json_each(CASE WHEN canonical ->> '$.retry.backoff.law' = 'segments' THEN canonical -> '$.retry.backoff.segments'
                      ELSE json_array(json(canonical -> '$.retry.backoff')) END) AS j
  WHERE json_valid(canonical);
CREATE TABLE contract_listed AS
  SELECT p.rev, p.part_no, j.key + 1 AS i, j.value AS wait_ms FROM contract_part AS p, json_each(p.waits) AS j WHERE p.waits IS NOT NULL;
CREATE TABLE contract_status AS
  SELECT c.rev, w.which, j.value ->> '$[0]' AS low, j.value ->> '$[1]' AS high
  FROM contracts AS c, (SELECT 'success' AS which UNION ALL SELECT 'terminal') AS w, json_each(c.canonical, '$.outcome.' || w.which) AS j
  WHERE json_valid(canonical);
