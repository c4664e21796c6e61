//! `verify plan`: the rules of spec/retry-round.md over one directory of inputs, and the colours of its gates.

use super::bench::{Bench, with_value, without_key};
use super::plan_rules::PLAN_RULES;
use super::rules::{check_hashes, check_rules};
use super::trial::{Change, Trial};
use super::{Gates, Verification};
use crate::code::Code;
use crate::files::RetryFiles;
use crate::health::health_plan;
use crate::planner::Planner;
use crate::probe::{plan_tables, probe_plan};
use std::io;

/// Runs the list over one directory of inputs.
///
/// # Errors
/// The inputs or the temporary directory cannot be read or written: nothing was verified.
pub fn verify_plan(gates: &Gates, planner: &dyn Planner, files: &RetryFiles) -> io::Result<Verification> {
    let bench = Bench::of(&[
        ("retry.env", &files.contract),
        ("endpoints.tsv", &files.endpoints),
        ("attempts.tsv", &files.attempts),
    ])?;
    let files = RetryFiles::in_dir(bench.dir());
    let trial = Trial {
        bench: &bench,
        command: "plan",
        make: &|report| planner.plan(&files, report),
        due: &|_| Code::Clean,
        health: &|report| health_plan(&gates.health, &files, report),
        probe: &|report| probe_plan(gates.probe, &files, report).code,
    };
    let mut list = Verification::default();
    let clean = trial.clean(&mut list);
    check_rules(&mut list, PLAN_RULES, plan_tables(&files, &trial.report()));
    let inputs = [
        ("contract", &*files.contract),
        ("endpoints", &*files.endpoints),
        ("attempts", &*files.attempts),
    ];
    check_hashes(&mut list, &inputs, &clean);
    trial.reports(&mut list, &clean, "/totals/backoff_s", "retry.env")?;
    trial.inputs(&mut list, Code::Contract, bad_contracts())?;
    trial.inputs(&mut list, Code::Problem, bad_facts())?;
    Ok(list)
}

fn bad_contracts() -> Vec<Change> {
    let file = "retry.env";
    vec![
        (
            "a contract with a missing key",
            file,
            Box::new(|text| without_key(text, "WEBHOOK_ADMIT_SLACK_S")),
        ),
        (
            "a contract with a non-integer",
            file,
            Box::new(|text| with_value(text, "WEBHOOK_BACKOFF_FACTOR", "2.5")),
        ),
        (
            "a contract with min > max",
            file,
            Box::new(|text| {
                let text = with_value(text, "WEBHOOK_SUCCESS_MIN", "300");
                with_value(&text, "WEBHOOK_SUCCESS_MAX", "299")
            }),
        ),
        (
            "a contract with an unknown key",
            file,
            Box::new(|text| format!("{text}WEBHOOK_MOOD=good\n")),
        ),
        ("an empty contract", file, Box::new(|_| String::new())),
    ]
}

fn bad_facts() -> Vec<Change> {
    vec![
        (
            "an unknown state",
            "endpoints.tsv",
            Box::new(|text| format!("{text}ep-asleep\tasleep\t3\t10\t60\n")),
        ),
        (
            "a ledger without a header",
            "attempts.tsv",
            Box::new(|_| String::new()),
        ),
        (
            "a row that ends before it starts",
            "attempts.tsv",
            Box::new(|text| format!("{text}a-backwards\tep-alpha\t1\t2000\t1999\t500\t-\n")),
        ),
        (
            "an attempt_no of 0",
            "attempts.tsv",
            Box::new(|text| format!("{text}a-zero\tep-alpha\t0\t2000\t2001\t500\t-\n")),
        ),
    ]
}
