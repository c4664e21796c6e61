//! Both rounds, derived again: the worked numbers, and each rule that they do not touch.

use audit::round::{queue, retry};
use contract::rounds::{QueueRoundContract, RetryRoundContract};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn case(round: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../cases")
        .join(round)
}

fn retry_contract(path: &Path) -> RetryRoundContract {
    RetryRoundContract::read(&std::fs::read(path).unwrap(), "retry.env").unwrap()
}

fn queue_contract(path: &Path) -> QueueRoundContract {
    QueueRoundContract::read(&std::fs::read(path).unwrap(), "queue.env").unwrap()
}

#[test]
fn the_worked_retry_round_field_by_field() {
    let case = case("retry-round");
    let contract = retry_contract(&case.join("retry.env"));
    let derived = retry::derive(
        &contract,
        &case.join("endpoints.tsv"),
        &case.join("attempts.tsv"),
        retry::Options::default(),
    );
    let row = |id: &str, endpoint: &str, no: i64, earliest: i64, delta: i64| {
        let verdict = if delta < 0 { "too_early" } else { "ok" };
        json!({
            "attempt_id": id, "endpoint_id": endpoint, "attempt_no": no, "earliest_ts": earliest,
            "scheduled_delta_s": delta, "verdict": verdict,
        })
    };
    let due = json!({
        "admissible_endpoints": ["ep-alpha", "ep-bravo", "ep-charlie"],
        "plan": [
            row("a-01", "ep-alpha", 1, 0, 1000),
            row("a-02", "ep-alpha", 1, 1017, 13),
            row("a-03", "ep-alpha", 2, 1056, -6),
            row("a-04", "ep-alpha", 1, 0, 1080),
            row("a-05", "ep-bravo", 1, 0, 2000),
            row("a-06", "ep-bravo", 2, 2046, 34),
            row("a-07", "ep-charlie", 1, 0, 3000),
            row("a-08", "ep-charlie", 2, 3090, -40),
            row("a-10", "ep-alpha", 1, 0, 1120),
        ],
        "totals": {"attempts": 9, "endpoints": 3, "ok": 7, "too_early": 2, "backoff_s": 171},
        "counts": {"attempts": 10, "succeeded": 1, "exhausted": 2, "skipped": 1},
        "unknown_endpoint_rows": [], "over_dead_letter": false, "ok": false,
    });
    assert_eq!(derived.unwrap().to_json(), due);
}

/// A retry round of one's own: rows of endpoints and of attempts, fields separated by spaces.
fn derive_retry(contract: &str, endpoints: &[&str], attempts: &[&str]) -> Result<retry::Derived, String> {
    let folder = tempfile::tempdir().unwrap();
    let [factor, slack, mark, min, max]: [&str; 5] =
        contract.split(' ').collect::<Vec<_>>().try_into().unwrap();
    let text = format!(
        "WEBHOOK_BACKOFF_FACTOR={factor}\nWEBHOOK_ADMIT_SLACK_S={slack}\nWEBHOOK_DEAD_LETTER_AFTER={mark}\n\
         WEBHOOK_SUCCESS_MIN={min}\nWEBHOOK_SUCCESS_MAX={max}\n"
    );
    let contract = RetryRoundContract::read(text.as_bytes(), "retry.env").unwrap();
    let table = |name: &str, header: &str, rows: &[&str]| {
        let all: Vec<String> = std::iter::once(&header)
            .chain(rows)
            .map(|row| row.replace(' ', "\t") + "\n")
            .collect();
        let path = folder.path().join(name);
        std::fs::write(&path, all.concat()).unwrap();
        path
    };
    let endpoints = table(
        "endpoints.tsv",
        "endpoint_id state max_attempts backoff_base_s dispatch_gap_s",
        endpoints,
    );
    let attempts = table(
        "attempts.tsv",
        "attempt_id endpoint_id attempt_no start_ts finish_ts status error",
        attempts,
    );
    retry::derive(&contract, &endpoints, &attempts, retry::Options::default()).map_err(|error| {
        error
            .to_string()
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_owned()
    })
}

fn earliest(derived: &retry::Derived) -> Vec<i64> {
    derived.plan.iter().flatten().map(|row| row.earliest_ts).collect()
}

#[test]
fn a_delivery_is_closed_by_success_and_by_its_limit_never_by_its_number() {
    let rows = [
        "a e 1 10 11 500 -",
        "b e 1 20 21 500 -",
        "c e 9 30 31 500 -",
        "d e 1 40 41 200 -",
        "f e 2 50 51 500 -",
    ];
    let derived = derive_retry("1 0 9 200 299", &["e active 2 5 100"], &rows).unwrap();
    // a opens; b is the limit of 2; c opens; d closes by success; f opens.
    assert_eq!(earliest(&derived), [0, 16, 0, 36, 0]);
    assert_eq!(derived.backoff_s, 9 + 9);
}

#[test]
fn no_answer_is_a_failure_and_the_range_of_success_has_both_ends() {
    for (status, closes) in [
        ("-", false),
        ("199", false),
        ("200", true),
        ("204", true),
        ("205", false),
    ] {
        let rows = [format!("a e 1 10 11 {status} -"), "b e 1 20 21 500 -".to_owned()];
        let rows = rows.each_ref().map(String::as_str);
        let derived = derive_retry("1 0 9 200 204", &["e active 9 5 100"], &rows).unwrap();
        assert_eq!(earliest(&derived)[1] == 0, closes, "{status}");
    }
}

#[test]
fn the_gap_caps_the_wait_and_everything_saturates() {
    let max = i64::MAX;
    for (contract, endpoint, no, finish, due) in [
        ("2 5 9 200 299", "e active 9 10 70", 3, 100, 100 + 40 + 5),
        ("2 5 9 200 299", "e active 9 10 30", 3, 100, 100 + 30 + 5),
        ("2 0 9 200 299", "e active 9 10 9223372036854775807", 70, 0, max),
        ("2 7 9 200 299", "e active 9 10 9223372036854775807", 70, 1, max),
        ("1 0 9 200 299", "e active 9 10 70", max, 100, 110),
        ("3 0 9 200 299", "e active 9 0 70", max, 100, 100),
    ] {
        let rows = [
            format!("a e 1 0 {finish} 500 -"),
            format!("b e {no} 100 101 500 -"),
        ];
        let rows = rows.each_ref().map(String::as_str);
        let derived = derive_retry(contract, &[endpoint], &rows).unwrap();
        assert_eq!(earliest(&derived)[1], due, "{contract} {endpoint} {no}");
    }
}

#[test]
fn the_last_row_decides_and_a_draining_endpoint_is_skipped() {
    let endpoints = [
        "d draining 3 1 1",
        "i active 3 1 1",
        "s active 3 1 1",
        "x active 3 1 1",
        "z disabled 3 1 1",
    ];
    let rows = [
        "a s 1 10 11 500 -",
        "b s 2 20 21 200 -",
        "c x 1 10 11 200 -",
        "e x 1 20 21 500 -",
        "f d 1 10 11 200 -",
        "g z 1 10 11 200 -",
        "h nobody 1 10 11 200 -",
    ];
    let derived = derive_retry("1 0 9 200 299", &endpoints, &rows).unwrap();
    assert_eq!(derived.admissible, ["i", "s", "x"]);
    assert_eq!((derived.succeeded, derived.exhausted, derived.skipped), (1, 1, 3));
    assert_eq!((derived.planned, derived.attempts), (4, 7));
    assert_eq!(derived.unknown_endpoint_rows, [8]);
}

#[test]
fn the_mark_is_for_one_endpoint_and_may_be_reached() {
    let endpoints = ["e active 9 100 100", "f active 9 100 100"];
    let rows = [
        "a e 1 10 11 500 -",
        "b e 1 20 21 500 -",
        "c f 1 10 11 500 -",
        "d f 1 20 21 500 -",
    ];
    let judged = |mark: u32| {
        let derived = derive_retry(&format!("1 0 {mark} 200 299"), &endpoints, &rows).unwrap();
        (derived.too_early, derived.over_dead_letter, derived.ok())
    };
    // Two in all, one at each.
    assert_eq!([0, 1].map(judged), [(2, true, false), (2, false, false)]);
    let clean = derive_retry("1 0 0 200 299", &["e active 9 5 5"], &rows[..2]).unwrap();
    assert_eq!((clean.too_early, clean.ok()), (0, true));
}

#[test]
fn facts_that_break_a_rule_are_refused_with_their_line() {
    let (e, a) = ("e active 9 5 5", "a e 1 10 11 500 -");
    for (endpoints, attempts, due) in [
        (
            &[e, e][..],
            &[a][..],
            "endpoints.tsv:3: found `e` in `endpoint_id`; expected: ids that stand once; it is in line 2 already",
        ),
        (
            &["e paused 9 5 5"],
            &[a],
            "endpoints.tsv:2: found `paused` in `state`; expected: active, draining or disabled",
        ),
        (
            &["e active 0 5 5"],
            &[a],
            "endpoints.tsv:2: found `0` in `max_attempts`; expected: a whole number from 1 to 9223372036854775807",
        ),
        (
            &["e active 9 5"],
            &[a],
            "endpoints.tsv:2: found 4 columns; expected: 5: endpoint_id state max_attempts backoff_base_s dispatch_gap_s",
        ),
        (
            &[e],
            &[a, "a e 2 20 21 500 -"],
            "attempts.tsv:3: found `a` in `attempt_id`; expected: ids that stand once; it is in line 2 already",
        ),
        (
            &[e],
            &["a e 1 10 9 500 -"],
            "attempts.tsv:2: found `9` in `finish_ts`; expected: a finish that is not before the start, 10",
        ),
        (
            &[e],
            &["a e 0 10 11 500 -"],
            "attempts.tsv:2: found `0` in `attempt_no`; expected: a whole number from 1 to 9223372036854775807",
        ),
        (
            &[e],
            &["a e 1 10 11 OK -"],
            "attempts.tsv:2: found `OK` in `status`; expected: a whole number from -9223372036854775808 to 9223372036854775807",
        ),
        (
            &[e],
            &[a, ""],
            "attempts.tsv:3: found 1 columns; expected: 7: attempt_id endpoint_id attempt_no start_ts finish_ts status error",
        ),
    ] {
        assert_eq!(
            derive_retry("1 0 9 200 299", endpoints, attempts).unwrap_err(),
            due
        );
    }
}

#[test]
fn without_rows_the_figures_are_the_same() {
    let case = case("retry-round");
    let contract = retry_contract(&case.join("retry.env"));
    let derive = |rows| {
        let options = retry::Options {
            rows,
            check_ids: false,
        };
        retry::derive(
            &contract,
            &case.join("endpoints.tsv"),
            &case.join("attempts.tsv"),
            options,
        )
        .unwrap()
    };
    let (with, without) = (derive(true), derive(false));
    assert_eq!(without.to_json()["plan"], Value::Null);
    assert_eq!(retry::Derived { plan: None, ..with }, without);
}

#[test]
fn the_worked_queue_round_field_by_field() {
    let case = case("queue-round");
    let contract = queue_contract(&case.join("queue.env"));
    let derived = queue::derive(
        &contract,
        &case.join("channels.json"),
        &case.join("queue.jsonl"),
        1_800_000,
    )
    .unwrap();
    let row = |id: &str, channel: &str, attempts: i64, ages: (i64, i64), verdict: &str, reason: &str| {
        json!({
            "id": id, "channel": channel, "attempts": attempts, "age_ms": ages.0, "backoff_ms": ages.1, "verdict": verdict,
            "reason": reason, "delay_unit": "milliseconds", "wait_ms": (verdict == "deliver").then_some(ages.0),
        })
    };
    let due = json!({
        "engine": "queue-appraiser", "delay_unit": "milliseconds", "now": 1_800_000, "items_total": 7,
        "deliver": 2, "defer": 3, "block": 2, "dead": 0, "ok": true, "malformed_rows": [],
        "results": [
            row("m-001", "email", 2, (50_000, 120_000), "defer", "not_due"),
            row("m-002", "email", 2, (110_000, 120_000), "defer", "not_due"),
            row("m-003", "sms", 0, (600_000, 30_000), "block", "channel_disabled"),
            row("m-004", "webhook", 2, (120_000, 120_000), "deliver", "ready"),
            row("m-005", "email", 1, (60_000, 60_000), "deliver", "ready"),
            row("m-006", "pager", 0, (10_000, 30_000), "block", "channel_unknown"),
            row("m-007", "webhook", 0, (500, 30_000), "defer", "not_due"),
        ],
    });
    assert_eq!(derived.to_json(), due);
}

/// One item on the enabled channel `on` (or `off`, or one unknown), under base 1000 ms and a limit of 3.
fn appraise(unit: &str, item: &str, now: i64) -> queue::Derived {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "QUEUE_DELAY_UNIT={unit}\nQUEUE_BACKOFF_POLICY=exponential\nQUEUE_BACKOFF_BASE_MS=1000\nQUEUE_MAX_ATTEMPTS=3\n"
    );
    let contract = QueueRoundContract::read(text.as_bytes(), "queue.env").unwrap();
    let (channels, queue) = (
        folder.path().join("channels.json"),
        folder.path().join("queue.jsonl"),
    );
    std::fs::write(
        &channels,
        r#"{"on": {"enabled": true}, "off": {"enabled": false}}"#,
    )
    .unwrap();
    std::fs::write(&queue, item).unwrap();
    queue::derive(&contract, &channels, &queue, now).unwrap()
}

fn item(channel: &str, attempts: i64, received: i64) -> String {
    format!(
        r#"{{"id": "i", "channel": "{channel}", "attempts": {attempts}, "received_at_value": {received}}}"#
    )
}

#[test]
fn the_limit_turns_everything_but_a_delivery_into_dead() {
    for (channel, attempts, received, due) in [
        ("on", 3, 0, ("deliver", "ready")),
        ("on", 3, 99_000, ("dead", "max_attempts")),
        ("on", 2, 99_000, ("defer", "not_due")),
        ("off", 3, 0, ("dead", "max_attempts")),
        ("off", 2, 0, ("block", "channel_disabled")),
        ("gone", 4, 0, ("dead", "max_attempts")),
        ("gone", 2, 0, ("block", "channel_unknown")),
    ] {
        let derived = appraise("milliseconds", &item(channel, attempts, received), 100_000);
        let row = &derived.results[0];
        assert_eq!(
            (row.verdict.word(), row.reason),
            due,
            "{channel} {attempts} {received}"
        );
    }
}

#[test]
fn the_unit_is_that_of_the_contract_and_the_product_saturates() {
    for (unit, attempts, received, now, age, backoff) in [
        ("seconds", 0, 10, 12, 2_000, 1_000),
        ("milliseconds", 1, 10, 12, 2, 2_000),
        ("milliseconds", 0, 20, 12, -8, 1_000),
        ("seconds", 62, i64::MIN, i64::MAX, i64::MAX, i64::MAX),
        ("seconds", i64::MAX, i64::MAX, i64::MIN, i64::MIN, i64::MAX),
    ] {
        let derived = appraise(unit, &item("on", attempts, received), now);
        let row = &derived.results[0];
        assert_eq!((row.age_ms, row.backoff_ms), (age, backoff), "{unit} {attempts}");
    }
}

#[test]
fn a_malformed_line_is_listed_and_the_others_are_judged() {
    let good = item("on", 0, 0);
    let text = format!(
        "{good}\n\n  \nnonsense\n{good}\n{}\n",
        r#"{"id": "j", "id": "j"}"#
    );
    let derived = appraise("milliseconds", &text, 5000);
    let lines: Vec<u64> = derived.malformed.iter().map(|(line, _)| *line).collect();
    assert_eq!((derived.results.len(), lines), (1, vec![4, 5, 6]));
    let json = derived.to_json();
    assert_eq!((&json["items_total"], &json["ok"]), (&json!(4), &json!(false)));
}
