//! An exported ledger: six files, one of which holds whatever the bytes say. A report or an error that names the file,
//! never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};

/// The files with their headers (spec/ledger.md).
const FILES: [(&str, &str); 6] = [
    (
        "attempts.tsv",
        "attempt_id seq message_id endpoint_id delivery_no attempt_no retry_rev endpoint_rev due_at started_at ended_at \
         outcome status error retry_after wait_ms node trigger",
    ),
    (
        "delivery_events.tsv",
        "seq message_id endpoint_id delivery_no at event reason retry_rev",
    ),
    ("messages.tsv", "seq message_id at deliveries"),
    ("endpoint_events.tsv", "seq endpoint_id at state why by"),
    ("node_events.tsv", "seq node at boot_id mono_ms event size_ms"),
    ("contracts.tsv", "rev canonical"),
];

fuzz_target!(|input: (u8, &[u8])| {
    let (chosen, bytes) = (usize::from(input.0) % FILES.len(), input.1);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut listed = serde_json::Map::new();
    for (at, (name, header)) in FILES.iter().enumerate() {
        let mut content = header.replace(' ', "\t").into_bytes();
        content.push(b'\n');
        if at == chosen {
            content.extend_from_slice(bytes);
        }
        let lines = content
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .count();
        let sha256: String = Sha256::digest(&content)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        listed.insert(
            (*name).to_owned(),
            serde_json::json!({ "rows": lines - 1, "sha256": sha256 }),
        );
        std::fs::write(folder.path().join(name), &content).expect("written");
    }
    let manifest = serde_json::json!({ "format": "duehook-ledger/1", "files": listed });
    std::fs::write(folder.path().join("manifest.json"), manifest.to_string()).expect("written");
    if let Err(error) = audit::judge::judge_folder(folder.path(), None, audit::judge::Options::default()) {
        assert!(error.to_string().contains(".tsv"), "{error}");
    }
});
