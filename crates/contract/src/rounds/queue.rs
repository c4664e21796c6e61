//! `queue.env`, the contract of the queue round (spec/queue-round.md).

use super::env::Env;
use crate::error::{ContractError, quoted};

const UNIT: &str = "QUEUE_DELAY_UNIT";
const POLICY: &str = "QUEUE_BACKOFF_POLICY";
const BASE: &str = "QUEUE_BACKOFF_BASE_MS";
const MAX_ATTEMPTS: &str = "QUEUE_MAX_ATTEMPTS";

/// The unit of `received_at_value` and of `--now`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayUnit {
    /// Thousandths of a second.
    Milliseconds,
    /// Seconds.
    Seconds,
}

impl DelayUnit {
    /// The word in files and reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Milliseconds => "milliseconds",
            Self::Seconds => "seconds",
        }
    }
}

/// The one policy of the queue round; the native contract has the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackoffPolicy {
    /// `exponential`.
    Exponential,
}

/// The contract of a queue round. Every number fits a signed 64-bit integer, so that SQL can hold it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueRoundContract {
    /// The unit of times in the queue.
    pub delay_unit: DelayUnit,
    /// The law of waits.
    pub policy: BackoffPolicy,
    /// The base wait in milliseconds, whatever the unit above; at least 1.
    pub backoff_base_ms: i64,
    /// Attempts after which an item that cannot go out now is dead; at least 1.
    pub max_attempts: i64,
}

impl QueueRoundContract {
    /// Every key of the file; each is required.
    pub const KEYS: [&'static str; 4] = [UNIT, POLICY, BASE, MAX_ATTEMPTS];

    /// Reads the bytes of a `queue.env`; `file_name` is what errors call it.
    ///
    /// # Errors
    /// Everything that is wrong in the file, each with key, line, what was found and what would be right.
    pub fn read(bytes: &[u8], file_name: &str) -> Result<Self, ContractError> {
        let env = Env::read(bytes, file_name, &Self::KEYS)?;
        let delay_unit = env.text(UNIT).and_then(|text| match text {
            "milliseconds" => Some(DelayUnit::Milliseconds),
            "seconds" => Some(DelayUnit::Seconds),
            other => {
                let found = format!("{}, an unknown unit", quoted(other));
                env.wrong(UNIT, found, "write `milliseconds` or `seconds`");
                None
            }
        });
        let policy = env.text(POLICY).and_then(|text| match text {
            "exponential" => Some(BackoffPolicy::Exponential),
            other => {
                let found = format!("{}, a policy that the queue round does not have", quoted(other));
                env.wrong(
                    POLICY,
                    found,
                    "write `exponential`; a native contract file has the other laws",
                );
                None
            }
        });
        let backoff_base_ms = env.integer(BASE, 1, i64::MAX);
        let max_attempts = env.integer(MAX_ATTEMPTS, 1, i64::MAX);
        let contract = (|| {
            Some(Self {
                delay_unit: delay_unit?,
                policy: policy?,
                backoff_base_ms: backoff_base_ms?,
                max_attempts: max_attempts?,
            })
        })();
        env.finish(contract)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "QUEUE_DELAY_UNIT=milliseconds\nQUEUE_BACKOFF_POLICY=exponential\n\
                        QUEUE_BACKOFF_BASE_MS=30000\nQUEUE_MAX_ATTEMPTS=3\n";

    #[test]
    fn the_worked_contract_is_read() {
        let contract = QueueRoundContract::read(GOOD.as_bytes(), "queue.env").expect("good");
        assert_eq!(contract.delay_unit, DelayUnit::Milliseconds);
        assert_eq!((contract.backoff_base_ms, contract.max_attempts), (30_000, 3));
    }

    #[test]
    fn bad_input_is_refused_with_key_line_found_and_right() {
        for (from, to, says) in [
            (
                "=milliseconds",
                "=minutes",
                "queue.env:1: QUEUE_DELAY_UNIT: found `minutes`, an unknown unit; write `milliseconds` or `seconds`",
            ),
            (
                "=exponential",
                "=linear",
                "queue.env:2: QUEUE_BACKOFF_POLICY: found `linear`, a policy",
            ),
            (
                "=30000",
                "=0",
                "queue.env:3: QUEUE_BACKOFF_BASE_MS: found `0`, which is too small; write a whole number of at least 1",
            ),
            ("=30000", "=30s", "`30s`, which is not a whole number"),
            ("=3\n", "=-3\n", "which is negative"),
            (
                "QUEUE_MAX_ATTEMPTS=3\n",
                "",
                "QUEUE_MAX_ATTEMPTS: found nothing: the key is missing",
            ),
        ] {
            let text = GOOD.replace(from, to);
            let error = QueueRoundContract::read(text.as_bytes(), "queue.env")
                .expect_err(to)
                .to_string();
            assert!(error.contains(says), "{to:?}: {error}");
        }
    }
}
