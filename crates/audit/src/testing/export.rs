//! The export of a ledger: a folder of TSV files and a manifest (spec/ledger.md).

use crate::judge::Ledger;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::io;
use std::path::Path;

/// Writes the folder, which must exist. Records stand in the order of their `seq`.
///
/// # Errors
/// A file cannot be written.
pub fn write_folder(ledger: &Ledger, folder: &Path) -> io::Result<()> {
    let mut files = Map::new();
    let mut write = |stem: &str, rows: Vec<Value>, columns: &str| {
        let text = table(columns, rows);
        let rows = text.lines().count().saturating_sub(1);
        let name = format!("{stem}.tsv");
        std::fs::write(folder.join(&name), &text)?;
        files.insert(
            name,
            json!({"rows": rows, "sha256": contract::revision_of(&text)}),
        );
        io::Result::Ok(())
    };
    write("contracts", values(&ledger.contracts)?, "rev canonical")?;
    write(
        "messages",
        values(&ledger.messages)?,
        "seq message_id at deliveries",
    )?;
    write(
        "endpoint_events",
        values(&ledger.endpoint_events)?,
        "seq endpoint_id at state why by",
    )?;
    write(
        "node_events",
        values(&ledger.node_events)?,
        "seq node at boot_id mono_ms event size_ms",
    )?;
    write(
        "delivery_events",
        values(&ledger.delivery_events)?,
        "seq message_id endpoint_id delivery_no at event reason retry_rev",
    )?;
    write(
        "attempts",
        values(&ledger.attempts)?,
        "attempt_id seq message_id endpoint_id delivery_no attempt_no retry_rev endpoint_rev due_at started_at ended_at outcome status error retry_after wait_ms node trigger",
    )?;
    let manifest = json!({"format": "duehook-ledger/1", "files": files});
    std::fs::write(folder.join("manifest.json"), manifest.to_string())
}

fn values<T: Serialize>(records: &[T]) -> io::Result<Vec<Value>> {
    records
        .iter()
        .map(|record| serde_json::to_value(record).map_err(io::Error::other))
        .collect()
}

fn table(columns: &str, mut rows: Vec<Value>) -> String {
    rows.sort_by_key(|row| row["seq"].as_u64());
    let mut text = columns.replace(' ', "\t") + "\n";
    for row in rows {
        let cells: Vec<String> = columns.split(' ').map(|column| cell(&row[column])).collect();
        let _ = writeln!(text, "{}", cells.join("\t"));
    }
    text
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text == "-" => r"\-".to_owned(),
        Value::String(text) => text
            .replace('\\', r"\\")
            .replace('\t', r"\t")
            .replace('\n', r"\n")
            .replace('\r', r"\r"),
        other => other.to_string(),
    }
}
