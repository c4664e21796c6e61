//! An endpoint, made ready to send to: URL, headers, keys and contract parsed once, not at each attempt.

use crate::contracts::Known;
use crate::header::check_custom_headers;
use crate::sign::SignKey;
use crate::target::Target;
use contract::Instant;
use contract::ledger::EndpointState;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue};
use std::sync::Arc;
use store::Endpoint;

const AGENT: &str = concat!("Duehook/", env!("CARGO_PKG_VERSION"));

/// What an attempt to an endpoint needs.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) endpoint: Endpoint,
    /// Its id as text: draws depend on it.
    pub(crate) id: String,
    /// Where to; or why nothing can be sent there, which refuses each attempt.
    pub(crate) target: Result<Arc<Target>, String>,
    /// The headers that are the same for every attempt.
    pub(crate) headers: HeaderMap,
    keys: Vec<(SignKey, Option<Instant>)>,
    /// The contract that holds at this endpoint.
    pub(crate) contract: Known,
    pub(crate) throttle: Option<u16>,
}

impl Config {
    /// Never fails: an endpoint that cannot be sent to says so at each attempt, in the ledger.
    pub(crate) fn new(endpoint: Endpoint, contract: Known, throttle: Option<u16>) -> Self {
        let mut headers = HeaderMap::new();
        let target = ready(&endpoint, &mut headers);
        let keys: Vec<_> = endpoint
            .secrets
            .iter()
            .filter_map(|secret| Some((SignKey::parse(&secret.key).ok()?, secret.expires_at)))
            .collect();
        let target = if keys.len() == endpoint.secrets.len() {
            target
        } else {
            Err("bad_secret: a signing secret of this endpoint cannot be read".to_owned())
        };
        Self {
            id: endpoint.id.to_string(),
            target,
            headers,
            keys,
            contract,
            throttle,
            endpoint,
        }
    }

    /// Only `active` is ever sent to (I4).
    pub(crate) fn state(&self) -> EndpointState {
        self.endpoint.state
    }

    /// The keys that sign at `now`: during a rotation the old one signs too.
    pub(crate) fn keys_at(&self, now: Instant) -> impl Iterator<Item = &SignKey> {
        let valid = move |expires_at: &Option<Instant>| expires_at.is_none_or(|end| now < end);
        self.keys
            .iter()
            .filter_map(move |(key, expires_at)| valid(expires_at).then_some(key))
    }
}

fn ready(endpoint: &Endpoint, headers: &mut HeaderMap) -> Result<Arc<Target>, String> {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    let custom = check_custom_headers(endpoint.headers.iter());
    for (name, value) in custom.map_err(|error| format!("bad_header: {error}"))? {
        headers.insert(name, value);
    }
    let target = Target::parse(&endpoint.url).map_err(|error| format!("bad_url: {error}"))?;
    Ok(Arc::new(target))
}
