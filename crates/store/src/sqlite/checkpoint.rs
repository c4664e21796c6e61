//! Copies the log into the file, off the writer's path: passively while the writer goes on, and, when the log has
//! grown long, once more with the writer held for a moment, so that the log can start over.

use super::fault::Failure;
use super::writer::Shared;
use rusqlite::Connection;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Pages in the log that are worth a checkpoint: 8 MiB.
const WORTH: i32 = 1024;
/// Pages from which on the log must start over: 64 MiB.
const LONG: i32 = 8192;
/// How long to leave it alone after a checkpoint that a reader stood in the way of.
const PAUSE: Duration = Duration::from_millis(200);

/// The writer's word to the checkpointing thread.
#[derive(Debug, Default)]
pub(super) struct Checkpointer {
    /// Held by the writer for each commit.
    permit: Mutex<()>,
    /// Pages in the log after the last commit.
    pages: AtomicI32,
    ending: AtomicBool,
    bell: Condvar,
    ringing: Mutex<()>,
}

impl Checkpointer {
    pub(super) fn permit(&self) -> MutexGuard<'_, ()> {
        self.permit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called after each commit with the length of the log.
    pub(super) fn log_has(&self, pages: i32) {
        let before = self.pages.swap(pages, Ordering::Relaxed);
        if pages >= WORTH && before < WORTH || pages >= LONG {
            self.bell.notify_one();
        }
    }

    #[cfg(test)]
    pub(super) fn pages(&self) -> i32 {
        self.pages.load(Ordering::Relaxed)
    }

    /// Ends the thread.
    pub(super) fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
        self.bell.notify_one();
    }

    fn wait(&self) {
        let ringing = self.ringing.lock().unwrap_or_else(PoisonError::into_inner);
        // The timeout makes a bell that rang too early harmless.
        drop(self.bell.wait_timeout(ringing, PAUSE));
    }
}

/// The thread.
pub(super) fn run(conn: &Connection, shared: &Arc<Shared>) {
    let checkpointer = &shared.checkpointer;
    let mut last = 0;
    while !checkpointer.ending.load(Ordering::Relaxed) {
        let pages = checkpointer.pages.load(Ordering::Relaxed);
        if pages < WORTH || pages == last {
            checkpointer.wait();
            continue;
        }
        last = pages;
        if let Err(error) = once(conn, checkpointer, pages) {
            let failure = Failure::of(&error);
            if failure.stop {
                return shared.stop(&failure);
            }
            // Busy or no room: the log keeps everything, and the next round tries again.
            tracing::warn!(reason = failure.reason(), "a checkpoint was put off");
            checkpointer.wait();
        }
    }
}

fn once(conn: &Connection, checkpointer: &Checkpointer, pages: i32) -> rusqlite::Result<()> {
    checkpoint(conn, "PASSIVE")?;
    if pages >= LONG {
        // Nearly all is copied: what the writer waits for is the rest and one sync.
        let permit = checkpointer.permit();
        let busy = checkpoint(conn, "RESTART")?;
        drop(permit);
        if busy {
            checkpointer.wait();
        }
    }
    Ok(())
}

/// True when a reader stood in the way.
pub(super) fn checkpoint(conn: &Connection, mode: &str) -> rusqlite::Result<bool> {
    conn.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
        row.get::<_, bool>(0)
    })
}
