//! What a crash leaves: everything that was acknowledged, and attempts in flight to be found.

use super::Factory;
use super::world::{BOOT, Closed, NODE, World, at, instant};
use crate::{DeliveryState, Next, Settled};
use contract::ledger::{EndpointState, Outcome};
use std::sync::Arc;

/// Everything acknowledged is there after a crash, byte for byte (I3).
pub async fn what_was_acknowledged_is_there(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let mut messages = Vec::new();
    for ms in 0..50 {
        messages.push(world.accept(world.message(ms)).await.message);
    }
    let before = world.ledger().await;
    let world = world.crash().await;
    assert_eq!(world.ledger().await, before);
    for message in messages {
        let found = world
            .store
            .message_by_id(message.id)
            .await
            .expect("read")
            .expect("stored");
        assert_eq!(found, *message);
    }
    assert_eq!(world.due(&endpoint, 100).await.len(), 50);
    assert_eq!(world.store.counts().await.expect("counts").pending, 50);
}

/// A crash in the midst of many accepts: each that was answered is there.
pub async fn each_answered_accept_is_there(factory: &dyn Factory) {
    let world = World::new(factory).await;
    world.endpoint(EndpointState::Active).await;
    let mut tasks = tokio::task::JoinSet::new();
    for ms in 0..200 {
        let (message, store) = (world.message(ms), Arc::clone(&world.store));
        tasks.spawn(async move {
            store
                .accept(message, Arc::new(Closed))
                .await
                .map(|accepted| accepted.message.id)
        });
    }
    let mut answered = Vec::new();
    while let Some(joined) = tasks.join_next().await {
        match joined {
            Ok(id) => answered.push(id.expect("accept")),
            Err(error) => assert!(error.is_cancelled(), "{error}"),
        }
        if answered.len() == 100 {
            tasks.abort_all();
        }
    }
    assert!(answered.len() >= 100);
    let world = world.crash().await;
    for id in answered {
        assert!(world.store.message_by_id(id).await.expect("read").is_some());
        assert_eq!(world.only(id).await.0, DeliveryState::Pending);
    }
}

/// Recovery lists attempts in flight, page by page, as they were claimed; settled as interrupted they wait again.
pub async fn attempts_in_flight_are_listed_and_settled(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let first = world.sending(10).await;
    world.settle(world.ended(&first, 20, world.retry_at(30))).await;
    let due = world.due(&endpoint, 30).await.remove(0);
    let second = world.claim(due, 35).await.expect("claimed");
    let mut claimed = vec![second];
    for ms in 40..44 {
        claimed.push(world.sending(ms).await);
    }
    let world = world.crash().await;
    world.store.node_up(NODE, BOOT, at(1000)).await.expect("node_up");
    let mut found = Vec::new();
    while let page = world
        .store
        .sending(found.last().map(|last: &crate::Claimed| last.due.key), 2)
        .await
        .expect("sending")
        && !page.is_empty()
    {
        found.extend(page);
    }
    let told = |one: &crate::Claimed| {
        let due = &one.due;
        let delivery = (
            due.key,
            due.attempts,
            due.due_at,
            due.wait,
            due.trigger,
            due.message.id,
        );
        (
            one.attempt_id,
            one.attempt_no,
            one.start,
            delivery,
            due.first_started_at,
            due.opened_at,
        )
    };
    assert_eq!(
        found.iter().map(told).collect::<Vec<_>>(),
        claimed.iter().map(told).collect::<Vec<_>>()
    );
    for one in &found {
        let mut settle = world.ended(one, 1000, world.retry_at(5000));
        settle.outcome = Outcome::Interrupted;
        settle.status = None;
        assert_eq!(world.settle(settle).await, Settled::Done);
    }
    assert!(world.store.sending(None, 10).await.expect("sending").is_empty());
    assert!(world.due(&endpoint, 4999).await.is_empty());
    assert_eq!(world.due(&endpoint, 5000).await.len(), 5);
    let record = world
        .attempts(found[0].due.message.id)
        .await
        .pop()
        .expect("an attempt")
        .record;
    assert_eq!(
        (record.outcome, record.status, record.ended_at),
        (Some(Outcome::Interrupted), None, Some(instant(1000)))
    );
}

/// An attempt in flight whose delivery was superseded before the crash is listed too: its row must end.
pub async fn a_superseded_attempt_in_flight_is_listed(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let claimed = world.sending(10).await;
    world.redrive(claimed.due.message.id, &endpoint, 20).await;
    let world = world.crash().await;
    world.store.node_up(NODE, BOOT, at(1000)).await.expect("node_up");
    let found = world.store.sending(None, 10).await.expect("sending");
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].attempt_id, found[0].due.due_at),
        (claimed.attempt_id, claimed.due.due_at)
    );
    let mut settle = world.ended(&found[0], 1000, world.retry_at(5000));
    settle.outcome = Outcome::Interrupted;
    assert_eq!(world.settle(settle).await, Settled::Stale);
    assert!(world.store.sending(None, 10).await.expect("sending").is_empty());
}

/// Numbers of the ledger go on where they were: no seq twice, none smaller.
pub async fn seq_goes_on_after_a_crash(factory: &dyn Factory) {
    let world = World::new(factory).await;
    world.endpoint(EndpointState::Active).await;
    let claimed = world.sending(10).await;
    world.settle(world.ended(&claimed, 20, Next::Succeeded)).await;
    let last = *world.ledger().await.seqs.iter().max().expect("seqs");
    let world = world.crash().await;
    world.store.node_up(NODE, BOOT, at(1000)).await.expect("node_up");
    world.sending(2000).await;
    let ledger = world.ledger().await;
    let newer: Vec<_> = ledger.seqs.iter().filter(|seq| **seq > last).collect();
    assert_eq!(newer.len(), 2, "opened and started");
    let mut all = ledger.seqs.clone();
    all.extend(ledger.messages.iter().map(|one| one.seq.get()));
    all.extend(ledger.endpoint_events.iter().map(|one| one.seq.get()));
    all.extend(ledger.node_events.iter().map(|one| one.seq.get()));
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "no seq twice");
}
