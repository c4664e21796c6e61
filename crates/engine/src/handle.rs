//! Starting an engine, and the handle that the rest of the program holds.

use crate::chores;
use crate::clock::Clock;
use crate::contracts::Contracts;
use crate::cycle::Cycle;
use crate::files::attempts_that_fit;
use crate::gate;
use crate::lane::Slots;
use crate::options::Options;
use crate::pulse;
use crate::recovery;
use crate::shared::{Event, Phase, Shared};
use crate::stats::{Counters, Stats};
use crate::wire::Wire;
use contract::Duration;
use contract::ledger::NodeEventKind;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use store::{Accepted, NewMessage, Reading, Store, StoreError};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{RwLock as AsyncRwLock, mpsc, watch};
use tokio::task::JoinHandle;

/// How long the last settles may take once nothing more can end.
const LAST_COMMITS: Duration = Duration::from_secs(5);

/// The engine. [`Engine::start`] is all there is to it; what runs is held by its [`EngineHandle`].
#[derive(Debug)]
pub struct Engine;

impl Engine {
    /// Recovers what the last run left, and starts. When this returns, nothing is in flight and deliveries go.
    ///
    /// # Errors
    /// The store's own: a start that cannot recover must not send.
    pub async fn start(
        store: Arc<dyn Store>,
        wire: Arc<dyn Wire>,
        options: Options,
        clock: Arc<dyn Clock>,
    ) -> store::Result<EngineHandle> {
        // Listened to before the first reading, so that no change is missed.
        let changes = store.changes();
        let contracts = Contracts::load(&*store).await?;
        let (events, inbox) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            slots: Slots::new(options.max_in_flight.min(attempts_that_fit())),
            store,
            clock,
            wire,
            options,
            contracts,
            lanes: RwLock::new(HashMap::new()),
            counters: Counters::default(),
            events,
            phase: watch::Sender::new(Phase::Running),
            fatal: watch::Sender::new(None),
            claiming: AsyncRwLock::new(()),
            live: AtomicUsize::new(0),
            doubt: AtomicBool::new(false),
            searching: AtomicBool::new(false),
        });
        let since = shared.clock.now();
        let lanes = recovery::recover(&shared).await?;
        let (to_chores, chores) = mpsc::unbounded_channel();
        let cycle = Cycle::new(Arc::clone(&shared), inbox, to_chores, lanes);
        let helpers = vec![
            tokio::spawn(chores::run(Arc::clone(&shared), chores)),
            tokio::spawn(pulse::run(Arc::clone(&shared), since)),
            tokio::spawn(listen(Arc::clone(&shared), changes)),
        ];
        let cycle = tokio::spawn(cycle.run());
        Ok(EngineHandle(Arc::new(Running {
            shared,
            cycle: Mutex::new(Some(cycle)),
            helpers,
        })))
    }
}

/// Passes the store's word about changes on to the loop.
async fn listen(shared: Arc<Shared>, mut changes: tokio::sync::broadcast::Receiver<store::Change>) {
    loop {
        match changes.recv().await {
            Ok(change) => shared.tell(Event::Changed(Some(change))),
            Err(RecvError::Lagged(_)) => shared.tell(Event::Changed(None)),
            Err(RecvError::Closed) => return,
        }
    }
}

struct Running {
    shared: Arc<Shared>,
    cycle: Mutex<Option<JoinHandle<()>>>,
    helpers: Vec<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.helpers.iter().for_each(JoinHandle::abort);
        let cycle = self.cycle.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(cycle) = cycle.take() {
            cycle.abort();
        }
    }
}

/// A running engine. Cheap to clone; when the last clone goes without a shutdown, the engine stops as in a crash.
#[derive(Clone)]
pub struct EngineHandle(Arc<Running>);

/// How a shutdown went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shutdown {
    /// Everything in flight ended by itself within the timeout.
    pub in_time: bool,
    /// Everything that ended was written down. If not, the next start settles the rest as interrupted.
    pub settled: bool,
}

impl EngineHandle {
    /// Stores a message and all its deliveries, durably, and sends at once what may go.
    ///
    /// # Errors
    /// The store's own. After `Unavailable` the message may be stored nevertheless: its id tells.
    pub async fn accept(&self, message: NewMessage) -> store::Result<Accepted> {
        let accepting = tokio::spawn(gate::accept(Arc::clone(&self.0.shared), message));
        accepting.await.unwrap_or_else(|error| {
            self.0.shared.doubt.store(true, Ordering::Release);
            Err(StoreError::Unavailable {
                reason: "accepting the message did not come to an end".to_owned(),
                source: Some(Box::new(error)),
            })
        })
    }

    /// Both clocks, as the engine reads them: for [`NewMessage::now`].
    #[must_use]
    pub fn now(&self) -> Reading {
        self.0.shared.clock.now()
    }

    /// The counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let shared = &self.0.shared;
        shared.counters.snapshot(shared.slots.used())
    }

    /// Waits until the engine has given up, and says why: the operator must look at the store.
    pub async fn fatal(&self) -> String {
        let mut fatal = self.0.shared.fatal.subscribe();
        match fatal.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            // The sender lives as long as this handle.
            Err(_) => String::new(),
        }
    }

    /// Stops: claims nothing more, releases what was claimed and not sent, lets what is in flight finish for at most
    /// `timeout` (then it is settled as timed out), writes everything down, and notes that this node is down.
    pub async fn shutdown(&self, timeout: Duration) -> Shutdown {
        let Running { shared, cycle, .. } = &*self.0;
        let cycle = cycle.lock().unwrap_or_else(PoisonError::into_inner).take();
        shared.phase.send_if_modified(|phase| {
            let first = *phase == Phase::Running;
            *phase = (*phase).max(Phase::Stopping);
            first
        });
        shared.tell(Event::Phase);
        let Some(mut cycle) = cycle else {
            return Shutdown {
                in_time: true,
                settled: true,
            };
        };
        let in_time = self.ends_within(&mut cycle, timeout).await;
        let settled = in_time || {
            shared.phase.send_replace(Phase::Cut);
            shared.tell(Event::Phase);
            self.ends_within(&mut cycle, LAST_COMMITS).await
        };
        // After a fatal fault what has ended since is not written down.
        let settled = settled && shared.fatal.borrow().is_none();
        cycle.abort();
        self.0.helpers.iter().for_each(JoinHandle::abort);
        let down = NodeEventKind::Down;
        let now = shared.clock.now();
        if let Err(error) = shared.store.node_event(&shared.options.node, down, now, 0).await {
            tracing::warn!(%error, "the shutdown could not be written down");
        }
        Shutdown { in_time, settled }
    }

    async fn ends_within(&self, cycle: &mut JoinHandle<()>, wait: Duration) -> bool {
        tokio::select! {
            biased;
            _ = cycle => true,
            () = self.0.shared.rest(wait) => false,
        }
    }
}
