//! What the writer measures of itself: commits, commands a commit, and how long commits take.

use crate::{COMMIT_BOUNDS_US, CommitStats};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

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
