-- The second judge of the retry round (spec/retry-round.md): the whole law in SQL, and no code shared with any
-- other part of the project. It reads raw lines, never what the report says about itself.
--
-- Before: raw_contract(line), raw_endpoints(line), raw_attempts(line): one row a line, rowid = line number;
-- raw_report(text): the report, one row. probe/plan.shell.sql loads them in the sqlite3 shell.
-- After: verdict(place, line) holds what is printed: a line a mismatch, then RESULT. Its last row says all.
--
-- Dialect: SQLite 3.38 or later. Integer arithmetic that overflows becomes a float there, so every product and
-- sum below compares before it computes (rule 4: integers saturate, nothing wraps).

-- ---------------------------------------------------------------------------------------------- 0. what is wrong
-- A problem of the contract beats one of the facts; with either, nothing is judged.
CREATE TABLE problem (
  kind TEXT NOT NULL CHECK (kind IN ('contract', 'facts')),
  file TEXT NOT NULL, line INTEGER NOT NULL, text TEXT NOT NULL
) STRICT;

-- Lines without a byte-order mark and without the CR of a CRLF.
CREATE VIEW contract_line AS
  SELECT rowid AS n, rtrim(CASE WHEN rowid = 1 THEN ltrim(line, char(65279)) ELSE line END, char(13)) AS line FROM raw_contract;
CREATE VIEW endpoint_line AS
  SELECT rowid AS n, rtrim(CASE WHEN rowid = 1 THEN ltrim(line, char(65279)) ELSE line END, char(13)) AS line FROM raw_endpoints;
CREATE VIEW attempt_line AS
  SELECT rowid AS n, rtrim(CASE WHEN rowid = 1 THEN ltrim(line, char(65279)) ELSE line END, char(13)) AS line FROM raw_attempts;

-- ------------------------------------------------------------------------------------------------ 1. the contract
CREATE TABLE contract_key (key TEXT PRIMARY KEY, least INTEGER NOT NULL, most INTEGER NOT NULL) STRICT;
INSERT INTO contract_key VALUES
  ('WEBHOOK_BACKOFF_FACTOR',    1,   9223372036854775807),
  ('WEBHOOK_ADMIT_SLACK_S',     0,   9223372036854775807),
  ('WEBHOOK_DEAD_LETTER_AFTER', 0,   9223372036854775807),
  ('WEBHOOK_SUCCESS_MIN',       100, 599),
  ('WEBHOOK_SUCCESS_MAX',       100, 599);

CREATE TABLE entry (n INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL) STRICT;
INSERT INTO entry
  SELECT n, substr(line, 1, instr(line, '=') - 1), substr(line, instr(line, '=') + 1)
  FROM contract_line
  WHERE trim(line, ' ' || char(9)) <> '' AND substr(trim(line, ' ' || char(9)), 1, 1) <> '#' AND instr(line, '=') > 0;

INSERT INTO problem
  SELECT 'contract', 'retry.env', n, 'found `' || line || '`, expected KEY=value' FROM contract_line
  WHERE trim(line, ' ' || char(9)) <> '' AND substr(trim(line, ' ' || char(9)), 1, 1) <> '#' AND instr(line, '=') = 0;
INSERT INTO problem
  SELECT 'contract', 'retry.env', n, 'unknown key `' || key || '`' FROM entry WHERE key NOT IN (SELECT key FROM contract_key);
INSERT INTO problem
  SELECT 'contract', 'retry.env', max(n), 'key `' || key || '` stands twice' FROM entry GROUP BY key HAVING count(*) > 1;
INSERT INTO problem
  SELECT 'contract', 'retry.env', 0, 'key `' || key || '` is missing' FROM contract_key WHERE key NOT IN (SELECT key FROM entry);
-- A text is a 64-bit integer exactly when it is digits and survives the way there and back (leading zeros aside).
INSERT INTO problem
  SELECT 'contract', 'retry.env', n, '`' || key || '` is `' || value || '`, expected an integer from ' || least || ' to ' || most
  FROM entry JOIN contract_key USING (key)
  WHERE value GLOB '*[^0-9]*' OR value = ''
     OR CAST(CAST(value AS INTEGER) AS TEXT) <> coalesce(nullif(ltrim(value, '0'), ''), '0')
     OR CAST(value AS INTEGER) NOT BETWEEN least AND most;

CREATE TABLE contract (
  factor INTEGER NOT NULL, slack_s INTEGER NOT NULL, dead_letter_after INTEGER NOT NULL,
  success_min INTEGER NOT NULL, success_max INTEGER NOT NULL
) STRICT;
INSERT INTO contract
  SELECT max(CASE key WHEN 'WEBHOOK_BACKOFF_FACTOR'    THEN CAST(value AS INTEGER) END),
         max(CASE key WHEN 'WEBHOOK_ADMIT_SLACK_S'     THEN CAST(value AS INTEGER) END),
         max(CASE key WHEN 'WEBHOOK_DEAD_LETTER_AFTER' THEN CAST(value AS INTEGER) END),
         max(CASE key WHEN 'WEBHOOK_SUCCESS_MIN'       THEN CAST(value AS INTEGER) END),
         max(CASE key WHEN 'WEBHOOK_SUCCESS_MAX'       THEN CAST(value AS INTEGER) END)
  FROM entry WHERE NOT EXISTS (SELECT 1 FROM problem) HAVING count(*) > 0;
INSERT INTO problem
  SELECT 'contract', 'retry.env', 0, 'WEBHOOK_SUCCESS_MIN is ' || success_min || ' and WEBHOOK_SUCCESS_MAX is ' || success_max || ': min > max'
  FROM contract WHERE success_min > success_max;

-- ----------------------------------------------------------------------------------------------- 2. the endpoints
INSERT INTO problem SELECT 'facts', 'endpoints.tsv', 1, 'found an empty file, expected a header' WHERE NOT EXISTS (SELECT 1 FROM raw_endpoints);
INSERT INTO problem
  SELECT 'facts', 'endpoints.tsv', 1, 'found `' || line || '`, expected the columns endpoint_id state max_attempts backoff_base_s dispatch_gap_s'
  FROM endpoint_line
  WHERE n = 1 AND line <> replace('endpoint_id state max_attempts backoff_base_s dispatch_gap_s', ' ', char(9));

-- Cut at the tabs, one column a step.
CREATE TABLE endpoint_cell (
  n INTEGER PRIMARY KEY, endpoint_id TEXT, state TEXT, max_attempts TEXT, backoff_base_s TEXT, dispatch_gap_s TEXT
) STRICT;
INSERT INTO problem
  SELECT 'facts', 'endpoints.tsv', n, (length(line) - length(replace(line, char(9), '')) + 1) || ' columns, expected 5'
  FROM endpoint_line WHERE n > 1 AND length(line) - length(replace(line, char(9), '')) <> 4;
INSERT INTO endpoint_cell
  WITH
    c0 AS MATERIALIZED (SELECT n, line || char(9) AS rest FROM endpoint_line
                        WHERE n > 1 AND length(line) - length(replace(line, char(9), '')) = 4),
    c1 AS MATERIALIZED (SELECT n, substr(rest, 1, instr(rest, char(9)) - 1) AS a, substr(rest, instr(rest, char(9)) + 1) AS rest FROM c0),
    c2 AS MATERIALIZED (SELECT n, a, substr(rest, 1, instr(rest, char(9)) - 1) AS b, substr(rest, instr(rest, char(9)) + 1) AS rest FROM c1),
    c3 AS MATERIALIZED (SELECT n, a, b, substr(rest, 1, instr(rest, char(9)) - 1) AS c, substr(rest, instr(rest, char(9)) + 1) AS rest FROM c2),
    c4 AS MATERIALIZED (SELECT n, a, b, c, substr(rest, 1, instr(rest, char(9)) - 1) AS d, substr(rest, instr(rest, char(9)) + 1) AS rest FROM c3)
  SELECT n, a, b, c, d, substr(rest, 1, instr(rest, char(9)) - 1) FROM c4;

INSERT INTO problem SELECT 'facts', 'endpoints.tsv', n, 'an empty endpoint_id' FROM endpoint_cell WHERE endpoint_id = '';
INSERT INTO problem
  SELECT 'facts', 'endpoints.tsv', n, 'state is `' || state || '`, expected active, draining or disabled'
  FROM endpoint_cell WHERE state NOT IN ('active', 'draining', 'disabled');
INSERT INTO problem
  SELECT 'facts', 'endpoints.tsv', max(n), 'endpoint_id `' || endpoint_id || '` stands twice' FROM endpoint_cell GROUP BY endpoint_id HAVING count(*) > 1;
INSERT INTO problem
  SELECT 'facts', 'endpoints.tsv', n, name || ' is `' || value || '`, expected an integer from ' || least
  FROM (SELECT n, 'max_attempts' AS name, max_attempts AS value, 1 AS least FROM endpoint_cell
        UNION ALL SELECT n, 'backoff_base_s', backoff_base_s, 0 FROM endpoint_cell
        UNION ALL SELECT n, 'dispatch_gap_s', dispatch_gap_s, 0 FROM endpoint_cell)
  WHERE value GLOB '*[^0-9]*' OR value = ''
     OR CAST(CAST(value AS INTEGER) AS TEXT) <> coalesce(nullif(ltrim(value, '0'), ''), '0')
     OR CAST(value AS INTEGER) < least;

CREATE TABLE endpoint (
  endpoint_id TEXT PRIMARY KEY, state TEXT NOT NULL, max_attempts INTEGER NOT NULL CHECK (max_attempts >= 1),
  backoff_base_s INTEGER NOT NULL CHECK (backoff_base_s >= 0), dispatch_gap_s INTEGER NOT NULL CHECK (dispatch_gap_s >= 0)
) STRICT;
INSERT INTO endpoint
  SELECT endpoint_id, state, CAST(max_attempts AS INTEGER), CAST(backoff_base_s AS INTEGER), CAST(dispatch_gap_s AS INTEGER)
  FROM endpoint_cell WHERE NOT EXISTS (SELECT 1 FROM problem);

-- ------------------------------------------------------------------------------------------------ 3. the attempts
INSERT INTO problem SELECT 'facts', 'attempts.tsv', 1, 'found an empty file, expected a header' WHERE NOT EXISTS (SELECT 1 FROM raw_attempts);
INSERT INTO problem
  SELECT 'facts', 'attempts.tsv', 1, 'found `' || line || '`, expected the columns attempt_id endpoint_id attempt_no start_ts finish_ts status error'
  FROM attempt_line
  WHERE n = 1 AND line <> replace('attempt_id endpoint_id attempt_no start_ts finish_ts status error', ' ', char(9));

CREATE TABLE attempt_cell (
  n INTEGER PRIMARY KEY, attempt_id TEXT, endpoint_id TEXT, attempt_no TEXT, start_ts TEXT, finish_ts TEXT, status TEXT
) STRICT;
INSERT INTO problem
  SELECT 'facts', 'attempts.tsv', n, (length(line) - length(replace(line, char(9), '')) + 1) || ' columns, expected 7'
  FROM attempt_line WHERE n > 1 AND length(line) - length(replace(line, char(9), '')) <> 6;
INSERT INTO attempt_cell
  WITH
    c0 AS MATERIALIZED (SELECT n, line AS rest FROM attempt_line
                        WHERE n > 1 AND length(line) - length(replace(line, char(9), '')) = 6),
    c1 AS MATERIALIZED (SELECT n, substr(rest, 1, instr(rest, char(9)) - 1) AS a, substr(rest, instr(rest, char(9)) + 1) AS rest FROM c0),
    c2 AS MATERIALIZED (SELECT n, a, substr(rest, 1, instr(rest, char(9)) - 1) AS b, substr(rest, instr(rest, char(9)) + 1) AS rest FROM c1),
    c3 AS MATERIALIZED (SELECT n, a, b, substr(rest, 1, instr(rest, char(9)) - 1) AS c, substr(rest, instr(rest, char(9)) + 1) AS rest FROM c2),
    c4 AS MATERIALIZED (SELECT n, a, b, c, substr(rest, 1, instr(rest, char(9)) - 1) AS d, substr(rest, instr(rest, char(9)) + 1) AS rest FROM c3),
    c5 AS MATERIALIZED (SELECT n, a, b, c, d, substr(rest, 1, instr(rest, char(9)) - 1) AS e, substr(rest, instr(rest, char(9)) + 1) AS rest FROM c4)
  SELECT n, a, b, c, d, e, substr(rest, 1, instr(rest, char(9)) - 1) FROM c5;
CREATE INDEX attempt_cell_by_id ON attempt_cell (attempt_id);

INSERT INTO problem SELECT 'facts', 'attempts.tsv', n, 'an empty attempt_id' FROM attempt_cell WHERE attempt_id = '';
INSERT INTO problem SELECT 'facts', 'attempts.tsv', n, 'an empty endpoint_id' FROM attempt_cell WHERE endpoint_id = '';
INSERT INTO problem
  SELECT 'facts', 'attempts.tsv', max(n), 'attempt_id `' || attempt_id || '` stands twice' FROM attempt_cell GROUP BY attempt_id HAVING count(*) > 1;
INSERT INTO problem
  SELECT 'facts', 'attempts.tsv', n, name || ' is `' || value || '`, expected ' || due
  FROM (SELECT n, 'attempt_no' AS name, attempt_no AS value, 'an integer from 1' AS due, attempt_no LIKE '-%' AS below FROM attempt_cell
        UNION ALL SELECT n, 'start_ts', start_ts, 'an integer', 0 FROM attempt_cell
        UNION ALL SELECT n, 'finish_ts', finish_ts, 'an integer', 0 FROM attempt_cell
        UNION ALL SELECT n, 'status', status, 'an integer or -', 0 FROM attempt_cell WHERE status <> '-')
  WHERE substr(value, 1 + (value LIKE '-%')) GLOB '*[^0-9]*' OR value IN ('', '-') OR below
     OR (name = 'attempt_no' AND CAST(value AS INTEGER) < 1)
     OR CAST(CAST(value AS INTEGER) AS TEXT) <>
        CASE WHEN ltrim(value, '-0') = '' THEN '0' WHEN value LIKE '-%' THEN '-' || ltrim(value, '-0') ELSE ltrim(value, '0') END;
INSERT INTO problem
  SELECT 'facts', 'attempts.tsv', n, 'finish_ts ' || finish_ts || ' is before start_ts ' || start_ts
  FROM attempt_cell WHERE NOT EXISTS (SELECT 1 FROM problem) AND CAST(finish_ts AS INTEGER) < CAST(start_ts AS INTEGER);

-- Rule 2: a numeric status within the range is a success; `-` is a failure.
-- `row_no` numbers the rows of one endpoint in ledger order: the only clock that the boundary knows.
CREATE TABLE attempt (
  n INTEGER PRIMARY KEY, attempt_id TEXT NOT NULL, endpoint_id TEXT NOT NULL, row_no INTEGER NOT NULL,
  attempt_no INTEGER NOT NULL CHECK (attempt_no >= 1), start_ts INTEGER NOT NULL, finish_ts INTEGER NOT NULL CHECK (finish_ts >= start_ts),
  success INTEGER NOT NULL CHECK (success IN (0, 1))
) STRICT;
INSERT INTO attempt
  SELECT n, attempt_id, endpoint_id, row_number() OVER (PARTITION BY endpoint_id ORDER BY n),
         CAST(attempt_no AS INTEGER), CAST(start_ts AS INTEGER), CAST(finish_ts AS INTEGER),
         status <> '-' AND CAST(status AS INTEGER) BETWEEN success_min AND success_max
  FROM attempt_cell, contract WHERE NOT EXISTS (SELECT 1 FROM problem);
CREATE UNIQUE INDEX attempt_by_endpoint ON attempt (endpoint_id, row_no);

-- ----------------------------------------------------------------------------------- 4. the boundary, by counting
-- Rule 3. `place` is the row's count within its delivery; a success or the limit closes the delivery, and the row
-- after a closed one opens the next. Rule 1: only endpoints whose state *is* active are planned.
CREATE TABLE placed (n INTEGER PRIMARY KEY, endpoint_id TEXT NOT NULL, row_no INTEGER NOT NULL, place INTEGER NOT NULL) STRICT;
INSERT INTO placed
  WITH RECURSIVE walk (n, endpoint_id, row_no, place, closed) AS (
    SELECT a.n, a.endpoint_id, 1, 1, a.success OR e.max_attempts <= 1
    FROM endpoint AS e JOIN attempt AS a ON a.endpoint_id = e.endpoint_id AND a.row_no = 1
    WHERE e.state = 'active'
    UNION ALL
    SELECT a.n, a.endpoint_id, a.row_no,
           CASE WHEN w.closed THEN 1 ELSE w.place + 1 END,
           a.success OR e.max_attempts <= CASE WHEN w.closed THEN 1 ELSE w.place + 1 END
    FROM walk AS w
    JOIN attempt AS a ON a.endpoint_id = w.endpoint_id AND a.row_no = w.row_no + 1
    JOIN endpoint AS e ON e.endpoint_id = w.endpoint_id
  )
  SELECT n, endpoint_id, row_no, place FROM walk;

-- ------------------------------------------------------------------------------------ 5. earliest start and verdict
-- FACTOR ^ e, saturating. From 2 ^ 63 on everything is saturated, so 64 rows are all powers there are; FACTOR = 1 stays 1.
CREATE TABLE power (e INTEGER PRIMARY KEY, value INTEGER NOT NULL) STRICT;
INSERT INTO power
  WITH RECURSIVE up (e, value) AS (
    SELECT 0, 1
    UNION ALL
    SELECT e + 1, CASE WHEN value > 9223372036854775807 / factor THEN 9223372036854775807 ELSE value * factor END
    FROM up, contract WHERE e < 63
  )
  SELECT e, value FROM up;

-- Rule 4: 0 for the first row of a delivery; else finish of the row before + min(gap, base × FACTOR ^ (attempt_no − 1)) + slack.
CREATE TABLE expected (
  n INTEGER PRIMARY KEY, attempt_id TEXT NOT NULL, endpoint_id TEXT NOT NULL, attempt_no INTEGER NOT NULL,
  earliest_ts INTEGER NOT NULL, scheduled_delta_s INTEGER NOT NULL, verdict TEXT NOT NULL,
  since_previous_s INTEGER -- start − finish(row before), for rule 6; null on the first row of a delivery
) STRICT;
INSERT INTO expected
  WITH
    backoff AS ( -- the law's wait, before the cap
      SELECT a.n, a.attempt_id, a.endpoint_id, a.attempt_no, a.start_ts, p.place, before.finish_ts AS anchor_ts, e.dispatch_gap_s, c.slack_s,
             CASE WHEN e.backoff_base_s = 0 THEN 0
                  WHEN w.value > 9223372036854775807 / e.backoff_base_s THEN 9223372036854775807
                  ELSE e.backoff_base_s * w.value END AS backoff_s
      FROM placed AS p
      JOIN attempt AS a ON a.n = p.n
      JOIN endpoint AS e ON e.endpoint_id = a.endpoint_id
      JOIN power AS w ON w.e = min(a.attempt_no - 1, 63)
      LEFT JOIN attempt AS before ON before.endpoint_id = a.endpoint_id AND before.row_no = a.row_no - 1
      CROSS JOIN contract AS c
    ),
    waited AS ( -- anchor + wait, saturating; `dispatch_gap_s` is a cap, so the smaller one counts
      SELECT *, CASE WHEN anchor_ts > 9223372036854775807 - min(dispatch_gap_s, backoff_s) THEN 9223372036854775807
                     ELSE anchor_ts + min(dispatch_gap_s, backoff_s) END AS waited_ts
      FROM backoff
    ),
    due AS (
      SELECT *, CASE WHEN place = 1 THEN 0
                     WHEN waited_ts > 9223372036854775807 - slack_s THEN 9223372036854775807
                     ELSE waited_ts + slack_s END AS earliest_ts
      FROM waited
    ),
    delta AS ( -- start − earliest and start − anchor, saturating at both ends: floats tell an overflow by their size alone
      SELECT *,
             CASE WHEN earliest_ts >= 0 AND start_ts < -9223372036854775807 - 1 + earliest_ts THEN -9223372036854775807 - 1
                  WHEN earliest_ts < 0 AND start_ts > 9223372036854775807 + earliest_ts THEN 9223372036854775807
                  ELSE start_ts - earliest_ts END AS delta_s,
             CASE WHEN place = 1 THEN NULL
                  WHEN anchor_ts >= 0 AND start_ts < -9223372036854775807 - 1 + anchor_ts THEN -9223372036854775807 - 1
                  WHEN anchor_ts < 0 AND start_ts > 9223372036854775807 + anchor_ts THEN 9223372036854775807
                  ELSE start_ts - anchor_ts END AS since_previous_s
      FROM due
    )
  SELECT n, attempt_id, endpoint_id, attempt_no, earliest_ts, delta_s, CASE WHEN delta_s < 0 THEN 'too_early' ELSE 'ok' END, since_previous_s
  FROM delta;

-- ---------------------------------------------------------------------------------------- 6. totals, states, marks
CREATE TABLE expected_figure (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT; -- value: as JSON
INSERT INTO expected_figure SELECT 'totals.attempts', count(*) FROM expected;
INSERT INTO expected_figure SELECT 'totals.endpoints', count(*) FROM endpoint WHERE state = 'active';
INSERT INTO expected_figure SELECT 'totals.ok', count(*) FROM expected WHERE verdict = 'ok';
INSERT INTO expected_figure SELECT 'totals.too_early', count(*) FROM expected WHERE verdict = 'too_early';
-- Rule 6. The sum is taken in two halves of 32 bits, so that it is exact whatever its size, and cut to 64 bits at the end.
INSERT INTO expected_figure
  WITH halves AS (
    SELECT coalesce(sum(since_previous_s >> 32), 0) AS high, coalesce(sum(since_previous_s & 4294967295), 0) AS low FROM expected
  )
  SELECT 'totals.backoff_s',
         CASE WHEN high + (low >> 32) > 2147483647 THEN 9223372036854775807
              WHEN high + (low >> 32) < -2147483648 THEN -9223372036854775807 - 1
              ELSE (high + (low >> 32)) * 4294967296 + (low & 4294967295) END
  FROM halves;
INSERT INTO expected_figure SELECT 'counts.attempts', count(*) FROM attempt;
-- Rule 7: skipped when not admissible or without a row; else by its last row alone.
INSERT INTO expected_figure
  WITH final AS (
    SELECT CASE WHEN e.state <> 'active' OR last.n IS NULL THEN 'skipped' WHEN last.success THEN 'succeeded' ELSE 'exhausted' END AS state
    FROM endpoint AS e
    LEFT JOIN attempt AS last ON last.endpoint_id = e.endpoint_id
         AND last.row_no = (SELECT max(row_no) FROM attempt AS a WHERE a.endpoint_id = e.endpoint_id)
  )
  SELECT 'counts.' || word, (SELECT count(*) FROM final WHERE state = word)
  FROM (SELECT 'succeeded' AS word UNION ALL SELECT 'exhausted' UNION ALL SELECT 'skipped');
-- Rule 10.
INSERT INTO expected_figure
  SELECT 'unknown_endpoint_rows', json_group_array(n)
  FROM (SELECT n FROM attempt WHERE endpoint_id NOT IN (SELECT endpoint_id FROM endpoint) ORDER BY n);
-- Rule 8: any one endpoint with more too-early rows than the mark allows.
INSERT INTO expected_figure
  SELECT 'over_dead_letter', CASE WHEN EXISTS (
    SELECT 1 FROM expected WHERE verdict = 'too_early' GROUP BY endpoint_id HAVING count(*) > (SELECT dead_letter_after FROM contract)
  ) THEN 'true' ELSE 'false' END;
-- Rule 9.
INSERT INTO expected_figure
  SELECT 'ok', CASE WHEN (SELECT value FROM expected_figure WHERE name = 'totals.too_early') = '0'
                     AND (SELECT value FROM expected_figure WHERE name = 'over_dead_letter') = 'false' THEN 'true' ELSE 'false' END;

-- -------------------------------------------------------------------------------------------- 7. what the report says
INSERT INTO problem
  SELECT 'facts', 'report', 0, CASE WHEN text IS NULL THEN 'the report is missing' ELSE 'the report is not a JSON object' END
  FROM (SELECT (SELECT text FROM raw_report) AS text)
  WHERE text IS NULL OR NOT json_valid(text) OR CASE WHEN json_valid(text) THEN json_type(text) END <> 'object';

CREATE TABLE report_row (place INTEGER PRIMARY KEY, attempt_id TEXT, nth INTEGER NOT NULL, row TEXT NOT NULL) STRICT;
INSERT INTO report_row
  SELECT key, id, row_number() OVER (PARTITION BY id ORDER BY key), row
  FROM (SELECT j.key, j.value AS row, CASE WHEN j.type = 'object' THEN j.value ->> '$.attempt_id' END AS id
        FROM raw_report, json_each(text, '$.plan') AS j
        WHERE NOT EXISTS (SELECT 1 FROM problem) AND json_type(text, '$.plan') = 'array');
CREATE INDEX report_row_by_id ON report_row (attempt_id, nth);

-- Every field of every planned row that is an object; text and numbers as JSON writes them, so that 1 is not "1" and not 1.0.
CREATE TABLE report_field (place INTEGER NOT NULL, field TEXT NOT NULL, value TEXT NOT NULL, times INTEGER NOT NULL) STRICT;
INSERT INTO report_field
  SELECT r.place, j.key, max(CASE WHEN j.type = 'text' THEN json_quote(j.atom) WHEN j.type IN ('true', 'false', 'null') THEN j.type
                                  WHEN j.atom IS NULL THEN j.value ELSE json_quote(j.atom) END), count(*)
  FROM report_row AS r, json_each(r.row) AS j WHERE json_type(r.row) = 'object' GROUP BY r.place, j.key;
CREATE INDEX report_field_by_place ON report_field (place, field);

-- ------------------------------------------------------------------------------------------------ 8. the mismatches
CREATE TABLE mismatch (place INTEGER NOT NULL, name TEXT NOT NULL, expected TEXT NOT NULL, found TEXT NOT NULL) STRICT;
-- Rows: each expected one field by field, in ledger order.
INSERT INTO mismatch
  WITH due AS (
    SELECT n, attempt_id, 'endpoint_id' AS field, json_quote(endpoint_id) AS value FROM expected
    UNION ALL SELECT n, attempt_id, 'attempt_no', json_quote(attempt_no) FROM expected
    UNION ALL SELECT n, attempt_id, 'earliest_ts', json_quote(earliest_ts) FROM expected
    UNION ALL SELECT n, attempt_id, 'scheduled_delta_s', json_quote(scheduled_delta_s) FROM expected
    UNION ALL SELECT n, attempt_id, 'verdict', json_quote(verdict) FROM expected
  )
  SELECT due.n, due.attempt_id || '.' || due.field, due.value, coalesce(f.value, 'nothing')
  FROM due
  JOIN report_row AS r ON r.attempt_id = due.attempt_id AND r.nth = 1
  LEFT JOIN report_field AS f ON f.place = r.place AND f.field = due.field
  WHERE f.value IS NOT due.value
  ORDER BY due.n;
INSERT INTO mismatch
  SELECT e.n, e.attempt_id, 'a row', 'none' FROM expected AS e
  WHERE NOT EXISTS (SELECT 1 FROM problem) AND NOT EXISTS (SELECT 1 FROM report_row AS r WHERE r.attempt_id = e.attempt_id)
    AND (SELECT json_type(text, '$.plan') FROM raw_report) IS NOT 'null'; -- a summary has figures alone, and says so below
CREATE INDEX expected_by_id ON expected (attempt_id);
INSERT INTO mismatch
  SELECT 9000000000000000000 + place, coalesce(attempt_id, 'plan[' || place || ']'), 'no row',
         CASE WHEN nth > 1 THEN 'a row, number ' || nth ELSE 'a row' END
  FROM report_row AS r
  WHERE nth > 1 OR attempt_id IS NULL OR NOT EXISTS (SELECT 1 FROM expected AS e WHERE e.attempt_id = r.attempt_id);
-- A field that the report must not have, or has twice.
INSERT INTO mismatch
  SELECT 9000000000000000000 + r.place, coalesce(r.attempt_id, 'plan[' || r.place || ']') || '.' || f.field,
         CASE WHEN f.times > 1 THEN 'one' ELSE 'nothing' END, CASE WHEN f.times > 1 THEN f.times ELSE f.value END
  FROM report_field AS f JOIN report_row AS r USING (place)
  WHERE f.times > 1 OR f.field NOT IN ('attempt_id', 'endpoint_id', 'attempt_no', 'earliest_ts', 'scheduled_delta_s', 'verdict');
-- `plan` keeps ledger order.
INSERT INTO mismatch
  SELECT 9010000000000000000, 'plan', 'ledger order', attempt_id || ' before its time'
  FROM (SELECT r.attempt_id, r.place, e.n, lead(e.n) OVER (ORDER BY r.place) AS next_n
        FROM report_row AS r JOIN expected AS e ON e.attempt_id = r.attempt_id WHERE r.nth = 1)
  WHERE next_n < n ORDER BY place LIMIT 1;

-- `admissible_endpoints`, an id at a time, then their order.
CREATE TABLE report_admissible (place INTEGER PRIMARY KEY, endpoint_id TEXT, nth INTEGER NOT NULL) STRICT;
INSERT INTO report_admissible
  SELECT key, id, row_number() OVER (PARTITION BY id ORDER BY key)
  FROM (SELECT j.key, CASE WHEN j.type = 'text' THEN j.atom END AS id FROM raw_report, json_each(text, '$.admissible_endpoints') AS j
        WHERE NOT EXISTS (SELECT 1 FROM problem) AND json_type(text, '$.admissible_endpoints') = 'array');
INSERT INTO mismatch
  SELECT 9020000000000000000, 'admissible_endpoints.' || endpoint_id, 'present', 'absent' FROM endpoint
  WHERE state = 'active' AND NOT EXISTS (SELECT 1 FROM problem)
    AND endpoint_id NOT IN (SELECT endpoint_id FROM report_admissible WHERE endpoint_id IS NOT NULL);
INSERT INTO mismatch
  SELECT 9020000000000000000, 'admissible_endpoints.' || coalesce(endpoint_id, place), 'absent', 'present' FROM report_admissible
  WHERE endpoint_id IS NULL OR nth > 1 OR endpoint_id NOT IN (SELECT endpoint_id FROM endpoint WHERE state = 'active');
INSERT INTO mismatch
  SELECT 9020000000000000000, 'admissible_endpoints', 'sorted by id', endpoint_id || ' out of place'
  FROM (SELECT place, endpoint_id, lead(endpoint_id) OVER (ORDER BY place) AS next_id FROM report_admissible)
  WHERE next_id < endpoint_id ORDER BY place LIMIT 1;

-- The figures.
INSERT INTO mismatch
  SELECT 9030000000000000000, name, value, coalesce(found, 'nothing')
  FROM (SELECT f.rowid AS r, f.name, f.value,
               CASE WHEN json_type(text, '$.' || f.name) = 'array' THEN json(text -> ('$.' || f.name)) ELSE text -> ('$.' || f.name) END AS found
        FROM expected_figure AS f, raw_report WHERE NOT EXISTS (SELECT 1 FROM problem))
  WHERE found IS NOT value ORDER BY r;
-- Keys too many or twice. `inputs` and `build` describe the report itself: they are allowed, and not believed.
INSERT INTO mismatch
  SELECT 9040000000000000000, name, CASE WHEN times > 1 THEN 'one' ELSE 'nothing' END, CASE WHEN times > 1 THEN times ELSE 'a key' END
  FROM (SELECT j.key AS name, count(*) AS times FROM raw_report, json_each(text) AS j WHERE NOT EXISTS (SELECT 1 FROM problem) GROUP BY j.key
        UNION ALL SELECT 'totals.' || j.key, count(*) FROM raw_report, json_each(text, '$.totals') AS j WHERE NOT EXISTS (SELECT 1 FROM problem) AND json_type(text, '$.totals') = 'object' GROUP BY j.key
        UNION ALL SELECT 'counts.' || j.key, count(*) FROM raw_report, json_each(text, '$.counts') AS j WHERE NOT EXISTS (SELECT 1 FROM problem) AND json_type(text, '$.counts') = 'object' GROUP BY j.key)
  WHERE times > 1 OR (name NOT IN (SELECT name FROM expected_figure)
                      AND name NOT IN ('admissible_endpoints', 'plan', 'totals', 'counts', 'inputs', 'build'));
INSERT INTO mismatch
  SELECT 9040000000000000000, 'plan', 'an array', coalesce(json_type(text, '$.plan'), 'nothing') FROM raw_report
  WHERE NOT EXISTS (SELECT 1 FROM problem) AND coalesce(json_type(text, '$.plan'), 'none') NOT IN ('array', 'null');

-- --------------------------------------------------------------------------------------------------- 9. the verdict
CREATE TABLE verdict (place INTEGER PRIMARY KEY, line TEXT NOT NULL) STRICT;
INSERT INTO verdict (line) -- with an unusable contract nothing else is worth saying
  SELECT file || CASE WHEN line > 0 THEN ':' || line ELSE '' END || ': ' || text FROM problem
  WHERE kind = 'contract' OR NOT EXISTS (SELECT 1 FROM problem WHERE kind = 'contract') ORDER BY kind, rowid LIMIT 100;
INSERT INTO verdict (line)
  SELECT name || ': expected ' || trim(expected, '"') || ', found ' || trim(found, '"') FROM mismatch
  WHERE NOT EXISTS (SELECT 1 FROM problem) ORDER BY place, rowid;
INSERT INTO verdict (line)
  SELECT 'plan: null, a summary: figures judged, rows not' FROM raw_report
  WHERE NOT EXISTS (SELECT 1 FROM problem) AND json_type(text, '$.plan') = 'null';
INSERT INTO verdict (line)
  SELECT CASE WHEN EXISTS (SELECT 1 FROM problem WHERE kind = 'contract') THEN 'RESULT: NOT JUDGED (contract unusable)'
              WHEN EXISTS (SELECT 1 FROM problem) THEN 'RESULT: NOT JUDGED (facts unusable)'
              WHEN EXISTS (SELECT 1 FROM mismatch) THEN
                'RESULT: BAD (' || (SELECT count(*) FROM mismatch) || CASE (SELECT count(*) FROM mismatch) WHEN 1 THEN ' mismatch)' ELSE ' mismatches)' END
              ELSE 'RESULT: OK' END;
SELECT line FROM verdict ORDER BY place;
