//! A world in virtual time: a real store in a file, clocks that stand still, and a receiver that is the test itself.

use async_trait::async_trait;
use contract::ledger::{AttemptRecord, EndpointState, NodeEventKind};
use contract::{BootInstant, Contract, Duration, Instant, MessageId};
use engine::clock::{Clock, ManualClock};
use engine::wire::{Fault, Outgoing, Sent, Wire};
use engine::{Engine, EngineHandle, Options};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration as StdDuration;
use store::sqlite::SqliteStore;
use store::{
    App, AppFields, AppKey, ContractKey, Delivery, DeliveryState, Endpoint, EndpointFields, EndpointKey,
    Level, NewMessage, Secret, Store,
};
use tokio::sync::{mpsc, oneshot};

/// Nothing in these tests takes so long: a wait that reaches it has failed.
const PATIENCE: StdDuration = StdDuration::from_secs(10);
pub(crate) const START: i64 = 1_700_000_000_000;
const PROBE: &str = "probe.example";
pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A contract: three attempts with 10 s and then 60 s between them, and these lines changed.
pub(crate) fn contract(changes: &[(&str, &str)]) -> Contract {
    let mut text = String::from(
        "contract = 1\nname = \"test\"\n\
         [retry]\nmax_attempts = 3\nmax_age = \"none\"\nanchor = \"end\"\nslack = \"0s\"\nlate_after = \"30s\"\n\
         [retry.backoff]\nlaw = \"schedule\"\nwaits = [\"10s\", \"1m\"]\nthen = \"repeat\"\ncap = \"none\"\nfloor = \"0s\"\n\
         [retry.jitter]\nkind = \"none\"\n\
         [retry.retry_after]\nrule = \"floor\"\nmax = \"24h\"\n\
         [outcome]\nsuccess = [\"200-299\"]\nterminal = [\"410\"]\n\
         [endpoint]\nmin_gap = \"0s\"\nrate = \"none\"\nin_flight = 8\ntimeout = \"15s\"\n\
         disable_after = \"never\"\ndisable_on = []\n",
    );
    for (key, value) in changes {
        let at = text.find(&format!("\n{key} = ")).expect("a key of the contract") + 1;
        let end = at + text[at..].find('\n').unwrap();
        text.replace_range(at..end, &format!("{key} = {value}"));
    }
    contract::parse(&text, "test").unwrap_or_else(|error| panic!("{error:?}"))
}

/// A request that waits for its answer.
pub(crate) struct Call {
    pub(crate) outgoing: Outgoing,
    /// The wall clock when it went out.
    pub(crate) at: Instant,
    reply: oneshot::Sender<Sent>,
}

impl Call {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.outgoing.headers[name].to_str().unwrap()
    }

    pub(crate) fn host(&self) -> &str {
        self.outgoing.target.uri().host().unwrap()
    }

    pub(crate) fn answer(self, status: u16) {
        self.reply(Sent {
            status: Some(status),
            ..Sent::default()
        });
    }

    pub(crate) fn fail(self, fault: Fault) {
        self.reply(Sent {
            fault: Some(fault),
            ..Sent::default()
        });
    }

    pub(crate) fn reply(self, sent: Sent) {
        let _ = self.reply.send(sent);
    }
}

/// A sender that hands every request to the test.
struct Told {
    calls: mpsc::UnboundedSender<Call>,
    clock: Arc<ManualClock>,
}

#[async_trait]
impl Wire for Told {
    async fn send(&self, outgoing: Outgoing) -> Sent {
        let (reply, answer) = oneshot::channel();
        let at = self.clock.now().wall;
        let call = Call { outgoing, at, reply };
        // A test that is over answers nothing any more.
        if self.calls.send(call).is_err() {
            return std::future::pending().await;
        }
        match answer.await {
            Ok(sent) => sent,
            Err(_) => std::future::pending().await,
        }
    }
}

pub(crate) struct World {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) engine: EngineHandle,
    pub(crate) app: App,
    /// An application beside it, with one endpoint without limits.
    probe: AppKey,
    calls: mpsc::UnboundedReceiver<Call>,
    /// Calls of other endpoints, put aside while one was waited for.
    aside: VecDeque<Call>,
}

pub(crate) fn open(dir: &Path) -> Arc<dyn Store> {
    SqliteStore::open(dir.join("store.db"), store::sqlite::Options::default()).unwrap()
}

pub(crate) fn options() -> Options {
    Options {
        node: "test-node".to_owned(),
        ..Options::default()
    }
}

impl World {
    /// A store with one application, under this contract.
    pub(crate) async fn new(contract: &Contract) -> Self {
        Self::with(contract, options()).await
    }

    pub(crate) async fn with(contract: &Contract, options: Options) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        Self::over(dir, store, contract, options).await
    }

    pub(crate) async fn over(
        dir: tempfile::TempDir,
        store: Arc<dyn Store>,
        contract: &Contract,
        options: Options,
    ) -> Self {
        let now = Instant::from_unix_ms(START);
        let key = put(&*store, contract).await;
        store.set_contract(Level::Organisation, Some(key)).await.unwrap();
        let app = store.create_app(AppFields::default(), now).await.unwrap();
        let probe = store.create_app(AppFields::default(), now).await.unwrap().key;
        let endpoint = make_endpoint(&*store, probe, PROBE, now, |_| {}).await;
        let unlimited = put(&*store, &self::contract(&[])).await;
        let level = Level::Endpoint(endpoint.key);
        store.set_contract(level, Some(unlimited)).await.unwrap();
        let clock = ManualClock::new(now, BootInstant::from_ms(1_000_000));
        Self::start(dir, store, clock, (app, probe), options).await
    }

    async fn start(
        dir: tempfile::TempDir,
        store: Arc<dyn Store>,
        clock: ManualClock,
        (app, probe): (App, AppKey),
        options: Options,
    ) -> Self {
        let clock = Arc::new(clock);
        let (told, calls) = mpsc::unbounded_channel();
        let wire = Arc::new(Told {
            calls: told,
            clock: Arc::clone(&clock),
        });
        let engine = Engine::start(
            Arc::clone(&store),
            wire,
            options,
            Arc::clone(&clock) as Arc<dyn Clock>,
        )
        .await
        .unwrap();
        Self {
            dir,
            store,
            clock,
            engine,
            app,
            probe,
            calls,
            aside: VecDeque::new(),
        }
    }

    /// What a machine would find that lost power now: the files as they are, opened by a new process with these
    /// clocks. The old one lives on beside it and is of no account.
    pub(crate) async fn crash(&self, clock: ManualClock) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(self.dir.path()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_owned();
            if !name.to_string_lossy().ends_with(".lock") {
                std::fs::copy(&path, dir.path().join(name)).unwrap();
            }
        }
        let store = open(dir.path());
        Self::start(dir, store, clock, (self.app.clone(), self.probe), options()).await
    }

    /// The same clocks, `down` later, for a new process of the same boot.
    pub(crate) fn clock_after(&self, down: Duration) -> ManualClock {
        let now = self.clock.now();
        ManualClock::new(now.wall + down, now.boot + down)
    }

    pub(crate) async fn endpoint(&self, host: &str) -> Endpoint {
        self.endpoint_with(host, |_| {}).await
    }

    pub(crate) async fn endpoint_with(
        &self,
        host: &str,
        change: impl FnOnce(&mut EndpointFields),
    ) -> Endpoint {
        let now = self.clock.now().wall;
        make_endpoint(&*self.store, self.app.key, host, now, change).await
    }

    pub(crate) async fn set_state(&self, endpoint: EndpointKey, state: EndpointState) {
        let now = self.clock.now().wall;
        let set = self
            .store
            .set_endpoint_state(endpoint, state, "because", "test", now)
            .await;
        set.unwrap();
    }

    pub(crate) async fn set_contract(&self, level: Level, contract: &Contract) -> ContractKey {
        let key = put(&*self.store, contract).await;
        self.store.set_contract(level, Some(key)).await.unwrap();
        key
    }

    pub(crate) fn message(&self) -> NewMessage {
        let now = self.clock.now();
        NewMessage {
            id: MessageId::at_unix_ms(u64::try_from(now.wall.as_unix_ms()).unwrap()),
            app: self.app.key,
            event_id: None,
            event_type: "order.paid".to_owned(),
            channels: None,
            payload: bytes::Bytes::from_static(b"{\"test\": 2432232314}"),
            contract: None,
            idempotency_key: None,
            now,
        }
    }

    /// Accepts a message.
    pub(crate) async fn send(&self) -> MessageId {
        self.engine.accept(self.message()).await.unwrap().message.id
    }

    pub(crate) fn advance(&self, ms: u64) {
        self.clock.advance(Duration::from_ms(ms));
    }

    /// The next request, whoever it is for.
    pub(crate) async fn call(&mut self) -> Call {
        if let Some(call) = self.aside.pop_front() {
            return call;
        }
        let call = tokio::time::timeout(PATIENCE, self.calls.recv()).await;
        call.expect("a request within the test's patience").unwrap()
    }

    /// The next request to this host; others are put aside.
    pub(crate) async fn call_to(&mut self, host: &str) -> Call {
        if let Some(place) = self.aside.iter().position(|call| call.host() == host) {
            return self.aside.remove(place).unwrap();
        }
        loop {
            let call = tokio::time::timeout(PATIENCE, self.calls.recv()).await;
            let call = call.expect("a request within the test's patience").unwrap();
            if call.host() == host {
                return call;
            }
            self.aside.push_back(call);
        }
    }

    /// Requests that have come and were not taken.
    pub(crate) fn waiting_calls(&mut self) -> usize {
        while let Ok(call) = self.calls.try_recv() {
            self.aside.push_back(call);
        }
        self.aside.len()
    }

    /// Everything that is due now has been looked at: messages to an application of its own, made for this, went all
    /// the way, after the loop looked at the clocks and at the store.
    pub(crate) async fn settle_down(&mut self) {
        for _ in 0..3 {
            let message = NewMessage {
                app: self.probe,
                ..self.message()
            };
            let id = message.id;
            self.engine.accept(message).await.unwrap();
            self.call_to(PROBE).await.answer(200);
            self.until_state(id, DeliveryState::Succeeded).await;
        }
    }

    pub(crate) async fn delivery(&self, message: MessageId) -> Delivery {
        self.store.deliveries(message).await.unwrap().pop().unwrap()
    }

    /// Waits until the message's latest delivery is in this state.
    pub(crate) async fn until_state(&self, message: MessageId, state: DeliveryState) -> Delivery {
        self.until_delivery(message, |delivery| delivery.state == state)
            .await
    }

    pub(crate) async fn until_delivery(
        &self,
        message: MessageId,
        is_so: impl Fn(&Delivery) -> bool,
    ) -> Delivery {
        let found = Mutex::new(None);
        until(|| async {
            let delivery = self.delivery(message).await;
            let so = is_so(&delivery);
            *found.lock().unwrap() = Some(delivery);
            so
        })
        .await
        .unwrap_or_else(|()| panic!("never so: {:?}", found.lock().unwrap()));
        found.into_inner().unwrap().unwrap()
    }

    pub(crate) async fn until_endpoint(
        &self,
        key: EndpointKey,
        is_so: impl Fn(&Endpoint) -> bool,
    ) -> Endpoint {
        let read = || async { self.store.endpoint_by_key(key).await.unwrap().unwrap() };
        let waited = until(|| async { is_so(&read().await) }).await;
        let found = read().await;
        assert!(waited.is_ok(), "never so: {found:?}");
        found
    }

    /// The ledger's rows of a message.
    pub(crate) async fn rows(&self, message: MessageId) -> Vec<AttemptRecord> {
        let attempts = self.store.attempts(message, None).await.unwrap();
        attempts.into_iter().map(|attempt| attempt.record).collect()
    }

    pub(crate) async fn node_events(&self) -> Vec<(NodeEventKind, Instant, i64)> {
        let sink = self
            .store
            .read_ledger(Box::new(NodeEvents::default()))
            .await
            .unwrap();
        sink.into_any().downcast::<NodeEvents>().unwrap().0
    }
}

async fn make_endpoint(
    store: &dyn Store,
    app: AppKey,
    host: &str,
    now: Instant,
    change: impl FnOnce(&mut EndpointFields),
) -> Endpoint {
    let mut fields = EndpointFields {
        url: format!("http://{host}/hook"),
        ..EndpointFields::default()
    };
    change(&mut fields);
    let secret = Secret {
        key: SECRET.to_owned(),
        expires_at: None,
    };
    let active = EndpointState::Active;
    let made = store
        .create_endpoint(app, fields, active, secret, "test", now)
        .await;
    made.unwrap()
}

async fn put(store: &dyn Store, contract: &Contract) -> ContractKey {
    store
        .put_contract(&contract.rev(), &contract.canonical())
        .await
        .unwrap()
}

/// Asks again and again until it is so.
pub(crate) async fn until<F>(mut is_so: impl FnMut() -> F) -> Result<(), ()>
where
    F: Future<Output = bool>,
{
    let waited = tokio::time::timeout(PATIENCE, async {
        while !is_so().await {
            tokio::time::sleep(StdDuration::from_millis(1)).await;
        }
    });
    waited.await.map_err(|_| ())
}

#[derive(Default)]
struct NodeEvents(Vec<(NodeEventKind, Instant, i64)>);

impl store::LedgerSink for NodeEvents {
    fn contract(&mut self, _: &contract::ledger::ContractRecord) -> store::Result<()> {
        Ok(())
    }
    fn message(&mut self, _: &contract::ledger::MessageRecord) -> store::Result<()> {
        Ok(())
    }
    fn endpoint_event(&mut self, _: &contract::ledger::EndpointEvent) -> store::Result<()> {
        Ok(())
    }
    fn node_event(&mut self, record: &contract::ledger::NodeEvent) -> store::Result<()> {
        self.0.push((record.event, record.at, record.size_ms));
        Ok(())
    }
    fn delivery_event(&mut self, _: &contract::ledger::DeliveryEvent) -> store::Result<()> {
        Ok(())
    }
    fn attempt(&mut self, _: &AttemptRecord) -> store::Result<()> {
        Ok(())
    }
    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any + Send> {
        self
    }
}
