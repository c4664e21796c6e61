-- Loads an exported ledger (spec/ledger.md) into the sqlite3 shell (3.39 or later) as raw text.
--
--   duehook ledger export --to LEDGER
--   cd LEDGER
--   sqlite3 :memory: '.read …/probe/ledger.sqlite-import.sql' '.read …/probe/ledger.sqlite.sql' '.read …/probe/ledger.sql'
--
-- What a receiver logged (`duehook listen --log`) may be judged with it: `.import seen.jsonl raw_received` in between.
-- ASCII mode takes no notice of quotes; the export's own escapes are undone by ledger.sqlite.sql.
.bail on
CREATE TABLE raw_attempts (
  attempt_id TEXT NOT NULL, seq TEXT NOT NULL, message_id TEXT NOT NULL, endpoint_id TEXT NOT NULL, delivery_no TEXT NOT NULL,
  attempt_no TEXT NOT NULL, retry_rev TEXT NOT NULL, endpoint_rev TEXT NOT NULL, due_at TEXT NOT NULL, started_at TEXT NOT NULL,
  ended_at TEXT NOT NULL, outcome TEXT NOT NULL, status TEXT NOT NULL, error TEXT NOT NULL, retry_after TEXT NOT NULL,
  wait_ms TEXT NOT NULL, node TEXT NOT NULL, trigger TEXT NOT NULL
) STRICT;
CREATE TABLE raw_delivery_events (
  seq TEXT NOT NULL, message_id TEXT NOT NULL, endpoint_id TEXT NOT NULL, delivery_no TEXT NOT NULL, at TEXT NOT NULL,
  event TEXT NOT NULL, reason TEXT NOT NULL, retry_rev TEXT NOT NULL
) STRICT;
CREATE TABLE raw_messages (
  seq TEXT NOT NULL, message_id TEXT NOT NULL, at TEXT NOT NULL, deliveries TEXT NOT NULL
) STRICT;
CREATE TABLE raw_endpoint_events (
  seq TEXT NOT NULL, endpoint_id TEXT NOT NULL, at TEXT NOT NULL, state TEXT NOT NULL, why TEXT NOT NULL,
  "by" TEXT NOT NULL
) STRICT;
CREATE TABLE raw_node_events (
  seq TEXT NOT NULL, node TEXT NOT NULL, at TEXT NOT NULL, boot_id TEXT NOT NULL, mono_ms TEXT NOT NULL,
  event TEXT NOT NULL, size_ms TEXT NOT NULL
) STRICT;
CREATE TABLE raw_contracts (
  rev TEXT NOT NULL, canonical TEXT NOT NULL
) STRICT;
CREATE TABLE raw_received (line TEXT NOT NULL) STRICT;
.mode ascii
.separator "\t" "\n"
.import --skip 1 attempts.tsv raw_attempts
.import --skip 1 delivery_events.tsv raw_delivery_events
.import --skip 1 messages.tsv raw_messages
.import --skip 1 endpoint_events.tsv raw_endpoint_events
.import --skip 1 node_events.tsv raw_node_events
.import --skip 1 contracts.tsv raw_contracts
.mode list
.separator "\t" "\n"
.headers off
