//! The queue round: may this waiting item go out in this round?
//!
//! Items are independent of each other. Keeps I6 in its own way: the count scales the base and never its unit.

use contract::rounds::{BackoffPolicy, DelayUnit, QueueRoundContract};
use serde::{Serialize, Serializer};

/// A waiting item.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// Whether its channel is enabled; none where the channel is unknown.
    pub channel_enabled: Option<bool>,
    /// Attempts already made, at least 0.
    pub attempts: i64,
    /// When it was received, in the contract's unit.
    pub received_at_value: i64,
}

/// What becomes of an item in this round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It goes out.
    Deliver,
    /// It waits.
    Defer,
    /// Its channel lets nothing out.
    Block,
    /// It had its attempts and cannot go out now.
    Dead,
}

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It has waited long enough.
    Ready,
    /// It has not.
    NotDue,
    /// There is no such channel.
    ChannelUnknown,
    /// Its channel is not enabled.
    ChannelDisabled,
    /// It had all its attempts.
    MaxAttempts,
}

/// What the round says of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appraised {
    /// How long it has waited; negative for an item from the future.
    pub age_ms: i64,
    /// How long it must.
    pub backoff_ms: i64,
    /// What becomes of it.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
    /// Its age, when it is delivered.
    pub wait_ms: Option<i64>,
}

/// A row of the report.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ResultRow<'a> {
    /// The item.
    pub id: &'a str,
    /// Its channel.
    pub channel: &'a str,
    /// As in the queue.
    pub attempts: i64,
    /// See [`Appraised::age_ms`].
    pub age_ms: i64,
    /// See [`Appraised::backoff_ms`].
    pub backoff_ms: i64,
    /// See [`Appraised::verdict`].
    pub verdict: Verdict,
    /// See [`Appraised::reason`].
    pub reason: Reason,
    /// The unit in force, so that an outside reader can check which was used.
    #[serde(serialize_with = "unit_word")]
    pub delay_unit: DelayUnit,
    /// See [`Appraised::wait_ms`].
    pub wait_ms: Option<i64>,
}

// The signature is serde's.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes fields by reference"
)]
fn unit_word<S: Serializer>(unit: &DelayUnit, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(unit.word())
}

/// How many items got which verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Lines that are not blank.
    pub items_total: u64,
    /// Go out.
    pub deliver: u64,
    /// Wait.
    pub defer: u64,
    /// Are not let out.
    pub block: u64,
    /// Are dead.
    pub dead: u64,
}

impl Tally {
    /// Counts an item.
    pub fn add(&mut self, verdict: Verdict) {
        self.items_total += 1;
        match verdict {
            Verdict::Deliver => self.deliver += 1,
            Verdict::Defer => self.defer += 1,
            Verdict::Block => self.block += 1,
            Verdict::Dead => self.dead += 1,
        }
    }

    /// Counts a line that could not be read.
    pub fn add_malformed(&mut self) {
        self.items_total += 1;
    }

    /// Lines that could not be read.
    #[must_use]
    pub fn malformed(&self) -> u64 {
        self.items_total - self.deliver - self.defer - self.block - self.dead
    }

    /// Whether every line was judged.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.malformed() == 0
    }
}

/// The wait of the queue round: BASE × 2 ^ attempts, in milliseconds whatever the contract's unit, saturating.
#[must_use]
pub fn backoff_ms(contract: &QueueRoundContract, attempts: i64) -> i64 {
    match contract.policy {
        BackoffPolicy::Exponential => {
            // 2^63 saturates any base of at least 1.
            let doublings = u32::try_from(attempts.clamp(0, 63)).unwrap_or(63);
            let power = 2_i64.saturating_pow(doublings);
            contract.backoff_base_ms.saturating_mul(power)
        }
    }
}

/// Judges an item at `now`, which is in the contract's unit.
#[must_use]
pub fn appraise(contract: &QueueRoundContract, item: &Item, now: i64) -> Appraised {
    let unit_in_ms = match contract.delay_unit {
        DelayUnit::Milliseconds => 1,
        DelayUnit::Seconds => 1000,
    };
    let age_ms = now
        .saturating_sub(item.received_at_value)
        .saturating_mul(unit_in_ms);
    let backoff_ms = backoff_ms(contract, item.attempts);
    let (verdict, reason) = match item.channel_enabled {
        None => (Verdict::Block, Reason::ChannelUnknown),
        Some(false) => (Verdict::Block, Reason::ChannelDisabled),
        Some(true) if age_ms >= backoff_ms => (Verdict::Deliver, Reason::Ready),
        Some(true) => (Verdict::Defer, Reason::NotDue),
    };
    // Decided in the same pass, so that verdict and reason cannot disagree.
    let exhausted = item.attempts >= contract.max_attempts && verdict != Verdict::Deliver;
    let (verdict, reason) = if exhausted {
        (Verdict::Dead, Reason::MaxAttempts)
    } else {
        (verdict, reason)
    };
    let wait_ms = (verdict == Verdict::Deliver).then_some(age_ms);
    Appraised {
        age_ms,
        backoff_ms,
        verdict,
        reason,
        wait_ms,
    }
}
