-- The second judge of a live ledger (spec/engine.md, The audit of the live ledger): every breach that SQL can see,
-- and no code shared with any other part of the project. One dialect-free text for SQLite (3.39 or later) and
-- PostgreSQL (13 or later): whole numbers only, no functions that one of them lacks.
--
-- Before: the record tables attempts, delivery_events, messages, endpoint_events, node_events, contracts (columns as
-- in the export), and the contracts taken apart: contract_clause, contract_part, contract_listed, contract_status;
-- received(line, attempt_id): what a receiver logged, or no row.
-- ledger.sqlite-import.sql + ledger.sqlite.sql, or ledger.psql-import.sql, load them from an export folder.
-- After: finding(kind, place, expected, found), one row a breach.
--
-- What SQL does not see, and the other judge does: the draw itself (SQL has no SHA-256: of a jittered wait only the
-- interval is checked, and the number of such rows is printed), and the hash of a contract.
--
-- Instants and waits are milliseconds. Overflow is a float in one dialect and an error in the other, so no product
-- below can overflow: waits are cut to ten years before they are multiplied.

-- ---------------------------------------------------------------------------------- 1. the waits of each contract
-- Retry n is the wait between attempt n and attempt n + 1. Only as many as the ledger can ask for.
CREATE TABLE horizon AS SELECT coalesce(max(c), 0) + 1 AS last_n FROM (
  SELECT count(*) AS c FROM attempts GROUP BY message_id, endpoint_id, delivery_no) AS per_delivery;

-- Where each part of a law begins (a law that stands alone is one open part).
CREATE TABLE part AS
  SELECT p.*, coalesce(sum(p.count) OVER (PARTITION BY p.rev ORDER BY p.part_no ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before_n,
         -- whole microseconds, saturating at the cap, or at ten years where there is none
         coalesce(c.cap_ms, 315360000000) * 1000 AS limit_us
  FROM contract_part AS p JOIN contract_clause AS c ON c.rev = p.rev;

-- i ^ power for polynomial laws, cut at ten years of microseconds.
CREATE TABLE polynomial_power AS
  WITH RECURSIVE grown (i, p, value) AS (
    SELECT numbers.i, 0, CAST(1 AS bigint)
    FROM (WITH RECURSIVE counting (i) AS (SELECT CAST(1 AS bigint) UNION ALL SELECT i + 1 FROM counting WHERE i < (SELECT last_n FROM horizon))
          SELECT i FROM counting WHERE EXISTS (SELECT 1 FROM part WHERE law = 'polynomial')) AS numbers
    UNION ALL
    SELECT i, p + 1, CASE WHEN value > 315360000000000 / i THEN 315360000000000 ELSE value * i END FROM grown WHERE p < 8
  )
  SELECT i, p, value FROM grown;

-- The law alone, step by step in microseconds, each step floored. `ends`: a schedule with then = "stop" is over.
CREATE TABLE law_wait AS
  WITH RECURSIVE stepped (rev, part_no, i, us) AS (
    SELECT rev, part_no, CAST(1 AS bigint),
           CASE WHEN law = 'schedule' THEN (SELECT wait_ms * 1000 FROM contract_listed AS l WHERE l.rev = part.rev AND l.part_no = part.part_no AND l.i = 1)
                WHEN base_ms * 1000 > limit_us THEN limit_us ELSE base_ms * 1000 END
    FROM part
    UNION ALL
    SELECT s.rev, s.part_no, s.i + 1,
           CASE p.law
             WHEN 'fixed' THEN s.us
             WHEN 'linear' THEN CASE WHEN s.us > p.limit_us - p.step_ms * 1000 THEN p.limit_us ELSE s.us + p.step_ms * 1000 END
             -- the product in two halves, so that 64 bits hold it
             WHEN 'exponential' THEN
               CASE WHEN (s.us / 1000000) * p.factor_ppm + ((s.us % 1000000) * p.factor_ppm) / 1000000 > p.limit_us THEN p.limit_us
                    ELSE (s.us / 1000000) * p.factor_ppm + ((s.us % 1000000) * p.factor_ppm) / 1000000 END
             WHEN 'polynomial' THEN (
               SELECT CASE WHEN p.base_ms = 0 THEN 0 WHEN g.value > p.limit_us / (p.base_ms * 1000) THEN p.limit_us ELSE g.value * p.base_ms * 1000 END
               FROM polynomial_power AS g WHERE g.i = s.i + 1 AND g.p = p.power)
             WHEN 'schedule' THEN coalesce((SELECT l.wait_ms * 1000 FROM contract_listed AS l WHERE l.rev = p.rev AND l.part_no = p.part_no AND l.i = s.i + 1), s.us)
           END
    FROM stepped AS s JOIN part AS p ON p.rev = s.rev AND p.part_no = s.part_no
    WHERE s.i + p.before_n < (SELECT last_n FROM horizon) AND (p.count IS NULL OR s.i < p.count)
  )
  SELECT s.rev, p.before_n + s.i AS n, s.us,
         CASE WHEN p.law = 'schedule' AND p.then_word = 'stop' AND s.i > (SELECT count(*) FROM contract_listed AS l WHERE l.rev = p.rev AND l.part_no = p.part_no)
              THEN 1 ELSE 0 END AS ends
  FROM stepped AS s JOIN part AS p ON p.rev = s.rev AND p.part_no = s.part_no;

-- law → floor → cap, in milliseconds.
CREATE TABLE capped_wait AS
  SELECT w.rev, w.n, w.ends,
         CASE WHEN c.cap_ms < (CASE WHEN w.us / 1000 < c.floor_ms THEN c.floor_ms ELSE w.us / 1000 END) THEN c.cap_ms
              WHEN w.us / 1000 < c.floor_ms THEN c.floor_ms ELSE w.us / 1000 END AS wait_ms
  FROM law_wait AS w JOIN contract_clause AS c ON c.rev = w.rev;

-- → jitter: the interval [low, high]. Decorrelated jitter depends on the wait drawn before: its high end is found row by row.
CREATE TABLE contract_wait AS
  SELECT j.rev, j.n, j.ends, j.wait_ms,
         CASE WHEN j.cut_ms < j.low_ms THEN j.cut_ms ELSE j.low_ms END AS low_ms,
         CASE WHEN j.cut_ms < j.high_ms THEN j.cut_ms ELSE j.high_ms END AS high_ms
  FROM (SELECT w.rev, w.n, w.ends, w.wait_ms,
               CASE WHEN c.cap_after_jitter = 1 THEN c.cap_ms END AS cut_ms,
               CASE c.jitter WHEN 'full' THEN 0 WHEN 'equal' THEN w.wait_ms / 2
                 WHEN 'decorrelated' THEN first.wait_ms
                 WHEN 'proportional' THEN CASE WHEN c.direction = 'up' THEN w.wait_ms ELSE w.wait_ms - share.ms END
                 ELSE w.wait_ms END AS low_ms,
               CASE WHEN c.jitter = 'proportional' AND c.direction <> 'down' THEN w.wait_ms + share.ms
                    WHEN c.jitter = 'decorrelated' THEN first.wait_ms
                    ELSE w.wait_ms END AS high_ms
        FROM capped_wait AS w
        JOIN contract_clause AS c ON c.rev = w.rev
        JOIN capped_wait AS first ON first.rev = w.rev AND first.n = 1
        JOIN (SELECT rev, n, (wait_ms / 1000000) * ratio_ppm + ((wait_ms % 1000000) * ratio_ppm) / 1000000 AS ms
              FROM (SELECT w2.rev, w2.n, w2.wait_ms, coalesce(c2.ratio_ppm, 0) AS ratio_ppm FROM capped_wait AS w2 JOIN contract_clause AS c2 ON c2.rev = w2.rev) AS r
             ) AS share ON share.rev = w.rev AND share.n = w.n
       ) AS j;
CREATE INDEX contract_wait_by_n ON contract_wait (rev, n);

-- --------------------------------------------------------------------------- 2. Retry-After, read again from its raw text
-- Seconds, or an HTTP date in one of its three forms; anything else counts as absent. A date becomes Unix seconds.
CREATE TABLE header AS SELECT DISTINCT retry_after AS raw, trim(retry_after) AS text FROM attempts WHERE retry_after IS NOT NULL;
CREATE TABLE header_date AS
  WITH
    cut AS (
      SELECT raw, -- Sun, 06 Nov 1994 08:49:37 GMT
             substr(text, 6, 2) AS d, substr(text, 9, 3) AS mon, substr(text, 13, 4) AS y, substr(text, 18, 8) AS clock
      FROM header WHERE text LIKE '___, __ ___ ____ __:__:__ GMT'
      UNION ALL
      SELECT raw, -- Sun Nov  6 08:49:37 1994
             replace(substr(text, 9, 2), ' ', '0'), substr(text, 5, 3), substr(text, 21, 4), substr(text, 12, 8)
      FROM header WHERE text LIKE '___ ___ __ __:__:__ ____'
      UNION ALL
      SELECT raw, -- Sunday, 06-Nov-94 08:49:37 GMT
             substr(rest, 1, 2), substr(rest, 4, 3), CASE WHEN substr(rest, 8, 2) < '70' THEN '20' ELSE '19' END || substr(rest, 8, 2), substr(rest, 11, 8)
      FROM (SELECT raw, substr(text, length(text) - 21, 22) AS rest, text FROM header WHERE text LIKE '%day, __-___-__ __:__:__ GMT') AS long_form
    ),
    named AS (
      SELECT raw, d, y, clock,
             CASE mon WHEN 'Jan' THEN 1 WHEN 'Feb' THEN 2 WHEN 'Mar' THEN 3 WHEN 'Apr' THEN 4 WHEN 'May' THEN 5 WHEN 'Jun' THEN 6
                      WHEN 'Jul' THEN 7 WHEN 'Aug' THEN 8 WHEN 'Sep' THEN 9 WHEN 'Oct' THEN 10 WHEN 'Nov' THEN 11 WHEN 'Dec' THEN 12 END AS m
      FROM cut
      WHERE ltrim(d || y || replace(clock, ':', ''), '0123456789') = ''
    ),
    -- days since 1970 by the civil calendar, with the year beginning in March
    shifted AS (
      SELECT raw, clock, CAST(d AS bigint) AS d, CASE WHEN m > 2 THEN m - 3 ELSE m + 9 END AS m,
             CASE WHEN m > 2 THEN CAST(y AS bigint) ELSE CAST(y AS bigint) - 1 END AS y
      FROM named WHERE m IS NOT NULL
    )
  SELECT raw, (365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + d - 719469) * 86400
              + CAST(substr(clock, 1, 2) AS bigint) * 3600 + CAST(substr(clock, 4, 2) AS bigint) * 60 + CAST(substr(clock, 7, 2) AS bigint) AS unix_s
  FROM shifted;
-- Twelve digits of seconds are more than any `max`: longer ones are cut there.
CREATE TABLE header_seconds AS
  SELECT raw, CASE WHEN length(ltrim(text, '0')) > 12 THEN 999999999999
                   WHEN ltrim(text, '0') = '' THEN 0 ELSE CAST(ltrim(text, '0') AS bigint) END AS wait_s
  FROM header WHERE text <> '' AND ltrim(text, '0123456789') = '';

-- -------------------------------------------------------------------------------------------- 3. deliveries and rows
CREATE TABLE opening AS
  SELECT message_id, endpoint_id, delivery_no, min(at) AS at, min(seq) AS seq, min(retry_rev) AS retry_rev FROM delivery_events WHERE event = 'opened'
  GROUP BY message_id, endpoint_id, delivery_no;
CREATE INDEX opening_by_delivery ON opening (message_id, endpoint_id, delivery_no);

-- Each attempt beside the one before it in its delivery. `place` is its number by counting, whatever it calls itself.
CREATE TABLE step AS
  SELECT a.attempt_id, a.seq, a.message_id, a.endpoint_id, a.delivery_no, a.attempt_no, a.retry_rev, a.endpoint_rev, a.due_at, a.started_at,
         a.ended_at, a.outcome, a.status, a.error, a.retry_after, a.wait_ms, a.node,
         a.message_id || ' ' || a.endpoint_id || ' ' || a.delivery_no || '/' || a.attempt_no AS name,
         row_number() OVER delivery AS place,
         lag(a.started_at) OVER delivery AS before_started_at, lag(a.ended_at) OVER delivery AS before_ended_at,
         lag(a.outcome) OVER delivery AS before_outcome, lag(a.retry_after) OVER delivery AS before_retry_after,
         lag(a.wait_ms) OVER delivery AS before_wait_ms, lag(a.attempt_id) OVER delivery AS before_attempt_id,
         first_value(a.started_at) OVER delivery AS first_started_at,
         max(CASE WHEN a.outcome = 'succeeded' THEN 1 ELSE 0 END) OVER (delivery ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS after_success,
         max(a.ended_at) OVER (delivery ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_latest_end,
         o.at AS opened_at
  FROM attempts AS a
  LEFT JOIN opening AS o ON o.message_id = a.message_id AND o.endpoint_id = a.endpoint_id AND o.delivery_no = a.delivery_no
  WINDOW delivery AS (PARTITION BY a.message_id, a.endpoint_id, a.delivery_no ORDER BY a.seq, a.attempt_id);
CREATE INDEX step_by_endpoint ON step (endpoint_id, started_at);
CREATE INDEX step_by_delivery ON step (message_id, endpoint_id, delivery_no, place);

-- What led to each attempt: the interval of its wait, its anchor, and the Retry-After of the answer before it.
CREATE TABLE judged AS
  SELECT s.*, c.anchor, c.slack_ms, c.late_after_ms, c.max_attempts, c.max_age_ms, c.jitter, c.ra_rule, c.ra_max_ms, c.ra_times, w.ends, w.wait_ms AS law_ms, w.low_ms,
         CASE WHEN c.jitter = 'decorrelated' AND s.place > 2 -- at most three times the wait drawn before, capped
              THEN CASE WHEN c.cap_ms < 3 * coalesce(s.before_wait_ms, 0) THEN c.cap_ms WHEN 3 * coalesce(s.before_wait_ms, 0) < w.low_ms THEN w.low_ms ELSE 3 * coalesce(s.before_wait_ms, 0) END
              ELSE w.high_ms END AS high_ms,
         CASE WHEN s.place = 1 THEN s.opened_at
              WHEN s.before_outcome = 'interrupted' THEN s.before_ended_at -- an interrupted attempt anchors at its recovery
              WHEN c.anchor = 'start' THEN s.before_started_at
              WHEN c.anchor = 'first' THEN s.first_started_at
              ELSE s.before_ended_at END AS anchor_at,
         CASE WHEN c.ra_rule = 'ignore' OR s.before_outcome IS DISTINCT FROM 'failed' THEN NULL
              WHEN hs.wait_s IS NOT NULL THEN CASE WHEN hs.wait_s * 1000 > c.ra_max_ms THEN c.ra_max_ms ELSE hs.wait_s * 1000 END
              WHEN hd.unix_s * 1000 >= s.before_ended_at THEN
                CASE WHEN hd.unix_s * 1000 - s.before_ended_at > c.ra_max_ms THEN c.ra_max_ms ELSE hd.unix_s * 1000 - s.before_ended_at END
              END AS asked_ms
  FROM step AS s
  JOIN contract_clause AS c ON c.rev = s.retry_rev
  LEFT JOIN contract_wait AS w ON w.rev = s.retry_rev AND w.n = s.place - 1 AND s.place > 1
  LEFT JOIN header_seconds AS hs ON hs.raw = s.before_retry_after
  LEFT JOIN header_date AS hd ON hd.raw = s.before_retry_after;

-- When each was due. A wait within its interval is taken at its word; one outside counts as the interval's nearer end.
CREATE TABLE due AS
  SELECT k.*,
         CASE WHEN place = 1 THEN anchor_at ELSE anchor_at + own_ms + slack_ms END AS law_due_at,
         CASE WHEN place = 1 THEN anchor_at
              ELSE anchor_at + slack_ms + CASE
                WHEN asked_ms IS NULL THEN own_ms
                WHEN ra_rule = 'replace' THEN asked_ms
                WHEN ra_rule = 'floor' THEN CASE WHEN asked_ms > own_ms THEN asked_ms ELSE own_ms END
                -- bounded: from the law's wait to `times` of it
                WHEN asked_ms <= law_ms THEN law_ms
                WHEN law_ms <= asked_ms / ra_times THEN law_ms * ra_times
                ELSE asked_ms END END AS due_by_contract
  FROM (SELECT j.*, CASE WHEN wait_ms IS NULL OR wait_ms < low_ms THEN low_ms WHEN wait_ms > high_ms THEN high_ms ELSE wait_ms END AS own_ms FROM judged AS j) AS k;
CREATE INDEX due_by_endpoint ON due (endpoint_id, started_at);

CREATE TABLE finding (kind text NOT NULL, place text NOT NULL, expected text NOT NULL, found text NOT NULL);

-- --------------------------------------------------------------------------------------------- 4. too soon or too much
INSERT INTO finding
  SELECT 'too_early', name, 'start at or after ' || (CASE WHEN due_by_contract < law_due_at THEN due_by_contract ELSE law_due_at END), 'start at ' || started_at
  FROM due WHERE started_at < law_due_at AND started_at < due_by_contract;
INSERT INTO finding
  SELECT 'retry_after_ignored', name, 'start at or after ' || due_by_contract || ' (Retry-After: ' || before_retry_after || ')', 'start at ' || started_at
  FROM due WHERE started_at >= law_due_at AND started_at < due_by_contract;
INSERT INTO finding
  SELECT 'too_many_attempts', name, 'at most ' || max_attempts, 'number ' || place FROM due WHERE place > max_attempts;
INSERT INTO finding
  SELECT 'after_success', name, 'no attempt after a success', 'attempt at ' || started_at FROM step WHERE after_success = 1;
-- By seq, since timestamps cannot order a claim and a drain; an allow-list: only `active` is ever sent to.
INSERT INTO finding
  SELECT 'to_inactive_endpoint', s.name, 'active at seq ' || s.seq, e.state
  FROM step AS s
  JOIN (SELECT endpoint_id, seq, state, lead(seq) OVER (PARTITION BY endpoint_id ORDER BY seq) AS next_seq FROM endpoint_events) AS e
    ON e.endpoint_id = s.endpoint_id AND e.seq < s.seq AND (e.next_seq IS NULL OR e.next_seq > s.seq)
  WHERE e.state <> 'active';
INSERT INTO finding
  SELECT 'overlap', name, 'start at or after ' || coalesce(CAST(before_latest_end AS text), 'the end of ' || before_attempt_id), 'start at ' || started_at
  FROM step WHERE place > 1 AND (started_at < before_latest_end OR before_ended_at IS NULL);
INSERT INTO finding
  SELECT 'duplicate_attempt', message_id || ' ' || endpoint_id || ' ' || delivery_no || '/' || attempt_no, 'one row', count(*) || ' rows'
  FROM attempts GROUP BY message_id, endpoint_id, delivery_no, attempt_no HAVING count(*) > 1;
INSERT INTO finding
  SELECT 'duplicate_attempt', attempt_id, 'one row with this attempt_id', count(*) || ' rows' FROM attempts GROUP BY attempt_id HAVING count(*) > 1;

-- Pacing: the starts of one endpoint in order, by the clauses of the row that is judged.
CREATE TABLE start_of AS
  SELECT s.endpoint_id, s.seq, s.name, s.started_at, s.ended_at, c.min_gap_ms, c.rate_starts, c.rate_window_ms, c.in_flight,
         row_number() OVER (PARTITION BY s.endpoint_id ORDER BY s.started_at, s.seq) AS rank,
         lag(s.started_at) OVER (PARTITION BY s.endpoint_id ORDER BY s.started_at, s.seq) AS before_started_at
  FROM step AS s JOIN contract_clause AS c ON c.rev = s.endpoint_rev;
CREATE INDEX start_of_rank ON start_of (endpoint_id, rank);
CREATE INDEX start_of_time ON start_of (endpoint_id, started_at);
INSERT INTO finding
  SELECT 'min_gap', name, 'at least ' || min_gap_ms || ' ms after the start before', (started_at - before_started_at) || ' ms'
  FROM start_of WHERE started_at - before_started_at < min_gap_ms;
INSERT INTO finding
  SELECT 'rate', s.name, 'at most ' || s.rate_starts || ' starts in ' || s.rate_window_ms || ' ms', (s.rate_starts + 1) || ' in ' || (s.started_at - b.started_at + 1) || ' ms'
  FROM start_of AS s JOIN start_of AS b ON b.endpoint_id = s.endpoint_id AND b.rank = s.rank - s.rate_starts
  WHERE s.started_at - b.started_at < s.rate_window_ms;
-- In flight for certain: starts are rounded down and ends up, so two that meet within a millisecond may not overlap at all.
CREATE TABLE edge AS
  SELECT endpoint_id, at, delta, sum(delta) OVER (PARTITION BY endpoint_id ORDER BY at, delta ROWS UNBOUNDED PRECEDING) AS running
  FROM (SELECT endpoint_id, started_at AS at, 1 AS delta FROM start_of
        UNION ALL
        SELECT endpoint_id, CASE WHEN ended_at - 1 > started_at THEN ended_at - 1 ELSE started_at END, -1 FROM start_of WHERE ended_at IS NOT NULL) AS e;
INSERT INTO finding
  SELECT 'in_flight', e.endpoint_id || ' at ' || e.at, 'at most ' || c.in_flight || ' in flight', max(e.running) || ''
  FROM edge AS e
  JOIN (SELECT endpoint_id, started_at, max(in_flight) AS in_flight FROM start_of GROUP BY endpoint_id, started_at) AS c
    ON c.endpoint_id = e.endpoint_id AND c.started_at = e.at
  WHERE e.delta = 1 AND e.running > c.in_flight
  GROUP BY e.endpoint_id, e.at, c.in_flight;
INSERT INTO finding
  SELECT 'after_max_age', name, 'start at or before ' || (opened_at + max_age_ms), 'start at ' || started_at FROM due WHERE started_at > opened_at + max_age_ms;

-- ------------------------------------------------------------------------------------------- 5. too late or too little
INSERT INTO finding
  SELECT 'wait_too_long', name, 'due at ' || due_by_contract, 'due at ' || due_at FROM due WHERE due_at > due_by_contract AND (place = 1 OR due_at > before_ended_at);

-- The last that the ledger knows of.
CREATE TABLE ledger_end AS
  SELECT max(at) AS at FROM (
    SELECT max(at) AS at FROM delivery_events UNION ALL SELECT max(at) FROM endpoint_events UNION ALL SELECT max(at) FROM node_events
    UNION ALL SELECT max(at) FROM messages UNION ALL SELECT max(started_at) FROM attempts UNION ALL SELECT max(ended_at) FROM attempts) AS m;

-- Deliveries that nothing has ended, and what could still come of them.
CREATE TABLE open_delivery AS
  SELECT o.message_id, o.endpoint_id, o.delivery_no, o.at AS opened_at, s.place, s.attempt_id, s.started_at, s.ended_at, s.outcome,
         coalesce(s.retry_rev, o.retry_rev) AS retry_rev, s.first_started_at, s.node,
         -- a delivery that was never tried is paced as its endpoint's last attempt was
         coalesce(s.endpoint_rev, (SELECT max(a.endpoint_rev) FROM attempts AS a WHERE a.seq = l.seq)) AS endpoint_rev
  FROM opening AS o
  LEFT JOIN (SELECT endpoint_id, max(seq) AS seq FROM attempts GROUP BY endpoint_id) AS l ON l.endpoint_id = o.endpoint_id
  LEFT JOIN step AS s ON s.message_id = o.message_id AND s.endpoint_id = o.endpoint_id AND s.delivery_no = o.delivery_no
       AND s.place = (SELECT max(t.place) FROM step AS t WHERE t.message_id = o.message_id AND t.endpoint_id = o.endpoint_id AND t.delivery_no = o.delivery_no)
  WHERE NOT EXISTS (SELECT 1 FROM delivery_events AS e
                    WHERE e.message_id = o.message_id AND e.endpoint_id = o.endpoint_id AND e.delivery_no = o.delivery_no AND e.event <> 'opened');
INSERT INTO finding
  SELECT 'abandoned', d.message_id || ' ' || d.endpoint_id || ' ' || d.delivery_no, 'a final event, an attempt in flight or one to come', 'attempt ' || d.place || ' ' || d.outcome || ', and nothing after it'
  FROM open_delivery AS d JOIN contract_clause AS c ON c.rev = d.retry_rev
  WHERE d.outcome = 'succeeded' OR (d.outcome IS NOT NULL AND d.place >= c.max_attempts);

-- Late rows, and open deliveries whose time has come and gone; then what excuses them.
CREATE TABLE late AS
  SELECT 'overdue' AS kind, name, endpoint_id, endpoint_rev, node, seq, anchor_at, due_by_contract AS due_at, started_at, late_after_ms
  FROM due WHERE started_at - due_by_contract > late_after_ms
  UNION ALL
  SELECT 'abandoned', d.message_id || ' ' || d.endpoint_id || ' ' || d.delivery_no, d.endpoint_id, d.endpoint_rev, d.node, -1, d.ended_at,
         CASE WHEN d.outcome = 'interrupted' OR c.anchor = 'end' THEN d.ended_at WHEN c.anchor = 'start' THEN d.started_at ELSE d.first_started_at END
           + w.high_ms + c.slack_ms + CASE WHEN c.ra_rule = 'ignore' THEN 0 ELSE coalesce(c.ra_max_ms, 0) END, z.at, c.late_after_ms
  FROM open_delivery AS d JOIN contract_clause AS c ON c.rev = d.retry_rev JOIN contract_wait AS w ON w.rev = d.retry_rev AND w.n = d.place CROSS JOIN ledger_end AS z
  WHERE d.outcome IS NOT NULL AND d.outcome <> 'succeeded' AND d.place < c.max_attempts
  UNION ALL -- never tried at all
  SELECT 'abandoned', d.message_id || ' ' || d.endpoint_id || ' ' || d.delivery_no, d.endpoint_id, d.endpoint_rev, d.node, -1, d.opened_at, d.opened_at, z.at, c.late_after_ms
  FROM open_delivery AS d JOIN contract_clause AS c ON c.rev = d.retry_rev CROSS JOIN ledger_end AS z
  WHERE d.place IS NULL AND z.at - d.opened_at > c.late_after_ms;
CREATE TABLE excuse AS
  -- its endpoint was not active
  SELECT l.kind, l.name, e.at AS from_at, coalesce(e.next_at, l.started_at) AS to_at
  FROM late AS l JOIN (SELECT endpoint_id, at, state, lead(at) OVER (PARTITION BY endpoint_id ORDER BY seq) AS next_at FROM endpoint_events) AS e
    ON e.endpoint_id = l.endpoint_id WHERE e.state <> 'active'
  UNION ALL -- no node was up
  SELECT l.kind, l.name, n.at, coalesce(n.next_at, l.started_at)
  FROM late AS l CROSS JOIN (
    SELECT at, running, lead(at) OVER (ORDER BY seq) AS next_at
    FROM (SELECT at, seq, sum(CASE event WHEN 'up' THEN 1 ELSE -1 END) OVER (ORDER BY seq) AS running FROM node_events WHERE event <> 'step') AS r) AS n
  WHERE n.running <= 0
  UNION ALL -- the wall clock was set forward since the attempt before: that time never passed
  SELECT l.kind, l.name, l.due_at, l.due_at + n.size_ms
  FROM late AS l JOIN node_events AS n ON n.event = 'step' AND n.size_ms > 0 AND n.at > l.anchor_at AND n.at - n.size_ms <= l.started_at
  UNION ALL -- the least gap after another start
  SELECT l.kind, l.name, b.started_at, b.started_at + c.min_gap_ms
  FROM late AS l JOIN contract_clause AS c ON c.rev = l.endpoint_rev
  JOIN start_of AS b ON b.endpoint_id = l.endpoint_id AND b.started_at <= l.started_at AND b.started_at > l.due_at - c.min_gap_ms AND b.seq <> l.seq
  WHERE c.min_gap_ms > 0
  UNION ALL -- the rate was used up
  SELECT l.kind, l.name, b.started_at, f.started_at + c.rate_window_ms
  FROM late AS l JOIN contract_clause AS c ON c.rev = l.endpoint_rev
  JOIN start_of AS b ON b.endpoint_id = l.endpoint_id AND b.started_at <= l.started_at AND b.started_at > l.due_at - c.rate_window_ms AND b.seq <> l.seq
  JOIN start_of AS f ON f.endpoint_id = b.endpoint_id AND f.rank = b.rank - c.rate_starts + 1
  UNION ALL -- the in-flight window was full
  SELECT l.kind, l.name, b.at, b.next_at
  FROM late AS l JOIN contract_clause AS c ON c.rev = l.endpoint_rev
  JOIN (SELECT endpoint_id, at, running, lead(at) OVER (PARTITION BY endpoint_id ORDER BY at, delta) AS next_at FROM edge) AS b
    ON b.endpoint_id = l.endpoint_id AND b.at <= l.started_at AND b.next_at >= l.due_at WHERE b.running >= c.in_flight;
-- The excuses of one row joined where they overlap, and cut to the time between due and start.
CREATE TABLE excused AS
  SELECT kind, name, sum(CASE WHEN to_at <= coalesce(covered_to, from_at) THEN 0
                              WHEN from_at < covered_to THEN to_at - covered_to ELSE to_at - from_at END) AS ms
  FROM (SELECT kind, name, from_at, to_at, max(to_at) OVER (PARTITION BY kind, name ORDER BY from_at, to_at ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS covered_to
        FROM (SELECT x.kind, x.name, CASE WHEN x.from_at < l.due_at THEN l.due_at ELSE x.from_at END AS from_at,
                     CASE WHEN x.to_at > l.started_at THEN l.started_at ELSE x.to_at END AS to_at
              FROM excuse AS x JOIN late AS l ON l.kind = x.kind AND l.name = x.name) AS clipped
        WHERE to_at > from_at) AS swept
  GROUP BY kind, name;
INSERT INTO finding
  SELECT l.kind, l.name, CASE WHEN l.kind = 'overdue' THEN 'start' ELSE 'an attempt' END || ' by ' || (l.due_at + coalesce(x.ms, 0) + l.late_after_ms) || ', excuses of ' || coalesce(x.ms, 0) || ' ms counted',
         CASE WHEN l.kind = 'overdue' THEN 'start at ' || l.started_at ELSE 'none by ' || l.started_at END
  FROM late AS l LEFT JOIN excused AS x ON x.kind = l.kind AND x.name = l.name
  WHERE l.started_at - l.due_at - coalesce(x.ms, 0) > l.late_after_ms;

-- Dead deliveries: what they had behind them when they were given up.
CREATE TABLE dead AS
  SELECT e.message_id || ' ' || e.endpoint_id || ' ' || e.delivery_no AS name, e.seq, e.at, e.reason, e.endpoint_id, e.retry_rev, o.at AS opened_at,
         coalesce(s.place, 0) AS attempts, s.outcome, s.status, s.ended_at, c.max_attempts, c.max_age_ms,
         CASE WHEN s.outcome = 'interrupted' OR c.anchor = 'end' THEN s.ended_at WHEN c.anchor = 'start' THEN s.started_at ELSE s.first_started_at END
           + w.high_ms + c.slack_ms + CASE WHEN s.retry_after IS NULL THEN 0 ELSE coalesce(c.ra_max_ms, 0) END AS latest_next_at, coalesce(w.ends, 0) AS ends
  FROM delivery_events AS e
  LEFT JOIN opening AS o ON o.message_id = e.message_id AND o.endpoint_id = e.endpoint_id AND o.delivery_no = e.delivery_no
  LEFT JOIN contract_clause AS c ON c.rev = e.retry_rev
  LEFT JOIN step AS s ON s.message_id = e.message_id AND s.endpoint_id = e.endpoint_id AND s.delivery_no = e.delivery_no
       AND s.place = (SELECT max(t.place) FROM step AS t WHERE t.message_id = e.message_id AND t.endpoint_id = e.endpoint_id AND t.delivery_no = e.delivery_no)
  LEFT JOIN contract_wait AS w ON w.rev = e.retry_rev AND w.n = s.place
  WHERE e.event = 'dead';
INSERT INTO finding
  SELECT 'gave_up_early', d.name, 'dead with a cause: attempts, age, status, schedule or endpoint', d.attempts || ' of ' || d.max_attempts || ' attempts, reason ' || coalesce(d.reason, 'none')
  FROM dead AS d
  WHERE d.max_attempts > d.attempts
    AND NOT (d.max_age_ms IS NOT NULL AND (d.at > d.opened_at + d.max_age_ms OR coalesce(d.latest_next_at, d.at) > d.opened_at + d.max_age_ms))
    AND d.ends = 0
    AND NOT EXISTS (SELECT 1 FROM contract_status AS t WHERE t.rev = d.retry_rev AND t.which = 'terminal' AND d.status BETWEEN t.low AND t.high)
    AND coalesce((SELECT e.state FROM endpoint_events AS e WHERE e.endpoint_id = d.endpoint_id
                  AND e.seq = (SELECT max(f.seq) FROM endpoint_events AS f WHERE f.endpoint_id = d.endpoint_id AND f.seq <= d.seq)), 'active') NOT IN ('disabled', 'deleted');
INSERT INTO finding
  SELECT 'lost', m.message_id, m.deliveries || ' deliveries', (SELECT count(*) FROM opening AS o WHERE o.message_id = m.message_id AND o.delivery_no = 1) || ''
  FROM messages AS m WHERE m.deliveries > (SELECT count(*) FROM opening AS o WHERE o.message_id = m.message_id AND o.delivery_no = 1);

-- ------------------------------------------------------------------------------------------------------ 6. bookkeeping
INSERT INTO finding
  SELECT 'numbering_gap', name, 'attempt ' || place, 'attempt ' || attempt_no
  FROM (SELECT name, attempt_no, place, lag(attempt_no) OVER (PARTITION BY message_id, endpoint_id, delivery_no ORDER BY place) AS before_no FROM step) AS s
  WHERE attempt_no <> coalesce(before_no, 0) + 1 AND attempt_no IS DISTINCT FROM before_no; -- the same number twice is a duplicate
INSERT INTO finding
  SELECT 'numbering_gap', message_id || ' ' || endpoint_id || ' ' || delivery_no, 'delivery ' || (coalesce(before_no, 0) + 1), 'delivery ' || delivery_no
  FROM (SELECT message_id, endpoint_id, delivery_no, lag(delivery_no) OVER (PARTITION BY message_id, endpoint_id ORDER BY delivery_no) AS before_no FROM opening) AS o
  WHERE delivery_no <> coalesce(before_no, 0) + 1;
-- A wait without jitter is one number; of a jittered one SQL checks the interval only.
INSERT INTO finding
  SELECT 'wrong_draw', name, CASE WHEN low_ms = high_ms THEN 'wait ' || low_ms || ' ms' ELSE 'wait within ' || low_ms || '..' || high_ms || ' ms (interval only)' END,
         coalesce('wait ' || wait_ms || ' ms', 'no wait')
  FROM due WHERE place > 1 AND low_ms IS NOT NULL AND (wait_ms IS NULL OR wait_ms < low_ms OR wait_ms > high_ms);
INSERT INTO finding
  SELECT 'wrong_draw', name, 'no wait before a first attempt', 'wait ' || wait_ms || ' ms' FROM due WHERE place = 1 AND wait_ms IS NOT NULL;
INSERT INTO finding
  SELECT 'unknown_contract', name, 'a contract of the ledger', rev
  FROM (SELECT name, retry_rev AS rev FROM step UNION SELECT name, endpoint_rev FROM step
        UNION SELECT message_id || ' ' || endpoint_id || ' ' || delivery_no || ' ' || event, retry_rev FROM delivery_events) AS used
  WHERE rev NOT IN (SELECT rev FROM contract_clause);
INSERT INTO finding
  SELECT 'outcome_not_in_contract', name, CASE WHEN outcome = 'succeeded' THEN 'failed' ELSE 'succeeded' END || ' for status ' || coalesce(CAST(status AS text), 'none'), outcome
  FROM (SELECT d.name, d.outcome, d.status, d.error,
               CASE WHEN EXISTS (SELECT 1 FROM contract_status AS t WHERE t.rev = d.retry_rev AND t.which = 'success' AND d.status BETWEEN t.low AND t.high) THEN 1 ELSE 0 END AS in_success
        FROM due AS d WHERE d.outcome IN ('succeeded', 'failed')) AS o
  WHERE (outcome = 'succeeded' AND in_success = 0)
     OR (outcome = 'failed' AND in_success = 1 AND error IS NULL); -- an answer that broke off fails whatever its status
INSERT INTO finding
  SELECT 'state_without_evidence', e.message_id || ' ' || e.endpoint_id || ' ' || e.delivery_no, 'a successful attempt before it', 'event succeeded at seq ' || e.seq
  FROM delivery_events AS e
  WHERE e.event = 'succeeded' AND NOT EXISTS (SELECT 1 FROM step AS s WHERE s.message_id = e.message_id AND s.endpoint_id = e.endpoint_id AND s.delivery_no = e.delivery_no AND s.outcome = 'succeeded');
INSERT INTO finding
  SELECT 'state_without_evidence', d.name, 'the cause that it names', 'dead: ' || coalesce(d.reason, 'no reason') || ' after ' || d.attempts || ' attempts'
  FROM dead AS d
  WHERE (d.outcome = 'succeeded')
     OR (d.reason = 'max_attempts' AND d.attempts < d.max_attempts)
     OR (d.reason = 'terminal' AND NOT EXISTS (SELECT 1 FROM contract_status AS t WHERE t.rev = d.retry_rev AND t.which = 'terminal' AND d.status BETWEEN t.low AND t.high))
     OR (d.reason = 'schedule_end' AND d.ends = 0);
INSERT INTO finding
  SELECT DISTINCT 'state_without_evidence', e.message_id || ' ' || e.endpoint_id || ' ' || e.delivery_no, 'an opened event', 'event ' || e.event
  FROM delivery_events AS e
  WHERE e.event <> 'opened' AND NOT EXISTS (SELECT 1 FROM opening AS o WHERE o.message_id = e.message_id AND o.endpoint_id = e.endpoint_id AND o.delivery_no = e.delivery_no);
INSERT INTO finding
  SELECT DISTINCT 'state_without_evidence', message_id || ' ' || endpoint_id || ' ' || delivery_no, 'an opened event', 'attempts' FROM step WHERE opened_at IS NULL;

-- A request that a receiver logged and the ledger does not know: one request, one row.
INSERT INTO finding
  SELECT 'not_in_ledger', 'received line ' || line, 'an attempt of the ledger', coalesce(attempt_id, 'no attempt id')
  FROM received WHERE attempt_id IS NULL OR attempt_id NOT IN (SELECT attempt_id FROM attempts);
INSERT INTO finding
  SELECT 'not_in_ledger', 'received line ' || line, 'one request for attempt ' || attempt_id, 'request ' || nth
  FROM (SELECT line, attempt_id, row_number() OVER (PARTITION BY attempt_id ORDER BY line) AS nth FROM received) AS r
  WHERE nth > 1 AND attempt_id IN (SELECT attempt_id FROM attempts);

-- ------------------------------------------------------------------------------------------------------ 7. the verdict
CREATE TABLE verdict (place integer NOT NULL, line text NOT NULL);
INSERT INTO verdict SELECT 1, kind || ' ' || place || ': expected ' || expected || ', found ' || found FROM finding;
INSERT INTO verdict SELECT 2, 'interval only: ' || count(*) || ' rows' FROM due WHERE place > 1 AND jitter <> 'none';
INSERT INTO verdict
  SELECT 3, CASE WHEN count(*) = 0 THEN 'RESULT: OK' ELSE 'RESULT: BAD (' || count(*) || CASE WHEN count(*) = 1 THEN ' mismatch)' ELSE ' mismatches)' END END FROM finding;
SELECT line FROM verdict ORDER BY place, line;
