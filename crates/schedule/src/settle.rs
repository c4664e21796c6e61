//! What follows an attempt (spec/contract.md, Meaning): succeeded, dead with a reason, or another attempt and when.
//!
//! Keeps I1 (the next attempt is no sooner than anchor + wait + slack, on both clocks) and I2 (no more than
//! `max_attempts`). Leaves the writing down to the store.

use crate::jitter::{self, DrawKey};
use crate::law::{self, LawWait};
use crate::outcome::{Answer, classify};
use crate::retry_after;
use contract::ledger::{DeadReason, Outcome};
use contract::model::{Anchor, Contract, OutcomeSets, Retry};
use contract::{AttemptNo, BootInstant, DeliveryNo, Duration, Instant};

/// An attempt that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Attempted<'a> {
    /// The message id, as text: the draw depends on it.
    pub message_id: &'a str,
    /// The endpoint id, as text: the draw depends on it.
    pub endpoint_id: &'a str,
    /// Which delivery of the message to the endpoint.
    pub delivery_no: DeliveryNo,
    /// Which attempt of that delivery; it is the count of attempts made (I5).
    pub attempt_no: AttemptNo,
    /// When the delivery was opened: `max_age` runs from it.
    pub opened_at: Instant,
    /// When the delivery's first attempt started (anchor `first`).
    pub first_started_at: Instant,
    /// When this attempt started, rounded down.
    pub started_at: Instant,
    /// When it ended, rounded up; for an interrupted one the recovery.
    pub ended_at: Instant,
    /// How it ended.
    pub outcome: Outcome,
    /// The status, if there was an answer.
    pub status: Option<u16>,
    /// The raw Retry-After header of a failed answer.
    pub retry_after: Option<&'a str>,
    /// The wait that was drawn for this attempt; none for a first one.
    pub previous_wait: Option<Duration>,
}

impl Attempted<'_> {
    /// The outcome of an answer with this status, as the ledger words it.
    #[must_use]
    pub fn outcome_of(sets: &OutcomeSets, status: Option<u16>) -> Outcome {
        match classify(sets, status) {
            Answer::Success => Outcome::Succeeded,
            Answer::Terminal | Answer::Failure => Outcome::Failed,
        }
    }
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The delivery succeeded.
    Succeeded,
    /// Nothing more is tried. `terminal` is decided by the attempt's own contract, every other reason by the one in
    /// force for the next attempt.
    Dead(DeadReason),
    /// Another attempt.
    Retry {
        /// No sooner than this by the wall clock.
        due_at: Instant,
        /// The drawn wait, before Retry-After and slack: `wait_ms` of the next row.
        wait: Duration,
        /// The same by elapsed time.
        elapsed: Elapsed,
    },
}

/// How long after the attempt the next is due by elapsed time, and from which of its two moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elapsed {
    /// So long after its end (or, for an interrupted one, its recovery).
    FromEnd(Duration),
    /// So long after its start.
    FromStart(Duration),
}

impl Elapsed {
    /// The due time on the boot-time clock, from that clock's readings at the attempt's start and end.
    #[must_use]
    pub fn due_boot(self, started: BootInstant, ended: BootInstant) -> BootInstant {
        match self {
            Self::FromEnd(wait) => ended + wait,
            Self::FromStart(wait) => started + wait,
        }
    }
}

/// Decides what follows an attempt. `own` is the contract by which the attempt was scheduled: it says what the answer
/// means. `next` is the contract now in force, by which another attempt would be scheduled; mostly they are the same.
#[must_use]
pub fn settle(attempted: &Attempted<'_>, own: &Contract, next: &Contract) -> Decision {
    match attempted.outcome {
        Outcome::Succeeded => return Decision::Succeeded,
        Outcome::Failed => match classify(&own.outcome, attempted.status) {
            Answer::Terminal => return Decision::Dead(DeadReason::Terminal),
            // A success status on a failed attempt (its body never ended, say) is still a failure.
            Answer::Success | Answer::Failure => {}
        },
        Outcome::TimedOut | Outcome::Refused | Outcome::Interrupted => {}
    }
    let retry = &next.retry;
    // I2: the attempts made are counted, whatever became of them.
    if attempted.attempt_no.get() >= retry.max_attempts {
        return Decision::Dead(DeadReason::MaxAttempts);
    }
    let LawWait::Wait(law_wait) = law::wait(retry, attempted.attempt_no.retry_after_it()) else {
        return Decision::Dead(DeadReason::ScheduleEnd);
    };
    again(attempted, retry, law_wait)
}

fn again(attempted: &Attempted<'_>, retry: &Retry, law_wait: Duration) -> Decision {
    let key = DrawKey {
        message_id: attempted.message_id,
        endpoint_id: attempted.endpoint_id,
        delivery_no: attempted.delivery_no,
        retry_no: attempted.attempt_no.retry_after_it(),
    };
    let wait = jitter::draw(retry, law_wait, &key, attempted.previous_wait);
    let asked = attempted
        .retry_after
        .and_then(|header| retry_after::parse(header, attempted.ended_at));
    let total = retry_after::combine(retry.retry_after, law_wait, wait, asked) + retry.slack;
    let (due_at, elapsed) = match anchor_of(attempted, retry.anchor) {
        Anchor::End => (attempted.ended_at + total, Elapsed::FromEnd(total)),
        Anchor::Start => (attempted.started_at + total, Elapsed::FromStart(total)),
        Anchor::First => {
            let gone = attempted.started_at.since(attempted.first_started_at);
            let rest = total.saturating_sub(gone);
            (attempted.first_started_at + total, Elapsed::FromStart(rest))
        }
    };
    if too_old(retry, attempted.opened_at, due_at) {
        return Decision::Dead(DeadReason::MaxAge);
    }
    Decision::Retry {
        due_at,
        wait,
        elapsed,
    }
}

/// What the anchor `end` measures from: a bug on purpose, for the tests that prove it is noticed, or the end.
const END: Anchor = if cfg!(feature = "bug-wait-from-start") {
    Anchor::Start
} else {
    Anchor::End
};

/// An interrupted attempt anchors at its recovery, which is its end, whatever the anchor (I1).
fn anchor_of(attempted: &Attempted<'_>, anchor: Anchor) -> Anchor {
    match (attempted.outcome, anchor) {
        (Outcome::Interrupted, _) => Anchor::End,
        (_, Anchor::End) => END,
        (_, other) => other,
    }
}

/// Whether an attempt that starts at `at` is past the contract's `max_age`.
#[must_use]
pub(crate) fn too_old(retry: &Retry, opened_at: Instant, at: Instant) -> bool {
    retry.max_age.is_some_and(|limit| at > opened_at + limit)
}
