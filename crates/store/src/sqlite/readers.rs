//! Connections that read beside the writer: a few of them, opened when they are first needed and kept, used on
//! blocking threads so that no query holds up the runtime.

use super::open;
use crate::{Result, StoreError};
use rusqlite::Connection;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

pub(super) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    permits: Semaphore,
}

impl Readers {
    pub(super) fn new(path: PathBuf, count: usize) -> Arc<Self> {
        Arc::new(Self {
            path,
            idle: Mutex::default(),
            permits: Semaphore::new(count.max(1)),
        })
    }

    /// Runs a query on a blocking thread.
    pub(super) async fn read<T, F>(self: &Arc<Self>, query: F) -> Result<T>
    where
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
        T: Send + 'static,
    {
        let permit = self.permits.acquire().await.map_err(|_| closed())?;
        let readers = Arc::clone(self);
        let read = move || {
            let conn = readers.take()?;
            let result = query(&conn);
            // A connection that stumbled is not kept: the next one begins afresh.
            if result.is_ok() && !readers.permits.is_closed() {
                readers
                    .idle
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(conn);
            }
            result
        };
        let result = tokio::task::spawn_blocking(read).await;
        drop(permit);
        result.map_err(|error| super::fault::unavailable(format!("a query did not finish: {error}")))?
    }

    /// Runs a long query on a connection of its own, so that it holds up no other.
    pub(super) async fn read_long<T, F>(self: &Arc<Self>, query: F) -> Result<T>
    where
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
        T: Send + 'static,
    {
        if self.permits.is_closed() {
            return Err(closed());
        }
        let readers = Arc::clone(self);
        let result = tokio::task::spawn_blocking(move || query(&readers.open()?)).await;
        result.map_err(|error| super::fault::unavailable(format!("a query did not finish: {error}")))?
    }

    fn take(&self) -> Result<Connection> {
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.map_or_else(|| self.open(), Ok)
    }

    fn open(&self) -> Result<Connection> {
        open::reader(&self.path).map_err(|error| StoreError::Unavailable {
            reason: error.to_string(),
            source: Some(Box::new(error)),
        })
    }

    /// Later reads are refused; connections in use close when their query ends.
    pub(super) fn close(&self) {
        self.permits.close();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

fn closed() -> StoreError {
    super::fault::unavailable("the store is closed")
}
