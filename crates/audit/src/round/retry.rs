//! The retry round, derived again (spec/retry-round.md): one pass over the ledger, holding endpoints and, where asked, the
//! rows of the plan.

use super::cut;
use super::table::{Row, Table};
use super::unique::{self, Hashes};
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
    let mut round = Round::new(contract, read_endpoints(endpoints)?, options);
    let mut hashes = options.check_ids.then(Hashes::default);
    let mut table = Table::open(attempts, &ATTEMPTS)?;
    while let Some(row) = table.next()? {
        let attempt = attempt(contract, &row)?;
        if let Some(hashes) = &mut hashes {
            hashes.take(attempt.id).map_err(FactsError::spill)?;
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
    by_id: HashMap<String, usize>,
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
        self.attempts += 1;
        if self
            .endpoints
            .get(self.latest)
            .is_none_or(|latest| latest.id != row.endpoint)
        {
            let Some(place) = self.by_id.get(row.endpoint) else {
                self.unknown.push(line);
                return;
            };
            self.latest = *place;
        }
        let Some(endpoint) = self
            .endpoints
            .get_mut(self.latest)
            .filter(|endpoint| endpoint.active)
        else {
            return;
        };
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
        if let Some(plan) = &mut self.plan {
            plan.push((
                self.latest,
                PlanRow {
                    attempt_id: row.id.into(),
                    endpoint: 0,
                    attempt_no: row.number,
                    earliest_ts: earliest,
                    scheduled_delta_s: delta,
                },
            ));
        }
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
    use super::grown;

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
