//! A server on a free port over a store of its own, a client that sees statuses and bodies as they are, and a
//! receiver that keeps what it was sent.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// The token that every server of a test takes.
pub(crate) const TOKEN: &str = "dhk_token-of-the-tests-0123456789";

/// How long a test waits for something that must come.
const PATIENCE: Duration = Duration::from_secs(10);

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
    pub(crate) text: String,
}

impl Answer {
    /// The body, where the status is the one due.
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        self.body
    }

    /// An error body of the one shape, with this code, and a detail that is a sentence.
    #[track_caller]
    pub(crate) fn coded(self, status: u16, code: &str) -> String {
        let body = self.is(status);
        let map = body.as_object().unwrap();
        assert_eq!(map.keys().collect::<Vec<_>>(), ["code", "detail"], "{body}");
        assert_eq!(body["code"], code);
        let detail = body["detail"].as_str().unwrap().to_owned();
        assert!(detail.len() > 20, "{detail}");
        detail
    }

    /// The places that a 422 complains of.
    #[track_caller]
    pub(crate) fn invalid(self) -> Vec<String> {
        let body = self.is(422);
        assert_eq!(body.as_object().unwrap().len(), 1, "{body}");
        let issues = body["detail"].as_array().unwrap().iter();
        let place = |issue: &Value| {
            assert!(!issue["msg"].as_str().unwrap().is_empty());
            assert!(!issue["type"].as_str().unwrap().is_empty());
            let loc = issue["loc"]
                .as_array()
                .unwrap()
                .iter()
                .map(|part| part.as_str().unwrap());
            loc.collect::<Vec<_>>().join("/")
        };
        issues.map(place).collect()
    }
}

/// A client of one server.
#[derive(Clone)]
pub(crate) struct Api {
    agent: ureq::Agent,
    pub(crate) address: SocketAddr,
    pub(crate) token: Option<String>,
}

impl Api {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(PATIENCE))
            .allow_non_standard_methods(true);
        Self {
            agent: config.build().into(),
            address,
            token: Some(TOKEN.to_owned()),
        }
    }

    /// Any request, with the body's text as it is.
    pub(crate) fn raw(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Answer {
        let uri = format!("http://{}{path}", self.address);
        let mut request = http::Request::builder().method(method).uri(uri);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = match body {
            Some(body) => self.agent.run(request.body(body.to_owned()).unwrap()),
            None => self.agent.run(request.body(()).unwrap()),
        };
        let mut answer = answer.unwrap();
        let text = answer.body_mut().read_to_string().unwrap();
        Answer {
            status: answer.status().as_u16(),
            body: serde_json::from_str(&text).unwrap_or(Value::Null),
            text,
        }
    }

    fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let text = body.map(Value::to_string);
        self.raw(method, &format!("/api/v1{path}"), &[], text.as_deref())
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.call("GET", path, None)
    }
    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.call("DELETE", path, None)
    }
    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.call("POST", path, Some(body))
    }
    pub(crate) fn put(&self, path: &str, body: &Value) -> Answer {
        self.call("PUT", path, Some(body))
    }
    pub(crate) fn patch(&self, path: &str, body: &Value) -> Answer {
        self.call("PATCH", path, Some(body))
    }

    /// An application with this uid.
    #[track_caller]
    pub(crate) fn app(&self, uid: &str) -> Value {
        self.post("/app", &json!({ "name": uid, "uid": uid })).is(201)
    }

    /// An endpoint of an application.
    #[track_caller]
    pub(crate) fn endpoint(&self, app: &str, url: &str) -> String {
        let made = self
            .post(&format!("/app/{app}/endpoint"), &json!({ "url": url }))
            .is(201);
        made["id"].as_str().unwrap().to_owned()
    }

    /// A message; its id.
    #[track_caller]
    pub(crate) fn send(&self, app: &str, payload: &Value) -> String {
        let body = json!({ "eventType": "order.paid", "payload": payload });
        let sent = self.post(&format!("/app/{app}/msg"), &body).is(202);
        sent["id"].as_str().unwrap().to_owned()
    }

    /// Asks until the answer is so.
    #[allow(
        clippy::disallowed_methods,
        reason = "a deadline for what really happens, by the real clock"
    )]
    #[track_caller]
    pub(crate) fn until(&self, path: &str, so: impl Fn(&Value) -> bool) -> Value {
        let start = std::time::Instant::now();
        loop {
            let body = self.get(path).is(200);
            if so(&body) {
                return body;
            }
            assert!(start.elapsed() < PATIENCE, "{path} stayed {body}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A request that a receiver was sent.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

struct Inbox {
    requests: Mutex<Vec<Received>>,
    came: Condvar,
    answer: AtomicU16,
}

/// A receiver that answers every request with one status.
pub(crate) struct Receiver {
    address: SocketAddr,
    inbox: Arc<Inbox>,
}

impl Receiver {
    pub(crate) fn start(status: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let inbox = Arc::new(Inbox {
            requests: Mutex::new(Vec::new()),
            came: Condvar::new(),
            answer: AtomicU16::new(status),
        });
        let shared = Arc::clone(&inbox);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let inbox = Arc::clone(&shared);
                std::thread::spawn(move || while take(&stream, &inbox).is_some() {});
            }
        });
        Self { address, inbox }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub(crate) fn answer(&self, status: u16) {
        self.inbox.answer.store(status, Ordering::SeqCst);
    }

    pub(crate) fn count(&self) -> usize {
        self.inbox.requests.lock().unwrap().len()
    }

    /// Waits for the n-th request.
    #[track_caller]
    pub(crate) fn nth(&self, n: usize) -> Received {
        let requests = self.inbox.requests.lock().unwrap();
        let (requests, late) = self
            .inbox
            .came
            .wait_timeout_while(requests, PATIENCE, |all| all.len() < n)
            .unwrap();
        assert!(
            !late.timed_out(),
            "{} requests came, and {n} were due",
            requests.len()
        );
        requests[n - 1].clone()
    }
}

fn take(stream: &TcpStream, inbox: &Inbox) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    (reader.read_line(&mut line).ok()? > 0).then_some(())?;
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.push((name.to_owned(), value.trim().to_owned())),
            None => break,
        }
    }
    let mut received = Received {
        headers,
        body: Vec::new(),
    };
    let length = received.header("content-length")?.parse().ok()?;
    received.body.resize(length, 0);
    reader.read_exact(&mut received.body).ok()?;
    inbox.requests.lock().unwrap().push(received);
    let status = inbox.answer.load(Ordering::SeqCst);
    let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 4\r\n\r\nseen");
    let mut writer = stream;
    writer.write_all(answer.as_bytes()).ok()?;
    inbox.came.notify_all();
    Some(())
}

/// A server over a store of its own; it and its folder go with it.
pub(crate) struct Harness {
    pub(crate) api: Api,
    pub(crate) store: Arc<dyn store::Store>,
    _folder: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
}

impl Harness {
    pub(crate) fn start() -> Self {
        Self::with(server::Config::default())
    }

    pub(crate) fn with(config: server::Config) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let path = folder.path().join("store.db");
        let store: Arc<dyn store::Store> =
            store::sqlite::SqliteStore::open(&path, store::sqlite::Options::default()).unwrap();
        let address = runtime.block_on(serve(Arc::clone(&store), config));
        Self {
            api: Api::new(address),
            store,
            _folder: folder,
            runtime,
        }
    }

    /// Waits for what the store is asked directly.
    pub(crate) fn wait<T>(&self, asked: impl Future<Output = T>) -> T {
        self.runtime.block_on(asked)
    }

    /// With an application of this uid.
    pub(crate) fn with_app(uid: &str) -> Self {
        let harness = Self::start();
        harness.api.app(uid);
        harness
    }
}

/// The parts as `duehook serve` puts them together, with loopback allowed and the default contract.
async fn serve(store: Arc<dyn store::Store>, config: server::Config) -> SocketAddr {
    let text = contract::preset("default").unwrap().text;
    let contract = contract::parse(text, "default").unwrap();
    let key = store
        .put_contract(&contract.rev(), &contract.canonical())
        .await
        .unwrap();
    store
        .set_contract(store::Level::Organisation, Some(key))
        .await
        .unwrap();
    let connector = engine::connector::Connector::new(
        engine::guard::Guard::new(vec!["127.0.0.0/8".parse().unwrap()]),
        Arc::new(engine::connector::SystemResolver),
        engine::tls::client_config(&[]).unwrap(),
    );
    let wire = Arc::new(engine::wire::HttpWire::new(connector));
    let clock = Arc::new(engine::clock::SystemClock::new().unwrap());
    let engine = engine::Engine::start(Arc::clone(&store), wire, engine::Options::default(), clock)
        .await
        .unwrap();
    let (verdicts, verdict) = tokio::sync::watch::channel(None);
    let config = server::Config {
        token: Some(TOKEN.to_owned()),
        ..config
    };
    let server = server::Server::new(store, engine, config, verdict).await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let _verdicts = verdicts;
        server.serve(listener, std::future::pending()).await
    });
    address
}
