//! `cargo xtask mutants`: cargo-mutants on the scheduler and the auditor. Every survivor must stand in
//! docs/mutants.md with its reason, and every row there must still survive.

use crate::process::{self, Run};
use crate::{Result, none_of, tools};
use std::collections::BTreeSet;

/// The two crates whose rules must not survive a mutation.
const PACKAGES: &[&str] = &["schedule", "audit"];

/// A mutant's text without its line and column, so that an edit elsewhere in the file does not make it a new one.
fn without_place(mutant: &str) -> String {
    let (place, what) = mutant.split_once(": ").unwrap_or((mutant, ""));
    format!("{}: {what}", place.split(':').next().unwrap_or(place))
}

/// The survivors that are explained: rows `| \`mutant\` | reason |`.
fn explained(table: &str) -> BTreeSet<String> {
    let rows = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    rows.filter(|(_, reason)| reason.trim_matches([' ', '|']).len() > 10)
        .map(|(mutant, _)| mutant.replace("\\|", "|"))
        .collect()
}

fn compare(survivors: &BTreeSet<String>, explained: &BTreeSet<String>) -> Vec<String> {
    let new = survivors
        .difference(explained)
        .map(|mutant| format!("survived without a reason in docs/mutants.md: {mutant}"));
    let gone = explained
        .difference(survivors)
        .map(|mutant| format!("does not survive any more; drop its row from docs/mutants.md: {mutant}"));
    new.chain(gone).collect()
}

/// `cargo xtask mutants`.
pub(crate) fn run(packages: &[String]) -> Result {
    tools::cargo_tool("cargo-mutants", "27.1.0")?;
    let chosen: Vec<&str> = if packages.is_empty() {
        PACKAGES.to_vec()
    } else {
        packages.iter().map(String::as_str).collect()
    };
    let mut survivors = BTreeSet::new();
    for package in &chosen {
        let out = process::target_folder().join("mutants").join(package);
        let shown = out.display().to_string();
        let args = [
            "mutants",
            "--package",
            package,
            "--output",
            &shown,
            "--no-shuffle",
            "--colors",
            "never",
        ];
        // Its exit code says that mutants survived; the list below says which.
        let code = Run::cargo().args(&args).watch(|_| {})?;
        println!("cargo-mutants on `{package}`: exit {code:?}");
        let missed = out.join("mutants.out/missed.txt");
        survivors.extend(process::read(&missed)?.lines().map(without_place));
    }
    let table = process::read(&process::root().join("docs/mutants.md"))?;
    let mine = explained(&table);
    let mine = mine
        .into_iter()
        .filter(|mutant| {
            chosen
                .iter()
                .any(|package| mutant.starts_with(&format!("crates/{package}/")))
        })
        .collect();
    none_of(&compare(&survivors, &mine))?;
    println!(
        "mutants: {} survive, each with its reason in docs/mutants.md",
        survivors.len()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_survivor_is_known_by_file_and_change_not_by_line() {
        let mutant = "crates/audit/src/waits.rs:12:5: replace > with >= in due";
        assert_eq!(
            without_place(mutant),
            "crates/audit/src/waits.rs: replace > with >= in due"
        );
    }

    #[test]
    fn survivors_and_reasons_must_match_both_ways() {
        let table = "| `crates/a.rs: replace \\|\\| with && in f` | both sides are always equal here |\n";
        let known = explained(table);
        assert!(known.contains("crates/a.rs: replace || with && in f"));
        assert!(compare(&known, &known).is_empty());
        assert_eq!(compare(&BTreeSet::new(), &known).len(), 1);
        assert_eq!(compare(&known, &BTreeSet::new()).len(), 1);
    }
}
