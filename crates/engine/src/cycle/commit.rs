//! Committing: what ended is settled and what follows is claimed, in one commit; what came back is sent or set again.
//!
//! A settle that could not be written is kept and tried again until it is; nothing is sent again meanwhile (I9). A
//! settle whose commit did happen, though the answer was lost, comes back as stale and does no harm.

use super::{Cycle, FIRST_BACKOFF, LAST_BACKOFF};
use crate::attempt::{Ended, Job, next};
use crate::clock::after;
use crate::shared::{Event, Phase, Shared};
use bytes::Bytes;
use contract::ledger::Outcome;
use schedule::Until;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::{Claim, Claimed, Next, NotClaimed, Reading, Settle, Settled, StoreError};

/// Two: while one is written, the next is put together.
const COMMITS_AT_ONCE: usize = 2;
const SETTLES_AT_ONCE: usize = 1024;
const CROWDED_AT_ONCE: usize = 64;

type Answer = (Vec<Settled>, Vec<Result<Claimed, NotClaimed>>);

/// A commit that came back, with what was asked.
#[derive(Debug)]
pub(crate) struct Committed {
    settles: Vec<Settle>,
    claims: Vec<Claim>,
    answer: store::Result<Answer>,
}

impl Cycle {
    /// Starts a commit when there is something to write and one may run.
    pub(super) fn commit(&mut self, now: &Reading) {
        self.retry_crowded();
        while self.commits < COMMITS_AT_ONCE && self.pause.is_none() {
            let rest = self.settles.len().min(SETTLES_AT_ONCE);
            let settles: Vec<Settle> = self.settles.drain(..rest).collect();
            let claims = if self.shared.phase() == Phase::Running {
                self.pick(&settles, now)
            } else {
                Vec::new()
            };
            if claims.is_empty() && settles.is_empty() {
                return;
            }
            self.commits += 1;
            tokio::spawn(write(Arc::clone(&self.shared), settles, claims));
        }
    }

    pub(super) fn on_ended(&mut self, ended: Ended) {
        self.shared.live.fetch_sub(1, Ordering::AcqRel);
        let key = ended.lane.key;
        if ended.settle.next == Next::Released {
            self.shared.counters.released.fetch_add(1, Ordering::Relaxed);
        } else {
            self.shared.counters.ended(ended.settle.outcome);
            self.health(key, &ended.settle);
        }
        self.settles.push(ended.settle);
        if let Some(slot) = self.slots.get_mut(&key) {
            slot.ended += 1;
        }
        self.feed(key);
    }

    /// Some of the lanes that found all slots taken ask again; in turn, since there may be thousands of them.
    fn retry_crowded(&mut self) {
        let some = self.crowded.len().min(CROWDED_AT_ONCE);
        self.ready.extend(self.crowded.drain(..some));
    }

    /// Started, settled by nobody and owned by nobody: it ends now, and the next waits its full backoff (I1).
    pub(super) fn on_orphan(&mut self, claimed: Claimed) {
        self.shared.counters.orphans.fetch_add(1, Ordering::Relaxed);
        if let Some(settle) = interrupted(&self.shared, claimed) {
            self.settles.push(settle);
        }
    }

    pub(super) fn on_committed(&mut self, committed: Committed) {
        self.commits = self.commits.saturating_sub(1);
        let Committed {
            settles,
            claims,
            answer,
        } = committed;
        match answer {
            Ok((settled, claimed)) => {
                self.backoff = FIRST_BACKOFF;
                self.count(&settles, &claims);
                for (settle, settled) in settles.iter().zip(settled) {
                    self.on_settled(settle, settled);
                }
                for (claim, claimed) in claims.into_iter().zip(claimed) {
                    self.on_claimed(&claim, claimed);
                }
            }
            Err(error) => self.on_refused(settles, claims, &error),
        }
    }

    fn count(&self, settles: &[Settle], claims: &[Claim]) {
        let counters = &self.shared.counters;
        let add = |counter: &std::sync::atomic::AtomicU64, n: usize| {
            counter.fetch_add(u64::try_from(n).unwrap_or(0), Ordering::Relaxed);
        };
        add(&counters.commits, 1);
        add(&counters.committed_settles, settles.len());
        add(&counters.committed_claims, claims.len());
    }

    fn on_settled(&mut self, settle: &Settle, settled: Settled) {
        let due = &settle.claimed.due;
        let key = due.endpoint;
        let Some(slot) = self.slots.get(&key) else {
            return;
        };
        slot.lane.settled(due.key);
        self.feed(key);
        let until = match (&settle.next, settled) {
            // Somebody moved it, or this settle was written before and its answer lost: what it waits for is not
            // known here.
            (_, Settled::Stale) => return self.on_look(key),
            (Next::Succeeded, _) => return,
            (_, Settled::Dead(reason)) => return self.shared.counters.dead(reason),
            (Next::Dead { reason, .. }, Settled::Done) => return self.shared.counters.dead(*reason),
            (Next::Retry { due_at, due_boot, .. }, Settled::Done) => Until {
                wall: *due_at,
                boot: Some(*due_boot),
            },
            (Next::Released, Settled::Done) => Until {
                wall: due.due_at,
                boot: due.due_boot,
            },
        };
        let now = self.shared.clock.now();
        self.wake(key, until, &now);
    }

    fn on_claimed(&mut self, claim: &Claim, claimed: Result<Claimed, NotClaimed>) {
        let key = claim.due.endpoint;
        let Some(slot) = self.slots.get_mut(&key) else {
            return;
        };
        slot.pending.remove(&claim.due.key);
        let lane = Arc::clone(&slot.lane);
        match claimed {
            Ok(claimed) => match self.shared.contracts.get(claimed.start.retry) {
                Some(own) => self.shared.launch(Job { claimed, lane, own }),
                // The contract was known when it was picked, and none is forgotten.
                None => self.shared.doubt.store(true, Ordering::Release),
            },
            Err(not) => {
                lane.cancel(&self.shared.slots);
                if not == NotClaimed::Held {
                    // The store knows better: our word about this endpoint is old.
                    self.empty(key);
                    self.read(key);
                }
            }
        }
        self.feed(key);
    }

    /// Nothing was written, or nobody knows: settles are kept, claims are given back, and both are tried again.
    fn on_refused(&mut self, mut settles: Vec<Settle>, claims: Vec<Claim>, error: &StoreError) {
        if self.shared.note(error) {
            return;
        }
        tracing::warn!(%error, settles = settles.len(), "a commit failed; trying again");
        settles.append(&mut self.settles);
        self.settles = settles;
        for claim in claims.into_iter().rev() {
            self.give_back(&claim);
        }
        let now = self.shared.clock.now();
        self.pause = Some(after(&now, self.backoff));
        self.backoff = (self.backoff + self.backoff).min(LAST_BACKOFF);
    }

    fn give_back(&mut self, claim: &Claim) {
        let key = claim.due.endpoint;
        let Some(slot) = self.slots.get_mut(&key) else {
            return;
        };
        slot.lane.cancel(&self.shared.slots);
        slot.pending.remove(&claim.due.key);
        // The store still has it, if it is still pending; the look finds it in its place.
        slot.want();
        self.feed(key);
    }
}

async fn write(shared: Arc<Shared>, settles: Vec<Settle>, claims: Vec<Claim>) {
    let claiming = shared.claiming.read().await;
    let answer = shared
        .store
        .settle_and_claim(settles.clone(), claims.clone())
        .await;
    match &answer {
        Ok((_, claimed)) => {
            for due in claimed.iter().flatten().map(|claimed| &claimed.due) {
                if let Some(lane) = shared.lane(due.endpoint) {
                    lane.own(due.key);
                }
            }
        }
        Err(error) if !claims.is_empty() => shared.doubt_after(error),
        Err(_) => {}
    }
    drop(claiming);
    shared.tell(Event::Committed(Box::new(Committed {
        settles,
        claims,
        answer,
    })));
}

/// The settle of an attempt whose fate nobody knows. `None` when its endpoint or contract is unknown, which leaves it
/// for the next start.
pub(crate) fn interrupted(shared: &Shared, claimed: Claimed) -> Option<Settle> {
    let config = shared.lane(claimed.due.endpoint)?.config();
    let own = shared.contracts.get(claimed.start.retry)?;
    let ended = shared.clock.now_ceil();
    let started = Reading {
        wall: claimed.start.started_at,
        boot: ended.boot,
    };
    let mut settle = Settle {
        started_at: started.wall,
        ended_at: ended.wall.max(started.wall),
        outcome: Outcome::Interrupted,
        status: None,
        error: None,
        retry_after: None,
        response: Bytes::new(),
        next: Next::Succeeded,
        claimed,
    };
    settle.next = next(shared, &settle, &own, &config, &started, &ended);
    Some(settle)
}
