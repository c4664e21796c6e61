//! A signing secret: whatever the text, a key or a reason of bounded length; and a key signs.
#![no_main]
#![allow(dead_code)]

#[path = "../../crates/engine/src/sign.rs"]
mod sign;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match sign::SignKey::parse(text) {
        Ok(key) => {
            let mut out = String::new();
            key.sign_into("msg_1", "1614265330", b"{}", &mut out);
            assert!(out.starts_with("v1,") || out.starts_with("v1a,"));
            assert_eq!(format!("{key:?}"), "SignKey([hidden])");
        }
        Err(error) => assert!(error.to_string().len() < 120),
    }
});
