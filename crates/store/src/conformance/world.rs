//! What the cases stand on: a store with an application, endpoints and a contract, a node that is up, a clock that is a
//! number, and short words for what they do.

use super::Factory;
use crate::{
    Accepted, App, AppFields, Attempt, Claim, Claimed, ContractKey, Delivery, DeliveryState, Due, Endpoint,
    EndpointFields, EndpointKey, LedgerSink, Level, NewMessage, Next, NotClaimed, Page, Reading, Redrive,
    Result, Secret, Settle, Settled, Start, StartGate, Store,
};
use bytes::Bytes;
use contract::ledger::{
    AttemptRecord, ContractRecord, DeliveryEvent, EndpointEvent, EndpointState, MessageRecord, NodeEvent,
    Outcome,
};
use contract::{BootInstant, Duration, Instant, MessageId};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The node's name in all cases.
pub const NODE: &str = "n1";
/// The boot in all cases.
pub const BOOT: &str = "boot-1";
/// When a case begins, in Unix milliseconds.
pub const BEGIN: i64 = 1_700_000_000_000;

/// A store and what lies in it.
pub struct World<'a> {
    factory: &'a dyn Factory,
    /// The store; another one after [`World::crash`].
    pub store: Arc<dyn Store>,
    /// The application.
    pub app: App,
    /// The organisation's contract.
    pub contract: ContractKey,
}

/// Both clocks, so many milliseconds after the beginning.
#[must_use]
pub fn at(ms: u64) -> Reading {
    Reading {
        wall: instant(ms),
        boot: BootInstant::from_ms(1_000_000 + ms),
    }
}

/// The wall clock, so many milliseconds after the beginning.
#[must_use]
pub fn instant(ms: u64) -> Instant {
    Instant::from_unix_ms(BEGIN) + Duration::from_ms(ms)
}

/// Lets nothing start.
pub struct Closed;

impl StartGate for Closed {
    fn try_reserve(&self, _: EndpointKey, _: &NewMessage) -> Option<Start> {
        None
    }
    fn release(&self, _: EndpointKey) {}
}

/// Lets everything start, and counts.
pub struct Open {
    start: Start,
    /// Reservations made.
    pub reserved: AtomicUsize,
    /// Reservations given back.
    pub released: AtomicUsize,
}

impl StartGate for Open {
    fn try_reserve(&self, _: EndpointKey, _: &NewMessage) -> Option<Start> {
        self.reserved.fetch_add(1, Ordering::SeqCst);
        Some(self.start)
    }
    fn release(&self, _: EndpointKey) {
        self.released.fetch_add(1, Ordering::SeqCst);
    }
}

/// A secret of that text.
#[must_use]
pub fn secret(key: &str) -> Secret {
    Secret {
        key: key.to_owned(),
        expires_at: None,
    }
}

/// The whole of a list.
#[must_use]
pub fn page<Id>(limit: u32) -> Page<Id> {
    Page {
        limit,
        after: None,
        newest_first: false,
    }
}

/// Stands for the text of a contract: the store never reads it.
const CANONICAL: &str = r#"{"name":"kit"}"#;

impl<'a> World<'a> {
    /// A store with a node up, a contract for the organisation and an application.
    pub async fn new(factory: &'a dyn Factory) -> Self {
        let store = factory.open().await;
        store.node_up(NODE, BOOT, at(0)).await.expect("node_up");
        let contract = store
            .put_contract("rev-1", CANONICAL)
            .await
            .expect("put_contract");
        store
            .set_contract(Level::Organisation, Some(contract))
            .await
            .expect("set_contract");
        let fields = AppFields {
            uid: Some("customer-1".to_owned()),
            name: "Customer".to_owned(),
            ..AppFields::default()
        };
        let app = store.create_app(fields, instant(0)).await.expect("create_app");
        Self {
            factory,
            store,
            app,
            contract,
        }
    }

    /// Drops the store without closing it and opens it anew; no node is up then.
    #[must_use]
    pub async fn crash(self) -> Self {
        let Self {
            factory,
            store,
            app,
            contract,
        } = self;
        // The old one must be gone before its data can be owned again.
        drop(store);
        Self {
            factory,
            store: factory.open().await,
            app,
            contract,
        }
    }

    /// An endpoint that wants everything.
    pub async fn endpoint(&self, state: EndpointState) -> Endpoint {
        self.endpoint_with(EndpointFields::default(), state).await
    }

    /// An endpoint with these fields.
    pub async fn endpoint_with(&self, fields: EndpointFields, state: EndpointState) -> Endpoint {
        let fields = EndpointFields {
            url: "http://127.0.0.1:9/".to_owned(),
            ..fields
        };
        let made =
            self.store
                .create_endpoint(self.app.key, fields, state, secret("whsec_a"), "test", instant(0));
        made.await.expect("create_endpoint")
    }

    /// A message of the type `a`.
    #[must_use]
    pub fn message(&self, ms: u64) -> NewMessage {
        NewMessage {
            id: MessageId::at_unix_ms(1_700_000_000_000 + ms),
            app: self.app.key,
            event_id: None,
            event_type: "a".to_owned(),
            channels: None,
            payload: Bytes::from_static(br#"{"n":1}"#),
            contract: None,
            idempotency_key: None,
            now: at(ms),
        }
    }

    /// Accepts; nothing starts.
    pub async fn accept(&self, message: NewMessage) -> Accepted {
        self.store
            .accept(message, Arc::new(Closed))
            .await
            .expect("accept")
    }

    /// A gate that lets everything start at that time.
    #[must_use]
    pub fn open_gate(&self, ms: u64) -> Arc<Open> {
        Arc::new(Open {
            start: self.start(ms),
            reserved: AtomicUsize::new(0),
            released: AtomicUsize::new(0),
        })
    }

    /// Accepts; everything that may start does.
    pub async fn accept_and_start(&self, message: NewMessage) -> Accepted {
        let ms = message.now.wall.since(instant(0)).as_ms();
        self.store
            .accept(message, self.open_gate(ms))
            .await
            .expect("accept")
    }

    /// What a claim at that time writes down.
    #[must_use]
    pub fn start(&self, ms: u64) -> Start {
        Start {
            started_at: instant(ms),
            retry: self.contract,
            endpoint: self.contract,
        }
    }

    /// What is due at an endpoint.
    pub async fn due(&self, endpoint: &Endpoint, ms: u64) -> Vec<Due> {
        self.store.due(endpoint.key, at(ms), 100, &[]).await.expect("due")
    }

    /// Claims one.
    pub async fn claim(&self, due: Due, ms: u64) -> std::result::Result<Claimed, NotClaimed> {
        let claim = Claim {
            due,
            start: self.start(ms),
        };
        let (_, mut claims) = self
            .store
            .settle_and_claim(vec![], vec![claim])
            .await
            .expect("claim");
        claims.pop().expect("one answer a claim")
    }

    /// An accepted message's delivery to the endpoint, with its first attempt started.
    pub async fn sending(&self, ms: u64) -> Claimed {
        let mut accepted = self.accept_and_start(self.message(ms)).await;
        assert_eq!(accepted.claimed.len(), 1, "one active endpoint");
        accepted.claimed.remove(0)
    }

    /// The end of an attempt with a failure or a success, as `next` has it.
    #[must_use]
    pub fn ended(&self, claimed: &Claimed, ms: u64, next: Next) -> Settle {
        let success = next == Next::Succeeded;
        Settle {
            claimed: claimed.clone(),
            started_at: claimed.start.started_at,
            ended_at: instant(ms),
            outcome: if success {
                Outcome::Succeeded
            } else {
                Outcome::Failed
            },
            status: Some(if success { 204 } else { 503 }),
            error: None,
            retry_after: None,
            response: Bytes::new(),
            next,
        }
    }

    /// Settles one.
    pub async fn settle(&self, settle: Settle) -> Settled {
        self.try_settle(settle).await.expect("settle")
    }

    /// Settles one, or not.
    pub async fn try_settle(&self, settle: Settle) -> Result<Settled> {
        let (mut settled, _) = self.store.settle_and_claim(vec![settle], vec![]).await?;
        Ok(settled.pop().expect("one answer a settle"))
    }

    /// The next attempt waits until then; both clocks.
    #[must_use]
    pub fn retry_at(&self, ms: u64) -> Next {
        Next::Retry {
            due_at: at(ms).wall,
            due_boot: at(ms).boot,
            wait: Duration::from_ms(1234),
            retry: self.contract,
        }
    }

    /// Changes an endpoint's state.
    pub async fn set_state(&self, endpoint: &Endpoint, state: EndpointState, ms: u64) -> Endpoint {
        let changed = self
            .store
            .set_endpoint_state(endpoint.key, state, "why", "who", instant(ms));
        changed.await.expect("set_endpoint_state")
    }

    /// Redrives.
    pub async fn redrive(&self, message: MessageId, endpoint: &Endpoint, ms: u64) -> Delivery {
        let redrive = Redrive {
            message,
            endpoint: endpoint.key,
            now: instant(ms),
        };
        self.store.redrive(redrive).await.expect("redrive")
    }

    /// A message's deliveries.
    pub async fn deliveries(&self, message: MessageId) -> Vec<Delivery> {
        self.store.deliveries(message).await.expect("deliveries")
    }

    /// The state and reason of a message's only delivery.
    pub async fn only(&self, message: MessageId) -> (DeliveryState, Option<String>) {
        let deliveries = self.deliveries(message).await;
        assert_eq!(deliveries.len(), 1, "{deliveries:?}");
        (deliveries[0].state, deliveries[0].reason.clone())
    }

    /// A message's attempts.
    pub async fn attempts(&self, message: MessageId) -> Vec<Attempt> {
        self.store.attempts(message, None).await.expect("attempts")
    }

    /// The whole ledger.
    pub async fn ledger(&self) -> Records {
        let sink = self
            .store
            .read_ledger(Box::<Records>::default())
            .await
            .expect("read_ledger");
        *sink.into_any().downcast().expect("the sink that went in")
    }
}

/// A ledger in memory, in the order it came.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// Contracts.
    pub contracts: Vec<ContractRecord>,
    /// Messages.
    pub messages: Vec<MessageRecord>,
    /// Endpoint events.
    pub endpoint_events: Vec<EndpointEvent>,
    /// Node events.
    pub node_events: Vec<NodeEvent>,
    /// Delivery events.
    pub delivery_events: Vec<DeliveryEvent>,
    /// Attempts.
    pub attempts: Vec<AttemptRecord>,
    /// The seqs of delivery events and attempts in the order they came.
    pub seqs: Vec<u64>,
}

impl LedgerSink for Records {
    fn contract(&mut self, record: &ContractRecord) -> Result<()> {
        self.contracts.push(record.clone());
        Ok(())
    }
    fn message(&mut self, record: &MessageRecord) -> Result<()> {
        self.messages.push(record.clone());
        Ok(())
    }
    fn endpoint_event(&mut self, record: &EndpointEvent) -> Result<()> {
        self.endpoint_events.push(record.clone());
        Ok(())
    }
    fn node_event(&mut self, record: &NodeEvent) -> Result<()> {
        self.node_events.push(record.clone());
        Ok(())
    }
    fn delivery_event(&mut self, record: &DeliveryEvent) -> Result<()> {
        self.seqs.push(record.seq.get());
        self.delivery_events.push(record.clone());
        Ok(())
    }
    fn attempt(&mut self, record: &AttemptRecord) -> Result<()> {
        self.seqs.push(record.seq.get());
        self.attempts.push(record.clone());
        Ok(())
    }
    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any + Send> {
        self
    }
}
