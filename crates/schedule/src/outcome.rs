//! What a status means under a contract (spec/contract.md, `[outcome]` and the disabling clauses of `[endpoint]`).

use contract::model::{EndpointClauses, OutcomeSets, StatusSet};
use contract::{Duration, Instant};

/// What an answer is, by its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Within the success set.
    Success,
    /// A failure that is not retried.
    Terminal,
    /// Any other failure.
    Failure,
}

/// What an answer with this status is; no status (no answer) is a failure.
#[must_use]
pub fn classify(sets: &OutcomeSets, status: Option<u16>) -> Answer {
    match status {
        Some(status) if holds(&sets.success, status) => Answer::Success,
        Some(status) if holds(&sets.terminal, status) => Answer::Terminal,
        Some(_) | None => Answer::Failure,
    }
}

/// Whether one answer with this status disables the endpoint (`disable_on`).
#[must_use]
pub fn disables(clauses: &EndpointClauses, status: Option<u16>) -> bool {
    status.is_some_and(|status| holds(&clauses.disable_on, status))
}

/// Whether an endpoint that has been failing since then has failed too long (`disable_after`).
#[must_use]
pub fn failed_too_long(clauses: &EndpointClauses, failing_since: Instant, now: Instant) -> bool {
    let long_enough = |limit: Duration| now.since(failing_since) >= limit;
    clauses.disable_after.is_some_and(long_enough)
}

fn holds(set: &StatusSet, status: u16) -> bool {
    set.ranges()
        .iter()
        .any(|(low, high)| (*low..=*high).contains(&status))
}
