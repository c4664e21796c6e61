//! The ledger as a folder of files.

use crate::sqlite::factory;
use contract::ledger::EndpointState;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::Next;
use store::conformance::World;
use store::export::{ExportError, Format, Manifest, write_folder};

async fn export(world: &World<'_>, out: &Path, format: Format) -> Result<Manifest, ExportError> {
    write_folder(&*world.store, out, format, Arc::new(|_| ())).await
}

/// Two messages whose deliveries and attempts interleave, and an attempt in flight.
async fn story(world: &World<'_>) {
    let endpoint = world.endpoint(EndpointState::Active).await;
    let [first, second] = [world.sending(10).await, world.sending(11).await];
    let mut settle = world.ended(&first, 20, world.retry_at(30));
    settle.error = Some("a\tb\\".to_owned());
    settle.retry_after = Some("-".to_owned());
    world.settle(settle).await;
    world.settle(world.ended(&second, 25, Next::Succeeded)).await;
    let due = world.due(&endpoint, 30).await.remove(0);
    world.claim(due, 31).await.expect("claimed");
}

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_folder_holds_every_record_by_seq() {
    let place = factory();
    let world = World::new(&place).await;
    story(&world).await;
    let out = place.path().with_file_name("ledger");
    let manifest = export(&world, &out, Format::Tsv).await.unwrap();
    let rows: Vec<_> = manifest
        .files
        .iter()
        .map(|(name, entry)| (name.as_str(), entry.rows))
        .collect();
    assert_eq!(
        rows,
        [
            ("attempts.tsv", 3),
            ("contracts.tsv", 1),
            ("delivery_events.tsv", 3),
            ("endpoint_events.tsv", 1),
            ("messages.tsv", 2),
            ("node_events.tsv", 1)
        ]
    );
    let text = std::fs::read_to_string(out.join("manifest.json")).unwrap();
    let written: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(written["format"], "duehook-ledger/1");
    for (name, entry) in &manifest.files {
        let bytes = std::fs::read(out.join(name)).unwrap();
        let sha256: String = Sha256::digest(&bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(
            (entry.sha256.as_str(), &written["files"][name]["sha256"]),
            (sha256.as_str(), &serde_json::json!(sha256))
        );
    }
    let attempts = lines(&out.join("attempts.tsv"));
    assert!(
        attempts[0]
            .starts_with("attempt_id\tseq\tmessage_id\tendpoint_id\tdelivery_no\tattempt_no\tretry_rev")
    );
    let cells: Vec<Vec<&str>> = attempts[1..]
        .iter()
        .map(|line| line.split('\t').collect())
        .collect();
    let seqs: Vec<u64> = cells.iter().map(|row| row[1].parse().unwrap()).collect();
    assert!(seqs.is_sorted(), "{seqs:?}");
    assert_ne!(cells[0][2], cells[1][2], "two messages interleave");
    assert_eq!(
        (cells[0][11], cells[0][12], cells[0][13], cells[0][14]),
        ("failed", "503", "a\\tb\\\\", "\\-")
    );
    assert_eq!((cells[0][15], cells[2][15]), ("-", "1234"));
    assert_eq!(
        (cells[2][10], cells[2][11], cells[2][12]),
        ("-", "-", "-"),
        "in flight"
    );
    let folder = std::fs::read_dir(place.path().parent().unwrap()).unwrap();
    let left: Vec<_> = folder.map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        !left.iter().any(|name| name.to_string_lossy().contains("partial")),
        "{left:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn json_lines_are_the_records() {
    let place = factory();
    let world = World::new(&place).await;
    story(&world).await;
    let out = place.path().with_file_name("ledger");
    export(&world, &out, Format::Jsonl).await.unwrap();
    let ledger = world.ledger().await;
    let mut attempts = ledger.attempts;
    attempts.sort_by_key(|attempt| attempt.seq);
    let read: Vec<contract::ledger::AttemptRecord> = lines(&out.join("attempts.jsonl"))
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(read, attempts);
    let contracts: Vec<contract::ledger::ContractRecord> = lines(&out.join("contracts.jsonl"))
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(contracts, ledger.contracts);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_folder_appears_whole_or_not_at_all() {
    let place = factory();
    let world = World::new(&place).await;
    let out = place.path().with_file_name("ledger");
    std::fs::create_dir(&out).unwrap();
    export(&world, &out, Format::Tsv)
        .await
        .expect("an empty folder is free");
    let again = export(&world, &out, Format::Tsv).await;
    assert!(matches!(again, Err(ExportError::Exists { .. })));
    let nowhere = place.path().with_file_name("no-such").join("ledger");
    assert!(matches!(
        export(&world, &nowhere, Format::Tsv).await,
        Err(ExportError::Io { .. })
    ));
    world.store.close().await.unwrap();
    let closed = place.path().with_file_name("closed");
    let error = export(&world, &closed, Format::Tsv).await.err().unwrap();
    assert!(matches!(error, ExportError::Store(_)));
    let left = std::fs::read_dir(place.path().parent().unwrap()).unwrap();
    let left: Vec<_> = left
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(!left.iter().any(|name| name.starts_with("closed")), "{left:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn progress_is_told_to_the_last_record() {
    let place = factory();
    let world = World::new(&place).await;
    story(&world).await;
    let told = Arc::new(AtomicU64::new(0));
    let tell = {
        let told = told.clone();
        Arc::new(move |records| told.store(records, Ordering::SeqCst))
    };
    write_folder(
        &*world.store,
        &place.path().with_file_name("l"),
        Format::Tsv,
        tell,
    )
    .await
    .unwrap();
    assert_eq!(told.load(Ordering::SeqCst), 11);
}
