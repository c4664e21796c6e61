//! `duehook appraise`: the queue round over files (spec/queue-round.md). Reads, asks `schedule`, reports.
//!
//! The report is written whole or not at all, and not when the contract is unusable (I7).

use super::plan::{Failure, ReportError, name_of, place_of, progress_bar, write_row};
use crate::exit::Exit;
use crate::report::{Draft, build_id, spare};
use crate::ui::{fail, note, say};
use contract::ContractError;
use contract::rounds::{DelayUnit, QueueRoundContract};
use ledger::channels::Channels;
use ledger::queue::{self, Line};
use schedule::round::queue::{Item, ResultRow, Tally, appraise};
use serde::Serialize;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::SystemTime;

/// Appraise a queue round: which waiting items may go out now?
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  duehook appraise --contract queue.env --channels channels.json --queue queue.jsonl\n  \
duehook appraise --contract queue.env --channels channels.json --queue queue.jsonl --now 1800000 --report appraisal.json\n\n\
Exit codes: 0 every line was judged · 2 facts missing, or malformed lines (the others are judged) · 3 contract unusable\n\
Judge the report with `duehook health appraise` and `duehook probe appraise`."
)]
pub(crate) struct Args {
    /// The contract, KEY=value lines
    #[arg(long, value_name = "FILE")]
    contract: PathBuf,
    /// {"name": {"enabled": true}, …}
    #[arg(long, value_name = "FILE")]
    channels: PathBuf,
    /// One item a line: {"id", "channel", "attempts", "received_at_value"}
    #[arg(long, value_name = "FILE")]
    queue: PathBuf,
    /// The clock, in the contract's unit; without it, the wall clock
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    now: Option<i64>,
    /// Where the report goes; without it, to standard output
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print the figures as JSON on standard output beside a --report
    #[arg(long)]
    json: bool,
}

#[expect(clippy::needless_pass_by_value, reason = "every command has this shape")]
pub(crate) fn run(args: Args) -> Exit {
    if let Err(error) = spare(
        args.report.as_deref(),
        &[&args.contract, &args.channels, &args.queue],
    ) {
        return fail(Exit::Usage, &error);
    }
    let printed = args.json || args.report.is_none();
    match judge(&args) {
        Ok(tally) => {
            let Tally {
                items_total,
                deliver,
                defer,
                block,
                dead,
            } = tally;
            if args.json && args.report.is_some() {
                say(serde_json::json!({ "contract_available": true, "figures": tally, "ok": tally.ok() }));
            }
            note(format_args!(
                "items={items_total} deliver={deliver} defer={defer} block={block} dead={dead} ok={}",
                tally.ok()
            ));
            if tally.ok() { Exit::Clean } else { Exit::Problem }
        }
        Err(Failure::Contract(error)) => {
            if printed {
                say(serde_json::json!({ "contract_available": false }));
            }
            fail(Exit::Contract, &error)
        }
        Err(Failure::Facts(error)) => fail(Exit::Problem, &error),
        Err(Failure::Report(error)) => fail(Exit::Problem, &error),
    }
}

/// A line that could not be judged.
#[derive(Serialize)]
struct Malformed {
    line: u64,
    what: String,
}

#[derive(Serialize)]
struct Inputs<'a> {
    contract: &'a str,
    channels: &'a str,
    queue: &'a str,
}

/// The parts of the report that grow with the queue, until the figures before them are known.
struct Parts {
    results: tempfile::SpooledTempFile,
    malformed: tempfile::SpooledTempFile,
    first_result: bool,
    first_malformed: bool,
    tally: Tally,
}

/// So many malformed lines are named on standard error; the report has them all.
const NAMED: u64 = 10;
/// Each part stays in memory up to this size.
const IN_MEMORY: usize = 1024 * 1024;

fn judge(args: &Args) -> Result<Tally, Failure> {
    // The contract comes first: when it is unusable, nothing else is judged or written (3 beats 2).
    let name = name_of(&args.contract);
    let bytes = std::fs::read(&args.contract).map_err(|error| ContractError::unreadable(&name, &error))?;
    let contract = QueueRoundContract::read(&bytes, &name)?;
    let contract_sha = ledger::sha256_hex(&bytes);
    let channels = Channels::read(&args.channels, &name_of(&args.channels))?;
    let now = args.now.unwrap_or_else(|| wall_clock(contract.delay_unit));
    let place = place_of(args.report.as_deref());
    let unwritable = |source| {
        Failure::Report(ReportError {
            place: place.clone(),
            source,
        })
    };
    let mut draft = Draft::new(args.report.as_deref()).map_err(unwritable)?;

    let mut parts = Parts::new();
    let bar = progress_bar(&args.queue);
    let scanned = queue::scan(
        &args.queue,
        &name_of(&args.queue),
        &|bytes| bar.inc(bytes),
        |number, line| {
            parts
                .take(&contract, &channels, now, number, &line)
                .map_err(unwritable)
        },
    );
    bar.finish_and_clear();
    let queue_sha = scanned?;
    let inputs = Inputs {
        contract: &contract_sha,
        channels: &channels.sha256,
        queue: &queue_sha,
    };
    parts
        .write(&mut draft, contract.delay_unit, now, &inputs)
        .map_err(unwritable)?;
    draft.publish().map_err(unwritable)?;
    Ok(parts.tally)
}

impl Parts {
    fn new() -> Self {
        Self {
            results: tempfile::SpooledTempFile::new(IN_MEMORY),
            malformed: tempfile::SpooledTempFile::new(IN_MEMORY),
            first_result: true,
            first_malformed: true,
            tally: Tally::default(),
        }
    }

    fn take(
        &mut self,
        contract: &QueueRoundContract,
        channels: &Channels,
        now: i64,
        number: u64,
        line: &Line<'_>,
    ) -> io::Result<()> {
        let item = match line {
            Line::Item(item) => item,
            Line::Malformed(error) => {
                self.tally.add_malformed();
                if self.tally.malformed() <= NAMED {
                    note(format_args!("malformed: {error}"));
                }
                let row = Malformed {
                    line: number,
                    what: error.what(),
                };
                return write_row(&mut self.malformed, &mut self.first_malformed, &row);
            }
        };
        let asked = Item {
            channel_enabled: channels.enabled.get(&*item.channel).copied(),
            attempts: item.attempts,
            received_at_value: item.received_at_value,
        };
        let appraised = appraise(contract, &asked, now);
        self.tally.add(appraised.verdict);
        let row = ResultRow {
            id: &item.id,
            channel: &item.channel,
            attempts: item.attempts,
            age_ms: appraised.age_ms,
            backoff_ms: appraised.backoff_ms,
            verdict: appraised.verdict,
            reason: appraised.reason,
            delay_unit: contract.delay_unit,
            wait_ms: appraised.wait_ms,
        };
        write_row(&mut self.results, &mut self.first_result, &row)
    }

    fn write(&mut self, out: &mut Draft, unit: DelayUnit, now: i64, inputs: &Inputs<'_>) -> io::Result<()> {
        let Tally {
            items_total,
            deliver,
            defer,
            block,
            dead,
        } = self.tally;
        let ok = self.tally.ok();
        write!(
            out,
            "{{\"engine\": \"queue-appraiser\", \"delay_unit\": \"{}\", \"now\": {now}",
            unit.word()
        )?;
        write!(
            out,
            ", \"items_total\": {items_total},\n \"deliver\": {deliver}, \"defer\": {defer}"
        )?;
        write!(
            out,
            ", \"block\": {block}, \"dead\": {dead}, \"ok\": {ok},\n \"malformed_rows\": ["
        )?;
        io::Seek::rewind(&mut self.malformed)?;
        io::copy(&mut self.malformed, out)?;
        write!(out, "],\n \"inputs\": {}", serde_json::to_string(inputs)?)?;
        write!(
            out,
            ", \"build\": {},\n \"results\": [",
            serde_json::to_string(&build_id())?
        )?;
        io::Seek::rewind(&mut self.results)?;
        io::copy(&mut self.results, out)?;
        out.write_all(b"\n ]}\n")
    }
}

/// The wall clock in the contract's unit.
fn wall_clock(unit: DelayUnit) -> i64 {
    // The one clock of this command, and an argument overrides it.
    #[expect(clippy::disallowed_methods, reason = "the edge where time comes in")]
    let since_1970 = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    match unit {
        DelayUnit::Milliseconds => i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX),
        DelayUnit::Seconds => i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX),
    }
}
