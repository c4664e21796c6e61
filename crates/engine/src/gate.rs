//! Fresh messages: accepted and, where an attempt can start at once, written down as started in the same commit, so
//! that the 202 and the request follow one sync.

use crate::attempt::Job;
use crate::lane::{Lane, Reply, Waits};
use crate::shared::{Phase, Shared};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::{Accepted, EndpointKey, NewMessage, Start, StartGate};

/// The engine's answer to one accepting transaction, and what it reserved there.
struct Gate {
    shared: Arc<Shared>,
    reserved: Mutex<Vec<Arc<Lane>>>,
}

impl Gate {
    fn reserved(&self) -> MutexGuard<'_, Vec<Arc<Lane>>> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out the reservation at this endpoint.
    fn take(&self, endpoint: EndpointKey) -> Option<Arc<Lane>> {
        let mut reserved = self.reserved();
        let place = reserved.iter().position(|lane| lane.key == endpoint)?;
        Some(reserved.swap_remove(place))
    }

    /// Others may have waited for this slot: the loop must know that it is free.
    fn give_back(&self, lane: &Lane) {
        lane.cancel(&self.shared.slots);
        self.shared.look(lane.key);
    }

    /// Gives back what is still reserved: the transaction is over, whatever became of it.
    fn release_rest(&self) {
        for lane in self.reserved().drain(..) {
            self.give_back(&lane);
        }
    }
}

impl StartGate for Gate {
    fn try_reserve(&self, endpoint: EndpointKey, message: &NewMessage) -> Option<Start> {
        let shared = &*self.shared;
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
        match lane.reserve(&shared.slots, &retry, waits, 0, &shared.clock.now()) {
            Reply::Start(start) => {
                self.reserved().push(lane);
                Some(start)
            }
            Reply::Not(_) | Reply::Crowded => None,
        }
    }

    fn release(&self, endpoint: EndpointKey) {
        if let Some(lane) = self.take(endpoint) {
            self.give_back(&lane);
        }
    }
}

/// Stores a message and sends what may go at once. Runs in a task of its own: a caller that hangs up must not leave
/// an attempt that is written as started and never sent.
pub(crate) async fn accept(shared: Arc<Shared>, message: NewMessage) -> store::Result<Accepted> {
    let gate = Arc::new(Gate {
        shared: Arc::clone(&shared),
        reserved: Mutex::default(),
    });
    let claiming = shared.claiming.read().await;
    let for_store = Arc::clone(&gate) as Arc<dyn StartGate>;
    let mut accepted = match shared.store.accept(message, for_store).await {
        Ok(accepted) => accepted,
        Err(error) => {
            gate.release_rest();
            shared.doubt_after(&error);
            shared.note(&error);
            return Err(error);
        }
    };
    for claimed in std::mem::take(&mut accepted.claimed) {
        send(&shared, &gate, claimed);
    }
    gate.release_rest();
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

fn send(shared: &Arc<Shared>, gate: &Gate, claimed: store::Claimed) {
    // The gate reserved at this lane and with this contract.
    let lane = gate.take(claimed.due.endpoint);
    let own = shared.contracts.get(claimed.start.retry);
    let (Some(lane), Some(own)) = (lane, own) else {
        shared.doubt.store(true, Ordering::Release);
        return;
    };
    lane.own(claimed.due.key);
    shared.launch(Job { claimed, lane, own });
}
