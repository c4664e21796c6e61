//! The receiver's own log: one JSON object a line, for every request, whether it was answered or not.
//! `duehook audit --receiver FILE` joins it to the ledger.

use super::OnRequest;
use super::script::Answer;
use hyper::http::request::Parts;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Of a header, so much is logged.
const MAX_HEADER_CHARS: usize = 200;

/// One request as the receiver saw it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Received {
    /// When its headers had come: Unix milliseconds with a fraction.
    pub(crate) arrival_ms: f64,
    /// When the answer was about to leave; none where none left.
    pub(crate) answered_ms: Option<f64>,
    /// `webhook-id` or `svix-id`.
    pub(crate) message_id: Option<String>,
    /// The attempt's id, from `duehook-attempt`.
    pub(crate) attempt_id: Option<String>,
    /// The attempt's number, from `duehook-attempt`.
    pub(crate) attempt_no: Option<u32>,
    /// The method.
    pub(crate) method: String,
    /// The path and query.
    pub(crate) path: String,
    /// The status answered; none where none left.
    pub(crate) status: Option<u16>,
    /// The answer as the script has it.
    pub(crate) answer: String,
    /// What became of the signature.
    pub(crate) signature: Verdict,
    /// Length of the body.
    pub(crate) body_bytes: u64,
    /// SHA-256 of the body, lower-case hex.
    pub(crate) body_sha256: String,
}

/// What became of the signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// A key fits.
    Valid,
    /// A key fits, but the timestamp is more than five minutes off.
    Stale,
    /// No key fits.
    Invalid,
    /// There is none.
    Absent,
    /// No key was given.
    Unchecked,
}

impl Verdict {
    /// The word in the log.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Stale => "stale",
            Self::Invalid => "invalid",
            Self::Absent => "absent",
            Self::Unchecked => "unchecked",
        }
    }
}

/// Where requests are written.
pub(super) struct Log {
    file: Option<Mutex<File>>,
    on_request: OnRequest,
    /// Requests that have arrived and are not yet written down.
    open: AtomicUsize,
}

impl Log {
    pub(super) fn open(path: Option<&Path>, on_request: OnRequest) -> std::io::Result<Self> {
        let open = |path| {
            File::options()
                .create(true)
                .append(true)
                .open(path)
                .map(Mutex::new)
        };
        Ok(Self {
            file: path.map(open).transpose()?,
            on_request,
            open: AtomicUsize::new(0),
        })
    }

    pub(super) fn open_requests(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }

    fn write(&self, received: &Received) {
        if let Some(file) = &self.file {
            let mut line = serde_json::to_string(received).unwrap_or_default();
            line.push('\n');
            let mut file = file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if let Err(error) = file.write_all(line.as_bytes()) {
                let _ = writeln!(
                    std::io::stderr(),
                    "warning: the request log could not be written: {error}"
                );
            }
        }
        (self.on_request)(received);
    }
}

/// A request in progress. It is written when it is dropped, so that a sender who hangs up is in the log too.
pub(super) struct Entry {
    log: Arc<Log>,
    received: Received,
}

impl Entry {
    pub(super) fn begin(log: Arc<Log>, head: &Parts) -> Self {
        let header = |name: &str| {
            let text = head.headers.get(name)?.to_str().ok()?;
            Some(text.chars().take(MAX_HEADER_CHARS).collect::<String>())
        };
        let attempt = header("duehook-attempt").unwrap_or_default();
        let (attempt_id, rest) = attempt.split_once(';').unwrap_or((&attempt, ""));
        let received = Received {
            arrival_ms: unix_ms(),
            answered_ms: None,
            message_id: header("webhook-id").or_else(|| header("svix-id")),
            attempt_id: Some(attempt_id.trim().to_owned()).filter(|id| !id.is_empty()),
            attempt_no: rest.trim().strip_prefix("n=").and_then(|n| n.parse().ok()),
            method: head.method.to_string(),
            path: head
                .uri
                .path_and_query()
                .map_or_else(String::new, ToString::to_string),
            status: None,
            answer: String::new(),
            signature: Verdict::Unchecked,
            body_bytes: 0,
            body_sha256: String::new(),
        };
        log.open.fetch_add(1, Ordering::AcqRel);
        Self { log, received }
    }

    pub(super) fn message_id(&self) -> Option<&str> {
        self.received.message_id.as_deref()
    }

    pub(super) fn body(&mut self, body: &[u8], verdict: Verdict) {
        use std::fmt::Write;
        self.received.body_bytes = body.len() as u64;
        self.received.body_sha256 = Sha256::digest(body).iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        self.received.signature = verdict;
    }

    pub(super) fn scripted(&mut self, answer: &Answer) {
        answer.text.clone_into(&mut self.received.answer);
    }

    pub(super) fn answered(&mut self, status: u16) {
        self.received.answered_ms = Some(unix_ms());
        self.received.status = Some(status);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.log.write(&self.received);
        self.log.open.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Unix milliseconds, to the microsecond.
// A receiver stands outside the system under test: its clock is its own.
#[allow(clippy::disallowed_methods)]
pub(crate) fn unix_ms() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0.0, |since| (since.as_secs_f64() * 1e6).floor() / 1e3)
}

/// Unix seconds.
#[allow(clippy::disallowed_methods)]
pub(super) fn unix_secs() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since
        .ok()
        .and_then(|since| i64::try_from(since.as_secs()).ok())
        .unwrap_or(0)
}
