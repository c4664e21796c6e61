//! A lane: one endpoint's share of the loop. Its state, pace and in-flight window are asked by the accepting
//! transaction (on the store's thread) and by the loop, so they stand behind one short lock.
//!
//! Keeps I4 (an allow-list, in `schedule`) and the pace. What waits is the loop's own and not here.

use crate::clock::moment;
use crate::config::Config;
use crate::contracts::Known;
use contract::{BootInstant, Instant};
use schedule::{Admission, Candidate, Moment, Pace};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::{DeliveryKey, Due, EndpointKey, Reading, Start};

/// Attempts at once over all endpoints.
#[derive(Debug)]
pub(crate) struct Slots {
    used: AtomicUsize,
    max: usize,
}

impl Slots {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            used: AtomicUsize::new(0),
            max: max.max(1),
        }
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Acquire)
    }

    /// More than half is used: the rest is for endpoints that answer.
    pub(crate) fn is_crowded(&self) -> bool {
        self.used().saturating_mul(2) >= self.max
    }

    fn take(&self) -> bool {
        let more = |used: usize| (used < self.max).then_some(used + 1);
        self.used
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more)
            .is_ok()
    }

    fn give(&self) {
        self.used.fetch_sub(1, Ordering::AcqRel);
    }
}

/// One endpoint.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) key: EndpointKey,
    /// A look at the store was asked for and the loop has not heard of it yet.
    asked: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: Arc<Config>,
    pace: Pace,
    /// Claimed or being claimed, and the settle not committed: after a crash the ledger shows each of them as in flight,
    /// so none of them may make room for another before that.
    in_flight: u32,
    /// Written as started by this process, settle not committed: whatever else is `sending` in the store is an
    /// orphan.
    owned: HashSet<DeliveryKey>,
    /// Older deliveries wait in memory: a fresh message goes behind them.
    queued: bool,
    /// Its last attempt timed out: it may not use the second half of all slots.
    stalled: bool,
}

/// A delivery that waits, as far as admission asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waits {
    pub(crate) due_at: Instant,
    pub(crate) due_boot: Option<BootInstant>,
    pub(crate) opened_at: Instant,
    pub(crate) attempts: u32,
}

impl Waits {
    pub(crate) fn of(due: &Due) -> Self {
        Self {
            due_at: due.due_at,
            due_boot: due.due_boot,
            opened_at: due.opened_at,
            attempts: due.attempts,
        }
    }

    /// Both clocks have come so far: asked once more just before sending, since a clock may have been set since the
    /// claim (I1).
    pub(crate) fn is_due(&self, now: &Reading) -> bool {
        now.wall >= self.due_at && self.due_boot.is_none_or(|due| now.boot >= due)
    }
}

/// What a lane says to one more start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Reserved.
    Start(Start),
    /// As `schedule` says.
    Not(Admission),
    /// All slots are taken, or the half that stalled endpoints may use.
    Crowded,
}

impl Lane {
    pub(crate) fn new(key: EndpointKey, config: Arc<Config>, pace: Pace) -> Self {
        Self {
            key,
            asked: AtomicBool::new(false),
            inner: Mutex::new(Inner {
                config,
                pace,
                in_flight: 0,
                owned: HashSet::new(),
                queued: false,
                stalled: false,
            }),
        }
    }

    /// No code that can panic runs under the lock, so a poisoned one still holds whole values.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.lock().config)
    }

    /// The endpoint or its contract changed.
    pub(crate) fn set_config(&self, config: Arc<Config>) {
        let mut inner = self.lock();
        let clauses = &config.contract.contract.endpoint;
        inner.pace.set_clauses(clauses, config.throttle);
        inner.config = config;
    }

    /// True for the first to ask since the loop last looked.
    pub(crate) fn ask(&self) -> bool {
        !self.asked.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn heard(&self) {
        self.asked.store(false, Ordering::Release);
    }

    /// Reserves a start for a delivery that waits, if `schedule` admits it now. `leaving` attempts are settled in the
    /// very commit that will write the start down: they make room for it.
    pub(crate) fn reserve(
        &self,
        slots: &Slots,
        retry: &Known,
        waits: Waits,
        leaving: u32,
        now: &Reading,
    ) -> Reply {
        let mut inner = self.lock();
        let clauses = &inner.config.contract.contract.endpoint;
        let candidate = Candidate {
            endpoint_state: inner.config.state(),
            in_flight: inner.in_flight.saturating_sub(leaving),
            in_flight_limit: clauses.in_flight,
            due_at: waits.due_at,
            due_boot: waits.due_boot,
            opened_at: waits.opened_at,
            attempts: waits.attempts,
        };
        let at = moment(now);
        match schedule::admit(&candidate, &retry.contract.retry, &inner.pace, at) {
            Admission::Deliver => {}
            other => return Reply::Not(other),
        }
        if (inner.stalled && slots.is_crowded()) || !slots.take() {
            return Reply::Crowded;
        }
        inner.in_flight += 1;
        inner.pace.reserve();
        Reply::Start(Start {
            started_at: now.wall,
            retry: retry.key,
            endpoint: inner.config.contract.key,
        })
    }

    /// A fresh message may start at once only when nothing older waits in memory.
    pub(crate) fn is_queued(&self) -> bool {
        self.lock().queued
    }

    pub(crate) fn set_queued(&self, queued: bool) {
        self.lock().queued = queued;
    }

    /// A reservation is given back: nothing was sent.
    pub(crate) fn cancel(&self, slots: &Slots) {
        let mut inner = self.lock();
        inner.pace.cancel();
        inner.in_flight = inner.in_flight.saturating_sub(1);
        slots.give();
    }

    /// The claim is durable: this process owns the delivery until its settle is.
    pub(crate) fn own(&self, delivery: DeliveryKey) {
        self.lock().owned.insert(delivery);
    }

    /// Its task vanished: whoever finds it adopts it.
    pub(crate) fn disown(&self, delivery: DeliveryKey) {
        self.lock().owned.remove(&delivery);
    }

    /// An attempt that is written as started and that nobody owned.
    pub(crate) fn adopt(&self, delivery: DeliveryKey) {
        let mut inner = self.lock();
        if inner.owned.insert(delivery) {
            inner.in_flight += 1;
        }
    }

    /// The settle is durable.
    pub(crate) fn settled(&self, delivery: DeliveryKey) {
        let mut inner = self.lock();
        if inner.owned.remove(&delivery) {
            inner.in_flight = inner.in_flight.saturating_sub(1);
        }
    }

    pub(crate) fn owns(&self, delivery: DeliveryKey) -> bool {
        self.lock().owned.contains(&delivery)
    }

    /// The request goes out now.
    pub(crate) fn start(&self, at: Moment) -> Arc<Config> {
        let mut inner = self.lock();
        inner.pace.start(at);
        Arc::clone(&inner.config)
    }

    /// A claimed attempt is not sent after all. It leaves the window when the store has taken its row back.
    pub(crate) fn unsent(&self, slots: &Slots) {
        self.lock().pace.cancel();
        slots.give();
    }

    /// A started attempt ended; `timed_out` is how. It leaves the window when its settle is committed.
    pub(crate) fn end(&self, slots: &Slots, timed_out: bool) {
        self.lock().stalled = timed_out;
        slots.give();
    }

    /// Notes a start that was not reserved here: one of the last run.
    pub(crate) fn record(&self, at: Moment) {
        self.lock().pace.record(at);
    }

    /// A task vanished with an attempt in hand: nothing is known but that it is gone.
    pub(crate) fn vanish(&self, slots: &Slots, started: bool, now: Moment) {
        let mut inner = self.lock();
        if !started {
            inner.pace.start(now);
        }
        inner.in_flight = inner.in_flight.saturating_sub(1);
        slots.give();
    }

    /// How many more may start before the window is full.
    pub(crate) fn room(&self) -> usize {
        let inner = self.lock();
        let limit = inner.config.contract.contract.endpoint.in_flight;
        usize::try_from(limit.saturating_sub(inner.in_flight)).unwrap_or(0)
    }

    /// Nothing of this process is under way here.
    pub(crate) fn is_idle(&self) -> bool {
        let inner = self.lock();
        inner.in_flight == 0 && inner.owned.is_empty()
    }
}
