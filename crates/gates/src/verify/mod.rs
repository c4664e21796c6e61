//! The acceptance list: every rule of a spec as a named check (spec/gates.md, verify).
//!
//! Rules over rows are queries over the tables that the probe's SQL derives; the colours of the gates are tried on
//! copies of the inputs, so that the list fails when a planner is wrong and when a gate is blunt.

mod appraise;
mod appraise_rules;
mod bench;
mod plan;
mod plan_rules;
mod rules;
mod trial;

pub use appraise::verify_appraise;
pub use plan::verify_plan;

use crate::code::Code;
use crate::health::Health;
use crate::probe::Probe;

/// The gates that a verification tries. Sound by default; the drill blunts them.
#[derive(Clone, Debug, Default)]
pub struct Gates {
    /// The gate that re-derives with `audit`.
    pub health: Health,
    /// The gate that re-derives in SQL.
    pub probe: Probe,
}

/// One named check and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Named after the clause of the spec.
    pub name: String,
    /// What was found instead; `None` when the check passed.
    pub fault: Option<String>,
}

/// The whole list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// In the order of the spec.
    pub checks: Vec<Check>,
}

impl Verification {
    fn check(&mut self, name: &str, fault: Option<String>) {
        self.checks.push(Check {
            name: name.to_owned(),
            fault,
        });
    }

    fn expect(&mut self, name: &str, expected: Code, found: Code) {
        self.check(
            name,
            (expected != found).then(|| format!("expected exit {expected}, found {found}")),
        );
    }

    /// How many checks failed.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.checks.iter().filter(|check| check.fault.is_some()).count()
    }

    /// 0 when every check passed and there was one, 2 otherwise.
    #[must_use]
    pub fn code(&self) -> Code {
        if self.failed() == 0 && !self.checks.is_empty() {
            Code::Clean
        } else {
            Code::Problem
        }
    }

    /// `PASS`/`FAIL` lines, `PASS=n FAIL=m`, `RESULT: …`.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .checks
            .iter()
            .map(|check| match &check.fault {
                None => format!("PASS {}", check.name),
                Some(fault) => format!("FAIL {}: {fault}", check.name),
            })
            .collect();
        let failed = self.failed();
        lines.push(format!("PASS={} FAIL={failed}", self.checks.len() - failed));
        let word = if self.code() == Code::Clean { "OK" } else { "BAD" };
        lines.push(format!("RESULT: {word}"));
        lines
    }
}
