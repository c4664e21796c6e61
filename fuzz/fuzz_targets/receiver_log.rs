//! A receiver's own log: whatever the bytes, requests or an error that names the file, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut judge = audit::judge::Judge::new(audit::judge::Options::default());
    match judge.receiver("seen.jsonl", bytes) {
        Ok(()) => drop(judge.finish().expect("a report")),
        Err(error) => assert!(error.to_string().contains("seen.jsonl")),
    }
});
