//! One directory, one planner and the gates around it: changes an input or the report and looks at the colours.

use super::Verification;
use super::bench::{Bench, tampered};
use crate::code::Code;
use crate::health::HealthVerdict;
use std::io;
use std::path::{Path, PathBuf};

/// The same trials for both rounds; what differs comes in as functions.
pub(super) struct Trial<'a> {
    pub(super) bench: &'a Bench,
    /// The command that makes reports: `plan` or `appraise`.
    pub(super) command: &'static str,
    pub(super) make: &'a dyn Fn(&Path) -> Code,
    /// What the command must end with for this report: a queue with malformed lines has a report and code 2.
    pub(super) due: &'a dyn Fn(&serde_json::Value) -> Code,
    pub(super) health: &'a dyn Fn(&Path) -> HealthVerdict,
    pub(super) probe: &'a dyn Fn(&Path) -> Code,
}

/// A name, the file it changes, and the change.
pub(super) type Change = (&'static str, &'static str, Box<dyn Fn(&str) -> String>);

impl Trial<'_> {
    pub(super) fn report(&self) -> PathBuf {
        self.bench.path("report.json")
    }

    fn expect(&self, list: &mut Verification, what: &str, health: Code, probe: Code) {
        let report = self.report();
        list.expect(
            &format!("health: exit {health} on {what}"),
            health,
            (self.health)(&report).code,
        );
        list.expect(
            &format!("probe: exit {probe} on {what}"),
            probe,
            (self.probe)(&report),
        );
    }

    /// Makes the report, twice; gives its text.
    pub(super) fn clean(&self, list: &mut Verification) -> String {
        let command = self.command;
        let made = (self.make)(&self.report());
        let clean = self.bench.read("report.json").unwrap_or_default();
        let due = (self.due)(&serde_json::from_str(&clean).unwrap_or_default());
        list.expect(&format!("{command}: exit {due} on these inputs"), due, made);
        (self.make)(&self.bench.path("again.json"));
        let same = !clean.is_empty() && self.bench.read("again.json").is_ok_and(|again| again == clean);
        list.check(
            &format!("{command}: the same inputs give the same report"),
            (!same).then(|| "two runs differ".to_owned()),
        );
        clean
    }

    /// The colours for a report that is clean, changed, cut, missing or stale.
    pub(super) fn reports(
        &self,
        list: &mut Verification,
        clean: &str,
        total: &str,
        contract: &str,
    ) -> io::Result<()> {
        let verdict = (self.health)(&self.report());
        let named = verdict.json["checks"]
            .as_array()
            .is_some_and(|names| !names.is_empty());
        list.check(
            "health: the list of its checks is printed and not empty",
            (!named).then(|| "the list is empty".to_owned()),
        );
        self.expect(list, "a clean report", Code::Clean, Code::Clean);
        let key = total.rsplit('/').next().unwrap_or(total);
        let edited = tampered(clean, |report| {
            if let Some(value) = report.pointer_mut(total) {
                *value = value.as_i64().unwrap_or(0).wrapping_add(1).into();
            }
        });
        self.bench.write("report.json", &edited)?;
        self.expect(list, "a tampered report", Code::Problem, Code::DoesNotHold);
        self.bench.write(
            "report.json",
            &tampered(clean, |report| report["extra"] = 1.into()),
        )?;
        self.expect(
            list,
            "a report with a field too many",
            Code::Problem,
            Code::DoesNotHold,
        );
        let short = tampered(clean, |report| {
            let parent = report.pointer_mut(total.strip_suffix(key).unwrap_or(total).trim_end_matches('/'));
            parent
                .and_then(|parent| parent.as_object_mut())
                .map(|object| object.remove(key));
        });
        self.bench.write("report.json", &short)?;
        self.expect(
            list,
            "a report with a field too few",
            Code::Problem,
            Code::DoesNotHold,
        );
        self.bench
            .write("report.json", clean.get(..clean.len() / 2).unwrap_or("{"))?;
        self.expect(list, "a truncated report", Code::Problem, Code::Problem);
        std::fs::remove_file(self.report())?;
        self.expect(list, "a missing report", Code::Problem, Code::Problem);
        self.bench.write("report.json", clean)?;
        let stale = self
            .bench
            .with(contract, &|text| format!("{text}# changed since\n"), || {
                (self.health)(&self.report()).code
            })?;
        list.expect("health: exit 2 on a stale report", Code::Problem, stale);
        Ok(())
    }

    /// The exit code of the command and of both gates for each changed input; nothing may be written.
    pub(super) fn inputs(&self, list: &mut Verification, code: Code, changes: Vec<Change>) -> io::Result<()> {
        let command = self.command;
        for (what, file, change) in changes {
            let other = self.bench.path("other.json");
            let (made, written, health, probe) = self.bench.with(file, &*change, || {
                let made = (self.make)(&other);
                let report = self.report();
                (
                    made,
                    other.exists(),
                    (self.health)(&report).code,
                    (self.probe)(&report),
                )
            })?;
            list.expect(&format!("{command}: exit {code} on {what}"), code, made);
            list.check(
                &format!("{command}: nothing is written on {what}"),
                written.then(|| "a report was written".to_owned()),
            );
            list.expect(&format!("health: exit {code} on {what}"), code, health);
            list.expect(&format!("probe: exit {code} on {what}"), code, probe);
        }
        Ok(())
    }
}
