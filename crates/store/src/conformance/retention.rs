//! Retention: whole messages, old and final, in steps; counted afterwards; never what is not final.

use super::Factory;
use super::world::{World, instant};
use crate::{Claimed, Next, Retain, Retained, StoreError, Tombstone, Tombstones};
use bytes::Bytes;
use contract::ledger::{DeadReason, EndpointState};

/// Takes away everything it may in steps of two, and adds the steps up.
async fn retain(world: &World<'_>, what: Retain, before: u64) -> Retained {
    let mut sum = Retained::default();
    loop {
        let step = world
            .store
            .retain(what, instant(before), sum.next, 2)
            .await
            .expect("retain");
        sum.messages += step.messages;
        sum.deliveries += step.deliveries;
        sum.attempts += step.attempts;
        sum.next = step.next;
        if step.next.is_none() {
            return sum;
        }
    }
}

/// A message whose only attempt ended so.
async fn ended(world: &World<'_>, ms: u64, at: u64, next: Next) -> Claimed {
    let claimed = world.sending(ms).await;
    world.settle(world.ended(&claimed, at, next)).await;
    claimed
}

/// Old and final: gone, with its deliveries, attempts, answers and keys; counted. Young or not final: untouched.
pub async fn old_and_final_messages_go_whole(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let succeeded = world.sending(10).await;
    let mut settle = world.ended(&succeeded, 20, Next::Succeeded);
    settle.response = Bytes::from_static(b"ok");
    world.settle(settle).await;
    let dead = Next::Dead {
        reason: DeadReason::Terminal,
        retry: world.contract,
    };
    let died = ended(&world, 30, 40, dead).await;
    let waits = world.accept(world.message(50)).await.message.id;
    let in_flight = world.sending(60).await;
    let ends_late = ended(&world, 70, 1000, Next::Succeeded).await;
    let young = ended(&world, 500, 510, Next::Succeeded).await;
    let done = retain(&world, Retain::Ledger, 500).await;
    assert_eq!((done.messages, done.deliveries, done.attempts), (2, 2, 2));
    for gone in [&succeeded, &died] {
        let id = gone.due.message.id;
        assert_eq!(world.store.message_by_id(id).await.expect("read"), None);
        assert!(world.deliveries(id).await.is_empty() && world.attempts(id).await.is_empty());
        assert!(
            world
                .store
                .attempt(gone.attempt_id)
                .await
                .expect("read")
                .is_none()
        );
    }
    for kept in [
        waits,
        in_flight.due.message.id,
        ends_late.due.message.id,
        young.due.message.id,
    ] {
        assert_eq!(world.deliveries(kept).await.len(), 1);
    }
    let ledger = world.ledger().await;
    assert_eq!((ledger.messages.len(), ledger.attempts.len()), (4, 3));
    let tombstone = Tombstone {
        endpoint: endpoint.key,
        succeeded: 1,
        dead: 1,
        cancelled: 0,
        attempts: 2,
    };
    let counted = Tombstones {
        messages: 2,
        endpoints: vec![tombstone],
    };
    assert_eq!(world.store.tombstones().await.expect("read"), counted);
    let counts = world.store.counts().await.expect("counts");
    assert_eq!(
        (counts.succeeded, counts.dead, counts.pending, counts.sending),
        (2, 0, 1, 1)
    );
    assert_eq!(
        world.settle(world.ended(&in_flight, 2000, Next::Succeeded)).await,
        crate::Settled::Done
    );
    assert_eq!(
        retain(&world, Retain::Ledger, 500).await.messages,
        0,
        "it ended later than that"
    );
    assert_eq!(retain(&world, Retain::Ledger, 3000).await.messages, 3);
}

/// A message whose redrive is not final stays whole; so does one whose superseded attempt is in flight.
pub async fn a_message_stays_whole_until_all_of_it_is_final(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let claimed = world.sending(10).await;
    let message = claimed.due.message.id;
    let second = world.redrive(message, &endpoint, 20).await;
    assert!(
        world
            .store
            .cancel(second.key, "why", instant(30))
            .await
            .expect("cancel")
    );
    assert_eq!(
        retain(&world, Retain::Ledger, 500).await.messages,
        0,
        "its first attempt is in flight"
    );
    world.settle(world.ended(&claimed, 40, Next::Succeeded)).await;
    world.redrive(message, &endpoint, 50).await;
    assert_eq!(
        retain(&world, Retain::Ledger, 500).await.messages,
        0,
        "its third delivery waits"
    );
    assert_eq!(world.deliveries(message).await.len(), 3);
    let third = world.due(&endpoint, 50).await.remove(0);
    assert!(
        world
            .store
            .cancel(third.key, "why", instant(60))
            .await
            .expect("cancel")
    );
    let done = retain(&world, Retain::Ledger, 500).await;
    assert_eq!((done.messages, done.deliveries, done.attempts), (1, 3, 1));
    assert_eq!(
        world.store.tombstones().await.expect("read").endpoints[0].cancelled,
        3
    );
}

/// Payloads alone: the ledger stays whole, and such a message cannot be redriven.
pub async fn payloads_go_and_the_ledger_stays(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let claimed = world.sending(10).await;
    let message = claimed.due.message.id;
    let mut settle = world.ended(&claimed, 20, Next::Succeeded);
    settle.response = Bytes::from_static(b"ok");
    world.settle(settle).await;
    let waits = world.accept(world.message(30)).await.message.id;
    let before = world.ledger().await;
    assert_eq!(retain(&world, Retain::Payloads, 500).await.messages, 1);
    assert_eq!(retain(&world, Retain::Payloads, 500).await.messages, 0, "once");
    assert_eq!(world.ledger().await, before);
    let stored = world
        .store
        .message_by_id(message)
        .await
        .expect("read")
        .expect("there");
    assert_eq!(stored.payload, None);
    assert!(world.attempts(message).await[0].response.is_empty());
    let kept = world
        .store
        .message_by_id(waits)
        .await
        .expect("read")
        .expect("there");
    assert!(kept.payload.is_some());
    let redrive = crate::Redrive {
        message,
        endpoint: endpoint.key,
        now: instant(600),
    };
    assert!(matches!(
        world.store.redrive(redrive).await,
        Err(StoreError::NotFound { .. })
    ));
}
