//! Asks `audit` for both reports. It holds no rule: it sorts what can go wrong into contract and facts.

use crate::files::{QueueFiles, RetryFiles};
use audit::FactsError;
use audit::round::{queue, retry};
use contract::ContractError;
use contract::rounds::{QueueRoundContract, RetryRoundContract};
use serde_json::Value;
use std::path::Path;

/// What kept the gate from judging.
#[derive(Debug)]
pub(super) enum Failed {
    /// The contract is unusable.
    Contract(String),
    /// A fact is missing or wrong.
    Facts(String),
}

impl From<FactsError> for Failed {
    fn from(error: FactsError) -> Self {
        Self::Facts(error.to_string())
    }
}

impl From<ContractError> for Failed {
    fn from(error: ContractError) -> Self {
        Self::Contract(error.to_string())
    }
}

/// The report of a retry round, without `inputs` and `build`; its rows where they are wanted.
pub(super) fn plan(files: &RetryFiles, rows: bool) -> Result<Value, Failed> {
    let (bytes, name) = contract_bytes(&files.contract)?;
    let contract = RetryRoundContract::read(&bytes, &name)?;
    let derived = retry::derive(
        &contract,
        &files.endpoints,
        &files.attempts,
        retry::Options {
            rows,
            ..retry::Options::default()
        },
    )?;
    Ok(derived.to_json())
}

/// The report of a queue round, without `inputs` and `build`, and the contract it was derived by.
pub(super) fn appraise(files: &QueueFiles, now: i64) -> Result<(Value, QueueRoundContract), Failed> {
    let (bytes, name) = contract_bytes(&files.contract)?;
    let contract = QueueRoundContract::read(&bytes, &name)?;
    let derived = queue::derive(&contract, &files.channels, &files.queue, now)?;
    Ok((derived.to_json(), contract))
}

/// The bytes of a contract file, and what its errors call it.
fn contract_bytes(path: &Path) -> Result<(Vec<u8>, String), Failed> {
    let name = path.display().to_string();
    match std::fs::read(path) {
        Ok(bytes) => Ok((bytes, name)),
        Err(error) => Err(Failed::Contract(format!("{name}: cannot be read: {error}"))),
    }
}
