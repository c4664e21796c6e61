//! `duehook audit`: the Rust judge over a live store. It reads beside a running server and changes nothing; every rule
//! stands in the `audit` crate.

use crate::config::{STORE, StoreRef};
use crate::exit::Exit;
use crate::ui;
use audit::live::{Audit, Ledger};
use contract::ledger::{
    AttemptRecord, ContractRecord, DeliveryEvent, EndpointEvent, MessageRecord, NodeEvent,
};
use std::path::PathBuf;
use store::sqlite::SqliteStore;
use store::{LedgerSink, Store};

/// Judge the ledger: derive every decision again from contract and ledger, and name each breach
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  duehook audit\n  duehook audit --store sqlite:duehook.db --json\n\n\
Exit codes: 0 judged and clean · 2 breaches found, or the ledger cannot be read"
)]
pub(crate) struct Args {
    /// The store, also while a server runs on it
    #[arg(long, default_value = STORE, env = "DUEHOOK_STORE", value_name = "STORE")]
    store: StoreRef,
    /// Write the report here, whole or not at all
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Exit {
    match judge(&args) {
        Ok(audit) => show(&args, &audit),
        Err(error) => ui::fail(Exit::Problem, &*error),
    }
}

fn judge(args: &Args) -> Result<Audit, Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let store = SqliteStore::open_read_only(&args.store.0)?;
    let sink = runtime.block_on(store.read_ledger(Box::new(Gather(Ledger::default()))))?;
    let gathered = sink
        .into_any()
        .downcast::<Gather>()
        .map_err(|_| "the ledger did not come back")?;
    let audit = audit::live::audit(&gathered.0, super::serve::now()?);
    if let Some(path) = &args.report {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let file = tempfile::NamedTempFile::new_in(folder.unwrap_or_else(|| std::path::Path::new(".")))?;
        serde_json::to_writer_pretty(&file, &audit)?;
        file.persist(path)?;
    }
    Ok(audit)
}

fn show(args: &Args, audit: &Audit) -> Exit {
    let exit = if audit.ok { Exit::Clean } else { Exit::Problem };
    if args.json {
        ui::say(serde_json::to_string_pretty(audit).unwrap_or_default());
        return exit;
    }
    for finding in &audit.findings {
        ui::say(format_args!(
            "{}: {} [{}]",
            finding.kind.word(),
            finding.text,
            finding.rows.join(", ")
        ));
    }
    ui::say(format_args!(
        "judged {} attempts of {} deliveries of {} messages",
        audit.attempts, audit.deliveries, audit.messages
    ));
    match audit.findings.len() {
        0 => ui::say("RESULT: OK"),
        found => ui::say(format_args!("RESULT: BAD ({found} findings)")),
    }
    exit
}

/// Takes a whole ledger into memory.
struct Gather(Ledger);

impl LedgerSink for Gather {
    fn contract(&mut self, record: &ContractRecord) -> store::Result<()> {
        self.0.contracts.push(record.clone());
        Ok(())
    }
    fn message(&mut self, record: &MessageRecord) -> store::Result<()> {
        self.0.messages.push(record.clone());
        Ok(())
    }
    fn endpoint_event(&mut self, record: &EndpointEvent) -> store::Result<()> {
        self.0.endpoint_events.push(record.clone());
        Ok(())
    }
    fn node_event(&mut self, record: &NodeEvent) -> store::Result<()> {
        self.0.node_events.push(record.clone());
        Ok(())
    }
    fn delivery_event(&mut self, record: &DeliveryEvent) -> store::Result<()> {
        self.0.delivery_events.push(record.clone());
        Ok(())
    }
    fn attempt(&mut self, record: &AttemptRecord) -> store::Result<()> {
        self.0.attempts.push(record.clone());
        Ok(())
    }
    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any + Send> {
        self
    }
}
