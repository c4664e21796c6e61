//! Counters for metrics and pages. Relaxed atomics: each is right on its own, no two agree to the instant. No
//! decision reads them.

use contract::Duration;
use contract::ledger::{DeadReason, Outcome};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Upper ends of the lateness buckets, in milliseconds; one more bucket holds the rest.
pub const LATENESS_BUCKETS_MS: [u64; 14] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000,
];

/// The engine's counters.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) accepted: AtomicU64,
    pub(crate) deliveries: AtomicU64,
    pub(crate) started: AtomicU64,
    pub(crate) released: AtomicU64,
    outcomes: [AtomicU64; Outcome::ALL.len()],
    dead: [AtomicU64; DeadReason::ALL.len()],
    lateness: [AtomicU64; LATENESS_BUCKETS_MS.len() + 1],
    lateness_sum_ms: AtomicU64,
    pub(crate) commits: AtomicU64,
    pub(crate) committed_settles: AtomicU64,
    pub(crate) committed_claims: AtomicU64,
    pub(crate) store_faults: AtomicU64,
    pub(crate) orphans: AtomicU64,
    pub(crate) disabled_endpoints: AtomicU64,
}

impl Counters {
    pub(crate) fn ended(&self, outcome: Outcome) {
        bump(&self.outcomes, Outcome::ALL.iter().position(|o| *o == outcome));
    }

    pub(crate) fn dead(&self, reason: DeadReason) {
        bump(&self.dead, DeadReason::ALL.iter().position(|r| *r == reason));
    }

    pub(crate) fn late(&self, by: Duration) {
        let bucket = LATENESS_BUCKETS_MS.partition_point(|end| *end < by.as_ms());
        bump(&self.lateness, Some(bucket));
        self.lateness_sum_ms.fetch_add(by.as_ms(), Relaxed);
    }

    pub(crate) fn snapshot(&self, in_flight: usize) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        Stats {
            accepted: read(&self.accepted),
            deliveries: read(&self.deliveries),
            started: read(&self.started),
            released: read(&self.released),
            outcomes: Outcome::ALL
                .iter()
                .copied()
                .zip(self.outcomes.iter().map(read))
                .collect(),
            dead: DeadReason::ALL
                .iter()
                .copied()
                .zip(self.dead.iter().map(read))
                .collect(),
            lateness: std::array::from_fn(|bucket| read(&self.lateness[bucket])),
            lateness_sum_ms: read(&self.lateness_sum_ms),
            commits: read(&self.commits),
            committed_settles: read(&self.committed_settles),
            committed_claims: read(&self.committed_claims),
            store_faults: read(&self.store_faults),
            orphans: read(&self.orphans),
            disabled_endpoints: read(&self.disabled_endpoints),
            in_flight: u64::try_from(in_flight).unwrap_or(u64::MAX),
        }
    }
}

fn bump(counters: &[AtomicU64], place: Option<usize>) {
    if let Some(counter) = place.and_then(|place| counters.get(place)) {
        counter.fetch_add(1, Relaxed);
    }
}

/// The counters at one moment, since the engine started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Messages accepted.
    pub accepted: u64,
    /// Deliveries opened for them.
    pub deliveries: u64,
    /// Attempts sent.
    pub started: u64,
    /// Claims taken back unsent.
    pub released: u64,
    /// Attempts settled, by outcome.
    pub outcomes: Vec<(Outcome, u64)>,
    /// Deliveries that an attempt's end made dead, by reason.
    pub dead: Vec<(DeadReason, u64)>,
    /// Attempts by how much later than due they started: [`LATENESS_BUCKETS_MS`] and the rest.
    pub lateness: [u64; LATENESS_BUCKETS_MS.len() + 1],
    /// The sum of it.
    pub lateness_sum_ms: u64,
    /// Commits of settles and claims.
    pub commits: u64,
    /// Settles in them.
    pub committed_settles: u64,
    /// Claims in them.
    pub committed_claims: u64,
    /// Calls that the store refused or failed.
    pub store_faults: u64,
    /// Attempts found started and owned by nobody, and settled as interrupted.
    pub orphans: u64,
    /// Endpoints disabled by the engine.
    pub disabled_endpoints: u64,
    /// Attempts claimed and not ended, now.
    pub in_flight: u64,
}

impl Stats {
    /// How many attempts ended so.
    #[must_use]
    pub fn ended(&self, outcome: Outcome) -> u64 {
        self.outcomes
            .iter()
            .find(|(found, _)| *found == outcome)
            .map_or(0, |(_, count)| *count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_falls_into_the_bucket_whose_end_it_does_not_pass() {
        let counters = Counters::default();
        for ms in [0, 1, 2, 3, 30_000, 30_001] {
            counters.late(Duration::from_ms(ms));
        }
        let stats = counters.snapshot(7);
        assert_eq!(
            (stats.lateness[0], stats.lateness[1], stats.lateness[2]),
            (2, 1, 1)
        );
        assert_eq!((stats.lateness[13], stats.lateness[14]), (1, 1));
        assert_eq!((stats.lateness_sum_ms, stats.in_flight), (60_007, 7));
    }
}
