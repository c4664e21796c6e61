//! The table of a drill: a row a fault, the colours it got, and whether they are the ones it must get.

use gates::{Code, Gates};
use serde_json::{Value, json};

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What is wrong.
    pub fault: String,
    /// The row that exercised it; `None` when none did.
    pub exercised: Option<String>,
    /// The colour of `health` (for a ledger: of `audit`).
    pub health: Option<Code>,
    /// The colour of `probe`; `None` where it is not asked.
    pub probe: Option<Code>,
    /// By how many checks `verify` failed; `None` where it is not asked.
    pub verify: Option<usize>,
    /// `CAUGHT`, `MISSED …` or `NOT EXERCISED`.
    pub verdict: String,
}

impl Row {
    /// True when the gates showed what they must.
    #[must_use]
    pub fn caught(&self) -> bool {
        self.verdict == "CAUGHT"
    }

    pub(crate) fn not_exercised(fault: &str) -> Self {
        Self {
            fault: fault.to_owned(),
            exercised: None,
            health: None,
            probe: None,
            verify: None,
            verdict: "NOT EXERCISED".to_owned(),
        }
    }

    /// A faulty report: `health` exits 2, `probe` exits 1, `verify` fails.
    pub(crate) fn faulty(fault: &str, place: String, (health, probe): (Code, Code), failures: usize) -> Self {
        let mut stayed = Vec::new();
        if health != Code::Problem {
            stayed.push("health");
        }
        if probe != Code::DoesNotHold {
            stayed.push("probe");
        }
        if failures == 0 {
            stayed.push("verify");
        }
        Self {
            fault: fault.to_owned(),
            exercised: Some(place),
            health: Some(health),
            probe: Some(probe),
            verify: Some(failures),
            verdict: verdict(&stayed),
        }
    }
}

pub(crate) fn verdict(stayed: &[&str]) -> String {
    if stayed.is_empty() {
        "CAUGHT".to_owned()
    } else {
        format!("MISSED by {}", stayed.join(", "))
    }
}

/// A way to blunt a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blunt {
    EmptyChecks,
    HealthForced,
    ProbeForced,
}

impl Blunt {
    /// Each way, and the gates blunted by it.
    pub(crate) fn each(gates: &Gates) -> [(Self, Gates); 3] {
        [Self::EmptyChecks, Self::HealthForced, Self::ProbeForced].map(|blunt| {
            let mut blunted = gates.clone();
            match blunt {
                Self::EmptyChecks => blunted.health.checks.clear(),
                Self::HealthForced => blunted.health.forced_exit = Some(Code::Clean),
                Self::ProbeForced => blunted.probe.forced_exit = Some(Code::Clean),
            }
            (blunt, blunted)
        })
    }

    const fn what(self) -> &'static str {
        match self {
            Self::EmptyChecks => "health: check list emptied",
            Self::HealthForced => "health: exit code forced to 0",
            Self::ProbeForced => "probe: exit code forced to 0",
        }
    }
}

/// A blunted gate over a faulty report: the other gate must be red, and `verify` must fail even for the sound planner.
/// An emptied list must moreover turn `health` itself red, for the clean report too.
pub(crate) fn blunted_rows(
    blunt: Blunt,
    (health, probe): (Code, Code),
    on_clean: (Code, Code),
    (failures, failures_on_clean): (usize, usize),
) -> Row {
    let mut stayed = Vec::new();
    if blunt == Blunt::EmptyChecks && (health != Code::Problem || on_clean.0 != Code::Problem) {
        stayed.push("health (no_checks)");
    }
    if blunt != Blunt::ProbeForced && probe != Code::DoesNotHold {
        stayed.push("probe");
    }
    if blunt == Blunt::ProbeForced && health != Code::Problem {
        stayed.push("health");
    }
    if failures == 0 || failures_on_clean == 0 {
        stayed.push("verify");
    }
    Row {
        fault: blunt.what().to_owned(),
        exercised: Some(format!(
            "faulty report; on a clean one verify fails by {failures_on_clean}"
        )),
        health: Some(health),
        probe: Some(probe),
        verify: Some(failures),
        verdict: verdict(&stayed),
    }
}

/// A contract key removed: both gates end with 3, and `verify` fails.
pub(crate) fn key_removed_row(place: &str, (health, probe): (Code, Code), failures: usize) -> Row {
    let mut stayed = Vec::new();
    if health != Code::Contract {
        stayed.push("health");
    }
    if probe != Code::Contract {
        stayed.push("probe");
    }
    if failures == 0 {
        stayed.push("verify");
    }
    Row {
        fault: "a contract key removed".to_owned(),
        exercised: Some(place.to_owned()),
        health: Some(health),
        probe: Some(probe),
        verify: Some(failures),
        verdict: verdict(&stayed),
    }
}

/// A whole drill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrillReport {
    /// A row a fault.
    pub rows: Vec<Row>,
    /// The clean report was green before the first fault.
    pub green_before: bool,
    /// The clean report was green after the last one.
    pub green_after: bool,
    /// Why the drill itself cannot be trusted.
    pub distrust: Vec<String>,
}

impl DrillReport {
    pub(crate) fn begin(green: bool) -> Self {
        Self {
            rows: Vec::new(),
            green_before: green,
            green_after: false,
            distrust: Vec::new(),
        }
    }

    pub(crate) fn end(&mut self, green: bool) {
        self.green_after = green;
    }

    pub(crate) fn distrust(&mut self, why: String) {
        self.distrust.push(why);
    }

    /// 0 when every fault was exercised and caught and the clean report stayed green; 2 otherwise.
    #[must_use]
    pub fn code(&self) -> Code {
        let sound = self.green_before && self.green_after && self.distrust.is_empty();
        if sound && !self.rows.is_empty() && self.rows.iter().all(Row::caught) {
            Code::Clean
        } else {
            Code::Problem
        }
    }

    /// The lines under the table.
    #[must_use]
    pub fn summary(&self) -> Vec<String> {
        let colour = |green| if green { "green" } else { "NOT GREEN" };
        let caught = self.rows.iter().filter(|row| row.caught()).count();
        let idle = self.rows.iter().filter(|row| row.exercised.is_none()).count();
        let mut lines: Vec<String> = self
            .distrust
            .iter()
            .map(|why| format!("NOT TO BE TRUSTED: {why}"))
            .collect();
        lines.push(format!(
            "clean report: {} before, {} after",
            colour(self.green_before),
            colour(self.green_after)
        ));
        lines.push(format!(
            "CAUGHT={caught} MISSED={} NOT EXERCISED={idle}",
            self.rows.len() - caught - idle
        ));
        let word = if self.code() == Code::Clean { "OK" } else { "BAD" };
        lines.push(format!("RESULT: {word}"));
        lines
    }

    /// The whole drill for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                json!({"fault": row.fault, "exercised": row.exercised, "health": row.health.map(Code::number), "probe": row.probe.map(Code::number), "verify": row.verify, "verdict": row.verdict})
            })
            .collect();
        json!({"rows": rows, "green_before": self.green_before, "green_after": self.green_after, "distrust": self.distrust, "ok": self.code() == Code::Clean})
    }
}
