//! The parsed contract: what this sender promises its receivers about retries. Nouns alone: what a clause *means*
//! stands in `schedule` and, a second time and on purpose, in `audit` and `probe/`.

use crate::units::Duration;

/// A whole contract file, parsed. Built by [`crate::parse`] alone, so that it cannot be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    /// The name in the file.
    pub name: String,
    /// `[retry]` and its tables.
    pub retry: Retry,
    /// `[outcome]`.
    pub outcome: OutcomeSets,
    /// `[endpoint]`.
    pub endpoint: EndpointClauses,
}

/// `[retry]`: when, how often and how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Attempts of one delivery, the first included: 1 to 10 000.
    pub max_attempts: u32,
    /// Since the delivery was opened; `None` for no limit.
    pub max_age: Option<Duration>,
    /// What a wait is measured from.
    pub anchor: Anchor,
    /// Added to every wait.
    pub slack: Duration,
    /// Started later than its effective due time and this: overdue, for the judges.
    pub late_after: Duration,
    /// `[retry.backoff]`.
    pub backoff: Backoff,
    /// `[retry.jitter]`.
    pub jitter: Jitter,
    /// Cap once more after jitter.
    pub cap_after_jitter: bool,
    /// `[retry.retry_after]`.
    pub retry_after: RetryAfter,
}

/// What a wait is measured from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// The end of the attempt before.
    End,
    /// The start of the attempt before.
    Start,
    /// The start of the delivery's first attempt: due = that + law(n).
    First,
}

/// `[retry.backoff]`: one law, its floor and its cap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The law.
    pub law: Law,
    /// No wait of the law is longer; `None` where there is no cap.
    pub cap: Option<Duration>,
    /// No wait of the law is shorter.
    pub floor: Duration,
}

/// A law of waits, by retry number n = 1, 2, …
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Law {
    /// One that stands alone.
    Simple(SimpleLaw),
    /// `segments`: several in turn, the last one open.
    Segments(Vec<Segment>),
}

/// A law that a segment may hold too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SimpleLaw {
    /// `base`.
    Fixed {
        /// The wait.
        base: Duration,
    },
    /// `base + step·(n−1)`.
    Linear {
        /// The first wait.
        base: Duration,
        /// What each further one adds.
        step: Duration,
    },
    /// w₁ = `base`, wₙ₊₁ = ⌊wₙ·factor⌋ in microseconds.
    Exponential {
        /// The first wait.
        base: Duration,
        /// The growth.
        factor: Factor,
    },
    /// `base·n^power`.
    Polynomial {
        /// The first wait.
        base: Duration,
        /// 1 to 8.
        power: u8,
    },
    /// An explicit list.
    Schedule {
        /// The waits, never empty.
        waits: Vec<Duration>,
        /// What follows the last.
        then: Then,
    },
}

/// What follows the last entry of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The last wait repeats.
    Repeat,
    /// The delivery is dead.
    Stop,
}

/// One part of a `segments` law.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its law, counting from 1 within the segment.
    pub law: SimpleLaw,
    /// How many waits it gives; `None` for the last, which is open.
    pub count: Option<u32>,
}

/// A decimal from 1 to 100 with at most six places, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Factor(pub(crate) u64);

impl Factor {
    /// Millionths: 4 is 4 000 000.
    #[must_use]
    pub const fn millionths(self) -> u64 {
        self.0
    }
}

/// `[retry.jitter]`, over the capped wait d.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jitter {
    /// d.
    None,
    /// [0, d].
    Full,
    /// [d/2, d].
    Equal,
    /// d·(1±ratio).
    Proportional {
        /// The ratio, in millionths: 20% is 200 000; at most 1 000 000.
        ratio_ppm: u32,
        /// To which side.
        direction: Direction,
    },
    /// [base, 3·previous drawn wait], capped; the first wait is `base`. `base` is the law's first wait.
    Decorrelated,
}

/// To which side a proportional jitter goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// [d, d·(1+ratio)].
    Up,
    /// [d·(1−ratio), d].
    Down,
    /// [d·(1−ratio), d·(1+ratio)].
    Both,
}

/// `[retry.retry_after]`: what a receiver's Retry-After does to the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// Nothing.
    Ignore,
    /// The wait is at least that.
    Floor {
        /// Longer requests are cut to this.
        max: Duration,
    },
    /// The wait is exactly that.
    Replace {
        /// Longer requests are cut to this.
        max: Duration,
    },
    /// It is clamped to [law, times·law].
    Bounded {
        /// Longer requests are cut to this.
        max: Duration,
        /// At most this many times the law.
        times: u32,
    },
}

/// `[outcome]`: which statuses mean what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomeSets {
    /// These succeed.
    pub success: StatusSet,
    /// These are not retried.
    pub terminal: StatusSet,
}

/// A set of HTTP statuses: sorted, disjoint, inclusive ranges within 100 to 599.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusSet(pub(crate) Vec<(u16, u16)>);

impl StatusSet {
    /// The ranges, both ends included.
    #[must_use]
    pub fn ranges(&self) -> &[(u16, u16)] {
        &self.0
    }
}

/// `[endpoint]`: for endpoints that do not say otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointClauses {
    /// Least time between the starts of any two attempts.
    pub min_gap: Duration,
    /// At most so many starts in any window; `None` for no limit.
    pub rate: Option<Rate>,
    /// Attempts at once, at least 1.
    pub in_flight: u32,
    /// The whole attempt.
    pub timeout: Duration,
    /// Failing without a single success for this long: disabled; `None` for never.
    pub disable_after: Option<Duration>,
    /// One answer of these disables the endpoint.
    pub disable_on: StatusSet,
}

/// `"50/1s"`: at most 50 starts in any window of one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Starts, at least 1.
    pub starts: u32,
    /// The window, longer than zero.
    pub window: Duration,
}
