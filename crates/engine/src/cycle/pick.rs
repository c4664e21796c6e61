//! Picking: from the windows of all lanes, one delivery a lane in turn, what `schedule` admits now.
//!
//! Keeps I4 and the pace through [`Lane::reserve`]; the store tests the state once more inside the claim.
//!
//! [`Lane::reserve`]: crate::lane::Lane::reserve

use super::Cycle;
use crate::chores::Chore;
use crate::clock::after;
use crate::lane::{Reply, Waits};
use contract::Duration;
use contract::ledger::DeadReason;
use schedule::{Admission, BlockReason, DeferReason, Until};
use std::collections::HashMap;
use store::{Claim, ContractKey, DeliveryKey, EndpointKey, Reading, Settle, Start};

/// Claims in one commit: enough to share its sync among many, few enough that a crash burns few attempts.
const CLAIMS_AT_ONCE: usize = 512;
/// A lane that waits longer than this for its pace keeps only its next delivery in memory.
const LONG_PACE: Duration = Duration::from_ms(200);

impl Cycle {
    /// The next claims, fairly. What `settles` in the same commit leaves makes room.
    pub(super) fn pick(&mut self, settles: &[Settle], now: &Reading) -> Vec<Claim> {
        let mut leaving: HashMap<EndpointKey, u32> = HashMap::new();
        for settle in settles {
            *leaving.entry(settle.claimed.due.endpoint).or_default() += 1;
        }
        let mut claims = Vec::new();
        while claims.len() < CLAIMS_AT_ONCE {
            let Some(key) = self.ready.pop_front() else {
                break;
            };
            let leaving = leaving.get(&key).copied().unwrap_or(0);
            self.pick_one(key, leaving, now, &mut claims);
        }
        claims
    }

    fn pick_one(&mut self, key: EndpointKey, leaving: u32, now: &Reading, claims: &mut Vec<Claim>) {
        let Some(slot) = self.slots.get_mut(&key) else {
            return;
        };
        slot.is_ready = false;
        let Some(front) = slot.window.front() else {
            return;
        };
        let reply = slot.lane.reserve(
            &self.shared.slots,
            &front.retry,
            Waits::of(&front.due),
            leaving,
            now,
        );
        match reply {
            Reply::Start(start) => self.take(key, start, claims),
            Reply::Crowded => {
                slot.is_ready = true;
                self.crowded.push_back(key);
            }
            Reply::Not(Admission::Defer { until, reason }) => self.defer(key, until, reason, now),
            // A settle, or a change of its state, makes it ready again.
            Reply::Not(Admission::Block(BlockReason::InFlight) | Admission::Deliver) => {}
            Reply::Not(Admission::Block(BlockReason::Held)) => self.empty(key),
            Reply::Not(Admission::Dead(DeadReason::MaxAge)) => self.expire_front(key),
            Reply::Not(Admission::Dead(DeadReason::EndpointDisabled | DeadReason::EndpointDeleted)) => {
                self.empty(key);
                self.chore(Chore::Bury(key));
            }
            Reply::Not(Admission::Dead(reason)) => self.drop_front(key, reason, now),
        }
    }

    fn take(&mut self, key: EndpointKey, start: Start, claims: &mut Vec<Claim>) {
        let Some(slot) = self.slots.get_mut(&key) else {
            return;
        };
        if let Some(waiting) = slot.window.pop_front() {
            self.held = self.held.saturating_sub(1);
            slot.pending.insert(waiting.due.key);
            claims.push(Claim {
                due: waiting.due,
                start,
            });
        }
        slot.publish();
        self.feed(key);
    }

    fn defer(&mut self, key: EndpointKey, until: Until, reason: DeferReason, now: &Reading) {
        let long = super::reach(until, now) > LONG_PACE;
        match reason {
            // A clock was set back since the look.
            DeferReason::NotDue => self.empty(key),
            DeferReason::Pacing if long => self.keep_front(key),
            DeferReason::Pacing => {}
        }
        self.wake(key, until, now);
    }

    /// Too old before its attempt: dead, without one.
    fn expire_front(&mut self, key: EndpointKey) {
        let Some(slot) = self.slots.get_mut(&key) else {
            return;
        };
        let Some(waiting) = slot.window.pop_front() else {
            return;
        };
        self.held = self.held.saturating_sub(1);
        slot.pending.insert(waiting.due.key);
        let expired: Vec<(DeliveryKey, ContractKey)> = vec![(waiting.due.key, waiting.retry.key)];
        slot.publish();
        self.chore(Chore::Expire(key, expired));
        self.feed(key);
    }

    /// Cannot be: a delivery without attempts left is not pending. Left alone, loudly, rather than sent (I2).
    fn drop_front(&mut self, key: EndpointKey, reason: DeadReason, now: &Reading) {
        let Some(slot) = self.slots.get_mut(&key) else {
            return;
        };
        if let Some(waiting) = slot.window.pop_front() {
            self.held = self.held.saturating_sub(1);
            let message = waiting.due.message.id;
            tracing::error!(%message, endpoint = key.0, %reason, "a pending delivery that cannot be: not sent");
        }
        slot.more = false;
        slot.publish();
        self.feed(key);
        self.wake(key, after(now, self.shared.options.sweep_every), now);
    }

    /// Puts a lane where it belongs: in turn to be picked, in turn to be filled, or neither.
    pub(super) fn feed(&mut self, key: EndpointKey) {
        let Some(slot) = self.slots.get_mut(&key) else {
            return;
        };
        if !slot.window.is_empty() && !slot.is_ready {
            slot.is_ready = true;
            self.ready.push_back(key);
        }
        if slot.more && !slot.looking && !slot.is_hungry && slot.is_low() {
            slot.is_hungry = true;
            self.hungry.push_back(key);
        }
    }

    /// Forgets a lane's window; the store still has it all.
    pub(super) fn empty(&mut self, key: EndpointKey) {
        self.shrink(key, 0);
    }

    fn keep_front(&mut self, key: EndpointKey) {
        self.shrink(key, 1);
    }

    fn shrink(&mut self, key: EndpointKey, to: usize) {
        let Some(slot) = self.slots.get_mut(&key) else {
            return;
        };
        let before = slot.window.len();
        if before > to {
            slot.window.truncate(to);
            slot.want();
            self.held = self.held.saturating_sub(before - to);
        }
        slot.publish();
    }

    /// All windows together hold too much: those of lanes that cannot move now go.
    pub(super) fn shed(&mut self) {
        let standing: Vec<EndpointKey> = self
            .slots
            .iter()
            .filter(|(_, slot)| !slot.is_ready && !slot.window.is_empty())
            .map(|(key, _)| *key)
            .collect();
        for key in standing {
            self.empty(key);
        }
    }

    /// Looks at a lane again then, or sooner if it was to be looked at sooner.
    pub(super) fn wake(&mut self, key: EndpointKey, until: Until, now: &Reading) {
        let Some(slot) = self.slots.get_mut(&key) else {
            return;
        };
        let sooner = |old: Until| super::reach(old, now) <= super::reach(until, now);
        if slot.wake.is_some_and(sooner) {
            return;
        }
        slot.wake = Some(until);
        self.timers.set(key, until, now);
    }

    /// The wall clock was set.
    pub(super) fn recount_timers(&mut self) {
        let now = self.shared.clock.now();
        for (key, slot) in &self.slots {
            if let Some(until) = slot.wake {
                self.timers.set(*key, until, &now);
            }
        }
    }
}
