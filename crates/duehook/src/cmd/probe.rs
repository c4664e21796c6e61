//! `duehook probe`: the outside judge, in SQL (spec/gates.md). The law stands under `probe/`; this only names the files.

use super::verify::exit_of;
use crate::config::{STORE, StoreRef};
use crate::exit::Exit;
use crate::report::{Draft, build_id};
use crate::ui::{fail, say};
use gates::{
    APPRAISE_SQL, Code, LEDGER_SQL, PLAN_SQL, Probe, ProbeVerdict, QueueFiles, RetryFiles, probe_appraise,
    probe_ledger, probe_plan, sha256_of,
};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::export::{Format, write_folder};
use store::sqlite::SqliteStore;

/// Judge a report or a ledger from the raw files, in SQL that shares no code with the rest
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
duehook probe plan --contract retry.env --endpoints endpoints.tsv --attempts attempts.tsv --report plan.json\n  \
duehook probe appraise --contract queue.env --channels channels.json --queue queue.jsonl --report appraisal.json\n  \
duehook probe ledger --store sqlite:duehook.db\n  duehook probe ledger --ledger exported/ --receiver seen.jsonl\n\n\
The same SQL runs by hand in sqlite3 (see the heads of the files in probe/), and over a ledger in psql too.\n\
Exit codes: 0 it holds · 1 it does not · 2 facts missing or wrong · 3 contract unusable")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// The report of a retry round
    Plan {
        /// The contract, KEY=value lines
        #[arg(long, value_name = "FILE")]
        contract: PathBuf,
        /// endpoint_id state max_attempts backoff_base_s dispatch_gap_s, tab-separated
        #[arg(long, value_name = "FILE")]
        endpoints: PathBuf,
        /// attempt_id endpoint_id attempt_no start_ts finish_ts status error, tab-separated, in ledger order
        #[arg(long, value_name = "FILE")]
        attempts: PathBuf,
        /// The report that `duehook plan` wrote
        #[arg(long, value_name = "FILE")]
        report: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// The report of a queue round
    Appraise {
        /// The contract, KEY=value lines
        #[arg(long, value_name = "FILE")]
        contract: PathBuf,
        /// {"name": {"enabled": true}, …}
        #[arg(long, value_name = "FILE")]
        channels: PathBuf,
        /// One item a line
        #[arg(long, value_name = "FILE")]
        queue: PathBuf,
        /// The report that `duehook appraise` wrote
        #[arg(long, value_name = "FILE")]
        report: PathBuf,
        /// Judge at this clock instead of the report's own
        #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
        now: Option<i64>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// The ledger of the live engine
    Ledger {
        /// The store, also while a server runs on it
        #[arg(long, default_value = STORE, env = "DUEHOOK_STORE", value_name = "STORE")]
        store: StoreRef,
        /// An exported ledger (`duehook ledger export`) instead of a store
        #[arg(long, value_name = "FOLDER")]
        ledger: Option<PathBuf>,
        /// A receiver's own log (`duehook listen --log`)
        #[arg(long, value_name = "FILE")]
        receiver: Option<PathBuf>,
        /// Write the JSON object here too, whole or not at all
        #[arg(long, value_name = "FILE")]
        report: Option<PathBuf>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: Args) -> Exit {
    let probe = Probe::default();
    let (verdict, sql, json) = match args.what {
        What::Plan {
            contract,
            endpoints,
            attempts,
            report,
            json,
        } => {
            let files = RetryFiles {
                contract,
                endpoints,
                attempts,
            };
            (probe_plan(probe, &files, &report), PLAN_SQL, json)
        }
        What::Appraise {
            contract,
            channels,
            queue,
            report,
            now,
            json,
        } => {
            let files = QueueFiles {
                contract,
                channels,
                queue,
            };
            (probe_appraise(probe, &files, &report, now), APPRAISE_SQL, json)
        }
        What::Ledger {
            store,
            ledger,
            receiver,
            report,
            json,
        } => {
            let verdict = match ledger {
                Some(folder) => probe_ledger(probe, &folder, receiver.as_deref()),
                None => match exported(&store) {
                    Ok(folder) => probe_ledger(probe, &folder.path().join(FOLDER), receiver.as_deref()),
                    Err(error) => return fail(Exit::Problem, &*error),
                },
            };
            if let Some(place) = report
                && let Err(error) = save(&verdict, LEDGER_SQL, &place)
            {
                return fail(Exit::Problem, &error);
            }
            (verdict, LEDGER_SQL, json)
        }
    };
    print(&verdict, sql, json);
    exit_of(verdict.code)
}

/// The name of the export within its temporary directory.
const FOLDER: &str = "ledger";

/// The ledger of a store, exported as of one moment: the SQL reads what anybody could read.
fn exported(store: &StoreRef) -> Result<tempfile::TempDir, Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let store = SqliteStore::open_read_only(&store.0)?;
    let dir = tempfile::tempdir()?;
    let quiet = Arc::new(|_| {});
    runtime.block_on(write_folder(
        &*store,
        &dir.path().join(FOLDER),
        Format::Tsv,
        quiet,
    ))?;
    Ok(dir)
}

fn save(verdict: &ProbeVerdict, sql: &str, place: &Path) -> io::Result<()> {
    let mut draft = Draft::new(Some(place))?;
    writeln!(draft, "{:#}", to_json(verdict, sql))?;
    draft.publish()
}

fn print(verdict: &ProbeVerdict, sql: &str, json: bool) {
    if json {
        say(to_json(verdict, sql));
    } else {
        verdict.lines.iter().for_each(say);
    }
}

fn to_json(verdict: &ProbeVerdict, sql: &str) -> serde_json::Value {
    serde_json::json!({
        "ok": verdict.code == Code::Clean,
        "contract_available": verdict.code != Code::Contract,
        "lines": verdict.mismatches(),
        "result": verdict.lines.last(),
        "sql_sha256": sha256_of(sql.as_bytes()),
        "build": build_id(),
    })
}
