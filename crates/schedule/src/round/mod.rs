//! The planner of the two file rounds (spec/retry-round.md, spec/queue-round.md): pure folds over facts.
//!
//! Each round has its own rule of waiting in its own function, and neither shares one with the live engine: the retry
//! round goes by the judged row's own number, the queue round by attempts already made, the engine by retries (I5).

pub mod queue;
pub mod retry;
