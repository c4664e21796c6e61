//! Ledgers for tests: clean ones of any seed, ways to corrupt them, and their export. For tests alone (feature `testing`).

mod contracts;
mod corruption;
mod export;
mod world;

pub use corruption::{Corruption, corruptions};
pub use export::write_folder;

use crate::judge::Ledger;

/// A clean ledger: several endpoints under several contracts (every law, jitter kind, anchor and Retry-After rule), with
/// holds, a crash, clock steps, redrives, and deliveries that are still on their way at its end. One seed, one ledger.
#[must_use]
pub fn clean_ledger(seed: u64) -> Ledger {
    world::play(seed)
}

/// A small generator of its own, so that one seed is one ledger on every machine: SplitMix64.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Dice for a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.roll() % n.max(1)
    }

    /// A number from `low` to `high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low.saturating_add_unsigned(self.below(high.abs_diff(low).saturating_add(1)))
    }

    /// True `percent` times in a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of them; the list must not be empty.
    pub fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[usize::try_from(self.below(list.len() as u64)).unwrap_or(0)]
    }
}
