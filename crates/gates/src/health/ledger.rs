//! `health ledger`: a report that `audit` saved, against an audit of the same ledger made again as of the same moment.

use super::compare::{Shape, compare};
use super::{Health, HealthVerdict, Issue, Judged, hashes, report};
use crate::probe::LEDGER_SQL;
use audit::judge::{Options, Report, judge_folder};
use contract::Instant;
use serde_json::Value;
use std::path::Path;

/// Findings have no id of their own: they are compared as a list.
const SHAPE: Shape = Shape {
    rows: ("", ""),
    own: &["inputs"],
};

/// Judges a saved audit report.
#[must_use]
pub fn health_ledger(
    health: &Health,
    folder: &Path,
    received: Option<&Path>,
    report: &Path,
) -> HealthVerdict {
    let manifest = folder.join("manifest.json");
    let mut inputs = vec![("manifest", &*manifest)];
    inputs.extend(received.map(|path| ("receiver", path)));
    let mut judged = Judged {
        contract_available: true,
        ..Judged::default()
    };
    judged
        .figures
        .insert("sha256".into(), hashes(&inputs, report, LEDGER_SQL));
    let found = report::read(report);
    let said = found.as_ref().ok();
    let options = Options {
        as_of: said.and_then(|report| moment(report, "as_of")),
        since: said.and_then(|report| moment(report, "since")),
        ..Options::default()
    };
    match judge_folder(folder, received, options) {
        Err(error) => judged.issues.push(Issue::new(
            "facts_unavailable",
            folder.display().to_string(),
            "a ledger that can be judged",
            error.to_string(),
        )),
        Ok(again) => judged.compare(&again, found),
    }
    health.verdict(judged)
}

fn moment(report: &Value, key: &str) -> Option<Instant> {
    report[key].as_i64().map(Instant::from_unix_ms)
}

impl Judged {
    fn compare(&mut self, again: &Report, found: Result<Value, Issue>) {
        self.figures.insert("found".into(), again.found.into());
        let expected = serde_json::to_value(again).unwrap_or_default();
        for key in ["judged", "counts", "as_of", "since"] {
            self.figures.insert(key.into(), expected[key].clone());
        }
        match found {
            Err(issue) => self.issues.push(issue),
            Ok(found) => {
                self.figures.insert("round_ok".into(), found["ok"].clone());
                if expected["inputs"] != found["inputs"] {
                    let said = found["inputs"].to_string();
                    self.issues.push(Issue::new(
                        "report_stale",
                        "inputs",
                        expected["inputs"].to_string(),
                        said,
                    ));
                }
                self.issues.extend(compare(&SHAPE, &expected, &found));
            }
        }
    }
}
