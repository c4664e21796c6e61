//! The failure clock of an endpoint (field report 17): it starts at the first failure after a success, is reset by a
//! success and by re-activation, and disables the endpoint when the contract says so.

use super::Cycle;
use crate::chores::Chore;
use contract::Instant;
use contract::ledger::{EndpointState, Outcome};
use contract::model::EndpointClauses;
use schedule::outcome::{disables, failed_too_long};
use std::sync::atomic::Ordering;
use store::{EndpointKey, Settle};

impl Cycle {
    /// Takes note of how an attempt ended.
    pub(super) fn health(&mut self, key: EndpointKey, settle: &Settle) {
        let Some(slot) = self.slots.get_mut(&key) else {
            return;
        };
        let was = slot.failing_since;
        match settle.outcome {
            Outcome::Succeeded => slot.failing_since = None,
            Outcome::Failed | Outcome::TimedOut | Outcome::Refused => {
                slot.failing_since = was.or(Some(settle.ended_at));
            }
            // Ours, not the receiver's.
            Outcome::Interrupted => return,
        }
        let since = slot.failing_since;
        let config = slot.lane.config();
        let clauses = &config.contract.contract.endpoint;
        let why = since.and_then(|since| verdict(clauses, settle, since));
        // A person who drains an endpoint decides what becomes of it; only an active one is disabled.
        let disable = why.filter(|_| config.state() == EndpointState::Active && !slot.disabling);
        slot.disabling |= disable.is_some();
        if since != was {
            self.chore(Chore::Failing(key, since));
        }
        if let (Some(why), Some(since)) = (disable, since) {
            let disabled = &self.shared.counters.disabled_endpoints;
            disabled.fetch_add(1, Ordering::Relaxed);
            self.chore(Chore::Disable(key, since, why));
        }
    }
}

/// Why the endpoint must be disabled after this failure.
fn verdict(clauses: &EndpointClauses, settle: &Settle, since: Instant) -> Option<String> {
    if disables(clauses, settle.status) {
        let status = settle.status.unwrap_or(0);
        return Some(format!("answered {status} (disable_on)"));
    }
    if failed_too_long(clauses, since, settle.ended_at) {
        let limit = clauses.disable_after.unwrap_or_default();
        let long = settle.ended_at.since(since);
        return Some(format!("no success for {long}, at most {limit} (disable_after)"));
    }
    None
}
