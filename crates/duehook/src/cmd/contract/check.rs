//! `duehook contract check`: is the file usable, and is there anything that is legal but surely not meant?

use super::{problems, read, refuse};
use crate::exit::Exit;
use crate::ui;
use serde_json::json;

/// Check contract files: exit 0, or 3 with every problem and its line
#[derive(clap::Args)]
pub(super) struct Args {
    /// Contract files, or preset:NAME
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
    /// Exit 2 when there are warnings
    #[arg(long)]
    deny_warnings: bool,
    /// Print JSON, one object a file
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Exit {
    args.files
        .iter()
        .map(|file| check(file, args))
        .max()
        .unwrap_or(Exit::Clean)
}

fn check(file: &str, args: &Args) -> Exit {
    let contract = match read(file) {
        Ok(contract) => contract,
        Err(error) if args.json => {
            ui::say(problems(&error));
            return Exit::Contract;
        }
        Err(error) => return refuse(&error, false),
    };
    let warnings: Vec<String> = audit::waits::warnings(&contract)
        .iter()
        .map(ToString::to_string)
        .collect();
    if args.json {
        ui::say(json!({
            "contract_available": true, "file": file, "name": contract.name, "rev": contract.rev(), "warnings": warnings,
        }));
    } else {
        let color = ui::color();
        let word = if warnings.is_empty() {
            ui::paint("ok", ui::GREEN, color)
        } else {
            ui::paint("usable", ui::YELLOW, color)
        };
        ui::say(format_args!(
            "{file}: {word}: {}, revision {}",
            contract.name,
            &contract.rev()[..12]
        ));
        for warning in &warnings {
            ui::say(format_args!(
                "  {}: {warning}",
                ui::paint("warning", ui::YELLOW, color)
            ));
        }
    }
    if args.deny_warnings && !warnings.is_empty() {
        Exit::Problem
    } else {
        Exit::Clean
    }
}
