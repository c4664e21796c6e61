//! When the next attempt of a delivery is due by the contract: anchor + wait after Retry-After + slack.

use crate::waits::{self, DrawKey};
use contract::ledger::{AttemptRecord, Outcome};
use contract::model::{Anchor, Contract};
use contract::{DeliveryNo, Duration, Instant, RetryNo};

/// Which delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeliveryId {
    pub(super) message: String,
    pub(super) endpoint: String,
    pub(super) no: DeliveryNo,
}

impl std::fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} → {} #{}", self.message, self.endpoint, self.no)
    }
}

/// The reading that a wait is measured from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// The end of the attempt before.
    End,
    /// Its start.
    Start,
    /// The start of the first.
    FirstStart,
}

/// What the contract says of the attempt after some others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Next {
    /// The wait that the contract draws, before Retry-After and slack.
    pub(super) wait: Duration,
    /// What the wait is measured from.
    pub(super) anchor: Instant,
    /// Of which reading that is.
    pub(super) from: From,
    /// Due if the receiver had asked for nothing.
    pub(super) by_law: Instant,
    /// Due; the earlier reading where the records allow two.
    pub(super) earliest: Instant,
    /// Due; the later reading.
    pub(super) latest: Instant,
}

/// `None` where the schedule has stopped, or where the attempt before has not ended and the wait runs from its end.
pub(super) fn next(contract: &Contract, id: &DeliveryId, made: &[AttemptRecord]) -> Option<Next> {
    let (first, before) = (made.first()?, made.last()?);
    let n = RetryNo::new(u32::try_from(made.len()).ok()?);
    let key = DrawKey {
        message_id: &id.message,
        endpoint_id: &id.endpoint,
        delivery_no: id.no,
        retry: n,
    };
    let wait = waits::draw(contract, &key, before.wait_ms)?;
    let law = waits::law(contract, n)?;
    // I1: an interrupted attempt anchors at its recovery whatever the anchor says.
    let from = match contract.retry.anchor {
        _ if before.outcome == Some(Outcome::Interrupted) => From::End,
        Anchor::End => From::End,
        Anchor::Start => From::Start,
        Anchor::First => From::FirstStart,
    };
    let anchor = match from {
        From::End => before.ended_at?,
        From::Start => before.started_at,
        From::FirstStart => first.started_at,
    };
    let slack = contract.retry.slack;
    let after = |asked| anchor + waits::combine(contract.retry.retry_after, law, wait, asked) + slack;
    let (without, with) = (after(None), after(asked(before)));
    let (earliest, latest) = match before.outcome {
        Some(Outcome::Failed) => (with, with),
        // A deadline that passed after the headers: whether that is an answer is not said, so both readings hold.
        Some(Outcome::TimedOut) => (without.min(with), without.max(with)),
        _ => (without, without),
    };
    Some(Next {
        wait,
        anchor,
        by_law: anchor + wait + slack,
        earliest,
        latest,
        from,
    })
}

fn asked(before: &AttemptRecord) -> Option<Duration> {
    waits::parse_retry_after(before.retry_after.as_deref()?, before.ended_at?)
}
