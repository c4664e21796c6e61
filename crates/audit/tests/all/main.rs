//! The auditor's tests, in one binary.

mod vectors;
mod waits;
