//! The pulse: a sign of life each second, and a watch on the wall clock.

use crate::clock::StepWatch;
use crate::shared::{Event, Shared};
use contract::Duration;
use contract::ledger::NodeEventKind;
use std::sync::Arc;
use store::Reading;

/// How often the clocks are compared; a step is known within it.
const LOOK: Duration = Duration::from_ms(250);
/// Looks between two signs of life: the downtime after a crash is known to the second.
const LOOKS_A_BEAT: u32 = 4;

/// Beats until the engine is done.
pub(crate) async fn run(shared: Arc<Shared>, since: Reading) {
    let mut steps = StepWatch::new(since);
    let mut looks = 0;
    loop {
        shared.rest_for_a_look().await;
        let now = shared.clock.now();
        if let Some(size_ms) = steps.look(&now) {
            tracing::warn!(size_ms, "the wall clock stepped");
            shared.tell(Event::Stepped);
            record_step(&shared, &now, size_ms).await;
        }
        looks += 1;
        if looks >= LOOKS_A_BEAT {
            looks = 0;
            if let Err(error) = shared.store.heartbeat(&shared.options.node, now).await {
                shared.note(&error);
            }
        }
    }
}

/// A step must be in the ledger: judges read it as the reason why wall-clock waits look longer or shorter.
pub(crate) async fn record_step(shared: &Shared, now: &Reading, size_ms: i64) {
    loop {
        let node = &shared.options.node;
        let step = NodeEventKind::Step;
        match shared.store.node_event(node, step, now.clone(), size_ms).await {
            Ok(()) => return,
            Err(error) if shared.note(&error) => return,
            Err(_) => shared.rest(LOOK).await,
        }
    }
}

impl Shared {
    /// One sleep at most: a clock that was set must not stretch or shorten the look.
    async fn rest_for_a_look(&self) {
        let now = self.clock.now();
        let until = schedule::Until {
            wall: contract::Instant::from_unix_ms(i64::MIN),
            boot: Some(now.boot + LOOK),
        };
        self.clock.sleep_until(until).await;
    }
}
