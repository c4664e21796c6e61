//! `cargo xtask fuzz`: every reader of foreign text, for a bounded time, on the stable compiler.

use crate::process::Run;
use crate::{Error, Result, none_of, tools};

/// The version the project was written with.
pub(crate) const CARGO_FUZZ: &str = "0.13.2";

/// The names that `cargo fuzz list` gives.
fn targets() -> Result<Vec<String>> {
    let listed = Run::cargo().args(&["fuzz", "list"]).output()?;
    Ok(listed
        .lines()
        .map(str::to_owned)
        .filter(|name| !name.is_empty())
        .collect())
}

/// Fuzzes each target for its share of the seconds, at least one each.
pub(crate) fn run(seconds: u32, only: &[String]) -> Result {
    none_of(&tools::ensure(tools::FOR_FUZZING))?;
    tools::cargo_tool("cargo-fuzz", CARGO_FUZZ)?;
    let all = targets()?;
    if let Some(unknown) = only.iter().find(|name| !all.contains(name)) {
        return Err(Error::Found(format!(
            "there is no fuzz target `{unknown}`; there are {}",
            all.join(", ")
        )));
    }
    let chosen: Vec<&String> = all
        .iter()
        .filter(|name| only.is_empty() || only.contains(name))
        .collect();
    let share = (seconds / u32::try_from(chosen.len().max(1)).unwrap_or(1)).max(1);
    // The sanitizers need the nightly compiler; what is looked for here is a panic, which needs none.
    Run::cargo()
        .args(&["fuzz", "build", "--sanitizer", "none"])
        .go()?;
    let mut failed = Vec::new();
    for name in &chosen {
        let limit = format!("-max_total_time={share}");
        let args = [
            "fuzz",
            "run",
            "--sanitizer",
            "none",
            name,
            "--",
            &limit,
            "-timeout=10",
            "-rss_limit_mb=2048",
        ];
        let run = Run::cargo().args(&args).var("RUST_BACKTRACE", "0");
        if let Err(error) = run.go() {
            failed.push(format!("fuzz target `{name}`: {error}"));
        }
    }
    none_of(&failed)?;
    println!("fuzz: {} readers, {share} s each, no panic", chosen.len());
    Ok(())
}
