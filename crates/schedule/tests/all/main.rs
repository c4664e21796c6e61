//! The rules of the contract, the engine's decisions and both rounds, each a named test with its worked numbers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod admission;
mod compile_fail;
mod jitter;
mod laws;
mod pacing;
mod queue_round;
mod retry_after;
mod retry_round;
mod settling;
mod state_tables;
mod support;
mod vectors;
