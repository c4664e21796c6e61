//! After a crash: nothing lost, nothing early, nothing too often (I1, I2, I3).

use crate::world::{START, World, contract};
use contract::ledger::{NodeEventKind, Outcome};
use contract::{Duration, Instant};
use store::DeliveryState;

fn at(ms: i64) -> Instant {
    Instant::from_unix_ms(START + ms)
}

#[tokio::test]
async fn an_attempt_in_flight_is_interrupted_and_the_next_waits_its_full_backoff_from_the_recovery() {
    let mut world = World::new(&contract(&[])).await;
    world.endpoint("a.example").await;
    let id = world.send().await;
    let _in_flight = world.call().await;
    let mut after = world.crash(world.clock_after(Duration::from_secs(7))).await;
    let delivery = after.delivery(id).await;
    assert_eq!(
        (delivery.state, delivery.due_at),
        (DeliveryState::Pending, Some(at(17_000)))
    );
    let row = after.rows(id).await.remove(0);
    assert_eq!(
        (row.outcome, row.ended_at),
        (Some(Outcome::Interrupted), Some(at(7000)))
    );
    after.advance(9999);
    after.settle_down().await;
    assert_eq!(after.waiting_calls(), 0);
    after.advance(1);
    let call = after.call_to("a.example").await;
    assert!(call.header("duehook-attempt").ends_with("; n=2"));
    call.answer(200);
    after.until_state(id, DeliveryState::Succeeded).await;
}

#[tokio::test]
async fn the_recovery_is_the_anchor_whatever_the_contract_says() {
    for anchor in ["\"start\"", "\"first\""] {
        let mut world = World::new(&contract(&[("anchor", anchor)])).await;
        world.endpoint("a.example").await;
        let id = world.send().await;
        let _in_flight = world.call().await;
        let after = world.crash(world.clock_after(Duration::from_secs(7))).await;
        assert_eq!(after.delivery(id).await.due_at, Some(at(17_000)), "{anchor}");
    }
}

#[tokio::test]
async fn interrupted_attempts_count_and_a_crash_a_time_never_exceeds_the_limit() {
    let mut world = World::new(&contract(&[])).await;
    world.endpoint("a.example").await;
    let id = world.send().await;
    for attempt in 1..=3 {
        let call = world.call_to("a.example").await;
        assert!(
            call.header("duehook-attempt")
                .ends_with(&format!("; n={attempt}"))
        );
        world = world.crash(world.clock_after(Duration::from_secs(1))).await;
        world.advance(60_000);
    }
    let delivery = world.until_state(id, DeliveryState::Dead).await;
    assert_eq!(
        (delivery.attempts, delivery.reason.as_deref()),
        (3, Some("max_attempts"))
    );
    world.advance(86_400_000);
    world.settle_down().await;
    assert_eq!(world.waiting_calls(), 0);
}

#[tokio::test]
async fn what_was_settled_is_not_sent_again() {
    let mut world = World::new(&contract(&[])).await;
    world.endpoint("a.example").await;
    let id = world.send().await;
    world.call().await.answer(200);
    world.until_state(id, DeliveryState::Succeeded).await;
    let mut after = world.crash(world.clock_after(Duration::from_secs(1))).await;
    after.settle_down().await;
    assert_eq!((after.waiting_calls(), after.rows(id).await.len()), (0, 1));
}

#[tokio::test]
async fn what_waits_is_found_again() {
    let mut world = World::new(&contract(&[])).await;
    world.endpoint("a.example").await;
    let id = world.send().await;
    world.call().await.answer(500);
    world.until_state(id, DeliveryState::Pending).await;
    let mut after = world.crash(world.clock_after(Duration::from_secs(86_400))).await;
    let call = after.call().await;
    assert_eq!(call.at, at(86_400_000));
    call.answer(200);
    after.until_state(id, DeliveryState::Succeeded).await;
}

#[tokio::test]
async fn an_interrupted_attempt_of_a_disabled_endpoint_is_dead() {
    let mut world = World::new(&contract(&[])).await;
    let endpoint = world.endpoint("a.example").await.key;
    let id = world.send().await;
    let _in_flight = world.call().await;
    world
        .set_state(endpoint, contract::ledger::EndpointState::Disabled)
        .await;
    let after = world.crash(world.clock_after(Duration::from_secs(1))).await;
    let delivery = after.delivery(id).await;
    assert_eq!(delivery.reason.as_deref(), Some("endpoint_disabled"));
    assert_eq!(after.rows(id).await[0].outcome, Some(Outcome::Interrupted));
}

#[tokio::test]
async fn the_pace_outlives_the_process() {
    let paced = contract(&[("rate", "\"2/1m\"")]);
    let mut world = World::new(&paced).await;
    world.endpoint("a.example").await;
    for _ in 0..2 {
        world.send().await;
        world.call().await.answer(200);
    }
    let third = world.send().await;
    world.settle_down().await;
    assert_eq!(world.waiting_calls(), 0);
    let mut after = world.crash(world.clock_after(Duration::from_secs(20))).await;
    after.advance(39_999);
    after.settle_down().await;
    assert_eq!(after.waiting_calls(), 0);
    after.advance(1);
    let call = after.call_to("a.example").await;
    assert_eq!(call.at, at(60_000));
    call.answer(200);
    after.until_state(third, DeliveryState::Succeeded).await;
}

#[tokio::test]
async fn the_ledger_says_when_the_node_was_up() {
    let world = World::new(&contract(&[])).await;
    // A sign of life each second bounds what is not known.
    for _ in 0..12 {
        world.advance(250);
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let after = world.crash(world.clock_after(Duration::from_secs(7))).await;
    let events = after.node_events().await;
    let kinds: Vec<_> = events.iter().map(|(kind, ..)| *kind).collect();
    assert_eq!(kinds, [NodeEventKind::Up, NodeEventKind::Down, NodeEventKind::Up]);
    let down = events[1].1;
    assert!(
        down >= at(1000) && down <= at(3000),
        "the last sign of life: {down}"
    );
    assert_eq!(events[2].1, at(10_000));
}
