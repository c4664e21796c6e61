//! The queue round, derived again (spec/queue-round.md): each line on its own.

use super::cut;
use super::lines::Lines;
use crate::facts::{FactsError, quoted, quoted_bytes};
use crate::json::Pairs;
use contract::rounds::{DelayUnit, QueueRoundContract};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;

/// A channel file has a line or two a channel.
const MAX_CHANNELS_BYTES: u64 = 64 * 1024 * 1024;

/// An item and what is to be done with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultRow {
    /// Its id.
    pub id: String,
    /// Its channel.
    pub channel: String,
    /// Attempts already made.
    pub attempts: i64,
    /// How long it has waited, in milliseconds; negative for one from the future.
    pub age_ms: i64,
    /// How long it must wait, in milliseconds.
    pub backoff_ms: i64,
    /// What is to be done.
    pub verdict: Verdict,
    /// Why.
    pub reason: &'static str,
}

/// What is to be done with an item in this round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes out.
    Deliver,
    /// It waits.
    Defer,
    /// Its channel does not let it out.
    Block,
    /// It has had its attempts.
    Dead,
}

impl Verdict {
    /// The word in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Deliver => "deliver",
            Self::Defer => "defer",
            Self::Block => "block",
            Self::Dead => "dead",
        }
    }
}

/// What the round comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derived {
    /// The unit of times in the queue.
    pub delay_unit: DelayUnit,
    /// The moment that is judged, in that unit.
    pub now: i64,
    /// The items that could be judged, in the order of their lines.
    pub results: Vec<ResultRow>,
    /// Lines that are no item: number, and what is wrong.
    pub malformed: Vec<(u64, String)>,
}

impl Derived {
    /// Items with that verdict.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.results.iter().filter(|row| row.verdict == verdict).count()
    }

    /// As the report has it, without what a report says of itself (`inputs`, `build`).
    #[must_use]
    pub fn to_json(&self) -> Value {
        let unit = self.delay_unit.word();
        let row = |row: &ResultRow| {
            json!({
                "id": row.id, "channel": row.channel, "attempts": row.attempts, "age_ms": row.age_ms,
                "backoff_ms": row.backoff_ms, "verdict": row.verdict.word(), "reason": row.reason, "delay_unit": unit,
                "wait_ms": (row.verdict == Verdict::Deliver).then_some(row.age_ms),
            })
        };
        let malformed = |(line, error): &(u64, String)| json!({"line": line, "error": error});
        let judged: usize = [Verdict::Deliver, Verdict::Defer, Verdict::Block, Verdict::Dead]
            .map(|verdict| self.count(verdict))
            .iter()
            .sum();
        let total = self.results.len() + self.malformed.len();
        json!({
            "engine": "queue-appraiser", "delay_unit": unit, "now": self.now, "items_total": total,
            "deliver": self.count(Verdict::Deliver), "defer": self.count(Verdict::Defer),
            "block": self.count(Verdict::Block), "dead": self.count(Verdict::Dead),
            "ok": self.malformed.is_empty() && judged == total,
            "malformed_rows": self.malformed.iter().map(malformed).collect::<Vec<_>>(),
            "results": self.results.iter().map(row).collect::<Vec<_>>(),
        })
    }
}

/// Derives the round at `now`, which is in the contract's unit.
///
/// # Errors
/// A file is missing or unreadable, or the channel file is not what it should be. A malformed line of the queue is no
/// error: it is listed, and the others are judged.
pub fn derive(
    contract: &QueueRoundContract,
    channels: &Path,
    queue: &Path,
    now: i64,
) -> Result<Derived, FactsError> {
    let channels = read_channels(channels)?;
    let mut derived = Derived {
        delay_unit: contract.delay_unit,
        now,
        results: Vec::new(),
        malformed: Vec::new(),
    };
    let mut lines = Lines::open(queue)?;
    let mut seen: HashMap<String, u64> = HashMap::new();
    while let Some((number, line)) = lines.next()? {
        if line.iter().all(|byte| matches!(byte, b' ' | b'\t')) {
            continue;
        }
        let item = parse(line).and_then(|item| match seen.get(&item.id) {
            Some(first) => Err(format!("{} stands in line {first} already", quoted(&item.id))),
            None => Ok(item),
        });
        match item {
            Ok(item) => {
                seen.insert(item.id.clone(), number);
                derived.results.push(judge(contract, &channels, now, item));
            }
            Err(wrong) => derived.malformed.push((number, wrong)),
        }
    }
    Ok(derived)
}

fn read_channels(path: &Path) -> Result<HashMap<String, bool>, FactsError> {
    let name = path.display().to_string();
    let right = r#"{"channel": {"enabled": true}, …}, each channel once"#;
    let size = std::fs::metadata(path)
        .map_err(|error| FactsError::io(&name, error))?
        .len();
    if size > MAX_CHANNELS_BYTES {
        return Err(FactsError::new(&name, None, format!("{size} bytes"), right));
    }
    let bytes = std::fs::read(path).map_err(|error| FactsError::io(&name, error))?;
    let text = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes);
    let all: Pairs<Pairs<bool>> = serde_json::from_slice(text).map_err(|error| {
        FactsError::new(&name, u64::try_from(error.line()).ok(), error.to_string(), right)
    })?;
    let mut channels = HashMap::new();
    for (channel, keys) in all.0 {
        let wrong =
            |found: String| FactsError::new(&name, None, format!("{found} in {}", quoted(&channel)), right);
        let enabled = keys.only(&["enabled"]).map_err(wrong)?.first() == Some(&true);
        if channels.insert(channel.clone(), enabled).is_some() {
            return Err(wrong("a second object".to_owned()));
        }
    }
    Ok(channels)
}

struct Item {
    id: String,
    channel: String,
    attempts: i64,
    received: i64,
}

/// An item of exactly the four keys, each once; integers written as integers.
fn parse(line: &[u8]) -> Result<Item, String> {
    let pairs: Pairs<Value> =
        serde_json::from_slice(line).map_err(|error| format!("{} ({error})", quoted_bytes(line)))?;
    let mut values = pairs
        .only(&["id", "channel", "attempts", "received_at_value"])?
        .into_iter();
    let mut next = || values.next().unwrap_or_default();
    let (id, channel, attempts, received) = (next(), next(), next(), next());
    let text = |value: Value, key: &str| match value {
        Value::String(text) => Ok(text),
        other => Err(format!(
            "{} in `{key}`, which is no text",
            quoted(&other.to_string())
        )),
    };
    let number = |value: &Value, key: &str, least: i64| {
        let number = value.as_i64().filter(|number| *number >= least);
        number.ok_or_else(|| {
            format!(
                "{} in `{key}`, expected a whole number from {least}",
                quoted(&value.to_string())
            )
        })
    };
    Ok(Item {
        attempts: number(&attempts, "attempts", 0)?,
        received: number(&received, "received_at_value", i64::MIN)?,
        id: text(id, "id")?,
        channel: text(channel, "channel")?,
    })
}

fn judge(contract: &QueueRoundContract, channels: &HashMap<String, bool>, now: i64, item: Item) -> ResultRow {
    let unit_ms = match contract.delay_unit {
        DelayUnit::Milliseconds => 1,
        DelayUnit::Seconds => 1_000,
    };
    let age_ms = cut((i128::from(now) - i128::from(item.received)) * unit_ms);
    // base × 2 ^ attempts: after 63 doublings any base is beyond 64 bits.
    let backoff_ms = cut(i128::from(contract.backoff_base_ms) << item.attempts.min(63));
    let (verdict, reason) = match channels.get(&item.channel) {
        None => (Verdict::Block, "channel_unknown"),
        Some(false) => (Verdict::Block, "channel_disabled"),
        Some(true) if age_ms >= backoff_ms => (Verdict::Deliver, "ready"),
        Some(true) => (Verdict::Defer, "not_due"),
    };
    let (verdict, reason) = if item.attempts >= contract.max_attempts && verdict != Verdict::Deliver {
        (Verdict::Dead, "max_attempts")
    } else {
        (verdict, reason)
    };
    ResultRow {
        id: item.id,
        channel: item.channel,
        attempts: item.attempts,
        age_ms,
        backoff_ms,
        verdict,
        reason,
    }
}
