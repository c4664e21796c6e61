//! Shutdown: claim nothing more, let what is in flight finish or time it out, write it all down.

use crate::world::{START, World, contract};
use contract::ledger::{NodeEventKind, Outcome};
use contract::{Duration, Instant};
use engine::Shutdown;
use store::DeliveryState;

fn at(ms: i64) -> Instant {
    Instant::from_unix_ms(START + ms)
}

const CLEAN: Shutdown = Shutdown {
    in_time: true,
    settled: true,
};

#[tokio::test]
async fn with_nothing_in_flight_it_is_done_at_once() {
    let world = World::new(&contract(&[])).await;
    assert_eq!(world.engine.shutdown(Duration::from_secs(30)).await, CLEAN);
    let (kind, when, _) = world.node_events().await.pop().unwrap();
    assert_eq!((kind, when), (NodeEventKind::Down, at(0)));
}

#[tokio::test]
async fn what_is_in_flight_finishes_and_is_settled() {
    let mut world = World::new(&contract(&[])).await;
    world.endpoint("a.example").await;
    let id = world.send().await;
    let call = world.call().await;
    let engine = world.engine.clone();
    let stopping = tokio::spawn(async move { engine.shutdown(Duration::from_secs(30)).await });
    tokio::task::yield_now().await;
    call.answer(200);
    assert_eq!(stopping.await.unwrap(), CLEAN);
    assert_eq!(world.delivery(id).await.state, DeliveryState::Succeeded);
}

#[tokio::test]
async fn what_does_not_finish_is_timed_out_and_settled() {
    let mut world = World::new(&contract(&[])).await;
    world.endpoint("a.example").await;
    let id = world.send().await;
    let _hangs = world.call().await;
    let engine = world.engine.clone();
    let stopping = tokio::spawn(async move { engine.shutdown(Duration::from_secs(3)).await });
    let mut moves = 0;
    while !stopping.is_finished() {
        world.advance(100);
        moves += 1;
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        assert!(moves < 5000, "it never ends");
    }
    let how = stopping.await.unwrap();
    assert_eq!((how.in_time, how.settled), (false, true));
    let row = world.rows(id).await.remove(0);
    assert_eq!(
        (row.outcome, row.error.as_deref()),
        (Some(Outcome::TimedOut), Some("shutdown"))
    );
    assert!(row.ended_at >= Some(at(3000)));
    assert_eq!(world.delivery(id).await.state, DeliveryState::Pending);
}

#[tokio::test]
async fn nothing_is_claimed_any_more_and_messages_are_still_kept() {
    let mut world = World::new(&contract(&[])).await;
    world.endpoint("a.example").await;
    world.engine.shutdown(Duration::from_secs(30)).await;
    let id = world.send().await;
    world.advance(3_600_000);
    assert_eq!(world.delivery(id).await.state, DeliveryState::Pending);
    assert_eq!((world.waiting_calls(), world.rows(id).await.len()), (0, 0));
    // The next run sends it.
    let mut after = world.crash(world.clock_after(Duration::ZERO)).await;
    after.call().await.answer(200);
    after.until_state(id, DeliveryState::Succeeded).await;
}

#[tokio::test]
async fn a_second_shutdown_finds_nothing_to_do() {
    let world = World::new(&contract(&[])).await;
    world.engine.shutdown(Duration::from_secs(30)).await;
    assert_eq!(world.engine.shutdown(Duration::from_secs(30)).await, CLEAN);
}
