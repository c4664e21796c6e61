//! Every kind of bad input to the two rounds, what exit code it gets and what is said of it: file, line, what was
//! found, what would be right. Never a panic, never a partial report. The table in docs/bad-inputs.md is made here,
//! and this test fails when the two differ (`DUEHOOK_UPDATE_DOCS=1` writes it anew).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What is done to one file of a worked case.
enum Fault {
    Missing,
    Directory,
    Replace(&'static str, &'static str),
    Bytes(fn(Vec<u8>) -> Vec<u8>),
}

use Fault::{Bytes, Directory, Missing, Replace};

/// Kind of fault, what is done, exit code, and what the message must say (nothing where the input is accepted).
type Case = (&'static str, Fault, i32, &'static str);

fn empty(_: Vec<u8>) -> Vec<u8> {
    Vec::new()
}

fn crlf(bytes: Vec<u8>) -> Vec<u8> {
    String::from_utf8(bytes)
        .unwrap()
        .replace('\n', "\r\n")
        .into_bytes()
}

fn bom(bytes: Vec<u8>) -> Vec<u8> {
    [b"\xef\xbb\xbf".to_vec(), bytes].concat()
}

fn without_last_newline(mut bytes: Vec<u8>) -> Vec<u8> {
    while bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    bytes
}

/// Puts a byte into the middle of the second line.
fn put(mut bytes: Vec<u8>, byte: u8) -> Vec<u8> {
    let line = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    bytes.insert(line + 2, byte);
    bytes
}

fn not_utf8(bytes: Vec<u8>) -> Vec<u8> {
    put(bytes, 0xff)
}

fn nul(bytes: Vec<u8>) -> Vec<u8> {
    put(bytes, 0)
}

const BIG: &str = "9223372036854775808";

#[rustfmt::skip] // one line a case
fn retry_env() -> Vec<Case> {
    vec![
        ("missing file", Missing, 3, "retry.env"),
        ("empty file", Bytes(empty), 3, "WEBHOOK_BACKOFF_FACTOR: found nothing: the key is missing"),
        ("directory in its place", Directory, 3, "retry.env"),
        ("missing key", Replace("WEBHOOK_ADMIT_SLACK_S=5\n", ""), 3, "WEBHOOK_ADMIT_SLACK_S: found nothing"),
        ("duplicate key", Replace("_FACTOR=2\n", "_FACTOR=2\nWEBHOOK_BACKOFF_FACTOR=2\n"), 3, "retry.env:3: WEBHOOK_BACKOFF_FACTOR"),
        ("unknown key", Replace("_FACTOR=2\n", "_FACTOR=2\nWEBHOOK_MODE=x\n"), 3, "retry.env:3: WEBHOOK_MODE"),
        ("non-integer", Replace("_FACTOR=2", "_FACTOR=two"), 3, "retry.env:2: WEBHOOK_BACKOFF_FACTOR: found `two`"),
        ("negative", Replace("_SLACK_S=5", "_SLACK_S=-5"), 3, "retry.env:3: WEBHOOK_ADMIT_SLACK_S: found `-5`"),
        ("too large for 64 bits", Replace("_SLACK_S=5", "_SLACK_S=9223372036854775808"), 3, BIG),
        ("min > max", Replace("_MIN=200", "_MIN=300"), 3, "retry.env:5: WEBHOOK_SUCCESS_MIN: found `300`"),
        ("invalid UTF-8", Bytes(not_utf8), 3, "retry.env:2"),
        ("a NUL", Bytes(nul), 3, "retry.env:2"),
        ("CRLF line ends", Bytes(crlf), 0, ""),
        ("byte-order mark", Bytes(bom), 0, ""),
        ("last line without newline", Bytes(without_last_newline), 0, ""),
    ]
}

#[rustfmt::skip] // one line a case
fn endpoints_tsv() -> Vec<Case> {
    vec![
        ("missing file", Missing, 2, "endpoints.tsv: found no such file"),
        ("empty file", Bytes(empty), 2, "endpoints.tsv: found an empty file"),
        ("directory in its place", Directory, 2, "endpoints.tsv: found a directory"),
        ("missing column in the header", Replace("\tdispatch_gap_s", ""), 2, "endpoints.tsv:1: found a header without the column `dispatch_gap_s`"),
        ("missing column", Replace("\t20\t100", "\t20"), 2, "endpoints.tsv:3: found 4 columns"),
        ("extra column in the header", Replace("dispatch_gap_s\n", "dispatch_gap_s\tnote\n"), 2, "endpoints.tsv:1: found a header with the unknown column `note`"),
        ("extra column", Replace("\t20\t100", "\t20\t100\t7"), 2, "endpoints.tsv:3: found 6 columns"),
        ("duplicate id", Replace("ep-bravo", "ep-alpha"), 2, "endpoints.tsv:3: endpoint_id: found `ep-alpha` a second time; it is in line 2 already"),
        ("empty id", Replace("ep-bravo", ""), 2, "endpoints.tsv:3: endpoint_id"),
        ("non-integer", Replace("\t20\t100", "\t2o\t100"), 2, "endpoints.tsv:3: backoff_base_s: found `2o`, which is not a whole number"),
        ("negative", Replace("\t20\t100", "\t-20\t100"), 2, "endpoints.tsv:3: backoff_base_s: found `-20`, which is negative"),
        ("too small", Replace("\t2\t20\t", "\t0\t20\t"), 2, "endpoints.tsv:3: max_attempts: found `0`, which is too small"),
        ("too large for 64 bits", Replace("\t20\t100", "\t20\t9223372036854775808"), 2, "endpoints.tsv:3: dispatch_gap_s: found `9223372036854775808`, which does not fit 64 bits"),
        ("unknown state", Replace("draining", "paused"), 2, "endpoints.tsv:5: state: found `paused`, an unknown state; write active, draining or disabled"),
        ("invalid UTF-8", Bytes(not_utf8), 2, "endpoints.tsv:2: found bytes that are not UTF-8"),
        ("a NUL", Bytes(nul), 2, "endpoints.tsv:2: found a NUL byte"),
        ("CRLF line ends", Bytes(crlf), 0, ""),
        ("byte-order mark", Bytes(bom), 0, ""),
        ("last line without newline", Bytes(without_last_newline), 0, ""),
    ]
}

#[rustfmt::skip] // one line a case
fn attempts_tsv() -> Vec<Case> {
    vec![
        ("missing file", Missing, 2, "attempts.tsv: found no such file"),
        ("empty file", Bytes(empty), 2, "attempts.tsv: found an empty file"),
        ("directory in its place", Directory, 2, "attempts.tsv: found a directory"),
        ("missing column in the header", Replace("\terror\n", "\n"), 2, "attempts.tsv:1: found a header without the column `error`"),
        ("missing column", Replace("\t503\t-", "\t503"), 2, "attempts.tsv:3: found 6 columns"),
        ("extra column in the header", Replace("\terror\n", "\terror\tnote\n"), 2, "attempts.tsv:1: found a header with the unknown column `note`"),
        ("extra column", Replace("\t503\t-", "\t503\t-\t-"), 2, "attempts.tsv:3: found 8 columns"),
        ("empty line", Replace("a-02", "\na-02"), 2, "attempts.tsv:3: found an empty line"),
        ("duplicate id", Replace("a-03", "a-01"), 2, "attempts.tsv:4: attempt_id: found `a-01` a second time; it is in line 2 already"),
        ("empty id", Replace("a-03", ""), 2, "attempts.tsv:4: attempt_id: found an empty id"),
        ("non-integer", Replace("\t1030\t", "\t10.5\t"), 2, "attempts.tsv:3: start_ts: found `10.5`, which is not a whole number"),
        ("non-integer status", Replace("\t503\t", "\tOK\t"), 2, "attempts.tsv:3: status: found `OK`, which is not a whole number"),
        ("negative number of an attempt", Replace("ep-alpha\t2\t1050", "ep-alpha\t-2\t1050"), 2, "attempts.tsv:4: attempt_no: found `-2`, which is negative"),
        ("attempt number 0", Replace("ep-alpha\t2\t1050", "ep-alpha\t0\t1050"), 2, "attempts.tsv:4: attempt_no: found `0`, which is too small"),
        ("too large for 64 bits", Replace("\t1031\t", "\t9223372036854775808\t"), 2, "attempts.tsv:3: finish_ts: found `9223372036854775808`, which does not fit 64 bits"),
        ("finish_ts < start_ts", Replace("\t1031\t", "\t1029\t"), 2, "attempts.tsv:3: finish_ts: found 1029, which is before start_ts 1030"),
        ("invalid UTF-8", Bytes(not_utf8), 2, "attempts.tsv:2: found bytes that are not UTF-8"),
        ("a NUL", Bytes(nul), 2, "attempts.tsv:2: found a NUL byte"),
        ("unknown endpoint", Replace("a-09\tep-delta", "a-09\tep-echo"), 0, "line 10"),
        ("negative time", Replace("\t1000\t1002", "\t-1000\t1002"), 0, ""),
        ("CRLF line ends", Bytes(crlf), 0, ""),
        ("byte-order mark", Bytes(bom), 0, ""),
        ("last line without newline", Bytes(without_last_newline), 0, ""),
    ]
}

#[rustfmt::skip] // one line a case
fn queue_env() -> Vec<Case> {
    vec![
        ("missing file", Missing, 3, "queue.env"),
        ("empty file", Bytes(empty), 3, "QUEUE_DELAY_UNIT: found nothing: the key is missing"),
        ("directory in its place", Directory, 3, "queue.env"),
        ("missing key", Replace("QUEUE_MAX_ATTEMPTS=3\n", ""), 3, "QUEUE_MAX_ATTEMPTS: found nothing"),
        ("duplicate key", Replace("QUEUE_MAX_ATTEMPTS=3\n", "QUEUE_MAX_ATTEMPTS=3\nQUEUE_MAX_ATTEMPTS=3\n"), 3, "queue.env:6: QUEUE_MAX_ATTEMPTS"),
        ("unknown key", Replace("QUEUE_MAX_ATTEMPTS=3\n", "QUEUE_MAX_ATTEMPTS=3\nQUEUE_MODE=x\n"), 3, "queue.env:6: QUEUE_MODE"),
        ("non-integer", Replace("=30000", "=30s"), 3, "queue.env:4: QUEUE_BACKOFF_BASE_MS: found `30s`"),
        ("negative", Replace("ATTEMPTS=3", "ATTEMPTS=-3"), 3, "queue.env:5: QUEUE_MAX_ATTEMPTS: found `-3`"),
        ("too small", Replace("=30000", "=0"), 3, "queue.env:4: QUEUE_BACKOFF_BASE_MS: found `0`"),
        ("too large for 64 bits", Replace("=30000", "=9223372036854775808"), 3, BIG),
        ("unknown unit", Replace("=milliseconds", "=minutes"), 3, "queue.env:2: QUEUE_DELAY_UNIT: found `minutes`, an unknown unit"),
        ("unknown policy", Replace("=exponential", "=linear"), 3, "queue.env:3: QUEUE_BACKOFF_POLICY: found `linear`"),
        ("invalid UTF-8", Bytes(not_utf8), 3, "queue.env:2"),
        ("a NUL", Bytes(nul), 3, "queue.env:2"),
        ("CRLF line ends", Bytes(crlf), 0, ""),
        ("byte-order mark", Bytes(bom), 0, ""),
        ("last line without newline", Bytes(without_last_newline), 0, ""),
    ]
}

#[rustfmt::skip] // one line a case
fn channels_json() -> Vec<Case> {
    vec![
        ("missing file", Missing, 2, "channels.json: found no such file"),
        ("empty file", Bytes(empty), 2, "channels.json: found an empty file"),
        ("directory in its place", Directory, 2, "channels.json: found a directory"),
        ("not JSON", Replace("\"email\": {", "\"email\" {"), 2, "channels.json:2: found expected `:`"),
        ("cut short", Replace("  }\n}", "  }"), 2, "channels.json"),
        ("an array in its place", Bytes(|_| b"[]".to_vec()), 2, "channels.json:1"),
        ("missing key", Replace("\"enabled\": false", ""), 2, "channels.json:7: found missing field `enabled`"),
        ("extra key", Replace("\"enabled\": false", "\"enabled\": false, \"note\": 1"), 2, "channels.json:6: found unknown field `note`"),
        ("duplicate key", Replace("\"enabled\": false", "\"enabled\": false, \"enabled\": true"), 2, "channels.json:6: found duplicate field `enabled`"),
        ("duplicate channel", Replace("\"sms\"", "\"email\""), 2, "found the channel `email` a second time"),
        ("not true or false", Replace("\"enabled\": false", "\"enabled\": 0"), 2, "channels.json:6: found invalid type: integer `0`, expected a boolean"),
        ("invalid UTF-8", Bytes(not_utf8), 2, "channels.json:2: found bytes that are not UTF-8"),
        ("a NUL", Bytes(nul), 2, "channels.json:2: found a NUL byte"),
        ("CRLF line ends", Bytes(crlf), 0, ""),
        ("byte-order mark", Bytes(bom), 0, ""),
        ("last line without newline", Bytes(without_last_newline), 0, ""),
    ]
}

/// A malformed line is listed and the others are judged: exit 2, and a report all the same.
#[rustfmt::skip] // one line a case
fn queue_jsonl() -> Vec<Case> {
    vec![
        ("missing file", Missing, 2, "queue.jsonl: found no such file"),
        ("empty file", Bytes(empty), 0, ""),
        ("directory in its place", Directory, 2, "queue.jsonl: found a directory"),
        ("not JSON", Replace("{\"id\": \"m-002\"", "{id: \"m-002\""), 2, "queue.jsonl:2: found key must be a string"),
        ("missing key", Replace("\"m-002\", \"channel\": \"email\"", "\"m-002\""), 2, "queue.jsonl:2: found missing field `channel`"),
        ("extra key", Replace("{\"id\": \"m-002\"", "{\"note\": 1, \"id\": \"m-002\""), 2, "queue.jsonl:2: found unknown field `note`"),
        ("duplicate key", Replace("{\"id\": \"m-002\"", "{\"id\": \"m\", \"id\": \"m-002\""), 2, "queue.jsonl:2: found duplicate field `id`"),
        ("duplicate id", Replace("m-003", "m-001"), 2, "queue.jsonl:3: id: found `m-001` a second time; it is in line 1 already"),
        ("non-integer", Replace("\"attempts\": 1", "\"attempts\": 1.0"), 2, "queue.jsonl:5: attempts: found `1.0`, which is not a whole number"),
        ("text for a number", Replace("\"attempts\": 1", "\"attempts\": \"1\""), 2, "queue.jsonl:5: attempts"),
        ("negative", Replace("\"attempts\": 1", "\"attempts\": -1"), 2, "queue.jsonl:5: attempts: found `-1`, which is negative"),
        ("too large for 64 bits", Replace(": 1740000", ": 9223372036854775808"), 2, "queue.jsonl:5: received_at_value: found `9223372036854775808`, which does not fit 64 bits"),
        ("invalid UTF-8", Bytes(not_utf8), 2, "queue.jsonl:2: found bytes that are not UTF-8"),
        ("a NUL", Bytes(nul), 2, "queue.jsonl:2: found a NUL byte"),
        ("a blank line", Replace("\n{\"id\": \"m-002\"", "\n  \n{\"id\": \"m-002\""), 0, ""),
        ("from the future", Replace(": 1740000", ": 9223372036854775807"), 0, ""),
        ("CRLF line ends", Bytes(crlf), 0, ""),
        ("byte-order mark", Bytes(bom), 0, ""),
        ("last line without newline", Bytes(without_last_newline), 0, ""),
    ]
}

const PLAN: &[&str] = &[
    "plan",
    "--contract",
    "retry.env",
    "--endpoints",
    "endpoints.tsv",
    "--attempts",
    "attempts.tsv",
    "--report",
    "report.json",
];
const APPRAISE: &[&str] = &[
    "appraise",
    "--contract",
    "queue.env",
    "--channels",
    "channels.json",
    "--queue",
    "queue.jsonl",
    "--now",
    "1800000",
    "--report",
    "report.json",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A worked case in a folder of its own.
fn worked(round: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in fs::read_dir(root().join("cases").join(round)).unwrap() {
        let path = file.unwrap().path();
        fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    folder
}

fn duehook(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_duehook"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn apply(fault: &Fault, path: &Path) {
    let bytes = fs::read(path).unwrap();
    match fault {
        Missing => fs::remove_file(path).unwrap(),
        Directory => {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        }
        Replace(from, to) => {
            let text = String::from_utf8(bytes).unwrap();
            assert!(text.contains(from), "{}: {from}", path.display());
            fs::write(path, text.replacen(from, to, 1)).unwrap();
        }
        Bytes(change) => fs::write(path, change(bytes)).unwrap(),
    }
}

/// Runs a case; the table's row.
fn judge(round: &str, arguments: &[&str], file: &str, (kind, fault, exit, says): &Case) -> String {
    let folder = worked(round);
    apply(fault, &folder.path().join(file));
    let before = fs::read_dir(folder.path()).unwrap().count();
    let output = duehook(folder.path(), arguments);
    let said = stderr(&output);
    let what = format!("{file}, {kind}: exit {:?}\n{said}", output.status.code());
    assert_eq!(output.status.code(), Some(*exit), "{what}");
    assert!(said.contains(says), "expected {says:?}: {what}");
    assert!(!said.contains("panicked"), "{what}");
    // A malformed line of a queue is listed in a report; nothing else that is wrong leaves one, or a part of one.
    let report = fs::read(folder.path().join("report.json")).ok();
    let malformed = said.contains("malformed: ");
    assert_eq!(report.is_some(), *exit == 0 || malformed, "{what}");
    let after = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(
        after,
        before + usize::from(report.is_some()),
        "something is left behind: {what}"
    );
    if let Some(report) = report {
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        assert_eq!(
            report["malformed_rows"]
                .as_array()
                .is_some_and(|rows| !rows.is_empty()),
            malformed,
            "{what}"
        );
    }
    let message = said
        .lines()
        .find(|line| line.contains(file))
        .unwrap_or("accepted");
    let message = message.trim().trim_start_matches("error: ").replace('|', "\\|");
    format!("| {kind} | {exit} | {message} |\n")
}

/// Folder of the worked case, the command, and its three files with what is done to each.
type Round = (
    &'static str,
    &'static [&'static str],
    [(&'static str, Vec<Case>); 3],
);

#[test]
fn each_kind_of_bad_input_gets_its_exit_code_and_says_where_and_what() {
    let mut table = String::from(
        "# Bad inputs and what each gets\n\n\
         One fault at a time is put into a worked case (`cases/`), and the round is run: `duehook plan` or `duehook appraise`. Exit 3\n\
         is an unusable contract, exit 2 are facts that are missing or wrong, exit 0 says that the input is accepted. No fault leaves a\n\
         report or a part of one, except that a malformed line of a queue is listed in the report while the other lines are judged.\n\n\
         This file is made by the test that checks it (`crates/duehook/tests/all/bad_inputs.rs`).\n",
    );
    let rounds: [Round; 2] = [
        (
            "retry-round",
            PLAN,
            [
                ("retry.env", retry_env()),
                ("endpoints.tsv", endpoints_tsv()),
                ("attempts.tsv", attempts_tsv()),
            ],
        ),
        (
            "queue-round",
            APPRAISE,
            [
                ("queue.env", queue_env()),
                ("channels.json", channels_json()),
                ("queue.jsonl", queue_jsonl()),
            ],
        ),
    ];
    for (round, arguments, files) in rounds {
        for (file, cases) in files {
            table.push_str(&format!(
                "\n## `{file}`\n\n| fault | exit | message |\n|---|---|---|\n"
            ));
            for case in &cases {
                table.push_str(&judge(round, arguments, file, case));
            }
        }
    }
    let place = root().join("docs/bad-inputs.md");
    if std::env::var_os("DUEHOOK_UPDATE_DOCS").is_some() {
        fs::write(&place, &table).unwrap();
    }
    let committed = fs::read_to_string(&place).unwrap_or_default();
    assert!(
        committed == table,
        "docs/bad-inputs.md is not what this test finds; write it with DUEHOOK_UPDATE_DOCS=1"
    );
}

#[test]
fn an_unusable_contract_beats_missing_facts_and_json_still_says_so() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [PLAN, APPRAISE] {
        let printed: Vec<&str> = arguments
            .iter()
            .copied()
            .filter(|word| !matches!(*word, "--report" | "report.json"))
            .collect();
        let output = duehook(folder.path(), &printed);
        assert_eq!(output.status.code(), Some(3));
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json, serde_json::json!({ "contract_available": false }));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn strict_turns_a_round_that_is_not_ok_into_exit_2_and_the_report_stands() {
    let folder = worked("retry-round");
    let strict: Vec<&str> = PLAN.iter().copied().chain(["--strict"]).collect();
    let output = duehook(folder.path(), &strict);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stderr(&output), "plan=9 endpoints=3 too_early=2 ok=false\n");
    assert!(folder.path().join("report.json").exists());
}

#[test]
fn the_reports_of_the_worked_rounds_hold_every_worked_number() {
    let report = |round: &str, arguments: &[&str]| -> serde_json::Value {
        let folder = worked(round);
        assert_eq!(duehook(folder.path(), arguments).status.code(), Some(0));
        serde_json::from_slice(&fs::read(folder.path().join("report.json")).unwrap()).unwrap()
    };
    let plan = report("retry-round", PLAN);
    let row = |id: &str, endpoint: &str, n: u8, earliest: i64, delta: i64| {
        serde_json::json!({"attempt_id": id, "endpoint_id": endpoint, "attempt_no": n, "earliest_ts": earliest,
            "scheduled_delta_s": delta, "verdict": if delta < 0 { "too_early" } else { "ok" }})
    };
    let rows = [
        row("a-01", "ep-alpha", 1, 0, 1000),
        row("a-02", "ep-alpha", 1, 1017, 13),
        row("a-03", "ep-alpha", 2, 1056, -6),
        row("a-04", "ep-alpha", 1, 0, 1080),
        row("a-05", "ep-bravo", 1, 0, 2000),
        row("a-06", "ep-bravo", 2, 2046, 34),
        row("a-07", "ep-charlie", 1, 0, 3000),
        row("a-08", "ep-charlie", 2, 3090, -40),
        row("a-10", "ep-alpha", 1, 0, 1120),
    ];
    let want = serde_json::json!({
        "admissible_endpoints": ["ep-alpha", "ep-bravo", "ep-charlie"],
        "plan": rows,
        "totals": {"attempts": 9, "endpoints": 3, "ok": 7, "too_early": 2, "backoff_s": 171},
        "counts": {"attempts": 10, "succeeded": 1, "exhausted": 2, "skipped": 1},
        "unknown_endpoint_rows": [], "over_dead_letter": false, "ok": false,
        "inputs": plan["inputs"], "build": plan["build"],
    });
    assert_eq!(plan, want);

    let appraisal = report("queue-round", APPRAISE);
    let item = |id: &str,
                channel: &str,
                attempts: u8,
                age: i64,
                backoff: i64,
                verdict: &str,
                reason: &str| {
        serde_json::json!({"id": id, "channel": channel, "attempts": attempts, "age_ms": age, "backoff_ms": backoff,
            "verdict": verdict, "reason": reason, "delay_unit": "milliseconds",
            "wait_ms": (verdict == "deliver").then_some(age)})
    };
    let results = [
        item("m-001", "email", 2, 50_000, 120_000, "defer", "not_due"),
        item("m-002", "email", 2, 110_000, 120_000, "defer", "not_due"),
        item("m-003", "sms", 0, 600_000, 30_000, "block", "channel_disabled"),
        item("m-004", "webhook", 2, 120_000, 120_000, "deliver", "ready"),
        item("m-005", "email", 1, 60_000, 60_000, "deliver", "ready"),
        item("m-006", "pager", 0, 10_000, 30_000, "block", "channel_unknown"),
        item("m-007", "webhook", 0, 500, 30_000, "defer", "not_due"),
    ];
    let want = serde_json::json!({
        "engine": "queue-appraiser", "delay_unit": "milliseconds", "now": 1_800_000, "items_total": 7,
        "deliver": 2, "defer": 3, "block": 2, "dead": 0, "ok": true, "malformed_rows": [],
        "inputs": appraisal["inputs"], "build": appraisal["build"], "results": results,
    });
    assert_eq!(appraisal, want);
}

#[test]
fn a_summary_leaves_the_plan_out_and_says_so() {
    let folder = worked("retry-round");
    let summary: Vec<&str> = PLAN.iter().copied().chain(["--summary"]).collect();
    assert_eq!(duehook(folder.path(), &summary).status.code(), Some(0));
    let report: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.path().join("report.json")).unwrap()).unwrap();
    assert_eq!(
        (report["plan"].is_null(), report["totals"]["attempts"].as_u64()),
        (true, Some(9))
    );
}

#[test]
fn a_report_goes_to_its_place_whole_and_an_old_one_stays_when_there_is_no_new_one() {
    let folder = worked("retry-round");
    let place = folder.path().join("report.json");
    fs::write(&place, "old").unwrap();
    fs::write(folder.path().join("attempts.tsv"), "").unwrap();
    assert_eq!(duehook(folder.path(), PLAN).status.code(), Some(2));
    assert_eq!(fs::read_to_string(&place).unwrap(), "old");

    let nowhere: Vec<&str> = PLAN
        .iter()
        .map(|word| {
            if *word == "report.json" {
                "no/such/report.json"
            } else {
                word
            }
        })
        .collect();
    let output = duehook(worked("retry-round").path(), &nowhere);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("no/such/report.json cannot be written"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_report_never_takes_the_place_of_an_input() {
    let folder = worked("retry-round");
    let before = fs::read(folder.path().join("attempts.tsv")).unwrap();
    let over: Vec<&str> = PLAN
        .iter()
        .map(|word| {
            if *word == "report.json" {
                "./attempts.tsv"
            } else {
                word
            }
        })
        .collect();
    let output = duehook(folder.path(), &over);
    assert_eq!(output.status.code(), Some(64));
    assert!(
        stderr(&output).contains("--report names attempts.tsv, which is an input"),
        "{}",
        stderr(&output)
    );
    assert_eq!(fs::read(folder.path().join("attempts.tsv")).unwrap(), before);
}

#[test]
fn any_number_of_jobs_gives_the_same_report() {
    // Some thousand rows over several chunks, their endpoints interleaved.
    let folder = worked("retry-round");
    let mut ledger = fs::read_to_string(folder.path().join("attempts.tsv")).unwrap();
    for n in 0_u32..12_000 {
        let endpoint = ["ep-alpha", "ep-bravo", "ep-charlie", "ep-delta", "ep-echo"][n as usize % 5];
        let status = if n % 7 == 0 { "204" } else { "-" };
        ledger.push_str(&format!(
            "r-{n}\t{endpoint}\t{}\t{}\t{}\t{status}\tnöthing came\n",
            n % 4 + 1,
            n * 9,
            n * 9 + n % 40
        ));
    }
    fs::write(folder.path().join("attempts.tsv"), ledger).unwrap();
    let with_jobs = |jobs: &str| {
        let arguments: Vec<&str> = PLAN.iter().copied().chain(["--jobs", jobs]).collect();
        assert_eq!(duehook(folder.path(), &arguments).status.code(), Some(0));
        fs::read_to_string(folder.path().join("report.json")).unwrap()
    };
    let one = with_jobs("1");
    assert!(one == with_jobs("2") && one == with_jobs("7"));
    let report: serde_json::Value = serde_json::from_str(&one).unwrap();
    assert_eq!(
        report["unknown_endpoint_rows"].as_array().map(Vec::len),
        Some(2400)
    );
}
