//! The canonical form of a contract, as a ledger from elsewhere may hold it: never a panic, and what is accepted is
//! written back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(parsed) = contract::Contract::from_canonical(text) {
        let again = contract::Contract::from_canonical(&parsed.canonical());
        assert_eq!(again.as_ref().ok(), Some(&parsed));
    }
});
