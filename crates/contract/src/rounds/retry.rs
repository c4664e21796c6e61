//! `retry.env`, the contract of the retry round (spec/retry-round.md).

use super::env::Env;
use crate::error::{ContractError, quoted};

const FACTOR: &str = "WEBHOOK_BACKOFF_FACTOR";
const SLACK: &str = "WEBHOOK_ADMIT_SLACK_S";
const DEAD_LETTER: &str = "WEBHOOK_DEAD_LETTER_AFTER";
const SUCCESS_MIN: &str = "WEBHOOK_SUCCESS_MIN";
const SUCCESS_MAX: &str = "WEBHOOK_SUCCESS_MAX";

/// The contract of a retry round. Every number fits a signed 64-bit integer, so that SQL can hold it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryRoundContract {
    /// Growth per attempt, at least 1.
    pub backoff_factor: i64,
    /// Added to every wait, in seconds; at least 0.
    pub admit_slack_s: i64,
    /// So many too-early attempts one endpoint may have before it is over its dead-letter mark; at least 0.
    pub dead_letter_after: i64,
    /// The least status that counts as success, from 100.
    pub success_min: u16,
    /// The largest status that counts as success, to 599.
    pub success_max: u16,
}

impl RetryRoundContract {
    /// Every key of the file; each is required.
    pub const KEYS: [&'static str; 5] = [FACTOR, SLACK, DEAD_LETTER, SUCCESS_MIN, SUCCESS_MAX];

    /// Reads the bytes of a `retry.env`; `file_name` is what errors call it.
    ///
    /// # Errors
    /// Everything that is wrong in the file, each with key, line, what was found and what would be right.
    pub fn read(bytes: &[u8], file_name: &str) -> Result<Self, ContractError> {
        let env = Env::read(bytes, file_name, &Self::KEYS)?;
        let backoff_factor = env.integer(FACTOR, 1, i64::MAX);
        let admit_slack_s = env.integer(SLACK, 0, i64::MAX);
        let dead_letter_after = env.integer(DEAD_LETTER, 0, i64::MAX);
        let status = |key| env.integer(key, 100, 599).and_then(|n| u16::try_from(n).ok());
        let success = status(SUCCESS_MIN).zip(status(SUCCESS_MAX));
        if let Some((min, max)) = success.filter(|(min, max)| min > max) {
            let found = format!("{}, which is above {SUCCESS_MAX}={max}", quoted(&min.to_string()));
            env.wrong(
                SUCCESS_MIN,
                found,
                "write a minimum that is not above the maximum",
            );
        }
        let contract = (|| {
            let (success_min, success_max) = success?;
            Some(Self {
                backoff_factor: backoff_factor?,
                admit_slack_s: admit_slack_s?,
                dead_letter_after: dead_letter_after?,
                success_min,
                success_max,
            })
        })();
        env.finish(contract)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# Retry contract\nWEBHOOK_BACKOFF_FACTOR=2\nWEBHOOK_ADMIT_SLACK_S=5\nWEBHOOK_DEAD_LETTER_AFTER=3\n\
                        WEBHOOK_SUCCESS_MIN=200\nWEBHOOK_SUCCESS_MAX=299\n";

    fn error(text: &str) -> String {
        RetryRoundContract::read(text.as_bytes(), "retry.env")
            .expect_err(text)
            .to_string()
    }

    #[test]
    fn the_worked_contract_is_read() {
        let want = RetryRoundContract {
            backoff_factor: 2,
            admit_slack_s: 5,
            dead_letter_after: 3,
            success_min: 200,
            success_max: 299,
        };
        let crlf = GOOD.replace('\n', "\r\n");
        let bom = format!("\u{feff}{GOOD}");
        for text in [
            GOOD,
            &crlf,
            &bom,
            GOOD.trim_end(),
            &format!("\n  \n{GOOD}  # the end"),
        ] {
            assert_eq!(
                RetryRoundContract::read(text.as_bytes(), "retry.env").expect(text),
                want
            );
        }
    }

    #[test]
    fn bad_input_is_refused_with_key_line_found_and_right() {
        for (from, to, says) in [
            (
                "FACTOR=2",
                "FACTOR=0",
                "retry.env:2: WEBHOOK_BACKOFF_FACTOR: found `0`, which is too small; write a whole number of at least 1",
            ),
            ("FACTOR=2", "FACTOR=-2", "found `-2`, which is negative"),
            (
                "FACTOR=2",
                "FACTOR=two",
                "found `two`, which is not a whole number",
            ),
            ("FACTOR=2", "FACTOR=", "found ``, which is not a whole number"),
            ("FACTOR=2", "FACTOR=2.0", "not a whole number"),
            ("FACTOR=2", "FACTOR= 2", "not a whole number"),
            ("FACTOR=2", "FACTOR=2 ", "not a whole number"),
            ("FACTOR=2", "FACTOR=+2", "not a whole number"),
            (
                "FACTOR=2",
                "FACTOR=9223372036854775808",
                "does not fit 64 bits; write a whole number of at least 1; the largest is 9223372036854775807",
            ),
            (
                "SLACK_S=5",
                "SLACK_S=-1",
                "retry.env:3: WEBHOOK_ADMIT_SLACK_S: found `-1`, which is negative",
            ),
            ("MIN=200", "MIN=99", "from 100 to 599"),
            (
                "MIN=200",
                "MIN=300",
                "retry.env:5: WEBHOOK_SUCCESS_MIN: found `300`, which is above WEBHOOK_SUCCESS_MAX=299",
            ),
            ("MAX=299", "MAX=600", "which is too large"),
            (
                "WEBHOOK_SUCCESS_MAX=299\n",
                "",
                "WEBHOOK_SUCCESS_MAX: found nothing: the key is missing",
            ),
            (
                "MAX=299\n",
                "MAX=299\nWEBHOOK_SUCCESS_MAX=299\n",
                "retry.env:7: WEBHOOK_SUCCESS_MAX: found `WEBHOOK_SUCCESS_MAX` a second time; it is in line 6 already",
            ),
            (
                "MAX=299\n",
                "MAX=299\nWEBHOOK_MODE=x\n",
                "the unknown key `WEBHOOK_MODE`",
            ),
            ("MAX=299\n", "MAX=299\nhello\n", "a line without `=`"),
            (
                "WEBHOOK_SUCCESS_MAX=",
                "export WEBHOOK_SUCCESS_MAX=",
                "the unknown key `export WEBHOOK_SUCCESS_MAX`",
            ),
            ("WEBHOOK_SUCCESS_MAX=", "WEBHOOK_SUCCESS_MAX =", "without spaces"),
            ("# Retry", "# Re\0try", "retry.env:1: found a NUL byte"),
            ("=5", "=5\0", "retry.env:3: found a NUL byte"),
        ] {
            let text = GOOD.replace(from, to);
            assert!(error(&text).contains(says), "{to:?}: {}", error(&text));
        }
    }

    #[test]
    fn every_problem_is_reported_and_an_empty_file_lacks_every_key() {
        assert_eq!(error("").matches("is missing").count(), 5);
        let both = error(&GOOD.replace("FACTOR=2", "FACTOR=x").replace("=299", "=y"));
        assert_eq!(both.matches("not a whole number").count(), 2, "{both}");
    }

    #[test]
    fn bytes_that_are_not_utf8_are_named_with_their_line() {
        let mut bytes = GOOD.as_bytes().to_vec();
        let at = GOOD.find("=5").expect("the slack") + 1;
        bytes[at] = 0xff;
        let error = RetryRoundContract::read(&bytes, "retry.env")
            .expect_err("not UTF-8")
            .to_string();
        assert!(
            error.contains("retry.env:3:") && error.contains("not UTF-8"),
            "{error}"
        );
    }
}
