//! Clock steps and restarts: an attempt starts when both clocks allow it (spec/engine.md, Clock).

use crate::world::{START, World, contract};
use contract::ledger::NodeEventKind;
use contract::{BootInstant, Duration, Instant, MessageId};
use engine::clock::ManualClock;
use store::DeliveryState;

const HOUR: i64 = 3_600_000;

fn at(ms: i64) -> Instant {
    Instant::from_unix_ms(START + ms)
}

/// A delivery that waits for ten seconds.
async fn waiting() -> (World, MessageId) {
    let mut world = World::new(&contract(&[])).await;
    world.endpoint("a.example").await;
    let id = world.send().await;
    world.call().await.answer(500);
    world.until_state(id, DeliveryState::Pending).await;
    (world, id)
}

#[tokio::test]
async fn a_wall_clock_set_forward_releases_nothing_early() {
    for step in [1000, HOUR, 15 * 24 * HOUR] {
        let (mut world, id) = waiting().await;
        world.clock.step_wall(step);
        world.advance(9999);
        world.settle_down().await;
        assert_eq!(world.waiting_calls(), 0, "{step}");
        world.advance(1);
        let call = world.call_to("a.example").await;
        assert_eq!(call.at, at(step + 10_000), "ten seconds of real time");
        call.answer(200);
        world.until_state(id, DeliveryState::Succeeded).await;
    }
}

#[tokio::test]
async fn a_wall_clock_set_back_delays_nothing_beyond_the_step() {
    for step in [1000, HOUR] {
        let (mut world, id) = waiting().await;
        world.clock.step_wall(-step);
        world.advance(9999 + step.unsigned_abs());
        world.settle_down().await;
        assert_eq!(world.waiting_calls(), 0, "{step}: not early by the wall clock");
        world.advance(1);
        let call = world.call_to("a.example").await;
        assert_eq!(call.at, at(10_000));
        call.answer(200);
        world.until_state(id, DeliveryState::Succeeded).await;
    }
}

#[tokio::test]
async fn a_wall_clock_that_is_set_right_again_delays_nothing() {
    let (mut world, id) = waiting().await;
    world.clock.step_wall(-HOUR);
    world.advance(5000);
    world.settle_down().await;
    world.clock.step_wall(HOUR);
    world.advance(5000);
    let call = world.call_to("a.example").await;
    assert_eq!(call.at, at(10_000));
    call.answer(200);
    world.until_state(id, DeliveryState::Succeeded).await;
}

#[tokio::test]
async fn a_step_of_more_than_half_a_second_is_in_the_ledger() {
    let (world, _) = waiting().await;
    let steps = |events: Vec<(NodeEventKind, Instant, i64)>| -> Vec<i64> {
        let steps = events
            .into_iter()
            .filter(|(kind, ..)| *kind == NodeEventKind::Step);
        steps.map(|(.., size)| size).collect()
    };
    for (step, sizes) in [(500, vec![]), (1, vec![501]), (-HOUR, vec![501, -HOUR])] {
        world.clock.step_wall(step);
        // A look may fall into a write: time goes on until the step is seen, and a while more where none may be.
        let looks = std::cell::Cell::new(0);
        let seen = crate::world::until(|| async {
            world.advance(250);
            looks.set(looks.get() + 1);
            looks.get() > 8 && steps(world.node_events().await) == sizes
        })
        .await;
        assert!(seen.is_ok(), "{step}: {:?}", world.node_events().await);
    }
}

#[tokio::test]
async fn elapsed_time_outlives_the_process() {
    // The wall clock is set forward while the process is down; the boot-time clock knows better.
    let (world, id) = waiting().await;
    let now = world.clock.now_reading();
    let clock = ManualClock::new(
        now.wall + Duration::from_ms(4000 + 3_600_000),
        now.boot + Duration::from_ms(4000),
    );
    let mut world = world.crash(clock).await;
    world.advance(5999);
    world.settle_down().await;
    assert_eq!(world.waiting_calls(), 0);
    world.advance(1);
    let call = world.call_to("a.example").await;
    assert_eq!(call.at, at(HOUR + 10_000));
    call.answer(200);
    world.until_state(id, DeliveryState::Succeeded).await;
    let events = world.node_events().await;
    assert!(
        events
            .iter()
            .any(|(kind, _, size)| (*kind, *size) == (NodeEventKind::Step, HOUR)),
        "{events:?}"
    );
}

#[tokio::test]
async fn across_a_reboot_only_the_wall_clock_remains() {
    let (world, id) = waiting().await;
    let boot_id = "00000000-0000-4000-8000-000000000002";
    let clock = ManualClock::of_boot(boot_id, at(9000), BootInstant::from_ms(7));
    let mut world = world.crash(clock).await;
    world.advance(999);
    world.settle_down().await;
    assert_eq!(world.waiting_calls(), 0);
    world.advance(1);
    let call = world.call_to("a.example").await;
    assert_eq!(call.at, at(10_000));
    call.answer(200);
    world.until_state(id, DeliveryState::Succeeded).await;
}

/// A clock may be set between the claim and the send. The claim is taken back: its row would say that it was early.
#[tokio::test]
async fn a_fresh_message_waits_when_the_wall_clock_was_set_back_since_it_was_received() {
    let mut world = World::new(&contract(&[])).await;
    world.endpoint("a.example").await;
    let message = world.message();
    let id = message.id;
    world.clock.step_wall(-2000);
    world.engine.accept(message).await.unwrap();
    world.settle_down().await;
    assert_eq!(world.waiting_calls(), 0);
    world.advance(2000);
    let call = world.call_to("a.example").await;
    assert_eq!(call.at, at(0));
    call.answer(200);
    world.until_state(id, DeliveryState::Succeeded).await;
    let rows = world.rows(id).await;
    assert_eq!(
        (rows.len(), rows[0].due_at, rows[0].started_at),
        (1, at(0), at(0))
    );
}

#[tokio::test]
async fn a_wall_clock_set_back_under_way_does_not_end_an_attempt_before_its_start() {
    let mut world = World::new(&contract(&[])).await;
    world.endpoint("a.example").await;
    let id = world.send().await;
    let call = world.call().await;
    world.clock.step_wall(-HOUR);
    call.answer(500);
    world.until_state(id, DeliveryState::Pending).await;
    let row = world.rows(id).await.remove(0);
    assert_eq!((row.started_at, row.ended_at), (at(0), Some(at(0))));
}
