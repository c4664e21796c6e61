//! The auditor's tests, in one binary.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod ledgers;
mod rounds;
mod vectors;
mod waits;
