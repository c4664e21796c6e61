//! The judge: re-derives every decision from contract and ledger, and never sees the scheduler.
//!
//! Of our crates it depends on `contract` alone, dev-dependencies too, and takes from it nouns only: every rule here was
//! written from `spec/` a second time, so that an error in the scheduler has no twin here. It reads facts with a
//! reader of its own. Cannot judge is an error and never a clean report (I7).

mod facts;
mod json;
pub mod judge;
pub mod round;
#[cfg(feature = "testing")]
pub mod testing;
pub mod waits;

pub use facts::FactsError;
