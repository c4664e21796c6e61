//! A clock that moves only when it is told to: virtual time for tests and simulations.

use super::{Clock, reached};
use async_trait::async_trait;
use contract::{BootInstant, Duration, Instant};
use schedule::Until;
use store::Reading;
use tokio::sync::watch;

/// Two clocks that stand still until they are moved.
#[derive(Debug)]
pub struct ManualClock {
    boot_id: String,
    at: watch::Sender<Reading>,
}

impl ManualClock {
    /// Clocks at these readings.
    #[must_use]
    pub fn new(wall: Instant, boot: BootInstant) -> Self {
        Self::of_boot("00000000-0000-4000-8000-000000000001", wall, boot)
    }

    /// Clocks of a boot of this id.
    #[must_use]
    pub fn of_boot(boot_id: &str, wall: Instant, boot: BootInstant) -> Self {
        Self {
            boot_id: boot_id.to_owned(),
            at: watch::Sender::new(Reading { wall, boot }),
        }
    }

    /// Both clocks as they stand.
    #[must_use]
    pub fn now_reading(&self) -> Reading {
        self.at.borrow().clone()
    }

    /// Time passes: both clocks move on.
    pub fn advance(&self, by: Duration) {
        self.at.send_modify(|at| {
            at.wall = at.wall + by;
            at.boot = at.boot + by;
        });
    }

    /// The wall clock alone is set forward (positive) or back, in milliseconds. No time passes.
    pub fn step_wall(&self, by_ms: i64) {
        self.at.send_modify(|at| {
            at.wall = Instant::from_unix_ms(at.wall.as_unix_ms().saturating_add(by_ms));
        });
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Reading {
        self.now_reading()
    }

    fn now_ceil(&self) -> Reading {
        self.now()
    }

    fn boot_id(&self) -> &str {
        &self.boot_id
    }

    async fn sleep_until(&self, until: Until) {
        let mut at = self.at.subscribe();
        // The sender lives as long as `self`, so the wait ends in one way only.
        let _ = at.wait_for(|now| reached(until, now)).await;
    }
}
