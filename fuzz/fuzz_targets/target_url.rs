//! An endpoint's URL: whatever the text, a target or a reason; and a target's canonical form is a fixed point that two
//! parsers read alike. The module is taken in alone: the whole engine would bring SQLite and TLS into this build.
#![no_main]
#![allow(dead_code)]

#[path = "../../crates/engine/src/target.rs"]
mod target;

use libfuzzer_sys::fuzz_target;
use target::Target;

fuzz_target!(|text: &str| {
    let Ok(read) = Target::parse(text) else { return };
    let again = Target::parse(read.canonical());
    assert_eq!(again.as_ref(), Ok(&read));
    let host = read.uri().host().expect("a host").trim_matches(['[', ']']);
    let parsed = url::Url::parse(read.canonical()).expect("canonical");
    assert_eq!(
        Some(host),
        parsed.host_str().map(|host| host.trim_matches(['[', ']']))
    );
    assert_eq!(read.literal(), host.parse().ok());
});
