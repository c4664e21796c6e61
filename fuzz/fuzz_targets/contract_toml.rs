//! A contract file: whatever the bytes, a contract or an error that can be shown; and a contract survives its canonical
//! form unchanged.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match contract::parse_bytes(bytes, "fuzz.toml") {
        Ok(parsed) => {
            let again = contract::Contract::from_canonical(&parsed.canonical());
            assert_eq!(again.as_ref().ok(), Some(&parsed));
        }
        Err(error) => {
            assert!(!error.problems().is_empty());
            assert!(error.render(80, false).contains("fuzz.toml"));
        }
    }
});
