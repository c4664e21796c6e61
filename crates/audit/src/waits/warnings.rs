//! What is legal in a contract and surely not meant: the advice of `duehook contract check`.

use super::{interval_after, law};
use contract::model::{Anchor, Contract, Jitter};
use contract::{Duration, RetryNo};
use std::fmt;

/// A short outage of a receiver lasts this long; a contract that gives up within it kills everything.
const SHORT_OUTAGE: Duration = Duration::from_secs(3600);

/// One piece of advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The clause, as `retry.backoff.cap`.
    pub clause: &'static str,
    /// What is odd about it, with numbers.
    pub text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.clause, self.text)
    }
}

/// Every retry of a contract, gone through once.
struct Survey {
    /// The longest wait before jitter, or with decorrelated jitter the longest drawn one.
    longest: Duration,
    /// The shortest drawn wait.
    shortest: Duration,
    /// Age of a delivery at its last attempt, if attempts take no time: at least and at most.
    last: (Duration, Duration),
    /// Retries that the schedule has.
    retries: u32,
}

fn survey(contract: &Contract) -> Survey {
    let retry = &contract.retry;
    let mut survey = Survey {
        longest: Duration::ZERO,
        shortest: Duration::MAX,
        last: (Duration::ZERO, Duration::ZERO),
        retries: 0,
    };
    let mut widest = None;
    for n in (1..retry.max_attempts).map(RetryNo::new) {
        // The widest interval, step by step: `interval` would go through the whole history again for each n.
        let Some((low, high)) = interval_after(contract, n, widest) else {
            break;
        };
        widest = Some(high);
        let before_jitter = match retry.jitter {
            Jitter::Decorrelated => high,
            _ => law(contract, n).unwrap_or(Duration::ZERO),
        };
        survey.longest = survey.longest.max(before_jitter);
        survey.shortest = survey.shortest.min(low);
        let (low, high) = (low + retry.slack, high + retry.slack);
        survey.last = match retry.anchor {
            Anchor::First => (low, high),
            Anchor::End | Anchor::Start => (survey.last.0 + low, survey.last.1 + high),
        };
        survey.retries = n.get();
    }
    survey
}

/// Everything in the contract that is legal and surely not meant.
#[must_use]
pub fn warnings(contract: &Contract) -> Vec<Warning> {
    let retry = &contract.retry;
    let survey = survey(contract);
    let mut found = Vec::new();
    let mut warn = |clause, text| found.push(Warning { clause, text });
    let wanted = retry.max_attempts.saturating_sub(1);
    if let Some(cap) = retry.backoff.cap.filter(|_| wanted > 0) {
        if law(contract, RetryNo::new(1)) == Some(cap) {
            warn(
                "retry.backoff.cap",
                format!("the cap of {cap} is the first wait already, so that no wait ever grows"),
            );
        } else if survey.longest < cap {
            let longest = survey.longest;
            warn(
                "retry.backoff.cap",
                format!("no wait reaches the cap of {cap}: the longest is {longest}"),
            );
        }
    }
    if survey.retries < wanted {
        let (attempts, has) = (retry.max_attempts, survey.retries + 1);
        warn(
            "retry.max_attempts",
            format!("{attempts} attempts, and the schedule stops after {has}"),
        );
    }
    if let Some(age) = retry.max_age.filter(|age| survey.last.0 > *age) {
        let last = survey.last.0;
        warn(
            "retry.max_age",
            format!("the last retry comes at {last} or later, when a delivery is dead since {age}"),
        );
    }
    if wanted == 0 {
        let text = "one attempt and no retry: any outage kills every delivery";
        warn("retry.max_attempts", text.to_owned());
    } else if survey.last.1 < SHORT_OUTAGE {
        let last = survey.last.1;
        warn(
            "retry",
            format!("the last retry comes within {last}: an outage of an hour kills every delivery"),
        );
    }
    let floor = retry.backoff.floor;
    if survey.retries > 0 && survey.shortest < floor {
        let shortest = survey.shortest;
        warn(
            "retry.jitter",
            format!("jitter can make a wait as short as {shortest}, below the floor of {floor}"),
        );
    }
    found
}
