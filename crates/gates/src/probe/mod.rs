//! The outside judge: loads raw files into an in-memory SQLite database and runs the SQL under `probe/`.
//!
//! The law stands in the SQL alone. This module loads lines, runs a file and prints its verdict; it holds no rule.

mod ledger;
mod rounds;

pub use ledger::{LEDGER_SQL, probe_ledger};
pub use rounds::{APPRAISE_SQL, PLAN_SQL, probe_appraise, probe_plan};
pub(crate) use rounds::{appraise_tables, plan_tables};

use crate::code::Code;
use crate::files::{ReadError, read_text};
use rusqlite::Connection;
use std::path::Path;

/// What a probe says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeVerdict {
    /// 0 holds, 1 does not hold, 2 facts unusable, 3 contract unusable.
    pub code: Code,
    /// A line a mismatch, then `RESULT: …`.
    pub lines: Vec<String>,
}

impl ProbeVerdict {
    fn not_judged(code: Code, lines: Vec<String>) -> Self {
        let what = if code == Code::Contract {
            "contract"
        } else {
            "facts"
        };
        let mut lines = lines;
        lines.push(format!("RESULT: NOT JUDGED ({what} unusable)"));
        Self { code, lines }
    }

    /// The mismatches alone, without the line that sums up.
    #[must_use]
    pub fn mismatches(&self) -> &[String] {
        self.lines.split_last().map_or(&[], |(_, rest)| rest)
    }
}

/// The probe as a gate. Blunted by tests and by the drill, in code alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// Ends with this whatever it found.
    pub forced_exit: Option<Code>,
}

impl Probe {
    pub(crate) fn finish(self, mut verdict: ProbeVerdict) -> ProbeVerdict {
        if let Some(code) = self.forced_exit {
            verdict.code = code;
        }
        verdict
    }
}

/// An error of the database itself: it is the operator's, and never a verdict.
fn broken(error: &rusqlite::Error) -> ProbeVerdict {
    ProbeVerdict::not_judged(Code::Problem, vec![format!("probe: SQLite says: {error}")])
}

/// Loads each line of a file as one row; its rowid is its line number.
fn load_lines(db: &Connection, table: &str, text: &str) -> rusqlite::Result<()> {
    let mut insert = db.prepare(&format!("INSERT INTO {table} (line) VALUES (?1)"))?;
    let body = text.strip_suffix('\n').unwrap_or(text);
    if text.is_empty() {
        return Ok(());
    }
    for line in body.split('\n') {
        insert.execute([line])?;
    }
    Ok(())
}

/// Reads the files in turn; every one that cannot be read is named. A contract's fault beats one of the facts.
fn read_all<const N: usize>(files: [(&Path, Code); N]) -> Result<[String; N], ProbeVerdict> {
    let mut faults: Vec<(Code, ReadError)> = Vec::new();
    let texts = files.map(|(path, code)| {
        read_text(path).unwrap_or_else(|error| {
            faults.push((code, error));
            String::new()
        })
    });
    match faults.iter().map(|fault| fault.0).max() {
        None => Ok(texts),
        Some(worst) => Err(ProbeVerdict::not_judged(
            worst,
            faults
                .iter()
                .filter(|fault| fault.0 == worst)
                .map(|fault| describe(&fault.1))
                .collect(),
        )),
    }
}

fn describe(error: &ReadError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error} ({source})"),
        None => error.to_string(),
    }
}

/// Reads the verdict that the SQL left in its table.
fn read_verdict(db: &Connection) -> rusqlite::Result<ProbeVerdict> {
    let lines: Vec<String> = db
        .prepare("SELECT line FROM verdict ORDER BY place, line")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let code = match lines.last().map(String::as_str) {
        Some("RESULT: OK") => Code::Clean,
        Some(line) if line.starts_with("RESULT: BAD") => Code::DoesNotHold,
        Some("RESULT: NOT JUDGED (contract unusable)") => Code::Contract,
        _ => Code::Problem,
    };
    Ok(ProbeVerdict { code, lines })
}
