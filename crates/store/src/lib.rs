//! Durable state behind one trait ([`Store`]); SQLite here ([`sqlite`]), one conformance suite for every backend
//! (`conformance`, behind a feature). Never knows policy: a due time is a value it is given.
//!
//! Every write answers only once it is on stable storage. Every write is one transaction together with the ledger
//! records it owes, in commit order. A claim checks inside its transaction that the endpoint is `active` (I4) and
//! writes the attempt as started (I2).

#[cfg(feature = "conformance")]
pub mod conformance;
pub mod export;
pub mod model;
pub mod sqlite;

pub use model::*;

use async_trait::async_trait;
use contract::ledger::{
    AttemptRecord, ContractRecord, DeliveryEvent, EndpointEvent, EndpointState, MessageRecord, NodeEvent,
    NodeEventKind,
};
use contract::{AppId, AttemptId, BootInstant, EndpointId, Instant, MessageId};
use std::sync::Arc;
use tokio::sync::broadcast;

/// Why the store did not do it. Says who acts.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The caller: a uid, event id or the like is taken.
    #[error("{what} `{found}` is taken")]
    Conflict {
        /// What kind of name.
        what: &'static str,
        /// The name.
        found: String,
    },
    /// The caller: there is no such row.
    #[error("there is no {what} `{found}`")]
    NotFound {
        /// What kind of row.
        what: &'static str,
        /// The id asked for.
        found: String,
    },
    /// Nobody yet: try again (busy, disk full, connection lost). Nothing was acknowledged.
    #[error("the store is unavailable: {reason}")]
    Unavailable {
        /// What happened.
        reason: String,
        /// The backend's own error.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// Nobody yet: the queue before the writer is full. Nothing was taken in.
    #[error("the store's queue is full")]
    Full,
    /// The operator: the data or the store's own rules do not hold; or a sync failed, after which nothing can be
    /// trusted until a restart recovers from the log.
    #[error("the store is damaged: {reason}")]
    Corrupt {
        /// What was found.
        reason: String,
        /// The backend's own error.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

/// Short.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// What the recovery of a start found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Started {
    /// The boot id recorded last time, if it differs from this one: only the wall clock remains.
    pub rebooted: bool,
    /// True when the last run ended without a `down`: a crash. A `down` at the last sign of life was written.
    pub after_crash: bool,
    /// How far the wall clock stepped against the boot clock since the last sign of life, in milliseconds.
    pub step_ms: i64,
}

/// Durable state. One implementation a backend; `conformance` holds them all to the same law.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    // ---- life of a node -------------------------------------------------------------------------------------

    /// Records that this node is up (and, after a crash, the `down` that is missing), before anything else.
    async fn node_up(&self, node: &str, boot_id: &str, now: Reading) -> Result<Started>;
    /// A sign of life, at most once a second: bounds the downtime after a crash. Also notes a clock step.
    async fn node_event(&self, node: &str, kind: NodeEventKind, now: Reading, size_ms: i64) -> Result<()>;
    /// Writes the last sign of life without a ledger record.
    async fn heartbeat(&self, node: &str, now: Reading) -> Result<()>;
    /// Flushes and closes: later calls are `Unavailable`.
    async fn close(&self) -> Result<()>;
    /// What changed, after each commit. A lagging reader must look at everything again.
    fn changes(&self) -> broadcast::Receiver<Change>;

    // ---- the hot path ---------------------------------------------------------------------------------------

    /// Stores a message and all its deliveries (one a matching endpoint; at a `disabled` one `dead:
    /// endpoint_disabled`), durably, and writes first attempts as started where `gate` allows.
    async fn accept(&self, message: NewMessage, gate: Arc<dyn StartGate>) -> Result<Accepted>;
    /// Completes attempts and claims the next in one commit. Results are in the order asked.
    async fn settle_and_claim(
        &self,
        settles: Vec<Settle>,
        claims: Vec<Claim>,
    ) -> Result<(Vec<Settled>, Vec<std::result::Result<Claimed, NotClaimed>>)>;
    /// Pending deliveries of an endpoint that both clocks allow at `now`, oldest due first, at most `limit`, those
    /// in `except` left out.
    async fn due(
        &self,
        endpoint: EndpointKey,
        now: Reading,
        limit: usize,
        except: &[DeliveryKey],
    ) -> Result<Vec<Due>>;
    /// When the endpoint's next pending delivery after those due is due: the wall and boot times to look again.
    async fn next_due(
        &self,
        endpoint: EndpointKey,
        now: Reading,
    ) -> Result<Option<(Instant, Option<BootInstant>)>>;
    /// Attempts that are written as started and not settled (recovery), by row, at most `limit` behind `after`.
    async fn sending(&self, after: Option<DeliveryKey>, limit: usize) -> Result<Vec<Claimed>>;
    /// Makes up to `limit` waiting deliveries of a `disabled` or `deleted` endpoint dead with that reason; how many.
    async fn bury(&self, endpoint: EndpointKey, now: Instant, limit: usize) -> Result<u64>;
    /// Makes pending deliveries dead (reason given): expired while they waited. Those no longer pending are left.
    async fn expire(&self, deliveries: Vec<(DeliveryKey, ContractKey)>, now: Instant) -> Result<u64>;
    /// Marks an endpoint as failing since then, or (`None`) as no longer failing.
    async fn set_failing_since(&self, endpoint: EndpointKey, since: Option<Instant>) -> Result<()>;

    // ---- applications, endpoints, contracts, tokens ---------------------------------------------------------

    /// Makes an application. A known uid is a `Conflict`.
    async fn create_app(&self, fields: AppFields, now: Instant) -> Result<App>;
    /// Replaces its fields.
    async fn update_app(&self, app: AppKey, fields: AppFields, now: Instant) -> Result<App>;
    /// By id or uid.
    async fn app(&self, id_or_uid: &str) -> Result<Option<App>>;
    /// A page, by id.
    async fn apps(&self, page: Page<AppId>) -> Result<Vec<App>>;
    /// Deletes it with its endpoints (their waiting deliveries die: `endpoint_deleted`).
    async fn delete_app(&self, app: AppKey, by: &str, now: Instant) -> Result<()>;
    /// Makes an endpoint in a state, with its first secret.
    async fn create_endpoint(
        &self,
        app: AppKey,
        fields: EndpointFields,
        state: EndpointState,
        secret: Secret,
        by: &str,
        now: Instant,
    ) -> Result<Endpoint>;
    /// Replaces its fields.
    async fn update_endpoint(
        &self,
        endpoint: EndpointKey,
        fields: EndpointFields,
        now: Instant,
    ) -> Result<Endpoint>;
    /// Replaces its secrets, the current one first.
    async fn set_secrets(&self, endpoint: EndpointKey, secrets: Vec<Secret>, now: Instant) -> Result<()>;
    /// Changes its state and writes the endpoint event; the same state again writes nothing. Re-activation clears
    /// `failing_since`. `Deleted` is final.
    async fn set_endpoint_state(
        &self,
        endpoint: EndpointKey,
        state: EndpointState,
        why: &str,
        by: &str,
        now: Instant,
    ) -> Result<Endpoint>;
    /// By id or uid within an application; deleted ones are not found.
    async fn endpoint(&self, app: AppKey, id_or_uid: &str) -> Result<Option<Endpoint>>;
    /// By row, deleted ones too.
    async fn endpoint_by_key(&self, endpoint: EndpointKey) -> Result<Option<Endpoint>>;
    /// By id alone, whatever its application.
    async fn endpoint_by_id(&self, id: EndpointId) -> Result<Option<Endpoint>>;
    /// The latest change of an endpoint's state: since when it is as it is, why, and by whom.
    async fn last_endpoint_event(&self, endpoint: EndpointKey) -> Result<Option<EndpointEvent>>;
    /// A page of an application's endpoints, by id, without the deleted ones; of all applications for `None`.
    async fn endpoints(&self, app: Option<AppKey>, page: Page<EndpointId>) -> Result<Vec<Endpoint>>;
    /// Every endpoint row that is not deleted, or is deleted and still has waiting or sending deliveries.
    async fn endpoints_to_serve(&self) -> Result<Vec<Endpoint>>;
    /// Stores a contract (by revision; known ones are found).
    async fn put_contract(&self, rev: &str, canonical: &str) -> Result<ContractKey>;
    /// Sets or clears the contract of a level.
    async fn set_contract(&self, level: Level, contract: Option<ContractKey>) -> Result<()>;
    /// The organisation's contract.
    async fn organisation_contract(&self) -> Result<Option<ContractKey>>;
    /// Applications' contracts: those that have one.
    async fn app_contracts(&self) -> Result<Vec<(AppKey, ContractKey)>>;
    /// By row.
    async fn contract(&self, contract: ContractKey) -> Result<Option<StoredContract>>;
    /// Adds a token.
    async fn put_token(&self, token: Token) -> Result<()>;
    /// All tokens, revoked ones too.
    async fn tokens(&self) -> Result<Vec<Token>>;
    /// Revokes one.
    async fn revoke_token(&self, id: contract::TokenId, now: Instant) -> Result<()>;

    // ---- messages and deliveries ----------------------------------------------------------------------------

    /// By id or the caller's event id.
    async fn message(&self, app: AppKey, id_or_event_id: &str) -> Result<Option<Message>>;
    /// By id alone, whatever its application.
    async fn message_by_id(&self, id: MessageId) -> Result<Option<Message>>;
    /// A page of an application's messages.
    async fn messages(&self, app: AppKey, page: Page<MessageId>) -> Result<Vec<Message>>;
    /// A message's deliveries, oldest number first.
    async fn deliveries(&self, message: MessageId) -> Result<Vec<Delivery>>;
    /// A message's attempts, by start; of one endpoint if given.
    async fn attempts(&self, message: MessageId, endpoint: Option<EndpointKey>) -> Result<Vec<Attempt>>;
    /// A page of an endpoint's attempts, by id (ids sort by the time of the claim).
    async fn attempts_of_endpoint(
        &self,
        endpoint: EndpointKey,
        page: Page<AttemptId>,
    ) -> Result<Vec<Attempt>>;
    /// One attempt.
    async fn attempt(&self, id: AttemptId) -> Result<Option<Attempt>>;
    /// Opens the next delivery number, due now, trigger `manual`; a predecessor that is not final is superseded.
    async fn redrive(&self, redrive: Redrive) -> Result<Delivery>;
    /// Dead deliveries of an endpoint that no later delivery of their message follows (oldest first), to redrive in
    /// bulk.
    async fn dead(
        &self,
        endpoint: EndpointKey,
        after: Option<DeliveryKey>,
        limit: usize,
    ) -> Result<Vec<Delivery>>;
    /// Cancels a pending delivery. True when it was pending.
    async fn cancel(&self, delivery: DeliveryKey, why: &str, now: Instant) -> Result<bool>;
    /// Counts by state.
    async fn counts(&self) -> Result<Counts>;

    // ---- keeping ---------------------------------------------------------------------------------------------

    /// Takes away what was accepted before `before` and whose deliveries all ended before it: looks at up to `limit`
    /// messages behind `after`, oldest first, in one commit. What is not final is never touched.
    async fn retain(
        &self,
        what: Retain,
        before: Instant,
        after: Option<MessageKey>,
        limit: usize,
    ) -> Result<Retained>;
    /// What retention took away, counted.
    async fn tombstones(&self) -> Result<Tombstones>;
    /// The writer's figures, for metrics.
    fn commit_stats(&self) -> CommitStats;

    // ---- the ledger -----------------------------------------------------------------------------------------

    /// Streams the whole ledger as of one moment into `sink`, off the writer: contracts, messages, endpoint events
    /// and node events by `seq`; then delivery events and attempts grouped by (message, endpoint, delivery number)
    /// and ordered by `seq` within.
    async fn read_ledger(&self, sink: Box<dyn LedgerSink>) -> Result<Box<dyn LedgerSink>>;
}

/// Takes a ledger, record by record. An error ends the reading.
pub trait LedgerSink: Send + std::any::Any {
    /// A contract.
    fn contract(&mut self, record: &ContractRecord) -> Result<()>;
    /// A message.
    fn message(&mut self, record: &MessageRecord) -> Result<()>;
    /// An endpoint event.
    fn endpoint_event(&mut self, record: &EndpointEvent) -> Result<()>;
    /// A node event.
    fn node_event(&mut self, record: &NodeEvent) -> Result<()>;
    /// A delivery event.
    fn delivery_event(&mut self, record: &DeliveryEvent) -> Result<()>;
    /// An attempt.
    fn attempt(&mut self, record: &AttemptRecord) -> Result<()>;
    /// Back to the concrete sink.
    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any + Send>;
}
