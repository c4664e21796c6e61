//! The drill of the live ledger: every class of fault is exercised, and the judges name its kind.

use super::corruptions::{CORRUPTIONS, sort, spread};
use super::faults::CLASSES;
use super::*;

#[test]
fn the_clean_ledger_is_clean_to_sql() {
    let folder = tempfile::tempdir().expect("temp");
    play(None).expect("contract").write(folder.path()).expect("write");
    let verdict = probe_ledger(Probe::default(), folder.path(), None);
    assert_eq!(verdict.code, Code::Clean, "{}", verdict.lines.join("\n"));
}

#[test]
fn sql_names_every_fault_that_it_can_see() {
    for class in CLASSES {
        let folder = tempfile::tempdir().expect("temp");
        play(Some(class.fault))
            .expect("contract")
            .write(folder.path())
            .expect("write");
        let verdict = probe_ledger(Probe::default(), folder.path(), None);
        let named = verdict
            .lines
            .iter()
            .any(|line| line.starts_with(&format!("{} ", class.kind)));
        assert_eq!(
            named,
            class.sql,
            "{} {}: {}",
            class.id,
            class.what,
            verdict.lines.join("\n")
        );
    }
}

/// The clean ledger and every faulty one, as export folders.
pub(crate) fn write_ledgers() -> Vec<tempfile::TempDir> {
    let faults = std::iter::once(None).chain(CLASSES.iter().map(|class| Some(class.fault)));
    faults
        .map(|fault| {
            let folder = tempfile::tempdir().expect("temp");
            play(fault)
                .expect("contract")
                .write(folder.path())
                .expect("write");
            folder
        })
        .collect()
}

#[test]
fn sql_names_requests_that_the_ledger_does_not_know() {
    let folder = tempfile::tempdir().expect("temp");
    let records = play(None).expect("contract");
    records.write(folder.path()).expect("write");
    let known = &records.attempts[0].attempt_id;
    let log = folder.path().join("seen.jsonl");
    let line = |id: &str| format!("{{\"attempt_id\": {id}, \"arrival_ms\": 1.5}}\n");
    std::fs::write(&log, line(&format!("\"{known}\""))).expect("log");
    assert_eq!(
        probe_ledger(Probe::default(), folder.path(), Some(&log)).code,
        Code::Clean
    );
    let twice_and_unknown = [
        line(&format!("\"{known}\"")),
        line(&format!("\"{known}\"")),
        line("\"nobody\""),
        line("null"),
    ]
    .concat();
    std::fs::write(&log, twice_and_unknown).expect("log");
    let verdict = probe_ledger(Probe::default(), folder.path(), Some(&log));
    let named = verdict
        .lines
        .iter()
        .filter(|line| line.starts_with("not_in_ledger "))
        .count();
    assert_eq!(named, 3, "{verdict:?}");
}

#[test]
fn sql_names_each_kind_in_a_corrupted_ledger() {
    for (kind, corrupt) in CORRUPTIONS {
        let folder = tempfile::tempdir().expect("temp");
        let mut records = play(None).expect("contract");
        spread(&mut records);
        corrupt(&mut records);
        sort(&mut records);
        records.write(folder.path()).expect("write");
        let verdict = probe_ledger(Probe::default(), folder.path(), None);
        let named = verdict
            .lines
            .iter()
            .any(|line| line.starts_with(&format!("{kind} ")));
        assert!(named, "{kind}: {}", verdict.lines.join("\n"));
    }
}

/// What SQL names: stands in for the auditor where the drill itself is tried.
fn sql_kinds(folder: &Path) -> io::Result<BTreeSet<String>> {
    let verdict = probe_ledger(Probe::default(), folder, None);
    let kinds = verdict
        .mismatches()
        .iter()
        .filter(|line| !line.starts_with("interval only"));
    Ok(kinds
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned)
        .collect())
}

#[test]
fn a_judge_that_names_nothing_makes_the_drill_exit_2() {
    let classes = &CLASSES[..3];
    let sound = drill_ledger_with(Probe::default(), &sql_kinds, classes).expect("drill");
    assert_eq!(sound.code(), Code::Clean, "{:?}", sound.rows);
    let blunt = drill_ledger_with(Probe::default(), &|_| Ok(BTreeSet::new()), classes).expect("drill");
    assert_eq!(blunt.code(), Code::Problem);
    assert!(blunt.rows.iter().all(|row| row.verdict == "MISSED by audit"));
    let probe = Probe {
        forced_exit: Some(Code::Clean),
    };
    let blunt = drill_ledger_with(probe, &sql_kinds, classes).expect("drill");
    assert_eq!(blunt.code(), Code::Problem);
    assert!(blunt.rows.iter().all(|row| row.verdict == "MISSED by probe"));
}

#[test]
fn a_judge_that_cries_over_a_clean_ledger_is_not_green() {
    let cries = |_: &Path| Ok(BTreeSet::from(["too_early".to_owned()]));
    let drill = drill_ledger_with(Probe::default(), &cries, &CLASSES[..1]).expect("drill");
    assert!(!drill.green_before && !drill.green_after);
    assert_eq!(drill.code(), Code::Problem);
}

/// A ledger that holds these contracts, and one delivery of forty attempts, so that forty waits of each are derived.
pub(crate) fn write_policies(contracts: &[contract::Contract]) -> tempfile::TempDir {
    let mut records = play(None).expect("contract");
    let row = records.attempts.first().cloned().expect("an attempt");
    records.attempts = (1..=40)
        .map(|n| contract::ledger::AttemptRecord {
            attempt_id: format!("attempt-{n}"),
            attempt_no: contract::AttemptNo::new(n),
            ..row.clone()
        })
        .collect();
    records.contracts = contracts
        .iter()
        .map(|one| contract::ledger::ContractRecord {
            rev: one.rev(),
            canonical: one.canonical(),
        })
        .collect();
    written(&records).expect("write")
}

#[test]
fn audit_and_sql_name_the_fault_of_every_faulty_scheduler() {
    let drill = drill_ledger(Probe::default()).expect("drill");
    for row in &drill.rows {
        assert!(row.caught(), "{row:?}");
    }
    assert_eq!(drill.code(), Code::Clean, "{:?}", drill.summary());
}

#[test]
fn the_auditor_names_each_kind_in_a_corrupted_ledger() {
    for (kind, corrupt) in CORRUPTIONS {
        let mut records = play(None).expect("contract");
        spread(&mut records);
        corrupt(&mut records);
        sort(&mut records);
        let folder = written(&records).expect("write");
        let kinds = audit_kinds(folder.path()).expect("audit");
        assert!(kinds.contains(*kind), "{kind}: {kinds:?}");
    }
}

#[test]
fn health_of_a_ledger_takes_a_faithful_audit_and_refuses_every_other() {
    use gates::{Health, health_ledger};
    let folder = written(&play(Some(LedgerFault::MaxAgeOvershot)).expect("contract")).expect("write");
    let options = audit::judge::Options::default();
    let saved = audit::judge::judge_folder(folder.path(), None, options).expect("audit");
    let text = serde_json::to_string(&saved).expect("json");
    let report = folder.path().join("audit.json");
    let judge = |text: &str| {
        std::fs::write(&report, text).expect("write");
        let verdict = health_ledger(&Health::default(), folder.path(), None, &report);
        let word = verdict.json["issues"][0]["code"]
            .as_str()
            .unwrap_or("")
            .to_owned();
        (verdict.code, word)
    };
    assert_eq!(
        judge(&text),
        (Code::Clean, String::new()),
        "a report that says BAD, and rightly"
    );
    let red = |word: &str| (Code::Problem, word.to_owned());
    assert_eq!(
        judge(&text.replace("\"ok\":false", "\"ok\":true")),
        red("field_mismatch")
    );
    assert_eq!(
        judge(&text.replace("after_max_age", "too_early")),
        red("field_mismatch")
    );
    let other = text.replacen(&saved.inputs["manifest.json"], "0000", 1);
    assert_eq!(judge(&other), red("report_stale"));
    assert_eq!(judge("{"), red("report_unavailable"));
    std::fs::remove_file(folder.path().join("manifest.json")).expect("remove");
    assert_eq!(judge(&text), red("facts_unavailable"));
}
