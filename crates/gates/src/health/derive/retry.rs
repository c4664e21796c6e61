//! The retry round (spec/retry-round.md): gathers each endpoint's rows, then walks every endpoint on its own.

use super::facts::Table;
use super::{Failed, contract_bytes, cut, unusable};
use crate::files::RetryFiles;
use contract::rounds::RetryRoundContract;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const ENDPOINTS: &[&str] = &[
    "endpoint_id",
    "state",
    "max_attempts",
    "backoff_base_s",
    "dispatch_gap_s",
];
const ATTEMPTS: &[&str] = &[
    "attempt_id",
    "endpoint_id",
    "attempt_no",
    "start_ts",
    "finish_ts",
    "status",
    "error",
];

struct Endpoint {
    active: bool,
    max_attempts: i64,
    base: i64,
    gap: i64,
}

struct Attempt<'a> {
    id: &'a str,
    number: i64,
    start: i64,
    finish: i64,
    success: bool,
}

/// The report, without `inputs` and `build`.
pub(in super::super) fn plan(files: &RetryFiles) -> Result<Value, Failed> {
    let (bytes, name) = contract_bytes(&files.contract)?;
    let contract = RetryRoundContract::read(&bytes, &name).map_err(|error| unusable(&error))?;
    let table = Table::read(&files.endpoints, ENDPOINTS)?;
    let endpoints = endpoints(&table)?;
    let table = Table::read(&files.attempts, ATTEMPTS)?;
    // Each row's place in the ledger beside it: the plan is put back in that order at the end.
    let mut by_endpoint: BTreeMap<&str, Vec<(usize, Attempt<'_>)>> = BTreeMap::new();
    let mut unknown = Vec::new();
    let mut ids = BTreeSet::new();
    for row in table.rows() {
        let row = row?;
        let attempt = attempt(&contract, &row)?;
        if !ids.insert(attempt.id) {
            return Err(row.wrong(0, "an id that no row before it has"));
        }
        let endpoint = row.id(1)?;
        if endpoints.contains_key(endpoint) {
            by_endpoint.entry(endpoint).or_default().push((row.line, attempt));
        } else {
            unknown.push(row.line);
        }
    }
    let mut walks = Walks::default();
    for (id, endpoint) in &endpoints {
        let rows = by_endpoint.get(id).map(Vec::as_slice).unwrap_or_default();
        if endpoint.active && !rows.is_empty() {
            walks.walk(&contract, id, endpoint, rows);
        } else {
            walks.skipped += 1;
        }
    }
    Ok(walks.report(&contract, &endpoints, ids.len(), &unknown))
}

fn endpoints(table: &Table) -> Result<BTreeMap<&str, Endpoint>, Failed> {
    let mut all = BTreeMap::new();
    for row in table.rows() {
        let row = row?;
        let active = match row.text(1) {
            "active" => true,
            "draining" | "disabled" => false,
            _ => return Err(row.wrong(1, "active, draining or disabled")),
        };
        let endpoint = Endpoint {
            active,
            max_attempts: row.integer(2, 1)?,
            base: row.integer(3, 0)?,
            gap: row.integer(4, 0)?,
        };
        if all.insert(row.id(0)?, endpoint).is_some() {
            return Err(row.wrong(0, "an id that no row before it has"));
        }
    }
    Ok(all)
}

fn attempt<'a>(contract: &RetryRoundContract, row: &super::facts::Row<'a>) -> Result<Attempt<'a>, Failed> {
    let (start, finish) = (row.integer(3, i64::MIN)?, row.integer(4, i64::MIN)?);
    if finish < start {
        return Err(row.wrong(4, "a finish that is not before the start"));
    }
    let status = if row.text(5) == "-" {
        None
    } else {
        Some(row.integer(5, i64::MIN)?)
    };
    let (low, high) = (i64::from(contract.success_min), i64::from(contract.success_max));
    Ok(Attempt {
        id: row.id(0)?,
        number: row.integer(2, 1)?,
        start,
        finish,
        success: status.is_some_and(|status| low <= status && status <= high),
    })
}

/// What the walks over all endpoints add up to.
#[derive(Default)]
struct Walks {
    plan: Vec<(usize, Value)>,
    too_early: usize,
    /// Too-early rows of the endpoint that has most.
    most_too_early: i64,
    waited: i128,
    succeeded: usize,
    exhausted: usize,
    skipped: usize,
}

impl Walks {
    fn walk(
        &mut self,
        contract: &RetryRoundContract,
        id: &str,
        endpoint: &Endpoint,
        rows: &[(usize, Attempt<'_>)],
    ) {
        let mut open: i64 = 0; // rows of the delivery that is open; none at first
        let mut early: i64 = 0;
        for (n, (line, row)) in rows.iter().enumerate() {
            let before = n
                .checked_sub(1)
                .and_then(|n| rows.get(n))
                .map(|(_, before)| before);
            let earliest = match before.filter(|_| open > 0) {
                None => 0,
                Some(before) => {
                    self.waited += i128::from(cut(i128::from(row.start) - i128::from(before.finish)));
                    let wait = i128::from(endpoint.gap.min(grown(
                        endpoint.base,
                        contract.backoff_factor,
                        row.number - 1,
                    )));
                    cut(i128::from(before.finish) + wait + i128::from(contract.admit_slack_s))
                }
            };
            let delta = cut(i128::from(row.start) - i128::from(earliest));
            let verdict = if delta < 0 { "too_early" } else { "ok" };
            early += i64::from(delta < 0);
            self.plan.push((*line, json!({
                "attempt_id": row.id, "endpoint_id": id, "attempt_no": row.number, "earliest_ts": earliest,
                "scheduled_delta_s": delta, "verdict": verdict,
            })));
            open = if row.success || open + 1 >= endpoint.max_attempts {
                0
            } else {
                open + 1
            };
        }
        self.too_early += usize::try_from(early).unwrap_or(usize::MAX);
        self.most_too_early = self.most_too_early.max(early);
        if rows.last().is_some_and(|(_, last)| last.success) {
            self.succeeded += 1;
        } else {
            self.exhausted += 1;
        }
    }

    fn report(
        mut self,
        contract: &RetryRoundContract,
        endpoints: &BTreeMap<&str, Endpoint>,
        rows: usize,
        unknown: &[usize],
    ) -> Value {
        self.plan.sort_by_key(|(line, _)| *line);
        let plan: Vec<Value> = self.plan.into_iter().map(|(_, row)| row).collect();
        let admissible: Vec<&str> = endpoints
            .iter()
            .filter(|(_, endpoint)| endpoint.active)
            .map(|(id, _)| *id)
            .collect();
        let over = self.most_too_early > contract.dead_letter_after;
        json!({
            "totals": {
                "attempts": plan.len(), "endpoints": admissible.len(), "ok": plan.len() - self.too_early,
                "too_early": self.too_early, "backoff_s": cut(self.waited),
            },
            "counts": {"attempts": rows, "succeeded": self.succeeded, "exhausted": self.exhausted, "skipped": self.skipped},
            "admissible_endpoints": admissible, "plan": plan, "unknown_endpoint_rows": unknown,
            "over_dead_letter": over, "ok": self.too_early == 0 && !over,
        })
    }
}

/// base × factor ^ exponent, saturating.
fn grown(base: i64, factor: i64, exponent: i64) -> i64 {
    let power = if exponent >= 63 {
        // 2 ^ 63 is beyond 64 bits already, and 1 ^ anything is 1
        if factor > 1 { i64::MAX } else { 1 }
    } else {
        factor.saturating_pow(u32::try_from(exponent).unwrap_or(0))
    };
    cut(i128::from(base) * i128::from(power))
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
        ] {
            assert_eq!(
                grown(base, factor, exponent),
                due,
                "{base} × {factor} ^ {exponent}"
            );
        }
    }
}
