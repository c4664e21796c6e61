//! `probe plan` and `probe appraise`: the raw files of a round, one row a line, under the SQL of that round.

use super::{Probe, ProbeVerdict, broken, describe, load_lines, read_all, read_verdict};
use crate::code::Code;
use crate::files::{QueueFiles, ReadError, RetryFiles};
use rusqlite::Connection;
use std::path::Path;

/// The whole law of the retry round.
pub const PLAN_SQL: &str = include_str!("../../../../probe/plan.sql");
/// The whole law of the queue round.
pub const APPRAISE_SQL: &str = include_str!("../../../../probe/appraise.sql");

/// Judges the report of a retry round.
#[must_use]
pub fn probe_plan(probe: Probe, files: &RetryFiles, report: &Path) -> ProbeVerdict {
    probe.finish(plan_texts(files, report).map_or_else(
        |verdict| verdict,
        |texts| {
            plan(&texts)
                .and_then(|db| read_verdict(&db))
                .unwrap_or_else(|error| broken(&error))
        },
    ))
}

/// The tables that the SQL derives from the files and a report, for the rules of `verify`.
pub(crate) fn plan_tables(files: &RetryFiles, report: &Path) -> Result<Connection, String> {
    let texts = plan_texts(files, report).map_err(|verdict| verdict.lines.join("; "))?;
    judged(plan(&texts))
}

fn plan_texts(files: &RetryFiles, report: &Path) -> Result<[String; 4], ProbeVerdict> {
    read_all([
        (&files.contract, Code::Contract),
        (&files.endpoints, Code::Problem),
        (&files.attempts, Code::Problem),
        (report, Code::Problem),
    ])
}

fn plan([contract, endpoints, attempts, report]: &[String; 4]) -> rusqlite::Result<Connection> {
    let mut db = Connection::open_in_memory()?;
    let load = db.transaction()?;
    load.execute_batch(
        "CREATE TABLE raw_contract  (line TEXT NOT NULL) STRICT;
         CREATE TABLE raw_endpoints (line TEXT NOT NULL) STRICT;
         CREATE TABLE raw_attempts  (line TEXT NOT NULL) STRICT;
         CREATE TABLE raw_report    (text TEXT) STRICT;",
    )?;
    load_lines(&load, "raw_contract", contract)?;
    load_lines(&load, "raw_endpoints", endpoints)?;
    load_lines(&load, "raw_attempts", attempts)?;
    load.execute("INSERT INTO raw_report VALUES (?1)", [report])?;
    load.execute_batch(PLAN_SQL)?;
    load.commit()?;
    Ok(db)
}

/// Judges the report of a queue round, at the report's own clock or at `now`.
#[must_use]
pub fn probe_appraise(probe: Probe, files: &QueueFiles, report: &Path, now: Option<i64>) -> ProbeVerdict {
    probe.finish(appraise_texts(files, report).map_or_else(
        |verdict| verdict,
        |texts| {
            appraise(&texts, now)
                .and_then(|db| read_verdict(&db))
                .unwrap_or_else(|error| broken(&error))
        },
    ))
}

/// The tables that the SQL derives from the files and a report, for the rules of `verify`.
pub(crate) fn appraise_tables(files: &QueueFiles, report: &Path, now: i64) -> Result<Connection, String> {
    let texts = appraise_texts(files, report).map_err(|verdict| verdict.lines.join("; "))?;
    judged(appraise(&texts, Some(now)))
}

fn appraise_texts(files: &QueueFiles, report: &Path) -> Result<[String; 4], ProbeVerdict> {
    let queue = read_lines_alone(&files.queue);
    let [contract, channels, report] = read_all([
        (&files.contract, Code::Contract),
        (&files.channels, Code::Problem),
        (report, Code::Problem),
    ])?;
    match queue {
        Ok(queue) => Ok([contract, channels, queue, report]),
        Err(error) => Err(ProbeVerdict::not_judged(Code::Problem, vec![describe(&error)])),
    }
}

/// A file whose lines are independent: one that is no text SQL can take becomes U+FFFD, which is no JSON either, so
/// that the SQL lists that line alone as malformed.
fn read_lines_alone(path: &Path) -> Result<String, ReadError> {
    let bytes = std::fs::read(path).map_err(|source| ReadError::Io {
        path: path.to_owned(),
        source,
    })?;
    let lines = bytes
        .split(|byte| *byte == b'\n')
        .map(|line| match std::str::from_utf8(line) {
            Ok(text) if !text.contains('\0') => text,
            _ => "\u{fffd}",
        });
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

fn appraise(
    [contract, channels, queue, report]: &[String; 4],
    now: Option<i64>,
) -> rusqlite::Result<Connection> {
    let mut db = Connection::open_in_memory()?;
    let load = db.transaction()?;
    load.execute_batch(
        "CREATE TABLE raw_contract (line TEXT NOT NULL) STRICT;
         CREATE TABLE raw_queue    (line TEXT NOT NULL) STRICT;
         CREATE TABLE raw_channels (text TEXT) STRICT;
         CREATE TABLE raw_report   (text TEXT) STRICT;
         CREATE TABLE chosen       (now INTEGER) STRICT;",
    )?;
    load_lines(&load, "raw_contract", contract)?;
    load_lines(&load, "raw_queue", queue)?;
    load.execute("INSERT INTO raw_channels VALUES (?1)", [channels])?;
    load.execute("INSERT INTO raw_report VALUES (?1)", [report])?;
    if let Some(now) = now {
        load.execute("INSERT INTO chosen VALUES (?1)", [now])?;
    }
    load.execute_batch(APPRAISE_SQL)?;
    load.commit()?;
    Ok(db)
}

/// The database, unless the report could not be judged at all.
fn judged(db: rusqlite::Result<Connection>) -> Result<Connection, String> {
    let db = db.map_err(|error| error.to_string())?;
    let verdict = read_verdict(&db).map_err(|error| error.to_string())?;
    if verdict.code > Code::DoesNotHold {
        return Err(verdict.lines.join("; "));
    }
    Ok(db)
}
