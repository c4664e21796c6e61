//! The rules of spec/queue-round.md, each as the query that finds what breaks it, over the tables of probe/appraise.sql.

use super::rules::How;

pub(super) const APPRAISE_RULES: &[(&str, How)] = &[
    (
        "rule 1: age_ms is in milliseconds, whatever the unit of the file",
        How::Query(
            "SELECT id FROM expected AS e JOIN report_row AS r USING (id) WHERE r.row ->> '$.age_ms' IS NOT e.age_ms",
        ),
    ),
    (
        "rule 1: an item from the future has a negative age and is not due",
        How::Query(
            "SELECT id FROM expected AS e JOIN report_row AS r USING (id) WHERE e.age_ms < 0 AND (r.row ->> '$.age_ms' >= 0 OR r.row ->> '$.verdict' = 'deliver')",
        ),
    ),
    (
        "rule 2: backoff_ms is BASE × 2 ^ attempts",
        How::Query(
            "SELECT id FROM expected AS e JOIN report_row AS r USING (id) WHERE r.row ->> '$.backoff_ms' IS NOT e.backoff_ms",
        ),
    ),
    (
        "rule 2: with no attempt made, backoff_ms is BASE",
        How::Query(
            "SELECT id FROM expected AS e JOIN report_row AS r USING (id), contract AS c WHERE e.attempts = 0 AND r.row ->> '$.backoff_ms' IS NOT c.base_ms",
        ),
    ),
    (
        "rule 2: every backoff_ms is a 64-bit integer",
        How::Query(
            "SELECT coalesce(id, 'row ' || place) FROM report_row WHERE json_type(row, '$.backoff_ms') IS NOT 'integer' OR typeof(row ->> '$.backoff_ms') <> 'integer'",
        ),
    ),
    (
        "rule 3: an unknown channel is blocked, or dead at the limit",
        How::Query(
            "SELECT id FROM expected AS e JOIN report_row AS r USING (id) WHERE e.channel NOT IN (SELECT name FROM channel) AND (r.row ->> '$.verdict') NOT IN ('block', 'dead')",
        ),
    ),
    (
        "rule 3: a disabled channel is blocked, or dead at the limit",
        How::Query(
            "SELECT id FROM expected AS e JOIN report_row AS r USING (id) JOIN channel AS c ON c.name = e.channel WHERE NOT c.enabled AND (r.row ->> '$.verdict') NOT IN ('block', 'dead')",
        ),
    ),
    (
        "rule 3: an item as old as its backoff is delivered",
        How::Query(
            "SELECT id FROM expected AS e JOIN report_row AS r USING (id) WHERE e.verdict = 'deliver' AND (r.row ->> '$.verdict') IS NOT 'deliver'",
        ),
    ),
    (
        "rule 3: an item younger than its backoff is not delivered",
        How::Query(
            "SELECT id FROM expected AS e JOIN report_row AS r USING (id) WHERE e.age_ms < e.backoff_ms AND (r.row ->> '$.verdict') IS 'deliver'",
        ),
    ),
    (
        "rule 3: an item at the limit that cannot go out now is dead",
        How::Query(
            "SELECT id FROM expected AS e JOIN report_row AS r USING (id) WHERE e.verdict = 'dead' AND (r.row ->> '$.verdict') IS NOT 'dead'",
        ),
    ),
    (
        "rule 3: an item below the limit is never dead",
        How::Query(
            "SELECT id FROM expected AS e JOIN report_row AS r USING (id), contract AS c WHERE e.attempts < c.max_attempts AND (r.row ->> '$.verdict') IS 'dead'",
        ),
    ),
    (
        "rule 3: an item that is due goes out even at the limit",
        How::Query(
            "SELECT id FROM expected AS e JOIN report_row AS r USING (id), contract AS c WHERE e.attempts >= c.max_attempts AND e.verdict = 'deliver' AND (r.row ->> '$.verdict') IS NOT 'deliver'",
        ),
    ),
    (
        "rule 3: every verdict is the derived one",
        How::Query(
            "SELECT id FROM expected AS e JOIN report_row AS r USING (id) WHERE r.row ->> '$.verdict' IS NOT e.verdict",
        ),
    ),
    (
        "rule 3: verdict and reason agree",
        How::Query(
            "SELECT coalesce(id, 'row ' || place) FROM report_row WHERE (row ->> '$.verdict') || '/' || (row ->> '$.reason') NOT IN ('block/channel_unknown', 'block/channel_disabled', 'deliver/ready', 'defer/not_due', 'dead/max_attempts') OR row ->> '$.reason' IS NULL OR row ->> '$.verdict' IS NULL",
        ),
    ),
    (
        "rule 3: every reason is the derived one",
        How::Query(
            "SELECT id FROM expected AS e JOIN report_row AS r USING (id) WHERE r.row ->> '$.reason' IS NOT e.reason",
        ),
    ),
    (
        "rule 4: wait_ms is age_ms for a delivered item",
        How::Query(
            "SELECT coalesce(id, 'row ' || place) FROM report_row WHERE row ->> '$.verdict' = 'deliver' AND row ->> '$.wait_ms' IS NOT row ->> '$.age_ms'",
        ),
    ),
    (
        "rule 4: wait_ms is null for every other",
        How::Query(
            "SELECT coalesce(id, 'row ' || place) FROM report_row WHERE row ->> '$.verdict' IS NOT 'deliver' AND json_type(row, '$.wait_ms') IS NOT 'null'",
        ),
    ),
    (
        "rule 5: every line that can be read is judged, once",
        How::Query(
            "SELECT id FROM expected WHERE (SELECT count(*) FROM report_row AS r WHERE r.id = expected.id) <> 1",
        ),
    ),
    (
        "rule 5: nothing is judged that is not in the queue",
        How::Query(
            "SELECT coalesce(id, 'row ' || place) FROM report_row WHERE id IS NULL OR id NOT IN (SELECT id FROM expected)",
        ),
    ),
    (
        "rule 5: malformed_rows lists the lines that cannot be read, and no other",
        How::Query("SELECT name FROM mismatch WHERE name LIKE 'malformed_rows%'"),
    ),
    (
        "rule 5: items_total counts every line that is not blank",
        How::Figure("items_total"),
    ),
    ("rule 5: ok", How::Figure("ok")),
    (
        "rule 5: ok agrees with the report's own numbers",
        How::Query(
            "SELECT 'ok' FROM raw_report WHERE (text ->> '$.ok') IS NOT ((text ->> '$.deliver') + (text ->> '$.defer') + (text ->> '$.block') + (text ->> '$.dead') = (text ->> '$.items_total') AND json_array_length(text, '$.malformed_rows') = 0)",
        ),
    ),
    ("report: deliver", How::Figure("deliver")),
    ("report: defer", How::Figure("defer")),
    ("report: block", How::Figure("block")),
    ("report: dead", How::Figure("dead")),
    ("report: delay_unit is the contract's", How::Figure("delay_unit")),
    ("report: now is the clock that was given", How::Figure("now")),
    (
        "report: the unit in force stands on every row",
        How::Query(
            "SELECT coalesce(id, 'row ' || place) FROM report_row, contract WHERE row ->> '$.delay_unit' IS NOT unit",
        ),
    ),
    (
        "report: a row repeats its item as the queue has it",
        How::Query(
            "SELECT id FROM expected AS e JOIN report_row AS r USING (id) WHERE r.row ->> '$.channel' IS NOT e.channel OR r.row ->> '$.attempts' IS NOT e.attempts",
        ),
    ),
    (
        "report: results keep the queue's order",
        How::Query("SELECT found FROM mismatch WHERE name = 'results'"),
    ),
    (
        "report: its totals are those of its own rows",
        How::Query(
            "SELECT 'totals' FROM raw_report WHERE (text ->> '$.deliver') IS NOT (SELECT count(*) FROM report_row WHERE row ->> '$.verdict' = 'deliver') OR (text ->> '$.defer') IS NOT (SELECT count(*) FROM report_row WHERE row ->> '$.verdict' = 'defer') OR (text ->> '$.block') IS NOT (SELECT count(*) FROM report_row WHERE row ->> '$.verdict' = 'block') OR (text ->> '$.dead') IS NOT (SELECT count(*) FROM report_row WHERE row ->> '$.verdict' = 'dead')",
        ),
    ),
    (
        "report: every key is present and none is unknown",
        How::Query(
            "SELECT name || ': ' || found FROM mismatch WHERE found IN ('nothing', 'a key') OR expected IN ('nothing', 'one')",
        ),
    ),
];
