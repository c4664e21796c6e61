-- Loads the raw files of one retry round into the sqlite3 shell (3.38 or later), for probe/plan.sql.
--
--   cd cases/retry-round
--   duehook plan --contract retry.env --endpoints endpoints.tsv --attempts attempts.tsv --report plan.json
--   sqlite3 :memory: '.read ../../probe/plan.shell.sql' '.read ../../probe/plan.sql'
--
-- ASCII mode takes no notice of quotes; every line becomes one row, and its rowid is its line number.
CREATE TABLE raw_contract  (line TEXT NOT NULL) STRICT;
CREATE TABLE raw_endpoints (line TEXT NOT NULL) STRICT;
CREATE TABLE raw_attempts  (line TEXT NOT NULL) STRICT;
CREATE TABLE raw_report    (text TEXT) STRICT;
.bail on
.mode ascii
.separator "\037" "\n"
.import retry.env raw_contract
.import endpoints.tsv raw_endpoints
.import attempts.tsv raw_attempts
INSERT INTO raw_report SELECT CAST(readfile('plan.json') AS TEXT);
.mode list
.separator "\t" "\n"
.headers off
