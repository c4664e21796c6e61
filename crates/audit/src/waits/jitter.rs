//! Jitter: the interval around the capped wait, and the very draw within it, which anyone can repeat.

use super::law;
use contract::model::{Contract, Direction, Jitter};
use contract::{DeliveryNo, Duration, RetryNo};
use sha2::{Digest, Sha256};

/// The first field of every draw.
const TAG: &str = "duehook-jitter-v1";

/// What a draw depends on, besides the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawKey<'a> {
    /// The message's id as text.
    pub message_id: &'a str,
    /// The endpoint's id as text.
    pub endpoint_id: &'a str,
    /// Which delivery of the message to the endpoint.
    pub delivery_no: DeliveryNo,
    /// Which retry: n.
    pub retry: RetryNo,
}

/// The earliest and the latest drawn wait of retry n after `previous`, the wait that was drawn for the retry before
/// (decorrelated jitter builds on it; the other kinds do not look at it). `None` where the schedule has stopped.
#[must_use]
pub fn interval_after(
    contract: &Contract,
    n: RetryNo,
    previous: Option<Duration>,
) -> Option<(Duration, Duration)> {
    let (low, high) = uncapped(contract, n, previous)?;
    Some((capped_again(contract, low), capped_again(contract, high)))
}

/// The wait that the contract draws for this retry, to the millisecond. `None` where the schedule has stopped.
#[must_use]
pub fn draw(contract: &Contract, key: &DrawKey<'_>, previous: Option<Duration>) -> Option<Duration> {
    let (low, high) = uncapped(contract, key.retry, previous)?;
    let drawn = match contract.retry.jitter {
        Jitter::None => low,
        _ => within(uniform(key), low, high),
    };
    Some(capped_again(contract, drawn))
}

/// The interval before `cap_after_jitter`.
fn uncapped(contract: &Contract, n: RetryNo, previous: Option<Duration>) -> Option<(Duration, Duration)> {
    let wait = law(contract, n)?;
    Some(match contract.retry.jitter {
        Jitter::None => (wait, wait),
        Jitter::Full => (Duration::ZERO, wait),
        Jitter::Equal => (Duration::from_ms(wait.as_ms() / 2), wait),
        Jitter::Proportional { ratio_ppm, direction } => {
            let part = share(wait, ratio_ppm);
            match direction {
                Direction::Up => (wait, wait + part),
                Direction::Down => (wait.saturating_sub(part), wait),
                Direction::Both => (wait.saturating_sub(part), wait + part),
            }
        }
        Jitter::Decorrelated => {
            let base = law(contract, RetryNo::new(1))?;
            let Some(previous) = previous.filter(|_| n.get() > 1) else {
                return Some((base, base));
            };
            let ceiling = contract.retry.backoff.cap.unwrap_or(Duration::TEN_YEARS);
            let high = Duration::from_ms(previous.as_ms().saturating_mul(3)).min(ceiling);
            // After a change of contract the wait before can lie below a third of the new base.
            (base, high.max(base))
        }
    })
}

fn capped_again(contract: &Contract, wait: Duration) -> Duration {
    match contract.retry.backoff.cap {
        Some(cap) if contract.retry.cap_after_jitter => wait.min(cap),
        _ => wait,
    }
}

/// ⌊wait·ratio⌋.
fn share(wait: Duration, ratio_ppm: u32) -> Duration {
    let part = u128::from(wait.as_ms()) * u128::from(ratio_ppm) / 1_000_000;
    // A ratio is at most one.
    Duration::from_ms(u64::try_from(part).unwrap_or(u64::MAX))
}

/// low + ⌊u·(high−low+1)/2⁶⁴⌋.
fn within(u: u64, low: Duration, high: Duration) -> Duration {
    let span = u128::from(high.saturating_sub(low).as_ms()) + 1;
    let step = (u128::from(u) * span) >> 64;
    low + Duration::from_ms(u64::try_from(step).unwrap_or(u64::MAX))
}

/// u: the first eight bytes of the SHA-256 over the five fields, each behind its length.
fn uniform(key: &DrawKey<'_>) -> u64 {
    let mut hash = Sha256::new();
    let mut field = |bytes: &[u8]| {
        hash.update(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
        hash.update(bytes);
    };
    field(TAG.as_bytes());
    field(key.message_id.as_bytes());
    field(key.endpoint_id.as_bytes());
    field(&u64::from(key.delivery_no.get()).to_be_bytes());
    field(&u64::from(key.retry.get()).to_be_bytes());
    let digest = hash.finalize();
    digest
        .iter()
        .take(8)
        .fold(0, |u, byte| (u << 8) | u64::from(*byte))
}
