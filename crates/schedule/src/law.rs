//! The wait that a contract's law gives for retry n: law → floor → cap (spec/contract.md, Meaning).
//!
//! Leaves jitter, Retry-After and slack to their own files. Everything is computed in whole microseconds, each step
//! floored and saturating at the cap, or at ten years where there is none; the wait is then floored to the
//! millisecond. The two file rounds have rules of their own and use nothing of this.

use contract::model::{Backoff, Law, Retry, Segment, SimpleLaw, Then};
use contract::{Duration, RetryNo};

/// What the law says about a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LawWait {
    /// Wait so long, before jitter.
    Wait(Duration),
    /// The schedule ends here (`then = "stop"`): there is no such retry.
    Stop,
}

impl LawWait {
    /// The wait, if there is one.
    #[must_use]
    pub const fn wait(self) -> Option<Duration> {
        match self {
            Self::Wait(wait) => Some(wait),
            Self::Stop => None,
        }
    }
}

/// The wait between attempt n and attempt n+1, before jitter: law → floor → cap.
#[must_use]
pub fn wait(retry: &Retry, n: RetryNo) -> LawWait {
    let Backoff { law, cap, floor } = &retry.backoff;
    let limit = Micros::of(cap.unwrap_or(Duration::TEN_YEARS));
    let raw = match law {
        Law::Simple(law) => simple(law, n.get(), limit),
        Law::Segments(segments) => segmented(segments, n.get(), limit),
    };
    raw.map_or(LawWait::Stop, |raw| {
        LawWait::Wait(raw.max(Micros::of(*floor)).min(limit).floor_to_ms())
    })
}

/// Whole microseconds: the unit in which laws are computed. At most ten years of them, so that a product with a
/// factor in millionths, when it is split, stays within 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Micros(u64);

impl Micros {
    fn of(duration: Duration) -> Self {
        Self(duration.min(Duration::TEN_YEARS).as_ms().saturating_mul(1000))
    }
    fn floor_to_ms(self) -> Duration {
        Duration::from_ms(self.0 / 1000)
    }
    /// ⌊self · ppm / 10⁶⌋, split as the law says, so that SQL can do it too.
    fn scaled(self, ppm: u64) -> Self {
        let whole = (self.0 / 1_000_000).saturating_mul(ppm);
        let rest = (self.0 % 1_000_000).saturating_mul(ppm) / 1_000_000;
        Self(whole.saturating_add(rest))
    }
}

/// The n-th wait of a simple law, saturating at `limit`; none past the end of a schedule that stops.
fn simple(law: &SimpleLaw, n: u32, limit: Micros) -> Option<Micros> {
    let before = u64::from(n.saturating_sub(1));
    let raw = match law {
        SimpleLaw::Fixed { base } => Micros::of(*base),
        SimpleLaw::Linear { base, step } => {
            let growth = Micros::of(*step).0.saturating_mul(before);
            Micros(Micros::of(*base).0.saturating_add(growth))
        }
        SimpleLaw::Exponential { base, factor } => {
            exponential(Micros::of(*base), factor.millionths(), n, limit)
        }
        SimpleLaw::Polynomial { base, power } => {
            let one = Micros::of(*base).0;
            Micros((0..*power).fold(one, |w, _| w.saturating_mul(u64::from(n))))
        }
        SimpleLaw::Schedule { waits, then } => {
            let listed = usize::try_from(before).ok().and_then(|at| waits.get(at));
            let wait = match (listed, then) {
                (Some(wait), _) => wait,
                (None, Then::Repeat) => waits.last()?,
                (None, Then::Stop) => return None,
            };
            Micros::of(*wait)
        }
    };
    Some(raw.min(limit))
}

/// w₁ = base, wₙ₊₁ = ⌊wₙ·factor⌋. Ends early where nothing grows any more: at the limit, or when a step adds nothing.
fn exponential(base: Micros, ppm: u64, n: u32, limit: Micros) -> Micros {
    let mut w = base.min(limit);
    // A delivery has no more attempts than the language allows, so no retry has a larger number.
    for _ in 1..n.min(contract::MAX_ATTEMPTS) {
        let next = w.scaled(ppm).min(limit);
        if next == w {
            break;
        }
        w = next;
    }
    w
}

/// Each segment in turn, counting from 1 within it; the last one is open.
fn segmented(segments: &[Segment], n: u32, limit: Micros) -> Option<Micros> {
    let (last, closed) = segments.split_last()?;
    let mut within = n;
    for segment in closed {
        let count = length(segment);
        if within <= count {
            return simple(&segment.law, within, limit);
        }
        within -= count;
    }
    simple(&last.law, within, limit)
}

/// How many waits a closed segment gives. A schedule's count is its length.
fn length(segment: &Segment) -> u32 {
    match (segment.count, &segment.law) {
        (Some(count), _) => count,
        (None, SimpleLaw::Schedule { waits, .. }) => u32::try_from(waits.len()).unwrap_or(u32::MAX),
        (None, _) => u32::MAX,
    }
}
