//! May this attempt start now? Deliver, defer until, block, or dead, each with its reason.
//!
//! Keeps I1 (both clocks must allow it), I2 (no attempt beyond the limit) and I4 (an allow-list: the state *is*
//! `active`). The store checks the state once more, inside the claiming transaction.

use crate::pace::{Moment, Pace};
use crate::settle::too_old;
use crate::states::{Waiting, waiting};
use contract::ledger::{DeadReason, EndpointState};
use contract::model::Retry;
use contract::{BootInstant, Instant};

/// A waiting delivery and where its endpoint stands.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// The endpoint's state.
    pub endpoint_state: EndpointState,
    /// Due by the wall clock.
    pub due_at: Instant,
    /// Due by the boot-time clock; none when that was another boot, which leaves the wall clock alone.
    pub due_boot: Option<BootInstant>,
    /// When the delivery was opened.
    pub opened_at: Instant,
    /// Attempts made.
    pub attempts: u32,
    /// Attempts of this endpoint that are in flight.
    pub in_flight: u32,
    /// How many may be.
    pub in_flight_limit: u32,
}

/// When to ask again: both clocks must have come so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Until {
    /// The wall clock.
    pub wall: Instant,
    /// The boot-time clock; none where it has no say.
    pub boot: Option<BootInstant>,
}

/// Why an attempt waits for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeferReason {
    /// Its due time has not come.
    NotDue,
    /// `min_gap`, `rate` or the endpoint's own throttle.
    Pacing,
}

/// Why an attempt waits for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockReason {
    /// The endpoint is not `active`.
    Held,
    /// Its in-flight window is full.
    InFlight,
}

/// May it start?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Now.
    Deliver,
    /// Not before then.
    Defer {
        /// When to ask again.
        until: Until,
        /// Why.
        reason: DeferReason,
    },
    /// Not until something changes.
    Block(BlockReason),
    /// Never.
    Dead(DeadReason),
}

/// Whether both clocks have reached the due time.
#[must_use]
pub fn due(candidate: &Candidate, now: Moment) -> bool {
    now.wall >= candidate.due_at && candidate.due_boot.is_none_or(|due| now.boot >= due)
}

/// Decides whether the attempt may start at `now`. What ends the delivery is decided first, then what holds it, then
/// its own due time, then what it shares with others.
#[must_use]
pub fn admit(candidate: &Candidate, retry: &Retry, pace: &Pace, now: Moment) -> Admission {
    let held = match waiting(candidate.endpoint_state) {
        Waiting::Goes => false,
        Waiting::Held => true,
        Waiting::Dead(reason) => return Admission::Dead(reason),
    };
    if candidate.attempts >= retry.max_attempts {
        return Admission::Dead(DeadReason::MaxAttempts);
    }
    // Age runs on while a delivery is held, and nothing starts before it is due.
    if too_old(retry, candidate.opened_at, now.wall.max(candidate.due_at)) {
        return Admission::Dead(DeadReason::MaxAge);
    }
    if held {
        return Admission::Block(BlockReason::Held);
    }
    if !due(candidate, now) {
        let until = Until {
            wall: candidate.due_at,
            boot: candidate.due_boot,
        };
        return Admission::Defer {
            until,
            reason: DeferReason::NotDue,
        };
    }
    if candidate.in_flight >= candidate.in_flight_limit {
        return Admission::Block(BlockReason::InFlight);
    }
    match pace.next_allowed(now) {
        None => Admission::Deliver,
        Some(next) => {
            let until = Until {
                wall: next.wall,
                boot: Some(next.boot),
            };
            Admission::Defer {
                until,
                reason: DeferReason::Pacing,
            }
        }
    }
}
