//! What all parts of a running engine hold together: store, clocks, wire, lanes, counters, and the way to the loop.

use crate::attempt::{self, Ended, Job};
use crate::clock::Clock;
use crate::contracts::Contracts;
use crate::lane::{Lane, Slots};
use crate::options::Options;
use crate::stats::Counters;
use crate::wire::Wire;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use store::{Change, Claimed, DeliveryKey, EndpointKey, Store, StoreError};
use tokio::sync::{RwLock as AsyncRwLock, mpsc, watch};

/// Where a running engine stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Claims and sends.
    Running,
    /// Claims nothing more; what was claimed and not sent is released, what was sent may finish.
    Stopping,
    /// Nothing in flight may finish any more: it is settled as timed out.
    Cut,
}

/// What the loop is told.
#[derive(Debug)]
pub(crate) enum Event {
    /// An attempt is over.
    Ended(Box<Ended>),
    /// An attempt's task vanished (a panic): its fate is unknown.
    Vanished(Arc<Lane>, DeliveryKey),
    /// These expired in the store, or were left as they are.
    Expired(EndpointKey, Vec<DeliveryKey>),
    /// Due work may wait in the store for this endpoint.
    Look(EndpointKey),
    /// Due work may wait in the store for any endpoint: an answer that would have said so was lost.
    LookAround,
    /// The answer of a look.
    Looked(Box<crate::cycle::Looked>),
    /// The store's word about a change; `None` when some were missed.
    Changed(Option<Change>),
    /// An endpoint was read again.
    Read(EndpointKey, store::Result<Option<Arc<crate::config::Config>>>),
    /// All endpoints were read again.
    ReadAll(store::Result<Vec<(EndpointKey, Arc<crate::config::Config>)>>),
    /// A commit came back.
    Committed(Box<crate::cycle::Committed>),
    /// Started, settled by nobody, and owned by nobody.
    Orphan(Box<Claimed>),
    /// The wall clock was set: every timer is counted again.
    Stepped,
    /// The phase changed.
    Phase,
}

pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) wire: Arc<dyn Wire>,
    pub(crate) options: Options,
    pub(crate) contracts: Contracts,
    pub(crate) lanes: RwLock<HashMap<EndpointKey, Arc<Lane>>>,
    pub(crate) slots: Slots,
    pub(crate) counters: Counters,
    pub(crate) events: mpsc::UnboundedSender<Event>,
    pub(crate) phase: watch::Sender<Phase>,
    /// Why the engine gave up, when it did.
    pub(crate) fatal: watch::Sender<Option<String>>,
    /// Held for reading around each call that may write an attempt as started, until the attempt is owned. Whoever
    /// holds it for writing knows that every `sending` row without an owner is an orphan.
    pub(crate) claiming: AsyncRwLock<()>,
    /// Attempts launched whose end the loop has not heard of.
    pub(crate) live: AtomicUsize,
    /// A call that may have written attempts came back without an answer: look for orphans.
    pub(crate) doubt: AtomicBool,
    /// The search for them is ordered and has not begun.
    pub(crate) searching: AtomicBool,
}

impl Shared {
    pub(crate) fn tell(&self, event: Event) {
        // The loop is gone only after a shutdown or a fatal error; then nobody needs to know.
        let _ = self.events.send(event);
    }

    pub(crate) fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    pub(crate) fn lane(&self, key: EndpointKey) -> Option<Arc<Lane>> {
        let lanes = self.lanes.read().unwrap_or_else(PoisonError::into_inner);
        lanes.get(&key).map(Arc::clone)
    }

    /// Asks the loop to look for due work; once until it has heard.
    pub(crate) fn look(&self, key: EndpointKey) {
        if self.lane(key).is_none_or(|lane| lane.ask()) {
            self.tell(Event::Look(key));
        }
    }

    /// Sends what was written down as started.
    pub(crate) fn launch(self: &Arc<Self>, job: Job) {
        self.live.fetch_add(1, Ordering::AcqRel);
        tokio::spawn(attempt::run(Arc::clone(self), job));
    }

    /// Takes note of a store's error. True when it is the end.
    pub(crate) fn note(&self, error: &StoreError) -> bool {
        self.counters.store_faults.fetch_add(1, Ordering::Relaxed);
        match error {
            StoreError::Corrupt { .. } => {
                tracing::error!(%error, "the engine stops: the operator must look at the store");
                self.fatal.send_replace(Some(error.to_string()));
                self.phase.send_replace(Phase::Cut);
                self.tell(Event::Phase);
                true
            }
            _ => false,
        }
    }

    /// After this error it is not known whether the transaction was committed.
    pub(crate) fn doubt_after(&self, error: &StoreError) {
        if matches!(error, StoreError::Unavailable { .. } | StoreError::Corrupt { .. }) {
            self.doubt.store(true, Ordering::Release);
        }
    }
}
