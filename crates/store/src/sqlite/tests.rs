//! What only the inside can try: a commit that fails for want of room, one that fails for good, a queue that is full,
//! commands that share a commit, and a log that starts over.

use super::fault::Fault;
use super::{Options, SqliteStore};
use crate::{
    AppFields, EndpointFields, EndpointKey, Level, NewMessage, Reading, Secret, Start, StartGate, Store,
    StoreError,
};
use bytes::Bytes;
use contract::ledger::EndpointState;
use contract::{BootInstant, Instant, MessageId};
use rusqlite::ffi;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

fn now() -> Reading {
    Reading {
        wall: Instant::from_unix_ms(1_700_000_000_000),
        boot: BootInstant::from_ms(1),
    }
}

/// Lets everything start; counts; and waits first, where a test holds the writer.
struct Gate {
    start: Start,
    hold: Mutex<Option<mpsc::Receiver<()>>>,
    reserved: AtomicUsize,
    released: AtomicUsize,
}

impl StartGate for Gate {
    fn try_reserve(&self, _: EndpointKey, _: &NewMessage) -> Option<Start> {
        // The lock is free again before the wait.
        let hold = self.hold.lock().unwrap().take();
        if let Some(hold) = hold {
            let _ = hold.recv();
        }
        self.reserved.fetch_add(1, Ordering::SeqCst);
        Some(self.start)
    }
    fn release(&self, _: EndpointKey) {
        self.released.fetch_add(1, Ordering::SeqCst);
    }
}

struct World {
    store: Arc<SqliteStore>,
    app: crate::App,
    gate: Arc<Gate>,
}

impl World {
    async fn new(store: Arc<SqliteStore>) -> Self {
        let app = AppFields::default();
        let app = store.create_app(app, now().wall).await.unwrap();
        let contract = store.put_contract("r", "{}").await.unwrap();
        store
            .set_contract(Level::Organisation, Some(contract))
            .await
            .unwrap();
        store.node_up("n", "b", now()).await.unwrap();
        let secret = Secret {
            key: "s".to_owned(),
            expires_at: None,
        };
        let fields = EndpointFields::default();
        store
            .create_endpoint(app.key, fields, EndpointState::Active, secret, "me", now().wall)
            .await
            .unwrap();
        let start = Start {
            started_at: now().wall,
            retry: contract,
            endpoint: contract,
        };
        let gate = Gate {
            start,
            hold: Mutex::default(),
            reserved: AtomicUsize::new(0),
            released: AtomicUsize::new(0),
        };
        Self {
            store,
            app,
            gate: Arc::new(gate),
        }
    }

    fn message(&self, bytes: usize) -> NewMessage {
        NewMessage {
            id: MessageId::at_unix_ms(5),
            app: self.app.key,
            event_id: None,
            event_type: "a".to_owned(),
            channels: None,
            payload: Bytes::from(vec![b'x'; bytes]),
            contract: None,
            idempotency_key: None,
            now: now(),
        }
    }

    async fn accept(&self, bytes: usize) -> crate::Result<crate::Accepted> {
        self.store.accept(self.message(bytes), self.gate.clone()).await
    }

    /// Accepts in a task that holds the writer until the sender speaks or is dropped, or the test ends.
    async fn hold(&self) -> (mpsc::Sender<()>, tokio::task::JoinHandle<()>) {
        let (release, hold) = mpsc::channel();
        *self.gate.hold.lock().unwrap() = Some(hold);
        let (store, message, gate) = (self.store.clone(), self.message(1), self.gate.clone());
        let held = tokio::spawn(async move { drop(store.accept(message, gate).await.unwrap()) });
        // The writer is in the gate once it took the receiver away.
        while self.gate.hold.lock().unwrap().is_some() {
            tokio::task::yield_now().await;
        }
        (release, held)
    }
}

fn open(path: &Path, options: Options) -> Arc<SqliteStore> {
    SqliteStore::open(path, options).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn commands_that_wait_share_a_commit() {
    let folder = tempfile::tempdir().unwrap();
    let world = Arc::new(World::new(open(&folder.path().join("s.db"), Options::default())).await);
    let (release, held) = world.hold().await;
    let before = world.store.commit_stats();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let world = world.clone();
        tasks.spawn(async move { world.accept(10).await.unwrap() });
    }
    while world.store.queue().unwrap().len() < 100 {
        tokio::task::yield_now().await;
    }
    release.send(()).unwrap();
    held.await.unwrap();
    tasks.join_all().await;
    let after = world.store.commit_stats();
    assert_eq!(
        (after.commands - before.commands, after.commits - before.commits),
        (101, 1)
    );
    assert_eq!(after.by_time.iter().sum::<u64>(), after.commits);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_commit_takes_no_more_commands_than_it_may() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        batch: 10,
        ..Options::default()
    };
    let world = Arc::new(World::new(open(&folder.path().join("s.db"), options)).await);
    let (release, held) = world.hold().await;
    let before = world.store.commit_stats().commits;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..29 {
        let world = world.clone();
        tasks.spawn(async move { world.accept(10).await.unwrap() });
    }
    while world.store.queue().unwrap().len() < 29 {
        tokio::task::yield_now().await;
    }
    drop(release);
    held.await.unwrap();
    tasks.join_all().await;
    assert_eq!(world.store.commit_stats().commits - before, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_full_queue_refuses_new_messages_and_makes_the_engine_wait() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        queue: 2,
        ..Options::default()
    };
    let world = Arc::new(World::new(open(&folder.path().join("s.db"), options)).await);
    let (release, held) = world.hold().await;
    let mut queued = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let world = world.clone();
        queued.spawn(async move { world.accept(1).await.map(drop) });
    }
    while world.store.queue().unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert!(matches!(world.accept(1).await, Err(StoreError::Full)));
    let store = world.store.clone();
    let waits = tokio::spawn(async move { store.settle_and_claim(vec![], vec![]).await.map(drop) });
    tokio::task::yield_now().await;
    assert!(!waits.is_finished());
    drop(release);
    held.await.unwrap();
    waits.await.unwrap().unwrap();
    queued
        .join_all()
        .await
        .into_iter()
        .collect::<Result<(), _>>()
        .unwrap();
    assert_eq!(
        world.store.counts().await.unwrap().sending,
        3,
        "the refused one left nothing"
    );
}

/// A full disk: nothing is acknowledged, reads work, and once there is room again the same store goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_full_disk_is_an_outage_that_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let room = |pages: i64| {
        move |conn: &rusqlite::Connection| {
            let set = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
            conn.query_row(&format!("PRAGMA max_page_count = {pages}"), [], set)
                .unwrap();
        }
    };
    let world = World::new(SqliteStore::open_prepared(&path, Options::default(), room(60)).unwrap()).await;
    let mut taken = 0;
    let refused = loop {
        match world.accept(20_000).await {
            Ok(_) => taken += 1,
            Err(error) => break error,
        }
        assert!(taken < 100, "there is no limit");
    };
    assert!(matches!(&refused, StoreError::Unavailable { .. }), "{refused:?}");
    assert!(refused.to_string().contains("full"), "{refused}");
    let endpoints = world.store.endpoints_to_serve().await.unwrap();
    assert_eq!(endpoints.len(), 1, "reads work");
    let counts = world.store.counts().await.unwrap();
    assert_eq!(usize::try_from(counts.sending).unwrap(), taken);
    assert!(matches!(
        world.accept(20_000).await,
        Err(StoreError::Unavailable { .. })
    ));
    let grow = room(10_000);
    world
        .store
        .write(move |work| {
            grow(work.conn);
            Ok(())
        })
        .await
        .unwrap();
    world.accept(20_000).await.unwrap();
    assert_eq!(world.store.counts().await.unwrap().sending, counts.sending + 1);
}

/// A commit that fails takes its neighbours with it: each is told, and what the gate reserved is given back.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_failed_commit_gives_reservations_back() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(open(&folder.path().join("s.db"), Options::default())).await;
    let (release, hold) = mpsc::channel();
    *world.gate.hold.lock().unwrap() = Some(hold);
    let (store, message, gate) = (world.store.clone(), world.message(1), world.gate.clone());
    let accepting = tokio::spawn(async move { store.accept(message, gate).await });
    while world.gate.hold.lock().unwrap().is_some() {
        tokio::task::yield_now().await;
    }
    let store = world.store.clone();
    let failing = tokio::spawn(async move {
        let busy = ffi::Error::new(ffi::SQLITE_BUSY);
        let fail = move |_: &mut super::Work<'_>| -> Result<(), Fault> {
            Err(rusqlite::Error::SqliteFailure(busy, None).into())
        };
        store.write(fail).await
    });
    while world.store.queue().unwrap().len() < 1 {
        tokio::task::yield_now().await;
    }
    release.send(()).unwrap();
    assert!(matches!(
        accepting.await.unwrap(),
        Err(StoreError::Unavailable { .. })
    ));
    assert!(matches!(
        failing.await.unwrap(),
        Err(StoreError::Unavailable { .. })
    ));
    let gate = &world.gate;
    assert_eq!(
        (
            gate.reserved.load(Ordering::SeqCst),
            gate.released.load(Ordering::SeqCst)
        ),
        (1, 1)
    );
    assert_eq!(world.store.counts().await.unwrap().sending, 0);
}

/// What the writer knows is what the database holds: a commit that failed leaves no trace in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_failed_commit_leaves_nothing_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(open(&folder.path().join("s.db"), Options::default())).await;
    let app = world.app.key;
    let busy = || {
        Fault::Sqlite(rusqlite::Error::SqliteFailure(
            ffi::Error::new(ffi::SQLITE_BUSY),
            None,
        ))
    };
    let failed = world.store.write(move |work| -> Result<(), Fault> {
        let fields = EndpointFields::default();
        let secret = Secret {
            key: "s".to_owned(),
            expires_at: None,
        };
        let state = EndpointState::Active;
        let new = super::admin::NewEndpoint {
            app,
            fields,
            state,
            secret,
            by: "me".to_owned(),
            now: now().wall,
        };
        super::admin::create_endpoint(work, &new)?;
        assert_eq!(
            work.known.wanted_by(app, "a", None).map(|wanted| wanted.len()),
            Some(2)
        );
        Err(busy())
    });
    assert!(matches!(failed.await, Err(StoreError::Unavailable { .. })));
    let seq = world.store.write(|work| Ok(work.known.seq)).await.unwrap();
    let accepted = world.accept(1).await.unwrap();
    assert_eq!(accepted.deliveries, 1);
    let last = world.store.write(|work| Ok(work.known.seq)).await.unwrap();
    assert_eq!(last, seq + 3, "message, opened, started");
}

/// An I/O error is the end: nobody knows what a failed sync left on the disk. A restart reads the log.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_io_error_stops_all_writing_until_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let world = World::new(open(&path, Options::default())).await;
    let kept = world.accept(1).await.unwrap().message.id;
    let broken = |_: &mut super::Work<'_>| -> Result<(), Fault> {
        Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_IOERR_FSYNC), None).into())
    };
    assert!(matches!(
        world.store.write(broken).await,
        Err(StoreError::Corrupt { .. })
    ));
    assert!(matches!(world.accept(1).await, Err(StoreError::Corrupt { .. })));
    assert!(matches!(
        world.store.node_up("n", "b", now()).await,
        Err(StoreError::Corrupt { .. })
    ));
    assert!(
        world.store.message_by_id(kept).await.unwrap().is_some(),
        "reads work"
    );
    world.store.close().await.unwrap();
    drop(world);
    let store = open(&path, Options::default());
    assert!(store.message_by_id(kept).await.unwrap().is_some());
    store.node_up("n", "b", now()).await.unwrap();
}

/// The log starts over once it is long, while the store is in use: it does not grow without bound.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_log_starts_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let world = World::new(open(&path, Options::default())).await;
    let pages = || world.store.shared.checkpointer.pages();
    while pages() < 8192 {
        world.accept(4 << 20).await.unwrap();
    }
    for _ in 0..2000 {
        world.accept(1).await.unwrap();
        if pages() < 1024 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(pages() < 1024, "{}", pages());
    let log = std::fs::metadata(folder.path().join("s.db-wal")).unwrap().len();
    assert!(log <= 64 << 20, "cut back to what is kept: {log}");
}
