//! `cargo xtask ci`: the single gate, in stages. Each has a time budget, and together they stay under twenty minutes
//! from cold on two cores. A stage over its budget fails as one that finds something does.

use crate::process::Run;
use crate::{Error, Result, boundaries, claims, dependencies, fuzz, image, links, style, suite, tools};
use std::time::Duration;

/// One step of the gate.
struct Stage {
    name: &'static str,
    /// From cold, on two cores.
    budget_s: u64,
    run: fn() -> Result,
}

/// Cheap ones first; those that need a build share its target folder.
const STAGES: &[Stage] = &[
    Stage {
        name: "tools",
        budget_s: 100,
        run: install_tools,
    },
    Stage {
        name: "format",
        budget_s: 15,
        run: format,
    },
    Stage {
        name: "boundaries",
        budget_s: 10,
        run: boundaries::run,
    },
    Stage {
        name: "style",
        budget_s: 10,
        run: style::run,
    },
    Stage {
        name: "dependencies",
        budget_s: 10,
        run: dependencies::run,
    },
    Stage {
        name: "links",
        budget_s: 5,
        run: links::run,
    },
    Stage {
        name: "claims",
        budget_s: 5,
        run: claims::run,
    },
    Stage {
        name: "deny",
        budget_s: 20,
        run: deny,
    },
    Stage {
        name: "clippy",
        budget_s: 170,
        run: clippy,
    },
    Stage {
        name: "test",
        budget_s: 560,
        run: suite::run,
    },
    Stage {
        name: "demo",
        budget_s: 40,
        run: demo,
    },
    Stage {
        name: "docs",
        budget_s: 50,
        run: docs,
    },
    Stage {
        name: "image",
        budget_s: 35,
        run: image::run,
    },
    Stage {
        name: "fuzz",
        budget_s: 170,
        run: fuzz_bounded,
    },
];

/// The whole gate, from cold.
const TOTAL_S: u64 = 20 * 60;
/// For all targets together.
const FUZZ_SECONDS: u32 = 40;

fn install_tools() -> Result {
    let programs = [tools::FOR_TESTS, tools::FOR_FUZZING, tools::FOR_IMAGE];
    let not_run: Vec<String> = programs.into_iter().flat_map(tools::ensure).collect();
    crate::none_of(&not_run)?;
    tools::cargo_tool("cargo-deny", "0.20.2")?;
    tools::cargo_tool("cargo-fuzz", fuzz::CARGO_FUZZ)
}

fn format() -> Result {
    Run::cargo().args(&["fmt", "--all", "--check"]).go()
}

fn clippy() -> Result {
    let args = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ];
    Run::cargo().args(&args).go()
}

/// Without advisories: the gate must give the same answer without a network and on another day.
fn deny() -> Result {
    Run::cargo()
        .args(&["deny", "--locked", "check", "bans", "licenses", "sources"])
        .go()
}

fn docs() -> Result {
    let args = ["doc", "--workspace", "--no-deps", "--locked", "--quiet"];
    Run::cargo().args(&args).var("RUSTDOCFLAGS", "-D warnings").go()
}

fn demo() -> Result {
    Run::cargo()
        .args(&["run", "--quiet", "--locked", "--package", "duehook", "--", "demo"])
        .go()
}

fn fuzz_bounded() -> Result {
    fuzz::run(FUZZ_SECONDS, &[])
}

/// What a stage came to.
fn verdict(stage: &Stage, took: Duration, result: &Result) -> (bool, String) {
    let (name, budget) = (stage.name, stage.budget_s);
    let took_s = took.as_secs_f64();
    match result {
        Err(_) => (
            false,
            format!("FAILED   {name:<13} {took_s:>6.1} s of {budget} s"),
        ),
        Ok(()) if took > Duration::from_secs(budget) => (
            false,
            format!("TOO SLOW {name:<13} {took_s:>6.1} s of {budget} s"),
        ),
        Ok(()) => (true, format!("ok       {name:<13} {took_s:>6.1} s of {budget} s")),
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a stage is timed by the real clock; there is nothing to hold still"
)]
fn timed(run: fn() -> Result) -> (Duration, Result) {
    let start = std::time::Instant::now();
    let result = run();
    (start.elapsed(), result)
}

/// `cargo xtask ci`.
pub(crate) fn run(only: &[String], list: bool) -> Result {
    if list {
        for stage in STAGES {
            println!("{:<13} {:>4} s", stage.name, stage.budget_s);
        }
        return Ok(());
    }
    let known = |name: &String| STAGES.iter().any(|stage| stage.name == name);
    if let Some(unknown) = only.iter().find(|name| !known(name)) {
        return Err(Error::Found(format!(
            "there is no stage `{unknown}`; see `cargo xtask ci --list`"
        )));
    }
    let (mut good, mut lines, mut total) = (true, Vec::new(), Duration::ZERO);
    for stage in STAGES
        .iter()
        .filter(|stage| only.is_empty() || only.iter().any(|name| name == stage.name))
    {
        println!("──── {}", stage.name);
        let (took, result) = timed(stage.run);
        if let Err(error) = &result {
            eprintln!("error: {error}");
        }
        let (passed, line) = verdict(stage, took, &result);
        good &= passed;
        total += took;
        lines.push(line);
    }
    println!(
        "────\n{}\n{:<22} {:>6.1} s of {TOTAL_S} s",
        lines.join("\n"),
        "total",
        total.as_secs_f64()
    );
    if good && total <= Duration::from_secs(TOTAL_S) {
        println!("RESULT: OK");
        return Ok(());
    }
    println!("RESULT: BAD");
    Err(Error::Found("the gate is red".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budgets_stay_within_twenty_minutes() {
        let total: u64 = STAGES.iter().map(|stage| stage.budget_s).sum();
        assert!(total <= TOTAL_S, "{total} s");
    }

    #[test]
    fn a_stage_fails_by_finding_and_by_taking_too_long() {
        let stage = Stage {
            name: "x",
            budget_s: 10,
            run: || Ok(()),
        };
        let bad = Err(Error::Found("something".into()));
        assert!(verdict(&stage, Duration::from_secs(10), &Ok(())).0);
        assert!(!verdict(&stage, Duration::from_secs(11), &Ok(())).0);
        assert!(!verdict(&stage, Duration::from_secs(1), &bad).0);
    }
}
