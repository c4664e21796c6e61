//! Backups of a running store.

use crate::sqlite::factory;
use contract::ledger::EndpointState;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::Store;
use store::conformance::World;
use store::conformance::world::{BOOT, NODE, at};
use store::sqlite::{BackupError, Options, SqliteStore};

/// A copy taken while messages come in is one moment: it opens, and its ledger adds up.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_backup_of_a_running_store_is_one_moment() {
    let place = factory();
    let world = World::new(&place).await;
    world.endpoint(EndpointState::Active).await;
    let first = world.accept_and_start(world.message(5)).await.message.id;
    let (store, gate) = (Arc::clone(&world.store), world.open_gate(10));
    let messages: Vec<_> = (10..200).map(|ms| world.message(ms)).collect();
    let writing = tokio::spawn(async move {
        for message in messages {
            store.accept(message, gate.clone()).await.unwrap();
        }
    });
    let copy = factory();
    let reader = SqliteStore::open_read_only(place.path()).unwrap();
    let pages = Arc::new(AtomicU64::new(0));
    let told = pages.clone();
    let progress = Arc::new(move |done, _| told.store(done, Ordering::SeqCst));
    reader.backup(&copy.path(), progress).await.unwrap();
    assert!(pages.load(Ordering::SeqCst) > 10);
    writing.await.unwrap();
    let restored = SqliteStore::open(copy.path(), Options::default()).unwrap();
    let started = restored.node_up(NODE, BOOT, at(999)).await.unwrap();
    assert!(
        started.after_crash,
        "as a crash at that moment would have left it"
    );
    assert!(restored.message_by_id(first).await.unwrap().is_some());
    let sink = restored
        .read_ledger(Box::<store::conformance::Records>::default())
        .await
        .unwrap();
    let ledger: Box<store::conformance::Records> = sink.into_any().downcast().unwrap();
    assert_eq!(ledger.messages.len(), ledger.attempts.len());
    assert_eq!(
        restored.sending(None, 1000).await.unwrap().len(),
        ledger.attempts.len()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_backup_takes_no_files_place_and_leaves_none_behind() {
    let place = factory();
    let store = place.store();
    let copy = place.path().with_file_name("copy.db");
    store.backup(&copy, Arc::new(|_, _| {})).await.unwrap();
    let before = std::fs::read(&copy).unwrap();
    let again = store.backup(&copy, Arc::new(|_, _| {})).await;
    assert!(matches!(again, Err(BackupError::Exists { .. })));
    assert_eq!(std::fs::read(&copy).unwrap(), before);
    let nowhere = place.path().with_file_name("no-such").join("copy.db");
    assert!(matches!(
        store.backup(&nowhere, Arc::new(|_, _| {})).await,
        Err(BackupError::Io { .. })
    ));
    let left = std::fs::read_dir(place.path().parent().unwrap()).unwrap();
    let mut left: Vec<_> = left
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(
        left,
        [
            "copy.db",
            "duehook.db",
            "duehook.db-shm",
            "duehook.db-wal",
            "duehook.db.lock"
        ]
    );
}
