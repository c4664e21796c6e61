//! The retry round, derived again (spec/retry-round.md): one pass over the ledger, holding endpoints and, where asked, the
//! rows of the plan.

use super::lines::MAX_LINE;
use super::table::{self, Row, Table};
use super::unique::{self, Hashes};
use super::{chunks, cut};
use crate::facts::FactsError;
use contract::rounds::RetryRoundContract;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::path::Path;

const ENDPOINTS: [&str; 5] = [
    "endpoint_id",
    "state",
    "max_attempts",
    "backoff_base_s",
    "dispatch_gap_s",
];
const ATTEMPTS: [&str; 7] = [
    "attempt_id",
    "endpoint_id",
    "attempt_no",
    "start_ts",
    "finish_ts",
    "status",
    "error",
];

/// What to do beside the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Keep the rows of the plan; without them memory does not grow with the ledger.
    pub rows: bool,
    /// Look for ids that stand twice.
    pub check_ids: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rows: true,
            check_ids: true,
        }
    }
}

/// A row of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanRow {
    /// Its id.
    pub attempt_id: Box<str>,
    /// Its endpoint, by place among [`Derived::admissible`].
    pub endpoint: usize,
    /// Its own number.
    pub attempt_no: i64,
    /// The earliest start, in Unix seconds; 0 for a row that opens a delivery.
    pub earliest_ts: i64,
    /// Start less earliest start, in seconds; negative is too early.
    pub scheduled_delta_s: i64,
}

/// What the round comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derived {
    /// Admissible endpoints, by id.
    pub admissible: Vec<String>,
    /// The plan in ledger order; `None` where it was not to be kept.
    pub plan: Option<Vec<PlanRow>>,
    /// Planned rows.
    pub planned: u64,
    /// Planned rows that started too early.
    pub too_early: u64,
    /// Seconds between an end and the next start within a delivery, in all.
    pub backoff_s: i64,
    /// Rows of the ledger.
    pub attempts: u64,
    /// Endpoints whose last row is a success.
    pub succeeded: u64,
    /// Endpoints whose last row is none.
    pub exhausted: u64,
    /// Endpoints that are not admissible or have no row.
    pub skipped: u64,
    /// Lines of rows that name an unknown endpoint.
    pub unknown_endpoint_rows: Vec<u64>,
    /// An endpoint has more too-early rows than the contract's mark.
    pub over_dead_letter: bool,
}

impl Derived {
    /// Nothing was too early.
    #[must_use]
    pub const fn ok(&self) -> bool {
        self.too_early == 0 && !self.over_dead_letter
    }

    /// As the report has it, without what a report says of itself (`inputs`, `build`). A plan that was not kept is null.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let row = |row: &PlanRow| {
            json!({
                "attempt_id": row.attempt_id, "endpoint_id": self.admissible.get(row.endpoint), "attempt_no": row.attempt_no,
                "earliest_ts": row.earliest_ts, "scheduled_delta_s": row.scheduled_delta_s,
                "verdict": if row.scheduled_delta_s < 0 { "too_early" } else { "ok" },
            })
        };
        let plan: Option<Vec<Value>> = self.plan.as_ref().map(|plan| plan.iter().map(row).collect());
        json!({
            "admissible_endpoints": self.admissible,
            "plan": plan,
            "totals": {
                "attempts": self.planned, "endpoints": self.admissible.len(), "ok": self.planned - self.too_early,
                "too_early": self.too_early, "backoff_s": self.backoff_s,
            },
            "counts": {
                "attempts": self.attempts, "succeeded": self.succeeded, "exhausted": self.exhausted, "skipped": self.skipped,
            },
            "unknown_endpoint_rows": self.unknown_endpoint_rows,
            "over_dead_letter": self.over_dead_letter,
            "ok": self.ok(),
        })
    }
}

/// An endpoint, and where its rows have led so far.
#[derive(Clone)]
struct Endpoint {
    id: String,
    active: bool,
    max_attempts: i64,
    base: i64,
    gap: i64,
    /// Rows of the delivery that is open; none at first and behind one that is closed.
    open: i64,
    rows: u64,
    last_finish: i64,
    last_success: bool,
    too_early: u64,
}

struct Attempt<'a> {
    id: &'a str,
    endpoint: &'a str,
    number: i64,
    start: i64,
    finish: i64,
    success: bool,
}

/// Derives the round.
///
/// # Errors
/// A file is missing or unreadable, or a row breaks a rule of its file: the boundaries cannot be judged.
pub fn derive(
    contract: &RetryRoundContract,
    endpoints: &Path,
    attempts: &Path,
    options: Options,
) -> Result<Derived, FactsError> {
    let known = read_endpoints(endpoints)?;
    // The header is judged first; nothing below looks at it.
    Table::open(attempts, &ATTEMPTS)?;
    if let Some(derived) = fast(contract, &known, attempts, options) {
        return Ok(derived);
    }
    let mut round = Round::new(contract, known, options);
    let mut hashes = options.check_ids.then(Hashes::default);
    let mut table = Table::open(attempts, &ATTEMPTS)?;
    while let Some(row) = table.next()? {
        let attempt = attempt(contract, &row)?;
        if let Some(hashes) = &mut hashes {
            hashes.take(unique::hash(attempt.id)).map_err(FactsError::spill)?;
        }
        round.row(row.line, &attempt);
    }
    if let Some(hashes) = hashes {
        let repeated = hashes.repeated().map_err(FactsError::spill)?;
        if !repeated.is_empty() {
            twice(attempts, &repeated)?;
        }
    }
    Ok(round.derived())
}

/// Endpoints by id.
type Places = HashMap<String, usize, foldhash::fast::RandomState>;

/// A row as a thread read it: what it says of time, and its endpoint by place.
struct Slim {
    place: Option<usize>,
    number: i64,
    start: i64,
    finish: i64,
    success: bool,
}

/// What one piece of the ledger comes to.
struct Piece {
    rows: Vec<Slim>,
    hashes: Vec<u64>,
}

/// Derives the figures on all cores. `None` where rows are wanted, or where anything is odd: the plain way says what.
fn fast(
    contract: &RetryRoundContract,
    endpoints: &[Endpoint],
    attempts: &Path,
    options: Options,
) -> Option<Derived> {
    if options.rows {
        return None;
    }
    let mut round = Round::new(contract, endpoints.to_vec(), options);
    let by_id = round.by_id.clone();
    let mut hashes = options.check_ids.then(Hashes::default);
    // The header is line 1.
    let mut line = 1;
    let whole = chunks::scan(
        attempts,
        |text| slim(contract, &by_id, text, options.check_ids),
        |piece: Piece| {
            for row in &piece.rows {
                line += 1;
                round.slim(line, row);
            }
            let mut taken = piece.hashes.iter();
            hashes
                .as_mut()
                .is_none_or(|hashes| taken.all(|hash| hashes.take(*hash).is_ok()))
                .then_some(())
        },
    );
    let repeated = match hashes {
        Some(hashes) if whole => !hashes.repeated().ok()?.is_empty(),
        _ => false,
    };
    (whole && !repeated).then(|| round.derived())
}

fn slim(contract: &RetryRoundContract, by_id: &Places, text: &str, check_ids: bool) -> Option<Piece> {
    let mut piece = Piece {
        rows: Vec::with_capacity(text.len() / 40),
        hashes: Vec::new(),
    };
    let success = i64::from(contract.success_min)..=i64::from(contract.success_max);
    let mut rest = text;
    while !rest.is_empty() {
        let (cells, length) = cut_line(rest)?;
        rest = rest.get(length..)?;
        let [id, endpoint, number, start, finish, status, _] = cells;
        let (number, start, finish) = (
            table::integer(number)?,
            table::integer(start)?,
            table::integer(finish)?,
        );
        if length > MAX_LINE || id.is_empty() || endpoint.is_empty() || number < 1 || finish < start {
            return None;
        }
        piece.rows.push(Slim {
            place: by_id.get(endpoint).copied(),
            number,
            start,
            finish,
            success: status != "-" && success.contains(&table::integer(status)?),
        });
        if check_ids {
            piece.hashes.push(unique::hash(id));
        }
    }
    Some(piece)
}

/// The seven cells of the first line, and its length with its end.
fn cut_line(text: &str) -> Option<([&str; 7], usize)> {
    let (mut cells, mut begin) = ([""; 7], 0);
    let mut marks = memchr::memchr2_iter(b'\t', b'\n', text.as_bytes());
    for (n, cell) in cells.iter_mut().enumerate() {
        let at = marks.next();
        let ends_line = at.is_none_or(|at| text.as_bytes().get(at) == Some(&b'\n'));
        if ends_line != (n == 6) {
            return None;
        }
        *cell = text.get(begin..at.unwrap_or(text.len()))?;
        begin = at.map_or(text.len(), |at| at + 1);
    }
    Some((cells, begin))
}

/// Sorted by id.
fn read_endpoints(path: &Path) -> Result<Vec<Endpoint>, FactsError> {
    let mut table = Table::open(path, &ENDPOINTS)?;
    let (mut all, mut lines) = (Vec::new(), HashMap::new());
    while let Some(row) = table.next()? {
        let id = row.id(0)?.to_owned();
        if let Some(first) = lines.insert(id.clone(), row.line) {
            return Err(row.wrong(0, &format!("ids that stand once; it is in line {first} already")));
        }
        all.push(Endpoint {
            id,
            active: match row.text(1) {
                "active" => true,
                "draining" | "disabled" => false,
                _ => return Err(row.wrong(1, "active, draining or disabled")),
            },
            max_attempts: row.integer(2, 1)?,
            base: row.integer(3, 0)?,
            gap: row.integer(4, 0)?,
            open: 0,
            rows: 0,
            last_finish: 0,
            last_success: false,
            too_early: 0,
        });
    }
    all.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    Ok(all)
}

fn attempt<'a>(contract: &RetryRoundContract, row: &Row<'a, 7>) -> Result<Attempt<'a>, FactsError> {
    let (start, finish) = (row.integer(3, i64::MIN)?, row.integer(4, i64::MIN)?);
    if finish < start {
        return Err(row.wrong(4, &format!("a finish that is not before the start, {start}")));
    }
    let status = match row.text(5) {
        "-" => None,
        _ => Some(row.integer(5, i64::MIN)?),
    };
    let success = i64::from(contract.success_min)..=i64::from(contract.success_max);
    Ok(Attempt {
        id: row.id(0)?,
        endpoint: row.id(1)?,
        number: row.integer(2, 1)?,
        start,
        finish,
        success: status.is_some_and(|status| success.contains(&status)),
    })
}

/// Looks again at the ids whose hashes met, and refuses the first that stands twice.
fn twice(path: &Path, repeated: &HashSet<u64>) -> Result<(), FactsError> {
    let mut table = Table::open(path, &ATTEMPTS)?;
    let mut lines: HashMap<String, u64> = HashMap::new();
    while let Some(row) = table.next()? {
        let id = row.text(0);
        if !repeated.contains(&unique::hash(id)) {
            continue;
        }
        if let Some(first) = lines.insert(id.to_owned(), row.line) {
            return Err(row.wrong(0, &format!("ids that stand once; it is in line {first} already")));
        }
    }
    Ok(())
}

struct Round<'a> {
    contract: &'a RetryRoundContract,
    endpoints: Vec<Endpoint>,
    by_id: Places,
    /// The endpoint of the row before: rows of one endpoint often stand together.
    latest: usize,
    plan: Option<Vec<(usize, PlanRow)>>,
    planned: u64,
    waited: i128,
    attempts: u64,
    unknown: Vec<u64>,
}

impl<'a> Round<'a> {
    fn new(contract: &'a RetryRoundContract, endpoints: Vec<Endpoint>, options: Options) -> Self {
        let by_id = endpoints
            .iter()
            .enumerate()
            .map(|(n, endpoint)| (endpoint.id.clone(), n))
            .collect();
        Self {
            contract,
            endpoints,
            by_id,
            latest: 0,
            plan: options.rows.then(Vec::new),
            planned: 0,
            waited: 0,
            attempts: 0,
            unknown: Vec::new(),
        }
    }

    fn row(&mut self, line: u64, row: &Attempt<'_>) {
        let is_latest = |latest: &Endpoint| latest.id == row.endpoint;
        let place = if self.endpoints.get(self.latest).is_some_and(is_latest) {
            Some(self.latest)
        } else {
            self.by_id.get(row.endpoint).copied()
        };
        let slim = Slim {
            place,
            number: row.number,
            start: row.start,
            finish: row.finish,
            success: row.success,
        };
        if let Some((place, earliest_ts, scheduled_delta_s)) = self.slim(line, &slim)
            && let Some(plan) = &mut self.plan
        {
            let planned = PlanRow {
                attempt_id: row.id.into(),
                endpoint: 0,
                attempt_no: row.number,
                earliest_ts,
                scheduled_delta_s,
            };
            plan.push((place, planned));
        }
    }

    /// Takes a row; its endpoint's place, earliest start and delta, where it is planned.
    fn slim(&mut self, line: u64, row: &Slim) -> Option<(usize, i64, i64)> {
        self.attempts += 1;
        let Some(place) = row.place else {
            self.unknown.push(line);
            return None;
        };
        self.latest = place;
        let endpoint = self.endpoints.get_mut(place).filter(|endpoint| endpoint.active)?;
        let earliest = if endpoint.open == 0 {
            0
        } else {
            self.waited += i128::from(cut(i128::from(row.start) - i128::from(endpoint.last_finish)));
            let grown = grown(endpoint.base, self.contract.backoff_factor, row.number - 1);
            // The gap caps the wait, whatever its name suggests.
            let wait = endpoint.gap.min(grown);
            cut(i128::from(endpoint.last_finish) + i128::from(wait) + i128::from(self.contract.admit_slack_s))
        };
        let delta = cut(i128::from(row.start) - i128::from(earliest));
        endpoint.too_early += u64::from(delta < 0);
        endpoint.rows += 1;
        endpoint.last_finish = row.finish;
        endpoint.last_success = row.success;
        // By counting, never by the number that the row has (I5).
        endpoint.open += 1;
        if row.success || endpoint.open >= endpoint.max_attempts {
            endpoint.open = 0;
        }
        self.planned += 1;
        Some((place, earliest, delta))
    }

    fn derived(self) -> Derived {
        let mark = u64::try_from(self.contract.dead_letter_after).unwrap_or(u64::MAX);
        let mut places = vec![0; self.endpoints.len()];
        let mut admissible = Vec::new();
        for (endpoint, place) in self
            .endpoints
            .iter()
            .zip(&mut places)
            .filter(|(endpoint, _)| endpoint.active)
        {
            *place = admissible.len();
            admissible.push(endpoint.id.clone());
        }
        let plan = self.plan.map(|plan| {
            let placed = |(endpoint, row): (usize, PlanRow)| PlanRow {
                endpoint: places.get(endpoint).copied().unwrap_or_default(),
                ..row
            };
            plan.into_iter().map(placed).collect()
        });
        let count = |which: fn(&&Endpoint) -> bool| self.endpoints.iter().filter(which).count() as u64;
        Derived {
            admissible,
            plan,
            planned: self.planned,
            too_early: self.endpoints.iter().map(|endpoint| endpoint.too_early).sum(),
            backoff_s: cut(self.waited),
            attempts: self.attempts,
            // Rows are counted for active endpoints alone.
            succeeded: count(|endpoint| endpoint.rows > 0 && endpoint.last_success),
            exhausted: count(|endpoint| endpoint.rows > 0 && !endpoint.last_success),
            skipped: count(|endpoint| endpoint.rows == 0),
            unknown_endpoint_rows: self.unknown,
            over_dead_letter: self.endpoints.iter().any(|endpoint| endpoint.too_early > mark),
        }
    }
}

/// base × factor ^ exponent, saturating.
fn grown(base: i64, factor: i64, exponent: i64) -> i64 {
    let power = match u32::try_from(exponent) {
        Ok(exponent) => factor.saturating_pow(exponent),
        // Beyond any 64 bits, unless it does not grow at all.
        Err(_) if factor > 1 => i64::MAX,
        Err(_) => 1,
    };
    base.saturating_mul(power)
}

#[cfg(test)]
mod tests {
    use super::{Derived, Options, derive, grown};
    use contract::rounds::RetryRoundContract;
    use std::fmt::Write;

    const ENDPOINTS: &str = "endpoint_id\tstate\tmax_attempts\tbackoff_base_s\tdispatch_gap_s\n\
        e-0\tactive\t3\t10\t70\ne-1\tdraining\t3\t10\t70\ne-2\tactive\t2\t20\t100\n";
    const HEADER: &str = "attempt_id\tendpoint_id\tattempt_no\tstart_ts\tfinish_ts\tstatus\terror";

    fn judged(attempts: &[u8], rows: bool) -> Result<Derived, String> {
        let folder = tempfile::tempdir().unwrap();
        let (endpoints, ledger) = (
            folder.path().join("endpoints.tsv"),
            folder.path().join("attempts.tsv"),
        );
        std::fs::write(&endpoints, ENDPOINTS).unwrap();
        std::fs::write(&ledger, attempts).unwrap();
        let contract = include_bytes!("../../../../cases/retry-round/retry.env");
        let contract = RetryRoundContract::read(contract, "retry.env").unwrap();
        let options = Options {
            rows,
            ..Options::default()
        };
        let derived = derive(&contract, &endpoints, &ledger, options);
        let derived =
            derived.map_err(|error| error.to_string().replace(&*folder.path().to_string_lossy(), ""));
        derived.map(|derived| Derived {
            plan: None,
            ..derived
        })
    }

    fn ledger(rows: i64, end: &str) -> String {
        let mut text = format!("{HEADER}{end}");
        for n in 0..rows {
            let (endpoint, status) = (n % 4, if n % 7 == 0 { "200" } else { "-" });
            let (start, number) = (n * 13, 1 + n % 5);
            let _ = write!(
                text,
                "a-{n}\te-{endpoint}\t{number}\t{start}\t{}\t{status}\tno answer{end}",
                start + n % 3
            );
        }
        text
    }

    #[test]
    fn figures_are_the_same_with_rows_and_without() {
        for (rows, end) in [(0, "\n"), (1, "\n"), (1000, "\r\n"), (120_000, "\n")] {
            let text = ledger(rows, end);
            for text in [text.as_str(), text.trim_end()] {
                let derived = judged(text.as_bytes(), false).unwrap();
                assert_eq!(derived, judged(text.as_bytes(), true).unwrap(), "{rows}");
                assert_eq!(derived.attempts, rows.unsigned_abs());
                assert_eq!(
                    derived.unknown_endpoint_rows.len(),
                    usize::try_from(rows / 4).unwrap()
                );
            }
        }
    }

    #[test]
    fn what_is_wrong_far_into_a_ledger_is_named_the_same_with_rows_and_without() {
        let good = ledger(90_000, "\n");
        for wrong in [
            "a-7\te-0\t1\t5\t6\t200\t-\n",
            "\n",
            "b-1\te-0\t0\t5\t6\t200\t-\n",
            "b-1\te-0\t1\t6\t5\t200\t-\n",
            "b-1\te-0\t1\t5\t6\t200\n",
            "b-1\te-0\t1\t5\t6\t200\t-\t-\n",
            "b-1\te-0\t1\t5\t99999999999999999999\t200\t-\n",
            "b-1\t\t1\t5\t6\t200\t-\n",
            "b\0\te-0\t1\t5\t6\t200\t-\n",
        ] {
            let text = format!("{good}{wrong}");
            let said = judged(text.as_bytes(), false).unwrap_err();
            assert!(said.contains("attempts.tsv:90002: found "), "{said}");
            assert_eq!(Err(said), judged(text.as_bytes(), true));
        }
    }

    #[test]
    fn growth_saturates_and_never_wraps() {
        for (base, factor, exponent, due) in [
            (10, 2, 0, 10),
            (10, 2, 3, 80),
            (0, i64::MAX, i64::MAX, 0),
            (7, 1, i64::MAX, 7),
            (1, 2, 62, 1 << 62),
            (1, 2, 63, i64::MAX),
            (3, i64::MAX, 1, i64::MAX),
            (1, 2, i64::MAX, i64::MAX),
        ] {
            assert_eq!(
                grown(base, factor, exponent),
                due,
                "{base} × {factor} ^ {exponent}"
            );
        }
    }
}
