//! `duehook health`: is a report faithful? Derives it again with `audit`, compares, prints one JSON object
//! (spec/gates.md). Whether the round went well is the report's own word, repeated as `round_ok`.

use super::verify::exit_of;
use crate::exit::Exit;
use crate::report::build_id;
use crate::ui::say;
use gates::{Health, HealthVerdict, QueueFiles, RetryFiles, health_appraise, health_ledger, health_plan};
use std::path::PathBuf;

/// Derive a report again and compare it field by field; prints one JSON object
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
duehook health plan --contract retry.env --endpoints endpoints.tsv --attempts attempts.tsv --report plan.json\n  \
duehook health appraise --contract queue.env --channels channels.json --queue queue.jsonl --report appraisal.json\n  \
duehook health ledger --ledger exported/ --report audit.json\n\n\
Exit codes: 0 the report is faithful · 2 it is not, or it or the facts are missing · 3 contract unusable")]
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
        /// JSON is what it prints anyway
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
        /// JSON is what it prints anyway
        #[arg(long)]
        json: bool,
    },
    /// A report that `duehook audit --report` saved
    Ledger {
        /// The exported ledger that was audited
        #[arg(long, value_name = "FOLDER")]
        ledger: PathBuf,
        /// The report
        #[arg(long, value_name = "FILE")]
        report: PathBuf,
        /// A receiver's own log, where one was audited too
        #[arg(long, value_name = "FILE")]
        receiver: Option<PathBuf>,
        /// JSON is what it prints anyway
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: Args) -> Exit {
    let HealthVerdict { code, mut json } = judge(args.what);
    json["build"] = build_id().into();
    say(format_args!("{json:#}"));
    exit_of(code)
}

fn judge(what: What) -> HealthVerdict {
    let health = Health::default();
    match what {
        What::Plan {
            contract,
            endpoints,
            attempts,
            report,
            json: _,
        } => {
            let files = RetryFiles {
                contract,
                endpoints,
                attempts,
            };
            health_plan(&health, &files, &report)
        }
        What::Appraise {
            contract,
            channels,
            queue,
            report,
            now,
            json: _,
        } => {
            let files = QueueFiles {
                contract,
                channels,
                queue,
            };
            health_appraise(&health, &files, &report, now)
        }
        What::Ledger {
            ledger,
            report,
            receiver,
            json: _,
        } => health_ledger(&health, &ledger, receiver.as_deref(), &report),
    }
}
