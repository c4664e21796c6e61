//! The one loop that touches the world: claim → send → settle → commit; target guard and signing.
//!
//! [`Engine::start`] recovers what the last run left and starts the loop; [`EngineHandle`] is what the server holds.
//! Decisions are `schedule`'s, state is the store's: here are the clocks, the sockets and the order of things.
//! Keeps I1, I2, I4 and I9; each file says which.

mod attempt;
mod chores;
pub mod clock;
mod config;
pub mod connector;
mod contracts;
mod cycle;
mod files;
mod gate;
pub mod guard;
mod handle;
pub mod header;
mod lane;
mod names;
mod options;
mod pulse;
mod recovery;
mod shared;
pub mod sign;
mod stats;
pub mod target;
pub mod tls;
pub mod wire;

pub use handle::{Engine, EngineHandle, Shutdown};
pub use options::Options;
pub use stats::{LATENESS_BUCKETS_MS, Stats};
