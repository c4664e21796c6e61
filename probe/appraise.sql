-- The second judge of the queue round (spec/queue-round.md): the whole law in SQL, and no code shared with any
-- other part of the project. It reads raw lines, never what the report says about itself.
--
-- Before: raw_contract(line), raw_queue(line): one row a line, rowid = line number; raw_channels(text),
-- raw_report(text): one row each; chosen(now): the clock to judge at, or no row for the report's own.
-- probe/appraise.shell.sql loads them in the sqlite3 shell.
-- After: verdict(place, line) holds what is printed: a line a mismatch, then RESULT. Its last row says all.
--
-- Dialect: SQLite 3.38 or later. Integer arithmetic that overflows becomes a float there, so every product and
-- difference below compares before it computes: integers saturate, nothing wraps.

-- ---------------------------------------------------------------------------------------------- 0. what is wrong
-- A problem of the contract beats one of the facts; with either, nothing is judged.
CREATE TABLE problem (
  kind TEXT NOT NULL CHECK (kind IN ('contract', 'facts')),
  file TEXT NOT NULL, line INTEGER NOT NULL, text TEXT NOT NULL
) STRICT;

-- Lines without a byte-order mark and without the CR of a CRLF.
CREATE VIEW contract_line AS
  SELECT rowid AS n, rtrim(CASE WHEN rowid = 1 THEN ltrim(line, char(65279)) ELSE line END, char(13)) AS line FROM raw_contract;
CREATE VIEW queue_line AS
  SELECT rowid AS n, rtrim(CASE WHEN rowid = 1 THEN ltrim(line, char(65279)) ELSE line END, char(13)) AS line FROM raw_queue;

-- ------------------------------------------------------------------------------------------------ 1. the contract
CREATE TABLE contract_key (key TEXT PRIMARY KEY, due TEXT NOT NULL) STRICT;
INSERT INTO contract_key VALUES
  ('QUEUE_DELAY_UNIT', 'milliseconds or seconds'), ('QUEUE_BACKOFF_POLICY', 'exponential'),
  ('QUEUE_BACKOFF_BASE_MS', 'an integer from 1'), ('QUEUE_MAX_ATTEMPTS', 'an integer from 1');

CREATE TABLE entry (n INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL) STRICT;
INSERT INTO entry
  SELECT n, substr(line, 1, instr(line, '=') - 1), substr(line, instr(line, '=') + 1)
  FROM contract_line
  WHERE trim(line, ' ' || char(9)) <> '' AND substr(trim(line, ' ' || char(9)), 1, 1) <> '#' AND instr(line, '=') > 0;

INSERT INTO problem
  SELECT 'contract', 'queue.env', n, 'found `' || line || '`, expected KEY=value' FROM contract_line
  WHERE trim(line, ' ' || char(9)) <> '' AND substr(trim(line, ' ' || char(9)), 1, 1) <> '#' AND instr(line, '=') = 0;
INSERT INTO problem
  SELECT 'contract', 'queue.env', n, 'unknown key `' || key || '`' FROM entry WHERE key NOT IN (SELECT key FROM contract_key);
INSERT INTO problem
  SELECT 'contract', 'queue.env', max(n), 'key `' || key || '` stands twice' FROM entry GROUP BY key HAVING count(*) > 1;
INSERT INTO problem
  SELECT 'contract', 'queue.env', 0, 'key `' || key || '` is missing' FROM contract_key WHERE key NOT IN (SELECT key FROM entry);
-- A text is a 64-bit integer exactly when it is digits and survives the way there and back (leading zeros aside).
INSERT INTO problem
  SELECT 'contract', 'queue.env', n, '`' || key || '` is `' || value || '`, expected ' || due
  FROM entry JOIN contract_key USING (key)
  WHERE CASE key
    WHEN 'QUEUE_DELAY_UNIT' THEN value NOT IN ('milliseconds', 'seconds')
    WHEN 'QUEUE_BACKOFF_POLICY' THEN value <> 'exponential'
    ELSE value GLOB '*[^0-9]*' OR value = ''
      OR CAST(CAST(value AS INTEGER) AS TEXT) <> coalesce(nullif(ltrim(value, '0'), ''), '0')
      OR CAST(value AS INTEGER) < 1
    END;

CREATE TABLE contract (unit TEXT NOT NULL, unit_in_ms INTEGER NOT NULL, base_ms INTEGER NOT NULL, max_attempts INTEGER NOT NULL) STRICT;
INSERT INTO contract
  SELECT max(CASE key WHEN 'QUEUE_DELAY_UNIT' THEN value END),
         max(CASE WHEN key <> 'QUEUE_DELAY_UNIT' THEN 0 WHEN value = 'seconds' THEN 1000 ELSE 1 END),
         max(CASE key WHEN 'QUEUE_BACKOFF_BASE_MS' THEN CAST(value AS INTEGER) END),
         max(CASE key WHEN 'QUEUE_MAX_ATTEMPTS' THEN CAST(value AS INTEGER) END)
  FROM entry WHERE NOT EXISTS (SELECT 1 FROM problem) HAVING count(*) > 0;

-- ------------------------------------------------------------------------------------------------ 2. the channels
INSERT INTO problem
  SELECT 'facts', 'channels.json', 0, 'found no JSON object, expected {"name": {"enabled": true}, …}'
  FROM (SELECT (SELECT ltrim(text, char(65279)) FROM raw_channels) AS text)
  WHERE text IS NULL OR NOT json_valid(text) OR CASE WHEN json_valid(text) THEN json_type(text) END <> 'object';
INSERT INTO problem
  SELECT 'facts', 'channels.json', 0, 'channel `' || j.key || '`: found ' || j.value || ', expected {"enabled": true} or {"enabled": false}'
  FROM raw_channels, json_each(ltrim(text, char(65279))) AS j
  WHERE NOT EXISTS (SELECT 1 FROM problem WHERE file = 'channels.json')
    AND (j.type <> 'object' OR coalesce(CASE WHEN j.type = 'object' THEN json_type(j.value, '$.enabled') END, 'null') NOT IN ('true', 'false')
         OR (SELECT count(*) FROM json_each(CASE WHEN j.type = 'object' THEN j.value ELSE '{}' END)) <> 1);
INSERT INTO problem
  SELECT 'facts', 'channels.json', 0, 'channel `' || j.key || '` stands twice'
  FROM raw_channels, json_each(ltrim(text, char(65279))) AS j
  WHERE NOT EXISTS (SELECT 1 FROM problem WHERE file = 'channels.json') GROUP BY j.key HAVING count(*) > 1;

CREATE TABLE channel (name TEXT PRIMARY KEY, enabled INTEGER NOT NULL) STRICT;
INSERT INTO channel
  SELECT j.key, json_type(j.value, '$.enabled') = 'true' FROM raw_channels, json_each(ltrim(text, char(65279))) AS j
  WHERE NOT EXISTS (SELECT 1 FROM problem);

-- --------------------------------------------------------------------------------------------------- 3. the report
INSERT INTO problem
  SELECT 'facts', 'report', 0, CASE WHEN text IS NULL THEN 'the report is missing' ELSE 'the report is not a JSON object' END
  FROM (SELECT (SELECT text FROM raw_report) AS text)
  WHERE text IS NULL OR NOT json_valid(text) OR CASE WHEN json_valid(text) THEN json_type(text) END <> 'object';
-- The clock: the chosen one, else the report's own word (the one thing that it alone can say).
CREATE TABLE clock (now INTEGER) STRICT;
INSERT INTO clock
  SELECT coalesce((SELECT now FROM chosen),
                  (SELECT CASE WHEN typeof(text ->> '$.now') = 'integer' AND json_type(text, '$.now') = 'integer' THEN text ->> '$.now' END FROM raw_report))
  WHERE NOT EXISTS (SELECT 1 FROM problem);
INSERT INTO problem SELECT 'facts', 'report', 0, 'the report has no integer `now`, and none was chosen' FROM clock WHERE now IS NULL;

-- ---------------------------------------------------------------------------------------------------- 4. the items
-- Rule 5: a line that is not blank is an item; one that cannot be read is listed, and the others are judged.
CREATE TABLE item_line (n INTEGER PRIMARY KEY, line TEXT NOT NULL) STRICT;
INSERT INTO item_line
  SELECT n, line FROM queue_line WHERE trim(line, ' ' || char(9)) <> '' AND NOT EXISTS (SELECT 1 FROM problem);

CREATE TABLE item (
  n INTEGER PRIMARY KEY, id TEXT NOT NULL, channel TEXT NOT NULL,
  attempts INTEGER NOT NULL CHECK (attempts >= 0), received_at INTEGER NOT NULL
) STRICT;
INSERT INTO item
  WITH readable AS MATERIALIZED (
    SELECT n, line FROM item_line WHERE CASE WHEN json_valid(line) THEN json_type(line) = 'object' ELSE 0 END
  ),
  -- exactly the four keys, each once
  whole AS MATERIALIZED (
    SELECT n, line FROM readable
    WHERE (SELECT count(*) = 4 AND count(DISTINCT key) = 4 AND sum(key IN ('id', 'channel', 'attempts', 'received_at_value')) = 4 FROM json_each(line))
  ),
  typed AS MATERIALIZED ( -- a number too large for 64 bits comes out of JSON as a float
    SELECT n, line ->> '$.id' AS id, line ->> '$.channel' AS channel, line ->> '$.attempts' AS attempts, line ->> '$.received_at_value' AS received_at
    FROM whole
    WHERE json_type(line, '$.id') = 'text' AND json_type(line, '$.channel') = 'text'
      AND json_type(line, '$.attempts') = 'integer' AND typeof(line ->> '$.attempts') = 'integer' AND line ->> '$.attempts' >= 0
      AND json_type(line, '$.received_at_value') = 'integer' AND typeof(line ->> '$.received_at_value') = 'integer'
  )
  -- ids are unique: the first line that bears one keeps it
  SELECT n, id, channel, attempts, received_at
  FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY n) AS nth FROM typed) WHERE nth = 1;

-- ------------------------------------------------------------------------------------------- 5. age, wait, verdict
-- 2 ^ attempts: from 2 ^ 63 on everything is saturated, so 64 rows are all powers there are.
CREATE TABLE power (e INTEGER PRIMARY KEY, value INTEGER NOT NULL) STRICT;
INSERT INTO power
  WITH RECURSIVE up (e, value) AS (
    SELECT 0, 1
    UNION ALL
    SELECT e + 1, CASE WHEN value > 9223372036854775807 / 2 THEN 9223372036854775807 ELSE value * 2 END FROM up WHERE e < 63
  )
  SELECT e, value FROM up;

CREATE TABLE expected (
  n INTEGER PRIMARY KEY, id TEXT NOT NULL, channel TEXT NOT NULL, attempts INTEGER NOT NULL, age_ms INTEGER NOT NULL,
  backoff_ms INTEGER NOT NULL, verdict TEXT NOT NULL, reason TEXT NOT NULL, delay_unit TEXT NOT NULL, wait_ms INTEGER
) STRICT;
INSERT INTO expected
  WITH
    elapsed AS ( -- now − received, saturating at both ends; an item from the future has a negative age
      SELECT i.*, c.*,
             CASE WHEN i.received_at >= 0 AND k.now < -9223372036854775807 - 1 + i.received_at THEN -9223372036854775807 - 1
                  WHEN i.received_at < 0 AND k.now > 9223372036854775807 + i.received_at THEN 9223372036854775807
                  ELSE k.now - i.received_at END AS elapsed
      FROM item AS i, contract AS c, clock AS k
    ),
    measured AS ( -- rules 1 and 2: the age in the contract's unit; BASE × 2 ^ attempts, in milliseconds whatever the unit
      SELECT e.*,
             CASE WHEN elapsed > 9223372036854775807 / unit_in_ms THEN 9223372036854775807
                  WHEN elapsed < (-9223372036854775807 - 1) / unit_in_ms THEN -9223372036854775807 - 1
                  ELSE elapsed * unit_in_ms END AS age_ms,
             CASE WHEN w.value > 9223372036854775807 / base_ms THEN 9223372036854775807 ELSE base_ms * w.value END AS backoff_ms
      FROM elapsed AS e JOIN power AS w ON w.e = min(e.attempts, 63)
    ),
    admitted AS ( -- rule 3, in its order
      SELECT m.*,
             CASE WHEN ch.name IS NULL THEN 'block' WHEN NOT ch.enabled THEN 'block' WHEN age_ms >= backoff_ms THEN 'deliver' ELSE 'defer' END AS admission,
             CASE WHEN ch.name IS NULL THEN 'channel_unknown' WHEN NOT ch.enabled THEN 'channel_disabled'
                  WHEN age_ms >= backoff_ms THEN 'ready' ELSE 'not_due' END AS why
      FROM measured AS m LEFT JOIN channel AS ch ON ch.name = m.channel
    )
  SELECT n, id, channel, attempts, age_ms, backoff_ms,
         CASE WHEN attempts >= max_attempts AND admission <> 'deliver' THEN 'dead' ELSE admission END,
         CASE WHEN attempts >= max_attempts AND admission <> 'deliver' THEN 'max_attempts' ELSE why END,
         unit, CASE WHEN admission = 'deliver' THEN age_ms END
  FROM admitted;

CREATE TABLE expected_figure (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT; -- value: as JSON
INSERT INTO expected_figure SELECT 'delay_unit', json_quote(unit) FROM contract;
INSERT INTO expected_figure SELECT 'now', now FROM clock WHERE now IS NOT NULL;
INSERT INTO expected_figure SELECT 'items_total', count(*) FROM item_line;
INSERT INTO expected_figure
  SELECT word, (SELECT count(*) FROM expected WHERE verdict = word)
  FROM (SELECT 'deliver' AS word UNION ALL SELECT 'defer' UNION ALL SELECT 'block' UNION ALL SELECT 'dead');
-- Rule 5: every line was judged.
INSERT INTO expected_figure
  SELECT 'ok', CASE WHEN (SELECT count(*) FROM expected) = (SELECT count(*) FROM item_line) THEN 'true' ELSE 'false' END;

-- ------------------------------------------------------------------------------------------------ 6. the mismatches
CREATE TABLE report_row (place INTEGER PRIMARY KEY, id TEXT, nth INTEGER NOT NULL, row TEXT NOT NULL) STRICT;
INSERT INTO report_row
  SELECT key, id, row_number() OVER (PARTITION BY id ORDER BY key), row
  FROM (SELECT j.key, j.value AS row, CASE WHEN j.type = 'object' AND json_type(j.value, '$.id') = 'text' THEN j.value ->> '$.id' END AS id
        FROM raw_report, json_each(text, '$.results') AS j
        WHERE NOT EXISTS (SELECT 1 FROM problem) AND json_type(text, '$.results') = 'array');
CREATE INDEX report_row_by_id ON report_row (id, nth);

-- Every field of every row; text and numbers as JSON writes them, so that 1 is not "1" and not 1.0.
CREATE TABLE report_field (place INTEGER NOT NULL, field TEXT NOT NULL, value TEXT NOT NULL, times INTEGER NOT NULL) STRICT;
INSERT INTO report_field
  SELECT r.place, j.key, max(CASE WHEN j.type = 'text' THEN json_quote(j.atom) WHEN j.type IN ('true', 'false', 'null') THEN j.type
                                  WHEN j.atom IS NULL THEN j.value ELSE json_quote(j.atom) END), count(*)
  FROM report_row AS r, json_each(r.row) AS j WHERE json_type(r.row) = 'object' GROUP BY r.place, j.key;
CREATE INDEX report_field_by_place ON report_field (place, field);

CREATE TABLE mismatch (place INTEGER NOT NULL, name TEXT NOT NULL, expected TEXT NOT NULL, found TEXT NOT NULL) STRICT;
INSERT INTO mismatch
  WITH due AS (
    SELECT n, id, 'channel' AS field, json_quote(channel) AS value FROM expected
    UNION ALL SELECT n, id, 'attempts', json_quote(attempts) FROM expected
    UNION ALL SELECT n, id, 'age_ms', json_quote(age_ms) FROM expected
    UNION ALL SELECT n, id, 'backoff_ms', json_quote(backoff_ms) FROM expected
    UNION ALL SELECT n, id, 'verdict', json_quote(verdict) FROM expected
    UNION ALL SELECT n, id, 'reason', json_quote(reason) FROM expected
    UNION ALL SELECT n, id, 'delay_unit', json_quote(delay_unit) FROM expected
    UNION ALL SELECT n, id, 'wait_ms', json_quote(wait_ms) FROM expected -- rule 4: null unless delivered
  )
  SELECT due.n, due.id || '.' || due.field, due.value, coalesce(f.value, 'nothing')
  FROM due
  JOIN report_row AS r ON r.id = due.id AND r.nth = 1
  LEFT JOIN report_field AS f ON f.place = r.place AND f.field = due.field
  WHERE f.value IS NOT due.value
  ORDER BY due.n;
INSERT INTO mismatch
  SELECT e.n, e.id, 'a row', 'none' FROM expected AS e WHERE NOT EXISTS (SELECT 1 FROM report_row AS r WHERE r.id = e.id);
CREATE INDEX expected_by_id ON expected (id);
INSERT INTO mismatch
  SELECT 9000000000000000000 + place, coalesce(id, 'results[' || place || ']'), 'no row', CASE WHEN nth > 1 THEN 'a row, number ' || nth ELSE 'a row' END
  FROM report_row AS r WHERE nth > 1 OR id IS NULL OR NOT EXISTS (SELECT 1 FROM expected AS e WHERE e.id = r.id);
-- A field that the report must not have, or has twice.
INSERT INTO mismatch
  SELECT 9000000000000000000 + r.place, coalesce(r.id, 'results[' || r.place || ']') || '.' || f.field,
         CASE WHEN f.times > 1 THEN 'one' ELSE 'nothing' END, CASE WHEN f.times > 1 THEN f.times ELSE f.value END
  FROM report_field AS f JOIN report_row AS r USING (place)
  WHERE f.times > 1 OR f.field NOT IN ('id', 'channel', 'attempts', 'age_ms', 'backoff_ms', 'verdict', 'reason', 'delay_unit', 'wait_ms');
-- Results keep the queue's order.
INSERT INTO mismatch
  SELECT 9010000000000000000, 'results', 'queue order', id || ' before its time'
  FROM (SELECT r.id, r.place, e.n, lead(e.n) OVER (ORDER BY r.place) AS next_n FROM report_row AS r JOIN expected AS e ON e.id = r.id WHERE r.nth = 1)
  WHERE next_n < n ORDER BY place LIMIT 1;

-- The figures.
INSERT INTO mismatch
  SELECT 9030000000000000000, name, value, coalesce(found, 'nothing')
  FROM (SELECT f.rowid AS r, f.name, f.value, text -> ('$.' || f.name) AS found FROM expected_figure AS f, raw_report)
  WHERE NOT EXISTS (SELECT 1 FROM problem) AND found IS NOT value ORDER BY r;
-- The malformed lines, by number; what the report says about each is prose.
CREATE TABLE report_malformed (place INTEGER NOT NULL, line INTEGER, times INTEGER NOT NULL) STRICT;
INSERT INTO report_malformed
  SELECT min(key), line, count(*)
  FROM (SELECT j.key, CASE WHEN j.type = 'object' AND json_type(j.value, '$.line') = 'integer' THEN j.value ->> '$.line' END AS line
        FROM raw_report, json_each(text, '$.malformed_rows') AS j
        WHERE NOT EXISTS (SELECT 1 FROM problem) AND json_type(text, '$.malformed_rows') = 'array')
  GROUP BY line;
INSERT INTO mismatch
  SELECT 9020000000000000000, 'malformed_rows', 'an array', coalesce(json_type(text, '$.malformed_rows'), 'nothing') FROM raw_report
  WHERE NOT EXISTS (SELECT 1 FROM problem) AND json_type(text, '$.malformed_rows') IS NOT 'array';
INSERT INTO mismatch
  SELECT 9020000000000000000, 'malformed_rows.' || n, 'present', 'absent' FROM item_line
  WHERE n NOT IN (SELECT n FROM item) AND n NOT IN (SELECT line FROM report_malformed WHERE line IS NOT NULL) ORDER BY n;
INSERT INTO mismatch
  SELECT 9020000000000000000, 'malformed_rows.' || coalesce(line, '[' || place || ']'), 'absent', 'present' FROM report_malformed
  WHERE line IS NULL OR times > 1 OR line NOT IN (SELECT n FROM item_line) OR line IN (SELECT n FROM item) ORDER BY place;
-- Keys too many or twice. `engine`, `inputs` and `build` describe the report itself: they are allowed, and not believed.
INSERT INTO mismatch
  SELECT 9040000000000000000, name, CASE WHEN times > 1 THEN 'one' ELSE 'nothing' END, CASE WHEN times > 1 THEN times ELSE 'a key' END
  FROM (SELECT j.key AS name, count(*) AS times FROM raw_report, json_each(text) AS j WHERE NOT EXISTS (SELECT 1 FROM problem) GROUP BY j.key)
  WHERE times > 1 OR (name NOT IN (SELECT name FROM expected_figure) AND name NOT IN ('results', 'malformed_rows', 'engine', 'inputs', 'build'));

-- --------------------------------------------------------------------------------------------------- 7. the verdict
CREATE TABLE verdict (place INTEGER PRIMARY KEY, line TEXT NOT NULL) STRICT;
INSERT INTO verdict (line) -- with an unusable contract nothing else is worth saying
  SELECT file || CASE WHEN line > 0 THEN ':' || line ELSE '' END || ': ' || text FROM problem
  WHERE kind = 'contract' OR NOT EXISTS (SELECT 1 FROM problem WHERE kind = 'contract') ORDER BY kind, rowid LIMIT 100;
INSERT INTO verdict (line)
  SELECT name || ': expected ' || trim(expected, '"') || ', found ' || trim(found, '"') FROM mismatch
  WHERE NOT EXISTS (SELECT 1 FROM problem) ORDER BY place, rowid;
INSERT INTO verdict (line)
  SELECT CASE WHEN EXISTS (SELECT 1 FROM problem WHERE kind = 'contract') THEN 'RESULT: NOT JUDGED (contract unusable)'
              WHEN EXISTS (SELECT 1 FROM problem) THEN 'RESULT: NOT JUDGED (facts unusable)'
              WHEN EXISTS (SELECT 1 FROM mismatch) THEN
                'RESULT: BAD (' || (SELECT count(*) FROM mismatch) || CASE (SELECT count(*) FROM mismatch) WHEN 1 THEN ' mismatch)' ELSE ' mismatches)' END
              ELSE 'RESULT: OK' END;
SELECT line FROM verdict ORDER BY place;
