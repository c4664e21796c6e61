//! A store that fails on demand: down, full, damaged, or committing and then losing the answer.

use async_trait::async_trait;
use contract::ledger::{EndpointEvent, EndpointState, NodeEventKind};
use contract::{AppId, AttemptId, BootInstant, EndpointId, Instant, MessageId};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use store::*;
use tokio::sync::{Semaphore, broadcast};

/// What goes wrong with calls of the hot path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Well,
    /// Nothing is done.
    Down,
    /// It is done, and the answer takes its time: until [`Faulty::answer`].
    Slow,
    /// It is done, and the answer is lost.
    Forgetful,
    /// Nothing is done, ever again.
    Damaged,
}

pub(crate) struct Faulty {
    inner: Arc<dyn Store>,
    mood: Mutex<Mood>,
    pub(crate) refused: AtomicUsize,
    /// Answers held back.
    pub(crate) held: AtomicUsize,
    go: Semaphore,
}

impl Faulty {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            mood: Mutex::new(Mood::Well),
            refused: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
            go: Semaphore::new(0),
        })
    }

    pub(crate) fn set(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    fn mood(&self) -> Mood {
        *self.mood.lock().unwrap()
    }

    fn before(&self) -> Result<()> {
        match self.mood() {
            Mood::Well | Mood::Slow | Mood::Forgetful => Ok(()),
            Mood::Down => Err(self.unavailable()),
            Mood::Damaged => Err(StoreError::Corrupt {
                reason: "as the test wants it".to_owned(),
                source: None,
            }),
        }
    }

    /// Lets one answer that is held back go.
    pub(crate) fn answer(&self) {
        self.go.add_permits(1);
    }

    async fn after<T>(&self, result: Result<T>) -> Result<T> {
        match self.mood() {
            Mood::Slow => {
                self.held.fetch_add(1, Ordering::SeqCst);
                self.go.acquire().await.unwrap().forget();
                result
            }
            Mood::Forgetful => Err(self.unavailable()),
            _ => result,
        }
    }

    fn unavailable(&self) -> StoreError {
        self.refused.fetch_add(1, Ordering::SeqCst);
        StoreError::Unavailable {
            reason: "as the test wants it".to_owned(),
            source: None,
        }
    }
}

#[async_trait]
impl Store for Faulty {
    async fn accept(&self, message: NewMessage, gate: Arc<dyn StartGate>) -> Result<Accepted> {
        self.before()?;
        self.after(self.inner.accept(message, gate).await).await
    }

    async fn settle_and_claim(
        &self,
        settles: Vec<Settle>,
        claims: Vec<Claim>,
    ) -> Result<(Vec<Settled>, Vec<std::result::Result<Claimed, NotClaimed>>)> {
        self.before()?;
        self.after(self.inner.settle_and_claim(settles, claims).await)
            .await
    }

    async fn due(
        &self,
        endpoint: EndpointKey,
        now: Reading,
        limit: usize,
        except: &[DeliveryKey],
    ) -> Result<Vec<Due>> {
        self.before()?;
        self.inner.due(endpoint, now, limit, except).await
    }

    fn changes(&self) -> broadcast::Receiver<Change> {
        self.inner.changes()
    }

    async fn node_up(&self, node: &str, boot_id: &str, now: Reading) -> Result<Started> {
        self.inner.node_up(node, boot_id, now).await
    }

    async fn node_event(&self, node: &str, kind: NodeEventKind, now: Reading, size_ms: i64) -> Result<()> {
        self.inner.node_event(node, kind, now, size_ms).await
    }

    async fn heartbeat(&self, node: &str, now: Reading) -> Result<()> {
        self.inner.heartbeat(node, now).await
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }

    async fn next_due(
        &self,
        endpoint: EndpointKey,
        now: Reading,
    ) -> Result<Option<(Instant, Option<BootInstant>)>> {
        self.inner.next_due(endpoint, now).await
    }

    async fn sending(&self, after: Option<DeliveryKey>, limit: usize) -> Result<Vec<Claimed>> {
        self.inner.sending(after, limit).await
    }

    async fn bury(&self, endpoint: EndpointKey, now: Instant, limit: usize) -> Result<u64> {
        self.inner.bury(endpoint, now, limit).await
    }

    async fn expire(&self, deliveries: Vec<(DeliveryKey, ContractKey)>, now: Instant) -> Result<u64> {
        self.inner.expire(deliveries, now).await
    }

    async fn set_failing_since(&self, endpoint: EndpointKey, since: Option<Instant>) -> Result<()> {
        self.inner.set_failing_since(endpoint, since).await
    }

    async fn create_app(&self, fields: AppFields, now: Instant) -> Result<App> {
        self.inner.create_app(fields, now).await
    }

    async fn update_app(&self, app: AppKey, fields: AppFields, now: Instant) -> Result<App> {
        self.inner.update_app(app, fields, now).await
    }

    async fn app(&self, id_or_uid: &str) -> Result<Option<App>> {
        self.inner.app(id_or_uid).await
    }

    async fn apps(&self, page: Page<AppId>) -> Result<Vec<App>> {
        self.inner.apps(page).await
    }

    async fn delete_app(&self, app: AppKey, by: &str, now: Instant) -> Result<()> {
        self.inner.delete_app(app, by, now).await
    }

    async fn create_endpoint(
        &self,
        app: AppKey,
        fields: EndpointFields,
        state: EndpointState,
        secret: Secret,
        by: &str,
        now: Instant,
    ) -> Result<Endpoint> {
        self.inner
            .create_endpoint(app, fields, state, secret, by, now)
            .await
    }

    async fn update_endpoint(
        &self,
        endpoint: EndpointKey,
        fields: EndpointFields,
        now: Instant,
    ) -> Result<Endpoint> {
        self.inner.update_endpoint(endpoint, fields, now).await
    }

    async fn set_secrets(&self, endpoint: EndpointKey, secrets: Vec<Secret>, now: Instant) -> Result<()> {
        self.inner.set_secrets(endpoint, secrets, now).await
    }

    async fn set_endpoint_state(
        &self,
        endpoint: EndpointKey,
        state: EndpointState,
        why: &str,
        by: &str,
        now: Instant,
    ) -> Result<Endpoint> {
        self.inner.set_endpoint_state(endpoint, state, why, by, now).await
    }

    async fn endpoint(&self, app: AppKey, id_or_uid: &str) -> Result<Option<Endpoint>> {
        self.inner.endpoint(app, id_or_uid).await
    }

    async fn endpoint_by_key(&self, endpoint: EndpointKey) -> Result<Option<Endpoint>> {
        self.inner.endpoint_by_key(endpoint).await
    }

    async fn endpoint_by_id(&self, id: EndpointId) -> Result<Option<Endpoint>> {
        self.inner.endpoint_by_id(id).await
    }

    async fn last_endpoint_event(&self, endpoint: EndpointKey) -> Result<Option<EndpointEvent>> {
        self.inner.last_endpoint_event(endpoint).await
    }

    async fn endpoints(&self, app: Option<AppKey>, page: Page<EndpointId>) -> Result<Vec<Endpoint>> {
        self.inner.endpoints(app, page).await
    }

    async fn endpoints_to_serve(&self) -> Result<Vec<Endpoint>> {
        self.inner.endpoints_to_serve().await
    }

    async fn put_contract(&self, rev: &str, canonical: &str) -> Result<ContractKey> {
        self.inner.put_contract(rev, canonical).await
    }

    async fn set_contract(&self, level: Level, contract: Option<ContractKey>) -> Result<()> {
        self.inner.set_contract(level, contract).await
    }

    async fn organisation_contract(&self) -> Result<Option<ContractKey>> {
        self.inner.organisation_contract().await
    }

    async fn app_contracts(&self) -> Result<Vec<(AppKey, ContractKey)>> {
        self.inner.app_contracts().await
    }

    async fn contract(&self, contract: ContractKey) -> Result<Option<StoredContract>> {
        self.inner.contract(contract).await
    }

    async fn put_token(&self, token: Token) -> Result<()> {
        self.inner.put_token(token).await
    }

    async fn tokens(&self) -> Result<Vec<Token>> {
        self.inner.tokens().await
    }

    async fn revoke_token(&self, id: contract::TokenId, now: Instant) -> Result<()> {
        self.inner.revoke_token(id, now).await
    }

    async fn message(&self, app: AppKey, id_or_event_id: &str) -> Result<Option<Message>> {
        self.inner.message(app, id_or_event_id).await
    }

    async fn message_by_id(&self, id: MessageId) -> Result<Option<Message>> {
        self.inner.message_by_id(id).await
    }

    async fn messages(&self, app: AppKey, page: Page<MessageId>) -> Result<Vec<Message>> {
        self.inner.messages(app, page).await
    }

    async fn deliveries(&self, message: MessageId) -> Result<Vec<Delivery>> {
        self.inner.deliveries(message).await
    }

    async fn attempts(&self, message: MessageId, endpoint: Option<EndpointKey>) -> Result<Vec<Attempt>> {
        self.inner.attempts(message, endpoint).await
    }

    async fn attempts_of_endpoint(
        &self,
        endpoint: EndpointKey,
        page: Page<AttemptId>,
    ) -> Result<Vec<Attempt>> {
        self.inner.attempts_of_endpoint(endpoint, page).await
    }

    async fn attempt(&self, id: AttemptId) -> Result<Option<Attempt>> {
        self.inner.attempt(id).await
    }

    async fn redrive(&self, redrive: Redrive) -> Result<Delivery> {
        self.inner.redrive(redrive).await
    }

    async fn dead(
        &self,
        endpoint: EndpointKey,
        after: Option<DeliveryKey>,
        limit: usize,
    ) -> Result<Vec<Delivery>> {
        self.inner.dead(endpoint, after, limit).await
    }

    async fn cancel(&self, delivery: DeliveryKey, why: &str, now: Instant) -> Result<bool> {
        self.inner.cancel(delivery, why, now).await
    }

    async fn counts(&self) -> Result<Counts> {
        self.inner.counts().await
    }

    async fn retain(
        &self,
        what: Retain,
        before: Instant,
        after: Option<MessageKey>,
        limit: usize,
    ) -> Result<Retained> {
        self.inner.retain(what, before, after, limit).await
    }

    async fn tombstones(&self) -> Result<Tombstones> {
        self.inner.tombstones().await
    }

    fn commit_stats(&self) -> CommitStats {
        self.inner.commit_stats()
    }

    async fn read_ledger(&self, sink: Box<dyn LedgerSink>) -> Result<Box<dyn LedgerSink>> {
        self.inner.read_ledger(sink).await
    }
}
