//! attempts.tsv, read by one thread, by two, and by the auditor's own reader: whatever the bytes, the same rows or the
//! same error, every row in its bounds, and both readers accept the same files.
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

fn accepted_by_the_auditor(attempts: &Path) -> bool {
    let contract = contract::rounds::RetryRoundContract::read(
        b"WEBHOOK_BACKOFF_FACTOR=2\nWEBHOOK_ADMIT_SLACK_S=5\nWEBHOOK_DEAD_LETTER_AFTER=3\nWEBHOOK_SUCCESS_MIN=200\n\
          WEBHOOK_SUCCESS_MAX=299\n",
        "retry.env",
    );
    let endpoints = std::env::temp_dir().join(format!("duehook-fuzz-endpoints-{}.tsv", std::process::id()));
    if !endpoints.exists() {
        std::fs::write(&endpoints, ENDPOINTS).expect("a file in the temporary folder");
    }
    let options = audit::round::retry::Options::default();
    audit::round::retry::derive(&contract.expect("a good contract"), &endpoints, attempts, options).is_ok()
}

fuzz_target!(|bytes: &[u8]| {
    let path = std::env::temp_dir().join(format!("duehook-fuzz-{}.tsv", std::process::id()));
    std::fs::write(&path, bytes).expect("a file in the temporary folder");
    let one = rows(&path, 1);
    assert_eq!(one, rows(&path, 2));
    assert_eq!(one.is_ok(), accepted_by_the_auditor(&path), "{one:?}");
    if let Err(error) = one {
        assert!(error.contains("attempts.tsv"));
    }
    let _ = std::fs::remove_file(path);
});
