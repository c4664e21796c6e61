//! The contract files of the two file rounds, `retry.env` and `queue.env`: `KEY=value` lines, every key required, no
//! defaults, nothing unknown (I7). What a value *means* stands in `schedule`, `audit` and `probe/`.

mod env;
mod queue;
mod retry;

pub use queue::{BackoffPolicy, DelayUnit, QueueRoundContract};
pub use retry::RetryRoundContract;
