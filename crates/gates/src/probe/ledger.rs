//! `probe ledger`: an export folder, loaded as raw text, under the SQL that also runs in the `sqlite3` shell and in `psql`.

use super::{Probe, ProbeVerdict, broken, read_verdict};
use crate::code::Code;
use crate::files::{read_text, sha256_of};
use rusqlite::Connection;
use std::path::Path;

/// Every breach that SQL can see.
pub const LEDGER_SQL: &str = include_str!("../../../../probe/ledger.sql");
/// The typed tables, and the contracts taken apart.
const SQLITE_SQL: &str = include_str!("../../../../probe/ledger.sqlite.sql");

/// The record kinds of an export and their columns, in the order of the file.
const KINDS: [(&str, &[&str]); 6] = [
    (
        "attempts",
        &[
            "attempt_id",
            "seq",
            "message_id",
            "endpoint_id",
            "delivery_no",
            "attempt_no",
            "retry_rev",
            "endpoint_rev",
            "due_at",
            "started_at",
            "ended_at",
            "outcome",
            "status",
            "error",
            "retry_after",
            "wait_ms",
            "node",
            "trigger",
        ],
    ),
    (
        "delivery_events",
        &[
            "seq",
            "message_id",
            "endpoint_id",
            "delivery_no",
            "at",
            "event",
            "reason",
            "retry_rev",
        ],
    ),
    ("messages", &["seq", "message_id", "at", "deliveries"]),
    (
        "endpoint_events",
        &["seq", "endpoint_id", "at", "state", "why", "by"],
    ),
    (
        "node_events",
        &["seq", "node", "at", "boot_id", "mono_ms", "event", "size_ms"],
    ),
    ("contracts", &["rev", "canonical"]),
];

/// Judges an exported ledger.
#[must_use]
pub fn probe_ledger(probe: Probe, folder: &Path) -> ProbeVerdict {
    probe.finish(match load(folder) {
        Err(LoadError::Facts(lines)) => ProbeVerdict::not_judged(Code::Problem, lines),
        Err(LoadError::Database(error)) => broken(&error),
        Ok(db) => judge(&db).unwrap_or_else(|error| broken(&error)),
    })
}

fn judge(db: &Connection) -> rusqlite::Result<ProbeVerdict> {
    db.execute_batch(&format!("BEGIN;\n{LEDGER_SQL}\nCOMMIT;"))?;
    read_verdict(db)
}

enum LoadError {
    Facts(Vec<String>),
    Database(rusqlite::Error),
}

impl From<rusqlite::Error> for LoadError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

fn load(folder: &Path) -> Result<Connection, LoadError> {
    let manifest = read_manifest(folder)?;
    let mut db = Connection::open_in_memory()?;
    let transaction = db.transaction()?;
    for (kind, columns) in KINDS {
        let names: Vec<String> = columns.iter().map(|name| format!("\"{name}\"")).collect();
        transaction.execute_batch(&format!(
            "CREATE TABLE raw_{kind} ({}) STRICT",
            names
                .iter()
                .map(|name| format!("{name} TEXT NOT NULL"))
                .collect::<Vec<_>>()
                .join(", ")
        ))?;
        load_kind(&transaction, folder, &manifest, kind, columns)?;
    }
    transaction.execute_batch(SQLITE_SQL).map_err(|error| {
        LoadError::Facts(vec![format!(
            "{}: the records cannot be read: {error}",
            folder.display()
        )])
    })?;
    transaction.commit()?;
    Ok(db)
}

/// `manifest.json`: without it nobody can tell a whole ledger from the first half of one.
fn read_manifest(folder: &Path) -> Result<serde_json::Value, LoadError> {
    let path = folder.join("manifest.json");
    let text = read_text(&path).map_err(|error| LoadError::Facts(vec![super::describe(&error)]))?;
    let manifest: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| LoadError::Facts(vec![format!("{}: {error}", path.display())]))?;
    match manifest["format"].as_str() {
        Some("duehook-ledger/1") => Ok(manifest),
        found => Err(LoadError::Facts(vec![format!(
            "{}: format is {}, expected duehook-ledger/1",
            path.display(),
            found.unwrap_or("missing")
        )])),
    }
}

fn load_kind(
    db: &Connection,
    folder: &Path,
    manifest: &serde_json::Value,
    kind: &str,
    columns: &[&str],
) -> Result<(), LoadError> {
    let facts = |text: String| LoadError::Facts(vec![text]);
    let name = ["tsv", "jsonl"]
        .map(|extension| format!("{kind}.{extension}"))
        .into_iter()
        .find(|name| folder.join(name).is_file())
        .ok_or_else(|| {
            facts(format!(
                "{}: found neither {kind}.tsv nor {kind}.jsonl",
                folder.display()
            ))
        })?;
    let path = folder.join(&name);
    let text = read_text(&path).map_err(|error| facts(super::describe(&error)))?;
    let recorded = &manifest["files"][&name]["sha256"];
    if recorded.as_str() != Some(&sha256_of(text.as_bytes())) {
        return Err(facts(format!(
            "{}: its SHA-256 is not the one in manifest.json: the file was cut or changed since the export",
            path.display()
        )));
    }
    let marks: Vec<String> = (1..=columns.len()).map(|n| format!("?{n}")).collect();
    let mut insert = db.prepare(&format!("INSERT INTO raw_{kind} VALUES ({})", marks.join(", ")))?;
    let is_tsv = name.ends_with(".tsv");
    for (n, line) in text.lines().enumerate() {
        let wrong = |what: String| facts(format!("{}:{}: {what}", path.display(), n + 1));
        let cells = if is_tsv {
            let cells: Vec<String> = line.split('\t').map(str::to_owned).collect();
            if n == 0 {
                if cells != columns {
                    return Err(wrong(format!(
                        "found the header `{line}`, expected the columns {}",
                        columns.join(" ")
                    )));
                }
                continue;
            }
            cells
        } else {
            cells_of_json(line, columns).map_err(wrong)?
        };
        if cells.len() != columns.len() {
            return Err(wrong(format!(
                "found {} columns, expected {}",
                cells.len(),
                columns.len()
            )));
        }
        insert.execute(rusqlite::params_from_iter(cells))?;
    }
    Ok(())
}

/// A JSONL record in the cells that the TSV form would have.
fn cells_of_json(line: &str, columns: &[&str]) -> Result<Vec<String>, String> {
    let value: serde_json::Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let object = value.as_object().ok_or("found no JSON object")?;
    if let Some(extra) = object.keys().find(|key| !columns.contains(&key.as_str())) {
        return Err(format!("found the unknown key `{extra}`"));
    }
    columns
        .iter()
        .map(|name| match object.get(*name) {
            None => Err(format!("the key `{name}` is missing")),
            Some(serde_json::Value::Null) => Ok("-".to_owned()),
            Some(serde_json::Value::String(text)) if text == "-" => Ok("\\-".to_owned()),
            Some(serde_json::Value::String(text)) => Ok(text
                .replace('\\', "\\\\")
                .replace('\t', "\\t")
                .replace('\n', "\\n")
                .replace('\r', "\\r")),
            Some(serde_json::Value::Number(number)) => Ok(number.to_string()),
            Some(other) => Err(format!("`{name}` is {other}, expected a text, a number or null")),
        })
        .collect()
}
