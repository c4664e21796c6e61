//! `drill ledger`: small faulty schedulers write native ledgers, and the judges must name what is wrong with each.

#[cfg(test)]
mod corruptions;
mod faults;
mod records;
mod scenario;
mod scheduler;

use crate::table::{DrillReport, Row, verdict};
use faults::{CLASSES, Class, LedgerFault};
use gates::{Code, Probe, probe_ledger};
use records::Records;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// A judge of ledgers: the kinds of breach that it names in an export folder.
type Judge<'a> = &'a dyn Fn(&Path) -> io::Result<BTreeSet<String>>;

/// Drills the judges of the live ledger: every fault class, written by a small scheduler that has it.
///
/// # Errors
/// A temporary directory cannot be written, or the drill's own contracts are refused: nothing was drilled.
pub fn drill_ledger(probe: Probe) -> io::Result<DrillReport> {
    drill_ledger_with(probe, &audit_kinds, CLASSES)
}

fn drill_ledger_with(probe: Probe, judge: Judge<'_>, classes: &[Class]) -> io::Result<DrillReport> {
    let clean = play(None)?;
    let green = || -> io::Result<bool> {
        let folder = written(&clean)?;
        Ok(judge(folder.path())?.is_empty() && probe_ledger(probe, folder.path(), None).code == Code::Clean)
    };
    let mut drill = DrillReport::begin(green()?);
    for class in classes {
        drill.rows.push(drill_one(probe, judge, &clean, class)?);
    }
    drill.end(green()?);
    Ok(drill)
}

fn drill_one(probe: Probe, judge: Judge<'_>, clean: &Records, class: &Class) -> io::Result<Row> {
    let fault = format!("{} {}", class.id, class.what);
    let records = play(Some(class.fault))?;
    let Some(place) = records.first_difference(clean) else {
        return Ok(Row::not_exercised(&fault));
    };
    let folder = written(&records)?;
    let kinds = judge(folder.path())?;
    let asked = class.sql.then(|| probe_ledger(probe, folder.path(), None));
    let mut missed = Vec::new();
    if !kinds.contains(class.kind) {
        missed.push("audit");
    }
    if let Some(said) = &asked {
        let names = said
            .lines
            .iter()
            .any(|line| line.split(' ').next() == Some(class.kind));
        if !names || said.code != Code::DoesNotHold {
            missed.push("probe");
        }
    }
    Ok(Row {
        fault,
        exercised: Some(format!("{place} ({})", class.kind)),
        health: Some(if kinds.is_empty() {
            Code::Clean
        } else {
            Code::Problem
        }),
        probe: asked.map(|said| said.code),
        verify: None,
        verdict: verdict(&missed),
    })
}

fn play(fault: Option<LedgerFault>) -> io::Result<Records> {
    scheduler::play(fault).map_err(io::Error::other)
}

fn written(records: &Records) -> io::Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    records.write(folder.path())?;
    Ok(folder)
}

/// The kinds that `audit` names.
fn audit_kinds(folder: &Path) -> io::Result<BTreeSet<String>> {
    let report = audit::judge::judge_folder(folder, None, audit::judge::Options::default())
        .map_err(io::Error::other)?;
    let named = report.counts.iter().filter(|(_, count)| **count > 0);
    Ok(named.map(|(kind, _)| kind.word().to_owned()).collect())
}

#[cfg(test)]
pub(crate) mod tests;
