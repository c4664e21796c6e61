//! `health ledger`: a report that `audit` saved, against an audit of the same ledger made again.

use super::{Health, HealthVerdict, Issue, Judged, hashes};
use crate::probe::LEDGER_SQL;
use std::path::Path;

/// Judges a saved audit report. Fails closed (I7): until the auditor can be asked, no report is called faithful.
#[must_use]
pub fn health_ledger(
    health: &Health,
    folder: &Path,
    received: Option<&Path>,
    report: &Path,
) -> HealthVerdict {
    let manifest = folder.join("manifest.json");
    let mut inputs = vec![("manifest", &*manifest)];
    inputs.extend(received.map(|path| ("received", path)));
    let mut judged = Judged {
        contract_available: true,
        ..Judged::default()
    };
    judged
        .figures
        .insert("sha256".into(), hashes(&inputs, report, LEDGER_SQL));
    let why = "this build cannot audit a ledger";
    judged.issues.push(Issue::new(
        "facts_unavailable",
        "ledger",
        "an audit of the ledger",
        why,
    ));
    health.verdict(judged)
}
