//! Both clocks (spec/engine.md, Clock): the wall clock that due times are written in, and the boot-time clock that
//! watches elapsed time. The one place of the engine that reads time; everything else is handed a [`Clock`].
//!
//! Keeps I1: a start is read rounded down, an end rounded up, so that "never early" stays exact in whole
//! milliseconds. Leaves the decision whether something is due to `schedule`.

mod manual;
mod step;
mod system;

pub use manual::ManualClock;
pub use step::{STEP_TOLERANCE_MS, StepWatch};
pub use system::SystemClock;

use async_trait::async_trait;
use schedule::{Moment, Until};
use store::Reading;

/// Reads both clocks and waits for them.
#[async_trait]
pub trait Clock: Send + Sync + 'static {
    /// Both clocks, rounded down to the millisecond: for starts and for admission.
    fn now(&self) -> Reading;
    /// Both clocks, rounded up: for ends.
    fn now_ceil(&self) -> Reading;
    /// The machine's boot id: boot-time readings compare only within one.
    fn boot_id(&self) -> &str;
    /// Waits until both clocks have come so far. May return sooner (a clock was set): the caller looks again.
    async fn sleep_until(&self, until: Until);
}

/// The same reading in the words of `schedule`.
#[must_use]
pub fn moment(reading: &Reading) -> Moment {
    Moment {
        wall: reading.wall,
        boot: reading.boot,
    }
}

/// The moment `wait` after a reading, on both clocks.
#[must_use]
pub fn after(reading: &Reading, wait: contract::Duration) -> Until {
    Until {
        wall: reading.wall + wait,
        boot: Some(reading.boot + wait),
    }
}

/// True when both clocks have come so far.
#[must_use]
pub fn reached(until: Until, now: &Reading) -> bool {
    now.wall >= until.wall && until.boot.is_none_or(|boot| now.boot >= boot)
}
