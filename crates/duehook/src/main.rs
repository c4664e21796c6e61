//! The `duehook` binary: one file a command.
fn main() {}
