//! health: re-derives a report from contract and facts with `audit`, compares field by field, prints one JSON object.
//!
//! Says that a report is faithful, not that the round went well: `round_ok` repeats the report's own word.

mod appraise;
mod compare;
mod derive;
mod ledger;
mod plan;
mod report;

pub use appraise::health_appraise;
pub use ledger::health_ledger;
pub use plan::health_plan;

use crate::code::Code;
use crate::files::{sha256_of, sha256_of_file};
use serde_json::{Map, Value, json};
use std::path::Path;

/// Something that makes a report unfaithful, or that kept it from being judged. The codes are stable words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// `report_unavailable`, `report_stale`, `field_mismatch`, `row_missing`, `row_extra`, `no_checks`,
    /// `facts_unavailable` or `contract_unusable`.
    pub code: &'static str,
    /// Where: a row and field, a figure, or a file.
    pub place: String,
    /// What would be right.
    pub expected: String,
    /// What was found.
    pub found: String,
}

impl Issue {
    pub(crate) fn new(
        code: &'static str,
        place: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self {
            code,
            place: place.into(),
            expected: expected.into(),
            found: found.into(),
        }
    }

    fn to_json(&self) -> Value {
        json!({"code": self.code, "place": self.place, "expected": self.expected, "found": self.found})
    }
}

/// A check of the health gate: which issues it is there to see.
#[derive(Clone, Copy, Debug)]
pub struct HealthCheck {
    /// Its name in the printed list.
    pub name: &'static str,
    covers: fn(&Issue) -> bool,
}

/// Every check, for each round and for the ledger alike.
pub const CHECKS: &[HealthCheck] = &[
    HealthCheck {
        name: "report_available",
        covers: |issue| issue.code == "report_unavailable",
    },
    HealthCheck {
        name: "report_fresh",
        covers: |issue| issue.code == "report_stale",
    },
    HealthCheck {
        name: "rows_complete",
        covers: |issue| issue.code == "row_missing",
    },
    HealthCheck {
        name: "rows_none_extra",
        covers: |issue| issue.code == "row_extra",
    },
    HealthCheck {
        name: "fields",
        covers: |issue| issue.code == "field_mismatch",
    },
];

/// The gate. Sound by default; blunted by tests and by the drill, in code alone.
#[derive(Clone, Debug)]
pub struct Health {
    /// What it looks at.
    pub checks: Vec<HealthCheck>,
    /// Ends with this whatever it found.
    pub forced_exit: Option<Code>,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            checks: CHECKS.to_vec(),
            forced_exit: None,
        }
    }
}

/// What the gate says.
#[derive(Clone, Debug, PartialEq)]
pub struct HealthVerdict {
    /// 0 faithful, 2 not or cannot be judged, 3 contract unusable.
    pub code: Code,
    /// The one object that is printed.
    pub json: Value,
}

/// What a judgement found, before the checks looked at it.
#[derive(Debug, Default)]
struct Judged {
    contract_available: bool,
    issues: Vec<Issue>,
    figures: Map<String, Value>,
}

impl Health {
    /// Lets each check look at what was found, and puts the object together.
    fn verdict(&self, judged: Judged) -> HealthVerdict {
        let Judged {
            contract_available,
            issues,
            mut figures,
        } = judged;
        // What kept the gate from judging is no check's business: it is always an issue.
        let mut seen: Vec<&Issue> = issues
            .iter()
            .filter(|issue| {
                matches!(issue.code, "facts_unavailable" | "contract_unusable")
                    || self.checks.iter().any(|check| (check.covers)(issue))
            })
            .collect();
        let none = Issue::new("no_checks", "checks", "at least one check", "an empty list");
        if self.checks.is_empty() {
            seen.push(&none);
        }
        let code = match (contract_available, seen.is_empty()) {
            (false, _) => Code::Contract,
            (true, true) => Code::Clean,
            (true, false) => Code::Problem,
        };
        let names: Vec<&str> = self.checks.iter().map(|check| check.name).collect();
        let mut object = Map::new();
        object.insert("degraded".into(), json!(code != Code::Clean));
        object.insert(
            "issues".into(),
            seen.iter().map(|issue| issue.to_json()).collect(),
        );
        object.insert("checks".into(), json!(names));
        object.insert("contract_available".into(), json!(contract_available));
        object.insert("mismatch".into(), json!(seen.len()));
        object.append(&mut figures);
        HealthVerdict {
            code: self.forced_exit.unwrap_or(code),
            json: Value::Object(object),
        }
    }
}

/// The SHA-256 of every input, of the report and of the SQL, so that a stale image shows itself.
fn hashes(inputs: &[(&str, &Path)], report: &Path, sql: &str) -> Value {
    let mut all = Map::new();
    for (name, path) in inputs.iter().copied().chain([("report", report)]) {
        all.insert(name.to_owned(), sha256_of_file(path).into());
    }
    all.insert("sql".to_owned(), sha256_of(sql.as_bytes()).into());
    Value::Object(all)
}

/// The report's `inputs` are the hashes of these very files, no more and no fewer.
fn stale(inputs: &[(&str, &Path)], hashes: &Value, found: &Value) -> Vec<Issue> {
    let none = Map::new();
    let said = found["inputs"].as_object().unwrap_or(&none);
    let differs = inputs.iter().filter_map(|(name, _)| {
        let due = hashes[*name].as_str()?;
        let said = said.get(*name).and_then(Value::as_str).unwrap_or("nothing");
        (due != said).then(|| Issue::new("report_stale", format!("inputs.{name}"), due, said))
    });
    let extra = said
        .keys()
        .filter(|key| !inputs.iter().any(|(name, _)| name == key));
    let extra = extra.map(|key| Issue::new("field_mismatch", format!("inputs.{key}"), "nothing", "a hash"));
    differs.chain(extra).collect()
}
