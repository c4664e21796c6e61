//! The one writer: a thread that owns the writing connection, takes commands from a bounded queue, gathers those
//! that wait into one transaction, commits once, and only then answers (I3). Leaves what a command does to its
//! closure, and checkpoints to `checkpoint`.
//!
//! A command's own error is found before it writes, or is its first statement's: its neighbours in the commit never
//! notice. Any other error takes the whole commit with it: nothing of it is acknowledged, reservations are given
//! back, and what the writer knows is read again from the database.

use super::checkpoint::Checkpointer;
use super::fault::{Failure, Fault, Outcome, unavailable};
use super::registry::{Node, Registry};
use super::stats::Meter;
use crate::{Change, Counts, StoreError};
use rusqlite::Connection;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use tokio::sync::{broadcast, mpsc, oneshot};

/// What a command writes with.
pub(super) struct Work<'a> {
    pub(super) conn: &'a Connection,
    pub(super) known: &'a mut Registry,
    /// Told after the commit.
    pub(super) changes: &'a mut Vec<Change>,
    /// Done when the commit fails.
    pub(super) undo: &'a mut Vec<Undo>,
    /// Rows written: bounds the commit.
    pub(super) rows: usize,
}

/// Gives something back that a command took outside the database.
pub(super) type Undo = Box<dyn FnOnce() + Send>;

impl Work<'_> {
    /// The next place in commit order.
    pub(super) fn next_seq(&mut self) -> i64 {
        self.known.seq += 1;
        self.known.seq
    }
}

/// A command in the queue.
trait Command: Send {
    /// True when nobody waits for the answer any more and nothing was done yet.
    fn is_abandoned(&self) -> bool;
    /// Does it. An error is the database's and ends the commit.
    fn run(&mut self, work: &mut Work<'_>) -> Result<(), rusqlite::Error>;
    /// Answers, after the commit.
    fn answer(self: Box<Self>, failure: Option<&Failure>);
}

struct Call<F, R> {
    todo: Option<F>,
    result: Option<Result<R, StoreError>>,
    reply: oneshot::Sender<Result<Handed<R>, StoreError>>,
    lost: Option<Lost<R>>,
}

/// What to do with a result that was committed and that nobody took: its caller went away.
pub(super) type Lost<R> = Box<dyn FnOnce(R) + Send>;

/// A committed result on its way to its caller.
struct Handed<R> {
    result: Option<R>,
    lost: Option<Lost<R>>,
}

impl<R> Handed<R> {
    fn take(mut self) -> Option<R> {
        self.result.take()
    }
}

impl<R> Drop for Handed<R> {
    fn drop(&mut self) {
        if let (Some(result), Some(lost)) = (self.result.take(), self.lost.take()) {
            lost(result);
        }
    }
}

impl<F, R> Command for Call<F, R>
where
    F: FnOnce(&mut Work<'_>) -> Outcome<R> + Send,
    R: Send,
{
    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn run(&mut self, work: &mut Work<'_>) -> Result<(), rusqlite::Error> {
        let Some(todo) = self.todo.take() else {
            return Ok(());
        };
        let seq = work.known.seq;
        match todo(work) {
            Ok(result) => self.result = Some(Ok(result)),
            Err(Fault::Store(error)) => {
                work.known.seq = seq;
                self.result = Some(Err(error));
            }
            Err(Fault::Sqlite(error)) => return Err(error),
        }
        Ok(())
    }

    fn answer(self: Box<Self>, failure: Option<&Failure>) {
        let lost = self.lost;
        let result = match (failure, self.result) {
            (None, Some(result)) => result.map(|result| Handed {
                result: Some(result),
                lost,
            }),
            // Its own error does not depend on the commit.
            (Some(_), Some(Err(error))) => Err(error),
            (Some(failure), _) => Err(failure.to_error()),
            (None, None) => Err(unavailable("the command was not run")),
        };
        // Where nobody waits any more, `Handed` sees to what must not be lost.
        let _ = self.reply.send(result);
    }
}

/// What the writer shares with the rest of the process.
pub(super) struct Shared {
    pub(super) changes: broadcast::Sender<Change>,
    pub(super) meter: Meter,
    pub(super) checkpointer: Checkpointer,
    /// Set once: the store must not be written to before a restart.
    stopped: OnceLock<Failure>,
    counts: Mutex<Counts>,
    /// The boot that due times compare with; 0 before `node_up`.
    pub(super) boot: std::sync::atomic::AtomicI64,
}

impl Shared {
    pub(super) fn new(counts: Counts) -> Self {
        // A reader that lags looks at everything again: this bounds memory, not truth.
        let (changes, _) = broadcast::channel(1024);
        Self {
            changes,
            meter: Meter::default(),
            checkpointer: Checkpointer::default(),
            stopped: OnceLock::new(),
            counts: Mutex::new(counts),
            boot: std::sync::atomic::AtomicI64::new(0),
        }
    }

    pub(super) fn counts(&self) -> Counts {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has_stopped(&self) -> bool {
        self.stopped.get().is_some()
    }

    /// Stops all writing until a restart.
    pub(super) fn stop(&self, failure: &Failure) {
        if self.stopped.set(failure.clone()).is_ok() {
            tracing::error!(
                reason = failure.reason(),
                "the store stops: restart to recover from its log"
            );
        }
    }
}

/// The queue's near end.
#[derive(Clone)]
pub(super) struct Queue(mpsc::Sender<Box<dyn Command>>);

/// What waits for a place in the queue, and what is refused when there is none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// New work from outside: refused when the queue is full.
    OrRefuse,
    /// What the engine owes: waits for a place.
    OrWait,
}

impl Queue {
    /// Runs a closure in the writer and waits for its commit.
    pub(super) async fn call<R, F>(
        &self,
        place: Place,
        todo: F,
        lost: Option<Lost<R>>,
    ) -> Result<R, StoreError>
    where
        F: FnOnce(&mut Work<'_>) -> Outcome<R> + Send + 'static,
        R: Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let command = Box::new(Call {
            todo: Some(todo),
            result: None,
            reply,
            lost,
        });
        let closed = || unavailable("the store is closed");
        match place {
            Place::OrRefuse => self.0.try_send(command).map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => StoreError::Full,
                mpsc::error::TrySendError::Closed(_) => closed(),
            })?,
            Place::OrWait => self.0.send(command).await.map_err(|_| closed())?,
        }
        let handed = answer.await.map_err(|_| closed())??;
        handed.take().ok_or_else(closed)
    }

    /// Commands that wait.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.max_capacity() - self.0.capacity()
    }

    pub(super) fn downgrade(&self) -> WeakQueue {
        WeakQueue(self.0.downgrade())
    }

    /// Puts a command into the queue whose answer nobody awaits. It must not block: it may be called anywhere.
    pub(super) fn post<F>(&self, todo: F)
    where
        F: FnOnce(&mut Work<'_>) -> Outcome<()> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let command = Box::new(Posted(Call {
            todo: Some(todo),
            result: None,
            reply,
            lost: None,
        }));
        drop(answer);
        if let Err(mpsc::error::TrySendError::Full(command)) = self.0.try_send(command) {
            let queue = self.0.clone();
            // The queue is full and this may be any thread: a thread of its own waits for the place.
            std::thread::spawn(move || {
                let _ = queue.blocking_send(command);
            });
        }
    }
}

/// The queue's near end for those who must not keep the store open.
pub(super) struct WeakQueue(mpsc::WeakSender<Box<dyn Command>>);

impl WeakQueue {
    pub(super) fn get(&self) -> Option<Queue> {
        self.0.upgrade().map(Queue)
    }
}

/// The queue's near end until the store is closed.
pub(super) struct Outbox(RwLock<Option<Queue>>);

impl Outbox {
    pub(super) fn new(queue: Queue) -> Self {
        Self(RwLock::new(Some(queue)))
    }

    pub(super) fn get(&self) -> Option<Queue> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn close(&self) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// A command that is run although nobody waits for it.
struct Posted<F>(Call<F, ()>);

impl<F> Command for Posted<F>
where
    F: FnOnce(&mut Work<'_>) -> Outcome<()> + Send,
{
    fn is_abandoned(&self) -> bool {
        false
    }

    fn run(&mut self, work: &mut Work<'_>) -> Result<(), rusqlite::Error> {
        self.0.run(work)
    }

    fn answer(self: Box<Self>, failure: Option<&Failure>) {
        if let Some(failure) = failure {
            tracing::warn!(
                reason = failure.reason(),
                "a claim could not be taken back; the next start will"
            );
        }
    }
}

/// Rows after which a commit takes no further command: keeps one commit's time and memory bounded under fan-out.
const ROWS: usize = 20_000;

/// The writer's own side.
pub(super) struct Writer {
    conn: Connection,
    known: Registry,
    queue: mpsc::Receiver<Box<dyn Command>>,
    batch: usize,
    shared: Arc<Shared>,
}

/// Makes the queue and its writer.
pub(super) fn new(
    conn: Connection,
    known: Registry,
    options: super::Options,
    shared: Arc<Shared>,
) -> (Queue, Writer) {
    let (sender, queue) = mpsc::channel(options.queue.max(1));
    let writer = Writer {
        conn,
        known,
        queue,
        batch: options.batch.max(1),
        shared,
    };
    (Queue(sender), writer)
}

impl Writer {
    /// Runs until every sender is gone, or `close` closed the queue; then all that was queued is done.
    pub(super) fn run(mut self) -> Connection {
        let shared = Arc::clone(&self.shared);
        while let Some(first) = self.queue.blocking_recv() {
            let permit = shared.checkpointer.permit();
            self.commit(first);
            drop(permit);
        }
        self.conn
    }

    fn commit(&mut self, first: Box<dyn Command>) {
        let shared = Arc::clone(&self.shared);
        let started = shared.meter.begin();
        // A node that this very commit brings up is not up when it fails.
        let node = self.known.node;
        let mut done = Vec::new();
        let (mut changes, mut undo) = (Vec::new(), Vec::new());
        let result = match shared.stopped.get() {
            Some(failure) => {
                done.push(first);
                Err(failure.clone())
            }
            None => self.gather(first, &mut done, &mut changes, &mut undo),
        };
        match &result {
            Ok(()) => {
                *shared.counts.lock().unwrap_or_else(PoisonError::into_inner) = self.known.counts();
                shared.meter.committed(started, done.len());
            }
            Err(failure) => self.fail(failure, undo, node),
        }
        let failure = result.err();
        if failure.is_none() {
            for change in changes {
                let _ = shared.changes.send(change);
            }
        }
        for command in done {
            command.answer(failure.as_ref());
        }
    }

    /// One transaction: the first command and those that wait behind it.
    fn gather(
        &mut self,
        first: Box<dyn Command>,
        done: &mut Vec<Box<dyn Command>>,
        changes: &mut Vec<Change>,
        undo: &mut Vec<Undo>,
    ) -> Result<(), Failure> {
        let failed = |error: &rusqlite::Error| Failure::of(error);
        let mut next = Some(first);
        let begun = self
            .conn
            .prepare_cached("BEGIN IMMEDIATE")
            .and_then(|mut begin| begin.execute([]));
        if let Err(error) = begun {
            done.extend(next);
            return Err(failed(&error));
        }
        let mut work = Work {
            conn: &self.conn,
            known: &mut self.known,
            changes,
            undo,
            rows: 0,
        };
        while let Some(mut command) = next.take() {
            if !command.is_abandoned() {
                let ran = command.run(&mut work);
                done.push(command);
                ran.map_err(|error| failed(&error))?;
            }
            if done.len() < self.batch && work.rows < ROWS {
                next = self.queue.try_recv().ok();
            }
        }
        self.known.save(&self.conn).map_err(|error| failed(&error))?;
        let committed = self
            .conn
            .prepare_cached("COMMIT")
            .and_then(|mut commit| commit.execute([]));
        committed.map(drop).map_err(|error| failed(&error))
    }

    /// Nothing of the commit is in the database: forget what was made of it.
    fn fail(&mut self, failure: &Failure, undo: Vec<Undo>, node: Option<Node>) {
        for undo in undo {
            undo();
        }
        if self.shared.stopped.get().is_some() {
            return;
        }
        tracing::warn!(
            reason = failure.reason(),
            "a commit failed; nothing of it was acknowledged"
        );
        if failure.stop {
            return self.shared.stop(failure);
        }
        if !self.conn.is_autocommit()
            && let Err(error) = self.conn.execute_batch("ROLLBACK")
        {
            return self
                .shared
                .stop(&Failure::stopped(format!("cannot roll back: {error}")));
        }
        match Registry::load(&self.conn, node) {
            Ok(known) => self.known = known,
            Err(Fault::Sqlite(error)) => {
                self.shared
                    .stop(&Failure::stopped(format!("cannot read the store again: {error}")));
            }
            Err(Fault::Store(error)) => self.shared.stop(&Failure::stopped(error.to_string())),
        }
    }
}
