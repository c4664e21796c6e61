//! Reading endpoints and contracts again when they change, each by a task of its own, never two of one endpoint.

use super::Cycle;
use super::slot::Slot;
use crate::chores::Chore;
use crate::config::Config;
use crate::lane::Lane;
use crate::shared::{Event, Shared};
use contract::Duration;
use contract::ledger::EndpointState;
use schedule::{Pace, states};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use store::{Endpoint, EndpointKey};

/// How long a reader waits after a fault of the store.
const RETRY_AFTER: Duration = Duration::from_ms(250);

/// Reads under way. The value says that a change came meanwhile, so that what comes back may be old.
#[derive(Debug, Default)]
pub(super) struct Readers {
    one: HashMap<EndpointKey, bool>,
    all: Option<bool>,
}

impl Cycle {
    /// Reads one endpoint again.
    pub(super) fn read(&mut self, key: EndpointKey) {
        if let Some(again) = self.readers.all.as_mut() {
            *again = true;
            return;
        }
        if let Some(again) = self.readers.one.get_mut(&key) {
            *again = true;
            return;
        }
        self.readers.one.insert(key, false);
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            let config = read_one(&shared, key).await;
            shared.tell(Event::Read(key, config));
        });
    }

    /// Reads all levels and endpoints again.
    pub(super) fn read_all(&mut self) {
        if let Some(again) = self.readers.all.as_mut() {
            *again = true;
            return;
        }
        self.readers.all = Some(false);
        for again in self.readers.one.values_mut() {
            *again = true;
        }
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            let configs = match shared.contracts.reload(&*shared.store).await {
                Ok(()) => read_every(&shared).await,
                Err(error) => Err(error),
            };
            if configs.is_err() {
                pause(&shared).await;
            }
            shared.tell(Event::ReadAll(configs));
        });
    }

    pub(super) fn on_read(&mut self, key: EndpointKey, config: store::Result<Option<Arc<Config>>>) {
        let again = self.readers.one.remove(&key).unwrap_or(false);
        match config {
            Ok(Some(config)) => self.apply(key, config),
            Ok(None) => self.forget(key),
            Err(error) => {
                if !self.shared.note(&error) {
                    self.read(key);
                }
                return;
            }
        }
        if again {
            self.read(key);
        }
    }

    pub(super) fn on_read_all(&mut self, configs: store::Result<Vec<(EndpointKey, Arc<Config>)>>) {
        let again = self.readers.all.take().unwrap_or(false);
        let failed = match configs {
            Ok(configs) => {
                for (key, config) in configs {
                    self.apply(key, config);
                }
                false
            }
            Err(error) => !self.shared.note(&error),
        };
        if again || failed {
            self.read_all();
        }
    }

    /// An endpoint as it is now.
    pub(super) fn apply(&mut self, key: EndpointKey, config: Arc<Config>) {
        let state = config.state();
        // Re-activation resets the failure clock, even when the states in between went by unseen.
        let endpoint = &config.endpoint;
        let since = self.slots.get(&key).and_then(|slot| slot.failing_since);
        let failure_clock_was_reset =
            endpoint.failing_since.is_none() && since.is_some_and(|since| since < endpoint.updated_at);
        if let Some(slot) = self.slots.get_mut(&key) {
            let was = slot.lane.config().state();
            slot.lane.set_config(config);
            let activated = was != EndpointState::Active && state == EndpointState::Active;
            if activated || failure_clock_was_reset {
                slot.failing_since = None;
            }
            slot.disabling = false;
        } else {
            self.adopt(key, config);
        }
        match states::waiting(state) {
            states::Waiting::Goes => {
                if let Some(slot) = self.slots.get_mut(&key) {
                    slot.want();
                }
                self.feed(key);
            }
            // One row was written, however many wait: here they are only forgotten.
            states::Waiting::Held => self.empty(key),
            states::Waiting::Dead(_) => {
                self.empty(key);
                self.chore(Chore::Bury(key));
            }
        }
        tracing::debug!(endpoint = key.0, %state, "endpoint read");
    }

    /// A lane that is new to the loop: made at the start already, or made now.
    fn adopt(&mut self, key: EndpointKey, config: Arc<Config>) {
        let failing_since = config.endpoint.failing_since;
        let mut lanes = self.shared.lanes.write().unwrap_or_else(PoisonError::into_inner);
        let lane = lanes.entry(key).or_insert_with(|| {
            let clauses = &config.contract.contract.endpoint;
            let pace = Pace::new(clauses, config.throttle);
            Arc::new(Lane::new(key, config, pace))
        });
        self.slots.insert(key, Slot::new(Arc::clone(lane), failing_since));
    }

    /// An endpoint that is gone, with nothing left to do there.
    pub(super) fn forget(&mut self, key: EndpointKey) {
        self.empty(key);
        self.timers.clear(key);
        self.slots.remove(&key);
        let mut lanes = self.shared.lanes.write().unwrap_or_else(PoisonError::into_inner);
        lanes.remove(&key);
    }
}

async fn read_one(shared: &Shared, key: EndpointKey) -> store::Result<Option<Arc<Config>>> {
    let read = async {
        match shared.store.endpoint_by_key(key).await? {
            Some(endpoint) => ready(shared, endpoint).await.map(Some),
            None => Ok(None),
        }
    };
    let config = read.await;
    if config.is_err() {
        pause(shared).await;
    }
    config
}

/// All endpoints that there is something to do for.
pub(crate) async fn read_every(shared: &Shared) -> store::Result<Vec<(EndpointKey, Arc<Config>)>> {
    let endpoints = shared.store.endpoints_to_serve().await?;
    let mut configs = Vec::with_capacity(endpoints.len());
    for endpoint in endpoints {
        configs.push((endpoint.key, ready(shared, endpoint).await?));
    }
    Ok(configs)
}

async fn ready(shared: &Shared, endpoint: Endpoint) -> store::Result<Arc<Config>> {
    let contract = shared.contracts.of_endpoint(&*shared.store, &endpoint).await?;
    let throttle = shared.contracts.throttle_of(&endpoint);
    Ok(Arc::new(Config::new(endpoint, contract, throttle)))
}

async fn pause(shared: &Shared) {
    let until = crate::clock::after(&shared.clock.now(), RETRY_AFTER);
    shared.clock.sleep_until(until).await;
}
