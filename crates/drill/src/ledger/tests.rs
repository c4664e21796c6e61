use super::faults::CLASSES;
use super::scheduler::play;
use gates::{Code, Probe, probe_ledger};

#[test]
fn the_clean_ledger_is_clean_to_sql() {
    let folder = tempfile::tempdir().expect("temp");
    play(None).expect("contract").write(folder.path()).expect("write");
    let verdict = probe_ledger(Probe::default(), folder.path());
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
        let verdict = probe_ledger(Probe::default(), folder.path());
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

#[test]
#[ignore = "writes the ledgers to look at"]
fn write_all() {
    let Ok(dir) = std::env::var("DRILL_DIR") else { return };
    let one = |name: &str, fault| {
        let folder = std::path::Path::new(&dir).join(name);
        std::fs::create_dir_all(&folder).expect("dir");
        play(fault).expect("contract").write(&folder).expect("write");
        let verdict = probe_ledger(Probe::default(), &folder);
        let mut kinds = std::collections::BTreeMap::new();
        for line in verdict.mismatches() {
            *kinds.entry(line.split(' ').next().unwrap_or("").to_owned()).or_insert(0) += 1;
        }
        println!("{name}: {:?} {kinds:?}", verdict.lines.last());
    };
    one("clean", None);
    for class in CLASSES {
        one(class.id, Some(class.fault));
    }
}
