//! A custom request header: whatever name and value, a header that can be sent or a reason; nothing of ours or of the
//! protocol's is replaced.
#![no_main]
#![allow(dead_code)]

#[path = "../../crates/engine/src/header.rs"]
mod header;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str)| {
    if let Ok((name, value)) = header::check_custom_header(input.0, input.1) {
        let name = name.as_str();
        assert!(!name.starts_with("webhook-") && !name.starts_with("svix-") && name != "host");
        assert!(name != "content-length" && name != "transfer-encoding" && name != "connection");
        assert!(
            !value
                .as_bytes()
                .iter()
                .any(|byte| matches!(byte, b'\r' | b'\n' | 0))
        );
    }
});
