//! Notices that the wall clock was set: it moved by another amount than the boot-time clock.

use store::Reading;

/// A smaller difference is drift or the clock's own discipline (spec/engine.md: a step is more than half a second).
pub const STEP_TOLERANCE_MS: i64 = 500;

/// Compares each reading with the one before it.
#[derive(Clone, Debug)]
pub struct StepWatch {
    last: Reading,
}

impl StepWatch {
    /// Starts from a reading.
    #[must_use]
    pub fn new(last: Reading) -> Self {
        Self { last }
    }

    /// How far the wall clock stepped since the last look, in milliseconds; `None` when it did not.
    pub fn look(&mut self, now: &Reading) -> Option<i64> {
        let wall = i128::from(now.wall.as_unix_ms()) - i128::from(self.last.wall.as_unix_ms());
        let boot = i128::from(now.boot.as_ms()) - i128::from(self.last.boot.as_ms());
        let size = i64::try_from(wall - boot).unwrap_or(if wall > boot { i64::MAX } else { i64::MIN });
        // Below the tolerance the old base is kept for its offset, so that slow slewing adds up to a step.
        if size.unsigned_abs() <= STEP_TOLERANCE_MS.unsigned_abs() {
            return None;
        }
        self.last = now.clone();
        Some(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::{BootInstant, Instant};

    fn at(wall: i64, boot: u64) -> Reading {
        Reading {
            wall: Instant::from_unix_ms(wall),
            boot: BootInstant::from_ms(boot),
        }
    }

    #[test]
    fn a_step_is_more_than_half_a_second_either_way() {
        for (wall, found) in [
            (2000, None),
            (2500, None),
            (2501, Some(501)),
            (1500, None),
            (1499, Some(-501)),
        ] {
            assert_eq!(StepWatch::new(at(1000, 0)).look(&at(wall, 1000)), found, "{wall}");
        }
    }

    #[test]
    fn a_step_is_reported_once_and_slewing_adds_up() {
        let mut watch = StepWatch::new(at(0, 0));
        assert_eq!(watch.look(&at(3_601_000, 1000)), Some(3_600_000));
        assert_eq!(watch.look(&at(3_602_000, 2000)), None);
        assert_eq!(watch.look(&at(3_603_300, 3000)), None);
        assert_eq!(watch.look(&at(3_604_600, 4000)), Some(600));
    }
}
