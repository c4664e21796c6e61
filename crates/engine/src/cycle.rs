//! The loop: claim → send → settle → commit. One task owns all that waits in memory; it never waits for the store,
//! a receiver or a clock itself, but hands such work to tasks that tell it when they are done.
//!
//! What it holds is a window of due work, never the backlog: due work is found by query, and timers only make that
//! prompt. Fair: one claim a lane, in turn. Every commit settles what ended and claims what follows.

mod commit;
mod health;
mod look;
mod pick;
mod read;
mod slot;
mod timers;

pub(crate) use commit::{Committed, interrupted};
pub(crate) use look::{Looked, learn_for};
pub(crate) use read::read_every;

use crate::chores::Chore;
use crate::clock::after;
use crate::config::Config;
use crate::shared::{Event, Phase, Shared};
use contract::Duration;
use schedule::Until;
use slot::Slot;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::{Change, EndpointKey, Reading, Settle};
use timers::Timers;
use tokio::sync::mpsc;

/// Events taken in before the loop acts on them together.
const EVENTS_AT_ONCE: usize = 2048;
/// The loop looks at the clocks at least this often: a clock may have been set.
const TICK: Duration = Duration::from_ms(250);
/// The first wait after a fault of the store, doubled up to the last.
const FIRST_BACKOFF: Duration = Duration::from_ms(50);
const LAST_BACKOFF: Duration = Duration::from_ms(1000);

/// The loop's own state.
pub(crate) struct Cycle {
    shared: Arc<Shared>,
    events: mpsc::UnboundedReceiver<Event>,
    chores: mpsc::UnboundedSender<Chore>,
    slots: HashMap<EndpointKey, Slot>,
    /// Lanes with something in their window, in turn.
    ready: VecDeque<EndpointKey>,
    /// Lanes that found all slots taken.
    crowded: VecDeque<EndpointKey>,
    /// Lanes whose window should be filled, in turn.
    hungry: VecDeque<EndpointKey>,
    /// Looks under way.
    looks: usize,
    /// Due deliveries in all windows.
    held: usize,
    timers: Timers,
    /// Ended and not yet handed to a commit.
    settles: Vec<Settle>,
    /// Commits under way.
    commits: usize,
    /// After a fault of the store: no commit before then.
    pause: Option<Until>,
    backoff: Duration,
    readers: read::Readers,
    sweep: Sweep,
}

/// The periodic look at every lane.
struct Sweep {
    waiting: VecDeque<EndpointKey>,
    a_tick: usize,
    next: Until,
    again: Until,
}

impl Cycle {
    /// A loop over these lanes, whose windows are empty.
    pub(crate) fn new(
        shared: Arc<Shared>,
        events: mpsc::UnboundedReceiver<Event>,
        chores: mpsc::UnboundedSender<Chore>,
        lanes: Vec<(EndpointKey, Arc<Config>)>,
    ) -> Self {
        let now = shared.clock.now();
        let start = after(&now, Duration::ZERO);
        let mut cycle = Self {
            shared,
            events,
            chores,
            slots: HashMap::new(),
            ready: VecDeque::new(),
            crowded: VecDeque::new(),
            hungry: VecDeque::new(),
            looks: 0,
            held: 0,
            timers: Timers::default(),
            settles: Vec::new(),
            commits: 0,
            pause: None,
            backoff: FIRST_BACKOFF,
            readers: read::Readers::default(),
            sweep: Sweep {
                waiting: VecDeque::new(),
                a_tick: 1,
                next: start,
                again: start,
            },
        };
        for (key, config) in lanes {
            cycle.apply(key, config);
        }
        cycle.sweep.again = after(&now, cycle.shared.options.sweep_every);
        cycle
    }

    /// Runs until a shutdown has nothing left to wait for, or a fatal fault.
    pub(crate) async fn run(mut self) {
        let mut batch = Vec::with_capacity(EVENTS_AT_ONCE);
        loop {
            let now = self.shared.clock.now();
            self.on_time(&now);
            self.look(&now);
            self.commit(&now);
            if self.is_over() {
                return;
            }
            let until = self.wake_at(&now);
            let clock = Arc::clone(&self.shared.clock);
            tokio::select! {
                biased;
                _ = self.events.recv_many(&mut batch, EVENTS_AT_ONCE) => {}
                () = clock.sleep_until(until) => {}
            }
            for event in batch.drain(..) {
                self.on(event);
            }
        }
    }

    fn on(&mut self, event: Event) {
        match event {
            Event::Ended(ended) => self.on_ended(*ended),
            Event::Vanished(lane, delivery) => {
                self.shared.live.fetch_sub(1, Ordering::AcqRel);
                // Whoever is `sending` and owned by nobody is found and settled as interrupted.
                lane.disown(delivery);
                self.shared.doubt.store(true, Ordering::Release);
                self.feed(lane.key);
            }
            Event::Expired(key, deliveries) => self.on_expired(key, &deliveries),
            Event::Look(key) => self.on_look(key),
            Event::LookAround => {
                let keys: Vec<EndpointKey> = self.slots.keys().copied().collect();
                keys.into_iter().for_each(|key| self.on_look(key));
            }
            Event::Looked(looked) => self.on_looked(*looked),
            Event::Changed(Some(Change::Endpoint(key))) => self.read(key),
            Event::Changed(Some(Change::Work(key))) => self.on_look(key),
            Event::Changed(Some(Change::Contracts) | None) => self.read_all(),
            Event::Read(key, config) => self.on_read(key, config),
            Event::ReadAll(configs) => self.on_read_all(configs),
            Event::Committed(committed) => self.on_committed(*committed),
            Event::Orphan(claimed) => self.on_orphan(*claimed),
            Event::Stepped => self.recount_timers(),
            Event::Phase => {}
        }
    }

    /// Fires what is due by the clocks.
    fn on_time(&mut self, now: &Reading) {
        if self.pause.is_some_and(|until| crate::clock::reached(until, now)) {
            self.pause = None;
        }
        for key in self.timers.fired(now.boot) {
            let Some(slot) = self.slots.get_mut(&key) else {
                continue;
            };
            let Some(until) = slot.wake else { continue };
            if crate::clock::reached(until, now) {
                slot.wake = None;
                slot.want();
                self.feed(key);
            } else {
                // The wall clock is behind what was counted on.
                self.timers.set(key, until, now);
            }
        }
        let doubt = self.shared.doubt.load(Ordering::Acquire);
        if doubt && !self.shared.searching.swap(true, Ordering::AcqRel) {
            self.chore(Chore::FindOrphans);
        }
        self.sweep(now);
    }

    /// The liveness sweep: every lane is looked at, a share of them a second.
    fn sweep(&mut self, now: &Reading) {
        if !crate::clock::reached(self.sweep.next, now) || self.shared.phase() != Phase::Running {
            return;
        }
        let tick = Duration::from_secs(1);
        self.sweep.next = after(now, tick);
        if self.sweep.waiting.is_empty() && crate::clock::reached(self.sweep.again, now) {
            let every = self.shared.options.sweep_every;
            self.sweep.again = after(now, every);
            self.sweep.waiting = self.slots.keys().copied().collect();
            let ticks = usize::try_from(every.as_ms() / tick.as_ms()).unwrap_or(1);
            self.sweep.a_tick = self.slots.len().div_ceil(ticks.max(1)).max(1);
        }
        for _ in 0..self.sweep.a_tick {
            let Some(key) = self.sweep.waiting.pop_front() else {
                return;
            };
            self.sweep_lane(key);
        }
    }

    fn wake_at(&self, now: &Reading) -> Until {
        let timer = self.timers.first().map(|boot| Until {
            wall: now.wall,
            boot: Some(boot),
        });
        let tick = after(now, TICK);
        let candidates = [timer, self.pause, Some(self.sweep.next)];
        let sooner = |a: Until, b: Until| if reach(a, now) <= reach(b, now) { a } else { b };
        candidates.into_iter().flatten().fold(tick, sooner)
    }

    /// True when nothing is left that this loop could do or write.
    fn is_over(&self) -> bool {
        let shared = &self.shared;
        if shared.fatal.borrow().is_some() {
            return true;
        }
        shared.phase() != Phase::Running
            && self.commits == 0
            && self.settles.is_empty()
            && shared.slots.used() == 0
            && shared.live.load(Ordering::Acquire) == 0
    }

    fn chore(&self, chore: Chore) {
        // Gone only after the loop itself.
        let _ = self.chores.send(chore);
    }
}

/// How long until both clocks have come so far.
fn reach(until: Until, now: &Reading) -> Duration {
    let boot = until.boot.map_or(Duration::ZERO, |boot| boot.since(now.boot));
    until.wall.since(now.wall).max(boot)
}
