//! `drill plan`: a faulty planner for each known fault, and the colours that its report must give.

mod case;
mod planner;

pub use planner::PlanFault;

/// The worked case of the spec: names and texts of its files.
pub const WORKED_PLAN: [(&str, &str); 3] = case::WORKED;

use crate::difference::first_difference;
use crate::table::{Blunt, DrillReport, Row, blunted_rows, key_removed_row};
use gates::{Code, Gates, Planner, RetryFiles, health_plan, probe_plan, verify_plan};
use planner::{RetryTexts, report};
use serde_json::Value;
use std::io;
use std::path::Path;

/// The sound planner with its report replaced by a faulty one. What the sound one refuses stays refused: a fault of
/// this list is in the rules, and not in the reading.
struct Faulty<'a> {
    sound: &'a dyn Planner,
    faults: &'a [PlanFault],
}

impl Planner for Faulty<'_> {
    fn plan(&self, files: &RetryFiles, to: &Path) -> Code {
        let code = self.sound.plan(files, to);
        if code != Code::Clean {
            return code;
        }
        match rewrite(files, to, self.faults) {
            Ok(()) => Code::Clean,
            Err(_) => Code::Problem,
        }
    }
}

fn rewrite(files: &RetryFiles, to: &Path, faults: &[PlanFault]) -> io::Result<()> {
    let texts = RetryTexts {
        contract: std::fs::read_to_string(&files.contract)?,
        endpoints: std::fs::read_to_string(&files.endpoints)?,
        attempts: std::fs::read_to_string(&files.attempts)?,
    };
    let clean: Value = serde_json::from_str(&std::fs::read_to_string(to)?).map_err(io::Error::other)?;
    let mut faulty = report(&texts, faults);
    for key in ["inputs", "build"] {
        faulty[key] = clean[key].clone();
    }
    std::fs::write(to, faulty.to_string())
}

/// One case laid out in a directory, with its clean report.
struct Case {
    name: &'static str,
    dir: tempfile::TempDir,
    files: RetryFiles,
    clean: Value,
}

impl Case {
    fn lay(name: &'static str, texts: &RetryTexts, sound: &dyn Planner) -> io::Result<Self> {
        let dir = tempfile::tempdir()?;
        let files = RetryFiles::in_dir(dir.path());
        std::fs::write(&files.contract, &texts.contract)?;
        std::fs::write(&files.endpoints, &texts.endpoints)?;
        std::fs::write(&files.attempts, &texts.attempts)?;
        let clean = dir.path().join("clean.json");
        sound.plan(&files, &clean);
        let clean = serde_json::from_str(&std::fs::read_to_string(clean)?).map_err(io::Error::other)?;
        Ok(Self {
            name,
            dir,
            files,
            clean,
        })
    }

    /// The colours of both gates for a planner's report.
    fn colours(&self, gates: &Gates, planner: &dyn Planner) -> (Code, Code) {
        let report = self.dir.path().join("report.json");
        planner.plan(&self.files, &report);
        (
            health_plan(&gates.health, &self.files, &report).code,
            probe_plan(gates.probe, &self.files, &report).code,
        )
    }

    fn verify_failures(&self, gates: &Gates, planner: &dyn Planner) -> io::Result<usize> {
        Ok(verify_plan(gates, planner, &self.files)?.failed())
    }

    fn is_green(&self, gates: &Gates, planner: &dyn Planner) -> io::Result<bool> {
        Ok(self.colours(gates, planner) == (Code::Clean, Code::Clean)
            && self.verify_failures(gates, planner)? == 0)
    }

    /// Where this fault shows in this case, if it does.
    fn exercised(&self, faults: &[PlanFault]) -> io::Result<Option<String>> {
        let texts = RetryTexts {
            contract: std::fs::read_to_string(&self.files.contract)?,
            endpoints: std::fs::read_to_string(&self.files.endpoints)?,
            attempts: std::fs::read_to_string(&self.files.attempts)?,
        };
        Ok(first_difference(&self.clean, &report(&texts, faults))
            .map(|place| format!("{}: {place}", self.name)))
    }
}

/// Drills the gates of the retry round. `sound` makes the clean reports.
///
/// # Errors
/// A temporary directory cannot be written, or the sound planner gives no report: nothing was drilled.
pub fn drill_plan(gates: &Gates, sound: &dyn Planner) -> io::Result<DrillReport> {
    drill_plan_on(
        gates,
        sound,
        &[("worked", case::worked()), ("generated", case::generated())],
        &PlanFault::ALL,
    )
}

fn drill_plan_on(
    gates: &Gates,
    sound: &dyn Planner,
    texts: &[(&'static str, RetryTexts)],
    faults: &[PlanFault],
) -> io::Result<DrillReport> {
    let cases: Vec<Case> = texts
        .iter()
        .map(|(name, texts)| Case::lay(name, texts, sound))
        .collect::<io::Result<_>>()?;
    let green = |cases: &[Case]| {
        cases.iter().try_fold(true, |all, case| {
            Ok::<_, io::Error>(all & case.is_green(gates, sound)?)
        })
    };
    let mut drill = DrillReport::begin(green(&cases)?);
    for case in &cases {
        // Without a fault the small planner must agree with the sound one, or a difference would prove nothing.
        if let Some(place) = case.exercised(&[])? {
            drill.distrust(format!(
                "the drill's own planner differs without a fault at {place}"
            ));
        }
    }
    for fault in faults {
        drill.rows.push(drill_one(gates, sound, &cases, *fault)?);
    }
    if let Some(case) = cases.first() {
        let faulty = Faulty {
            sound,
            faults: &[PlanFault::MaxForMin],
        };
        for (blunt, blunted) in Blunt::each(gates) {
            let colours = case.colours(&blunted, &faulty);
            let clean = case.colours(&blunted, sound);
            let failures = case.verify_failures(&blunted, &faulty)?;
            let on_clean = case.verify_failures(&blunted, sound)?;
            drill
                .rows
                .push(blunted_rows(blunt, colours, clean, (failures, on_clean)));
        }
        drill.rows.push(key_removed(gates, sound, case)?);
    }
    drill.end(green(&cases)?);
    Ok(drill)
}

fn drill_one(gates: &Gates, sound: &dyn Planner, cases: &[Case], fault: PlanFault) -> io::Result<Row> {
    let faults = [fault];
    for case in cases {
        if let Some(place) = case.exercised(&faults)? {
            let faulty = Faulty {
                sound,
                faults: &faults,
            };
            let colours = case.colours(gates, &faulty);
            let failures = case.verify_failures(gates, &faulty)?;
            return Ok(Row::faulty(fault.what(), place, colours, failures));
        }
    }
    Ok(Row::not_exercised(fault.what()))
}

/// A contract key removed: nothing may be judged, by anybody.
fn key_removed(gates: &Gates, sound: &dyn Planner, case: &Case) -> io::Result<Row> {
    let report = case.dir.path().join("report.json");
    sound.plan(&case.files, &report);
    let contract = std::fs::read_to_string(&case.files.contract)?;
    let without: String = contract
        .lines()
        .filter(|line| !line.starts_with("WEBHOOK_BACKOFF_FACTOR"))
        .map(|line| format!("{line}\n"))
        .collect();
    std::fs::write(&case.files.contract, without)?;
    let colours = (
        health_plan(&gates.health, &case.files, &report).code,
        probe_plan(gates.probe, &case.files, &report).code,
    );
    let failures = case.verify_failures(gates, sound);
    std::fs::write(&case.files.contract, contract)?;
    Ok(key_removed_row(
        "retry.env: WEBHOOK_BACKOFF_FACTOR",
        colours,
        failures?,
    ))
}

#[cfg(test)]
pub(crate) mod tests;
