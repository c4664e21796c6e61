//! What the writer measures of itself: commits, commands a commit, and how long commits take.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Upper bounds of the classes of commit times, in microseconds; one more class has none.
pub const COMMIT_BOUNDS_US: [u64; 12] = [
    250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 512_000, 2_000_000,
];

/// The writer's figures since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommitStats {
    /// Commits that succeeded.
    pub commits: u64,
    /// Commands in them.
    pub commands: u64,
    /// Their whole time, in microseconds.
    pub total_us: u64,
    /// Commits by time: class i holds those up to [`COMMIT_BOUNDS_US`]\[i\], the last one the rest.
    pub by_time: [u64; COMMIT_BOUNDS_US.len() + 1],
}

#[derive(Debug, Default)]
pub(super) struct Meter {
    commands: AtomicU64,
    total_us: AtomicU64,
    by_time: [AtomicU64; COMMIT_BOUNDS_US.len() + 1],
}

impl Meter {
    #[allow(clippy::disallowed_methods)] // Measures itself; no decision rests on it.
    pub(super) fn begin(&self) -> Instant {
        Instant::now()
    }

    pub(super) fn committed(&self, started: Instant, commands: usize) {
        let us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        let class = COMMIT_BOUNDS_US.iter().position(|bound| us <= *bound);
        self.by_time[class.unwrap_or(COMMIT_BOUNDS_US.len())].fetch_add(1, Ordering::Relaxed);
        self.total_us.fetch_add(us, Ordering::Relaxed);
        self.commands
            .fetch_add(u64::try_from(commands).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> CommitStats {
        let by_time = self.by_time.each_ref().map(|count| count.load(Ordering::Relaxed));
        CommitStats {
            commits: by_time.iter().sum(),
            commands: self.commands.load(Ordering::Relaxed),
            total_us: self.total_us.load(Ordering::Relaxed),
            by_time,
        }
    }
}
