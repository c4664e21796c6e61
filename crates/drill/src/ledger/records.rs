//! A ledger in memory, and its export: a folder of TSV files with a manifest (spec/ledger.md).

use contract::ledger::{
    AttemptRecord, ContractRecord, DeliveryEvent, EndpointEvent, MessageRecord, NodeEvent,
};
use gates::sha256_of;
use serde_json::{Value, json};
use std::fmt::Write;
use std::io;
use std::path::Path;

/// Every record of a ledger, in commit order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Records {
    pub(super) attempts: Vec<AttemptRecord>,
    pub(super) deliveries: Vec<DeliveryEvent>,
    pub(super) messages: Vec<MessageRecord>,
    pub(super) endpoints: Vec<EndpointEvent>,
    pub(super) nodes: Vec<NodeEvent>,
    pub(super) contracts: Vec<ContractRecord>,
}

impl Records {
    /// The first attempt, or else the first delivery event, that is not the same in `clean`.
    pub(super) fn first_difference(&self, clean: &Self) -> Option<String> {
        let attempt = self
            .attempts
            .iter()
            .map(Some)
            .chain(std::iter::repeat(None))
            .zip(clean.attempts.iter().map(Some).chain(std::iter::repeat(None)))
            .take(self.attempts.len().max(clean.attempts.len()))
            .find(|(ours, theirs)| ours != theirs)
            .and_then(|(ours, theirs)| ours.or(theirs))
            .map(|row| {
                format!(
                    "{} {} {}/{}",
                    row.message_id, row.endpoint_id, row.delivery_no, row.attempt_no
                )
            });
        let event = || {
            let differs = self
                .deliveries
                .iter()
                .find(|row| !clean.deliveries.contains(row))?;
            Some(format!(
                "{} {} {}",
                differs.message_id, differs.endpoint_id, differs.event
            ))
        };
        attempt.or_else(event)
    }

    /// Writes the export folder.
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        let files = [
            ("attempts", ATTEMPT, rows(&self.attempts)?),
            ("delivery_events", DELIVERY, rows(&self.deliveries)?),
            ("messages", MESSAGE, rows(&self.messages)?),
            ("endpoint_events", ENDPOINT, rows(&self.endpoints)?),
            ("node_events", NODE, rows(&self.nodes)?),
            ("contracts", CONTRACT, rows(&self.contracts)?),
        ];
        let mut manifest = serde_json::Map::new();
        for (kind, columns, rows) in files {
            let name = format!("{kind}.tsv");
            let text = table(columns, &rows);
            std::fs::write(folder.join(&name), &text)?;
            manifest.insert(
                name,
                json!({ "rows": rows.len(), "sha256": sha256_of(text.as_bytes()) }),
            );
        }
        let manifest = json!({ "format": "duehook-ledger/1", "files": manifest });
        std::fs::write(folder.join("manifest.json"), manifest.to_string())
    }
}

const ATTEMPT: &str = "attempt_id seq message_id endpoint_id delivery_no attempt_no retry_rev endpoint_rev due_at \
started_at ended_at outcome status error retry_after wait_ms node trigger";
const DELIVERY: &str = "seq message_id endpoint_id delivery_no at event reason retry_rev";
const MESSAGE: &str = "seq message_id at deliveries";
const ENDPOINT: &str = "seq endpoint_id at state why by";
const NODE: &str = "seq node at boot_id mono_ms event size_ms";
const CONTRACT: &str = "rev canonical";

fn rows<T: serde::Serialize>(records: &[T]) -> io::Result<Vec<Value>> {
    records
        .iter()
        .map(|record| serde_json::to_value(record).map_err(io::Error::other))
        .collect()
}

fn table(columns: &str, rows: &[Value]) -> String {
    let names: Vec<&str> = columns.split(' ').collect();
    let mut text = names.join("\t");
    text.push('\n');
    for row in rows {
        for (n, name) in names.iter().enumerate() {
            let _ = write!(text, "{}{}", if n > 0 { "\t" } else { "" }, cell(&row[*name]));
        }
        text.push('\n');
    }
    text
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text == "-" => "\\-".to_owned(),
        Value::String(text) => text
            .replace('\\', "\\\\")
            .replace('\t', "\\t")
            .replace('\n', "\\n")
            .replace('\r', "\\r"),
        other => other.to_string(),
    }
}
