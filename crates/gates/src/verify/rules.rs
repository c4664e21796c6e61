//! A rule of a spec as a query: it finds what breaks the rule, over the tables that the probe's SQL derived.

use super::Verification;
use crate::files::sha256_of_file;
use rusqlite::{Connection, OptionalExtension};
use std::path::Path;

/// How a rule is checked.
#[derive(Clone, Copy, Debug)]
pub(super) enum How {
    /// A query whose rows are breaches, each named by a text.
    Query(&'static str),
    /// The figure of this name is the derived one.
    Figure(&'static str),
}

/// Runs each rule. Without tables (the report could not be judged) every rule fails: nothing vouches for it.
pub(super) fn check_rules(
    list: &mut Verification,
    rules: &[(&str, How)],
    tables: Result<Connection, String>,
) {
    match tables {
        Ok(db) => {
            for (name, how) in rules {
                list.check(
                    name,
                    breach(&db, *how).unwrap_or_else(|error| Some(format!("SQLite says: {error}"))),
                );
            }
        }
        Err(why) => {
            for (name, _) in rules {
                list.check(name, Some(why.clone()));
            }
        }
    }
}

fn breach(db: &Connection, how: How) -> rusqlite::Result<Option<String>> {
    match how {
        How::Query(query) => db.query_row(query, [], |row| row.get(0)).optional(),
        How::Figure(name) => db
            .query_row(
                "SELECT 'expected ' || expected || ', found ' || found FROM mismatch WHERE name = ?1",
                [name],
                |row| row.get(0),
            )
            .optional(),
    }
}

/// The report names the very files that it was made from, and its build.
pub(super) fn check_hashes(list: &mut Verification, inputs: &[(&str, &Path)], report: &str) {
    let report: serde_json::Value = serde_json::from_str(report).unwrap_or_default();
    for (key, path) in inputs {
        let due = sha256_of_file(path).unwrap_or_default();
        let found = report["inputs"][key].as_str().unwrap_or("nothing");
        list.check(
            &format!("report: inputs.{key} is the SHA-256 of the file"),
            (due != found).then(|| format!("expected {due}, found {found}")),
        );
    }
    let build = report["build"].as_str().is_some_and(|build| !build.is_empty());
    list.check(
        "report: build names the build",
        (!build).then(|| "it is missing or empty".to_owned()),
    );
}
