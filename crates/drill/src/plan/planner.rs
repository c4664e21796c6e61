//! A small planner of the retry round with at most one fault in it, written for the drill alone.
//!
//! It takes files that a sound reader has accepted already. Without a fault its report must equal the clean one, which
//! the drill checks first: otherwise a difference would prove nothing about the fault.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A way to get the retry round wrong (spec/gates.md, drill).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanFault {
    /// `state != disabled` as the test.
    DrainingAdmitted,
    /// `dispatch_gap_s` as a floor.
    MaxForMin,
    /// The exponent is the row's number over the whole ledger.
    LifetimeExponent,
    /// `FACTOR ^ attempt_no`.
    ExponentTooHigh,
    /// Only the limit closes a delivery.
    NoResetAfterSuccess,
    /// A row numbered 1 opens a delivery, and no other does.
    BoundaryByAttemptNo,
    /// The first row of a delivery waits like any other.
    FirstHasEarliest,
    /// One success anywhere makes an endpoint `succeeded`.
    EverSucceeded,
    /// `counts.skipped` is not there.
    SkippedLeftOut,
    /// Totals over every row of the ledger.
    TotalsOverLedger,
    /// `over_dead_letter` is always false.
    OverDeadLetterConstant,
    /// `ok` is always true.
    OkConstant,
    /// No slack.
    SlackDropped,
    /// No answer counts as a success.
    DashIsSuccess,
    /// The wait begins when the attempt before started.
    WaitFromStart,
}

impl PlanFault {
    /// Every fault, in the order of the spec.
    pub const ALL: [Self; 15] = [
        Self::DrainingAdmitted,
        Self::MaxForMin,
        Self::LifetimeExponent,
        Self::ExponentTooHigh,
        Self::NoResetAfterSuccess,
        Self::BoundaryByAttemptNo,
        Self::FirstHasEarliest,
        Self::EverSucceeded,
        Self::SkippedLeftOut,
        Self::TotalsOverLedger,
        Self::OverDeadLetterConstant,
        Self::OkConstant,
        Self::SlackDropped,
        Self::DashIsSuccess,
        Self::WaitFromStart,
    ];

    /// What it does, in the words of the spec.
    #[must_use]
    pub const fn what(self) -> &'static str {
        match self {
            Self::DrainingAdmitted => "draining endpoints admitted",
            Self::MaxForMin => "max for min",
            Self::LifetimeExponent => "exponent by lifetime count",
            Self::ExponentTooHigh => "exponent one too high",
            Self::NoResetAfterSuccess => "no reset after success",
            Self::BoundaryByAttemptNo => "boundary taken from attempt_no",
            Self::FirstHasEarliest => "first attempt given an earliest time",
            Self::EverSucceeded => "last state by \"ever succeeded\"",
            Self::SkippedLeftOut => "skipped left out",
            Self::TotalsOverLedger => "totals over the ledger",
            Self::OverDeadLetterConstant => "over_dead_letter constant",
            Self::OkConstant => "ok constant",
            Self::SlackDropped => "slack dropped",
            Self::DashIsSuccess => "status - read as success",
            Self::WaitFromStart => "wait from the start of the attempt before",
        }
    }
}

struct Terms {
    factor: i64,
    slack: i64,
    mark: i64,
    success: std::ops::RangeInclusive<i64>,
}

struct Endpoint {
    state: String,
    max_attempts: u64,
    base: i64,
    gap: i64,
}

struct Row<'a> {
    line: usize,
    attempt_id: &'a str,
    endpoint_id: &'a str,
    attempt_no: i64,
    start: i64,
    finish: i64,
    status: Option<i64>,
}

/// Where an endpoint stands in the walk over the ledger.
#[derive(Default)]
struct Walk {
    rows: u64,
    count: u64,
    closed: bool,
    before: Option<(i64, i64)>,
    ever_succeeded: bool,
    last_succeeded: bool,
    too_early: i64,
}

/// The texts of a retry round.
#[derive(Clone, Debug)]
pub(crate) struct RetryTexts {
    pub(crate) contract: String,
    pub(crate) endpoints: String,
    pub(crate) attempts: String,
}

/// The report, without `inputs` and `build`.
pub(crate) fn report(texts: &RetryTexts, faults: &[PlanFault]) -> Value {
    let has = |fault| faults.contains(&fault);
    let terms = terms_of(&texts.contract);
    let endpoints: BTreeMap<&str, Endpoint> = texts.endpoints.lines().skip(1).map(endpoint_of).collect();
    let admits = |endpoint: &Endpoint| {
        endpoint.state == "active" || (has(PlanFault::DrainingAdmitted) && endpoint.state != "disabled")
    };
    let mut walks: BTreeMap<&str, Walk> = BTreeMap::new();
    let (mut plan, mut unknown, mut backoff) = (Vec::new(), Vec::new(), 0_i128);
    let mut ledger_rows = 0_i64;
    for (n, line) in texts.attempts.lines().enumerate().skip(1) {
        ledger_rows += 1;
        let row = row_of(n + 1, line);
        let Some(endpoint) = endpoints.get(row.endpoint_id) else {
            unknown.push(row.line);
            continue;
        };
        let walk = walks.entry(row.endpoint_id).or_default();
        let (earliest, since) = step(&terms, endpoint, walk, &row, faults);
        if has(PlanFault::TotalsOverLedger) {
            // the sum of a planner that never looks at deliveries
            backoff += walk
                .before
                .filter(|_| row.attempt_no > 1)
                .map_or(0, |(_, finish)| i128::from(row.start) - i128::from(finish));
        } else if admits(endpoint) {
            backoff += since;
        }
        close(&terms, endpoint, walk, &row, faults);
        if admits(endpoint) {
            plan.push(planned(&row, earliest, walk));
        }
    }
    figures(
        &terms,
        &endpoints,
        &admits,
        &walks,
        (plan, unknown, backoff, ledger_rows),
        faults,
    )
}

/// Rules 3 and 4: opens or continues a delivery, and says when the row may start.
fn step(
    terms: &Terms,
    endpoint: &Endpoint,
    walk: &mut Walk,
    row: &Row<'_>,
    faults: &[PlanFault],
) -> (i64, i128) {
    let has = |fault| faults.contains(&fault);
    walk.rows += 1;
    let opens = if has(PlanFault::BoundaryByAttemptNo) {
        row.attempt_no == 1 || walk.before.is_none()
    } else {
        walk.closed || walk.before.is_none()
    };
    walk.count = if opens { 1 } else { walk.count + 1 };
    let Some((before_start, before_finish)) = walk.before else {
        return (0, 0);
    };
    let since = i128::from(row.start) - i128::from(before_finish);
    if opens && !has(PlanFault::FirstHasEarliest) {
        return (0, 0);
    }
    let exponent = if has(PlanFault::LifetimeExponent) {
        i64::try_from(walk.rows).unwrap_or(i64::MAX)
    } else if has(PlanFault::ExponentTooHigh) {
        row.attempt_no
    } else {
        row.attempt_no - 1
    };
    let backoff = grown(endpoint.base, terms.factor, exponent);
    let wait = if has(PlanFault::MaxForMin) {
        backoff.max(endpoint.gap)
    } else {
        backoff.min(endpoint.gap)
    };
    let slack = if has(PlanFault::SlackDropped) {
        0
    } else {
        terms.slack
    };
    let anchor = if has(PlanFault::WaitFromStart) {
        before_start
    } else {
        before_finish
    };
    (
        anchor.saturating_add(wait).saturating_add(slack),
        if opens { 0 } else { since },
    )
}

/// What the row leaves behind for the next one.
fn close(terms: &Terms, endpoint: &Endpoint, walk: &mut Walk, row: &Row<'_>, faults: &[PlanFault]) {
    let has = |fault| faults.contains(&fault);
    let success = row.status.map_or(has(PlanFault::DashIsSuccess), |status| {
        terms.success.contains(&status)
    });
    walk.ever_succeeded |= success;
    walk.last_succeeded = success;
    let resets = success && !has(PlanFault::NoResetAfterSuccess);
    walk.closed = resets || walk.count >= endpoint.max_attempts;
    walk.before = Some((row.start, row.finish));
}

fn planned(row: &Row<'_>, earliest: i64, walk: &mut Walk) -> Value {
    let delta = row.start.saturating_sub(earliest);
    walk.too_early += i64::from(delta < 0);
    json!({
        "attempt_id": row.attempt_id, "endpoint_id": row.endpoint_id, "attempt_no": row.attempt_no, "earliest_ts": earliest,
        "scheduled_delta_s": delta, "verdict": if delta < 0 { "too_early" } else { "ok" },
    })
}

type Gathered = (Vec<Value>, Vec<usize>, i128, i64);

fn figures(
    terms: &Terms,
    endpoints: &BTreeMap<&str, Endpoint>,
    admits: &dyn Fn(&Endpoint) -> bool,
    walks: &BTreeMap<&str, Walk>,
    (plan, unknown, backoff, ledger_rows): Gathered,
    faults: &[PlanFault],
) -> Value {
    let has = |fault| faults.contains(&fault);
    let too_early: i64 = walks.values().map(|walk| walk.too_early).sum();
    let planned = if has(PlanFault::TotalsOverLedger) {
        ledger_rows
    } else {
        i64::try_from(plan.len()).unwrap_or(i64::MAX)
    };
    let over =
        walks.values().any(|walk| walk.too_early > terms.mark) && !has(PlanFault::OverDeadLetterConstant);
    let (mut succeeded, mut exhausted, mut skipped) = (0, 0, 0);
    for (id, endpoint) in endpoints {
        match walks.get(id).filter(|_| admits(endpoint)) {
            None => skipped += 1,
            Some(walk) if walk.last_succeeded || (has(PlanFault::EverSucceeded) && walk.ever_succeeded) => {
                succeeded += 1;
            }
            Some(_) => exhausted += 1,
        }
    }
    let mut counts = Map::new();
    counts.insert("attempts".into(), json!(ledger_rows));
    counts.insert("succeeded".into(), json!(succeeded));
    counts.insert("exhausted".into(), json!(exhausted));
    if !has(PlanFault::SkippedLeftOut) {
        counts.insert("skipped".into(), json!(skipped));
    }
    let admissible: Vec<&&str> = endpoints
        .iter()
        .filter(|(_, endpoint)| admits(endpoint))
        .map(|(id, _)| id)
        .collect();
    let backoff = i64::try_from(backoff).unwrap_or(if backoff > 0 { i64::MAX } else { i64::MIN });
    json!({
        "admissible_endpoints": admissible, "plan": plan,
        "totals": {"attempts": planned, "endpoints": admissible.len(), "ok": planned - too_early, "too_early": too_early, "backoff_s": backoff},
        "counts": counts, "unknown_endpoint_rows": unknown, "over_dead_letter": over,
        "ok": has(PlanFault::OkConstant) || (too_early == 0 && !over),
    })
}

/// base × factor ^ exponent, saturating.
fn grown(base: i64, factor: i64, exponent: i64) -> i64 {
    let mut wait = base;
    for _ in 0..exponent.min(64) {
        wait = wait.saturating_mul(factor);
    }
    wait
}

fn number(text: &str) -> i64 {
    text.parse().unwrap_or(0)
}

fn terms_of(text: &str) -> Terms {
    let of = |key: &str| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.map_or(0, |value| number(value.trim_end()))
    };
    Terms {
        factor: of("WEBHOOK_BACKOFF_FACTOR"),
        slack: of("WEBHOOK_ADMIT_SLACK_S"),
        mark: of("WEBHOOK_DEAD_LETTER_AFTER"),
        success: of("WEBHOOK_SUCCESS_MIN")..=of("WEBHOOK_SUCCESS_MAX"),
    }
}

fn endpoint_of(line: &str) -> (&str, Endpoint) {
    let cell = |n: usize| line.split('\t').nth(n).unwrap_or("").trim_end_matches('\r');
    let endpoint = Endpoint {
        state: cell(1).to_owned(),
        max_attempts: cell(2).parse().unwrap_or(1),
        base: number(cell(3)),
        gap: number(cell(4)),
    };
    (cell(0), endpoint)
}

fn row_of(line_no: usize, line: &str) -> Row<'_> {
    let cell = |n: usize| line.split('\t').nth(n).unwrap_or("").trim_end_matches('\r');
    Row {
        line: line_no,
        attempt_id: cell(0),
        endpoint_id: cell(1),
        attempt_no: number(cell(2)),
        start: number(cell(3)),
        finish: number(cell(4)),
        status: cell(5).parse().ok(),
    }
}
