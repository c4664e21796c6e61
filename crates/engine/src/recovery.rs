//! What a start does before anything is claimed: says that this node is up, settles what a crash left as
//! `interrupted`, and remembers the starts that still count for the pace.
//!
//! Keeps I1 (an interrupted attempt ends now, and the next waits its full backoff from here) and I2 (it counts).

use crate::clock::moment;
use crate::config::Config;
use crate::cycle::{interrupted, read_every};
use crate::lane::Lane;
use crate::pulse::record_step;
use crate::shared::Shared;
use contract::model::EndpointClauses;
use contract::{Duration, Instant};
use schedule::Pace;
use std::sync::{Arc, PoisonError};
use store::{EndpointKey, Page, Reading, Started};

const ROWS_AT_ONCE: usize = 500;
const STARTS_AT_ONCE: u32 = 250;

/// Brings the store to a state in which nothing is in flight.
pub(crate) async fn recover(shared: &Arc<Shared>) -> store::Result<Vec<(EndpointKey, Arc<Config>)>> {
    let now = shared.clock.now();
    let node = &shared.options.node;
    let boot_id = shared.clock.boot_id();
    let started = shared.store.node_up(node, boot_id, now.clone()).await?;
    if started.after_crash {
        tracing::warn!("the last run ended without a shutdown: settling what it left");
    }
    let step = started.step_ms;
    if step.unsigned_abs() > crate::clock::STEP_TOLERANCE_MS.unsigned_abs() {
        tracing::warn!(size_ms = step, "the wall clock stepped while this node was down");
        record_step(shared, &now, step).await;
    }
    let configs = read_every(shared).await?;
    for (key, config) in &configs {
        let pace = pace_after_restart(shared, *key, config, &started).await?;
        let lane = Arc::new(Lane::new(*key, Arc::clone(config), pace));
        let mut lanes = shared.lanes.write().unwrap_or_else(PoisonError::into_inner);
        lanes.insert(*key, lane);
    }
    let found = settle_interrupted(shared).await?;
    if found > 0 {
        tracing::warn!(attempts = found, "settled as interrupted");
    }
    Ok(configs)
}

/// Settles every attempt that was started and not settled.
async fn settle_interrupted(shared: &Arc<Shared>) -> store::Result<usize> {
    let mut found = 0;
    let mut after = None;
    loop {
        let sending = shared.store.sending(after, ROWS_AT_ONCE).await?;
        let Some(last) = sending.last() else {
            return Ok(found);
        };
        after = Some(last.due.key);
        let count = sending.len();
        let mut settles = Vec::with_capacity(count);
        for claimed in sending {
            learn(shared, &claimed).await?;
            // Such an attempt may have reached its receiver at any moment up to the crash.
            if let Some(lane) = shared.lane(claimed.due.endpoint) {
                lane.record(moment(&shared.clock.now()));
            }
            settles.extend(interrupted(shared, claimed));
        }
        if settles.len() < count {
            let left = count - settles.len();
            tracing::error!(
                left,
                "started attempts whose endpoint is unknown: left as they are"
            );
        }
        found += settles.len();
        for settle in &settles {
            shared.counters.ended(settle.outcome);
        }
        shared.store.settle_and_claim(settles, Vec::new()).await?;
    }
}

async fn learn(shared: &Shared, claimed: &store::Claimed) -> store::Result<()> {
    let keys = [Some(claimed.start.retry), claimed.due.message.contract];
    for key in keys.into_iter().flatten() {
        shared.contracts.learn(&*shared.store, key).await?;
    }
    Ok(())
}

/// The pace of an endpoint, with the starts of the last run that may still count, read back from the ledger.
async fn pace_after_restart(
    shared: &Shared,
    key: EndpointKey,
    config: &Config,
    started: &Started,
) -> store::Result<Pace> {
    let clauses = &config.contract.contract.endpoint;
    let mut pace = Pace::new(clauses, config.throttle);
    let now = shared.clock.now();
    let (most, window) = reach_of(clauses, config.throttle);
    let mut after = None;
    let mut known = 0;
    while known < most {
        // The first page is the latest start alone: mostly it is out of every window already.
        let limit = if known == 0 { 1 } else { STARTS_AT_ONCE };
        let page = Page {
            limit,
            after,
            newest_first: true,
        };
        let attempts = shared.store.attempts_of_endpoint(key, page).await?;
        let Some(last) = attempts.last() else { break };
        let oldest = read_back(last.record.started_at, &now, started);
        after = last.record.attempt_id.parse().ok();
        for attempt in &attempts {
            pace.record(moment(&read_back(attempt.record.started_at, &now, started)));
        }
        known = known.saturating_add(u32::try_from(attempts.len()).unwrap_or(u32::MAX));
        if oldest.boot + window <= now.boot && oldest.wall + window <= now.wall {
            break;
        }
    }
    Ok(pace)
}

/// How many starts back a pace can look, and how long.
fn reach_of(clauses: &EndpointClauses, throttle: Option<u16>) -> (u32, Duration) {
    let gap = (u32::from(!clauses.min_gap.is_zero()), clauses.min_gap);
    let rate = clauses
        .rate
        .map_or((0, Duration::ZERO), |rate| (rate.starts, rate.window));
    let throttle = throttle.map_or((0, Duration::ZERO), |starts| {
        (u32::from(starts), Duration::from_secs(1))
    });
    let all = [gap, rate, throttle];
    all.into_iter()
        .fold((0, Duration::ZERO), |(most, longest), (starts, window)| {
            (most.max(starts), longest.max(window))
        })
}

/// A start of the last run on both clocks. A wall clock that was set forward since makes it look longer ago than it
/// was.
fn read_back(at: Instant, now: &Reading, started: &Started) -> Reading {
    let stepped = Duration::from_ms(u64::try_from(started.step_ms).unwrap_or(0));
    let ago = now.wall.since(at).saturating_sub(stepped);
    Reading {
        wall: at,
        boot: contract::BootInstant::from_ms(now.boot.as_ms().saturating_sub(ago.as_ms())),
    }
}
