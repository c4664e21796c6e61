//! The store fails: nothing acknowledged is lost, nothing is sent again, and the loops come back by themselves.

use crate::faulty::{Faulty, Mood};
use crate::world::{START, World, contract, open, options, until};
use contract::Instant;
use contract::ledger::Outcome;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::{DeliveryState, StoreError};

fn at(ms: i64) -> Instant {
    Instant::from_unix_ms(START + ms)
}

async fn faulty() -> (World, Arc<Faulty>) {
    let dir = tempfile::tempdir().unwrap();
    let store = Faulty::new(open(dir.path()));
    let mut world = World::over(dir, store.clone(), &contract(&[]), options()).await;
    world.endpoint("a.example").await;
    // The loop knows the endpoint before the story begins.
    let _id = world.send().await;
    world.call().await.answer(200);
    let written = || async { world.engine.stats().committed_settles == 1 };
    until(written).await.unwrap();
    (world, store)
}

/// Time passes in steps, as the loops' own waits need it, until it is so.
async fn pass_time_until<F: Future<Output = bool>>(world: &World, mut is_so: impl FnMut() -> F) {
    for _ in 0..2000 {
        if is_so().await {
            return;
        }
        world.advance(50);
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    panic!("never so");
}

#[tokio::test]
async fn a_settle_that_fails_is_kept_and_the_request_is_not_sent_again() {
    let (mut world, store) = faulty().await;
    let id = world.send().await;
    let call = world.call().await;
    store.set(Mood::Down);
    call.answer(200);
    until(|| async { store.refused.load(Ordering::SeqCst) >= 1 })
        .await
        .unwrap();
    // It is tried several times meanwhile.
    pass_time_until(&world, || async { store.refused.load(Ordering::SeqCst) >= 3 }).await;
    assert_eq!(world.delivery(id).await.state, DeliveryState::Sending);
    store.set(Mood::Well);
    pass_time_until(&world, || async {
        world.delivery(id).await.state == DeliveryState::Succeeded
    })
    .await;
    world.settle_down().await;
    assert_eq!((world.waiting_calls(), world.rows(id).await.len()), (0, 1));
}

#[tokio::test]
async fn a_failed_settle_of_a_failure_waits_from_its_own_end() {
    let (mut world, store) = faulty().await;
    let id = world.send().await;
    let call = world.call().await;
    store.set(Mood::Down);
    call.answer(500);
    until(|| async { store.refused.load(Ordering::SeqCst) >= 1 })
        .await
        .unwrap();
    pass_time_until(&world, || async { store.refused.load(Ordering::SeqCst) >= 3 }).await;
    store.set(Mood::Well);
    pass_time_until(&world, || async {
        world.delivery(id).await.state == DeliveryState::Pending
    })
    .await;
    assert_eq!(world.delivery(id).await.due_at, Some(at(10_000)));
}

#[tokio::test]
async fn an_accept_that_fails_says_so_and_holds_no_slot() {
    let (mut world, store) = faulty().await;
    store.set(Mood::Down);
    for _ in 0..20 {
        let refused = world.engine.accept(world.message()).await;
        assert!(matches!(refused, Err(StoreError::Unavailable { .. })));
    }
    store.set(Mood::Well);
    let id = world.send().await;
    world.call().await.answer(200);
    world.until_state(id, DeliveryState::Succeeded).await;
    assert_eq!(world.engine.stats().in_flight, 0);
}

/// The commit happened and its answer was lost: the settle is tried again, comes back as stale, and that is the end.
#[tokio::test]
async fn a_settle_whose_answer_is_lost_changes_nothing_twice() {
    let (mut world, store) = faulty().await;
    let id = world.send().await;
    let call = world.call().await;
    store.set(Mood::Forgetful);
    call.answer(500);
    world.until_state(id, DeliveryState::Pending).await;
    until(|| async { store.refused.load(Ordering::SeqCst) >= 1 })
        .await
        .unwrap();
    store.set(Mood::Well);
    // The one before the story, and this one.
    pass_time_until(&world, || async { world.engine.stats().committed_settles == 2 }).await;
    world.settle_down().await;
    world.clock.advance(contract::Duration::from_secs(20));
    let call = world.call_to("a.example").await;
    assert!(call.header("duehook-attempt").ends_with("; n=2"));
    call.answer(200);
    world.until_state(id, DeliveryState::Succeeded).await;
    let outcomes: Vec<_> = world.rows(id).await.iter().map(|row| row.outcome).collect();
    assert_eq!(outcomes, [Some(Outcome::Failed), Some(Outcome::Succeeded)]);
}

/// The claim happened and its answer was lost: nobody knows the attempt, nobody sends it. It is found, ends as
/// interrupted, and the next waits its backoff.
#[tokio::test]
async fn a_claim_whose_answer_is_lost_is_found_as_an_orphan() {
    let (mut world, store) = faulty().await;
    let id = world.send().await;
    world.call().await.answer(500);
    world.until_state(id, DeliveryState::Pending).await;
    let written = || async { world.engine.stats().committed_settles == 2 };
    until(written).await.unwrap();
    store.set(Mood::Forgetful);
    world.advance(10_000);
    until(|| async { store.refused.load(Ordering::SeqCst) >= 1 })
        .await
        .unwrap();
    store.set(Mood::Well);
    pass_time_until(&world, || async {
        let rows = world.rows(id).await;
        rows.get(1)
            .is_some_and(|row| row.outcome == Some(Outcome::Interrupted))
    })
    .await;
    let rows = world.rows(id).await;
    let due = rows[1].ended_at.unwrap() + contract::Duration::from_secs(60);
    assert_eq!(world.delivery(id).await.due_at, Some(due), "the full second wait");
    assert_eq!(world.waiting_calls(), 0, "never sent");
    assert_eq!(world.engine.stats().orphans, 1);
}

#[tokio::test]
async fn an_accept_whose_answer_is_lost_is_delivered_all_the_same() {
    let (mut world, store) = faulty().await;
    store.set(Mood::Forgetful);
    let message = world.message();
    let id = message.id;
    assert!(world.engine.accept(message).await.is_err());
    store.set(Mood::Well);
    pass_time_until(&world, || async {
        world
            .rows(id)
            .await
            .first()
            .is_some_and(|row| row.outcome == Some(Outcome::Interrupted))
    })
    .await;
    world.advance(10_000);
    let call = world.call_to("a.example").await;
    call.answer(200);
    world.until_state(id, DeliveryState::Succeeded).await;
}

#[tokio::test]
async fn loops_survive_an_outage_of_any_length_and_find_due_work_by_query() {
    let (mut world, store) = faulty().await;
    let id = world.send().await;
    world.call().await.answer(500);
    world.until_state(id, DeliveryState::Pending).await;
    store.set(Mood::Down);
    for _ in 0..400 {
        world.advance(250);
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    assert_eq!(world.waiting_calls(), 0);
    store.set(Mood::Well);
    let back = world.clock.now_reading().wall;
    pass_time_until(&world, || async {
        world.delivery(id).await.state == DeliveryState::Sending
    })
    .await;
    let call = world.call().await;
    assert!(
        call.at.since(back).as_ms() <= 5000,
        "soon after the store is back"
    );
    call.answer(200);
    world.until_state(id, DeliveryState::Succeeded).await;
}

#[tokio::test]
async fn a_damaged_store_stops_the_engine_and_says_why() {
    let (mut world, store) = faulty().await;
    world.send().await;
    let call = world.call().await;
    store.set(Mood::Damaged);
    call.answer(200);
    let why = tokio::time::timeout(std::time::Duration::from_secs(10), world.engine.fatal()).await;
    assert!(why.unwrap().contains("as the test wants it"));
    // Stopping such an engine ends, and says that not everything was written down.
    store.set(Mood::Well);
    assert!(
        until(|| async { world.engine.stats().store_faults > 0 })
            .await
            .is_ok()
    );
}

/// A fresh message whose answer from the store is held back, its first attempt written as started.
async fn written_and_not_sent(world: &World, store: &Arc<Faulty>) -> contract::MessageId {
    store.set(Mood::Slow);
    let message = world.message();
    let id = message.id;
    let engine = world.engine.clone();
    tokio::spawn(async move { engine.accept(message).await });
    until(|| async { store.held.load(Ordering::SeqCst) == 1 })
        .await
        .unwrap();
    assert_eq!(world.rows(id).await.len(), 1);
    store.set(Mood::Well);
    id
}

#[tokio::test]
async fn a_shutdown_releases_what_was_written_and_never_sent() {
    let (mut world, store) = faulty().await;
    let id = written_and_not_sent(&world, &store).await;
    let engine = world.engine.clone();
    let stopping = tokio::spawn(async move { engine.shutdown(contract::Duration::from_secs(30)).await });
    // The shutdown waits: the slot is taken.
    tokio::task::yield_now().await;
    store.answer();
    pass_time_until(&world, || async { stopping.is_finished() }).await;
    let how = stopping.await.unwrap();
    assert!(how.in_time && how.settled);
    let delivery = world.delivery(id).await;
    assert_eq!((delivery.state, delivery.attempts), (DeliveryState::Pending, 0));
    assert_eq!(
        (world.waiting_calls(), world.rows(id).await.len()),
        (0, 0),
        "no row, no request"
    );
    assert_eq!(world.engine.stats().released, 1);
}

#[tokio::test]
async fn a_clock_set_back_between_claim_and_send_takes_the_claim_back() {
    let (mut world, store) = faulty().await;
    let id = written_and_not_sent(&world, &store).await;
    world.clock.step_wall(-2000);
    store.answer();
    let rows = || async { world.rows(id).await.len() };
    until(|| async { rows().await == 0 }).await.unwrap();
    world.settle_down().await;
    world.advance(1999);
    world.settle_down().await;
    assert_eq!(world.waiting_calls(), 0);
    world.advance(1);
    let call = world.call_to("a.example").await;
    assert!(
        call.header("duehook-attempt").ends_with("; n=1"),
        "the released one does not count"
    );
    assert_eq!(call.at, at(0));
    call.answer(200);
    world.until_state(id, DeliveryState::Succeeded).await;
}
