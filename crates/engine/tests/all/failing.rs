//! The failure clock of an endpoint (field report 17): per endpoint, reset by a success and by re-activation, and
//! firing at its limit, neither before nor never.

use crate::world::{START, World, contract};
use contract::ledger::EndpointState;
use contract::{Contract, Duration, Instant};
use store::{DeliveryState, EndpointKey};

const HOUR: u64 = 3_600_000;

fn at(ms: i64) -> Instant {
    Instant::from_unix_ms(START + ms)
}

fn limit_of_an_hour() -> Contract {
    contract(&[("disable_after", "\"1h\""), ("max_attempts", "1")])
}

async fn attempt(world: &mut World, host: &str, status: u16) {
    let id = world.send().await;
    world.call_to(host).await.answer(status);
    world
        .until_delivery(id, |delivery| {
            matches!(delivery.state, DeliveryState::Succeeded | DeliveryState::Dead)
        })
        .await;
}

async fn state(world: &mut World, key: EndpointKey) -> EndpointState {
    world.settle_down().await;
    world.store.endpoint_by_key(key).await.unwrap().unwrap().state
}

#[tokio::test]
async fn disable_after_fires_at_its_limit_and_not_a_millisecond_before() {
    for (ms, expected) in [
        (HOUR - 1, EndpointState::Active),
        (HOUR, EndpointState::Disabled),
        (HOUR + 1, EndpointState::Disabled),
    ] {
        let mut world = World::new(&limit_of_an_hour()).await;
        let key = world.endpoint("a.example").await.key;
        attempt(&mut world, "a.example", 500).await;
        world
            .until_endpoint(key, |endpoint| endpoint.failing_since == Some(at(0)))
            .await;
        world.advance(ms);
        attempt(&mut world, "a.example", 500).await;
        if expected == EndpointState::Disabled {
            world
                .until_endpoint(key, |endpoint| endpoint.state == expected)
                .await;
            let event = world.store.last_endpoint_event(key).await.unwrap().unwrap();
            assert_eq!(event.by, "engine");
            assert!(event.why.unwrap().contains("disable_after"));
        } else {
            assert_eq!(state(&mut world, key).await, expected, "{ms}");
        }
    }
}

#[tokio::test]
async fn a_success_resets_the_failure_clock() {
    let mut world = World::new(&limit_of_an_hour()).await;
    let key = world.endpoint("a.example").await.key;
    attempt(&mut world, "a.example", 500).await;
    world.advance(HOUR - 1);
    attempt(&mut world, "a.example", 200).await;
    world
        .until_endpoint(key, |endpoint| endpoint.failing_since.is_none())
        .await;
    world.advance(HOUR);
    attempt(&mut world, "a.example", 500).await;
    assert_eq!(state(&mut world, key).await, EndpointState::Active);
    let since = world.clock.now_reading().wall;
    world
        .until_endpoint(key, |endpoint| endpoint.failing_since == Some(since))
        .await;
}

#[tokio::test]
async fn re_activation_resets_the_failure_clock() {
    let mut world = World::new(&limit_of_an_hour()).await;
    let key = world.endpoint("a.example").await.key;
    attempt(&mut world, "a.example", 500).await;
    world.advance(HOUR);
    attempt(&mut world, "a.example", 500).await;
    world
        .until_endpoint(key, |endpoint| endpoint.state == EndpointState::Disabled)
        .await;
    world.advance(1000);
    world.set_state(key, EndpointState::Active).await;
    world.settle_down().await;
    attempt(&mut world, "a.example", 500).await;
    assert_eq!(state(&mut world, key).await, EndpointState::Active);
    // And it fires again, an hour from there.
    world.advance(HOUR);
    attempt(&mut world, "a.example", 500).await;
    world
        .until_endpoint(key, |endpoint| endpoint.state == EndpointState::Disabled)
        .await;
}

#[tokio::test]
async fn the_failure_clock_is_each_endpoints_own_and_outlives_the_process() {
    let mut world = World::new(&limit_of_an_hour()).await;
    let a = world
        .endpoint_with("a.example", |fields| {
            fields.event_types = Some(vec!["order.paid".to_owned()]);
        })
        .await
        .key;
    attempt(&mut world, "a.example", 500).await;
    world
        .until_endpoint(a, |endpoint| endpoint.failing_since.is_some())
        .await;
    let mut world = world.crash(world.clock_after(Duration::from_ms(HOUR))).await;
    let b = world.endpoint("b.example").await.key;
    let id = world.send().await;
    world.call_to("a.example").await.answer(500);
    world.call_to("b.example").await.answer(500);
    world
        .until_endpoint(a, |endpoint| endpoint.state == EndpointState::Disabled)
        .await;
    assert_eq!(state(&mut world, b).await, EndpointState::Active);
    world.until_state(id, DeliveryState::Dead).await;
}

#[tokio::test]
async fn disable_on_fires_at_the_first_such_answer() {
    let gone = contract(&[("disable_on", "[\"410\"]")]);
    let mut world = World::new(&gone).await;
    let key = world.endpoint("a.example").await.key;
    let waiting = world.send().await;
    world.call().await.answer(409);
    world.until_state(waiting, DeliveryState::Pending).await;
    assert_eq!(state(&mut world, key).await, EndpointState::Active);
    let id = world.send().await;
    world.call().await.answer(410);
    world
        .until_endpoint(key, |endpoint| endpoint.state == EndpointState::Disabled)
        .await;
    let event = world.store.last_endpoint_event(key).await.unwrap().unwrap();
    assert_eq!(
        (event.by.as_str(), event.why.as_deref()),
        ("engine", Some("answered 410 (disable_on)"))
    );
    let delivery = world.until_state(id, DeliveryState::Dead).await;
    assert_eq!(delivery.reason.as_deref(), Some("terminal"));
    let delivery = world.until_state(waiting, DeliveryState::Dead).await;
    assert_eq!(delivery.reason.as_deref(), Some("endpoint_disabled"));
    assert_eq!(world.engine.stats().disabled_endpoints, 1);
}

#[tokio::test]
async fn a_draining_endpoint_is_left_to_the_person_who_drains_it() {
    let gone = contract(&[("disable_on", "[\"410\"]")]);
    let mut world = World::new(&gone).await;
    let key = world.endpoint("a.example").await.key;
    world.send().await;
    let call = world.call().await;
    world.set_state(key, EndpointState::Draining).await;
    world.settle_down().await;
    call.answer(410);
    assert_eq!(state(&mut world, key).await, EndpointState::Draining);
}
