//! What both scans look things up in: contracts, the states of endpoints, when no node was up, and how clocks stepped.
//! Held in memory: it grows with contracts, endpoints and restarts, not with attempts.

use super::elapsed::Elapsed;
use super::finding::{Finding, Findings, Kind};
use contract::ledger::{
    AttemptRecord, ContractRecord, EndpointEvent, EndpointState, NodeEvent, NodeEventKind, Outcome,
};
use contract::{Contract, Duration, Instant, Seq};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// An attempt lasts no longer than its deadline and this, in which it is written down.
const SETTLING: Duration = Duration::from_secs(5);

/// A stretch of time, its end not included.
pub(super) type Span = (Instant, Instant);

#[derive(Default)]
pub(super) struct Context {
    contracts: HashMap<String, Arc<Contract>>,
    states: HashMap<String, Vec<EndpointEvent>>,
    nodes: Vec<NodeEvent>,
    /// Stretches in which no node was up.
    down: Vec<Span>,
    elapsed: Elapsed,
}

impl Context {
    pub(super) fn contract_record(&mut self, record: &ContractRecord, findings: &mut Findings) {
        let wrong = match Contract::from_canonical(&record.canonical) {
            Ok(contract) if contract::revision_of(&record.canonical) == record.rev => {
                self.contracts.insert(record.rev.clone(), Arc::new(contract));
                return;
            }
            Ok(_) => format!(
                "its text has the revision {}",
                contract::revision_of(&record.canonical)
            ),
            Err(error) => error.to_string(),
        };
        let text = format!("contract {}: {wrong}", record.rev);
        findings.add(Finding::new(
            Kind::UnknownContract,
            text,
            vec![record.rev.clone()],
        ));
    }

    pub(super) fn endpoint_event(&mut self, event: &EndpointEvent) {
        match self.states.get_mut(&event.endpoint_id) {
            Some(events) => events.push(event.clone()),
            None => drop(self.states.insert(event.endpoint_id.clone(), vec![event.clone()])),
        }
    }

    pub(super) fn node_event(&mut self, event: &NodeEvent) {
        self.nodes.push(event.clone());
    }

    /// To be called once, when every record is in.
    pub(super) fn ready(&mut self) {
        for events in self.states.values_mut() {
            events.sort_by_key(|event| event.seq);
        }
        self.nodes.sort_by_key(|event| event.seq);
        self.elapsed = Elapsed::of(&self.nodes);
        self.down = self.downtime();
    }

    fn downtime(&self) -> Vec<Span> {
        // Where no node says anything, nothing is known of downtime and nothing is excused by it.
        let mut since = self.nodes.first().map(|_| Instant::from_unix_ms(i64::MIN));
        let (mut up, mut spans) = (BTreeSet::new(), Vec::new());
        for event in &self.nodes {
            let at = self.elapsed.at(&event.node, event.seq, event.at);
            match event.event {
                NodeEventKind::Up => {
                    spans.extend(since.take().map(|from| (from, at)));
                    up.insert(event.node.as_str());
                }
                NodeEventKind::Down => {
                    if up.remove(event.node.as_str()) && up.is_empty() {
                        since = Some(at);
                    }
                }
                NodeEventKind::Step => {}
            }
        }
        spans.extend(since.map(|from| (from, Instant::MAX)));
        spans
    }

    pub(super) fn contract(&self, rev: &str) -> Option<Arc<Contract>> {
        self.contracts.get(rev).cloned()
    }

    /// The state of an endpoint as a record at `seq` found it, by commit order: timestamps cannot order a claim and a
    /// drain. `None` where no record says anything of it.
    pub(super) fn state_at(&self, endpoint: &str, seq: Seq) -> Option<EndpointState> {
        let events = self.states.get(endpoint)?;
        let before = events.partition_point(|event| event.seq < seq);
        events.get(before.checked_sub(1)?).map(|event| event.state)
    }

    /// True when the endpoint was in that state before the record at `seq`, or came into it at that very moment.
    pub(super) fn was(&self, endpoint: &str, states: &[EndpointState], seq: Seq, at: Instant) -> bool {
        let same_moment = |event: &EndpointEvent| event.at == at && states.contains(&event.state);
        self.state_at(endpoint, seq)
            .is_some_and(|state| states.contains(&state))
            || self
                .states
                .get(endpoint)
                .is_some_and(|events| events.iter().any(same_moment))
    }

    /// Stretches in which nothing may be sent to this endpoint: it is not active, or no node is up. In order, joined.
    pub(super) fn closed(&self, endpoint: &str) -> Vec<Span> {
        let mut spans = self.down.clone();
        let events = self.states.get(endpoint).map_or(&[][..], Vec::as_slice);
        for (n, event) in events.iter().enumerate() {
            if event.state != EndpointState::Active {
                let next = events
                    .get(n + 1)
                    .map_or(Instant::MAX, |next| self.elapsed.of_no_node(next.seq, next.at));
                spans.push((self.elapsed.of_no_node(event.seq, event.at), next));
            }
        }
        spans.sort_unstable();
        let mut joined: Vec<Span> = Vec::new();
        for (from, to) in spans {
            match joined.last_mut() {
                Some((_, end)) if *end >= from => *end = to.max(*end),
                _ => joined.push((from, to)),
            }
        }
        joined
    }

    /// Readings of clocks on one axis of elapsed time.
    pub(super) const fn elapsed(&self) -> &Elapsed {
        &self.elapsed
    }

    /// The end of an attempt on that axis, at the earliest and at the latest; never, while it is in flight.
    pub(super) fn end(&self, row: &AttemptRecord) -> (Instant, Instant) {
        let Some(end) = row.ended_at else {
            return (Instant::MAX, Instant::MAX);
        };
        let limit = match row.outcome {
            // It ends when a node is up again, however long that takes.
            Some(Outcome::Interrupted) => Duration::MAX,
            _ => {
                let contract = self.contracts.get(&row.endpoint_rev);
                contract.map_or(Duration::ZERO, |contract| contract.endpoint.timeout) + SETTLING
            }
        };
        self.elapsed.end(row, end, limit)
    }
}
