//! health, probe, verify and drill as a person runs them (spec/gates.md).

use std::path::{Path, PathBuf};
use std::process::Command;

const RETRY: &str =
    "--contract retry.env --endpoints endpoints.tsv --attempts attempts.tsv --report plan.json";
const QUEUE: &str =
    "--contract queue.env --channels channels.json --queue queue.jsonl --report appraisal.json";

fn duehook(dir: &Path, line: &str) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_duehook"))
        .args(line.split(' '))
        .current_dir(dir)
        .output()
        .unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A copy of a worked case with its report made.
fn worked(case: &str, command: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(here("../../cases").join(case)).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), dir.path().join(file.file_name())).unwrap();
    }
    assert_eq!(duehook(dir.path(), command).0, 0);
    dir
}

fn retry() -> tempfile::TempDir {
    worked("retry-round", &format!("plan {RETRY}"))
}

fn queue() -> tempfile::TempDir {
    worked("queue-round", &format!("appraise {QUEUE} --now 1800000"))
}

fn health(dir: &Path, line: &str) -> (i32, serde_json::Value) {
    let (code, text) = duehook(dir, line);
    (
        code,
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")),
    )
}

fn edit(dir: &Path, name: &str, from: &str, to: &str) {
    let path = dir.join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{name} has no {from}");
    std::fs::write(path, text.replacen(from, to, 1)).unwrap();
}

#[test]
fn the_golden_faulty_report_has_exactly_26_mismatches_for_both_judges() {
    let dir = retry();
    std::fs::copy(
        here("tests/all/golden/faulty-plan.json"),
        dir.path().join("plan.json"),
    )
    .unwrap();
    let (code, said) = duehook(dir.path(), &format!("probe plan {RETRY}"));
    assert_eq!(code, 1);
    assert!(
        said.starts_with("a-02.earliest_ts: expected 1017, found 1077\n"),
        "{said}"
    );
    assert!(said.ends_with("RESULT: BAD (26 mismatches)\n"), "{said}");
    let (code, json) = health(dir.path(), &format!("health plan {RETRY}"));
    assert_eq!((code, &json["mismatch"]), (2, &26.into()), "{json:#}");
    assert_eq!(json["degraded"], true);
}

#[test]
fn health_prints_its_checks_every_figure_and_every_hash() {
    let dir = retry();
    let (code, json) = health(dir.path(), &format!("health plan {RETRY}"));
    assert_eq!(code, 0, "{json:#}");
    for (key, value) in [
        ("attempts", 9),
        ("endpoints", 3),
        ("too_early", 2),
        ("backoff_s", 171),
        ("succeeded", 1),
        ("exhausted", 2),
        ("skipped", 1),
        ("mismatch", 0),
    ] {
        assert_eq!(json[key], value, "{key}");
    }
    assert_eq!(json["over_dead_letter"], false);
    assert_eq!(json["round_ok"], false);
    assert_eq!(json["contract_available"], true);
    assert!(!json["checks"].as_array().unwrap().is_empty());
    for key in ["contract", "endpoints", "attempts", "report", "sql"] {
        assert_eq!(json["sha256"][key].as_str().unwrap().len(), 64, "{key}");
    }
    assert!(!json["build"].as_str().unwrap().is_empty());
}

#[test]
fn health_of_a_queue_prints_its_checks_every_figure_and_every_hash() {
    let dir = queue();
    let (code, json) = health(dir.path(), &format!("health appraise {QUEUE}"));
    assert_eq!(code, 0, "{json:#}");
    for (key, value) in [
        ("backoff_base_ms", 30_000),
        ("block", 2),
        ("dead", 0),
        ("defer", 3),
        ("deliver", 2),
        ("items_total", 7),
        ("max_attempts", 3),
        ("mismatch", 0),
    ] {
        assert_eq!(json[key], value, "{key}");
    }
    assert_eq!(json["delay_unit"], "milliseconds");
    assert_eq!(json["round_ok"], true);
    assert_eq!(json["now_from_report"], true);
    for key in ["contract", "channels", "queue", "report", "sql"] {
        assert_eq!(json["sha256"][key].as_str().unwrap().len(), 64, "{key}");
    }
    let (code, json) = health(dir.path(), &format!("health appraise {QUEUE} --now 1800001"));
    assert_eq!(
        (code, &json["now_from_report"]),
        (2, &false.into()),
        "another clock is another round"
    );
}

#[test]
fn each_issue_has_its_stable_word() {
    let word = |dir: &tempfile::TempDir| {
        let (code, json) = health(dir.path(), &format!("health plan {RETRY}"));
        (code, json["issues"][0]["code"].as_str().unwrap().to_owned())
    };
    let dir = retry();
    std::fs::remove_file(dir.path().join("plan.json")).unwrap();
    assert_eq!(word(&dir), (2, "report_unavailable".into()));
    let dir = retry();
    std::fs::write(dir.path().join("plan.json"), "{\"plan\": [").unwrap();
    assert_eq!(word(&dir), (2, "report_unavailable".into()));
    let dir = retry();
    edit(dir.path(), "retry.env", "# Retry", "# retry");
    assert_eq!(word(&dir), (2, "report_stale".into()));
    let dir = retry();
    edit(dir.path(), "plan.json", "171", "172");
    assert_eq!(word(&dir), (2, "field_mismatch".into()));
    let dir = retry();
    std::fs::remove_file(dir.path().join("attempts.tsv")).unwrap();
    assert_eq!(word(&dir), (2, "facts_unavailable".into()));
    let dir = retry();
    edit(dir.path(), "retry.env", "WEBHOOK_BACKOFF_FACTOR=2\n", "");
    let (code, json) = health(dir.path(), &format!("health plan {RETRY}"));
    assert_eq!(code, 3);
    assert_eq!(json["contract_available"], false);
    assert_eq!(json["issues"][0]["code"], "contract_unusable");
}

#[test]
fn rows_missing_and_extra_have_words_of_their_own() {
    let dir = retry();
    let path = dir.path().join("plan.json");
    let clean: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let words = |report: &serde_json::Value| {
        std::fs::write(&path, report.to_string()).unwrap();
        let (_, json) = health(dir.path(), &format!("health plan {RETRY}"));
        let issues = json["issues"].as_array().unwrap().clone();
        issues
            .iter()
            .map(|issue| issue["code"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let mut short = clean.clone();
    short["plan"].as_array_mut().unwrap().pop();
    assert!(words(&short).contains(&"row_missing".to_owned()));
    let mut long = clean.clone();
    let last = clean["plan"][8].clone();
    long["plan"].as_array_mut().unwrap().push(last);
    assert!(words(&long).contains(&"row_extra".to_owned()));
}

#[test]
fn verify_passes_with_at_least_as_many_checks_as_the_spec_demands() {
    for (round, least) in [("plan", 32), ("appraise", 24)] {
        let (code, said) = duehook(Path::new("."), &format!("verify {round}"));
        assert_eq!(code, 0, "{said}");
        assert!(said.ends_with("RESULT: OK\n"), "{said}");
        let passed = said.lines().filter(|line| line.starts_with("PASS ")).count();
        assert!(passed >= least, "{round}: {passed}");
        assert!(said.contains(&format!("PASS={passed} FAIL=0")), "{said}");
    }
}

#[test]
fn verify_takes_a_directory_of_ones_own() {
    let dir = queue();
    let line = format!("verify appraise --dir {} --now 1800000", dir.path().display());
    assert_eq!(duehook(Path::new("."), &line).0, 0);
    std::fs::remove_file(dir.path().join("queue.jsonl")).unwrap();
    assert_eq!(duehook(Path::new("."), &line).0, 2);
}

#[test]
fn drill_exercises_and_catches_every_fault() {
    for (round, least) in [("plan", 19), ("appraise", 18), ("ledger", 20)] {
        let (code, said) = duehook(Path::new("."), &format!("drill {round} --json"));
        let json: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert_eq!(code, 0, "{json:#}");
        let rows = json["rows"].as_array().unwrap();
        assert!(rows.len() >= least);
        assert!(
            rows.iter()
                .all(|row| row["verdict"] == "CAUGHT" && row["exercised"].is_string()),
            "{json:#}"
        );
        assert_eq!(
            (&json["green_before"], &json["green_after"]),
            (&true.into(), &true.into())
        );
    }
}

#[test]
fn probe_says_what_it_could_not_judge() {
    let dir = retry();
    edit(dir.path(), "endpoints.tsv", "draining", "drained");
    let (code, said) = duehook(dir.path(), &format!("probe plan {RETRY}"));
    assert_eq!(code, 2);
    assert_eq!(
        said,
        "endpoints.tsv:5: state is `drained`, expected active, draining or disabled\nRESULT: NOT JUDGED (facts unusable)\n"
    );
    let (code, said) = duehook(dir.path(), &format!("probe plan {RETRY} --json"));
    let json: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, &json["ok"]), (2, &false.into()));
}

/// A ledger of one message that was delivered at once, exported by hand.
fn ledger() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let text = contract::preset("default").unwrap().text;
    let contract = contract::parse(text, "default").unwrap();
    let rev = contract.rev();
    let files = [
        (
            "attempts.tsv",
            format!(
                "attempt_id\tseq\tmessage_id\tendpoint_id\tdelivery_no\tattempt_no\tretry_rev\tendpoint_rev\tdue_at\tstarted_at\tended_at\toutcome\tstatus\terror\tretry_after\twait_ms\tnode\ttrigger\n\
                 a\t5\tm\te\t1\t1\t{rev}\t{rev}\t1000\t1000\t1100\tsucceeded\t200\t-\t-\t-\tn\tscheduled\n"
            ),
        ),
        (
            "delivery_events.tsv",
            format!(
                "seq\tmessage_id\tendpoint_id\tdelivery_no\tat\tevent\treason\tretry_rev\n\
                 4\tm\te\t1\t1000\topened\t-\t{rev}\n6\tm\te\t1\t1100\tsucceeded\t-\t{rev}\n"
            ),
        ),
        (
            "messages.tsv",
            "seq\tmessage_id\tat\tdeliveries\n3\tm\t1000\t1\n".to_owned(),
        ),
        (
            "endpoint_events.tsv",
            "seq\tendpoint_id\tat\tstate\twhy\tby\n2\te\t900\tactive\t-\ttest\n".to_owned(),
        ),
        (
            "node_events.tsv",
            "seq\tnode\tat\tboot_id\tmono_ms\tevent\tsize_ms\n1\tn\t800\tb\t1\tup\t0\n".to_owned(),
        ),
        (
            "contracts.tsv",
            format!("rev\tcanonical\n{rev}\t{}\n", contract.canonical()),
        ),
    ];
    let mut listed = serde_json::Map::new();
    for (name, text) in &files {
        std::fs::write(dir.path().join(name), text).unwrap();
        let entry = serde_json::json!({"rows": text.lines().count() - 1, "sha256": gates::sha256_of(text.as_bytes())});
        listed.insert((*name).to_owned(), entry);
    }
    let manifest = serde_json::json!({"format": "duehook-ledger/1", "files": listed});
    std::fs::write(dir.path().join("manifest.json"), manifest.to_string()).unwrap();
    dir
}

#[test]
fn an_exported_ledger_goes_through_audit_health_and_probe() {
    let dir = ledger();
    let run = |line: &str| duehook(dir.path(), line);
    let (code, said) = run("audit --ledger . --report audit.json");
    assert_eq!(code, 0, "{said}");
    let (code, json) = health(dir.path(), "health ledger --ledger . --report audit.json");
    assert_eq!((code, &json["round_ok"]), (0, &true.into()), "{json:#}");
    let (code, said) = run("probe ledger --ledger . --report probe.json");
    assert_eq!((code, said.as_str()), (0, "interval only: 0 rows\nRESULT: OK\n"));
    let saved: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(dir.path().join("probe.json")).unwrap()).unwrap();
    assert_eq!(saved["ok"], true);
    edit(dir.path(), "audit.json", "\"attempts\": 1", "\"attempts\": 2");
    let (code, json) = health(dir.path(), "health ledger --ledger . --report audit.json");
    assert_eq!(
        (code, &json["issues"][0]["code"]),
        (2, &"field_mismatch".into()),
        "{json:#}"
    );
    // A ledger that was cut since its export is not judged by anybody.
    edit(dir.path(), "attempts.tsv", "\t1100\t", "\t1101\t");
    assert_eq!(run("probe ledger --ledger .").0, 2);
    assert_eq!(run("audit --ledger .").0, 2);
}

#[test]
fn the_same_ledger_in_jsonl_is_judged_alike() {
    let dir = ledger();
    let mut listed = serde_json::Map::new();
    for kind in [
        "attempts",
        "delivery_events",
        "messages",
        "endpoint_events",
        "node_events",
        "contracts",
    ] {
        let path = dir.path().join(format!("{kind}.tsv"));
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        let mut lines = text.lines();
        let names: Vec<&str> = lines.next().unwrap().split('\t').collect();
        let rows: Vec<String> = lines
            .map(|line| {
                let cells = names.iter().zip(line.split('\t')).map(|(name, cell)| {
                    let value = match cell.parse::<i64>() {
                        Ok(number) => number.into(),
                        Err(_) if cell == "-" => serde_json::Value::Null,
                        Err(_) => cell.into(),
                    };
                    ((*name).to_owned(), value)
                });
                serde_json::Value::Object(cells.collect()).to_string() + "\n"
            })
            .collect();
        let text = rows.concat();
        let name = format!("{kind}.jsonl");
        std::fs::write(dir.path().join(&name), &text).unwrap();
        listed.insert(
            name,
            serde_json::json!({"rows": rows.len(), "sha256": gates::sha256_of(text.as_bytes())}),
        );
    }
    let manifest = serde_json::json!({"format": "duehook-ledger/1", "files": listed});
    std::fs::write(dir.path().join("manifest.json"), manifest.to_string()).unwrap();
    assert_eq!(duehook(dir.path(), "audit --ledger .").0, 0);
    let (code, said) = duehook(dir.path(), "probe ledger --ledger .");
    assert_eq!(code, 0, "{said}");
}
