//! `duehook probe`: the outside judge, in SQL (spec/gates.md). The law stands under `probe/`; this only names the files.

use super::verify::exit_of;
use crate::exit::Exit;
use crate::ui::say;
use gates::{
    APPRAISE_SQL, Code, LEDGER_SQL, PLAN_SQL, Probe, ProbeVerdict, QueueFiles, RetryFiles, probe_appraise,
    probe_ledger, probe_plan, sha256_of,
};
use std::path::PathBuf;

/// Judge a report or a ledger from the raw files, in SQL that shares no code with the rest
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
duehook probe plan --contract retry.env --endpoints endpoints.tsv --attempts attempts.tsv --report plan.json\n  \
duehook probe appraise --contract queue.env --channels channels.json --queue queue.jsonl --report appraisal.json\n  \
duehook probe ledger --ledger exported/\n\n\
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
        /// An exported ledger (`duehook ledger export`)
        #[arg(long, value_name = "FOLDER")]
        ledger: PathBuf,
        /// A receiver's own log (`duehook listen --log`)
        #[arg(long, value_name = "FILE")]
        receiver: Option<PathBuf>,
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
            ledger,
            receiver,
            json,
        } => (
            probe_ledger(probe, &ledger, receiver.as_deref()),
            LEDGER_SQL,
            json,
        ),
    };
    print(&verdict, sql, json);
    exit_of(verdict.code)
}

fn print(verdict: &ProbeVerdict, sql: &str, json: bool) {
    if !json {
        verdict.lines.iter().for_each(say);
        return;
    }
    say(serde_json::json!({
        "ok": verdict.code == Code::Clean,
        "contract_available": verdict.code != Code::Contract,
        "lines": verdict.mismatches(),
        "result": verdict.lines.last(),
        "sql_sha256": sha256_of(sql.as_bytes()),
    }));
}
