//! `verify appraise`: the rules of spec/queue-round.md over one directory of inputs, and the colours of its gates.

use super::appraise_rules::APPRAISE_RULES;
use super::bench::{Bench, with_value, without_key};
use super::rules::{check_hashes, check_rules};
use super::trial::{Change, Trial};
use super::{Gates, Verification};
use crate::code::Code;
use crate::files::QueueFiles;
use crate::health::health_appraise;
use crate::planner::Appraiser;
use crate::probe::{appraise_tables, probe_appraise};
use std::io;

/// Runs the list over one directory of inputs, at the clock `now`.
///
/// # Errors
/// The inputs or the temporary directory cannot be read or written: nothing was verified.
pub fn verify_appraise(
    gates: &Gates,
    appraiser: &dyn Appraiser,
    files: &QueueFiles,
    now: i64,
) -> io::Result<Verification> {
    let bench = Bench::of(&[
        ("queue.env", &files.contract),
        ("channels.json", &files.channels),
        ("queue.jsonl", &files.queue),
    ])?;
    let files = QueueFiles::in_dir(bench.dir());
    let trial = Trial {
        bench: &bench,
        command: "appraise",
        make: &|report| appraiser.appraise(&files, now, report),
        due: &|report| match report["malformed_rows"].as_array() {
            Some(rows) if !rows.is_empty() => Code::Problem,
            _ => Code::Clean,
        },
        health: &|report| health_appraise(&gates.health, &files, report, Some(now)),
        probe: &|report| probe_appraise(gates.probe, &files, report, Some(now)).code,
    };
    let mut list = Verification::default();
    let clean = trial.clean(&mut list);
    check_rules(
        &mut list,
        APPRAISE_RULES,
        appraise_tables(&files, &trial.report(), now),
    );
    let inputs = [
        ("contract", &*files.contract),
        ("channels", &*files.channels),
        ("queue", &*files.queue),
    ];
    check_hashes(&mut list, &inputs, &clean);
    trial.reports(&mut list, &clean, "/deliver", "queue.env")?;
    trial.inputs(&mut list, Code::Contract, bad_contracts())?;
    trial.inputs(&mut list, Code::Problem, bad_facts())?;
    Ok(list)
}

fn bad_contracts() -> Vec<Change> {
    let file = "queue.env";
    vec![
        (
            "a contract with a missing key",
            file,
            Box::new(|text| without_key(text, "QUEUE_MAX_ATTEMPTS")),
        ),
        (
            "a contract with a non-integer",
            file,
            Box::new(|text| with_value(text, "QUEUE_BACKOFF_BASE_MS", "30s")),
        ),
        (
            "a contract with a base of 0",
            file,
            Box::new(|text| with_value(text, "QUEUE_BACKOFF_BASE_MS", "0")),
        ),
        (
            "a contract with an unknown unit",
            file,
            Box::new(|text| with_value(text, "QUEUE_DELAY_UNIT", "minutes")),
        ),
        (
            "a contract with another policy",
            file,
            Box::new(|text| with_value(text, "QUEUE_BACKOFF_POLICY", "linear")),
        ),
        ("an empty contract", file, Box::new(|_| String::new())),
    ]
}

fn bad_facts() -> Vec<Change> {
    let file = "channels.json";
    vec![
        ("an empty channel file", file, Box::new(|_| String::new())),
        (
            "a channel file that is a list",
            file,
            Box::new(|_| "[\"email\"]\n".to_owned()),
        ),
        (
            "a channel that is neither enabled nor disabled",
            file,
            Box::new(|_| "{\"email\": {\"enabled\": \"yes\"}}\n".to_owned()),
        ),
    ]
}
