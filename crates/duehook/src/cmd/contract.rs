//! `duehook contract`: writes, checks, shows and compares contract files (spec/contract.md).
//!
//! Waits come from the auditor's own derivation (`audit::waits`): what is shown is what will be judged.

mod check;
mod diff;
mod init;
mod show;

use crate::exit::Exit;
use crate::ui;
use contract::{Contract, ContractError};
use serde_json::{Value, json};

/// Write, check, show and compare contract files
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    duehook contract init                            write contract.toml\n  \
    duehook contract init --preset svix svix.toml    start from a preset\n  \
    duehook contract check contract.toml             exit 0, or 3 with every problem and its line\n  \
    duehook contract show contract.toml              when each retry comes\n  \
    duehook contract diff preset:svix contract.toml  what differs, and what follows from it")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Init(init::Args),
    Check(check::Args),
    Show(show::Args),
    Diff(diff::Args),
}

pub(crate) fn run(args: Args) -> Exit {
    match args.command {
        Command::Init(args) => init::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Diff(args) => diff::run(&args),
    }
}

/// Reads the contract that an argument names: a file, or `preset:NAME`.
fn read(argument: &str) -> Result<Contract, ContractError> {
    match argument.strip_prefix("preset:").map(contract::preset) {
        Some(Ok(preset)) => preset.contract(),
        Some(Err(error)) => {
            let source = std::io::Error::new(std::io::ErrorKind::NotFound, error);
            Err(ContractError::unreadable(argument, &source))
        }
        None => ui::read_contract(argument.as_ref()),
    }
}

/// Exit 3, for people or for programs.
fn refuse(error: &ContractError, json: bool) -> Exit {
    if json {
        ui::say(problems(error));
        return Exit::Contract;
    }
    ui::fail_contract(error)
}

fn problems(error: &ContractError) -> Value {
    let problems: Vec<_> = error.problems().iter().map(|problem| {
        json!({ "clause": problem.clause, "line": problem.line, "found": problem.found, "right": problem.right })
    }).collect();
    json!({ "contract_available": false, "file": error.file(), "problems": problems })
}
