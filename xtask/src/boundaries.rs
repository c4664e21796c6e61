//! Who may depend on whom (ARCHITECTURE.md, Parts). Checked from `cargo metadata`, dev- and build-dependencies
//! too, and not from good will: the judge is worth something only while it cannot see the scheduler.

use crate::{Result, naming, none_of, process};
use cargo_metadata::MetadataCommand;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Each crate of ours and all crates of ours that it may name. A crate that is not here may not exist.
const MAY_NAME: &[(&str, &[&str])] = &[
    ("contract", &[]),
    ("schedule", &["contract"]),
    ("ledger", &["contract"]),
    ("audit", &["contract"]),
    ("store", &["contract"]),
    ("engine", &["contract", "schedule", "store"]),
    ("server", &["contract", "store", "engine"]),
    ("gates", &["contract", "audit"]),
    ("drill", &["contract", "audit", "gates"]),
    ("sim", &["contract", "schedule", "store", "engine", "audit"]),
    (
        "duehook",
        &[
            "contract", "schedule", "ledger", "audit", "store", "engine", "server", "gates", "drill",
        ],
    ),
    ("xtask", &[]),
];

/// Crates from which `schedule` must not be reached, by whatever path: the judges and what stands on them.
const JUDGES: &[&str] = &["audit", "gates", "drill"];

/// Crates of ours and the edges between them, each with its kind (`normal`, `dev`, `build`).
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Graph(BTreeMap<String, BTreeSet<(String, &'static str)>>);

impl Graph {
    /// The workspace at this root. Edges are the declared ones: optional and platform-bound dependencies count.
    pub(crate) fn of_workspace(root: &Path) -> Result<Self> {
        let metadata = MetadataCommand::new()
            .manifest_path(root.join("Cargo.toml"))
            .no_deps()
            .exec()
            .map_err(|error| crate::Error::Program {
                command: "cargo metadata".into(),
                reason: error.to_string(),
            })?;
        let edges = |package: &cargo_metadata::Package| {
            // A crate may depend on itself, to switch a feature on for its own tests.
            let own = |dependency: &&cargo_metadata::Dependency| dependency.name != package.name.as_str();
            let ours = package
                .dependencies
                .iter()
                .filter(|dependency| dependency.path.is_some());
            let ours = ours.filter(own);
            ours.map(|dependency| (dependency.name.clone(), kind(dependency.kind)))
                .collect()
        };
        let packages = metadata.packages.iter();
        Ok(Self(
            packages
                .map(|package| (package.name.to_string(), edges(package)))
                .collect(),
        ))
    }

    fn closure(&self, from: &str) -> BTreeSet<String> {
        let mut seen = BTreeSet::new();
        let mut todo = vec![from.to_owned()];
        while let Some(name) = todo.pop() {
            for (to, _) in self.0.get(&name).into_iter().flatten() {
                if seen.insert(to.clone()) {
                    todo.push(to.clone());
                }
            }
        }
        seen
    }
}

fn kind(kind: cargo_metadata::DependencyKind) -> &'static str {
    match kind {
        cargo_metadata::DependencyKind::Development => "dev",
        cargo_metadata::DependencyKind::Build => "build",
        _ => "normal",
    }
}

/// Every edge that must not be, said so that one knows what to do.
pub(crate) fn breaches(graph: &Graph) -> Vec<String> {
    let allowed: BTreeMap<_, _> = MAY_NAME.iter().copied().collect();
    let mut found = Vec::new();
    for (from, edges) in &graph.0 {
        let Some(may) = allowed.get(from.as_str()) else {
            found.push(format!(
                "crate `{from}` has no place in the order: add it to MAY_NAME in xtask/src/boundaries.rs"
            ));
            continue;
        };
        for (to, kind) in edges.iter().filter(|(to, _)| !may.contains(&to.as_str())) {
            found.push(format!(
                "`{from}` must not depend on `{to}` ({kind}); it may name {may:?} alone: drop the line from its Cargo.toml"
            ));
        }
    }
    for judge in JUDGES {
        let closure = graph.closure(judge);
        if closure.contains("schedule") {
            found.push(format!(
                "`{judge}` reaches `schedule`: a judge that sees the scheduler proves nothing"
            ));
        }
        if *judge == "audit" && closure.iter().any(|name| name != "contract") {
            found.push(format!(
                "the closure of `audit` is {closure:?}; it must be `contract` and no other crate of ours"
            ));
        }
    }
    found
}

/// `cargo xtask boundaries`.
pub(crate) fn run() -> Result {
    let root = process::root();
    let mut found = breaches(&Graph::of_workspace(&root)?);
    found.extend(naming::breaches(&root)?);
    none_of(&found)?;
    println!(
        "boundaries: every edge runs in the order of ARCHITECTURE.md; the judges do not reach `schedule`"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(&str, &str, &'static str)]) -> Graph {
        let mut graph = Graph::default();
        for name in [
            "contract", "schedule", "audit", "gates", "drill", "engine", "store",
        ] {
            graph.0.insert(name.into(), BTreeSet::new());
        }
        for &(from, to, kind) in edges {
            graph.0.entry(from.into()).or_default().insert((to.into(), kind));
        }
        graph
    }

    #[test]
    fn the_order_of_the_design_is_accepted() {
        let good = [
            ("audit", "contract", "normal"),
            ("schedule", "contract", "normal"),
            ("engine", "schedule", "normal"),
            ("engine", "store", "dev"),
            ("drill", "gates", "normal"),
            ("gates", "audit", "normal"),
        ];
        assert_eq!(breaches(&graph(&good)), Vec::<String>::new());
    }

    #[test]
    fn each_forbidden_edge_is_named() {
        for (from, to, kind) in [
            ("audit", "schedule", "normal"),
            ("audit", "schedule", "dev"),
            ("audit", "store", "build"),
            ("gates", "schedule", "dev"),
            ("drill", "schedule", "normal"),
            ("schedule", "audit", "dev"),
            ("contract", "schedule", "dev"),
            ("store", "schedule", "normal"),
        ] {
            let found = breaches(&graph(&[(from, to, kind)]));
            let edge = format!("`{from}` must not depend on `{to}` ({kind})");
            assert!(
                found.iter().any(|line| line.starts_with(&edge)),
                "{edge}: {found:?}"
            );
        }
    }

    #[test]
    fn a_judge_must_not_reach_the_scheduler_through_others() {
        let found = breaches(&graph(&[
            ("gates", "engine", "normal"),
            ("engine", "schedule", "normal"),
        ]));
        assert!(
            found
                .iter()
                .any(|line| line.contains("`gates` reaches `schedule`")),
            "{found:?}"
        );
    }

    #[test]
    fn a_crate_without_a_place_is_named() {
        let found = breaches(&graph(&[("helpers", "contract", "normal")]));
        assert!(
            found
                .iter()
                .any(|line| line.contains("crate `helpers` has no place")),
            "{found:?}"
        );
    }

    /// A dev-dependency of `audit` on `schedule`, in a workspace that cargo itself reads.
    #[test]
    fn a_forbidden_edge_is_caught_in_a_real_workspace() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("folder made");
            std::fs::write(path, text).expect("file written");
        };
        write(
            "Cargo.toml",
            "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n",
        );
        for (name, tail) in [
            ("contract", ""),
            (
                "schedule",
                "[dependencies]\ncontract = { path = \"../contract\" }\n",
            ),
            (
                "audit",
                "[dev-dependencies]\nrenamed = { package = \"schedule\", path = \"../schedule\" }\n",
            ),
        ] {
            let head = format!("[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n");
            write(&format!("crates/{name}/Cargo.toml"), &format!("{head}{tail}"));
            write(&format!("crates/{name}/src/lib.rs"), "");
        }
        let graph = Graph::of_workspace(dir.path()).expect("cargo metadata reads it");
        let found = breaches(&graph);
        assert!(
            found
                .iter()
                .any(|line| line.starts_with("`audit` must not depend on `schedule` (dev)")),
            "{found:?}"
        );
        assert!(
            found
                .iter()
                .any(|line| line.starts_with("the closure of `audit`")),
            "{found:?}"
        );
    }
}
