//! Why a message has or has not been delivered, one sentence with numbers for each delivery (spec/engine.md,
//! `duehook explain`). Works on any store that can be read, beside a running server too. Says what the records
//! say; it schedules nothing and judges nothing.

mod sentence;

use contract::ledger::{EndpointEvent, EndpointState};
use contract::{Contract, EndpointId, Instant, MessageId};
use serde::Serialize;
use std::collections::HashMap;
use store::{AppKey, ContractKey, Delivery, DeliveryState, Endpoint, EndpointKey, Message, Store};

pub use sentence::human;

/// A message and where each of its deliveries stands.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The message.
    pub message: MessageId,
    /// Its type.
    pub event_type: String,
    /// When it was accepted, RFC 3339.
    pub accepted_at: String,
    /// Oldest first.
    pub deliveries: Vec<Explained>,
}

/// One delivery.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explained {
    /// Where to.
    pub endpoint: EndpointId,
    /// Its URL.
    pub url: String,
    /// Its state.
    pub endpoint_state: &'static str,
    /// Which delivery of the message to it.
    pub delivery_no: u32,
    /// Its state; `held` for pending at an endpoint that is not active.
    pub state: &'static str,
    /// Why it is where it is.
    pub sentence: String,
    /// Its attempts, oldest first.
    pub attempts: Vec<AttemptLine>,
}

/// One attempt.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptLine {
    /// Its number.
    pub attempt_no: u32,
    /// When it started, RFC 3339.
    pub started_at: String,
    /// How long it took, in milliseconds; none while it is in flight.
    pub took_ms: Option<u64>,
    /// How it ended: `sending` while it is in flight.
    pub outcome: &'static str,
    /// The HTTP status.
    pub status: Option<u16>,
    /// What went wrong.
    pub error: Option<String>,
    /// By the schedule or by hand.
    pub trigger: &'static str,
}

/// The word for a delivery's state.
#[must_use]
pub const fn state_word(state: DeliveryState) -> &'static str {
    match state {
        DeliveryState::Pending => "pending",
        DeliveryState::Sending => "sending",
        DeliveryState::Succeeded => "succeeded",
        DeliveryState::Dead => "dead",
        DeliveryState::Cancelled => "cancelled",
    }
}

/// Everything a sentence is made of.
struct Facts<'a> {
    message: &'a Message,
    endpoint: &'a Endpoint,
    /// The latest change of the endpoint's state.
    change: Option<&'a EndpointEvent>,
    delivery: &'a Delivery,
    contract: Option<&'a Contract>,
    attempts: &'a [store::Attempt],
    now: Instant,
}

/// Explains a message's deliveries; those to one endpoint where it is given.
///
/// # Errors
/// The store's own.
pub async fn explain(
    store: &dyn Store,
    message: &Message,
    endpoint: Option<EndpointKey>,
    now: Instant,
) -> store::Result<Explanation> {
    let mut reader = Reader::new(store, message.app).await?;
    let attempts = store.attempts(message.id, endpoint).await?;
    let mut deliveries = Vec::new();
    for delivery in store.deliveries(message.id).await? {
        if endpoint.is_some_and(|only| only != delivery.endpoint) {
            continue;
        }
        let Some(at) = store.endpoint_by_key(delivery.endpoint).await? else {
            continue;
        };
        let change = store.last_endpoint_event(delivery.endpoint).await?;
        let contract = reader.contract_of(message, &at, &delivery).await?;
        let endpoint_id = delivery.endpoint_id.to_string();
        let of_delivery: Vec<store::Attempt> = attempts
            .iter()
            .filter(|attempt| {
                attempt.record.endpoint_id == endpoint_id
                    && attempt.record.delivery_no == delivery.delivery_no
            })
            .cloned()
            .collect();
        let facts = Facts {
            message,
            endpoint: &at,
            change: change.as_ref(),
            delivery: &delivery,
            contract: contract.as_ref(),
            attempts: &of_delivery,
            now,
        };
        deliveries.push(explained(&facts));
    }
    Ok(Explanation {
        message: message.id,
        event_type: message.event_type.clone(),
        accepted_at: crate::rfc3339(message.accepted_at),
        deliveries,
    })
}

fn explained(facts: &Facts<'_>) -> Explained {
    let held =
        facts.delivery.state == DeliveryState::Pending && facts.endpoint.state != EndpointState::Active;
    let line = |attempt: &store::Attempt| {
        let record = &attempt.record;
        AttemptLine {
            attempt_no: record.attempt_no.get(),
            started_at: crate::rfc3339(record.started_at),
            took_ms: record.ended_at.map(|end| end.since(record.started_at).as_ms()),
            outcome: record.outcome.map_or("sending", |outcome| outcome.word()),
            status: record.status,
            error: record.error.clone(),
            trigger: record.trigger.word(),
        }
    };
    Explained {
        endpoint: facts.endpoint.id,
        url: facts.endpoint.url.clone(),
        endpoint_state: facts.endpoint.state.word(),
        delivery_no: facts.delivery.delivery_no.get(),
        state: if held {
            "held"
        } else {
            state_word(facts.delivery.state)
        },
        sentence: sentence::of(facts),
        attempts: facts.attempts.iter().map(line).collect(),
    }
}

/// Contracts, read once each, and the levels above a message.
struct Reader<'a> {
    store: &'a dyn Store,
    app: Option<ContractKey>,
    organisation: Option<ContractKey>,
    known: HashMap<ContractKey, Option<Contract>>,
}

impl<'a> Reader<'a> {
    async fn new(store: &'a dyn Store, app: AppKey) -> store::Result<Self> {
        let apps = store.app_contracts().await?;
        Ok(Self {
            store,
            app: apps
                .into_iter()
                .find_map(|(key, contract)| (key == app).then_some(contract)),
            organisation: store.organisation_contract().await?,
            known: HashMap::new(),
        })
    }

    /// The contract that scheduled it; before the first attempt, the one in force (spec/contract.md, Levels).
    async fn contract_of(
        &mut self,
        message: &Message,
        endpoint: &Endpoint,
        delivery: &Delivery,
    ) -> store::Result<Option<Contract>> {
        let levels = [
            delivery.retry,
            message.contract,
            endpoint.contract,
            self.app,
            self.organisation,
        ];
        let Some(key) = levels.into_iter().flatten().next() else {
            return Ok(None);
        };
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let stored = self.store.contract(key).await?;
        let contract = stored.and_then(|stored| Contract::from_canonical(&stored.canonical).ok());
        self.known.insert(key, contract.clone());
        Ok(contract)
    }
}
