//! A breach, in words that stay.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $word:literal),+ $(,)?) => {
        /// What kind of breach (spec/engine.md, The audit of the live ledger).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Kind { $($(#[$doc])* #[serde(rename = $word)] $variant),+ }
        impl Kind {
            /// Every kind, in the order of the spec.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// The word in reports.
            #[must_use]
            pub const fn word(self) -> &'static str { match self { $(Self::$variant => $word),+ } }
        }
    };
}

kinds! {
    /// An attempt started before the contract allowed it.
    TooEarly = "too_early",
    /// More attempts than the contract has, or one after an answer that is not retried.
    TooManyAttempts = "too_many_attempts",
    /// An attempt after the delivery had succeeded.
    AfterSuccess = "after_success",
    /// An attempt to an endpoint that was not `active`.
    ToInactiveEndpoint = "to_inactive_endpoint",
    /// An attempt before the one before it had ended.
    Overlap = "overlap",
    /// The same attempt twice.
    DuplicateAttempt = "duplicate_attempt",
    /// Two starts at one endpoint closer than `min_gap`.
    MinGap = "min_gap",
    /// More starts in a window than `rate` allows.
    Rate = "rate",
    /// More attempts at once than `in_flight` allows.
    InFlight = "in_flight",
    /// A receiver asked for more time and did not get it.
    RetryAfterIgnored = "retry_after_ignored",
    /// An attempt at a delivery older than `max_age`.
    AfterMaxAge = "after_max_age",
    /// An attempt later than its effective due time and `late_after`.
    Overdue = "overdue",
    /// A due time later than the contract has it.
    WaitTooLong = "wait_too_long",
    /// Dead with attempts and age left and no terminal cause.
    GaveUpEarly = "gave_up_early",
    /// Not final, and nothing comes of it any more.
    Abandoned = "abandoned",
    /// A message without the deliveries it was due.
    Lost = "lost",
    /// A number is missing.
    NumberingGap = "numbering_gap",
    /// A wait that the contract did not draw.
    WrongDraw = "wrong_draw",
    /// A row refers to a contract that the ledger does not hold, or not whole.
    UnknownContract = "unknown_contract",
    /// An outcome that the contract does not give to that status.
    OutcomeNotInContract = "outcome_not_in_contract",
    /// A state that no row accounts for.
    StateWithoutEvidence = "state_without_evidence",
    /// A request that a receiver logged and the ledger does not know.
    NotInLedger = "not_in_ledger",
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.word())
    }
}

/// One breach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What kind.
    pub kind: Kind,
    /// What happened, with the numbers.
    pub text: String,
    /// The rows: attempt ids, `seq n` of other records, `line n` of a receiver's log, or a contract's revision.
    pub rows: Vec<String>,
}

impl Finding {
    pub(super) const fn new(kind: Kind, text: String, rows: Vec<String>) -> Self {
        Self { kind, text, rows }
    }
}

/// All breaches counted, the first of them kept.
pub(super) struct Findings {
    pub(super) counts: BTreeMap<Kind, u64>,
    pub(super) listed: Vec<Finding>,
    limit: usize,
}

impl Findings {
    pub(super) const fn new(limit: usize) -> Self {
        Self {
            counts: BTreeMap::new(),
            listed: Vec::new(),
            limit,
        }
    }

    pub(super) fn add(&mut self, finding: Finding) {
        *self.counts.entry(finding.kind).or_insert(0) += 1;
        if self.listed.len() < self.limit {
            self.listed.push(finding);
        }
    }
}
