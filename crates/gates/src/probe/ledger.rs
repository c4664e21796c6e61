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

/// Judges an exported ledger, with what a receiver logged if that is given.
#[must_use]
pub fn probe_ledger(probe: Probe, folder: &Path, received: Option<&Path>) -> ProbeVerdict {
    probe.finish(match load(folder, received) {
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

fn load(folder: &Path, received: Option<&Path>) -> Result<Connection, LoadError> {
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
    transaction.execute_batch("CREATE TABLE raw_received (line TEXT NOT NULL) STRICT")?;
    if let Some(path) = received {
        let text = read_text(path).map_err(|error| LoadError::Facts(vec![super::describe(&error)]))?;
        super::load_lines(&transaction, "raw_received", &text)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// spec/vectors/policies.json: what real systems publish, as far as the language can say it.
    #[test]
    fn every_published_policy_waits_in_sql_as_it_says() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/vectors/policies.json");
        let text = std::fs::read_to_string(path).expect("vectors");
        let policies: serde_json::Value = serde_json::from_str(&text).expect("json");
        let db = Connection::open_in_memory().expect("database");
        for (kind, columns) in KINDS {
            let names = columns
                .iter()
                .map(|name| format!("\"{name}\" TEXT NOT NULL"))
                .collect::<Vec<_>>();
            db.execute_batch(&format!("CREATE TABLE raw_{kind} ({}) STRICT", names.join(", ")))
                .expect("table");
        }
        db.execute_batch("CREATE TABLE raw_received (line TEXT NOT NULL) STRICT")
            .expect("table");
        let mut revs = Vec::new();
        for policy in policies.as_array().expect("list") {
            let Some(text) = policy["contract"].as_str() else {
                continue;
            };
            let contract = contract::parse(text, "vector").expect("contract");
            // decorrelated: its interval depends on the wait drawn before, so it stands with the rows and not here
            if contract.retry.jitter != contract::model::Jitter::Decorrelated {
                db.execute(
                    "INSERT INTO raw_contracts VALUES (?1, ?2)",
                    [contract.rev(), contract.canonical()],
                )
                .expect("insert");
                revs.push((policy, contract.rev()));
            }
        }
        // One delivery with as many attempts as the largest n asks for: SQL derives no more waits than it needs.
        db.execute_batch(
            "WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up WHERE n < 400) INSERT INTO raw_attempts
             SELECT 'a' || n, n, 'm', 'e', '1', n, 'r', 'r', '0', '0', '0', 'failed', '500', '-', '-', '-', 'n', 'scheduled' FROM up",
        )
        .expect("attempts");
        db.execute_batch(SQLITE_SQL).expect("load");
        db.execute_batch(LEDGER_SQL).expect("judge");
        let mut vectors = 0;
        for (policy, rev) in revs {
            for vector in policy["vectors"].as_array().expect("vectors") {
                let n = vector["n"].as_i64().expect("n");
                let query = "SELECT low_ms, high_ms FROM contract_wait WHERE rev = ?1 AND n = ?2";
                let found: (i64, i64) = db
                    .query_row(query, rusqlite::params![rev, n], |row| {
                        Ok((row.get(0)?, row.get(1)?))
                    })
                    .unwrap_or_else(|error| panic!("{} retry {n}: {error}", policy["policy"]));
                let due = (
                    vector["min_ms"].as_i64().expect("min"),
                    vector["max_ms"].as_i64().expect("max"),
                );
                assert_eq!(found, due, "{} retry {n}", policy["policy"]);
                vectors += 1;
            }
        }
        assert!(vectors >= 300, "{vectors}");
    }
}
