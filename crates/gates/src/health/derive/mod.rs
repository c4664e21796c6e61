//! Derives the reports of both rounds again, from contract and facts alone: a reader and a reading of the law of its own.
//!
//! Written from spec/retry-round.md and spec/queue-round.md, and from no other code: it is worth something only as long
//! as it shares nothing with what it judges (I8).

mod facts;
mod queue;
mod retry;

use contract::ContractError;
use std::path::Path;

pub(super) use queue::appraise;
pub(super) use retry::plan;

/// What kept the gate from judging.
#[derive(Debug)]
pub(super) enum Failed {
    /// The contract is unusable.
    Contract(String),
    /// A fact is missing or wrong.
    Facts(String),
}

/// The bytes of a contract file, and what its errors call it.
fn contract_bytes(path: &Path) -> Result<(Vec<u8>, String), Failed> {
    let name = path.display().to_string();
    match std::fs::read(path) {
        Ok(bytes) => Ok((bytes, name)),
        Err(error) => Err(Failed::Contract(format!("{name}: cannot be read: {error}"))),
    }
}

fn unusable(error: &ContractError) -> Failed {
    Failed::Contract(error.to_string())
}

/// A sum or product cut to 64 bits: integers saturate, nothing wraps.
fn cut(wide: i128) -> i64 {
    i64::try_from(wide).unwrap_or(if wide < 0 { i64::MIN } else { i64::MAX })
}
