//! `duehook audit`: derives every decision again from contract and ledger, and names each breach. Reads beside a running
//! server, or an exported ledger, and changes nothing; every rule stands in the `audit` crate.

use crate::config::{STORE, StoreRef};
use crate::exit::Exit;
use crate::report::{Draft, spare};
use crate::ui;
use audit::FactsError;
use audit::judge::{Judge, Options, Report, read_folder, read_receiver};
use contract::ledger::{
    AttemptRecord, ContractRecord, DeliveryEvent, EndpointEvent, MessageRecord, NodeEvent,
};
use contract::{Duration, Instant};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;
use store::sqlite::SqliteStore;
use store::{LedgerSink, Store, StoreError};

/// Without `--json`, so many findings are printed.
const SHOWN: usize = 100;
/// The progress bar moves on after so many records.
const TICK: u64 = 1024;

/// Judge the ledger: derive every decision again from contract and ledger, and name each breach
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
duehook audit                                              the store in duehook.db\n  \
duehook audit --store sqlite:duehook.db --since 24h --json\n  \
duehook audit --as-of now                                  what should have happened by now is judged too\n  \
duehook audit --ledger exported/ --receiver seen.jsonl --report audit.json\n\n\
A TIME is Unix milliseconds, `now`, or how long ago: 30m, 24h, 7d.\n\
Exit codes: 0 judged and clean · 2 breaches found, or the ledger cannot be read")]
pub(crate) struct Args {
    /// The store, also while a server runs on it
    #[arg(long, default_value = STORE, env = "DUEHOOK_STORE", value_name = "STORE")]
    store: StoreRef,
    /// An exported ledger (`duehook ledger export`) instead of a store
    #[arg(long, value_name = "FOLDER")]
    ledger: Option<PathBuf>,
    /// A receiver's own log (`duehook listen --log`): was it sent what the ledger does not know, or too early?
    #[arg(long, value_name = "FILE")]
    receiver: Option<PathBuf>,
    /// Judge only deliveries of which something happened since then, each of them whole
    #[arg(long, value_name = "TIME")]
    since: Option<Moment>,
    /// Judge what should have happened by then [default: the last moment in the ledger]
    #[arg(long, value_name = "TIME")]
    as_of: Option<Moment>,
    /// Write the report here, whole or not at all
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// A moment on the command line.
#[derive(Clone, Copy)]
enum Moment {
    At(Instant),
    Ago(Duration),
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "now" {
            return Ok(Self::Ago(Duration::ZERO));
        }
        if let Ok(ms) = text.parse() {
            return Ok(Self::At(Instant::from_unix_ms(ms)));
        }
        let ago = contract::parse_duration(text);
        ago.map(Self::Ago)
            .map_err(|_| "write Unix milliseconds, `now`, or how long ago, as in `24h`".to_owned())
    }
}

impl Moment {
    fn instant(self) -> std::io::Result<Instant> {
        match self {
            Self::At(at) => Ok(at),
            Self::Ago(ago) => Ok(super::serve::now()? - ago),
        }
    }
}

pub(crate) fn run(args: Args) -> Exit {
    match judge(&args) {
        Ok(report) => show(&args, &report),
        Err(error) => ui::fail(Exit::Problem, &*error),
    }
}

fn judge(args: &Args) -> Result<Report, Box<dyn std::error::Error>> {
    let receiver = args.receiver.as_deref();
    let inputs: Vec<_> = receiver.into_iter().chain([args.store.0.as_path()]).collect();
    spare(args.report.as_deref(), &inputs)?;
    let options = Options {
        as_of: args.as_of.map(Moment::instant).transpose()?,
        since: args.since.map(Moment::instant).transpose()?,
        ..Options::default()
    };
    let mut judge = Judge::new(options);
    match &args.ledger {
        Some(folder) => read_folder(folder, &mut judge)?,
        None => judge = read_store(args, judge)?,
    }
    if let Some(path) = receiver {
        read_receiver(path, &mut judge)?;
    }
    let report = judge.finish()?;
    if let Some(place) = &args.report {
        let mut draft = Draft::new(Some(place))?;
        writeln!(draft, "{}", to_json(&report))?;
        draft.publish()?;
    }
    Ok(report)
}

fn read_store(args: &Args, judge: Judge) -> Result<Judge, Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let store = SqliteStore::open_read_only(&args.store.0)?;
    let bar = spinner();
    let read = runtime.block_on(feed(&*store, judge, Some(bar.clone())));
    bar.finish_and_clear();
    Ok(read?)
}

/// Hands the ledger of a store, as of one moment, to a judge.
pub(super) async fn feed(store: &dyn Store, judge: Judge, bar: Option<ProgressBar>) -> store::Result<Judge> {
    let sink = Feed {
        judge,
        bar,
        records: 0,
    };
    let sink = store.read_ledger(Box::new(sink)).await?;
    let fed = sink.into_any().downcast::<Feed>();
    fed.map(|feed| feed.judge).map_err(|_| StoreError::Corrupt {
        reason: "the ledger did not come back".to_owned(),
        source: None,
    })
}

/// On a terminal alone: how many records so far. How many there will be, nobody has counted.
fn spinner() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{spinner} {human_pos} records ({per_sec})");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
}

/// What `health ledger` reads again.
fn to_json(report: &Report) -> String {
    serde_json::to_string_pretty(report).unwrap_or_default()
}

fn show(args: &Args, report: &Report) -> Exit {
    let exit = if report.ok { Exit::Clean } else { Exit::Problem };
    if args.json {
        ui::say(to_json(report));
        return exit;
    }
    let color = ui::color();
    for finding in report.findings.iter().take(SHOWN) {
        let kind = ui::paint(finding.kind.word(), ui::RED, color);
        let rows = ui::paint(&format!("[{}]", finding.rows.join(", ")), ui::DIM, color);
        ui::say(format_args!("{kind} {} {rows}", finding.text));
    }
    let shown = u64::try_from(report.findings.len().min(SHOWN)).unwrap_or(u64::MAX);
    if report.found > shown {
        let more = report.found - shown;
        ui::say(format_args!(
            "… and {more} more; --json or --report FILE has them"
        ));
    }
    if !report.counts.is_empty() {
        let mut table = ui::table(&["kind", "findings"]);
        for (kind, count) in &report.counts {
            table.add_row([kind.word().to_owned(), count.to_string()]);
        }
        ui::say(table);
    }
    let judged = report.judged;
    ui::say(format_args!(
        "judged {} attempts of {} deliveries of {} messages as of {}",
        judged.attempts, judged.deliveries, judged.messages, report.as_of
    ));
    if args.receiver.is_some() {
        ui::say(format_args!(
            "and {} requests of a receiver's log",
            judged.receiver_lines
        ));
    }
    match report.found {
        0 => ui::say("RESULT: OK"),
        1 => ui::say("RESULT: BAD (1 finding)"),
        found => ui::say(format_args!("RESULT: BAD ({found} findings)")),
    }
    exit
}

/// A judge that is fed by a store.
struct Feed {
    judge: Judge,
    bar: Option<ProgressBar>,
    records: u64,
}

impl Feed {
    fn took(&mut self, taken: Result<(), FactsError>) -> store::Result<()> {
        self.records += 1;
        if let Some(bar) = self.bar.as_ref().filter(|_| self.records.is_multiple_of(TICK)) {
            bar.set_position(self.records);
        }
        taken.map_err(|error| StoreError::Unavailable {
            reason: "the audit cannot go on".to_owned(),
            source: Some(Box::new(error)),
        })
    }
}

impl LedgerSink for Feed {
    fn contract(&mut self, record: &ContractRecord) -> store::Result<()> {
        self.judge.contract(record);
        self.took(Ok(()))
    }
    fn message(&mut self, record: &MessageRecord) -> store::Result<()> {
        let taken = self.judge.message(record);
        self.took(taken)
    }
    fn endpoint_event(&mut self, record: &EndpointEvent) -> store::Result<()> {
        self.judge.endpoint_event(record);
        self.took(Ok(()))
    }
    fn node_event(&mut self, record: &NodeEvent) -> store::Result<()> {
        self.judge.node_event(record);
        self.took(Ok(()))
    }
    fn delivery_event(&mut self, record: &DeliveryEvent) -> store::Result<()> {
        let taken = self.judge.delivery_event(record);
        self.took(taken)
    }
    fn attempt(&mut self, record: &AttemptRecord) -> store::Result<()> {
        let taken = self.judge.attempt(record);
        self.took(taken)
    }
    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any + Send> {
        self
    }
}
