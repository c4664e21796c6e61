-- Loads the raw files of one queue round into the sqlite3 shell (3.38 or later), for probe/appraise.sql.
--
--   cd cases/queue-round
--   duehook appraise --contract queue.env --channels channels.json --queue queue.jsonl --now 1800000 --report appraisal.json
--   sqlite3 :memory: '.read ../../probe/appraise.shell.sql' '.read ../../probe/appraise.sql'
--
-- ASCII mode takes no notice of quotes; every line becomes one row, and its rowid is its line number. The round is
-- judged at the report's own `now`; insert a number into `chosen` to judge it at another.
CREATE TABLE raw_contract (line TEXT NOT NULL) STRICT;
CREATE TABLE raw_queue    (line TEXT NOT NULL) STRICT;
CREATE TABLE raw_channels (text TEXT) STRICT;
CREATE TABLE raw_report   (text TEXT) STRICT;
CREATE TABLE chosen       (now INTEGER) STRICT;
.bail on
.mode ascii
.separator "\037" "\n"
.import queue.env raw_contract
.import queue.jsonl raw_queue
INSERT INTO raw_channels SELECT CAST(readfile('channels.json') AS TEXT);
INSERT INTO raw_report SELECT CAST(readfile('appraisal.json') AS TEXT);
.mode list
.separator "\t" "\n"
.headers off
