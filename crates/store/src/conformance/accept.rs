//! Accepting: who gets a message, what a duplicate is, what the gate is asked, and under which contract deliveries open.

use super::Factory;
use super::world::{Closed, World, instant};
use crate::{DeliveryState, EndpointFields, Level, NewMessage, StoreError};
use bytes::Bytes;
use contract::ledger::EndpointState;
use contract::{AppId, MessageId};
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn words(words: &[&str]) -> Option<Vec<String>> {
    Some(words.iter().map(|word| (*word).to_owned()).collect())
}

/// Event types and channels: `None` wants all; a list of types wants those; an endpoint with channels wants
/// messages that name one of them, and none that names no channel.
pub async fn fans_out_to_endpoints_that_want_it(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let wants = |types: Option<Vec<String>>, channels: Option<Vec<String>>| EndpointFields {
        event_types: types,
        channels,
        ..EndpointFields::default()
    };
    let all = world
        .endpoint_with(wants(None, None), EndpointState::Active)
        .await
        .key;
    let ab = world
        .endpoint_with(wants(words(&["a", "b"]), None), EndpointState::Active)
        .await
        .key;
    let c = world
        .endpoint_with(wants(words(&["c"]), None), EndpointState::Active)
        .await
        .key;
    let x = world
        .endpoint_with(wants(None, words(&["x"])), EndpointState::Active)
        .await
        .key;
    let a_xy = world
        .endpoint_with(wants(words(&["a"]), words(&["x", "y"])), EndpointState::Active)
        .await
        .key;
    for (event_type, channels, expected) in [
        ("a", None, vec![all, ab]),
        ("b", None, vec![all, ab]),
        ("c", None, vec![all, c]),
        ("d", None, vec![all]),
        ("a", words(&["x"]), vec![all, ab, x, a_xy]),
        ("a", words(&["z", "y"]), vec![all, ab, a_xy]),
        ("c", words(&["z"]), vec![all, c]),
    ] {
        let message = NewMessage {
            event_type: event_type.to_owned(),
            channels: channels.clone(),
            ..world.message(10)
        };
        let accepted = world.accept(message).await;
        assert_eq!(accepted.due_at_endpoints, expected, "{event_type} {channels:?}");
        assert_eq!(usize::try_from(accepted.deliveries), Ok(expected.len()));
        let stored = world.deliveries(accepted.message.id).await;
        let stored: Vec<_> = stored.iter().map(|delivery| delivery.endpoint).collect();
        assert_eq!(stored, expected);
    }
}

/// What an endpoint wants is what it wants now; another application's endpoints want nothing of it.
pub async fn fan_out_follows_changes(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let other = crate::AppFields {
        name: "other".to_owned(),
        ..crate::AppFields::default()
    };
    let other = world
        .store
        .create_app(other, instant(0))
        .await
        .expect("create_app");
    let mut foreign = world.message(10);
    foreign.app = other.key;
    assert_eq!(world.accept(foreign).await.deliveries, 0);
    assert_eq!(world.accept(world.message(10)).await.deliveries, 1);
    let fields = EndpointFields {
        url: endpoint.url.clone(),
        event_types: words(&["z"]),
        ..EndpointFields::default()
    };
    world
        .store
        .update_endpoint(endpoint.key, fields, instant(20))
        .await
        .expect("update_endpoint");
    assert_eq!(world.accept(world.message(30)).await.deliveries, 0);
}

/// The bytes are the bytes, and every field comes back by id, by event id and as due work.
pub async fn a_message_comes_back_as_it_came(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let message = NewMessage {
        event_id: Some("event-1".to_owned()),
        channels: words(&["x", "a\"b\\"]),
        payload: Bytes::from_static(b"{\"b\": 1,  \"a\": \"\xc3\xa4\\u0000\"}"),
        contract: Some(world.contract),
        ..world.message(10)
    };
    let accepted = world.accept(message.clone()).await;
    assert!(!accepted.repeated);
    let stored = world
        .store
        .message_by_id(message.id)
        .await
        .expect("read")
        .expect("stored");
    assert_eq!(stored, *accepted.message);
    assert_eq!(stored.payload, Some(message.payload));
    assert_eq!(
        (stored.channels, stored.contract),
        (message.channels, message.contract)
    );
    assert_eq!(stored.accepted_at, instant(10));
    let by_event = world.store.message(world.app.key, "event-1").await.expect("read");
    let by_id = world
        .store
        .message(world.app.key, &message.id.to_string())
        .await
        .expect("read");
    assert_eq!(by_event, Some((*accepted.message).clone()));
    assert_eq!(by_id, by_event);
    assert_eq!(*world.due(&endpoint, 10).await[0].message, *accepted.message);
    assert_eq!(
        world.store.message(world.app.key, "event-2").await.expect("read"),
        None
    );
    let stranger = MessageId::at_unix_ms(1);
    assert_eq!(world.store.message_by_id(stranger).await.expect("read"), None);
}

/// The idempotency key again gives the first answer, and stores nothing.
pub async fn an_idempotency_key_gives_the_first_answer(factory: &dyn Factory) {
    let world = World::new(factory).await;
    world.endpoint(EndpointState::Active).await;
    let keyed = |ms, key: &str| NewMessage {
        idempotency_key: Some(key.to_owned()),
        ..world.message(ms)
    };
    let first = world.accept(keyed(10, "k1")).await;
    assert!(!first.repeated);
    let again = world.accept_and_start(keyed(20, "k1")).await;
    assert!(again.repeated);
    assert_eq!((again.message.id, again.deliveries), (first.message.id, 1));
    assert!(again.claimed.is_empty() && again.due_at_endpoints.is_empty());
    assert!(!world.accept(keyed(30, "k2")).await.repeated);
    let other = crate::AppFields {
        name: "other".to_owned(),
        ..crate::AppFields::default()
    };
    let other = world
        .store
        .create_app(other, instant(0))
        .await
        .expect("create_app");
    let elsewhere = NewMessage {
        app: other.key,
        ..keyed(40, "k1")
    };
    assert!(!world.accept(elsewhere).await.repeated);
    assert_eq!(world.ledger().await.messages.len(), 3);
}

/// A hundred at once with one key: one is stored.
pub async fn an_idempotency_key_holds_among_many_at_once(factory: &dyn Factory) {
    let world = World::new(factory).await;
    world.endpoint(EndpointState::Active).await;
    let mut tasks = tokio::task::JoinSet::new();
    for ms in 0..100 {
        let message = NewMessage {
            idempotency_key: Some("k".to_owned()),
            ..world.message(ms)
        };
        let store = Arc::clone(&world.store);
        tasks.spawn(async move { store.accept(message, Arc::new(Closed)).await.expect("accept") });
    }
    let accepted = tasks.join_all().await;
    assert_eq!(accepted.iter().filter(|one| !one.repeated).count(), 1);
    let first = accepted[0].message.id;
    assert!(accepted.iter().all(|one| one.message.id == first));
    assert_eq!(world.ledger().await.messages.len(), 1);
}

/// A known event id, or a known message id, is a conflict that names it; its neighbours are stored.
pub async fn a_known_event_id_is_a_conflict(factory: &dyn Factory) {
    let world = World::new(factory).await;
    world.endpoint(EndpointState::Active).await;
    let named = |ms| NewMessage {
        event_id: Some("event-1".to_owned()),
        ..world.message(ms)
    };
    let first = world.accept(named(10)).await;
    let again = world.store.accept(named(20), Arc::new(Closed)).await;
    assert!(matches!(again, Err(StoreError::Conflict { what: "event id", found }) if found == "event-1"));
    let same_id = NewMessage {
        id: first.message.id,
        ..world.message(30)
    };
    let again = world.store.accept(same_id, Arc::new(Closed)).await;
    let id = first.message.id.to_string();
    assert!(matches!(again, Err(StoreError::Conflict { what: "message id", found }) if found == id));
    let (good, bad, also_good) = tokio::join!(
        world.store.accept(world.message(40), Arc::new(Closed)),
        world.store.accept(named(41), Arc::new(Closed)),
        world.store.accept(world.message(42), Arc::new(Closed)),
    );
    assert!(good.is_ok() && bad.is_err() && also_good.is_ok());
    let ledger = world.ledger().await;
    assert_eq!((ledger.messages.len(), ledger.delivery_events.len()), (3, 3));
}

/// An unknown application is not found, and nothing is stored.
pub async fn an_unknown_application_is_not_found(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let mut message = world.message(10);
    message.app = crate::AppKey(4711);
    let refused = world.store.accept(message, Arc::new(Closed)).await;
    assert!(matches!(refused, Err(StoreError::NotFound { .. })));
    assert!(world.ledger().await.messages.is_empty());
    let no_id = AppId::at_unix_ms(5).to_string();
    assert_eq!(world.store.app(&no_id).await.expect("read"), None);
}

/// The gate is asked once for each active endpoint that wants it; what it lets start is written as started in the
/// same commit, what it does not waits.
pub async fn the_gate_starts_first_attempts(factory: &dyn Factory) {
    let world = World::new(factory).await;
    for state in [
        EndpointState::Active,
        EndpointState::Draining,
        EndpointState::Disabled,
        EndpointState::Active,
    ] {
        world.endpoint(state).await;
    }
    let gate = world.open_gate(10);
    let accepted = world
        .store
        .accept(world.message(10), gate.clone())
        .await
        .expect("accept");
    assert_eq!((accepted.deliveries, accepted.claimed.len()), (4, 2));
    assert_eq!(
        (
            gate.reserved.load(Ordering::SeqCst),
            gate.released.load(Ordering::SeqCst)
        ),
        (2, 0)
    );
    let states: Vec<_> = world
        .deliveries(accepted.message.id)
        .await
        .iter()
        .map(|one| one.state)
        .collect();
    let [sending, pending, dead] = [
        DeliveryState::Sending,
        DeliveryState::Pending,
        DeliveryState::Dead,
    ];
    assert_eq!(states, [sending, pending, dead, sending]);
    let attempts = world.attempts(accepted.message.id).await;
    let written: Vec<_> = attempts.iter().map(|one| one.record.attempt_id.clone()).collect();
    let handed: Vec<_> = accepted
        .claimed
        .iter()
        .map(|one| one.attempt_id.to_string())
        .collect();
    assert_eq!(written, handed);
    for claimed in &accepted.claimed {
        let due = &claimed.due;
        assert_eq!(
            (due.attempts, due.due_at, due.opened_at, due.wait),
            (0, instant(10), instant(10), None)
        );
    }
}

/// The contract in force is the message's, else the endpoint's, the application's, the organisation's; the opened
/// event tells which.
pub async fn the_nearest_contract_is_in_force(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let mut keys = Vec::new();
    for rev in ["app", "endpoint", "message"] {
        keys.push(world.store.put_contract(rev, "{}").await.expect("put_contract"));
    }
    let set = |level, key| world.store.set_contract(level, key);
    world.accept(world.message(10)).await;
    set(Level::App(world.app.key), Some(keys[0])).await.expect("set");
    world.accept(world.message(20)).await;
    set(Level::Endpoint(endpoint.key), Some(keys[1]))
        .await
        .expect("set");
    world.accept(world.message(30)).await;
    world
        .accept(NewMessage {
            contract: Some(keys[2]),
            ..world.message(40)
        })
        .await;
    set(Level::Endpoint(endpoint.key), None).await.expect("set");
    world.accept(world.message(50)).await;
    set(Level::App(world.app.key), None).await.expect("set");
    world.accept(world.message(60)).await;
    let ledger = world.ledger().await;
    let revs: Vec<_> = ledger
        .delivery_events
        .iter()
        .map(|event| event.retry_rev.as_str())
        .collect();
    assert_eq!(revs, ["rev-1", "app", "endpoint", "message", "app", "rev-1"]);
}

/// Without any contract nothing is taken in.
pub async fn without_a_contract_nothing_is_accepted(factory: &dyn Factory) {
    let world = World::new(factory).await;
    world.endpoint(EndpointState::Active).await;
    world
        .store
        .set_contract(Level::Organisation, None)
        .await
        .expect("set");
    let refused = world.store.accept(world.message(10), Arc::new(Closed)).await;
    assert!(matches!(refused, Err(StoreError::Unavailable { reason, .. }) if reason.contains("contract")));
    assert!(world.ledger().await.messages.is_empty());
}

/// A caller that goes away before it hears of its claims: they are taken back, and the reservation with them.
pub async fn claims_that_nobody_hears_of_are_taken_back(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let gate = world.open_gate(10);
    let mut gone = 0;
    for ms in 10..40 {
        let accepting = world.store.accept(world.message(ms), gate.clone());
        // Polled once: the command is in the queue, and then its caller is no more.
        let mut accepting = Box::pin(accepting);
        if futures_poll(&mut accepting).await.is_none() {
            gone += 1;
        }
        drop(accepting);
    }
    assert!(gone > 0, "no call was cut short");
    let mut changes = world.store.changes();
    loop {
        let counts = world.store.counts().await.expect("counts");
        let heard = 30 - gone;
        let reserved = gate.reserved.load(Ordering::SeqCst);
        if counts.sending == heard
            && gate.released.load(Ordering::SeqCst) == reserved - usize::try_from(heard).expect("few")
        {
            break;
        }
        // Every release tells of work to do; whatever was told before we listened shows in the counts.
        let _ = tokio::time::timeout(std::time::Duration::from_millis(5), changes.recv()).await;
    }
    let waiting = world.due(&endpoint, 100).await;
    assert!(waiting.iter().all(|due| due.attempts == 0));
}

/// Polls once.
async fn futures_poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(match std::pin::Pin::new(&mut *future).poll(context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        })
    })
    .await
}
