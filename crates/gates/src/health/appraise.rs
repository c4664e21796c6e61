//! `health appraise`: the report of a queue round, derived again at its own clock or at another, and compared.

use super::compare::{Shape, compare};
use super::derive;
use super::plan::build;
use super::{Health, HealthVerdict, Issue, Judged, hashes, report, stale};
use crate::files::QueueFiles;
use crate::probe::APPRAISE_SQL;
use contract::rounds::QueueRoundContract;
use serde_json::Value;
use std::path::Path;

const SHAPE: Shape = Shape {
    rows: ("results", "id"),
    // What is wrong with a malformed line is prose; which lines they are is compared below.
    own: &["inputs", "build", "malformed_rows"],
};

/// Judges the report of a queue round. Without `now` it is judged at the report's own clock, which is flagged.
#[must_use]
pub fn health_appraise(
    health: &Health,
    files: &QueueFiles,
    report: &Path,
    now: Option<i64>,
) -> HealthVerdict {
    let inputs = [
        ("contract", &*files.contract),
        ("channels", &*files.channels),
        ("queue", &*files.queue),
    ];
    let mut judged = Judged::default();
    judged
        .figures
        .insert("sha256".into(), hashes(&inputs, report, APPRAISE_SQL));
    judged
        .figures
        .insert("now_from_report".into(), now.is_none().into());
    let found = report::read(report);
    let clock = now.or_else(|| found.as_ref().ok()?["now"].as_i64());
    // Without any clock the contract and the facts are still read: a contract's fault beats a report's.
    let (expected, contract) = match derive::appraise(files, clock.unwrap_or(0)) {
        Ok(derived) => derived,
        Err(failed) => return health.verdict(judged.failed(failed)),
    };
    judged.contract_available = true;
    match found {
        Err(issue) => judged.issues.push(issue),
        Ok(_) if clock.is_none() => {
            judged.issues.push(Issue::new(
                "report_unavailable",
                "now",
                "an integer `now`",
                "none",
            ));
        }
        Ok(found) => {
            judged.figures.insert("round_ok".into(), found["ok"].clone());
            judged
                .issues
                .extend(stale(&inputs, &judged.figures["sha256"], &found));
            judged.issues.extend(compare(&SHAPE, &expected, &found));
            judged.issues.extend(malformed(&expected, &found));
            judged.issues.extend(build(&found));
        }
    }
    figures(&mut judged, &contract, &expected);
    health.verdict(judged)
}

fn figures(judged: &mut Judged, contract: &QueueRoundContract, expected: &Value) {
    for name in ["block", "dead", "defer", "deliver", "delay_unit", "items_total"] {
        judged.figures.insert(name.into(), expected[name].clone());
    }
    judged
        .figures
        .insert("backoff_base_ms".into(), contract.backoff_base_ms.into());
    judged
        .figures
        .insert("max_attempts".into(), contract.max_attempts.into());
}

/// The malformed lines, by number.
fn malformed(expected: &Value, found: &Value) -> Option<Issue> {
    let lines = |report: &Value| -> Option<Vec<Option<u64>>> {
        Some(
            report["malformed_rows"]
                .as_array()?
                .iter()
                .map(|row| row["line"].as_u64())
                .collect(),
        )
    };
    let (due, said) = (lines(expected), lines(found));
    (due != said).then(|| {
        Issue::new(
            "field_mismatch",
            "malformed_rows",
            format!("lines {due:?}"),
            format!("lines {said:?}"),
        )
    })
}
