//! What the loop knows of one lane: its window of due deliveries, and whether and when to look for more.

use crate::contracts::Known;
use crate::lane::Lane;
use contract::Instant;
use schedule::Until;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use store::{DeliveryKey, Due};

/// The most that one lane's window holds.
const WINDOW: usize = 512;

/// A due delivery in the window, with the contract that schedules its next attempt.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) due: Due,
    pub(super) retry: Known,
}

/// The loop's side of a lane.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) lane: Arc<Lane>,
    pub(super) window: VecDeque<Waiting>,
    /// Handed to a commit or to an expiry, answer outstanding.
    pub(super) pending: HashSet<DeliveryKey>,
    /// The store may hold more due work.
    pub(super) more: bool,
    /// The last look came back full.
    pub(super) deep: bool,
    /// A look is under way.
    pub(super) looking: bool,
    /// Somebody asked for a look while one was under way.
    pub(super) asked: bool,
    pub(super) is_ready: bool,
    pub(super) is_hungry: bool,
    /// Attempts ended since the last look: how fast this lane moves.
    pub(super) ended: usize,
    /// When to look again.
    pub(super) wake: Option<Until>,
    /// Failing without a success since then.
    pub(super) failing_since: Option<Instant>,
    /// The engine has asked for it to be disabled.
    pub(super) disabling: bool,
}

impl Slot {
    pub(super) fn new(lane: Arc<Lane>, failing_since: Option<Instant>) -> Self {
        Self {
            lane,
            window: VecDeque::new(),
            pending: HashSet::new(),
            more: true,
            deep: false,
            looking: false,
            asked: false,
            is_ready: false,
            is_hungry: false,
            ended: 0,
            wake: None,
            failing_since,
            disabling: false,
        }
    }

    /// The store may hold due work that a look under way does not show.
    pub(super) fn want(&mut self) {
        self.more = true;
        self.asked = self.looking;
    }

    /// How many more deliveries the window should take: what could start now, and a reserve for a lane that moves.
    /// A lane that stands still (a hanging receiver) holds nothing beyond its in-flight window.
    pub(super) fn appetite(&self) -> usize {
        let reserve = self.ended.saturating_mul(4);
        let target = self.lane.room().saturating_add(reserve).min(WINDOW);
        target.saturating_sub(self.window.len())
    }

    /// True when enough is missing to be worth a query.
    pub(super) fn is_low(&self) -> bool {
        let appetite = self.appetite();
        appetite > 0 && self.window.len() <= appetite
    }

    pub(super) fn holds(&self, delivery: DeliveryKey) -> bool {
        self.pending.contains(&delivery) || self.window.iter().any(|waiting| waiting.due.key == delivery)
    }

    /// Tells the accepting side whether a fresh message must go behind others.
    pub(super) fn publish(&self) {
        self.lane.set_queued(!self.window.is_empty() || self.deep);
    }
}
