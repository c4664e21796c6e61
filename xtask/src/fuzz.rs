//! `cargo xtask fuzz`: every reader of foreign text, for a bounded time, on the stable compiler.

use crate::process::{self, Run};
use crate::{Error, Result, none_of, tools};

/// The version the project was written with.
pub(crate) const CARGO_FUZZ: &str = "0.13.2";

/// What a target starts from: files and folders of the project, copied into its corpus.
const SEEDS: &[(&str, &[&str])] = &[
    ("contract_toml", &["crates/contract/presets"]),
    ("waits", &["crates/contract/presets"]),
    ("retry_env", &["cases/retry-round/retry.env"]),
    ("queue_env", &["cases/queue-round/queue.env"]),
    ("endpoints_tsv", &["cases/retry-round/endpoints.tsv"]),
    ("attempts_tsv", &["cases/retry-round/attempts.tsv"]),
    ("channels_json", &["cases/queue-round/channels.json"]),
    ("queue_jsonl", &["cases/queue-round/queue.jsonl"]),
];

/// The names that `cargo fuzz list` gives.
fn targets() -> Result<Vec<String>> {
    let listed = Run::cargo().args(&["fuzz", "list"]).output()?;
    Ok(listed
        .lines()
        .map(str::to_owned)
        .filter(|name| !name.is_empty())
        .collect())
}

/// Copies a target's seeds into its corpus, which git ignores and libFuzzer adds to.
fn seed(target: &str) -> Result {
    let seeds = SEEDS
        .iter()
        .filter(|(name, _)| *name == target)
        .flat_map(|(_, paths)| *paths);
    let corpus = process::root().join("fuzz/corpus").join(target);
    std::fs::create_dir_all(&corpus).map_err(|source| Error::File {
        path: corpus.clone(),
        source,
    })?;
    for path in seeds {
        let from = process::root().join(path);
        let from = if from.is_dir() { from.join(".") } else { from };
        Run::new("cp")
            .args(&["-r", &from.display().to_string(), &corpus.display().to_string()])
            .go()?;
    }
    Ok(())
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
        seed(name)?;
        let limit = format!("-max_total_time={share}");
        let args = ["fuzz", "run", "--sanitizer", "none", name, "--"];
        let bounds = [&limit, "-timeout=10", "-rss_limit_mb=2048", "-verbosity=0"];
        let run = Run::cargo().args(&args).args(&bounds).var("RUST_BACKTRACE", "0");
        if let Err(error) = run.go() {
            failed.push(format!("fuzz target `{name}`: {error}"));
        }
    }
    none_of(&failed)?;
    println!("fuzz: {} readers, {share} s each, no panic", chosen.len());
    Ok(())
}
