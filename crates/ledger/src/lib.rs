//! Reading facts for the planner: endpoints, attempts, channels and queue, strictly, from bytes, streamed.
//!
//! A fact that breaks its form is an error with file, line, what was found and what would be right (I7); nothing is
//! guessed or skipped. Knows no rule of a round: those stand in `schedule`. The judges have readers of their own.

pub mod attempts;
pub mod channels;
mod chunks;
pub mod endpoints;
mod error;
mod hash;
mod ids;
pub mod queue;
mod swar;
mod table;
mod turns;

pub use error::FactsError;
pub use hash::{Sha256Hex, sha256_hex};
