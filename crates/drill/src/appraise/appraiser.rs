//! A small appraiser of the queue round with at most one fault in it, written for the drill alone.
//!
//! It takes files that a sound reader has accepted already. Without a fault its report must equal the clean one.

use serde_json::{Map, Value, json};

/// A way to get the queue round wrong (spec/gates.md, drill).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppraiseFault {
    /// `BASE × attempts`.
    BaseTimesAttempts,
    /// `base ^ attempts`, in the file's own unit.
    BaseToTheAttempts,
    /// `2 ^ (attempts − 1)`.
    ExponentTooLow,
    /// A second of the file counts as a millisecond.
    SecondsForMilliseconds,
    /// `age > backoff`.
    GreaterForAtLeast,
    /// `enabled` is not looked at.
    DisabledLetThrough,
    /// A channel that nobody knows counts as enabled.
    UnknownLetThrough,
    /// Nothing is ever dead.
    DeadNotDecided,
    /// Dead at the limit, due or not.
    DeadBeforeDelivery,
    /// A deferred item says how long it waited.
    WaitOnDeferred,
    /// `deliver` is one more than the rows say.
    TotalEdited,
    /// The last row is missing.
    RowDropped,
    /// The first row stands twice.
    RowDoubled,
    /// `ok` is always true.
    OkConstant,
}

impl AppraiseFault {
    /// Every fault, in the order of the spec.
    pub const ALL: [Self; 14] = [
        Self::BaseTimesAttempts,
        Self::BaseToTheAttempts,
        Self::ExponentTooLow,
        Self::SecondsForMilliseconds,
        Self::GreaterForAtLeast,
        Self::DisabledLetThrough,
        Self::UnknownLetThrough,
        Self::DeadNotDecided,
        Self::DeadBeforeDelivery,
        Self::WaitOnDeferred,
        Self::TotalEdited,
        Self::RowDropped,
        Self::RowDoubled,
        Self::OkConstant,
    ];

    /// What it does, in the words of the spec.
    #[must_use]
    pub const fn what(self) -> &'static str {
        match self {
            Self::BaseTimesAttempts => "base × attempts",
            Self::BaseToTheAttempts => "base ^ attempts",
            Self::ExponentTooLow => "exponent one too low",
            Self::SecondsForMilliseconds => "seconds taken for milliseconds",
            Self::GreaterForAtLeast => "> for >=",
            Self::DisabledLetThrough => "disabled channel let through",
            Self::UnknownLetThrough => "unknown channel let through",
            Self::DeadNotDecided => "dead not decided",
            Self::DeadBeforeDelivery => "dead decided before delivery",
            Self::WaitOnDeferred => "wait_ms on a deferred item",
            Self::TotalEdited => "a total edited by hand",
            Self::RowDropped => "a row dropped",
            Self::RowDoubled => "a row doubled",
            Self::OkConstant => "ok constant",
        }
    }
}

/// The texts of a queue round, and its clock.
#[derive(Clone, Debug)]
pub(crate) struct QueueTexts {
    pub(crate) contract: String,
    pub(crate) channels: String,
    pub(crate) queue: String,
    pub(crate) now: i64,
}

struct Terms {
    unit: String,
    unit_in_ms: i64,
    base: i64,
    max_attempts: i64,
}

/// The report, without `engine`, `inputs` and `build`. `malformed` is taken from the clean report: what counts as an
/// item is the reader's business, and no fault of this list.
pub(crate) fn report(texts: &QueueTexts, malformed: &Value, fault: Option<AppraiseFault>) -> Value {
    let has = |wanted| fault == Some(wanted);
    let terms = terms_of(&texts.contract);
    let channels: Map<String, Value> =
        serde_json::from_str(texts.channels.trim_start_matches('\u{feff}')).unwrap_or_default();
    let bad: Vec<u64> = malformed
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|row| row["line"].as_u64())
        .collect();
    let mut items_total = 0;
    let mut results = Vec::new();
    for (n, line) in (1_u64..).zip(texts.queue.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        items_total += 1;
        if bad.contains(&n) {
            continue;
        }
        let item: Value = serde_json::from_str(line.trim_start_matches('\u{feff}')).unwrap_or(Value::Null);
        results.push(judge(&terms, &channels, texts.now, &item, fault));
    }
    let count = |verdict: &str| results.iter().filter(|row| row["verdict"] == verdict).count();
    let (mut deliver, defer, block, dead) = (count("deliver"), count("defer"), count("block"), count("dead"));
    let ok = has(AppraiseFault::OkConstant) || bad.is_empty();
    match fault {
        Some(AppraiseFault::TotalEdited) => deliver += 1,
        Some(AppraiseFault::RowDropped) => drop(results.pop()),
        Some(AppraiseFault::RowDoubled) => results.extend(results.first().cloned()),
        _ => {}
    }
    json!({
        "delay_unit": terms.unit, "now": texts.now, "items_total": items_total, "deliver": deliver, "defer": defer, "block": block, "dead": dead,
        "ok": ok, "malformed_rows": malformed, "results": results,
    })
}

fn judge(
    terms: &Terms,
    channels: &Map<String, Value>,
    now: i64,
    item: &Value,
    fault: Option<AppraiseFault>,
) -> Value {
    let has = |wanted| fault == Some(wanted);
    let attempts = item["attempts"].as_i64().unwrap_or(0);
    let unit_in_ms = if has(AppraiseFault::SecondsForMilliseconds) {
        1
    } else {
        terms.unit_in_ms
    };
    let elapsed = i128::from(now) - i128::from(item["received_at_value"].as_i64().unwrap_or(0));
    let age = clamp(elapsed * i128::from(unit_in_ms));
    let backoff = backoff(terms, attempts, fault);
    let due = if has(AppraiseFault::GreaterForAtLeast) {
        age > backoff
    } else {
        age >= backoff
    };
    let (mut verdict, mut reason) = match channels.get(item["channel"].as_str().unwrap_or("")) {
        None if !has(AppraiseFault::UnknownLetThrough) => ("block", "channel_unknown"),
        Some(channel) if channel["enabled"] != true && !has(AppraiseFault::DisabledLetThrough) => {
            ("block", "channel_disabled")
        }
        _ if due => ("deliver", "ready"),
        _ => ("defer", "not_due"),
    };
    let at_limit = attempts >= terms.max_attempts && !has(AppraiseFault::DeadNotDecided);
    if at_limit && (verdict != "deliver" || has(AppraiseFault::DeadBeforeDelivery)) {
        (verdict, reason) = ("dead", "max_attempts");
    }
    let waited = verdict == "deliver" || (verdict == "defer" && has(AppraiseFault::WaitOnDeferred));
    json!({
        "id": item["id"], "channel": item["channel"], "attempts": attempts, "age_ms": age, "backoff_ms": backoff, "verdict": verdict,
        "reason": reason, "delay_unit": terms.unit, "wait_ms": waited.then_some(age),
    })
}

fn backoff(terms: &Terms, attempts: i64, fault: Option<AppraiseFault>) -> i64 {
    let exponent = u32::try_from(attempts.min(64)).unwrap_or(0);
    let doubled = |exponent: u32| clamp(i128::from(terms.base) * (1_i128 << exponent));
    match fault {
        Some(AppraiseFault::BaseTimesAttempts) => terms.base.saturating_mul(attempts),
        Some(AppraiseFault::BaseToTheAttempts) => {
            (terms.base / terms.unit_in_ms).max(1).saturating_pow(exponent)
        }
        Some(AppraiseFault::ExponentTooLow) => doubled(exponent.saturating_sub(1)),
        _ => doubled(exponent),
    }
}

fn clamp(wide: i128) -> i64 {
    i64::try_from(wide).unwrap_or(if wide > 0 { i64::MAX } else { i64::MIN })
}

fn terms_of(text: &str) -> Terms {
    let of = |key: &str| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.map_or("", str::trim_end).to_owned()
    };
    let unit = of("QUEUE_DELAY_UNIT");
    Terms {
        unit_in_ms: if unit == "seconds" { 1_000 } else { 1 },
        unit,
        base: of("QUEUE_BACKOFF_BASE_MS").parse().unwrap_or(1),
        max_attempts: of("QUEUE_MAX_ATTEMPTS").parse().unwrap_or(1),
    }
}
