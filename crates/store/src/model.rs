//! What the store holds and what it is asked to do, in types. Policy-free: a due time is a value it is given.

use bytes::Bytes;
use contract::ledger::{DeadReason, EndpointState, Outcome, Trigger};
use contract::{
    AppId, AttemptNo, BootInstant, DeliveryNo, Duration, EndpointId, Instant, MessageId, TokenId,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The store's own number of an application, endpoint, delivery or contract row. Never shown to a caller.
macro_rules! row_key {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub i64);
    };
}
row_key!(
    /// An application row.
    AppKey
);
row_key!(
    /// An endpoint row.
    EndpointKey
);
row_key!(
    /// A delivery row: message × endpoint × delivery number.
    DeliveryKey
);
row_key!(
    /// A contract row.
    ContractKey
);

/// Both clocks at one moment, and the boot they belong to (spec/engine.md, Clock).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The wall clock, rounded down to the millisecond.
    pub wall: Instant,
    /// The boot-time clock, rounded down.
    pub boot: BootInstant,
}

/// An application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct App {
    /// Its row.
    pub key: AppKey,
    /// Its id.
    pub id: AppId,
    /// The caller's own name for it, unique.
    pub uid: Option<String>,
    /// A name for people.
    pub name: String,
    /// At most so many starts a second per endpoint that says nothing itself (Svix `throttleRate`).
    pub throttle_rate: Option<u16>,
    /// The caller's notes.
    pub metadata: BTreeMap<String, String>,
    /// The contract at this level.
    pub contract: Option<ContractKey>,
    /// Made.
    pub created_at: Instant,
    /// Last changed.
    pub updated_at: Instant,
}

/// A signing secret in its text form (`whsec_…` or `whsk_…`).
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// The text. Never logged: `Debug` hides it.
    pub key: String,
    /// Signs until then; `None` for the current one.
    pub expires_at: Option<Instant>,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secret")
            .field("key", &"[hidden]")
            .field("expires_at", &self.expires_at)
            .finish()
    }
}

/// An endpoint, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its row.
    pub key: EndpointKey,
    /// Its id.
    pub id: EndpointId,
    /// Its application.
    pub app: AppKey,
    /// The caller's own name for it, unique in its application.
    pub uid: Option<String>,
    /// Where to send, canonical.
    pub url: String,
    /// For people.
    pub description: String,
    /// Only `active` receives (I4).
    pub state: EndpointState,
    /// Event types it wants; `None` for all.
    pub event_types: Option<Vec<String>>,
    /// Channels it wants; `None` for all messages.
    pub channels: Option<Vec<String>>,
    /// At most so many starts a second (Svix `throttleRate`), on top of its contract's `rate`.
    pub throttle_rate: Option<u16>,
    /// The caller's notes.
    pub metadata: BTreeMap<String, String>,
    /// Custom request headers.
    pub headers: BTreeMap<String, String>,
    /// Signing secrets, the current one first.
    pub secrets: Vec<Secret>,
    /// The contract at this level.
    pub contract: Option<ContractKey>,
    /// Failing without a success since then; reset by a success and by re-activation.
    pub failing_since: Option<Instant>,
    /// Made.
    pub created_at: Instant,
    /// Last changed.
    pub updated_at: Instant,
}

/// A new application or the fields of one to replace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppFields {
    /// See [`App::uid`].
    pub uid: Option<String>,
    /// See [`App::name`].
    pub name: String,
    /// See [`App::throttle_rate`].
    pub throttle_rate: Option<u16>,
    /// See [`App::metadata`].
    pub metadata: BTreeMap<String, String>,
}

/// A new endpoint, or the fields of one to replace (state, secrets and contract have calls of their own).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointFields {
    /// See [`Endpoint::uid`].
    pub uid: Option<String>,
    /// See [`Endpoint::url`].
    pub url: String,
    /// See [`Endpoint::description`].
    pub description: String,
    /// See [`Endpoint::event_types`].
    pub event_types: Option<Vec<String>>,
    /// See [`Endpoint::channels`].
    pub channels: Option<Vec<String>>,
    /// See [`Endpoint::throttle_rate`].
    pub throttle_rate: Option<u16>,
    /// See [`Endpoint::metadata`].
    pub metadata: BTreeMap<String, String>,
    /// See [`Endpoint::headers`].
    pub headers: BTreeMap<String, String>,
}

/// A message as stored: the bytes are those that were accepted, and those that are signed and sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// Its application.
    pub app: AppKey,
    /// The caller's own id, a durable duplicate guard.
    pub event_id: Option<String>,
    /// Its type.
    pub event_type: String,
    /// Its channels.
    pub channels: Option<Vec<String>>,
    /// The payload's exact text. `None` once it was erased.
    pub payload: Option<Bytes>,
    /// The contract at this level: its `[retry]` and `[outcome]` come first.
    pub contract: Option<ContractKey>,
    /// When it was accepted.
    pub accepted_at: Instant,
}

/// A message to accept.
#[derive(Clone, Debug)]
pub struct NewMessage {
    /// Made by the caller, so that an accept of unknown fate can be looked up.
    pub id: MessageId,
    /// Its application.
    pub app: AppKey,
    /// See [`Message::event_id`]. A second one in the application is a [`crate::StoreError::Conflict`].
    pub event_id: Option<String>,
    /// See [`Message::event_type`].
    pub event_type: String,
    /// See [`Message::channels`].
    pub channels: Option<Vec<String>>,
    /// See [`Message::payload`].
    pub payload: Bytes,
    /// See [`Message::contract`].
    pub contract: Option<ContractKey>,
    /// The `idempotency-key` header and the application it came with: the same key again gives the first answer.
    pub idempotency_key: Option<String>,
    /// Both clocks when it was received; its deliveries are due then.
    pub now: Reading,
}

/// What became of an accept.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The message; the earlier one when the idempotency key was known.
    pub message: Arc<Message>,
    /// True when the idempotency key was known and nothing new was stored.
    pub repeated: bool,
    /// How many deliveries were opened.
    pub deliveries: u32,
    /// Attempts already written down as started in the same commit: send them now.
    pub claimed: Vec<Claimed>,
    /// Endpoints with a delivery that is due and was not claimed: look there.
    pub due_at_endpoints: Vec<EndpointKey>,
}

/// Asked inside the accepting transaction, for each `active` endpoint that wants the message: may its first attempt
/// be written down as started in this very commit? The engine answers from its lanes; the store holds no policy.
pub trait StartGate: Send + Sync {
    /// Reserves a start at this endpoint, if one can start at once.
    fn try_reserve(&self, endpoint: EndpointKey, message: &NewMessage) -> Option<Start>;
    /// Gives a reservation back: the transaction did not commit.
    fn release(&self, endpoint: EndpointKey);
}

/// What a claim writes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The claim's reading; replaced at the settle by the reading just before sending.
    pub started_at: Instant,
    /// The contract that scheduled the attempt.
    pub retry: ContractKey,
    /// The contract whose endpoint clauses pace it.
    pub endpoint: ContractKey,
}

/// A delivery that waits, with what the engine needs to decide and to send.
#[derive(Clone, Debug)]
pub struct Due {
    /// Its row.
    pub key: DeliveryKey,
    /// Where to.
    pub endpoint: EndpointKey,
    /// What.
    pub message: Arc<Message>,
    /// Which delivery of the message to the endpoint.
    pub delivery_no: DeliveryNo,
    /// When it was opened (`max_age` runs from it).
    pub opened_at: Instant,
    /// When its first attempt started (anchor `first`); `None` before it.
    pub first_started_at: Option<Instant>,
    /// Attempts made.
    pub attempts: u32,
    /// Due by the wall clock.
    pub due_at: Instant,
    /// Due by the boot-time clock; `None` when it was set in another boot, which leaves the wall clock alone.
    pub due_boot: Option<BootInstant>,
    /// The wait that was drawn for this attempt; `None` for a first attempt.
    pub wait: Option<Duration>,
    /// The contract by which it was scheduled; `None` before the first attempt: the one in force then.
    pub retry: Option<ContractKey>,
    /// Why it waits.
    pub trigger: Trigger,
}

/// An attempt that is written down as started.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// The delivery as it was when it was claimed (`due.attempts` does not count this attempt).
    pub due: Due,
    /// This attempt's number: `due.attempts` + 1.
    pub attempt_no: AttemptNo,
    /// Its id.
    pub attempt_id: contract::AttemptId,
    /// What was written.
    pub start: Start,
}

/// A claim to make: pending → sending, with the attempt written as started.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The delivery, as [`crate::Store::due`] showed it.
    pub due: Due,
    /// What to write down.
    pub start: Start,
}

/// Why a claim was not made. Nothing was written for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotClaimed {
    /// The endpoint is not `active` (I4), decided inside the transaction.
    Held,
    /// The delivery is no longer pending with this many attempts made: somebody else moved it.
    Moved,
}

/// The end of an attempt: completes its row and moves its delivery, in one commit.
#[derive(Clone, Debug)]
pub struct Settle {
    /// Which attempt.
    pub claimed: Claimed,
    /// The reading just before sending, rounded down.
    pub started_at: Instant,
    /// The end, rounded up.
    pub ended_at: Instant,
    /// How it ended.
    pub outcome: Outcome,
    /// The HTTP status.
    pub status: Option<u16>,
    /// What went wrong.
    pub error: Option<String>,
    /// The Retry-After header as it came.
    pub retry_after: Option<String>,
    /// At most 8 KiB of the answer's body.
    pub response: Bytes,
    /// What follows.
    pub next: Next,
}

/// What follows an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Delivered.
    Succeeded,
    /// The delivery ends.
    Dead {
        /// Why.
        reason: DeadReason,
        /// The contract by which that was decided.
        retry: ContractKey,
    },
    /// It waits for another attempt. When its endpoint is `disabled` or `deleted` by then, the store makes it dead
    /// with that reason instead, in the same commit.
    Retry {
        /// Due by the wall clock.
        due_at: Instant,
        /// Due by the boot-time clock.
        due_boot: BootInstant,
        /// The drawn wait, before Retry-After and slack.
        wait: Duration,
        /// The contract by which it was scheduled.
        retry: ContractKey,
    },
    /// Claimed and never sent (shutdown): the started row is taken back, and the delivery is pending as it was
    /// before the claim. The one row of the ledger that may go: nothing of it ever left this process.
    Released,
}

/// What a settle came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// As asked.
    Done,
    /// The delivery had already left `sending` (superseded, cancelled): the attempt's row was completed, no more.
    Stale,
    /// Asked to retry, but the endpoint is disabled or deleted: the delivery is dead with this reason.
    Dead(DeadReason),
}

/// A delivery for people: list of a message's deliveries, explain, API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its row.
    pub key: DeliveryKey,
    /// The message.
    pub message: MessageId,
    /// Where to.
    pub endpoint: EndpointKey,
    /// Its endpoint's id.
    pub endpoint_id: EndpointId,
    /// Which.
    pub delivery_no: DeliveryNo,
    /// Its state.
    pub state: DeliveryState,
    /// Why, when it is final.
    pub reason: Option<String>,
    /// Attempts made.
    pub attempts: u32,
    /// Due, when it is pending.
    pub due_at: Option<Instant>,
    /// The wait drawn for the next attempt.
    pub wait: Option<Duration>,
    /// The contract in force for it, where it was scheduled already.
    pub retry: Option<ContractKey>,
    /// Opened.
    pub opened_at: Instant,
    /// Final.
    pub closed_at: Option<Instant>,
}

/// The state of a delivery (spec/engine.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeliveryState {
    /// Has a due time.
    Pending,
    /// An attempt is written down as started.
    Sending,
    /// A receiver answered within the success set.
    Succeeded,
    /// No attempt left, too old, terminal, endpoint disabled or deleted.
    Dead,
    /// By a person, or superseded.
    Cancelled,
}

/// One attempt for people.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The ledger's row.
    pub record: contract::ledger::AttemptRecord,
    /// The start of the answer's body.
    pub response: Bytes,
}

/// A contract as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredContract {
    /// Its row.
    pub key: ContractKey,
    /// SHA-256 of the canonical text.
    pub rev: String,
    /// The canonical text: `contract::Contract::from_canonical` reads it back.
    pub canonical: String,
}

/// At which level a contract is set (a message's own is given with the message).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The whole store.
    Organisation,
    /// One application.
    App(AppKey),
    /// One endpoint.
    Endpoint(EndpointKey),
}

/// What the engine must look at again. Sent after the commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// This endpoint changed (state, URL, secret, contract, …) or is new.
    Endpoint(EndpointKey),
    /// A contract of an application or of the organisation changed: read all levels again.
    Contracts,
    /// A delivery of this endpoint became due by a person's doing (redrive, resend).
    Work(EndpointKey),
}

/// A new delivery number for a message and endpoint (resend, redrive): due now, its own count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redrive {
    /// The message.
    pub message: MessageId,
    /// The endpoint.
    pub endpoint: EndpointKey,
    /// Both clocks' wall part.
    pub now: Instant,
}

/// A token as stored: never its secret, only the secret's hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its public half.
    pub id: TokenId,
    /// A name for people; it stands as `by` in the ledger.
    pub name: String,
    /// SHA-256 of the whole token text.
    pub hash: [u8; 32],
    /// Made.
    pub created_at: Instant,
    /// Revoked.
    pub revoked_at: Option<Instant>,
}

/// How many deliveries are in which state: metrics, lists, doctor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pending at active endpoints.
    pub pending: u64,
    /// Pending at endpoints that are not active.
    pub held: u64,
    /// Sending.
    pub sending: u64,
    /// Succeeded.
    pub succeeded: u64,
    /// Dead.
    pub dead: u64,
    /// Cancelled.
    pub cancelled: u64,
}

/// A page of a list, newest or oldest first: at most `limit` rows after the row with the id `after`.
#[derive(Clone, Copy, Debug)]
pub struct Page<Id> {
    /// At most so many.
    pub limit: u32,
    /// Behind this one; `None` from the start.
    pub after: Option<Id>,
    /// True for descending ids (newest first).
    pub newest_first: bool,
}

/// A message row: where a walk over messages in the order of their acceptance goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageKey(pub i64);

/// What retention takes away of messages whose deliveries are all final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retain {
    /// Payloads and the bodies of answers. The ledger stays whole; a message without payload cannot be redriven.
    Payloads,
    /// Everything: messages with their deliveries and attempts. Counts stay as tombstones.
    Ledger,
}

/// What one step of retention did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retained {
    /// Messages taken away, or emptied.
    pub messages: u64,
    /// Deliveries taken away.
    pub deliveries: u64,
    /// Attempts taken away.
    pub attempts: u64,
    /// Where to go on; `None` when no older message is left to look at.
    pub next: Option<MessageKey>,
}

/// What retention took away, ever.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tombstones {
    /// Messages.
    pub messages: u64,
    /// Their deliveries and attempts.
    pub endpoints: Vec<Tombstone>,
}

/// What retention took away at one endpoint, ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// The endpoint.
    pub endpoint: EndpointKey,
    /// Deliveries that had succeeded.
    pub succeeded: u64,
    /// Deliveries that were dead.
    pub dead: u64,
    /// Deliveries that were cancelled or superseded.
    pub cancelled: u64,
    /// Attempts.
    pub attempts: u64,
}

/// Upper bounds of the classes of commit times, in microseconds; one more class has none.
pub const COMMIT_BOUNDS_US: [u64; 12] = [
    250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 512_000, 2_000_000,
];

/// The writer's figures since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommitStats {
    /// Commits that succeeded.
    pub commits: u64,
    /// Commands in them.
    pub commands: u64,
    /// Their whole time, in microseconds.
    pub total_us: u64,
    /// Commits by time: class i holds those up to [`COMMIT_BOUNDS_US`]\[i\], the last one the rest.
    pub by_time: [u64; COMMIT_BOUNDS_US.len() + 1],
}
