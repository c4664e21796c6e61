//! Clean ledgers have no finding; each corruption is named for what it is, wherever it is made.

use audit::judge::{Kind, Ledger, Options, Report, judge_folder};
use audit::testing::{Dice, clean_ledger, corruptions, write_folder};
use std::collections::BTreeMap;

/// `AUDIT_SEEDS=5000 cargo test -p audit` tries more.
fn seeds() -> u64 {
    std::env::var("AUDIT_SEEDS")
        .ok()
        .and_then(|seeds| seeds.parse().ok())
        .unwrap_or(100)
}

fn judge(ledger: &Ledger) -> Report {
    ledger.judge(Options::default()).unwrap()
}

#[test]
fn clean_ledgers_have_no_finding() {
    for seed in 0..seeds() {
        let report = judge(&clean_ledger(seed));
        assert!(
            report.ok,
            "seed {seed}: {:#?}",
            &report.findings[..report.findings.len().min(5)]
        );
    }
}

#[test]
fn each_corruption_is_named_wherever_it_is_made() {
    let mut made: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..60 {
        let clean = clean_ledger(seed);
        for corruption in corruptions() {
            let mut ledger = clean.clone();
            let mut dice = Dice::new(seed ^ 0xdead);
            if !(corruption.apply)(&mut ledger, &mut dice) {
                continue;
            }
            *made.entry(corruption.what).or_insert(0) += 1;
            let kinds: Vec<Kind> = judge(&ledger).kinds().collect();
            assert!(
                kinds.contains(&corruption.kind),
                "seed {seed}, {}: {kinds:?}",
                corruption.what
            );
        }
    }
    for corruption in corruptions() {
        let places = made.get(corruption.what).copied().unwrap_or(0);
        assert!(places >= 3, "{}: made in {places} places only", corruption.what);
    }
}

#[test]
fn every_kind_that_rows_can_show_is_among_the_corruptions() {
    for kind in Kind::ALL.iter().filter(|kind| **kind != Kind::NotInLedger) {
        assert!(
            corruptions().iter().any(|corruption| corruption.kind == *kind),
            "{kind}"
        );
    }
}

#[test]
fn the_export_of_a_ledger_is_judged_as_the_ledger_is() {
    for seed in [1, 2, 3] {
        let mut ledger = clean_ledger(seed);
        for corruption in corruptions().iter().step_by(7) {
            (corruption.apply)(&mut ledger, &mut Dice::new(seed));
        }
        let folder = tempfile::tempdir().unwrap();
        write_folder(&ledger, folder.path()).unwrap();
        let from_folder = judge_folder(folder.path(), None, Options::default()).unwrap();
        let from_memory = judge(&ledger);
        assert!(!from_memory.ok);
        assert_eq!(
            Report {
                inputs: BTreeMap::new(),
                ..from_folder
            },
            from_memory
        );
    }
}

/// Sorting on disk changes nothing: one seed under much memory and under next to none.
#[test]
fn a_ledger_beyond_memory_is_judged_as_one_within() {
    let mut ledger = clean_ledger(5);
    (corruptions()[0].apply)(&mut ledger, &mut Dice::new(5));
    let small = Options {
        memory: 4_000,
        ..Options::default()
    };
    assert_eq!(ledger.judge(small).unwrap(), judge(&ledger));
}
