//! attempts.tsv, read by one thread and by two: whatever the bytes, the same rows or the same error, and every row in
//! its bounds.
#![no_main]

use ledger::FactsError;
use ledger::attempts::{Options, scan};
use libfuzzer_sys::fuzz_target;
use std::num::NonZeroUsize;
use std::path::Path;

const ENDPOINTS: &[u8] =
    b"endpoint_id\tstate\tmax_attempts\tbackoff_base_s\tdispatch_gap_s\nep-alpha\tactive\t3\t10\t70\n";

fn rows(path: &Path, jobs: usize) -> Result<Vec<(u64, String, Option<u32>, i64)>, String> {
    let endpoints = ledger::endpoints::Endpoints::parse(ENDPOINTS, "endpoints.tsv").expect("good endpoints");
    let options = Options {
        jobs: NonZeroUsize::new(jobs).expect("not zero"),
        check_ids: true,
    };
    let mut found = Vec::new();
    let scanned = scan(
        path,
        "attempts.tsv",
        &endpoints.index(),
        options,
        &|_| {},
        |row| {
            assert!(row.attempt_no >= 1 && row.finish_ts >= row.start_ts && !row.attempt_id().is_empty());
            found.push((row.line, row.attempt_id().to_owned(), row.endpoint, row.start_ts));
            Ok::<(), FactsError>(())
        },
    );
    let scanned = scanned.map_err(|error| error.to_string())?;
    assert_eq!(usize::try_from(scanned.rows), Ok(found.len()));
    Ok(found)
}

fuzz_target!(|bytes: &[u8]| {
    let path = std::env::temp_dir().join(format!("duehook-fuzz-{}.tsv", std::process::id()));
    std::fs::write(&path, bytes).expect("a file in the temporary folder");
    let one = rows(&path, 1);
    assert_eq!(one, rows(&path, 2));
    if let Err(error) = one {
        assert!(error.contains("attempts.tsv"));
    }
    let _ = std::fs::remove_file(path);
});
