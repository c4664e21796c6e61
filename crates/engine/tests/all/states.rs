//! The two state tables of spec/engine.md, a test a cell: the engine's part in them.

use crate::world::{START, World, contract};
use contract::Instant;
use contract::ledger::EndpointState::{Active, Deleted, Disabled, Draining};
use contract::ledger::Outcome;
use store::{Delivery, DeliveryState, EndpointKey, Redrive};

fn at(ms: i64) -> Instant {
    Instant::from_unix_ms(START + ms)
}

async fn world() -> (World, EndpointKey) {
    let world = World::new(&contract(&[])).await;
    let endpoint = world.endpoint("a.example").await.key;
    (world, endpoint)
}

/// A delivery that failed once and waits for its second attempt.
async fn waiting(world: &mut World) -> contract::MessageId {
    let id = world.send().await;
    world.call_to("a.example").await.answer(500);
    world.until_state(id, DeliveryState::Pending).await;
    id
}

fn reason(delivery: &Delivery) -> &str {
    delivery.reason.as_deref().unwrap_or("none")
}

// ---- endpoints: state × (new messages, waiting deliveries, in-flight attempts) -----------------------------------

#[tokio::test]
async fn active_new_messages_fan_out_and_go() {
    let (mut world, _) = world().await;
    world.endpoint("b.example").await;
    let id = world.send().await;
    for host in ["a.example", "b.example"] {
        world.call_to(host).await.answer(200);
    }
    world.until_state(id, DeliveryState::Succeeded).await;
    assert_eq!(world.store.deliveries(id).await.unwrap().len(), 2);
}

#[tokio::test]
async fn active_waiting_deliveries_go_when_due() {
    let (mut world, _) = world().await;
    let id = waiting(&mut world).await;
    world.advance(10_000);
    let call = world.call().await;
    assert_eq!(call.at, at(10_000));
    call.answer(200);
    world.until_state(id, DeliveryState::Succeeded).await;
}

#[tokio::test]
async fn draining_new_messages_fan_out_and_are_held() {
    let (mut world, endpoint) = world().await;
    world.set_state(endpoint, Draining).await;
    let id = world.send().await;
    world.settle_down().await;
    assert_eq!(world.waiting_calls(), 0);
    assert_eq!(world.delivery(id).await.state, DeliveryState::Pending);
}

#[tokio::test]
async fn draining_waiting_deliveries_are_held() {
    let (mut world, endpoint) = world().await;
    let id = waiting(&mut world).await;
    world.set_state(endpoint, Draining).await;
    world.advance(3_600_000);
    world.settle_down().await;
    assert_eq!(world.waiting_calls(), 0);
    assert_eq!(world.delivery(id).await.state, DeliveryState::Pending);
}

#[tokio::test]
async fn draining_in_flight_attempts_finish_and_their_failures_are_held() {
    let (mut world, endpoint) = world().await;
    let (good, bad) = (world.send().await, world.send().await);
    let calls = [world.call().await, world.call().await];
    world.set_state(endpoint, Draining).await;
    for call in calls {
        let status = if call.header("webhook-id") == good.to_string() {
            200
        } else {
            500
        };
        call.answer(status);
    }
    world.until_state(good, DeliveryState::Succeeded).await;
    world.until_state(bad, DeliveryState::Pending).await;
    world.advance(3_600_000);
    world.settle_down().await;
    assert_eq!(world.waiting_calls(), 0);
}

#[tokio::test]
async fn disabled_new_messages_are_dead_and_can_be_redriven() {
    let (mut world, endpoint) = world().await;
    world.set_state(endpoint, Disabled).await;
    let id = world.send().await;
    assert_eq!(reason(&world.delivery(id).await), "endpoint_disabled");
    world.set_state(endpoint, Active).await;
    let now = at(0);
    let redrive = Redrive {
        message: id,
        endpoint,
        now,
    };
    world.store.redrive(redrive).await.unwrap();
    world.call().await.answer(200);
    world.until_state(id, DeliveryState::Succeeded).await;
}

#[tokio::test]
async fn disabled_waiting_deliveries_are_dead() {
    let (mut world, endpoint) = world().await;
    let id = waiting(&mut world).await;
    world.set_state(endpoint, Disabled).await;
    let delivery = world.until_state(id, DeliveryState::Dead).await;
    assert_eq!(reason(&delivery), "endpoint_disabled");
    world.advance(3_600_000);
    world.settle_down().await;
    assert_eq!(world.waiting_calls(), 0);
}

#[tokio::test]
async fn disabled_in_flight_attempts_finish_and_their_failures_are_dead() {
    let (mut world, endpoint) = world().await;
    let (good, bad) = (world.send().await, world.send().await);
    let calls = [world.call().await, world.call().await];
    world.set_state(endpoint, Disabled).await;
    for call in calls {
        let status = if call.header("webhook-id") == good.to_string() {
            200
        } else {
            500
        };
        call.answer(status);
    }
    world.until_state(good, DeliveryState::Succeeded).await;
    let delivery = world.until_state(bad, DeliveryState::Dead).await;
    assert_eq!(reason(&delivery), "endpoint_disabled");
    assert_eq!(
        world.rows(bad).await[0].outcome,
        Some(Outcome::Failed),
        "the attempt itself is recorded"
    );
}

#[tokio::test]
async fn deleted_waiting_deliveries_are_dead() {
    let (mut world, endpoint) = world().await;
    let id = waiting(&mut world).await;
    world.set_state(endpoint, Deleted).await;
    let delivery = world.until_state(id, DeliveryState::Dead).await;
    assert_eq!(reason(&delivery), "endpoint_deleted");
}

#[tokio::test]
async fn re_activation_releases_what_was_held_oldest_first() {
    let one_at_a_time = contract(&[("in_flight", "1")]);
    let mut world = World::new(&one_at_a_time).await;
    let endpoint = world.endpoint("a.example").await.key;
    world.set_state(endpoint, Draining).await;
    let mut held = Vec::new();
    for _ in 0..5 {
        held.push(world.send().await);
        world.advance(10);
    }
    world.settle_down().await;
    assert_eq!(world.waiting_calls(), 0);
    world.set_state(endpoint, Active).await;
    for id in held {
        let call = world.call().await;
        assert_eq!(call.header("webhook-id"), id.to_string());
        call.answer(200);
        world.until_state(id, DeliveryState::Succeeded).await;
    }
}

// ---- deliveries: how each state is left ---------------------------------------------------------------------------

#[tokio::test]
async fn pending_is_left_by_a_claim() {
    let (mut world, _) = world().await;
    let id = waiting(&mut world).await;
    world.advance(10_000);
    let call = world.call().await;
    assert_eq!(
        world.delivery(id).await.state,
        DeliveryState::Sending,
        "written down before it is sent"
    );
    let row = world.rows(id).await.remove(1);
    assert_eq!((row.outcome, row.ended_at), (None, None));
    drop(call);
}

#[tokio::test]
async fn pending_is_left_by_cancelling() {
    let (mut world, _) = world().await;
    let id = waiting(&mut world).await;
    let delivery = world.delivery(id).await;
    assert!(
        world
            .store
            .cancel(delivery.key, "not wanted", at(0))
            .await
            .unwrap()
    );
    world.advance(3_600_000);
    world.settle_down().await;
    assert_eq!(world.waiting_calls(), 0);
    assert_eq!(world.delivery(id).await.state, DeliveryState::Cancelled);
}

#[tokio::test]
async fn pending_is_left_by_expiry_while_it_is_held() {
    let aged = contract(&[("max_age", "\"1h\"")]);
    let mut world = World::new(&aged).await;
    let endpoint = world.endpoint("a.example").await.key;
    world.set_state(endpoint, Draining).await;
    let id = world.send().await;
    world.advance(3_600_000);
    world.settle_down().await;
    let held = world.delivery(id).await;
    assert_eq!(
        held.state,
        DeliveryState::Pending,
        "to the last millisecond of its age"
    );
    // The sweep comes by within its time.
    let swept = crate::world::until(|| async {
        world.advance(1000);
        world.delivery(id).await.state == DeliveryState::Dead
    });
    swept.await.unwrap();
    assert_eq!(reason(&world.delivery(id).await), "max_age");
}

#[tokio::test]
async fn pending_is_left_by_expiry_when_it_would_be_sent_too_old() {
    let aged = contract(&[("max_age", "\"1h\""), ("in_flight", "1")]);
    let mut world = World::new(&aged).await;
    world.endpoint("a.example").await;
    let first = world.send().await;
    let call = world.call().await;
    let second = world.send().await;
    world.advance(3_600_001);
    call.answer(200);
    world.until_state(first, DeliveryState::Succeeded).await;
    let delivery = world.until_state(second, DeliveryState::Dead).await;
    assert_eq!((reason(&delivery), delivery.attempts), ("max_age", 0));
    assert_eq!(world.waiting_calls(), 0);
}

#[tokio::test]
async fn pending_is_left_when_it_is_superseded() {
    let (mut world, endpoint) = world().await;
    let id = waiting(&mut world).await;
    let redrive = Redrive {
        message: id,
        endpoint,
        now: at(0),
    };
    world.store.redrive(redrive).await.unwrap();
    world.call().await.answer(200);
    world.until_state(id, DeliveryState::Succeeded).await;
    let states: Vec<_> = world
        .store
        .deliveries(id)
        .await
        .unwrap()
        .iter()
        .map(|d| d.state)
        .collect();
    assert_eq!(states, [DeliveryState::Cancelled, DeliveryState::Succeeded]);
    world.advance(3_600_000);
    world.settle_down().await;
    assert_eq!(world.waiting_calls(), 0);
}

#[tokio::test]
async fn sending_is_left_for_succeeded_pending_or_dead() {
    let two = contract(&[("max_attempts", "2")]);
    let mut world = World::new(&two).await;
    world.endpoint("a.example").await;
    let id = world.send().await;
    world.call().await.answer(500);
    world.until_state(id, DeliveryState::Pending).await;
    world.advance(10_000);
    world.call().await.answer(500);
    world.until_state(id, DeliveryState::Dead).await;
    let id = world.send().await;
    world.call().await.answer(200);
    world.until_state(id, DeliveryState::Succeeded).await;
}

#[tokio::test]
async fn sending_that_is_superseded_completes_its_row_and_changes_nothing_else() {
    let (mut world, endpoint) = world().await;
    let id = world.send().await;
    let old = world.call().await;
    let redrive = Redrive {
        message: id,
        endpoint,
        now: at(0),
    };
    world.store.redrive(redrive).await.unwrap();
    let new = world.call().await;
    old.answer(500);
    new.answer(200);
    world.until_state(id, DeliveryState::Succeeded).await;
    let outcomes = || async {
        let rows = world.rows(id).await;
        rows.iter().map(|row| row.outcome).collect::<Vec<_>>()
    };
    crate::world::until(|| async { outcomes().await == [Some(Outcome::Failed), Some(Outcome::Succeeded)] })
        .await
        .unwrap();
    let states: Vec<_> = world
        .store
        .deliveries(id)
        .await
        .unwrap()
        .iter()
        .map(|d| d.state)
        .collect();
    assert_eq!(states, [DeliveryState::Cancelled, DeliveryState::Succeeded]);
}

#[tokio::test]
async fn succeeded_dead_and_cancelled_are_never_left() {
    let (mut world, _) = world().await;
    let mut last = Vec::new();
    for status in [200, 410] {
        let id = world.send().await;
        world.call().await.answer(status);
        last.push((
            id,
            if status == 200 {
                DeliveryState::Succeeded
            } else {
                DeliveryState::Dead
            },
        ));
    }
    let cancelled = waiting(&mut world).await;
    let key = world.delivery(cancelled).await.key;
    world.store.cancel(key, "not wanted", at(0)).await.unwrap();
    last.push((cancelled, DeliveryState::Cancelled));
    for (id, state) in &last {
        world.until_state(*id, *state).await;
    }
    world.advance(86_400_000);
    world.settle_down().await;
    assert_eq!(world.waiting_calls(), 0);
    for (id, state) in last {
        assert_eq!(world.delivery(id).await.state, state);
    }
}
