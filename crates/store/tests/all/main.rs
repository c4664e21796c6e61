//! The embedded backend against the law of stores, and what is its own: files, settings, faults.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

mod backup;
mod export;
mod files;
mod model;
mod sqlite;

mod conformance {
    store::conformance!(crate::sqlite::factory);
}
