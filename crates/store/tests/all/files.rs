//! A store's file: one owner, readers beside it, what is refused and how, and what is left of it when the power goes.

use crate::sqlite::{Sqlite, factory};
use std::path::Path;
use std::sync::Arc;
use store::conformance::World;
use store::conformance::world::{BOOT, Closed, NODE, at};
use store::sqlite::{OpenError, Options, SqliteStore};
use store::{Store, StoreError};

fn refusal(path: &Path) -> String {
    match SqliteStore::open(path, Options::default()) {
        Ok(_) => panic!("opened"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_second_owner_is_refused_and_told_who_has_it() {
    let place = factory();
    let first = place.store();
    let error = refusal(&place.path());
    let owner = format!("process {}", std::process::id());
    assert!(
        error.contains("in use by another duehook") && error.contains(&owner),
        "{error}"
    );
    let link = place.path().with_file_name("other-name.db");
    std::os::unix::fs::symlink(place.path(), &link).unwrap();
    assert!(refusal(&link).contains("in use"), "by another name");
    drop(first);
    place.store();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn closing_gives_the_file_free_and_whole() {
    let place = factory();
    let store = place.store();
    store.close().await.unwrap();
    place.store();
    let log = std::fs::metadata(place.path().with_file_name("duehook.db-wal"));
    assert!(
        log.map_or(0, |log| log.len()) == 0,
        "the log was emptied into the file"
    );
}

#[test]
fn the_file_is_for_its_owners_eyes() {
    use std::os::unix::fs::PermissionsExt;
    let place = factory();
    let _store = place.store();
    for name in ["duehook.db", "duehook.db-wal"] {
        let mode = std::fs::metadata(place.path().with_file_name(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{name}: it holds signing secrets");
    }
}

#[test]
fn what_is_no_store_is_refused_and_left_alone() {
    let place = factory();
    let path = place.path();
    std::fs::write(&path, "not a database, and longer than a header of one hundred bytes would be, for good measure, and then some").unwrap();
    let before = std::fs::read(&path).unwrap();
    assert!(SqliteStore::open(&path, Options::default()).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let foreign = path.with_file_name("foreign.db");
    rusqlite::Connection::open(&foreign)
        .unwrap()
        .execute_batch("CREATE TABLE addresses (x)")
        .unwrap();
    let error = refusal(&foreign);
    assert!(error.contains("database of another program"), "{error}");
    let error = refusal(&path.with_file_name("no-such-folder").join("x.db"));
    assert!(error.contains("no-such-folder"), "{error}");
    let folder = path.with_file_name("folder.db");
    std::fs::create_dir(&folder).unwrap();
    assert!(refusal(&folder).contains("folder.db"));
}

#[test]
fn a_newer_schema_is_refused() {
    let place = factory();
    drop(place.store());
    let conn = rusqlite::Connection::open(place.path()).unwrap();
    conn.execute(
        "INSERT INTO schema_migrations VALUES (2, 'from the future', 'x', 0)",
        [],
    )
    .unwrap();
    drop(conn);
    let error = refusal(&place.path());
    assert!(
        error.contains("schema is version 2 (from the future), this program knows up to 1"),
        "{error}"
    );
    let error = SqliteStore::open_read_only(place.path())
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("newer duehook"), "{error}");
}

#[test]
fn a_reader_needs_a_store_that_exists() {
    let place = factory();
    let error = SqliteStore::open_read_only(place.path()).err().unwrap();
    assert!(matches!(error, OpenError::Missing { .. }));
    assert!(!place.path().exists(), "reading makes no file");
    rusqlite::Connection::open(place.path())
        .unwrap()
        .execute_batch("VACUUM")
        .unwrap();
    let error = SqliteStore::open_read_only(place.path())
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("its schema lacks version 1"), "{error}");
}

/// `audit`, `probe`, `explain` and `ledger export` work beside a running server, and change nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_reader_works_beside_the_owner() {
    let place = factory();
    let world = World::new(&place).await;
    world.endpoint(contract::ledger::EndpointState::Active).await;
    let reader = SqliteStore::open_read_only(place.path()).unwrap();
    for expected in 1..4 {
        let accepted = world.accept(world.message(expected)).await;
        assert_eq!(
            reader.message_by_id(accepted.message.id).await.unwrap(),
            Some((*accepted.message).clone())
        );
        assert_eq!(reader.counts().await.unwrap().pending, expected);
    }
    let refused = reader.accept(world.message(9), Arc::new(Closed)).await;
    assert!(matches!(refused, Err(StoreError::Unavailable { reason, .. }) if reason.contains("HTTP API")));
    drop(world);
    assert_eq!(
        reader.counts().await.unwrap().pending,
        3,
        "after the owner is gone"
    );
    drop(reader);
    let alone = SqliteStore::open_read_only(place.path()).unwrap();
    assert_eq!(
        alone.counts().await.unwrap().pending,
        3,
        "with a log that a crash left"
    );
}

/// The power goes after each commit, and in the midst of the next: what was acknowledged is there, what was not is
/// not, and the ledger is readable.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_power_goes_at_any_byte_of_the_log() {
    let place = factory();
    let world = World::new(&place).await;
    world.endpoint(contract::ledger::EndpointState::Active).await;
    let log = place.path().with_file_name("duehook.db-wal");
    let length = || std::fs::metadata(&log).unwrap().len();
    let mut acknowledged = vec![(length(), None)];
    for ms in 10..16 {
        let accepted = world.accept_and_start(world.message(ms)).await;
        acknowledged.push((length(), Some(accepted.message.id)));
    }
    let bytes = std::fs::read(&log).unwrap();
    for (count, pair) in acknowledged.windows(2).enumerate() {
        let (from, to) = (pair[0].0, pair[1].0);
        for cut in [from, from + 1, from + 31, from + 5000, to - 1] {
            let kept = reopened(&place, &bytes[..usize::try_from(cut).unwrap()]).await;
            assert_eq!(kept.messages.len(), count, "cut at {cut} of {from}..{to}");
            assert_eq!((kept.delivery_events.len(), kept.attempts.len()), (count, count));
        }
        let mut torn = bytes.clone();
        let at = usize::try_from(to - 100).unwrap();
        torn[at..].fill(0);
        assert_eq!(
            reopened(&place, &torn).await.messages.len(),
            count,
            "torn at {at}"
        );
    }
    assert_eq!(
        reopened(&place, &bytes).await.messages.len(),
        acknowledged.len() - 1
    );
}

/// The ledger of a copy of the store whose log is this.
async fn reopened(place: &Sqlite, log: &[u8]) -> store::conformance::Records {
    let copy = factory();
    std::fs::copy(place.path(), copy.path()).unwrap();
    std::fs::write(copy.path().with_file_name("duehook.db-wal"), log).unwrap();
    let store = copy.store();
    let started = store.node_up(NODE, BOOT, at(99)).await.unwrap();
    assert!(started.after_crash);
    let sink = store
        .read_ledger(Box::<store::conformance::Records>::default())
        .await
        .unwrap();
    *sink.into_any().downcast().unwrap()
}
