//! `probe plan` and `probe appraise`: the raw files of a round, one row a line, under the SQL of that round.

use super::{Probe, ProbeVerdict, broken, load_lines, read_all, read_verdict};
use crate::code::Code;
use crate::files::{QueueFiles, RetryFiles};
use rusqlite::Connection;
use std::path::Path;

/// The whole law of the retry round.
pub const PLAN_SQL: &str = include_str!("../../../../probe/plan.sql");
/// The whole law of the queue round.
pub const APPRAISE_SQL: &str = include_str!("../../../../probe/appraise.sql");

/// Judges the report of a retry round.
#[must_use]
pub fn probe_plan(probe: Probe, files: &RetryFiles, report: &Path) -> ProbeVerdict {
    let texts = read_all([
        (&files.contract, Code::Contract),
        (&files.endpoints, Code::Problem),
        (&files.attempts, Code::Problem),
        (report, Code::Problem),
    ]);
    probe.finish(texts.map_or_else(
        |verdict| verdict,
        |[contract, endpoints, attempts, report]| {
            plan(&contract, &endpoints, &attempts, &report).unwrap_or_else(|error| broken(&error))
        },
    ))
}

fn plan(contract: &str, endpoints: &str, attempts: &str, report: &str) -> rusqlite::Result<ProbeVerdict> {
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
    read_verdict(&db)
}

/// Judges the report of a queue round, at the report's own clock or at `now`.
#[must_use]
pub fn probe_appraise(probe: Probe, files: &QueueFiles, report: &Path, now: Option<i64>) -> ProbeVerdict {
    let texts = read_all([
        (&files.contract, Code::Contract),
        (&files.channels, Code::Problem),
        (&files.queue, Code::Problem),
        (report, Code::Problem),
    ]);
    probe.finish(texts.map_or_else(
        |verdict| verdict,
        |[contract, channels, queue, report]| {
            appraise(&contract, &channels, &queue, &report, now).unwrap_or_else(|error| broken(&error))
        },
    ))
}

fn appraise(
    contract: &str,
    channels: &str,
    queue: &str,
    report: &str,
    now: Option<i64>,
) -> rusqlite::Result<ProbeVerdict> {
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
    read_verdict(&db)
}
