//! Fresh messages: accepted and, where an attempt can start at once, written down as started in the same commit, so
//! that the 202 and the request follow one sync.

use crate::attempt::Job;
use crate::lane::{Reply, Waits};
use crate::shared::{Phase, Shared};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::{Accepted, EndpointKey, NewMessage, Start, StartGate};

/// The engine's answer to the accepting transaction.
pub(crate) struct Gate(pub(crate) Arc<Shared>);

impl StartGate for Gate {
    fn try_reserve(&self, endpoint: EndpointKey, message: &NewMessage) -> Option<Start> {
        let shared = &*self.0;
        if shared.phase() != Phase::Running {
            return None;
        }
        let lane = shared.lane(endpoint)?;
        if lane.is_queued() {
            return None;
        }
        let retry = match message.contract {
            Some(key) => shared.contracts.get(key)?,
            None => lane.config().contract.clone(),
        };
        let waits = Waits {
            due_at: message.now.wall,
            due_boot: Some(message.now.boot),
            opened_at: message.now.wall,
            attempts: 0,
        };
        match lane.reserve(&shared.slots, &retry, waits, &shared.clock.now()) {
            Reply::Start(start) => Some(start),
            Reply::Not(_) | Reply::Crowded => None,
        }
    }

    fn release(&self, endpoint: EndpointKey) {
        if let Some(lane) = self.0.lane(endpoint) {
            lane.cancel(&self.0.slots);
        }
    }
}

/// Stores a message and sends what may go at once. Runs in a task of its own: a caller that hangs up must not leave
/// an attempt that is written as started and never sent.
pub(crate) async fn accept(shared: Arc<Shared>, message: NewMessage) -> store::Result<Accepted> {
    let gate = Arc::new(Gate(Arc::clone(&shared)));
    let claiming = shared.claiming.read().await;
    let mut accepted = match shared.store.accept(message, gate).await {
        Ok(accepted) => accepted,
        Err(error) => {
            shared.doubt_after(&error);
            shared.note(&error);
            return Err(error);
        }
    };
    for claimed in std::mem::take(&mut accepted.claimed) {
        send(&shared, claimed);
    }
    drop(claiming);
    for endpoint in std::mem::take(&mut accepted.due_at_endpoints) {
        shared.look(endpoint);
    }
    if !accepted.repeated {
        let counters = &shared.counters;
        counters.accepted.fetch_add(1, Ordering::Relaxed);
        let deliveries = u64::from(accepted.deliveries);
        counters.deliveries.fetch_add(deliveries, Ordering::Relaxed);
    }
    Ok(accepted)
}

fn send(shared: &Arc<Shared>, claimed: store::Claimed) {
    // The gate reserved at this lane and with this contract; both stay known.
    let lane = shared.lane(claimed.due.endpoint);
    let own = shared.contracts.get(claimed.start.retry);
    let (Some(lane), Some(own)) = (lane, own) else {
        shared.doubt.store(true, Ordering::Release);
        return;
    };
    lane.own(claimed.due.key);
    shared.launch(Job { claimed, lane, own });
}
