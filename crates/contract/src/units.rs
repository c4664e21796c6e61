//! Units are types (I6): a duration, an instant and a count cannot be mixed.
//!
//! There is on purpose no `Duration * count`: a wait is built by the laws in `schedule` (and again, on its own,
//! in `audit`) from whole microseconds, never by multiplying a duration that happens to be at hand.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, Sub};

/// A span of time in whole milliseconds, never negative. Arithmetic saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Duration(u64);

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span there is.
    pub const MAX: Self = Self(u64::MAX);
    /// Ten years of 365 days: the longest duration a contract may name, and where a law without a cap saturates.
    pub const TEN_YEARS: Self = Self(3650 * 86_400_000);

    /// A span of so many milliseconds.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }
    /// A span of so many seconds, saturating.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1000))
    }
    /// Whole milliseconds.
    #[must_use]
    pub const fn as_ms(self) -> u64 {
        self.0
    }
    /// The same span for the standard library's timers.
    #[must_use]
    pub const fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_millis(self.0)
    }
    /// True for no time at all.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// `self - other`, or zero.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// Written as the contract language writes it: `250ms`, `1m30s`, `10h`, `3d`; zero is `0s`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.0;
        for (unit, size) in [
            ("d", 86_400_000),
            ("h", 3_600_000),
            ("m", 60_000),
            ("s", 1000),
            ("ms", 1),
        ] {
            if rest >= size {
                write!(f, "{}{unit}", rest / size)?;
                rest %= size;
            }
        }
        Ok(())
    }
}

/// A moment: Unix milliseconds, UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Instant(i64);

impl Instant {
    /// The end of time: nothing is due there.
    pub const MAX: Self = Self(i64::MAX);

    /// The moment so many milliseconds after 1970.
    #[must_use]
    pub const fn from_unix_ms(ms: i64) -> Self {
        Self(ms)
    }
    /// Unix milliseconds.
    #[must_use]
    pub const fn as_unix_ms(self) -> i64 {
        self.0
    }
    /// Unix seconds, rounded down.
    #[must_use]
    pub const fn as_unix_secs(self) -> i64 {
        self.0.div_euclid(1000)
    }
    /// How long after `earlier` this is; zero when it is not after it.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration(u64::try_from(i128::from(self.0) - i128::from(earlier.0)).unwrap_or(0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, wait: Duration) -> Self {
        Self(self.0.saturating_add_unsigned(wait.0))
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, wait: Duration) -> Self {
        Self(self.0.saturating_sub_unsigned(wait.0))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A reading of the boot-time clock (it runs on while the machine sleeps), in milliseconds since an arbitrary
/// start. Readings compare only within one boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootInstant(u64);

impl BootInstant {
    /// The reading of so many milliseconds.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }
    /// Milliseconds.
    #[must_use]
    pub const fn as_ms(self) -> u64 {
        self.0
    }
    /// How long after `earlier` this is; zero when it is not after it.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for BootInstant {
    type Output = Self;
    fn add(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(wait.0))
    }
}

macro_rules! count {
    ($(#[$doc:meta])* $name:ident, $inner:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name($inner);
        impl $name {
            /// The number as it is written.
            #[must_use]
            pub const fn new(n: $inner) -> Self { Self(n) }
            /// The number.
            #[must_use]
            pub const fn get(self) -> $inner { self.0 }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { self.0.fmt(f) }
        }
    };
}

count!(
    /// The number of an attempt within its delivery: 1, 2, …
    AttemptNo,
    u32
);
count!(
    /// The number of a retry: retry n is the wait between attempt n and attempt n+1 (spec: contract, Meaning).
    RetryNo,
    u32
);
count!(
    /// The number of a delivery of one message to one endpoint: a resend or redrive opens the next (I5).
    DeliveryNo,
    u32
);
count!(
    /// The place of a record in commit order.
    Seq,
    u64
);

impl AttemptNo {
    /// The first attempt of a delivery.
    pub const FIRST: Self = Self(1);
    /// The attempt after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
    /// The retry whose wait follows this attempt: after attempt n comes retry n.
    #[must_use]
    pub const fn retry_after_it(self) -> RetryNo {
        RetryNo(self.0)
    }
}

impl DeliveryNo {
    /// The delivery opened when the message was accepted.
    pub const FIRST: Self = Self(1);
    /// The delivery that a redrive opens after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_the_contract_writes_them() {
        for (ms, text) in [
            (0, "0s"),
            (250, "250ms"),
            (90_000, "1m30s"),
            (36_000_000, "10h"),
            (259_200_000, "3d"),
        ] {
            assert_eq!(Duration::from_ms(ms).to_string(), text);
        }
    }

    #[test]
    fn arithmetic_saturates_and_never_wraps() {
        assert_eq!(Instant::MAX + Duration::MAX, Instant::MAX);
        assert_eq!(Duration::MAX + Duration::from_ms(1), Duration::MAX);
        assert_eq!(
            Instant::from_unix_ms(5).since(Instant::from_unix_ms(9)),
            Duration::ZERO
        );
    }
}
