//! One request, one answer (spec/engine.md, Receivers): what the loop asks of whatever sends for it.
//!
//! [`http::HttpWire`] sends for real; tests put a script in its place.

mod fault;
mod http;

pub use self::http::HttpWire;

use crate::target::Target;
use ::http::HeaderMap;
use async_trait::async_trait;
use bytes::Bytes;
use contract::Duration;
use std::sync::Arc;

/// The most of an answer's body that is read.
pub const BODY_READ_BYTES: usize = 64 * 1024;
/// The most of it that is kept.
pub const BODY_KEPT_BYTES: usize = 8 * 1024;
/// The most of a Retry-After header that is kept: none that can be read is longer.
pub const RETRY_AFTER_BYTES: usize = 128;

/// A request to make.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Where to.
    pub target: Arc<Target>,
    /// All headers but `host` and `content-length`.
    pub headers: HeaderMap,
    /// The exact bytes.
    pub body: Bytes,
    /// The whole attempt: name look-up, connect, send, headers, body.
    pub timeout: Duration,
}

/// How the attempt went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// The answer's status, decided at the end of its headers. None when no answer counts.
    pub status: Option<u16>,
    /// What went wrong before the answer was whole.
    pub fault: Option<Fault>,
    /// The raw Retry-After header.
    pub retry_after: Option<String>,
    /// The start of the answer's body.
    pub body: Bytes,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Our own guard: nothing was sent.
    Refused(String),
    /// The deadline passed.
    TimedOut(String),
    /// Anything else: a stable word, and perhaps more after a colon.
    Failed(String),
}

/// Sends. Never twice: one call, one request at most (I9).
#[async_trait]
pub trait Wire: Send + Sync + 'static {
    /// Makes the request and waits for the whole answer, or for its deadline.
    async fn send(&self, outgoing: Outgoing) -> Sent;
}
