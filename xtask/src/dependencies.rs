//! docs/dependencies.md gives a reason for every direct dependency, and for no crate that is none; and every crate's
//! dependencies are named in its source.

use crate::{Error, Result, naming, none_of, process, source};
use cargo_metadata::MetadataCommand;
use std::collections::BTreeSet;

fn metadata() -> Result<cargo_metadata::Metadata> {
    MetadataCommand::new()
        .manifest_path(process::root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .map_err(|error| Error::Program {
            command: "cargo metadata".into(),
            reason: error.to_string(),
        })
}

/// Direct dependencies of the workspace's crates that are not ours.
fn direct(metadata: &cargo_metadata::Metadata) -> BTreeSet<String> {
    let all = metadata.packages.iter().flat_map(|package| &package.dependencies);
    all.filter(|dependency| dependency.path.is_none())
        .map(|dependency| dependency.name.clone())
        .collect()
}

/// Dependencies, ours too, that their crate's source never names.
fn unnamed(metadata: &cargo_metadata::Metadata) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for package in &metadata.packages {
        let folder = package
            .manifest_path
            .parent()
            .map(|folder| folder.as_std_path().to_owned());
        let mut words = BTreeSet::new();
        for path in naming::rust_files(&folder.unwrap_or_default())? {
            let text = process::read(&path)?;
            words.extend(text.split(|c| !source::is_name(c)).map(str::to_owned));
        }
        let named = |dependency: &&cargo_metadata::Dependency| {
            let name = dependency.rename.as_ref().unwrap_or(&dependency.name);
            !words.contains(&name.replace('-', "_"))
        };
        for dependency in package.dependencies.iter().filter(named) {
            found.push(format!(
                "`{}` declares `{}` and never names it: drop the line from its Cargo.toml",
                package.name, dependency.name
            ));
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
    let metadata = metadata()?;
    let direct = direct(&metadata);
    let manifest = in_manifest(&process::read(&root.join("Cargo.toml"))?);
    let reasons = with_reason(&process::read(&root.join("docs/dependencies.md"))?);
    let mut found = compare(&direct, &manifest, &reasons);
    found.extend(unnamed(&metadata)?);
    none_of(&found)?;
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
