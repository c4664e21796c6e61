//! law → floor → cap: the wait of retry n before jitter, in whole microseconds until the end.

use contract::model::{Contract, Law, SimpleLaw, Then};
use contract::{Duration, RetryNo};

/// Microseconds in a millisecond.
const US: u128 = 1000;
/// A factor is given in millionths.
const MILLION: u128 = 1_000_000;

/// The wait of retry n by the law, floored and capped, before jitter. `None` where the schedule has stopped, and for a
/// retry 0.
#[must_use]
pub fn law(contract: &Contract, n: RetryNo) -> Option<Duration> {
    let backoff = &contract.retry.backoff;
    // Where there is no cap, ten years are where a law saturates.
    let ceiling = backoff.cap.unwrap_or(Duration::TEN_YEARS);
    let raw = raw_us(&backoff.law, n.get(), us(ceiling))?;
    let wait = raw.max(us(backoff.floor)).min(us(ceiling));
    // At most the ceiling, which is a number of milliseconds in 64 bits.
    Some(Duration::from_ms(u64::try_from(wait / US).unwrap_or(u64::MAX)))
}

fn us(duration: Duration) -> u128 {
    u128::from(duration.as_ms()) * US
}

fn raw_us(law: &Law, n: u32, ceiling: u128) -> Option<u128> {
    if n == 0 {
        return None;
    }
    let segments = match law {
        Law::Simple(law) => return simple_us(law, n, ceiling),
        Law::Segments(segments) => segments,
    };
    let mut within = n;
    for segment in segments {
        match segment.count {
            Some(count) if within > count => within -= count,
            _ => return simple_us(&segment.law, within, ceiling),
        }
    }
    // The last segment is open in every contract that parses.
    None
}

fn simple_us(law: &SimpleLaw, n: u32, ceiling: u128) -> Option<u128> {
    let before = u128::from(n - 1);
    let wait = match law {
        SimpleLaw::Fixed { base } => us(*base),
        SimpleLaw::Linear { base, step } => us(*base).saturating_add(us(*step).saturating_mul(before)),
        SimpleLaw::Exponential { base, factor } => {
            exponential_us(us(*base), u128::from(factor.millionths()), n, ceiling)
        }
        SimpleLaw::Polynomial { base, power } => {
            us(*base).saturating_mul(u128::from(n).saturating_pow(u32::from(*power)))
        }
        SimpleLaw::Schedule { waits, then } => {
            let place = usize::try_from(n - 1).unwrap_or(usize::MAX);
            match (waits.get(place), then) {
                (Some(wait), _) => us(*wait),
                (None, Then::Repeat) => us(*waits.last()?),
                (None, Then::Stop) => return None,
            }
        }
    };
    Some(wait.min(ceiling))
}

/// w₁ = base, wₙ₊₁ = ⌊wₙ·factor⌋: each step is rounded down, which a power at the end would not do.
fn exponential_us(base: u128, factor: u128, n: u32, ceiling: u128) -> u128 {
    let mut wait = base.min(ceiling);
    for _ in 1..n {
        let next = (wait * factor / MILLION).min(ceiling);
        if next == wait {
            break;
        }
        wait = next;
    }
    wait
}
