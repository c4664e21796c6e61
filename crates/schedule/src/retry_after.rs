//! Retry-After (spec/contract.md): reading the raw header, and what it does to the drawn wait.
//!
//! The reader is total: whatever a receiver sends is a wait or counts as absent.

use contract::model::RetryAfter;
use contract::{Duration, Instant};
use std::time::UNIX_EPOCH;

/// The wait that a raw header asks for, counted from the end of the attempt: whole seconds, with saturation, or an
/// HTTP date. Garbage, negative, fractional and past values count as absent.
#[must_use]
pub fn parse(header: &str, ended_at: Instant) -> Option<Duration> {
    let value = header.trim_matches([' ', '\t']);
    if value.is_empty() {
        return None;
    }
    if value.bytes().all(|byte| byte.is_ascii_digit()) {
        // Digits alone can fail in one way: too many of them.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    let secs = date.duration_since(UNIX_EPOCH).ok()?.as_secs();
    let at = Instant::from_unix_ms(i64::try_from(secs).ok()?.saturating_mul(1000));
    (at >= ended_at).then(|| at.since(ended_at))
}

/// The wait from the anchor: the drawn wait under the rule. `law` is the wait before jitter.
#[must_use]
pub fn combine(rule: RetryAfter, law: Duration, drawn: Duration, asked: Option<Duration>) -> Duration {
    let Some(asked) = asked else {
        return drawn;
    };
    match rule {
        RetryAfter::Ignore => drawn,
        RetryAfter::Floor { max } => drawn.max(asked.min(max)),
        RetryAfter::Replace { max } => asked.min(max),
        RetryAfter::Bounded { max, times } => {
            let top = Duration::from_ms(law.as_ms().saturating_mul(u64::from(times)));
            asked.min(max).min(top).max(law)
        }
    }
}
