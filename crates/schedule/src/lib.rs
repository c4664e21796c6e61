//! Verbs: pure decisions about deliveries ([`law`], [`jitter`], [`retry_after`], [`settle()`], [`admit()`], [`pace`],
//! [`states`]) and the planner of both file rounds ([`round`]).
//!
//! No clock, no randomness, no I/O: time and draws are arguments, decisions are values. Keeps I1 (never early), I2
//! (never too many), I4 (only `active` receives), I5 (the boundary is explicit) and I6 (units are types).
//!
//! A unit cannot be mixed with another, nor multiplied by a count:
//!
//! ```
//! use contract::{Duration, Instant};
//! assert_eq!(Instant::from_unix_ms(5) + Duration::from_ms(7), Instant::from_unix_ms(12));
//! ```

pub mod admit;
pub mod jitter;
pub mod law;
pub mod outcome;
pub mod pace;
pub mod retry_after;
pub mod round;
pub mod settle;
pub mod states;

pub use admit::{Admission, BlockReason, Candidate, DeferReason, Until, admit, due};
pub use jitter::DrawKey;
pub use law::LawWait;
pub use outcome::{Answer, classify};
pub use pace::{Moment, Pace};
pub use settle::{Attempted, Decision, Elapsed, settle};
