//! Ledger records (spec/engine.md, The ledger): what every judge reads. Nouns alone.
//!
//! Ids are texts here: a judge takes a ledger written by any system, as long as it is in this format.

use crate::units::{AttemptNo, DeliveryNo, Duration, Instant, Seq};
use serde::{Deserialize, Serialize};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $word)] $variant),+ }
        impl $name {
            /// Every word, in the order of the spec.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// The word in files and databases.
            #[must_use]
            pub const fn word(self) -> &'static str { match self { $(Self::$variant => $word),+ } }
            /// The value of a word, if it is one.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> { match word { $($word => Some(Self::$variant),)+ _ => None } }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.pad(self.word()) }
        }
    };
}

words!(
    /// How an attempt ended.
    Outcome {
        /// A receiver answered within the success set.
        Succeeded = "succeeded",
        /// Any other answer, or a fault of the connection.
        Failed = "failed",
        /// The deadline passed.
        TimedOut = "timed_out",
        /// Our own guard refused the target.
        Refused = "refused",
        /// Started and never settled: a crash lay between. It ends at its recovery.
        Interrupted = "interrupted",
    }
);
words!(
    /// Why an attempt was made.
    Trigger {
        /// The contract's schedule.
        Scheduled = "scheduled",
        /// A person's resend or redrive.
        Manual = "manual",
    }
);
words!(
    /// What happened to a delivery.
    DeliveryEventKind {
        /// It was opened.
        Opened = "opened",
        /// A receiver answered within the success set.
        Succeeded = "succeeded",
        /// Nothing more will be tried.
        Dead = "dead",
        /// By a person.
        Cancelled = "cancelled",
        /// A resend opened the next delivery number.
        Superseded = "superseded",
    }
);
words!(
    /// Why a delivery is dead.
    DeadReason {
        /// All attempts were made.
        MaxAttempts = "max_attempts",
        /// A retry would start later than the contract's `max_age`.
        MaxAge = "max_age",
        /// A status that is not retried.
        Terminal = "terminal",
        /// The schedule stops here (`then = "stop"`).
        ScheduleEnd = "schedule_end",
        /// The endpoint is disabled.
        EndpointDisabled = "endpoint_disabled",
        /// The endpoint was deleted.
        EndpointDeleted = "endpoint_deleted",
    }
);
words!(
    /// The state of an endpoint. Only `active` is ever sent to (I4).
    EndpointState {
        /// Receives.
        Active = "active",
        /// Holds what waits.
        Draining = "draining",
        /// Takes nothing.
        Disabled = "disabled",
        /// Is gone.
        Deleted = "deleted",
    }
);
words!(
    /// What a node saw of itself and its clock.
    NodeEventKind {
        /// It started.
        Up = "up",
        /// It stopped; after a crash, written by the recovery with the time of the last sign of life.
        Down = "down",
        /// The wall clock stepped by more than half a second.
        Step = "step",
    }
);

/// One request (record `attempt`). Written when it is claimed, completed once when it is settled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// Its id.
    pub attempt_id: String,
    /// Its place in commit order: that of the claim.
    pub seq: Seq,
    /// The message.
    pub message_id: String,
    /// The endpoint.
    pub endpoint_id: String,
    /// Which delivery of the message to the endpoint.
    pub delivery_no: DeliveryNo,
    /// Which attempt of that delivery.
    pub attempt_no: AttemptNo,
    /// The contract by which this attempt was scheduled and its answer classified.
    pub retry_rev: String,
    /// The contract whose `[endpoint]` clauses paced it.
    pub endpoint_rev: String,
    /// When it was due.
    pub due_at: Instant,
    /// When it started, rounded down: the claim's reading, replaced at the settle by the reading just before sending.
    pub started_at: Instant,
    /// When it ended, rounded up.
    pub ended_at: Option<Instant>,
    /// How it ended; none while it is in flight.
    pub outcome: Option<Outcome>,
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    /// What went wrong, in a word or a sentence.
    pub error: Option<String>,
    /// The answer's Retry-After header as it came.
    pub retry_after: Option<String>,
    /// The drawn wait that led to this attempt, before Retry-After and slack; none for a first attempt.
    pub wait_ms: Option<Duration>,
    /// The node that made it.
    pub node: String,
    /// Why it was made.
    pub trigger: Trigger,
}

/// What happened to a delivery (record `delivery_event`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryEvent {
    /// Its place in commit order.
    pub seq: Seq,
    /// The message.
    pub message_id: String,
    /// The endpoint.
    pub endpoint_id: String,
    /// Which delivery.
    pub delivery_no: DeliveryNo,
    /// When.
    pub at: Instant,
    /// What.
    pub event: DeliveryEventKind,
    /// Why: a [`DeadReason`] word for `dead`, free text else.
    pub reason: Option<String>,
    /// The contract by which it was decided.
    pub retry_rev: String,
}

/// A message was accepted (record `message`): the evidence of how many deliveries it was due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageRecord {
    /// Its place in commit order.
    pub seq: Seq,
    /// The message.
    pub message_id: String,
    /// When it was accepted.
    pub at: Instant,
    /// How many endpoints wanted it then.
    pub deliveries: u32,
}

/// An endpoint changed its state (record `endpoint_event`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointEvent {
    /// Its place in commit order.
    pub seq: Seq,
    /// The endpoint.
    pub endpoint_id: String,
    /// When.
    pub at: Instant,
    /// The new state.
    pub state: EndpointState,
    /// Why.
    pub why: Option<String>,
    /// Who: a token's name, or `engine`.
    pub by: String,
}

/// A contract that rows refer to (record `contract`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContractRecord {
    /// SHA-256 of the canonical text, lower-case hex.
    pub rev: String,
    /// The canonical form: JSON, keys sorted, durations in milliseconds.
    pub canonical: String,
}

/// What a node saw of itself and its clock (record `node_event`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeEvent {
    /// Its place in commit order.
    pub seq: Seq,
    /// The node.
    pub node: String,
    /// When, by the wall clock.
    pub at: Instant,
    /// The machine's boot id.
    pub boot_id: String,
    /// The boot-time clock's reading, in milliseconds.
    pub mono_ms: u64,
    /// What.
    pub event: NodeEventKind,
    /// How far the wall clock stepped, in milliseconds; zero for `up` and `down`.
    pub size_ms: i64,
}
