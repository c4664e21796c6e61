//! Writes that are not on the hot path, one after the other, each tried until the store takes it: the failure clock,
//! disabling, burying what waits at a disabled endpoint, expiry, and the search for orphans.

use crate::clock::{after, reached};
use crate::cycle::learn_for;
use crate::shared::{Event, Phase, Shared};
use contract::ledger::{DeadReason, EndpointState};
use contract::{Duration, Instant};
use schedule::{Admission, Candidate, Pace};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::{Claimed, ContractKey, DeliveryKey, Due, EndpointKey, StoreError};
use tokio::sync::mpsc;

const RETRY_AFTER: Duration = Duration::from_ms(250);
/// Rows in one transaction, so that no write holds up the accepts behind it.
const ROWS_AT_ONCE: usize = 500;

/// What is to be written.
#[derive(Clone, Debug)]
pub(crate) enum Chore {
    /// The failure clock of an endpoint.
    Failing(EndpointKey, Option<Instant>),
    /// It failed too long, since then, or gave an answer that disables it.
    Disable(EndpointKey, Instant, String),
    /// What waits at a disabled or deleted endpoint is dead.
    Bury(EndpointKey),
    /// These are too old.
    Expire(EndpointKey, Vec<(DeliveryKey, ContractKey)>),
    /// What is held at this endpoint may have grown too old.
    Age(EndpointKey),
    /// Some attempt may be written as started without an owner.
    FindOrphans,
}

/// Does chores until the loop is gone.
pub(crate) async fn run(shared: Arc<Shared>, mut chores: mpsc::UnboundedReceiver<Chore>) {
    while let Some(chore) = chores.recv().await {
        while let Err(error) = shared.do_chore(&chore).await {
            if shared.note(&error) {
                return;
            }
            if !matches!(error, StoreError::Unavailable { .. } | StoreError::Full) {
                tracing::error!(%error, ?chore, "given up");
                break;
            }
            tracing::warn!(%error, ?chore, "trying again");
            shared.rest(RETRY_AFTER).await;
        }
    }
}

impl Shared {
    /// Lets time pass.
    pub(crate) async fn rest(&self, wait: Duration) {
        let until = after(&self.clock.now(), wait);
        while !reached(until, &self.clock.now()) {
            self.clock.sleep_until(until).await;
        }
    }

    async fn do_chore(&self, chore: &Chore) -> store::Result<()> {
        match chore {
            Chore::Failing(key, since) => self.store.set_failing_since(*key, *since).await,
            Chore::Disable(key, since, why) => self.disable(*key, *since, why).await,
            Chore::Bury(key) => self.bury(*key).await,
            Chore::Expire(key, deliveries) => {
                self.expire(deliveries).await?;
                let keys = deliveries.iter().map(|(delivery, _)| *delivery).collect();
                self.tell(Event::Expired(*key, keys));
                Ok(())
            }
            Chore::Age(key) => self.age(*key).await,
            Chore::FindOrphans => self.find_orphans().await,
        }
    }

    /// Only when the endpoint is still as it was judged: a person may have re-activated it meanwhile, which clears
    /// the failure clock.
    async fn disable(&self, key: EndpointKey, since: Instant, why: &str) -> store::Result<()> {
        let Some(endpoint) = self.store.endpoint_by_key(key).await? else {
            return Ok(());
        };
        if endpoint.state != EndpointState::Active || endpoint.failing_since != Some(since) {
            return Ok(());
        }
        tracing::warn!(endpoint = %endpoint.id, why, "endpoint disabled");
        let now = self.clock.now().wall;
        let disabled = EndpointState::Disabled;
        self.store
            .set_endpoint_state(key, disabled, why, "engine", now)
            .await?;
        Ok(())
    }

    async fn bury(&self, key: EndpointKey) -> store::Result<()> {
        // Looked at first: a sweep over many disabled endpoints must not cost a write each.
        while self.has_waiting(key).await? {
            let now = self.clock.now().wall;
            let buried = self.store.bury(key, now, ROWS_AT_ONCE).await?;
            if buried == 0 {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn has_waiting(&self, key: EndpointKey) -> store::Result<bool> {
        let now = self.clock.now();
        let due = self.store.due(key, now.clone(), 1, &[]).await?;
        Ok(!due.is_empty() || self.store.next_due(key, now).await?.is_some())
    }

    async fn expire(&self, deliveries: &[(DeliveryKey, ContractKey)]) -> store::Result<()> {
        let now = self.clock.now().wall;
        for part in deliveries.chunks(ROWS_AT_ONCE) {
            self.store.expire(part.to_vec(), now).await?;
        }
        Ok(())
    }

    /// Age runs on while deliveries are held: the oldest are looked at until one is young enough.
    async fn age(&self, key: EndpointKey) -> store::Result<()> {
        loop {
            let Some(lane) = self.lane(key) else {
                return Ok(());
            };
            let force = lane.config().contract.clone();
            let now = self.clock.now();
            let held = self.store.due(key, now.clone(), ROWS_AT_ONCE, &[]).await?;
            let mut expired = Vec::new();
            for due in &held {
                let retry = learn_for(self, due, &force).await?;
                if is_too_old(due, &retry.contract, &now) {
                    expired.push((due.key, retry.key));
                }
            }
            if expired.is_empty() {
                return Ok(());
            }
            self.expire(&expired).await?;
            if expired.len() < held.len() || self.phase() != Phase::Running {
                return Ok(());
            }
        }
    }

    /// With no claim under way, every `sending` row that nobody owns was started by a call whose answer was lost, or
    /// by a task that vanished.
    async fn find_orphans(&self) -> store::Result<()> {
        let _no_claim_under_way = self.claiming.write().await;
        self.searching.store(false, Ordering::Release);
        self.doubt.store(false, Ordering::Release);
        let mut after = None;
        loop {
            // On an error the chore begins anew.
            let sending = self.store.sending(after, ROWS_AT_ONCE).await?;
            let Some(last) = sending.last() else {
                self.tell(Event::LookAround);
                return Ok(());
            };
            after = Some(last.due.key);
            for claimed in sending {
                self.adopt_orphan(claimed).await?;
            }
        }
    }

    async fn adopt_orphan(&self, claimed: Claimed) -> store::Result<()> {
        let Some(lane) = self.lane(claimed.due.endpoint) else {
            return Ok(());
        };
        if lane.owns(claimed.due.key) {
            return Ok(());
        }
        self.contracts.learn(&*self.store, claimed.start.retry).await?;
        lane.adopt(claimed.due.key);
        self.tell(Event::Orphan(Box::new(claimed)));
        Ok(())
    }
}

fn is_too_old(due: &Due, contract: &contract::Contract, now: &store::Reading) -> bool {
    let candidate = Candidate {
        // Whether it may start is not asked, only whether it still could.
        endpoint_state: EndpointState::Draining,
        due_at: due.due_at,
        due_boot: due.due_boot,
        opened_at: due.opened_at,
        attempts: due.attempts,
        in_flight: 0,
        in_flight_limit: 1,
    };
    let pace = Pace::new(&contract.endpoint, None);
    let at = crate::clock::moment(now);
    schedule::admit(&candidate, &contract.retry, &pace, at) == Admission::Dead(DeadReason::MaxAge)
}
