//! The life of a node in the ledger: up, down, the crash between them, and the clocks at a start.

use super::Factory;
use super::world::{BOOT, NODE, World, at, instant};
use crate::{Reading, Started, StoreError};
use contract::ledger::NodeEventKind;
use contract::{BootInstant, Seq};
use std::sync::Arc;

fn kinds(records: &super::Records) -> Vec<(NodeEventKind, i64)> {
    let since = |at: contract::Instant| at.as_unix_ms() - super::world::BEGIN;
    records
        .node_events
        .iter()
        .map(|event| (event.event, since(event.at)))
        .collect()
}

/// A first start finds nothing.
pub async fn a_first_start_finds_nothing(factory: &dyn Factory) {
    let store = factory.open().await;
    let started = store.node_up(NODE, BOOT, at(5)).await.expect("node_up");
    assert_eq!(started, Started::default());
}

/// After a crash the missing `down` stands at the last sign of life, then `up`.
pub async fn a_crash_is_down_at_the_last_sign_of_life(factory: &dyn Factory) {
    let world = World::new(factory).await;
    world.store.heartbeat(NODE, at(700)).await.expect("heartbeat");
    let world = world.crash().await;
    let started = world.store.node_up(NODE, BOOT, at(2000)).await.expect("node_up");
    assert!(started.after_crash && !started.rebooted);
    assert_eq!(started.step_ms, 0);
    let [up, down] = [NodeEventKind::Up, NodeEventKind::Down];
    assert_eq!(kinds(&world.ledger().await), [(up, 0), (down, 700), (up, 2000)]);
}

/// After an orderly end there is nothing to make up for.
pub async fn an_orderly_end_is_no_crash(factory: &dyn Factory) {
    let world = World::new(factory).await;
    world
        .store
        .node_event(NODE, NodeEventKind::Down, at(500), 0)
        .await
        .expect("node_event");
    world.store.close().await.expect("close");
    let world = world.crash().await;
    let started = world.store.node_up(NODE, BOOT, at(900)).await.expect("node_up");
    assert_eq!(started, Started::default());
    let [up, down] = [NodeEventKind::Up, NodeEventKind::Down];
    assert_eq!(kinds(&world.ledger().await), [(up, 0), (down, 500), (up, 900)]);
}

/// Within one boot a start measures how far the wall clock stepped since the last sign of life.
pub async fn a_start_measures_the_step(factory: &dyn Factory) {
    let world = World::new(factory).await;
    world.store.heartbeat(NODE, at(1000)).await.expect("heartbeat");
    let world = world.crash().await;
    let back = Reading {
        wall: instant(0),
        boot: at(3000).boot,
    };
    let started = world.store.node_up(NODE, BOOT, back).await.expect("node_up");
    assert_eq!(started.step_ms, -3000, "1000 → 0 while 2000 passed");
    let world = world.crash().await;
    let rebooted = Reading {
        wall: instant(50),
        boot: BootInstant::from_ms(1),
    };
    let started = world
        .store
        .node_up(NODE, "boot-2", rebooted)
        .await
        .expect("node_up");
    assert!(started.rebooted);
    assert_eq!(started.step_ms, 0, "nothing to measure with");
}

/// A step stands in the ledger with its size.
pub async fn a_step_is_written_with_its_size(factory: &dyn Factory) {
    let world = World::new(factory).await;
    world
        .store
        .node_event(NODE, NodeEventKind::Step, at(100), -3_600_000)
        .await
        .expect("node_event");
    let event = world.ledger().await.node_events.pop().expect("an event");
    assert_eq!(
        (event.event, event.size_ms, event.node.as_str()),
        (NodeEventKind::Step, -3_600_000, NODE)
    );
    assert_eq!((event.boot_id.as_str(), event.mono_ms), (BOOT, 1_000_100));
    assert!(event.seq > Seq::new(0));
}

/// Before a node is up nothing is claimed: there is nobody to have made the attempt.
pub async fn nothing_is_claimed_before_a_node_is_up(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(contract::ledger::EndpointState::Active).await;
    let world = world.crash().await;
    let accepted = world.accept_and_start(world.message(10)).await;
    assert_eq!((accepted.deliveries, accepted.claimed.len()), (1, 0));
    let due = world.due(&endpoint, 10).await.remove(0);
    let claim = crate::Claim {
        due,
        start: world.start(10),
    };
    let refused = world.store.settle_and_claim(vec![], vec![claim]).await;
    assert!(matches!(refused, Err(StoreError::Unavailable { .. })));
}

/// A closed store refuses everything and says so.
pub async fn a_closed_store_is_unavailable(factory: &dyn Factory) {
    let world = World::new(factory).await;
    world.store.close().await.expect("close");
    world.store.close().await.expect("closing twice is closing once");
    let refused = world
        .store
        .accept(world.message(10), Arc::new(super::world::Closed))
        .await;
    assert!(matches!(refused, Err(StoreError::Unavailable { .. })));
    assert!(matches!(
        world.store.tokens().await,
        Err(StoreError::Unavailable { .. })
    ));
}
