//! retry.env: whatever the bytes, a contract or an error that names the file.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = contract::rounds::RetryRoundContract::read(bytes, "retry.env") {
        assert!(!error.problems().is_empty());
        assert!(error.render(80, false).contains("retry.env"));
    }
});
