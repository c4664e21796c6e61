-- Loads an exported ledger (spec/ledger.md) into PostgreSQL (15 or later, for HEADER MATCH), in the database at hand.
--
--   duehook ledger export --to LEDGER
--   cd LEDGER
--   psql -X -q -v ON_ERROR_STOP=1 -At -f …/probe/ledger.psql-import.sql -f …/probe/ledger.sql
--
-- What a receiver logged (`duehook listen --log seen.jsonl`) may be judged with it; in between, load it with
--   \copy raw_received (line) FROM 'seen.jsonl' WITH (FORMAT csv, DELIMITER E'\x01', QUOTE E'\x02')
-- The export is what COPY reads: tabs, backslash escapes, `-` for null. A text that is no whole number, an unknown word
-- or a missing value stops the load. Everything lands in a schema of its own, made anew.
SET client_min_messages = warning;
DROP SCHEMA IF EXISTS duehook_probe CASCADE;
CREATE SCHEMA duehook_probe;
SET search_path = duehook_probe;
CREATE TABLE attempts (
  attempt_id text NOT NULL, seq bigint NOT NULL, message_id text NOT NULL, endpoint_id text NOT NULL,
  delivery_no bigint NOT NULL CHECK (delivery_no >= 1), attempt_no bigint NOT NULL CHECK (attempt_no >= 1),
  retry_rev text NOT NULL, endpoint_rev text NOT NULL, due_at bigint NOT NULL, started_at bigint NOT NULL, ended_at bigint,
  outcome text CHECK (outcome IN ('succeeded', 'failed', 'timed_out', 'refused', 'interrupted')), status bigint, error text,
  retry_after text, wait_ms bigint CHECK (wait_ms >= 0), node text NOT NULL,
  trigger text NOT NULL CHECK (trigger IN ('scheduled', 'manual'))
);
CREATE TABLE delivery_events (
  seq bigint NOT NULL, message_id text NOT NULL, endpoint_id text NOT NULL, delivery_no bigint NOT NULL CHECK (delivery_no >= 1),
  at bigint NOT NULL, event text NOT NULL CHECK (event IN ('opened', 'succeeded', 'dead', 'cancelled', 'superseded')),
  reason text, retry_rev text NOT NULL
);
CREATE TABLE messages (
  seq bigint NOT NULL, message_id text NOT NULL, at bigint NOT NULL, deliveries bigint NOT NULL CHECK (deliveries >= 0)
);
CREATE TABLE endpoint_events (
  seq bigint NOT NULL, endpoint_id text NOT NULL, at bigint NOT NULL,
  state text NOT NULL CHECK (state IN ('active', 'draining', 'disabled', 'deleted')), why text, "by" text NOT NULL
);
CREATE TABLE node_events (
  seq bigint NOT NULL, node text NOT NULL, at bigint NOT NULL, boot_id text NOT NULL, mono_ms bigint NOT NULL,
  event text NOT NULL CHECK (event IN ('up', 'down', 'step')), size_ms bigint NOT NULL
);
CREATE TABLE contracts (
  rev text NOT NULL, canonical text NOT NULL
);
\copy attempts FROM 'attempts.tsv' WITH (FORMAT text, NULL '-', HEADER MATCH)
\copy delivery_events FROM 'delivery_events.tsv' WITH (FORMAT text, NULL '-', HEADER MATCH)
\copy messages FROM 'messages.tsv' WITH (FORMAT text, NULL '-', HEADER MATCH)
\copy endpoint_events FROM 'endpoint_events.tsv' WITH (FORMAT text, NULL '-', HEADER MATCH)
\copy node_events FROM 'node_events.tsv' WITH (FORMAT text, NULL '-', HEADER MATCH)
\copy contracts FROM 'contracts.tsv' WITH (FORMAT text, NULL '-', HEADER MATCH)
CREATE TABLE raw_received (n bigserial, line text NOT NULL);
CREATE VIEW received AS SELECT n AS line, CAST(line AS json) ->> 'attempt_id' AS attempt_id FROM raw_received WHERE line <> '';
CREATE INDEX attempts_by_id ON attempts (attempt_id);
CREATE INDEX attempts_by_seq ON attempts (seq);
CREATE INDEX attempts_by_delivery ON attempts (message_id, endpoint_id, delivery_no, seq);
CREATE INDEX delivery_events_by_delivery ON delivery_events (message_id, endpoint_id, delivery_no, event);
CREATE INDEX endpoint_events_by_endpoint ON endpoint_events (endpoint_id, seq);

-- Each contract in clauses: its canonical JSON, read and not interpreted.
CREATE VIEW contract_json AS SELECT rev, CAST(canonical AS json) AS j FROM contracts;
CREATE TABLE contract_clause AS
  SELECT rev, CAST(j #>> '{retry,max_attempts}' AS bigint) AS max_attempts, CAST(j #>> '{retry,max_age_ms}' AS bigint) AS max_age_ms,
         j #>> '{retry,anchor}' AS anchor, CAST(j #>> '{retry,slack_ms}' AS bigint) AS slack_ms, CAST(j #>> '{retry,late_after_ms}' AS bigint) AS late_after_ms,
         CAST(j #>> '{retry,backoff,cap_ms}' AS bigint) AS cap_ms, CAST(j #>> '{retry,backoff,floor_ms}' AS bigint) AS floor_ms,
         j #>> '{retry,jitter,kind}' AS jitter, CAST(j #>> '{retry,jitter,ratio_ppm}' AS bigint) AS ratio_ppm, j #>> '{retry,jitter,direction}' AS direction,
         CASE WHEN j #>> '{retry,jitter,cap_after_jitter}' = 'true' THEN 1 ELSE 0 END AS cap_after_jitter,
         j #>> '{retry,retry_after,rule}' AS ra_rule, CAST(j #>> '{retry,retry_after,max_ms}' AS bigint) AS ra_max_ms, CAST(j #>> '{retry,retry_after,times}' AS bigint) AS ra_times,
         CAST(j #>> '{endpoint,min_gap_ms}' AS bigint) AS min_gap_ms, CAST(j #>> '{endpoint,rate,starts}' AS bigint) AS rate_starts,
         CAST(j #>> '{endpoint,rate,window_ms}' AS bigint) AS rate_window_ms, CAST(j #>> '{endpoint,in_flight}' AS bigint) AS in_flight
  FROM contract_json;
-- A law that stands alone is its own only part.
CREATE TABLE contract_part AS
  SELECT c.rev, p.place AS part_no, p.j ->> 'law' AS law, CAST(p.j ->> 'base_ms' AS bigint) AS base_ms, CAST(p.j ->> 'step_ms' AS bigint) AS step_ms,
         CAST(p.j ->> 'factor_ppm' AS bigint) AS factor_ppm, CAST(p.j ->> 'power' AS bigint) AS power, p.j ->> 'then' AS then_word, p.j -> 'waits_ms' AS waits, CAST(p.j ->> 'count' AS bigint) AS count
  FROM contract_json AS c
  CROSS JOIN LATERAL json_array_elements(CASE WHEN c.j #>> '{retry,backoff,law}' = 'segments' THEN c.j #> '{retry,backoff,segments}'
                                              ELSE json_build_array(c.j #> '{retry,backoff}') END) WITH ORDINALITY AS p (j, place);
CREATE TABLE contract_listed AS
  SELECT p.rev, p.part_no, w.i, CAST(w.wait_ms AS bigint) AS wait_ms
  FROM contract_part AS p CROSS JOIN LATERAL json_array_elements_text(p.waits) WITH ORDINALITY AS w (wait_ms, i) WHERE p.waits IS NOT NULL;
CREATE TABLE contract_status AS
  SELECT c.rev, w.which, CAST(s.j ->> 0 AS bigint) AS low, CAST(s.j ->> 1 AS bigint) AS high
  FROM contract_json AS c CROSS JOIN (VALUES ('success'), ('terminal')) AS w (which)
  CROSS JOIN LATERAL json_array_elements(c.j -> 'outcome' -> w.which) AS s (j);
