//! `cargo xtask`: the single gate (`ci`) and the chores it is made of. Depends on no crate of ours, so that a broken
//! build of the product cannot break the gate that reports it.

mod boundaries;
mod ci;
mod claims;
mod compose;
mod crash;
mod dependencies;
mod fuzz;
mod image;
mod links;
mod mutants;
mod naming;
mod process;
mod source;
mod style;
mod suite;
mod tools;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// What went wrong in a chore, for the person at the terminal.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A check found something.
    #[error("{0}")]
    Found(String),
    /// A program ended badly or could not be started.
    #[error("`{command}`: {reason}")]
    Program {
        /// As it was typed.
        command: String,
        /// What happened.
        reason: String,
    },
    /// A file of the project could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Short.
pub(crate) type Result<T = ()> = std::result::Result<T, Error>;

/// A check's findings as an error; none is success.
pub(crate) fn none_of(findings: &[String]) -> Result {
    if findings.is_empty() {
        return Ok(());
    }
    Err(Error::Found(findings.join("\n")))
}

/// Chores of this project.
#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    after_help = "Examples:\n  cargo xtask test              every test\n  cargo xtask ci                the whole gate\n  \
cargo xtask ci --only style   one stage of it\n  cargo xtask fuzz --seconds 60 each reader, a minute in all"
)]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Every test: the workspace, the feature-gated suites, and the planted bugs that `demo` must notice
    Test,
    /// The whole gate, in stages with a time budget each
    Ci {
        /// Run these stages alone (repeatable)
        #[arg(long)]
        only: Vec<String>,
        /// Print the stages and their budgets
        #[arg(long)]
        list: bool,
    },
    /// Who may depend on whom, from `cargo metadata`, dev-dependencies too
    Boundaries,
    /// Heads, leftovers, long files and functions
    Style,
    /// docs/dependencies.md names every direct dependency, and no other
    Dependencies,
    /// Links between the texts lead somewhere
    Links,
    /// The tests and commands that the texts name exist
    Claims,
    /// Dockerfile and compose.yaml, without a Docker engine
    Image,
    /// Mutation testing of `schedule` and `audit` against docs/mutants.md
    Mutants {
        /// Mutate these packages alone (repeatable)
        #[arg(long)]
        package: Vec<String>,
    },
    /// Kill the server under load, again and again, and let receivers, audit and probe judge
    Crash(crash::Args),
    /// Fuzz every reader for a bounded time
    Fuzz {
        /// Seconds in all, shared by the targets
        #[arg(long, default_value_t = 60)]
        seconds: u32,
        /// Fuzz these targets alone (repeatable)
        #[arg(long)]
        target: Vec<String>,
    },
}

fn main() -> ExitCode {
    let done = match Cli::parse().chore {
        Chore::Test => suite::run(),
        Chore::Ci { only, list } => ci::run(&only, list),
        Chore::Boundaries => boundaries::run(),
        Chore::Style => style::run(),
        Chore::Dependencies => dependencies::run(),
        Chore::Links => links::run(),
        Chore::Claims => claims::run(),
        Chore::Image => image::run(),
        Chore::Mutants { package } => mutants::run(&package),
        Chore::Crash(args) => crash::run(&args),
        Chore::Fuzz { seconds, target } => fuzz::run(seconds, &target),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
