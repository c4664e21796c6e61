//! The embedded backend: SQLite, one file, one owner. This file holds the store's outside: opening, closing and which
//! function answers which call. The parts:
//!
//! | file | job |
//! |---|---|
//! | `open`, `migrate` | the file, its lock, its settings read back, its schema |
//! | `writer`, `checkpoint` | group commit on one thread; the log copied on another |
//! | `registry` | what the writer knows without asking |
//! | `accept`, `settle`, `deliveries`, `admin`, `nodes` | what commands write |
//! | `retain`, `backup` | what is taken away, and what is kept elsewhere |
//! | `read/`, `readers` | queries, on connections of their own |
//! | `codes`, `rows` | the database's edge |
//!
//! Keeps I1 (due times by both clocks), I2, I3 and I4 as far as they are the store's.

mod accept;
mod admin;
mod backup;
mod checkpoint;
mod codes;
mod deliveries;
mod fault;
mod migrate;
mod nodes;
mod open;
mod read;
mod readers;
mod registry;
mod retain;
mod rows;
mod settle;
mod stats;
mod store;
#[cfg(test)]
mod tests;
mod writer;

pub use backup::{BackupError, BackupProgress};
pub use open::{OpenError, Options};

use crate::Result;
use readers::Readers;
use registry::Registry;
use rusqlite::Connection;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use writer::{Outbox, Place, Queue, Shared, Work};

/// A store in one SQLite file.
pub struct SqliteStore {
    shared: Arc<Shared>,
    readers: Arc<Readers>,
    /// `None` for a store that was opened to read.
    owner: Option<Owner>,
}

/// What only the file's owner has.
struct Owner {
    queue: Outbox,
    threads: Mutex<Option<Threads>>,
}

struct Threads {
    writer: JoinHandle<Connection>,
    checkpointer: JoinHandle<()>,
    lock: open::Lock,
}

impl SqliteStore {
    /// Opens a store to run on it, or makes it. The file is locked until the store is closed or dropped.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]; nothing was changed then.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Arc<Self>, OpenError> {
        Self::open_prepared(path.as_ref(), options, |_| {})
    }

    /// The same with a last word on the writer's connection, for tests that take its room away.
    fn open_prepared(
        path: &Path,
        options: Options,
        prepare: impl FnOnce(&Connection),
    ) -> Result<Arc<Self>, OpenError> {
        let path = open::canonical(path)?;
        let lock = open::Lock::take(&path)?;
        let mut conn = open::writer(&path)?;
        migrate::run(&mut conn, &path, migrate::MIGRATIONS)?;
        prepare(&conn);
        let unfit = |error: &dyn std::fmt::Display| OpenError::Unfit {
            path: path.clone(),
            reason: error.to_string(),
        };
        let known = Registry::load(&conn, None).map_err(|error| unfit(&error))?;
        let shared = Arc::new(Shared::new(known.counts()));
        let log = Arc::clone(&shared);
        conn.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages| {
            log.checkpointer.log_has(pages);
            Ok(())
        }))
        .map_err(|error| unfit(&error))?;
        let second = open::checkpointer(&path)?;
        let (queue, writer) = writer::new(conn, known, options, Arc::clone(&shared));
        let io = |source| OpenError::Io {
            path: path.clone(),
            source,
        };
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let writer = thread("store-writer").spawn(move || writer.run()).map_err(io)?;
        let told = Arc::clone(&shared);
        let checkpointer = thread("store-checkpoint")
            .spawn(move || checkpoint::run(&second, &told))
            .map_err(io)?;
        let threads = Threads {
            writer,
            checkpointer,
            lock,
        };
        Ok(Arc::new(Self {
            shared,
            readers: Readers::new(path, options.readers),
            owner: Some(Owner {
                queue: Outbox::new(queue),
                threads: Mutex::new(Some(threads)),
            }),
        }))
    }

    /// Opens a store to read, beside its owner or without one. Every write is refused.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]; nothing was changed then.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Arc<Self>, OpenError> {
        let path = path.as_ref();
        let conn = open::reader(path)?;
        migrate::check(&conn, path)?;
        Ok(Arc::new(Self {
            shared: Arc::new(Shared::new(crate::Counts::default())),
            readers: Readers::new(path.to_owned(), Options::default().readers),
            owner: None,
        }))
    }

    fn queue(&self) -> Result<Queue> {
        let owner = self.owner.as_ref().ok_or_else(|| {
            fault::unavailable("it was opened to read: changes go through the HTTP API of its running server")
        })?;
        owner
            .queue
            .get()
            .ok_or_else(|| fault::unavailable("the store is closed"))
    }

    /// Runs a command that the engine or an administrator owes.
    async fn write<R, F>(&self, todo: F) -> Result<R>
    where
        F: FnOnce(&mut Work<'_>) -> fault::Outcome<R> + Send + 'static,
        R: Send + 'static,
    {
        self.queue()?.call(Place::OrWait, todo, None).await
    }

    async fn end(&self) -> Result<()> {
        self.readers.close();
        let Some(owner) = &self.owner else {
            return Ok(());
        };
        owner.queue.close();
        let threads = owner
            .threads
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(threads) = threads else {
            return Ok(());
        };
        let shared = Arc::clone(&self.shared);
        let ended = tokio::task::spawn_blocking(move || threads.finish(&shared)).await;
        ended.map_err(|error| fault::unavailable(format!("closing did not finish: {error}")))?
    }

    fn boot(&self) -> i64 {
        self.shared.boot.load(Ordering::Relaxed)
    }
}

impl Threads {
    /// Waits until what was queued is done.
    fn join(self, shared: &Shared) -> Result<(Connection, open::Lock)> {
        let conn = self.writer.join();
        shared.checkpointer.end();
        let _ = self.checkpointer.join();
        let conn = conn.map_err(|_| fault::unavailable("the writer's thread had panicked"))?;
        Ok((conn, self.lock))
    }

    /// Empties the log into the file, so that it is whole by itself. The lock goes last.
    fn finish(self, shared: &Shared) -> Result<()> {
        let (conn, _lock) = self.join(shared)?;
        if shared.has_stopped() {
            // After a failed sync the log is for the next start to read.
            return Ok(());
        }
        let busy = checkpoint::checkpoint(&conn, "TRUNCATE")?;
        if busy {
            tracing::info!("a reader holds the log open; the next start empties it");
        }
        Ok(())
    }
}

/// Without `close` the log stays as it is: what a crash leaves, as far as a process can do that to itself.
impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.readers.close();
        if let Some(owner) = self.owner.take() {
            owner.queue.close();
            let threads = owner.threads.into_inner().unwrap_or_else(PoisonError::into_inner);
            if let Some(threads) = threads {
                let _ = threads.join(&self.shared);
            }
        }
    }
}
