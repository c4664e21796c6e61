//! The canonical form of a contract (spec/contract.md, Revision): one JSON object, keys sorted, no spaces, durations
//! in milliseconds, decimals in millionths, absent limits as null. Its SHA-256 is the revision that ledger rows carry.
//!
//! It holds numbers alone, so that the SQL judge can read it with `json_extract`. The way back accepts exactly what
//! the way there writes, and checks the contradictions again: a ledger is no more trusted than a file (I7).

use crate::check::contradictions;
use crate::model::{
    Anchor, Backoff, Contract, Direction, EndpointClauses, Factor, Jitter, Law, OutcomeSets, Rate, Retry,
    RetryAfter, Segment, SimpleLaw, StatusSet, Then,
};
use crate::parse::{LANGUAGE, MAX_ATTEMPTS};
use crate::text::MAX_COUNT;
use crate::units::Duration;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Ten thousand waits and as many segments fit; a longer text was not written by us.
const MAX_CANONICAL_BYTES: usize = 4 * 1024 * 1024;

/// Why a text is not the canonical form of a contract.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CanonicalError {
    /// Not JSON at all, or far too long.
    #[error("the canonical contract is not JSON: {0}")]
    NotJson(String),
    /// A field is missing, or its value is none that the language has.
    #[error("the canonical contract has no usable `{0}`")]
    Field(&'static str),
    /// It reads as a contract, and would be written differently.
    #[error("the text is not in canonical form: keys sorted, no spaces, nothing more and nothing less")]
    NotCanonical,
    /// Two clauses contradict each other.
    #[error("the canonical contract contradicts itself: {clause}: found {found}")]
    Contradiction {
        /// The clause.
        clause: String,
        /// What is wrong with it.
        found: String,
    },
}

impl Contract {
    /// The canonical text.
    #[must_use]
    pub fn canonical(&self) -> String {
        let mut out = String::new();
        write_sorted(&self.to_json(), &mut out);
        out
    }

    /// The revision: SHA-256 of the canonical text, 64 lower-case hex digits.
    #[must_use]
    pub fn rev(&self) -> String {
        revision_of(&self.canonical())
    }

    /// Reads the canonical text back.
    ///
    /// # Errors
    /// Anything but what [`Contract::canonical`] writes for a sound contract.
    pub fn from_canonical(text: &str) -> Result<Self, CanonicalError> {
        if text.len() > MAX_CANONICAL_BYTES {
            return Err(CanonicalError::NotJson(format!("it has {} bytes", text.len())));
        }
        let value = serde_json::from_str(text).map_err(|error| CanonicalError::NotJson(error.to_string()))?;
        let contract = contract_of(Node(&value))?;
        if contract.canonical() != text {
            return Err(CanonicalError::NotCanonical);
        }
        match contradictions(&contract).into_iter().next() {
            Some(clash) => Err(CanonicalError::Contradiction {
                clause: clash.clause,
                found: clash.error.found,
            }),
            None => Ok(contract),
        }
    }

    fn to_json(&self) -> Value {
        let Self {
            name,
            retry,
            outcome,
            endpoint,
        } = self;
        json!({
            "contract": LANGUAGE,
            "name": name,
            "retry": {
                "max_attempts": retry.max_attempts,
                "max_age_ms": retry.max_age,
                "anchor": anchor_word(retry.anchor),
                "slack_ms": retry.slack,
                "late_after_ms": retry.late_after,
                "backoff": backoff_json(&retry.backoff),
                "jitter": jitter_json(retry.jitter, retry.cap_after_jitter),
                "retry_after": retry_after_json(retry.retry_after),
            },
            "outcome": { "success": outcome.success.ranges(), "terminal": outcome.terminal.ranges() },
            "endpoint": {
                "min_gap_ms": endpoint.min_gap,
                "rate": endpoint.rate.map(|rate| json!({ "starts": rate.starts, "window_ms": rate.window })),
                "in_flight": endpoint.in_flight,
                "timeout_ms": endpoint.timeout,
                "disable_after_ms": endpoint.disable_after,
                "disable_on": endpoint.disable_on.ranges(),
            },
        })
    }
}

/// SHA-256 of a canonical text, 64 lower-case hex digits.
#[must_use]
pub fn revision_of(canonical: &str) -> String {
    use std::fmt::Write;
    Sha256::digest(canonical.as_bytes())
        .iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}

/// Sorts by itself: whether `serde_json` does is another crate's feature flag.
fn write_sorted(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (n, (key, value)) in entries.into_iter().enumerate() {
                out.push_str(if n > 0 { ",\"" } else { "\"" });
                out.push_str(key);
                out.push_str("\":");
                write_sorted(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                write_sorted(item, out);
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

pub(crate) const fn anchor_word(anchor: Anchor) -> &'static str {
    match anchor {
        Anchor::End => "end",
        Anchor::Start => "start",
        Anchor::First => "first",
    }
}

pub(crate) const fn direction_word(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "up",
        Direction::Down => "down",
        Direction::Both => "both",
    }
}

pub(crate) const fn then_word(then: Then) -> &'static str {
    match then {
        Then::Repeat => "repeat",
        Then::Stop => "stop",
    }
}

fn backoff_json(backoff: &Backoff) -> Value {
    let mut value = match &backoff.law {
        Law::Simple(law) => law_json(law),
        Law::Segments(segments) => {
            let all: Vec<_> = segments.iter().map(segment_json).collect();
            json!({ "law": "segments", "segments": all })
        }
    };
    value["cap_ms"] = json!(backoff.cap);
    value["floor_ms"] = json!(backoff.floor);
    value
}

fn segment_json(segment: &Segment) -> Value {
    let mut value = law_json(&segment.law);
    value["count"] = json!(segment.count);
    value
}

fn law_json(law: &SimpleLaw) -> Value {
    match law {
        SimpleLaw::Fixed { base } => json!({ "law": "fixed", "base_ms": base }),
        SimpleLaw::Linear { base, step } => json!({ "law": "linear", "base_ms": base, "step_ms": step }),
        SimpleLaw::Exponential { base, factor } => {
            json!({ "law": "exponential", "base_ms": base, "factor_ppm": factor.millionths() })
        }
        SimpleLaw::Polynomial { base, power } => {
            json!({ "law": "polynomial", "base_ms": base, "power": power })
        }
        SimpleLaw::Schedule { waits, then } => {
            json!({ "law": "schedule", "waits_ms": waits, "then": then_word(*then) })
        }
    }
}

fn jitter_json(jitter: Jitter, cap_after_jitter: bool) -> Value {
    let mut value = match jitter {
        Jitter::None => json!({ "kind": "none" }),
        Jitter::Full => json!({ "kind": "full" }),
        Jitter::Equal => json!({ "kind": "equal" }),
        Jitter::Proportional { ratio_ppm, direction } => {
            json!({ "kind": "proportional", "ratio_ppm": ratio_ppm, "direction": direction_word(direction) })
        }
        Jitter::Decorrelated => json!({ "kind": "decorrelated" }),
    };
    value["cap_after_jitter"] = json!(cap_after_jitter);
    value
}

fn retry_after_json(rule: RetryAfter) -> Value {
    match rule {
        RetryAfter::Ignore => json!({ "rule": "ignore" }),
        RetryAfter::Floor { max } => json!({ "rule": "floor", "max_ms": max }),
        RetryAfter::Replace { max } => json!({ "rule": "replace", "max_ms": max }),
        RetryAfter::Bounded { max, times } => json!({ "rule": "bounded", "max_ms": max, "times": times }),
    }
}

/// A JSON value on the way back. What it lets through is caught by the comparison with the canonical text.
#[derive(Clone, Copy)]
struct Node<'a>(&'a Value);

impl<'a> Node<'a> {
    fn at(self, key: &'static str) -> Result<Node<'a>, CanonicalError> {
        self.0.get(key).map(Node).ok_or(CanonicalError::Field(key))
    }
    fn word(self, key: &'static str) -> Result<&'a str, CanonicalError> {
        self.at(key)?.0.as_str().ok_or(CanonicalError::Field(key))
    }
    fn list(self, key: &'static str) -> Result<&'a Vec<Value>, CanonicalError> {
        self.at(key)?.0.as_array().ok_or(CanonicalError::Field(key))
    }
    fn number(self, key: &'static str, low: u32, high: u32) -> Result<u32, CanonicalError> {
        let number = self.at(key)?.0.as_u64().and_then(|n| u32::try_from(n).ok());
        number
            .filter(|n| (low..=high).contains(n))
            .ok_or(CanonicalError::Field(key))
    }
    fn duration(self, key: &'static str) -> Result<Duration, CanonicalError> {
        duration_of(self.at(key)?.0).ok_or(CanonicalError::Field(key))
    }
    /// Null is `None`.
    fn limit(self, key: &'static str) -> Result<Option<Duration>, CanonicalError> {
        if self.at(key)?.0.is_null() {
            Ok(None)
        } else {
            self.duration(key).map(Some)
        }
    }
    fn statuses(self, key: &'static str) -> Result<StatusSet, CanonicalError> {
        let wrong = || CanonicalError::Field(key);
        let status = |v: &Value| {
            v.as_u64()
                .and_then(|n| u16::try_from(n).ok())
                .filter(|n| (100..=599).contains(n))
        };
        let range = |v: &Value| match v.as_array().map(Vec::as_slice) {
            Some([low, high]) => status(low).zip(status(high)).filter(|(low, high)| low <= high),
            _ => None,
        };
        let ranges: Option<Vec<_>> = self.list(key)?.iter().map(range).collect();
        StatusSet::from_ranges(ranges.ok_or_else(wrong)?).map_err(|_| wrong())
    }
}

fn duration_of(value: &Value) -> Option<Duration> {
    value
        .as_u64()
        .map(Duration::from_ms)
        .filter(|&d| d <= Duration::TEN_YEARS)
}

fn contract_of(root: Node<'_>) -> Result<Contract, CanonicalError> {
    root.number("contract", LANGUAGE, LANGUAGE)?;
    let name = crate::text::parse_name(root.word("name")?).map_err(|_| CanonicalError::Field("name"))?;
    let (retry, outcome, endpoint) = (root.at("retry")?, root.at("outcome")?, root.at("endpoint")?);
    let jitter = retry.at("jitter")?;
    Ok(Contract {
        name,
        retry: Retry {
            max_attempts: retry.number("max_attempts", 1, MAX_ATTEMPTS)?,
            max_age: retry.limit("max_age_ms")?,
            anchor: match retry.word("anchor")? {
                "end" => Anchor::End,
                "start" => Anchor::Start,
                "first" => Anchor::First,
                _ => return Err(CanonicalError::Field("anchor")),
            },
            slack: retry.duration("slack_ms")?,
            late_after: retry.duration("late_after_ms")?,
            backoff: backoff_of(retry.at("backoff")?)?,
            jitter: jitter_of(jitter)?,
            cap_after_jitter: jitter.at("cap_after_jitter")?.0 == &Value::Bool(true),
            retry_after: retry_after_of(retry.at("retry_after")?)?,
        },
        outcome: OutcomeSets {
            success: outcome.statuses("success")?,
            terminal: outcome.statuses("terminal")?,
        },
        endpoint: endpoint_of(endpoint)?,
    })
}

fn backoff_of(node: Node<'_>) -> Result<Backoff, CanonicalError> {
    let law = match node.word("law")? {
        "segments" => {
            let segments: Result<Vec<_>, _> = node
                .list("segments")?
                .iter()
                .map(|v| segment_of(Node(v)))
                .collect();
            Law::Segments(segments?)
        }
        _ => Law::Simple(law_of(node)?),
    };
    Ok(Backoff {
        law,
        cap: node.limit("cap_ms")?,
        floor: node.duration("floor_ms")?,
    })
}

fn segment_of(node: Node<'_>) -> Result<Segment, CanonicalError> {
    let open = node.at("count")?.0.is_null();
    let count = if open {
        None
    } else {
        Some(node.number("count", 1, MAX_ATTEMPTS)?)
    };
    let law = law_of(node)?;
    match law {
        // Where a segment follows there is nothing to choose, and `repeat` is its one form.
        SimpleLaw::Schedule { then: Then::Stop, .. } if !open => Err(CanonicalError::Field("then")),
        law => Ok(Segment { law, count }),
    }
}

fn law_of(node: Node<'_>) -> Result<SimpleLaw, CanonicalError> {
    let base = || node.duration("base_ms");
    Ok(match node.word("law")? {
        "fixed" => SimpleLaw::Fixed { base: base()? },
        "linear" => SimpleLaw::Linear {
            base: base()?,
            step: node.duration("step_ms")?,
        },
        "exponential" => {
            let ppm = node.number("factor_ppm", 1_000_000, 100_000_000)?;
            SimpleLaw::Exponential {
                base: base()?,
                factor: Factor(u64::from(ppm)),
            }
        }
        "polynomial" => {
            let power =
                u8::try_from(node.number("power", 1, 8)?).map_err(|_| CanonicalError::Field("power"))?;
            SimpleLaw::Polynomial { base: base()?, power }
        }
        "schedule" => {
            let waits: Option<Vec<_>> = node.list("waits_ms")?.iter().map(duration_of).collect();
            let then = match node.word("then")? {
                "repeat" => Then::Repeat,
                "stop" => Then::Stop,
                _ => return Err(CanonicalError::Field("then")),
            };
            SimpleLaw::Schedule {
                waits: waits.ok_or(CanonicalError::Field("waits_ms"))?,
                then,
            }
        }
        _ => return Err(CanonicalError::Field("law")),
    })
}

fn jitter_of(node: Node<'_>) -> Result<Jitter, CanonicalError> {
    Ok(match node.word("kind")? {
        "none" => Jitter::None,
        "full" => Jitter::Full,
        "equal" => Jitter::Equal,
        "decorrelated" => Jitter::Decorrelated,
        "proportional" => Jitter::Proportional {
            ratio_ppm: node.number("ratio_ppm", 1, 1_000_000)?,
            direction: match node.word("direction")? {
                "up" => Direction::Up,
                "down" => Direction::Down,
                "both" => Direction::Both,
                _ => return Err(CanonicalError::Field("direction")),
            },
        },
        _ => return Err(CanonicalError::Field("kind")),
    })
}

fn retry_after_of(node: Node<'_>) -> Result<RetryAfter, CanonicalError> {
    let max = || node.duration("max_ms");
    Ok(match node.word("rule")? {
        "ignore" => RetryAfter::Ignore,
        "floor" => RetryAfter::Floor { max: max()? },
        "replace" => RetryAfter::Replace { max: max()? },
        "bounded" => RetryAfter::Bounded {
            max: max()?,
            times: node.number("times", 1, MAX_COUNT)?,
        },
        _ => return Err(CanonicalError::Field("rule")),
    })
}

fn endpoint_of(node: Node<'_>) -> Result<EndpointClauses, CanonicalError> {
    let rate = node.at("rate")?;
    let rate = if rate.0.is_null() {
        None
    } else {
        let window = rate.duration("window_ms")?;
        let starts = rate.number("starts", 1, MAX_COUNT)?;
        Some(Rate { starts, window })
            .filter(|rate| !rate.window.is_zero())
            .ok_or(CanonicalError::Field("rate"))
            .map(Some)?
    };
    Ok(EndpointClauses {
        min_gap: node.duration("min_gap_ms")?,
        rate,
        in_flight: node.number("in_flight", 1, MAX_COUNT)?,
        timeout: node.duration("timeout_ms")?,
        disable_after: node.limit("disable_after_ms")?,
        disable_on: node.statuses("disable_on")?,
    })
}
