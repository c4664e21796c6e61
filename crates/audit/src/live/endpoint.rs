//! The scan by endpoint and time: state at the claim (I4), gap, rate, in-flight window.

use super::{Facts, Finding, Kind, Ledger};
use contract::ledger::{AttemptRecord, EndpointState};
use contract::model::EndpointClauses;
use contract::{Instant, Seq};
use std::collections::HashMap;

/// When each endpoint's limits kept others waiting: the starts and ends of its attempts.
pub(super) struct Pace<'a>(HashMap<&'a str, Vec<&'a AttemptRecord>>);

impl<'a> Pace<'a> {
    /// Did the endpoint's limits keep others waiting between these moments: its in-flight window was full at either
    /// end, or it is paced and something started between them?
    pub(super) fn busy(&self, endpoint: &str, from: Instant, to: Instant, clauses: &EndpointClauses) -> bool {
        let attempts = self.0.get(endpoint).map_or(&[][..], Vec::as_slice);
        let window = usize::try_from(clauses.in_flight).unwrap_or(usize::MAX);
        let open = |at: Instant| {
            let is_open = |attempt: &&&AttemptRecord| {
                attempt.started_at <= at && attempt.ended_at.is_none_or(|end| end >= at)
            };
            attempts.iter().filter(is_open).count()
        };
        let paced = !clauses.min_gap.is_zero() || clauses.rate.is_some();
        let started = |attempt: &&AttemptRecord| attempt.started_at >= from && attempt.started_at <= to;
        open(from) >= window || open(to) >= window || (paced && attempts.iter().any(started))
    }
}

pub(super) fn scan<'a>(ledger: &'a Ledger, facts: &Facts<'a>, findings: &mut Vec<Finding>) -> Pace<'a> {
    let mut by_endpoint: HashMap<&str, Vec<&AttemptRecord>> = HashMap::new();
    for attempt in &ledger.attempts {
        by_endpoint
            .entry(attempt.endpoint_id.as_str())
            .or_default()
            .push(attempt);
    }
    let mut ids: HashMap<&str, Seq> = HashMap::new();
    for attempt in &ledger.attempts {
        if let Some(first) = ids.insert(attempt.attempt_id.as_str(), attempt.seq) {
            let text = format!(
                "{}: its id stands at seq {first} and {}",
                attempt.attempt_id, attempt.seq
            );
            findings.push(Finding::new(
                Kind::DuplicateAttempt,
                text,
                vec![attempt.attempt_id.clone()],
            ));
        }
    }
    for (endpoint, attempts) in &mut by_endpoint {
        attempts.sort_by_key(|attempt| (attempt.started_at, attempt.seq));
        inactive(endpoint, attempts, facts, findings);
        limits(attempts, facts, findings);
    }
    Pace(by_endpoint)
}

/// By `seq`: timestamps cannot order a claim and a drain.
fn inactive(endpoint: &str, attempts: &[&AttemptRecord], facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    let events = facts.states.get(endpoint).map_or(&[][..], Vec::as_slice);
    for attempt in attempts {
        let state = events
            .iter()
            .rev()
            .find(|event| event.seq < attempt.seq)
            .map(|event| event.state);
        if state != Some(EndpointState::Active) {
            let state = state.map_or("not known", EndpointState::word);
            findings.push(Finding::new(
                Kind::ToInactiveEndpoint,
                format!("{}: started while {endpoint} was {state}", attempt.attempt_id),
                vec![attempt.attempt_id.clone()],
            ));
        }
    }
}

fn limits(attempts: &[&AttemptRecord], facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    let mut open: Vec<&AttemptRecord> = Vec::new();
    for (index, attempt) in attempts.iter().enumerate() {
        let Some(contract) = facts.contracts.get(attempt.endpoint_rev.as_str()) else {
            continue;
        };
        let clauses = &contract.endpoint;
        let mut breach = |kind, text: String| {
            findings.push(Finding::new(
                kind,
                format!("{}: {text}", attempt.attempt_id),
                vec![attempt.attempt_id.clone()],
            ));
        };
        if let Some(before) = index.checked_sub(1).map(|at| attempts[at]) {
            let gap = attempt.started_at.since(before.started_at);
            if gap < clauses.min_gap {
                breach(
                    Kind::MinGap,
                    format!(
                        "{gap} after the start of {}, min_gap is {}",
                        before.attempt_id, clauses.min_gap
                    ),
                );
            }
        }
        if let Some(rate) = clauses.rate {
            let behind = usize::try_from(rate.starts).unwrap_or(usize::MAX);
            if let Some(oldest) = index.checked_sub(behind).map(|at| attempts[at])
                && attempt.started_at.since(oldest.started_at) < rate.window
            {
                breach(
                    Kind::Rate,
                    format!(
                        "start {} within {}, the rate is {}",
                        behind + 1,
                        rate.window,
                        rate.starts
                    ),
                );
            }
        }
        open.retain(|other| {
            other
                .ended_at
                .is_none_or(|end| end > attempt.started_at + contract::Duration::from_ms(1))
        });
        open.push(attempt);
        if open.len() > usize::try_from(clauses.in_flight).unwrap_or(usize::MAX) {
            breach(
                Kind::InFlight,
                format!(
                    "{} in flight at once, the limit is {}",
                    open.len(),
                    clauses.in_flight
                ),
            );
        }
    }
}
