//! A receiver of webhooks, for `listen` and `demo`: verifies, answers by script, and writes down every request it saw.
//!
//! It is evidence of its own: it shares no code with the engine that sends, and logs a request even when the sender
//! hangs up or dies before it is answered. Arrivals are read late (after the headers came) and answers early (before
//! the first byte of the answer leaves), so that a gap between the two is never shorter in the log than on the wire.

mod body;
mod log;
pub(crate) mod script;
pub(crate) mod signature;

pub(crate) use log::{Received, Verdict, unix_ms as log_clock};

use body::AnswerBody;
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use log::{Entry, Log};
use script::{Answer, Script};
use signature::Key;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// No webhook is larger; the rest of a larger body is not read.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;
/// A script's place is remembered for so many messages; then all begin anew, so that memory stays bounded.
const MAX_REMEMBERED: usize = 500_000;

/// What is called for every request, once it is answered or given up.
pub(crate) type OnRequest = Box<dyn Fn(&Received) + Send + Sync>;

/// How a receiver behaves.
pub(crate) struct Config {
    /// What it answers.
    pub(crate) script: Script,
    /// Keys, any of which makes a signature valid; with none, signatures are not checked.
    pub(crate) keys: Vec<Key>,
    /// Where requests are logged, one JSON object a line.
    pub(crate) log: Option<PathBuf>,
    /// Who else hears of them.
    pub(crate) on_request: OnRequest,
}

/// A running receiver. Dropping it stops it.
pub(crate) struct Receiver {
    address: SocketAddr,
    log: Arc<Log>,
    task: JoinHandle<()>,
}

struct Shared {
    script: Script,
    keys: Vec<Key>,
    log: Arc<Log>,
    /// How often each message was seen.
    seen: Mutex<HashMap<String, usize>>,
}

impl Receiver {
    /// Binds and begins to answer.
    pub(crate) async fn start(listen: SocketAddr, config: Config) -> std::io::Result<Self> {
        let log = Arc::new(Log::open(config.log.as_deref(), config.on_request)?);
        let listener = TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            script: config.script,
            keys: config.keys,
            log: Arc::clone(&log),
            seen: Mutex::default(),
        });
        Ok(Self {
            address,
            log,
            task: tokio::spawn(accept(listener, shared)),
        })
    }

    /// Where it listens.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Requests that have arrived and are not yet answered.
    pub(crate) fn open_requests(&self) -> usize {
        self.log.open_requests()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // Connections live in this set, so that stopping the receiver drops them too.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, Arc::clone(&shared)));
                }
                // Out of descriptors: the only cure is to wait for connections to end.
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: tokio::net::TcpStream, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| answer(request, Arc::clone(&shared)));
    // A connection that breaks is the sender's affair; what it carried is in the log.
    let _ = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// Closes the connection without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the script says to close the connection")]
struct Closed;

async fn answer(request: Request<Incoming>, shared: Arc<Shared>) -> Result<Response<AnswerBody>, Closed> {
    let (head, body) = request.into_parts();
    // From here on the request is in the log, whatever becomes of it.
    let mut entry = Entry::begin(Arc::clone(&shared.log), &head);
    let body = Limited::new(body, MAX_BODY_BYTES)
        .collect()
        .await
        .map(|all| all.to_bytes());
    let body = body.map_err(|_| Closed)?;
    entry.body(&body, judge(&shared.keys, &head.headers, &body));
    let nth = shared.turn(entry.message_id());
    let answer = shared.script.answer(nth);
    entry.scripted(answer);
    respond(answer, entry).await
}

impl Shared {
    /// How often this message came before. A request without an id is always the first of its kind.
    fn turn(&self, message_id: Option<&str>) -> usize {
        let Some(id) = message_id else { return 0 };
        let mut seen = self
            .seen
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if seen.len() >= MAX_REMEMBERED {
            seen.clear();
        }
        let count = seen.entry(id.to_owned()).or_default();
        *count += 1;
        *count - 1
    }
}

fn judge(keys: &[Key], headers: &HeaderMap, body: &Bytes) -> Verdict {
    if keys.is_empty() {
        Verdict::Unchecked
    } else {
        signature::verify(keys, headers, body, log::unix_secs())
    }
}

async fn respond(answer: &Answer, mut entry: Entry) -> Result<Response<AnswerBody>, Closed> {
    // Even a sleep of nothing waits for the timer's next tick.
    if !answer.delay.is_zero() {
        tokio::time::sleep(answer.delay.to_std()).await;
    }
    let body = match answer.kind {
        script::Kind::Hang => std::future::pending().await,
        script::Kind::Close => return Err(Closed),
        script::Kind::Status(_) => AnswerBody::whole("{}"),
        script::Kind::Drip => AnswerBody::drip(),
        script::Kind::Endless => AnswerBody::Endless,
    };
    let status = answer.status();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    if let Some(value) = answer
        .retry_after
        .as_deref()
        .and_then(|text| HeaderValue::from_str(text).ok())
    {
        response.headers_mut().insert(RETRY_AFTER, value);
    }
    let kind = HeaderValue::from_static("application/json");
    response
        .headers_mut()
        .insert(HeaderName::from_static("content-type"), kind);
    entry.answered(status.as_u16());
    Ok(response)
}
