//! channels.json: whatever the bytes, channels or an error that names the file.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = ledger::channels::Channels::parse(bytes, "channels.json") {
        assert!(error.to_string().contains("channels.json"));
    }
});
