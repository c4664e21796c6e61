//! `drill appraise`: a faulty appraiser for each known fault, and the colours that its report must give.

mod appraiser;
mod case;

pub use appraiser::AppraiseFault;

/// The worked case of the spec: names and texts of its files.
pub const WORKED_APPRAISE: [(&str, &str); 3] = case::WORKED;

use crate::difference::first_difference;
use crate::table::{Blunt, DrillReport, Row, blunted_rows, key_removed_row};
use appraiser::{QueueTexts, report};
use gates::{Appraiser, Code, Gates, QueueFiles, health_appraise, probe_appraise, verify_appraise};
use serde_json::Value;
use std::io;
use std::path::Path;

/// The sound appraiser with its report replaced by a faulty one.
struct Faulty<'a> {
    sound: &'a dyn Appraiser,
    fault: AppraiseFault,
}

impl Appraiser for Faulty<'_> {
    fn appraise(&self, files: &QueueFiles, now: i64, to: &Path) -> Code {
        let code = self.sound.appraise(files, now, to);
        if code == Code::Contract || !to.exists() {
            return code;
        }
        rewrite(files, now, to, self.fault).map_or(Code::Problem, |()| code)
    }
}

fn texts_of(files: &QueueFiles, now: i64) -> io::Result<QueueTexts> {
    Ok(QueueTexts {
        contract: std::fs::read_to_string(&files.contract)?,
        channels: std::fs::read_to_string(&files.channels)?,
        queue: std::fs::read_to_string(&files.queue)?,
        now,
    })
}

fn rewrite(files: &QueueFiles, now: i64, to: &Path, fault: AppraiseFault) -> io::Result<()> {
    let clean: Value = serde_json::from_str(&std::fs::read_to_string(to)?).map_err(io::Error::other)?;
    let mut faulty = report(&texts_of(files, now)?, &clean["malformed_rows"], Some(fault));
    for key in ["engine", "inputs", "build"] {
        faulty[key] = clean[key].clone();
    }
    std::fs::write(to, faulty.to_string())
}

/// One case laid out in a directory, with its clean report.
struct Case {
    name: &'static str,
    dir: tempfile::TempDir,
    files: QueueFiles,
    now: i64,
    clean: Value,
}

impl Case {
    fn lay(name: &'static str, texts: &QueueTexts, sound: &dyn Appraiser) -> io::Result<Self> {
        let dir = tempfile::tempdir()?;
        let files = QueueFiles::in_dir(dir.path());
        std::fs::write(&files.contract, &texts.contract)?;
        std::fs::write(&files.channels, &texts.channels)?;
        std::fs::write(&files.queue, &texts.queue)?;
        let clean = dir.path().join("clean.json");
        sound.appraise(&files, texts.now, &clean);
        let clean = serde_json::from_str(&std::fs::read_to_string(clean)?).map_err(io::Error::other)?;
        Ok(Self {
            name,
            dir,
            files,
            now: texts.now,
            clean,
        })
    }

    fn colours(&self, gates: &Gates, appraiser: &dyn Appraiser) -> (Code, Code) {
        let report = self.dir.path().join("report.json");
        appraiser.appraise(&self.files, self.now, &report);
        self.judge(gates, &report)
    }

    fn judge(&self, gates: &Gates, report: &Path) -> (Code, Code) {
        (
            health_appraise(&gates.health, &self.files, report, Some(self.now)).code,
            probe_appraise(gates.probe, &self.files, report, Some(self.now)).code,
        )
    }

    fn verify_failures(&self, gates: &Gates, appraiser: &dyn Appraiser) -> io::Result<usize> {
        Ok(verify_appraise(gates, appraiser, &self.files, self.now)?.failed())
    }

    fn is_green(&self, gates: &Gates, appraiser: &dyn Appraiser) -> io::Result<bool> {
        Ok(self.colours(gates, appraiser) == (Code::Clean, Code::Clean)
            && self.verify_failures(gates, appraiser)? == 0)
    }

    /// Where this fault shows in this case, if it does.
    fn exercised(&self, fault: Option<AppraiseFault>) -> io::Result<Option<String>> {
        let texts = texts_of(&self.files, self.now)?;
        let faulty = report(&texts, &self.clean["malformed_rows"], fault);
        Ok(first_difference(&self.clean, &faulty).map(|place| format!("{}: {place}", self.name)))
    }
}

/// Drills the gates of the queue round. `sound` makes the clean reports.
///
/// # Errors
/// A temporary directory cannot be written, or the sound appraiser gives no report: nothing was drilled.
pub fn drill_appraise(gates: &Gates, sound: &dyn Appraiser) -> io::Result<DrillReport> {
    drill_appraise_on(
        gates,
        sound,
        &[("worked", case::worked()), ("generated", case::generated())],
        &AppraiseFault::ALL,
    )
}

fn drill_appraise_on(
    gates: &Gates,
    sound: &dyn Appraiser,
    texts: &[(&'static str, QueueTexts)],
    faults: &[AppraiseFault],
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
        // Without a fault the small appraiser must agree with the sound one, or a difference would prove nothing.
        if let Some(place) = case.exercised(None)? {
            drill.distrust(format!(
                "the drill's own appraiser differs without a fault at {place}"
            ));
        }
    }
    for fault in faults {
        drill.rows.push(drill_one(gates, sound, &cases, *fault)?);
    }
    if let Some(case) = cases.first() {
        let faulty = Faulty {
            sound,
            fault: AppraiseFault::BaseTimesAttempts,
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

fn drill_one(gates: &Gates, sound: &dyn Appraiser, cases: &[Case], fault: AppraiseFault) -> io::Result<Row> {
    for case in cases {
        if let Some(place) = case.exercised(Some(fault))? {
            let faulty = Faulty { sound, fault };
            let colours = case.colours(gates, &faulty);
            let failures = case.verify_failures(gates, &faulty)?;
            return Ok(Row::faulty(fault.what(), place, colours, failures));
        }
    }
    Ok(Row::not_exercised(fault.what()))
}

/// A contract key removed: nothing may be judged, by anybody.
fn key_removed(gates: &Gates, sound: &dyn Appraiser, case: &Case) -> io::Result<Row> {
    let report = case.dir.path().join("report.json");
    sound.appraise(&case.files, case.now, &report);
    let contract = std::fs::read_to_string(&case.files.contract)?;
    let without: String = contract
        .lines()
        .filter(|line| !line.starts_with("QUEUE_MAX_ATTEMPTS"))
        .map(|line| format!("{line}\n"))
        .collect();
    std::fs::write(&case.files.contract, without)?;
    let colours = case.judge(gates, &report);
    let failures = case.verify_failures(gates, sound);
    std::fs::write(&case.files.contract, contract)?;
    Ok(key_removed_row(
        "queue.env: QUEUE_MAX_ATTEMPTS",
        colours,
        failures?,
    ))
}

#[cfg(test)]
pub(crate) mod tests;
