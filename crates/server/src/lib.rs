//! The HTTP API: the Svix v1 routes, and beside them what Svix has no word for (state, contracts, redrive, explain,
//! verdict). Knows the store's trait and the engine's handle; never SQL, never policy.
//!
//! A message is answered with 202 only once it and all its deliveries are durable (I3). A call that is refused has
//! stored nothing.

mod auth;
mod error;
pub mod explain;
mod extract;
mod fields;
mod front;
mod listen;
mod out;
mod page;
mod query;
mod routes;
mod shared;
mod stats;
mod target;
mod time;

pub use auth::{NewToken, TOKEN_PREFIX, fault_of_given, new_token};
pub use time::{rfc3339, spoken};

use engine::EngineHandle;
use shared::Shared;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// How a server is set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// Largest body in bytes.
    pub max_body: usize,
    /// A token that is good without being stored.
    pub token: Option<String>,
    /// Connections at once; more wait in the kernel's queue.
    pub max_connections: usize,
    /// How long calls in flight may take after the shutdown began.
    pub grace: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_body: 1024 * 1024,
            token: None,
            max_connections: 8192,
            grace: Duration::from_secs(10),
        }
    }
}

/// What the audit found last, as whoever runs it hands it in.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// When it ended, Unix milliseconds.
    pub at: contract::Instant,
    /// True when it found nothing.
    pub clean: bool,
    /// How many breaches, by kind.
    pub findings: std::collections::BTreeMap<String, u64>,
    /// Attempts it judged.
    pub attempts: u64,
    /// Why it could not judge, if it could not: not the same as clean (I7).
    pub unjudged: Option<String>,
}

/// A server that is ready to listen.
pub struct Server {
    shared: Arc<Shared>,
    config: Config,
}

impl Server {
    /// Reads the tokens and gets ready. `verdict` is where the audit's last word is read from.
    ///
    /// # Errors
    /// The store's own.
    pub async fn new(
        store: Arc<dyn Store>,
        engine: EngineHandle,
        config: Config,
        verdict: watch::Receiver<Option<Arc<Verdict>>>,
    ) -> store::Result<Self> {
        let shared = Shared {
            tokens: auth::Tokens::new(config.token.as_deref()),
            apps: shared::Apps::default(),
            max_body: config.max_body,
            stats: stats::Stats::default(),
            store,
            engine,
            verdict,
        };
        shared.tokens.reload(&*shared.store).await?;
        Ok(Self {
            shared: Arc::new(shared),
            config,
        })
    }

    /// True when every call would be refused, for want of a token.
    #[must_use]
    pub fn has_no_token(&self) -> bool {
        self.shared.tokens.is_empty()
    }

    /// Serves until `shutdown` is done. True when every call in flight ended within the grace time.
    pub async fn serve(self, listener: TcpListener, shutdown: impl Future<Output = ()>) -> bool {
        let routes = routes::all(Arc::clone(&self.shared));
        let front = Arc::new(front::Front::new(Arc::clone(&self.shared), routes));
        let Config {
            max_connections,
            grace,
            ..
        } = self.config;
        listen::serve(listener, front, self.shared, max_connections, grace, shutdown).await
    }
}
