//! `duehook contract init`: a complete contract file to edit.

use crate::exit::Exit;
use crate::ui;
use clap::builder::PossibleValue;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Write a complete contract file to edit
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    duehook contract init\n  \
    duehook contract init --preset standard-webhooks hooks.toml\n  \
    duehook contract init --preset svix -            print it")]
pub(super) struct Args {
    /// Where to write it; `-` prints it
    #[arg(value_name = "FILE", default_value = "contract.toml")]
    file: PathBuf,
    /// The policy to start from
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = names())]
    preset: String,
    /// Write over a file that is there
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn names() -> clap::builder::PossibleValuesParser {
    contract::presets()
        .iter()
        .map(|preset| PossibleValue::new(preset.name).help(preset.about))
        .collect::<Vec<_>>()
        .into()
}

#[derive(Debug, thiserror::Error)]
#[error("{file} cannot be written{hint}")]
struct InitError {
    file: String,
    hint: &'static str,
    source: std::io::Error,
}

pub(super) fn run(args: &Args) -> Exit {
    let preset = match contract::preset(&args.preset) {
        Ok(preset) => preset,
        Err(error) => return ui::fail(Exit::Usage, &error),
    };
    if args.file == Path::new("-") {
        ui::say(preset.text.trim_end());
        return Exit::Clean;
    }
    if let Err(source) = write(&args.file, preset.text, args.force) {
        let there = source.kind() == std::io::ErrorKind::AlreadyExists;
        let hint = if there {
            ": it is there already; name another file, or add --force"
        } else {
            ""
        };
        return ui::fail(
            Exit::Problem,
            &InitError {
                file: args.file.display().to_string(),
                hint,
                source,
            },
        );
    }
    let file = args.file.display().to_string();
    if args.json {
        ui::say(serde_json::json!({ "file": file, "preset": preset.name, "about": preset.about }));
    } else {
        ui::say(format_args!("wrote {file}: {}", preset.about));
        ui::say(format_args!(
            "next: edit it, then `duehook contract check {file}` and `duehook contract show {file}`"
        ));
    }
    Exit::Clean
}

fn write(path: &Path, text: &str, force: bool) -> std::io::Result<()> {
    let mut options = std::fs::File::options();
    options.write(true).truncate(true);
    let mut file = if force {
        options.create(true).open(path)?
    } else {
        options.create_new(true).open(path)?
    };
    file.write_all(text.as_bytes())
}
