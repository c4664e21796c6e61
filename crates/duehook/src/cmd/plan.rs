//! `duehook plan`: the retry round over files (spec/retry-round.md). Reads, folds, reports; every rule stands in
//! `schedule`.
//!
//! The report is written whole or not at all, and not when the contract is unusable (I7).

use crate::exit::Exit;
use crate::report::{Draft, build_id, spare};
use crate::ui::{fail, note, say};
use contract::ContractError;
use contract::rounds::RetryRoundContract;
use indicatif::{ProgressBar, ProgressStyle};
use ledger::FactsError;
use ledger::attempts::{self, Options};
use ledger::endpoints::Endpoints;
use schedule::round::retry::{self, Figures, PlanRow, Planner};
use serde::Serialize;
use std::io::{self, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Plan a retry round: for each attempt of a ledger, when was it allowed to start, and did it start too early?
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  duehook plan --contract retry.env --endpoints endpoints.tsv --attempts attempts.tsv\n  \
duehook plan --contract retry.env --endpoints endpoints.tsv --attempts attempts.tsv --report plan.json --strict\n  \
duehook plan … --summary --skip-id-check        a large ledger, its figures alone\n\n\
Exit codes: 0 a report was produced · 2 facts missing or wrong, or (--strict) the round is not ok · 3 contract unusable\n\
Judge the report with `duehook health plan` and `duehook probe plan`."
)]
pub(crate) struct Args {
    /// The contract, KEY=value lines
    #[arg(long, value_name = "FILE")]
    contract: PathBuf,
    /// endpoint_id state max_attempts backoff_base_s dispatch_gap_s, tab-separated
    #[arg(long, value_name = "FILE")]
    endpoints: PathBuf,
    /// attempt_id endpoint_id attempt_no start_ts finish_ts status error, tab-separated, in ledger order
    #[arg(long, value_name = "FILE")]
    attempts: PathBuf,
    /// Where the report goes; without it, to standard output
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Leave the plan of each row out: `plan` is null
    #[arg(long)]
    summary: bool,
    /// Exit 2 when the round is not ok
    #[arg(long)]
    strict: bool,
    /// Do not check that attempt ids are unique
    #[arg(long)]
    skip_id_check: bool,
    /// Threads [default: as many as there are cores]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Print the figures as JSON on standard output beside a --report
    #[arg(long)]
    json: bool,
}

#[expect(clippy::needless_pass_by_value, reason = "every command has this shape")]
pub(crate) fn run(args: Args) -> Exit {
    if let Err(error) = spare(
        args.report.as_deref(),
        &[&args.contract, &args.endpoints, &args.attempts],
    ) {
        return fail(Exit::Usage, &error);
    }
    let printed = args.json || args.report.is_none();
    match plan(&args) {
        Ok(figures) => {
            let Figures { totals, ok, .. } = figures;
            if args.json && args.report.is_some() {
                say(serde_json::json!({ "contract_available": true, "figures": figures }));
            }
            note(format_args!(
                "plan={} endpoints={} too_early={} ok={ok}",
                totals.attempts, totals.endpoints, totals.too_early
            ));
            if args.strict && !ok {
                Exit::Problem
            } else {
                Exit::Clean
            }
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

/// Why there is no report.
pub(crate) enum Failure {
    Contract(ContractError),
    Facts(FactsError),
    Report(ReportError),
}

/// The report could not be written.
#[derive(Debug, thiserror::Error)]
#[error("the report {place} cannot be written; name a file in a folder that exists and may be written")]
pub(crate) struct ReportError {
    pub(crate) place: String,
    #[source]
    pub(crate) source: io::Error,
}

impl From<FactsError> for Failure {
    fn from(error: FactsError) -> Self {
        Self::Facts(error)
    }
}

impl From<ContractError> for Failure {
    fn from(error: ContractError) -> Self {
        Self::Contract(error)
    }
}

/// What comes after the plan in the report.
#[derive(Serialize)]
struct Inputs<'a> {
    contract: &'a str,
    endpoints: &'a str,
    attempts: &'a str,
}

fn plan(args: &Args) -> Result<Figures, Failure> {
    // The contract comes first: when it is unusable, nothing else is judged or written (3 beats 2).
    let (contract, contract_sha) = read_contract(&args.contract)?;
    let endpoints = Endpoints::read(&args.endpoints, &name_of(&args.endpoints))?;
    let unwritable = |source| {
        Failure::Report(ReportError {
            place: place_of(args.report.as_deref()),
            source,
        })
    };
    let mut draft = Draft::new(args.report.as_deref()).map_err(unwritable)?;
    let mut unknown = Unknown::new();

    let mut planner = planner(contract, &endpoints);
    open_report(&mut draft, &planner, &endpoints, args.summary).map_err(unwritable)?;
    let scanned = scan(args, &endpoints, &mut planner, &mut draft, &mut unknown)?;
    let figures = planner.figures();
    let inputs = Inputs {
        contract: &contract_sha,
        endpoints: &endpoints.sha256,
        attempts: &scanned.sha256,
    };
    close_report(&mut draft, args.summary, &figures, &mut unknown, &inputs).map_err(unwritable)?;
    draft.publish().map_err(unwritable)?;
    unknown.warn(&name_of(&args.attempts));
    Ok(figures)
}

fn read_contract(path: &Path) -> Result<(RetryRoundContract, String), ContractError> {
    let name = name_of(path);
    let bytes = std::fs::read(path).map_err(|error| ContractError::unreadable(&name, &error))?;
    Ok((
        RetryRoundContract::read(&bytes, &name)?,
        ledger::sha256_hex(&bytes),
    ))
}

fn planner(contract: RetryRoundContract, endpoints: &Endpoints) -> Planner {
    let of_the_round = endpoints.list.iter().map(|endpoint| retry::Endpoint {
        state: endpoint.state,
        max_attempts: endpoint.max_attempts,
        backoff_base_s: endpoint.backoff_base_s,
        dispatch_gap_s: endpoint.dispatch_gap_s,
    });
    Planner::new(contract, of_the_round)
}

fn scan(
    args: &Args,
    endpoints: &Endpoints,
    planner: &mut Planner,
    draft: &mut Draft,
    unknown: &mut Unknown,
) -> Result<attempts::Scanned, Failure> {
    let options = Options {
        jobs: jobs(args.jobs),
        check_ids: !args.skip_id_check,
    };
    let bar = progress_bar(&args.attempts);
    let place = place_of(args.report.as_deref());
    let mut first = true;
    let scanned = attempts::scan(
        &args.attempts,
        &name_of(&args.attempts),
        &endpoints.index(),
        options,
        &|bytes| bar.inc(bytes),
        |row| {
            let planned = planner.row(&retry::Row {
                endpoint: row.endpoint,
                attempt_no: row.attempt_no,
                start_ts: row.start_ts,
                finish_ts: row.finish_ts,
                status: row.status,
            });
            let written = match (row.endpoint, planned) {
                (None, _) => unknown.add(row.line),
                (Some(place), Some(planned)) if !args.summary => {
                    let endpoint = usize::try_from(place)
                        .ok()
                        .and_then(|place| endpoints.list.get(place));
                    let row = PlanRow {
                        attempt_id: row.attempt_id(),
                        endpoint_id: endpoint.map_or("", |endpoint| &endpoint.id),
                        attempt_no: row.attempt_no,
                        earliest_ts: planned.earliest_ts,
                        scheduled_delta_s: planned.scheduled_delta_s,
                        verdict: planned.verdict,
                    };
                    write_row(draft, &mut first, &row)
                }
                _ => Ok(()),
            };
            written.map_err(|source| {
                Failure::Report(ReportError {
                    place: place.clone(),
                    source,
                })
            })
        },
    );
    bar.finish_and_clear();
    scanned
}

/// A row on a line of its own, so that large reports can be read by line too.
pub(crate) fn write_row(out: &mut impl io::Write, first: &mut bool, row: &impl Serialize) -> io::Result<()> {
    out.write_all(if *first { b"\n  " } else { b",\n  " })?;
    *first = false;
    serde_json::to_writer(out, row).map_err(io::Error::from)
}

fn open_report(draft: &mut Draft, planner: &Planner, endpoints: &Endpoints, summary: bool) -> io::Result<()> {
    let mut admissible: Vec<&str> = (0..)
        .zip(&endpoints.list)
        .filter(|(place, _)| planner.admits(*place))
        .map(|(_, endpoint)| &*endpoint.id)
        .collect();
    admissible.sort_unstable();
    draft.write_all(b"{\"admissible_endpoints\": ")?;
    serde_json::to_writer(&mut *draft, &admissible)?;
    // Absent and empty are different things: null says that the plan was left out.
    draft.write_all(if summary {
        b",\n \"plan\": null"
    } else {
        b",\n \"plan\": ["
    })
}

fn close_report(
    draft: &mut Draft,
    summary: bool,
    figures: &Figures,
    unknown: &mut Unknown,
    inputs: &Inputs<'_>,
) -> io::Result<()> {
    let json = |value: serde_json::Result<String>| value.map_err(io::Error::from);
    if !summary {
        draft.write_all(b"\n ]")?;
    }
    write!(
        draft,
        ",\n \"totals\": {}",
        json(serde_json::to_string(&figures.totals))?
    )?;
    write!(
        draft,
        ",\n \"counts\": {}",
        json(serde_json::to_string(&figures.counts))?
    )?;
    draft.write_all(b",\n \"unknown_endpoint_rows\": [")?;
    unknown.copy_to(draft)?;
    write!(
        draft,
        "],\n \"over_dead_letter\": {}, \"ok\": {}",
        figures.over_dead_letter, figures.ok
    )?;
    write!(draft, ",\n \"inputs\": {}", json(serde_json::to_string(inputs))?)?;
    writeln!(
        draft,
        ",\n \"build\": {}}}",
        json(serde_json::to_string(&build_id()))?
    )
}

/// Line numbers of rows that name an unknown endpoint. There can be as many as rows, so they do not stay in memory.
struct Unknown {
    lines: tempfile::SpooledTempFile,
    count: u64,
    first: Vec<u64>,
}

impl Unknown {
    /// So many are named in the warning.
    const NAMED: usize = 5;

    fn new() -> Self {
        Self {
            lines: tempfile::SpooledTempFile::new(1024 * 1024),
            count: 0,
            first: Vec::new(),
        }
    }

    fn add(&mut self, line: u64) -> io::Result<()> {
        let comma = if self.count == 0 { "" } else { "," };
        write!(self.lines, "{comma}{line}")?;
        self.count += 1;
        if self.first.len() < Self::NAMED {
            self.first.push(line);
        }
        Ok(())
    }

    fn copy_to(&mut self, out: &mut impl io::Write) -> io::Result<()> {
        io::Seek::rewind(&mut self.lines)?;
        io::copy(&mut self.lines, out).map(drop)
    }

    fn warn(&self, name: &str) {
        if self.count == 0 {
            return;
        }
        let named: Vec<String> = self.first.iter().map(u64::to_string).collect();
        let more = if self.count > Self::NAMED as u64 {
            ", …"
        } else {
            ""
        };
        let (rows, lines) = if self.count == 1 {
            ("row names", "line")
        } else {
            ("rows name", "lines")
        };
        note(format_args!(
            "warning: {name}: {} {rows} an endpoint that the endpoints file does not have: {lines} {}{more}; \
             nothing is planned there; add the endpoint, or correct the ledger",
            self.count,
            named.join(", "),
        ));
    }
}

/// What messages call a file.
pub(crate) fn name_of(path: &Path) -> String {
    path.display().to_string()
}

pub(crate) fn place_of(report: Option<&Path>) -> String {
    report.map_or_else(|| "on standard output".to_owned(), name_of)
}

fn jobs(asked: Option<NonZeroUsize>) -> NonZeroUsize {
    asked
        .or_else(|| std::thread::available_parallelism().ok())
        .unwrap_or(NonZeroUsize::MIN)
}

/// By bytes; draws nothing where standard error is no terminal.
pub(crate) fn progress_bar(path: &Path) -> ProgressBar {
    let size = std::fs::metadata(path).map_or(0, |file| file.len());
    let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta}");
    ProgressBar::new(size).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
