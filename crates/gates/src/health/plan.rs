//! `health plan`: the report of a retry round, derived again and compared.

use super::compare::{Shape, compare};
use super::derive::{self, Failed};
use super::{Health, HealthVerdict, Issue, Judged, hashes, report, stale};
use crate::files::RetryFiles;
use crate::probe::PLAN_SQL;
use serde_json::Value;
use std::path::Path;

const SHAPE: Shape = Shape {
    rows: ("plan", "attempt_id"),
    own: &["inputs", "build"],
};

/// Judges the report of a retry round.
#[must_use]
pub fn health_plan(health: &Health, files: &RetryFiles, report: &Path) -> HealthVerdict {
    let inputs = [
        ("contract", &*files.contract),
        ("endpoints", &*files.endpoints),
        ("attempts", &*files.attempts),
    ];
    let mut judged = Judged::default();
    let found = report::read(report);
    // A summary has no rows: then none are derived, and memory does not grow with the ledger.
    let rows = found.as_ref().is_ok_and(|found| !found["plan"].is_null());
    let (sha256, expected) = std::thread::scope(|scope| {
        let hashing = scope.spawn(|| hashes(&inputs, report, PLAN_SQL));
        let expected = derive::plan(files, rows);
        let hashed = hashing
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (hashed, expected)
    });
    judged.figures.insert("sha256".into(), sha256);
    let expected = match expected {
        Ok(expected) => expected,
        Err(failed) => return health.verdict(judged.failed(failed)),
    };
    judged.contract_available = true;
    figures(&mut judged, &expected);
    match found {
        Err(issue) => judged.issues.push(issue),
        Ok(found) => {
            judged.figures.insert("round_ok".into(), found["ok"].clone());
            judged
                .issues
                .extend(stale(&inputs, &judged.figures["sha256"], &found));
            judged.issues.extend(compare(&SHAPE, &expected, &found));
            judged.issues.extend(build(&found));
        }
    }
    health.verdict(judged)
}

fn figures(judged: &mut Judged, expected: &Value) {
    for (name, pointer) in [
        ("attempts", "/totals/attempts"),
        ("endpoints", "/totals/endpoints"),
        ("too_early", "/totals/too_early"),
        ("backoff_s", "/totals/backoff_s"),
        ("succeeded", "/counts/succeeded"),
        ("exhausted", "/counts/exhausted"),
        ("skipped", "/counts/skipped"),
        ("over_dead_letter", "/over_dead_letter"),
    ] {
        let value = expected.pointer(pointer).cloned().unwrap_or(Value::Null);
        judged.figures.insert(name.into(), value);
    }
}

/// `build` is the report's own word: it must be there, and nothing more is asked of it.
pub(super) fn build(found: &Value) -> Option<Issue> {
    let named = found["build"].as_str().is_some_and(|build| !build.is_empty());
    (!named).then(|| {
        Issue::new(
            "field_mismatch",
            "build",
            "the build that made the report",
            found["build"].to_string(),
        )
    })
}

impl Judged {
    /// What kept the gate from judging.
    pub(super) fn failed(mut self, failed: Failed) -> Self {
        let (code, why) = match failed {
            Failed::Contract(why) => ("contract_unusable", why),
            Failed::Facts(why) => {
                self.contract_available = true;
                ("facts_unavailable", why)
            }
        };
        self.issues
            .push(Issue::new(code, "inputs", "inputs that can be judged", why));
        self
    }
}
