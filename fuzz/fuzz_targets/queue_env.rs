//! queue.env: whatever the bytes, a contract or an error that names the file.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = contract::rounds::QueueRoundContract::read(bytes, "queue.env") {
        assert!(!error.problems().is_empty());
        assert!(error.render(80, false).contains("queue.env"));
    }
});
