//! A breach, in words that stay.

use serde::Serialize;

macro_rules! kinds {
    ($($variant:ident = $word:literal),+ $(,)?) => {
        /// What kind of breach (spec/engine.md, The audit of the live ledger).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        #[allow(missing_docs)] // each is its word in the spec's list
        pub enum Kind { $(#[serde(rename = $word)] $variant),+ }
        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// The word in reports.
            #[must_use]
            pub const fn word(self) -> &'static str { match self { $(Self::$variant => $word),+ } }
        }
    };
}

kinds! {
    TooEarly = "too_early",
    TooManyAttempts = "too_many_attempts",
    AfterSuccess = "after_success",
    ToInactiveEndpoint = "to_inactive_endpoint",
    Overlap = "overlap",
    DuplicateAttempt = "duplicate_attempt",
    MinGap = "min_gap",
    Rate = "rate",
    InFlight = "in_flight",
    RetryAfterIgnored = "retry_after_ignored",
    AfterMaxAge = "after_max_age",
    Overdue = "overdue",
    WaitTooLong = "wait_too_long",
    GaveUpEarly = "gave_up_early",
    Abandoned = "abandoned",
    Lost = "lost",
    NumberingGap = "numbering_gap",
    WrongDraw = "wrong_draw",
    UnknownContract = "unknown_contract",
    OutcomeNotInContract = "outcome_not_in_contract",
    StateWithoutEvidence = "state_without_evidence",
    NotInLedger = "not_in_ledger",
}

/// One breach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What kind.
    pub kind: Kind,
    /// What happened, with the numbers.
    pub text: String,
    /// The rows: attempt ids, or what else names them.
    pub rows: Vec<String>,
}

impl Finding {
    pub(crate) const fn new(kind: Kind, text: String, rows: Vec<String>) -> Self {
        Self { kind, text, rows }
    }
}
