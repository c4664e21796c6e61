//! What a contract says of waits: the auditor's own derivation (spec/contract.md, Meaning).
//!
//! law → floor → cap stands in `law`, the interval and the draw in `jitter`, a receiver's wish in `retry_after`, and what
//! is legal but surely not meant in `warnings`. Pure; the instants are the caller's.

mod jitter;
mod law;
mod retry_after;
mod warnings;

pub use jitter::{DrawKey, draw, interval_after};
pub use law::law;
pub use retry_after::{combine, parse_retry_after};
pub use warnings::{Warning, warnings};

use contract::model::Jitter;
use contract::{Contract, Duration, RetryNo};

/// The earliest and the latest drawn wait of retry n, before Retry-After and slack, both included. `None` where the
/// schedule has stopped, and for a retry 0, which there is not.
///
/// With decorrelated jitter the interval depends on the wait drawn before; this is the widest, over every history.
#[must_use]
pub fn interval(contract: &Contract, n: RetryNo) -> Option<(Duration, Duration)> {
    let widest_before = match contract.retry.jitter {
        Jitter::Decorrelated => (2..n.get()).try_fold(law(contract, RetryNo::new(1))?, |widest, k| {
            interval_after(contract, RetryNo::new(k), Some(widest)).map(|(_, high)| high)
        }),
        Jitter::None | Jitter::Full | Jitter::Equal | Jitter::Proportional { .. } => None,
    };
    interval_after(contract, n, widest_before)
}
