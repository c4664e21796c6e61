//! The rules of spec/retry-round.md, each as the query that finds what breaks it, over the tables of probe/plan.sql.

use super::rules::How;

/// Each rule and the query that finds what breaks it: a row of text a breach, over the tables of probe/plan.sql.
pub(super) const PLAN_RULES: &[(&str, How)] = &[
    (
        "rule 1: every endpoint whose state is active is admissible",
        How::Query(
            "SELECT endpoint_id FROM endpoint WHERE state = 'active' AND endpoint_id NOT IN (SELECT endpoint_id FROM report_admissible WHERE endpoint_id IS NOT NULL)",
        ),
    ),
    (
        "rule 1: no draining, disabled or unknown endpoint is admissible",
        How::Query(
            "SELECT coalesce(endpoint_id, 'no text') FROM report_admissible WHERE endpoint_id IS NULL OR endpoint_id NOT IN (SELECT endpoint_id FROM endpoint WHERE state = 'active')",
        ),
    ),
    (
        "rule 1: admissible endpoints are sorted by id, each once",
        How::Query(
            "SELECT a.endpoint_id FROM report_admissible AS a JOIN report_admissible AS b ON b.place = a.place + 1 WHERE a.endpoint_id >= b.endpoint_id",
        ),
    ),
    (
        "rule 1: an endpoint that is not active gets no row",
        How::Query(
            "SELECT r.attempt_id FROM report_row AS r JOIN attempt AS a USING (attempt_id) JOIN endpoint AS e ON e.endpoint_id = a.endpoint_id WHERE e.state <> 'active'",
        ),
    ),
    (
        "rule 1: every row of an active endpoint is planned",
        How::Query(
            "SELECT attempt_id FROM expected WHERE attempt_id NOT IN (SELECT attempt_id FROM report_row WHERE attempt_id IS NOT NULL)",
        ),
    ),
    (
        "report: no row is planned twice",
        How::Query("SELECT attempt_id FROM report_row WHERE nth > 1"),
    ),
    (
        "report: plan keeps ledger order",
        How::Query(
            "SELECT attempt_id FROM (SELECT r.attempt_id, e.n, lead(e.n) OVER (ORDER BY r.place) AS next_n FROM report_row AS r JOIN expected AS e USING (attempt_id)) WHERE next_n < n",
        ),
    ),
    (
        "report: a row names its endpoint and attempt_no as the ledger does",
        How::Query(
            "SELECT e.attempt_id FROM expected AS e JOIN report_row AS r USING (attempt_id) WHERE r.row ->> '$.endpoint_id' IS NOT e.endpoint_id OR r.row ->> '$.attempt_no' IS NOT e.attempt_no",
        ),
    ),
    (
        "rule 2: a numeric status within the range closes a delivery",
        How::Query(
            "SELECT b.attempt_id FROM placed AS p JOIN attempt AS a ON a.n = p.n AND a.success JOIN attempt AS b ON b.endpoint_id = a.endpoint_id AND b.row_no = a.row_no + 1 JOIN report_row AS r ON r.attempt_id = b.attempt_id WHERE r.row ->> '$.earliest_ts' IS NOT 0",
        ),
    ),
    (
        "rule 2: a status outside the range, or none, closes nothing",
        How::Query(
            "SELECT b.attempt_id FROM placed AS p JOIN attempt AS a ON a.n = p.n AND NOT a.success JOIN endpoint AS e ON e.endpoint_id = a.endpoint_id AND p.place < e.max_attempts JOIN attempt AS b ON b.endpoint_id = a.endpoint_id AND b.row_no = a.row_no + 1 JOIN expected AS x ON x.n = b.n JOIN report_row AS r ON r.attempt_id = b.attempt_id WHERE r.row ->> '$.earliest_ts' IS NOT x.earliest_ts",
        ),
    ),
    (
        "rule 3: an endpoint's first row opens a delivery",
        How::Query(
            "SELECT a.attempt_id FROM attempt AS a JOIN report_row AS r USING (attempt_id) WHERE a.row_no = 1 AND r.row ->> '$.earliest_ts' IS NOT 0",
        ),
    ),
    (
        "rule 3: the row after the limit opens a delivery",
        How::Query(
            "SELECT b.attempt_id FROM placed AS p JOIN attempt AS a ON a.n = p.n JOIN endpoint AS e ON e.endpoint_id = a.endpoint_id AND p.place = e.max_attempts JOIN attempt AS b ON b.endpoint_id = a.endpoint_id AND b.row_no = a.row_no + 1 JOIN report_row AS r ON r.attempt_id = b.attempt_id WHERE r.row ->> '$.earliest_ts' IS NOT 0",
        ),
    ),
    (
        "rule 3: attempt_no 1 inside a delivery opens none",
        How::Query(
            "SELECT x.attempt_id FROM placed AS p JOIN expected AS x ON x.n = p.n JOIN report_row AS r USING (attempt_id) WHERE p.place > 1 AND x.attempt_no = 1 AND r.row ->> '$.earliest_ts' IS NOT x.earliest_ts",
        ),
    ),
    (
        "rule 3: an attempt_no above 1 opens one where the count says so",
        How::Query(
            "SELECT x.attempt_id FROM placed AS p JOIN expected AS x ON x.n = p.n JOIN report_row AS r USING (attempt_id) WHERE p.place = 1 AND x.attempt_no > 1 AND r.row ->> '$.earliest_ts' IS NOT 0",
        ),
    ),
    (
        "rule 4: the first row of a delivery has earliest_ts 0",
        How::Query(
            "SELECT x.attempt_id FROM placed AS p JOIN expected AS x ON x.n = p.n JOIN report_row AS r USING (attempt_id) WHERE p.place = 1 AND r.row ->> '$.earliest_ts' IS NOT 0",
        ),
    ),
    (
        "rule 4: every other row waits from the finish before by cap, law and slack",
        How::Query(
            "SELECT x.attempt_id FROM placed AS p JOIN expected AS x ON x.n = p.n JOIN report_row AS r USING (attempt_id) WHERE p.place > 1 AND r.row ->> '$.earliest_ts' IS NOT x.earliest_ts",
        ),
    ),
    (
        "rule 4: dispatch_gap_s is a cap",
        How::Query(
            "SELECT a.attempt_id FROM placed AS p JOIN attempt AS a ON a.n = p.n AND p.place > 1 JOIN attempt AS b ON b.endpoint_id = a.endpoint_id AND b.row_no = a.row_no - 1 JOIN endpoint AS e ON e.endpoint_id = a.endpoint_id JOIN report_row AS r ON r.attempt_id = a.attempt_id, contract AS c WHERE CAST(r.row ->> '$.earliest_ts' AS REAL) > CAST(b.finish_ts AS REAL) + e.dispatch_gap_s + c.slack_s",
        ),
    ),
    (
        "rule 4: no wait is shorter than the slack",
        How::Query(
            "SELECT a.attempt_id FROM placed AS p JOIN attempt AS a ON a.n = p.n AND p.place > 1 JOIN attempt AS b ON b.endpoint_id = a.endpoint_id AND b.row_no = a.row_no - 1 JOIN report_row AS r ON r.attempt_id = a.attempt_id, contract AS c WHERE b.finish_ts < 9000000000000000000 - c.slack_s AND r.row ->> '$.earliest_ts' < b.finish_ts + c.slack_s",
        ),
    ),
    (
        "rule 4: every earliest_ts is a 64-bit integer",
        How::Query(
            "SELECT coalesce(attempt_id, 'row ' || place) FROM report_row WHERE json_type(row, '$.earliest_ts') IS NOT 'integer' OR typeof(row ->> '$.earliest_ts') <> 'integer'",
        ),
    ),
    (
        "rule 5: scheduled_delta_s is start_ts − earliest_ts",
        How::Query(
            "SELECT x.attempt_id FROM expected AS x JOIN report_row AS r USING (attempt_id) WHERE r.row ->> '$.scheduled_delta_s' IS NOT x.scheduled_delta_s",
        ),
    ),
    (
        "rule 5: the verdict is too_early exactly when the delta is negative",
        How::Query(
            "SELECT r.attempt_id FROM report_row AS r WHERE r.row ->> '$.verdict' IS NOT CASE WHEN r.row ->> '$.scheduled_delta_s' < 0 THEN 'too_early' ELSE 'ok' END",
        ),
    ),
    (
        "rule 5: every verdict is the derived one",
        How::Query(
            "SELECT x.attempt_id FROM expected AS x JOIN report_row AS r USING (attempt_id) WHERE r.row ->> '$.verdict' IS NOT x.verdict",
        ),
    ),
    ("rule 6: totals.backoff_s", How::Figure("totals.backoff_s")),
    (
        "rule 7: counts.succeeded, by the last row alone",
        How::Figure("counts.succeeded"),
    ),
    ("rule 7: counts.exhausted", How::Figure("counts.exhausted")),
    ("rule 7: counts.skipped", How::Figure("counts.skipped")),
    (
        "rule 7: every endpoint has exactly one final state",
        How::Query(
            "SELECT 'succeeded + exhausted + skipped' FROM raw_report WHERE coalesce(text ->> '$.counts.succeeded', 0) + coalesce(text ->> '$.counts.exhausted', 0) + coalesce(text ->> '$.counts.skipped', 0) <> (SELECT count(*) FROM endpoint)",
        ),
    ),
    ("rule 8: over_dead_letter", How::Figure("over_dead_letter")),
    ("rule 9: ok", How::Figure("ok")),
    (
        "rule 9: ok agrees with the report's own too_early and over_dead_letter",
        How::Query(
            "SELECT 'ok' FROM raw_report WHERE (text ->> '$.ok') IS NOT ((text ->> '$.totals.too_early') = 0 AND NOT (text ->> '$.over_dead_letter'))",
        ),
    ),
    (
        "rule 10: unknown_endpoint_rows",
        How::Figure("unknown_endpoint_rows"),
    ),
    (
        "rule 10: a row of an unknown endpoint is not planned",
        How::Query(
            "SELECT r.attempt_id FROM report_row AS r JOIN attempt AS a USING (attempt_id) WHERE a.endpoint_id NOT IN (SELECT endpoint_id FROM endpoint)",
        ),
    ),
    (
        "report: totals.attempts is the number of planned rows",
        How::Figure("totals.attempts"),
    ),
    (
        "report: totals.endpoints is the number of admissible endpoints",
        How::Figure("totals.endpoints"),
    ),
    ("report: totals.ok", How::Figure("totals.ok")),
    ("report: totals.too_early", How::Figure("totals.too_early")),
    (
        "report: counts.attempts is the number of ledger rows",
        How::Figure("counts.attempts"),
    ),
    (
        "report: its totals are those of its own rows",
        How::Query(
            "SELECT 'totals' FROM raw_report WHERE (text ->> '$.totals.attempts') IS NOT (SELECT count(*) FROM report_row) OR (text ->> '$.totals.too_early') IS NOT (SELECT count(*) FROM report_row WHERE row ->> '$.verdict' = 'too_early')",
        ),
    ),
    (
        "report: every key is present and none is unknown",
        How::Query(
            "SELECT name || ': ' || found FROM mismatch WHERE found IN ('nothing', 'a key') OR expected IN ('nothing', 'one')",
        ),
    ),
];
