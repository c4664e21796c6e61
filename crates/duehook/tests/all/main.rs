//! The commands as people and programs use them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod bad_inputs;
mod contract_files;
mod demonstration;
mod differential;
mod gates;
mod listening;
