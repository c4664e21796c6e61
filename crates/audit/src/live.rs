//! The audit of the live ledger (spec/engine.md): re-derives every decision from contract and ledger, and names each breach
//! with its rows. It holds the ledger of one run in memory; it never sees the scheduler.

mod delivery;
mod endpoint;
mod finding;

pub use finding::{Finding, Kind};

use contract::ledger::{
    AttemptRecord, ContractRecord, DeliveryEvent, EndpointEvent, MessageRecord, NodeEvent,
};
use contract::{Contract, DeliveryNo, Instant};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// A whole ledger, as one moment saw it. Records in any order.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// The contracts that rows refer to.
    pub contracts: Vec<ContractRecord>,
    /// Accepted messages.
    pub messages: Vec<MessageRecord>,
    /// State changes of endpoints.
    pub endpoint_events: Vec<EndpointEvent>,
    /// What nodes saw.
    pub node_events: Vec<NodeEvent>,
    /// What happened to deliveries.
    pub delivery_events: Vec<DeliveryEvent>,
    /// Requests.
    pub attempts: Vec<AttemptRecord>,
}

/// What the audit found.
#[derive(Clone, Debug, Serialize)]
pub struct Audit {
    /// Attempts judged.
    pub attempts: usize,
    /// Deliveries judged.
    pub deliveries: usize,
    /// Messages judged.
    pub messages: usize,
    /// Findings by kind.
    pub counts: BTreeMap<&'static str, usize>,
    /// Every finding.
    pub findings: Vec<Finding>,
    /// No finding.
    pub ok: bool,
}

type DeliveryId<'a> = (&'a str, &'a str, DeliveryNo);

/// One delivery's records, each by `seq`.
#[derive(Default)]
struct Delivery<'a> {
    events: Vec<&'a DeliveryEvent>,
    attempts: Vec<&'a AttemptRecord>,
}

/// What the two scans share.
struct Facts<'a> {
    contracts: HashMap<&'a str, Contract>,
    /// Endpoint events by endpoint, by `seq`.
    states: HashMap<&'a str, Vec<&'a EndpointEvent>>,
    /// Stretches in which no node was up.
    down: Vec<(Instant, Instant)>,
    as_of: Instant,
}

/// Judges a ledger as it stood at `as_of`.
#[must_use]
pub fn audit(ledger: &Ledger, as_of: Instant) -> Audit {
    let mut findings = Vec::new();
    let facts = Facts {
        contracts: contracts(ledger, &mut findings),
        states: states(ledger),
        down: downtime(ledger),
        as_of,
    };
    let mut deliveries: BTreeMap<DeliveryId<'_>, Delivery<'_>> = BTreeMap::new();
    for event in &ledger.delivery_events {
        let id = (
            event.message_id.as_str(),
            event.endpoint_id.as_str(),
            event.delivery_no,
        );
        deliveries.entry(id).or_default().events.push(event);
    }
    for attempt in &ledger.attempts {
        let id = (
            attempt.message_id.as_str(),
            attempt.endpoint_id.as_str(),
            attempt.delivery_no,
        );
        deliveries.entry(id).or_default().attempts.push(attempt);
    }
    let pace = endpoint::scan(ledger, &facts, &mut findings);
    for (id, delivery) in &mut deliveries {
        delivery.events.sort_by_key(|event| event.seq);
        delivery
            .attempts
            .sort_by_key(|attempt| (attempt.attempt_no, attempt.seq));
        delivery::judge(*id, delivery, &facts, &pace, &mut findings);
    }
    lost(ledger, &mut findings);
    report(ledger, deliveries.len(), findings)
}

fn report(ledger: &Ledger, deliveries: usize, findings: Vec<Finding>) -> Audit {
    let mut counts = BTreeMap::new();
    for finding in &findings {
        *counts.entry(finding.kind.word()).or_insert(0) += 1;
    }
    Audit {
        attempts: ledger.attempts.len(),
        deliveries,
        messages: ledger.messages.len(),
        counts,
        ok: findings.is_empty(),
        findings,
    }
}

fn contracts<'a>(ledger: &'a Ledger, findings: &mut Vec<Finding>) -> HashMap<&'a str, Contract> {
    let mut known = HashMap::new();
    for record in &ledger.contracts {
        match Contract::from_canonical(&record.canonical) {
            Ok(contract) if contract.rev() == record.rev => {
                known.insert(record.rev.as_str(), contract);
            }
            Ok(contract) => findings.push(Finding::new(
                Kind::UnknownContract,
                format!(
                    "contract {}: its text has the revision {}",
                    record.rev,
                    contract.rev()
                ),
                vec![record.rev.clone()],
            )),
            Err(error) => findings.push(Finding::new(
                Kind::UnknownContract,
                format!("contract {}: unreadable: {error}", record.rev),
                vec![record.rev.clone()],
            )),
        }
    }
    known
}

fn states(ledger: &Ledger) -> HashMap<&str, Vec<&EndpointEvent>> {
    let mut states: HashMap<&str, Vec<&EndpointEvent>> = HashMap::new();
    for event in &ledger.endpoint_events {
        states.entry(event.endpoint_id.as_str()).or_default().push(event);
    }
    for events in states.values_mut() {
        events.sort_by_key(|event| event.seq);
    }
    states
}

/// From the last node's `down` to the next `up`.
fn downtime(ledger: &Ledger) -> Vec<(Instant, Instant)> {
    use contract::ledger::NodeEventKind::{Down, Step, Up};
    let mut events: Vec<&NodeEvent> = ledger.node_events.iter().collect();
    events.sort_by_key(|event| event.seq);
    let (mut up, mut since, mut spans) = (0u32, None, Vec::new());
    for event in events {
        match event.event {
            Up => {
                if let Some(from) = since.take() {
                    spans.push((from, event.at));
                }
                up += 1;
            }
            Down => {
                up = up.saturating_sub(1);
                if up == 0 {
                    since = Some(event.at);
                }
            }
            Step => {}
        }
    }
    if let Some(from) = since {
        spans.push((from, Instant::MAX));
    }
    spans
}

/// A message without the deliveries it was due.
fn lost(ledger: &Ledger, findings: &mut Vec<Finding>) {
    let mut opened: HashMap<&str, u32> = HashMap::new();
    for event in &ledger.delivery_events {
        if event.event == contract::ledger::DeliveryEventKind::Opened
            && event.delivery_no == DeliveryNo::FIRST
        {
            *opened.entry(event.message_id.as_str()).or_default() += 1;
        }
    }
    for message in &ledger.messages {
        let found = opened.remove(message.message_id.as_str()).unwrap_or(0);
        if found != message.deliveries {
            findings.push(Finding::new(
                Kind::Lost,
                format!(
                    "{}: was due {} deliveries, {found} were opened",
                    message.message_id, message.deliveries
                ),
                vec![message.message_id.clone()],
            ));
        }
    }
    for (message, found) in opened {
        findings.push(Finding::new(
            Kind::StateWithoutEvidence,
            format!("{message}: {found} deliveries of a message that no record accepted"),
            vec![message.to_owned()],
        ));
    }
}

#[cfg(test)]
mod tests;
