//! What endpoints may be sent at once and how fast, and that none of them costs another anything.

use crate::world::{START, World, contract, options};
use contract::{Instant, MessageId};
use engine::Options;
use engine::wire::Fault;
use store::DeliveryState;

fn at(ms: i64) -> Instant {
    Instant::from_unix_ms(START + ms)
}

#[tokio::test]
async fn min_gap_lies_between_the_starts_of_any_two_attempts() {
    let mut world = World::new(&contract(&[("min_gap", "\"250ms\"")])).await;
    world.endpoint("a.example").await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(world.send().await);
    }
    let mut starts = Vec::new();
    for _ in 0..4 {
        world.settle_down().await;
        let call = world.call_to("a.example").await;
        starts.push(call.at);
        call.answer(200);
        assert_eq!(world.waiting_calls(), 0);
        world.advance(249);
        world.settle_down().await;
        assert_eq!(world.waiting_calls(), 0, "one millisecond too soon");
        world.advance(1);
    }
    assert_eq!(starts, [at(0), at(250), at(500), at(750)]);
}

#[tokio::test]
async fn rate_holds_in_every_window() {
    let mut world = World::new(&contract(&[("rate", "\"3/1s\"")])).await;
    world.endpoint("a.example").await;
    for _ in 0..7 {
        world.send().await;
    }
    let mut starts = Vec::new();
    for expected in [3, 3, 1] {
        for _ in 0..expected {
            let call = world.call_to("a.example").await;
            starts.push(call.at);
            call.answer(200);
        }
        world.advance(999);
        world.settle_down().await;
        assert_eq!(world.waiting_calls(), 0);
        world.advance(1);
    }
    assert_eq!(
        starts,
        [at(0), at(0), at(0), at(1000), at(1000), at(1000), at(2000)]
    );
}

#[tokio::test]
async fn an_endpoints_own_throttle_counts_too() {
    let mut world = World::new(&contract(&[])).await;
    world
        .endpoint_with("a.example", |fields| fields.throttle_rate = Some(1))
        .await;
    world.send().await;
    world.send().await;
    world.call_to("a.example").await.answer(200);
    world.settle_down().await;
    assert_eq!(world.waiting_calls(), 0);
    world.advance(1000);
    assert_eq!(world.call_to("a.example").await.at, at(1000));
}

#[tokio::test]
async fn the_in_flight_window_is_never_exceeded_and_always_used() {
    let mut world = World::new(&contract(&[("in_flight", "2")])).await;
    world.endpoint("a.example").await;
    let mut ids: Vec<MessageId> = Vec::new();
    for _ in 0..5 {
        ids.push(world.send().await);
    }
    let mut open = vec![world.call().await, world.call().await];
    for left in [2, 1, 0] {
        world.settle_down().await;
        assert_eq!(world.waiting_calls(), 0, "two at once");
        open.remove(0).answer(200);
        open.push(world.call().await);
        let _ = left;
    }
    open.into_iter().for_each(|call| call.answer(200));
    for id in ids {
        world.until_state(id, DeliveryState::Succeeded).await;
    }
}

#[tokio::test]
async fn waiting_for_a_slot_is_not_an_attempt() {
    let mut world = World::new(&contract(&[("in_flight", "1")])).await;
    world.endpoint("a.example").await;
    world.send().await;
    let slow = world.call().await;
    let second = world.send().await;
    world.advance(3_600_000);
    world.settle_down().await;
    assert_eq!(world.delivery(second).await.attempts, 0);
    slow.answer(200);
    let call = world.call_to("a.example").await;
    assert!(call.header("duehook-attempt").ends_with("; n=1"));
    call.answer(200);
    world.until_state(second, DeliveryState::Succeeded).await;
}

#[tokio::test]
async fn a_hanging_receiver_costs_another_nothing() {
    let mut world = World::new(&contract(&[("in_flight", "2")])).await;
    let mut hanging = Vec::new();
    world.endpoint("hangs.example").await;
    world.endpoint("healthy.example").await;
    for _ in 0..50 {
        let id = world.send().await;
        world.call_to("healthy.example").await.answer(200);
        crate::world::until(|| async {
            let deliveries = world.store.deliveries(id).await.unwrap();
            deliveries
                .iter()
                .any(|delivery| delivery.state == DeliveryState::Succeeded)
        })
        .await
        .unwrap();
        while world.waiting_calls() > 0 {
            hanging.push(world.call().await);
        }
    }
    assert_eq!(hanging.len(), 2);
    assert!(hanging.iter().all(|call| call.host() == "hangs.example"));
}

/// Round robin: with one slot in all, two endpoints with a backlog each take turns.
#[tokio::test]
async fn endpoints_take_turns() {
    let narrow = Options {
        max_in_flight: 1,
        ..options()
    };
    let mut world = World::with(&contract(&[]), narrow).await;
    world.endpoint("a.example").await;
    world.endpoint("b.example").await;
    for _ in 0..6 {
        world.send().await;
    }
    let mut hosts = Vec::new();
    for _ in 0..12 {
        let call = world.call().await;
        assert_eq!(world.waiting_calls(), 0, "one at once over all");
        hosts.push(call.host().to_owned());
        call.answer(200);
    }
    let mut longest = 1;
    let mut run = 1;
    for pair in hosts.windows(2) {
        run = if pair[0] == pair[1] { run + 1 } else { 1 };
        longest = longest.max(run);
    }
    assert!(longest <= 2, "{hosts:?}");
}

#[tokio::test]
async fn endpoints_that_time_out_may_not_take_the_last_half_of_all_slots() {
    let narrow = Options {
        max_in_flight: 4,
        ..options()
    };
    let mut world = World::with(&contract(&[]), narrow).await;
    for host in ["x.example", "y.example", "z.example"] {
        world
            .endpoint_with(host, |fields| fields.channels = Some(vec!["slow".to_owned()]))
            .await;
    }
    let slow = |world: &World| {
        let mut message = world.message();
        message.channels = Some(vec!["slow".to_owned()]);
        message
    };
    world.engine.accept(slow(&world)).await.unwrap();
    for host in ["x.example", "y.example", "z.example"] {
        world
            .call_to(host)
            .await
            .fail(Fault::TimedOut("timeout_before_headers".to_owned()));
    }
    world.settle_down().await;
    // All three are known to hang now. Whatever waits for them, two of the four slots stay free.
    for _ in 0..5 {
        world.engine.accept(slow(&world)).await.unwrap();
    }
    world.settle_down().await;
    world.advance(10_000);
    world.settle_down().await;
    assert_eq!(world.waiting_calls(), 2);
    world
        .endpoint_with("healthy.example", |fields| {
            fields.channels = Some(vec!["fast".to_owned()]);
        })
        .await;
    let mut fast = world.message();
    fast.channels = Some(vec!["fast".to_owned()]);
    let id = fast.id;
    world.engine.accept(fast).await.unwrap();
    world.call_to("healthy.example").await.answer(200);
    world.until_state(id, DeliveryState::Succeeded).await;
}

#[tokio::test]
async fn memory_holds_a_window_and_never_the_backlog() {
    let small = Options {
        max_window: 8,
        ..options()
    };
    let mut world = World::with(&contract(&[("in_flight", "2")]), small).await;
    world.endpoint("a.example").await;
    world.endpoint("b.example").await;
    let mut ids = Vec::new();
    for _ in 0..60 {
        ids.push(world.send().await);
    }
    for _ in 0..120 {
        world.call().await.answer(200);
    }
    for id in ids {
        crate::world::until(|| async {
            let deliveries = world.store.deliveries(id).await.unwrap();
            deliveries
                .iter()
                .all(|delivery| delivery.state == DeliveryState::Succeeded)
        })
        .await
        .unwrap();
    }
    assert_eq!(world.engine.stats().started, 120);
}
