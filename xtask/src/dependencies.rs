//! docs/dependencies.md gives a reason for every direct dependency, and for no crate that is none.

use crate::{Error, Result, none_of, process};
use cargo_metadata::MetadataCommand;
use std::collections::{BTreeMap, BTreeSet};

/// Direct dependencies of the workspace's crates that are not ours, and who declares them.
fn direct() -> Result<BTreeMap<String, BTreeSet<String>>> {
    let metadata = MetadataCommand::new()
        .manifest_path(process::root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .map_err(|error| Error::Program {
            command: "cargo metadata".into(),
            reason: error.to_string(),
        })?;
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in &metadata.packages {
        for dependency in package
            .dependencies
            .iter()
            .filter(|dependency| dependency.path.is_none())
        {
            found
                .entry(dependency.name.clone())
                .or_default()
                .insert(package.name.to_string());
        }
    }
    Ok(found)
}

/// The crates that the root manifest names under `[workspace.dependencies]`, without ours.
fn in_manifest(manifest: &str) -> BTreeSet<String> {
    let section = manifest
        .split("[workspace.dependencies]")
        .nth(1)
        .unwrap_or_default();
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    let entries = lines.filter(|line| !line.starts_with('#') && !line.contains("path ="));
    entries
        .filter_map(|line| Some(line.split_once('=')?.0.trim().to_owned()))
        .collect()
}

/// The crates that the table of reasons names: rows that open with a name in backquotes and give a reason.
fn with_reason(table: &str) -> BTreeSet<String> {
    let rows = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    rows.filter(|(_, reason)| reason.trim_matches([' ', '|']).len() > 10)
        .map(|(name, _)| name.to_owned())
        .collect()
}

fn compare(
    direct: &BTreeSet<String>,
    manifest: &BTreeSet<String>,
    reasons: &BTreeSet<String>,
) -> Vec<String> {
    let unexplained = direct
        .union(manifest)
        .filter(|name| !reasons.contains(*name))
        .map(|name| format!("`{name}` is a dependency without a reason: add a row to docs/dependencies.md"));
    let unused = manifest
        .difference(direct)
        .map(|name| format!("`{name}` stands in the root manifest and no crate uses it: drop the line"));
    let stale = reasons
        .iter()
        .filter(|name| !direct.contains(*name) && !manifest.contains(*name))
        .map(|name| format!("`{name}` has a row in docs/dependencies.md and is no dependency: drop the row"));
    unexplained.chain(unused).chain(stale).collect()
}

/// `cargo xtask dependencies`.
pub(crate) fn run() -> Result {
    let root = process::root();
    let direct: BTreeSet<String> = direct()?.into_keys().collect();
    let manifest = in_manifest(&process::read(&root.join("Cargo.toml"))?);
    let reasons = with_reason(&process::read(&root.join("docs/dependencies.md"))?);
    none_of(&compare(&direct, &manifest, &reasons))?;
    println!("dependencies: {} direct ones, each with its reason", direct.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn reasons_and_dependencies_must_match_both_ways() {
        assert!(compare(&set(&["a"]), &set(&["a"]), &set(&["a"])).is_empty());
        for (direct, manifest, reasons, words) in [
            (&["a"][..], &["a"][..], &[][..], "without a reason"),
            (&[], &["a"], &["a"], "no crate uses it"),
            (&[], &[], &["a"], "drop the row"),
        ] {
            let found = compare(&set(direct), &set(manifest), &set(reasons));
            assert!(found.len() == 1 && found[0].contains(words), "{found:?}");
        }
    }

    #[test]
    fn manifest_and_table_are_read() {
        let manifest = "[workspace.dependencies]\n# Ours.\nours = { path = \"x\" }\nserde = { version = \"1\" }\nurl = \"2\"\n\n[lints]\nz = 1\n";
        assert_eq!(in_manifest(manifest), set(&["serde", "url"]));
        assert_eq!(
            with_reason("| `url` | parses targets once |\n| `empty` | |\n"),
            set(&["url"])
        );
    }
}
