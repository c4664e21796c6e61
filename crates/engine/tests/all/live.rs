//! Everything for real: the machine's clocks, sockets on loopback, a store in a file.

use crate::sink::{Sink, read_request, wire};
use crate::world::{SECRET, contract, open, options, until};
use contract::ledger::{EndpointState, Outcome};
use contract::{Instant, MessageId};
use engine::clock::{Clock, SystemClock};
use engine::{Engine, EngineHandle};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use store::{AppFields, AppKey, DeliveryState, EndpointFields, Level, NewMessage, Secret, Store};
use tokio::io::AsyncWriteExt as _;

const BODY: &[u8] = b"{\"n\": 1,  \"text\": \"\\u00e9\"}";
const MESSAGES: usize = 60;
const WAIT_MS: u128 = 30;

/// A request as the receiver saw it, in its own time.
struct Seen {
    arrived: tokio::time::Instant,
    answered: tokio::time::Instant,
    attempt: String,
}

type Log = Arc<Mutex<HashMap<String, Vec<Seen>>>>;

fn headers_of(head: &str) -> HeaderMap {
    head.lines()
        .skip(1)
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| {
            let name: HeaderName = name.parse().unwrap();
            (name, HeaderValue::from_str(value).unwrap())
        })
        .collect()
}

/// Verifies every signature with the public library, answers the first request of each message with 500 and the
/// next with 200, and keeps the connection.
async fn receiver(log: Log) -> Sink {
    let verifier = Arc::new(standardwebhooks::Webhook::new(SECRET).unwrap());
    Sink::new(move |mut stream, _| {
        let (log, verifier) = (Arc::clone(&log), Arc::clone(&verifier));
        async move {
            while let Some((head, body)) = read_request(&mut stream).await {
                let arrived = tokio::time::Instant::now();
                let headers = headers_of(&head);
                verifier.verify(&body, &headers).unwrap();
                assert_eq!(body, BODY);
                let text = |name: &str| headers[name].to_str().unwrap().to_owned();
                let status = if log.lock().unwrap().contains_key(&text("webhook-id")) {
                    200
                } else {
                    500
                };
                let seen = Seen {
                    arrived,
                    answered: tokio::time::Instant::now(),
                    attempt: text("duehook-attempt"),
                };
                log.lock()
                    .unwrap()
                    .entry(text("webhook-id"))
                    .or_default()
                    .push(seen);
                let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n");
                if stream.write_all(answer.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    })
    .await
}

async fn set_up(store: &Arc<dyn Store>, clock: &dyn Clock, url: String) -> AppKey {
    let short = contract(&[("waits", "[\"30ms\"]"), ("in_flight", "4")]);
    let key = store
        .put_contract(&short.rev(), &short.canonical())
        .await
        .unwrap();
    store.set_contract(Level::Organisation, Some(key)).await.unwrap();
    let now: Instant = clock.now().wall;
    let app = store.create_app(AppFields::default(), now).await.unwrap().key;
    let fields = EndpointFields {
        url,
        ..EndpointFields::default()
    };
    let secret = Secret {
        key: SECRET.to_owned(),
        expires_at: None,
    };
    let active = EndpointState::Active;
    store
        .create_endpoint(app, fields, active, secret, "test", now)
        .await
        .unwrap();
    app
}

async fn send(engine: &EngineHandle, app: AppKey) -> MessageId {
    let now = engine.now();
    let message = NewMessage {
        id: MessageId::at_unix_ms(u64::try_from(now.wall.as_unix_ms()).unwrap()),
        app,
        event_id: None,
        event_type: "test".to_owned(),
        channels: None,
        payload: bytes::Bytes::from_static(BODY),
        contract: None,
        idempotency_key: None,
        now,
    };
    engine.accept(message).await.unwrap().message.id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn by_the_receivers_own_log_nothing_is_lost_early_or_twice() {
    let log = Log::default();
    let sink = receiver(Arc::clone(&log)).await;
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let clock = Arc::new(SystemClock::new().unwrap());
    let app = set_up(&store, &*clock, sink.url()).await;
    let engine = Engine::start(Arc::clone(&store), Arc::new(wire()), options(), clock)
        .await
        .unwrap();
    let mut ids = Vec::new();
    for _ in 0..MESSAGES {
        ids.push(send(&engine, app).await);
    }
    for id in &ids {
        let done = || async {
            let delivery = store.deliveries(*id).await.unwrap().pop().unwrap();
            delivery.state == DeliveryState::Succeeded
        };
        until(done).await.unwrap();
    }
    let how = engine.shutdown(contract::Duration::from_secs(10)).await;
    assert!(how.in_time && how.settled);
    let log = std::mem::take(&mut *log.lock().unwrap());
    for id in ids {
        let seen = &log[&id.to_string()];
        assert_eq!(seen.len(), 2, "one request an attempt");
        let waited = seen[1].arrived.duration_since(seen[0].answered).as_millis();
        assert!(waited >= WAIT_MS, "{waited} ms");
        let rows = store.attempts(id, None).await.unwrap();
        let outcomes: Vec<_> = rows.iter().map(|row| row.record.outcome).collect();
        assert_eq!(outcomes, [Some(Outcome::Failed), Some(Outcome::Succeeded)]);
        for (row, seen) in rows.iter().zip(seen) {
            let joined = format!("{}; n={}", row.record.attempt_id, row.record.attempt_no);
            assert_eq!(joined, seen.attempt);
        }
    }
}
