//! What every call has at hand: the store, the engine, the tokens, and which application a path names.

use crate::auth::Tokens;
use crate::error::ApiError;
use contract::Instant;
use engine::EngineHandle;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use store::{App, AppKey, Endpoint, Reading, Store};

/// Applications remembered by id and uid. Past this the memory starts anew.
const REMEMBERED_APPS: usize = 100_000;

/// One server.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) engine: EngineHandle,
    pub(crate) tokens: Tokens,
    pub(crate) apps: Apps,
    pub(crate) max_body: usize,
    pub(crate) stats: crate::stats::Stats,
    pub(crate) verdict: tokio::sync::watch::Receiver<Option<Arc<crate::Verdict>>>,
}

impl Shared {
    /// Both clocks.
    pub(crate) fn reading(&self) -> Reading {
        self.engine.now()
    }

    /// The wall clock.
    pub(crate) fn now(&self) -> Instant {
        self.reading().wall
    }

    /// The application a path names, whole.
    pub(crate) async fn app(&self, id_or_uid: &str) -> Result<App, ApiError> {
        let found = self.store.app(id_or_uid).await?;
        found.ok_or_else(|| ApiError::not_found("application", id_or_uid))
    }

    /// The row of the application a path names: remembered, so that sending reads no store.
    pub(crate) async fn app_key(&self, id_or_uid: &str) -> Result<Option<AppKey>, ApiError> {
        if let Some(key) = self.apps.get(id_or_uid) {
            return Ok(Some(key));
        }
        let seen = self.apps.generation();
        let Some(app) = self.store.app(id_or_uid).await? else {
            return Ok(None);
        };
        self.apps.remember(id_or_uid, app.key, seen);
        Ok(Some(app.key))
    }

    /// The endpoint a path names.
    pub(crate) async fn endpoint(&self, app: AppKey, id_or_uid: &str) -> Result<Endpoint, ApiError> {
        let found = self.store.endpoint(app, id_or_uid).await?;
        found.ok_or_else(|| ApiError::not_found("endpoint", id_or_uid))
    }
}

/// Which row an application's id or uid names. Forgotten whole whenever any application changes; what is stale all
/// the same (another node's change) is refused by the store, which checks the row it is given.
#[derive(Default)]
pub(crate) struct Apps {
    known: RwLock<HashMap<String, AppKey>>,
    generation: AtomicU64,
}

impl Apps {
    fn get(&self, name: &str) -> Option<AppKey> {
        self.known
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name)
            .copied()
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// `seen` is the generation before the store was read: what was read before a change is not remembered.
    fn remember(&self, name: &str, key: AppKey, seen: u64) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if self.generation() != seen {
            return;
        }
        if known.len() >= REMEMBERED_APPS {
            known.clear();
        }
        known.insert(name.to_owned(), key);
    }

    /// An application changed.
    pub(crate) fn forget(&self) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        self.generation.fetch_add(1, Ordering::AcqRel);
        known.clear();
    }
}
