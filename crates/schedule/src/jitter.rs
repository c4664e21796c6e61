//! The reproducible draw (spec/contract.md, Jitter): from the capped wait of the law to the drawn wait.
//!
//! The draw is a pure function of the ids, so that anyone can make it again. Leaves Retry-After and slack alone.

use crate::law::{self, LawWait};
use contract::model::{Direction, Jitter, Retry};
use contract::{DeliveryNo, Duration, RetryNo};
use sha2::{Digest, Sha256};

/// The first field of every draw: another version of the rule would have another tag.
const TAG: &str = "duehook-jitter-v1";

/// What a draw depends on.
#[derive(Clone, Copy, Debug)]
pub struct DrawKey<'a> {
    /// The message id, as text.
    pub message_id: &'a str,
    /// The endpoint id, as text.
    pub endpoint_id: &'a str,
    /// Which delivery of the message to the endpoint.
    pub delivery_no: DeliveryNo,
    /// Which retry of that delivery.
    pub retry_no: RetryNo,
}

/// The interval that the draw for retry n is made from, both ends included, in whole milliseconds. `d` is the law's
/// wait; `previous` is the wait drawn for the retry before (decorrelated jitter alone asks for it).
#[must_use]
pub fn interval(retry: &Retry, d: Duration, previous: Option<Duration>) -> (Duration, Duration) {
    match retry.jitter {
        Jitter::None => (d, d),
        Jitter::Full => (Duration::ZERO, d),
        Jitter::Equal => (Duration::from_ms(d.as_ms() / 2), d),
        Jitter::Proportional { ratio_ppm, direction } => {
            let r = share(d, ratio_ppm);
            match direction {
                Direction::Up => (d, d + r),
                Direction::Down => (d.saturating_sub(r), d),
                Direction::Both => (d.saturating_sub(r), d + r),
            }
        }
        Jitter::Decorrelated => decorrelated(retry, d, previous),
    }
}

/// ⌊d·ratio⌋.
fn share(d: Duration, ratio_ppm: u32) -> Duration {
    let product = u128::from(d.as_ms()) * u128::from(ratio_ppm) / 1_000_000;
    Duration::from_ms(u64::try_from(product).unwrap_or(u64::MAX))
}

/// [base, 3·previous], capped; the first wait is `base`, the law's first.
fn decorrelated(retry: &Retry, d: Duration, previous: Option<Duration>) -> (Duration, Duration) {
    let base = match law::wait(retry, RetryNo::new(1)) {
        LawWait::Wait(base) => base,
        LawWait::Stop => d,
    };
    let Some(previous) = previous else {
        return (base, base);
    };
    let top = Duration::from_ms(previous.as_ms().saturating_mul(3));
    // A contract that changed in between can leave a previous wait below a third of the new base.
    (base, capped(retry, top).max(base))
}

fn capped(retry: &Retry, wait: Duration) -> Duration {
    wait.min(retry.backoff.cap.unwrap_or(Duration::TEN_YEARS))
}

/// Where a drawn wait can lie: the interval, cut once more at the cap under `cap_after_jitter`.
#[must_use]
pub fn bounds(retry: &Retry, d: Duration, previous: Option<Duration>) -> (Duration, Duration) {
    let (lo, hi) = interval(retry, d, previous);
    (after(retry, lo), after(retry, hi))
}

fn after(retry: &Retry, drawn: Duration) -> Duration {
    if retry.cap_after_jitter {
        capped(retry, drawn)
    } else {
        drawn
    }
}

/// The drawn wait of this retry: lo + ⌊u·(hi−lo+1)/2⁶⁴⌋ ms, capped once more under `cap_after_jitter`.
#[must_use]
pub fn draw(retry: &Retry, d: Duration, key: &DrawKey<'_>, previous: Option<Duration>) -> Duration {
    let (lo, hi) = interval(retry, d, previous);
    let span = u128::from(hi.saturating_sub(lo).as_ms()) + 1;
    let offset = (u128::from(unit(key)) * span) >> 64;
    let drawn = lo + Duration::from_ms(u64::try_from(offset).unwrap_or(u64::MAX));
    after(retry, drawn)
}

/// u: the first eight bytes, big-endian, of SHA-256 over the five fields, each preceded by its length as four bytes.
fn unit(key: &DrawKey<'_>) -> u64 {
    let mut hash = Sha256::new();
    let delivery = u64::from(key.delivery_no.get()).to_be_bytes();
    let n = u64::from(key.retry_no.get()).to_be_bytes();
    let fields: [&[u8]; 5] = [
        TAG.as_bytes(),
        key.message_id.as_bytes(),
        key.endpoint_id.as_bytes(),
        &delivery,
        &n,
    ];
    for field in fields {
        hash.update(u32::try_from(field.len()).unwrap_or(u32::MAX).to_be_bytes());
        hash.update(field);
    }
    let digest: [u8; 32] = hash.finalize().into();
    digest.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
}
