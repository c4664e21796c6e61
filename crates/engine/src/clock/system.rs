//! The machine's own clocks: `CLOCK_REALTIME` and `CLOCK_BOOTTIME`, which runs on while the machine sleeps.

use super::Clock;
use async_trait::async_trait;
use contract::{BootInstant, Duration, Instant};
use rustix::time::{ClockId, Timespec, clock_gettime};
use schedule::Until;
use std::io;
use store::Reading;

const BOOT_ID_FILE: &str = "/proc/sys/kernel/random/boot_id";
/// The longest sleep in one piece: tokio's timers stand still while the machine sleeps and know nothing of a wall
/// clock that was set, so the caller must look again now and then.
const LONGEST_SLEEP: Duration = Duration::from_ms(250);
const NS_PER_MS: i64 = 1_000_000;

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    boot_id: String,
}

impl SystemClock {
    /// Reads the machine's boot id.
    ///
    /// # Errors
    /// The boot id cannot be read: without it readings of two boots could be compared.
    pub fn new() -> io::Result<Self> {
        let text = std::fs::read_to_string(BOOT_ID_FILE)
            .map_err(|error| io::Error::new(error.kind(), format!("{BOOT_ID_FILE}: {error}")))?;
        let boot_id = text.trim().to_owned();
        if boot_id.is_empty() {
            return Err(io::Error::other(format!(
                "{BOOT_ID_FILE} is empty; is /proc mounted?"
            )));
        }
        Ok(Self { boot_id })
    }
}

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Reading {
        reading(floor_ms)
    }

    fn now_ceil(&self) -> Reading {
        reading(ceil_ms)
    }

    fn boot_id(&self) -> &str {
        &self.boot_id
    }

    async fn sleep_until(&self, until: Until) {
        let now = self.now();
        let boot = until.boot.map_or(Duration::ZERO, |boot| boot.since(now.boot));
        let wait = until.wall.since(now.wall).max(boot).min(LONGEST_SLEEP);
        tokio::time::sleep(wait.to_std()).await;
    }
}

fn reading(round: fn(Timespec) -> i64) -> Reading {
    let wall = round(clock_gettime(ClockId::Realtime));
    let boot = round(clock_gettime(ClockId::Boottime));
    Reading {
        wall: Instant::from_unix_ms(wall),
        // The boot-time clock is never negative.
        boot: BootInstant::from_ms(u64::try_from(boot).unwrap_or(0)),
    }
}

fn floor_ms(at: Timespec) -> i64 {
    at.tv_sec
        .saturating_mul(1000)
        .saturating_add(at.tv_nsec / NS_PER_MS)
}

fn ceil_ms(at: Timespec) -> i64 {
    floor_ms(at).saturating_add(i64::from(at.tv_nsec % NS_PER_MS != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_round_down_and_ends_up() {
        for (tv_sec, tv_nsec, down, up) in [
            (1, 0, 1000, 1000),
            (1, 1, 1000, 1001),
            (1, 999_999, 1000, 1001),
            (1, 1_000_000, 1001, 1001),
            (-1, 500_000_000, -500, -500),
        ] {
            let at = Timespec { tv_sec, tv_nsec };
            assert_eq!((floor_ms(at), ceil_ms(at)), (down, up), "{tv_sec} {tv_nsec}");
        }
    }

    #[test]
    fn both_clocks_run_and_the_boot_id_is_known() {
        let clock = SystemClock::new().unwrap();
        let (a, b) = (clock.now(), clock.now_ceil());
        assert!(a.wall <= b.wall && a.boot <= b.boot);
        assert_eq!(clock.boot_id().len(), 36);
        assert!(
            a.wall.as_unix_ms() > 1_600_000_000_000,
            "milliseconds, not seconds"
        );
    }
}
