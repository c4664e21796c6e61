//! Looking: filling a lane's window with due work by query, and finding out when to look again.

use super::Cycle;
use super::slot::Waiting;
use crate::chores::Chore;
use crate::clock::after;
use crate::contracts::Known;
use crate::shared::{Event, Phase, Shared};
use contract::ledger::EndpointState;
use schedule::Until;
use schedule::states;
use std::collections::VecDeque;
use std::sync::Arc;
use store::{DeliveryKey, Due, EndpointKey, Reading};

/// Queries at once: the store has few read connections, and the rest of the program wants them too.
const LOOKS_AT_ONCE: usize = 4;

/// The answer of a look.
#[derive(Debug)]
pub(crate) struct Looked {
    key: EndpointKey,
    found: store::Result<Found>,
}

#[derive(Debug)]
struct Found {
    due: Vec<Waiting>,
    /// There may be more behind them.
    full: bool,
    /// When the next is due.
    next: Option<Until>,
}

impl Cycle {
    /// Somebody says that due work waits at an endpoint.
    pub(super) fn on_look(&mut self, key: EndpointKey) {
        let Some(slot) = self.slots.get_mut(&key) else {
            // An endpoint that is new to us.
            self.read(key);
            return;
        };
        slot.lane.heard();
        slot.want();
        self.feed(key);
    }

    /// Starts as many looks as may run at once.
    pub(super) fn look(&mut self, now: &Reading) {
        if self.shared.phase() != Phase::Running {
            return;
        }
        while self.looks < LOOKS_AT_ONCE {
            let Some(key) = self.hungry.pop_front() else {
                return;
            };
            self.look_at(key, now);
        }
    }

    fn look_at(&mut self, key: EndpointKey, now: &Reading) {
        if self.held >= self.shared.options.max_window {
            self.shed();
        }
        let Some(slot) = self.slots.get_mut(&key) else {
            return;
        };
        slot.is_hungry = false;
        let limit = slot.appetite();
        let goes = states::waiting(slot.lane.config().state()) == states::Waiting::Goes;
        if !slot.more || slot.looking || limit == 0 || !goes {
            return;
        }
        slot.looking = true;
        slot.asked = false;
        slot.ended = 0;
        slot.lane.heard();
        self.looks += 1;
        let waiting = slot.window.iter().map(|waiting| waiting.due.key);
        let except: Vec<DeliveryKey> = waiting.chain(slot.pending.iter().copied()).collect();
        let shared = Arc::clone(&self.shared);
        let force = slot.lane.config().contract.clone();
        let now = now.clone();
        tokio::spawn(async move {
            let found = find(&shared, key, &force, &now, limit, &except).await;
            shared.tell(Event::Looked(Box::new(Looked { key, found })));
        });
    }

    pub(super) fn on_looked(&mut self, looked: Looked) {
        self.looks = self.looks.saturating_sub(1);
        let key = looked.key;
        let now = self.shared.clock.now();
        let Some(slot) = self.slots.get_mut(&key) else {
            return;
        };
        slot.looking = false;
        match looked.found {
            Ok(found) => {
                slot.more = found.full || slot.asked;
                slot.deep = found.full;
                let before = slot.window.len();
                for waiting in found.due {
                    if !slot.holds(waiting.due.key) {
                        slot.window.push_back(waiting);
                    }
                }
                self.held += slot.window.len() - before;
                slot.publish();
                if let Some(until) = found.next {
                    self.wake(key, until, &now);
                }
                self.feed(key);
            }
            Err(error) => {
                if !self.shared.note(&error) {
                    tracing::warn!(%error, endpoint = key.0, "cannot look for due work; trying again");
                    self.wake(key, after(&now, super::LAST_BACKOFF), &now);
                }
            }
        }
    }

    /// The liveness sweep's look at one lane.
    pub(super) fn sweep_lane(&mut self, key: EndpointKey) {
        let Some(slot) = self.slots.get_mut(&key) else {
            return;
        };
        let config = slot.lane.config();
        match states::waiting(config.state()) {
            states::Waiting::Goes => {
                slot.want();
                self.feed(key);
            }
            states::Waiting::Held => self.chore(Chore::Age(key)),
            states::Waiting::Dead(_) => {
                let still = !slot.lane.is_idle() || !slot.pending.is_empty() || slot.looking;
                self.chore(Chore::Bury(key));
                if config.state() == EndpointState::Deleted && !still {
                    self.forget(key);
                }
            }
        }
    }

    pub(super) fn on_expired(&mut self, key: EndpointKey, deliveries: &[DeliveryKey]) {
        if let Some(slot) = self.slots.get_mut(&key) {
            for delivery in deliveries {
                slot.pending.remove(delivery);
            }
        }
        self.feed(key);
    }
}

async fn find(
    shared: &Shared,
    key: EndpointKey,
    force: &Known,
    now: &Reading,
    limit: usize,
    except: &[DeliveryKey],
) -> store::Result<Found> {
    let due = shared.store.due(key, now.clone(), limit, except).await?;
    let full = due.len() >= limit;
    let mut waiting = VecDeque::with_capacity(due.len());
    for due in due {
        let retry = learn_for(shared, &due, force).await?;
        waiting.push_back(Waiting { due, retry });
    }
    let next = if full {
        None
    } else {
        let next = shared.store.next_due(key, now.clone()).await?;
        next.map(|(wall, boot)| Until {
            wall,
            // While the wall clock has it wait, the wall clock says when to look: a timer to the millisecond.
            boot: boot.filter(|_| wall <= now.wall),
        })
    };
    Ok(Found {
        due: waiting.into(),
        full,
        next,
    })
}

/// The contract of a delivery's next attempt: the one that scheduled it; before a first attempt the message's own, or
/// what holds at the endpoint (`force`). The message's own is learnt in any case: the settle may need it.
pub(crate) async fn learn_for(shared: &Shared, due: &Due, force: &Known) -> store::Result<Known> {
    let of_message = match due.message.contract {
        Some(key) => Some(shared.contracts.learn(&*shared.store, key).await?),
        None => None,
    };
    match due.retry {
        Some(key) => shared.contracts.learn(&*shared.store, key).await,
        None => Ok(of_message.unwrap_or_else(|| force.clone())),
    }
}
