//! Retry-After: reading the raw header again, and what the contract lets it do to a wait.

use contract::model::RetryAfter;
use contract::{Duration, Instant};
use std::time::UNIX_EPOCH;

/// What the header asks for, seconds or an HTTP date for which `ended_at` is now. `None` for garbage, for a negative
/// value and for a date in the past: they count as absent.
#[must_use]
pub fn parse_retry_after(header: &str, ended_at: Instant) -> Option<Duration> {
    let text = header.trim_matches([' ', '\t']);
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More than 64 bits of seconds is more than any `max`.
        return Some(text.parse().map_or(Duration::MAX, Duration::from_secs));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    let since_1970 = date.duration_since(UNIX_EPOCH).ok()?;
    let at = Instant::from_unix_ms(i64::try_from(since_1970.as_millis()).ok()?);
    (at >= ended_at).then(|| at.since(ended_at))
}

/// The wait after the receiver's wish: `law` is the wait before jitter, `drawn` the one after it, `asked` what the header
/// asks for.
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
            let most = Duration::from_ms(law.as_ms().saturating_mul(u64::from(times)));
            asked.min(max).min(most).max(law)
        }
    }
}
