//! `duehook backup`: a whole, checked copy of a store as of one moment, also while a server runs on it. How to restore
//! one stands in docs/operating.md.

use crate::config::{STORE, StoreRef};
use crate::exit::Exit;
use crate::ui;
use indicatif::{ProgressBar, ProgressDrawTarget};
use std::path::PathBuf;
use std::sync::Arc;
use store::sqlite::SqliteStore;

/// Copy the store, whole and checked, also while a server runs on it
#[derive(clap::Args)]
#[command(after_help = "Example:\n  duehook backup /backups/duehook-monday.db\n\n\
To restore: stop the server, put the copy in the store's place (without its -wal and -shm files), start again.\n\
What was in flight at the moment of the copy counts as interrupted, and its next attempt waits its full backoff.")]
pub(crate) struct Args {
    /// Where to; the file must not exist yet
    file: PathBuf,
    /// The store
    #[arg(long, default_value = STORE, env = "DUEHOOK_STORE", value_name = "STORE")]
    store: StoreRef,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Exit {
    match copy(&args) {
        Ok(bytes) if args.json => {
            ui::say(serde_json::json!({ "file": args.file, "bytes": bytes }));
            Exit::Clean
        }
        Ok(bytes) => {
            ui::say(format_args!("{}: {bytes} bytes, checked", args.file.display()));
            Exit::Clean
        }
        Err(error) => ui::fail(Exit::Problem, &*error),
    }
}

fn copy(args: &Args) -> Result<u64, Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let store = SqliteStore::open_read_only(&args.store.0)?;
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let shown = bar.clone();
    let progress = Arc::new(move |copied: u64, of: u64| {
        shown.set_length(of);
        shown.set_position(copied);
    });
    let copied = runtime.block_on(store.backup(&args.file, progress));
    bar.finish_and_clear();
    copied?;
    Ok(std::fs::metadata(&args.file)?.len())
}
