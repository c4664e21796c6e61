//! `duehook ledger`: the ledger out of a store, for judges and for people. It reads beside a running server and changes
//! nothing; the format stands in spec/ledger.md.

use crate::config::{STORE, StoreRef};
use crate::exit::Exit;
use crate::ui;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::path::PathBuf;
use std::sync::Arc;
use store::export::{Format, Manifest, write_folder};
use store::sqlite::SqliteStore;

/// Write the ledger out of a store
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Write a folder with one file a record kind, and a manifest with counts and SHA-256
    Export(Export),
}

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  duehook ledger export --out ledger/\n  \
duehook ledger export --store sqlite:duehook.db --out ledger/ --format jsonl\n\n\
The folder appears whole or not at all, and shows one moment, also while a server runs on the store.\n\
Then: duehook probe ledger --ledger ledger/\n\n\
Exit codes: 0 written · 2 the store cannot be read or the folder not be written")]
struct Export {
    /// The store, also while a server runs on it
    #[arg(long, default_value = STORE, env = "DUEHOOK_STORE", value_name = "STORE")]
    store: StoreRef,
    /// The folder to make; it must not exist, or be empty
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// How rows are written
    #[arg(long, default_value = "tsv", value_enum, value_name = "FORMAT")]
    format: FormatArg,
    /// Print the manifest as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum FormatArg {
    /// Tab-separated, with a header
    Tsv,
    /// One JSON object a line
    Jsonl,
}

pub(crate) fn run(args: Args) -> Exit {
    let What::Export(args) = args.what;
    match export(&args) {
        Ok(manifest) => {
            show(&args, &manifest);
            Exit::Clean
        }
        Err(error) => ui::fail(Exit::Problem, &*error),
    }
}

fn export(args: &Export) -> Result<Manifest, Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let store = SqliteStore::open_read_only(&args.store.0)?;
    let format = match args.format {
        FormatArg::Tsv => Format::Tsv,
        FormatArg::Jsonl => Format::Jsonl,
    };
    let bar = spinner();
    let shown = bar.clone();
    let progress = Arc::new(move |records| shown.set_position(records));
    let manifest = runtime.block_on(write_folder(&*store, &args.out, format, progress));
    bar.finish_and_clear();
    Ok(manifest?)
}

/// On a terminal alone: how many records so far. How many there will be, nobody has counted.
fn spinner() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{spinner} {human_pos} records ({per_sec})");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
}

fn show(args: &Export, manifest: &Manifest) {
    if args.json {
        ui::say(serde_json::to_string_pretty(manifest).unwrap_or_default());
        return;
    }
    let mut table = ui::table(&["file", "rows", "sha256"]);
    for (name, entry) in &manifest.files {
        table.add_row([name.clone(), entry.rows.to_string(), entry.sha256.clone()]);
    }
    ui::say(table);
    ui::say(format_args!("written to {}", args.out.display()));
}
