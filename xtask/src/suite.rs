//! `cargo xtask test`: every test there is, and proof that the planted bugs are noticed. Says what it did not run.

use crate::process::{self, Run};
use crate::{Error, Result, none_of, tools};
use cargo_metadata::MetadataCommand;

/// Features of the binary that plant a bug in the engine; `demo` must end `RESULT: BAD` under each.
const BUGS: &[&str] = &[
    "bug-intent-not-written",
    "bug-wait-from-start",
    "bug-draining-let-through",
];
/// The exit code of "a real problem was found" (spec/gates.md).
const PROBLEM: i32 = 2;
/// Features that are no test suite: planted bugs, and what changes the product rather than tests it.
const NOT_A_SUITE: &[&str] = &["default"];

/// What `cargo test` said, added up over its binaries.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
    not_run: Vec<String>,
}

impl Tally {
    /// Takes in a line such as `test result: ok. 12 passed; 0 failed; 1 ignored; …`, or one that says NOT RUN.
    fn line(&mut self, line: &str) {
        if line.trim_start().starts_with("NOT RUN") {
            self.not_run.push(line.trim().to_owned());
        }
        if line.starts_with("test ") && line.contains("... ignored") {
            self.not_run.push(format!("NOT RUN: {line}"));
        }
        let Some((_, counts)) = line
            .strip_prefix("test result: ")
            .and_then(|rest| rest.split_once(". "))
        else {
            return;
        };
        for count in counts.split(';') {
            let mut words = count.split_whitespace();
            let number = words
                .next()
                .and_then(|word| word.parse::<u64>().ok())
                .unwrap_or(0);
            match words.next() {
                Some("passed") => self.passed += number,
                Some("failed") => self.failed += number,
                Some("ignored") => self.ignored += number,
                _ => {}
            }
        }
    }
}

/// Every feature of our crates that switches a test suite on, as cargo's `--features` wants it.
fn suites() -> Result<Vec<String>> {
    let metadata = MetadataCommand::new()
        .manifest_path(process::root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .map_err(|error| Error::Program {
            command: "cargo metadata".into(),
            reason: error.to_string(),
        })?;
    let features = metadata.packages.iter().flat_map(|package| {
        let own = package.features.keys().filter(|name| !name.starts_with("bug-"));
        own.filter(|name| !NOT_A_SUITE.contains(&name.as_str()))
            .map(|name| format!("{}/{name}", package.name))
    });
    Ok(features.collect())
}

/// The workspace's tests, all suites switched on, in one build.
fn workspace_tests(tally: &mut Tally) -> Result {
    let suites = suites()?.join(",");
    let mut run = Run::cargo().args(&["test", "--workspace", "--locked", "--no-fail-fast"]);
    if !suites.is_empty() {
        run = run.args(&["--features", &suites]);
    }
    // What a passing test prints is shown: it may say NOT RUN.
    let run = run.args(&["--", "--show-output"]);
    match run.watch(|line| tally.line(line))? {
        Some(0) => Ok(()),
        code => Err(Error::Found(format!("`{}` ended with {code:?}", run.shown()))),
    }
}

/// With a bug compiled in, `demo` must say so and exit 2. Anything else, a crash included, is a failure.
fn bug_is_noticed(bug: &str) -> Result {
    let build = [
        "build",
        "--quiet",
        "--locked",
        "--package",
        "duehook",
        "--features",
        bug,
    ];
    Run::cargo().args(&build).go()?;
    let run = [
        "run",
        "--quiet",
        "--locked",
        "--package",
        "duehook",
        "--features",
        bug,
        "--",
        "demo",
    ];
    let mut last = String::new();
    let code = Run::cargo().args(&run).watch(|line| {
        if line.contains("RESULT:") {
            line.trim().clone_into(&mut last);
        }
    })?;
    if code == Some(PROBLEM) && last.contains("RESULT: BAD") {
        println!("planted bug `{bug}`: noticed, as it must be");
        return Ok(());
    }
    Err(Error::Found(format!(
        "planted bug `{bug}`: `demo` must end `RESULT: BAD` with exit {PROBLEM}; it ended `{last}` with {code:?}"
    )))
}

/// `cargo xtask test`.
pub(crate) fn run() -> Result {
    let mut tally = Tally {
        not_run: tools::ensure(tools::FOR_TESTS),
        ..Tally::default()
    };
    let mut found: Vec<String> = Vec::new();
    found.extend(workspace_tests(&mut tally).err().map(|error| error.to_string()));
    for bug in BUGS {
        match bug_is_noticed(bug) {
            Ok(()) => tally.passed += 1,
            Err(error) => {
                tally.failed += 1;
                found.push(error.to_string());
            }
        }
    }
    // Nobody must find a binary with a planted bug where cargo puts the good one.
    let clean = Run::cargo()
        .args(&["build", "--quiet", "--locked", "--package", "duehook"])
        .go();
    found.extend(clean.err().map(|error| error.to_string()));
    for line in &tally.not_run {
        println!("{line}");
    }
    let word = if found.is_empty() && tally.not_run.is_empty() {
        "ok"
    } else {
        "FAILED"
    };
    let Tally {
        passed,
        failed,
        not_run,
        ..
    } = &tally;
    println!(
        "test result: {word}. {passed} passed; {failed} failed; {} not run, in all",
        not_run.len()
    );
    found.extend(tally.not_run);
    none_of(&found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_added_up_and_what_was_not_run_is_kept() {
        let mut tally = Tally::default();
        for line in [
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s",
            "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
            "test slow::one ... ignored",
            "NOT RUN: the sqlite3 shell is missing",
            "a line about a test result: none",
        ] {
            tally.line(line);
        }
        assert_eq!((tally.passed, tally.failed, tally.ignored), (15, 2, 1));
        assert_eq!(tally.not_run.len(), 2);
    }
}
