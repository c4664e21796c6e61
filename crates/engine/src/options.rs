//! What an engine is set up with.

use crate::sign::SignatureHeaders;
use contract::Duration;

/// Settings of an engine. The contracts say everything about retries; these are about this process.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of this node in the ledger.
    pub node: String,
    /// Which names the signature headers go by.
    pub signature_headers: SignatureHeaders,
    /// Attempts at once, over all endpoints. Each may hold a socket: fewer where the limit of open files is low.
    pub max_in_flight: usize,
    /// Due deliveries held in memory, over all endpoints; the rest waits in the store.
    pub max_window: usize,
    /// Every endpoint is looked at this often even when nothing called for it: due work is found by query, timers
    /// only make it prompt.
    pub sweep_every: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            node: "node".to_owned(),
            signature_headers: SignatureHeaders::default(),
            max_in_flight: 8192,
            max_window: 8192,
            sweep_every: Duration::from_secs(30),
        }
    }
}
