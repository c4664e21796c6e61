//! Applications, endpoints, contracts and tokens: names are unique, lists are pages by id, states have events, and
//! those who must look again are told.

use super::Factory;
use super::world::{World, instant, page, secret};
use crate::{
    AppFields, Change, Endpoint, EndpointFields, Level, Page, Secret, StoreError, StoredContract, Token,
};
use contract::TokenId;
use contract::ledger::EndpointState;
use std::collections::BTreeMap;
use tokio::sync::broadcast::Receiver;

fn named(uid: &str) -> AppFields {
    AppFields {
        uid: Some(uid.to_owned()),
        name: format!("the {uid}"),
        throttle_rate: Some(7),
        metadata: BTreeMap::from([("k \"".to_owned(), "v\n".to_owned())]),
    }
}

fn told(changes: &mut Receiver<Change>) -> Vec<Change> {
    let mut told = Vec::new();
    while let Ok(change) = changes.try_recv() {
        told.push(change);
    }
    told
}

/// By id and by uid; every field comes back; a uid is unique until its owner is deleted.
pub async fn applications_have_unique_uids(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let store = &world.store;
    let made = store
        .create_app(named("u"), instant(5))
        .await
        .expect("create_app");
    assert_eq!(store.app("u").await.expect("read"), Some(made.clone()));
    assert_eq!(
        store.app(&made.id.to_string()).await.expect("read"),
        Some(made.clone())
    );
    assert_eq!(
        (made.throttle_rate, made.metadata.clone(), made.created_at),
        (Some(7), named("u").metadata, instant(5))
    );
    let again = store.create_app(named("u"), instant(6)).await;
    assert!(matches!(again, Err(StoreError::Conflict { found, .. }) if found == "u"));
    let taken = store.update_app(world.app.key, named("u"), instant(7)).await;
    assert!(matches!(taken, Err(StoreError::Conflict { .. })));
    let changed = store
        .update_app(made.key, named("w"), instant(8))
        .await
        .expect("update_app");
    assert_eq!(
        (changed.uid.as_deref(), changed.updated_at, changed.created_at),
        (Some("w"), instant(8), instant(5))
    );
    store
        .delete_app(made.key, "me", instant(9))
        .await
        .expect("delete_app");
    assert_eq!(store.app("w").await.expect("read"), None);
    assert_eq!(store.app(&made.id.to_string()).await.expect("read"), None);
    store
        .create_app(named("w"), instant(10))
        .await
        .expect("the uid is free again");
    let gone = store.update_app(made.key, named("x"), instant(11)).await;
    assert!(matches!(gone, Err(StoreError::NotFound { .. })));
}

/// Deleting an application deletes its endpoints, each with its event; what waited there is served to its burial.
pub async fn deleting_an_application_deletes_its_endpoints(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let idle = world.endpoint(EndpointState::Disabled).await;
    let message = world.accept(world.message(10)).await.message.id;
    world
        .store
        .delete_app(world.app.key, "me", instant(20))
        .await
        .expect("delete_app");
    let found = world.store.endpoint_by_id(endpoint.id).await.expect("read");
    assert_eq!(found, None);
    let served = world.store.endpoints_to_serve().await.expect("read");
    let served: Vec<_> = served.iter().map(|one| (one.key, one.state)).collect();
    assert_eq!(
        served,
        [(endpoint.key, EndpointState::Deleted)],
        "not {:?}",
        idle.key
    );
    assert_eq!(
        world
            .store
            .bury(endpoint.key, instant(30), 10)
            .await
            .expect("bury"),
        1
    );
    let reasons: Vec<_> = world
        .deliveries(message)
        .await
        .into_iter()
        .map(|one| one.reason)
        .collect();
    assert_eq!(
        reasons,
        [
            Some("endpoint_deleted".to_owned()),
            Some("endpoint_disabled".to_owned())
        ]
    );
    assert!(world.store.endpoints_to_serve().await.expect("read").is_empty());
    let event = world
        .store
        .last_endpoint_event(endpoint.key)
        .await
        .expect("read")
        .expect("event");
    assert_eq!((event.state, event.by.as_str()), (EndpointState::Deleted, "me"));
    let refused = world.store.accept(world.message(40), world.open_gate(40)).await;
    assert!(matches!(refused, Err(StoreError::NotFound { .. })));
}

/// Every field of an endpoint comes back, by id, by uid, by row; uids are unique within their application.
pub async fn endpoints_come_back_as_they_were_made(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let fields = EndpointFields {
        uid: Some("e".to_owned()),
        url: "ignored".to_owned(),
        description: "for people".to_owned(),
        event_types: Some(vec!["a".to_owned(), "b.c".to_owned()]),
        channels: Some(vec!["x".to_owned()]),
        throttle_rate: Some(9),
        metadata: named("m").metadata,
        headers: BTreeMap::from([("x-a".to_owned(), "b".to_owned())]),
    };
    let made = world.endpoint_with(fields.clone(), EndpointState::Draining).await;
    assert_eq!(
        (made.state, made.secrets.len(), made.secrets[0].key.as_str()),
        (EndpointState::Draining, 1, "whsec_a")
    );
    assert_eq!(
        (&made.event_types, &made.channels),
        (&fields.event_types, &fields.channels)
    );
    assert_eq!(
        (&made.headers, &made.metadata),
        (&fields.headers, &fields.metadata)
    );
    let store = &world.store;
    for wanted in ["e".to_owned(), made.id.to_string()] {
        assert_eq!(
            store.endpoint(world.app.key, &wanted).await.expect("read"),
            Some(made.clone())
        );
        assert_eq!(
            store.endpoint(crate::AppKey(99), &wanted).await.expect("read"),
            None,
            "of another application"
        );
    }
    assert_eq!(
        store.endpoint_by_key(made.key).await.expect("read"),
        Some(made.clone())
    );
    assert_eq!(
        store.endpoint_by_id(made.id).await.expect("read"),
        Some(made.clone())
    );
}

/// A uid is unique within its application, and an application that is not there has no endpoints.
pub async fn endpoint_uids_are_unique_within_their_application(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let store = &world.store;
    let fields = EndpointFields {
        uid: Some("e".to_owned()),
        ..EndpointFields::default()
    };
    world.endpoint_with(fields.clone(), EndpointState::Active).await;
    let again = store
        .create_endpoint(
            world.app.key,
            fields.clone(),
            EndpointState::Active,
            secret("s"),
            "me",
            instant(1),
        )
        .await;
    assert!(matches!(again, Err(StoreError::Conflict { found, .. }) if found == "e"));
    let other = store
        .create_app(named("other"), instant(2))
        .await
        .expect("create_app");
    store
        .create_endpoint(
            other.key,
            fields.clone(),
            EndpointState::Active,
            secret("s"),
            "me",
            instant(3),
        )
        .await
        .expect("free in another application");
    let nowhere = store
        .create_endpoint(
            crate::AppKey(99),
            fields,
            EndpointState::Active,
            secret("s"),
            "me",
            instant(4),
        )
        .await;
    assert!(matches!(nowhere, Err(StoreError::NotFound { .. })));
}

/// Secrets are replaced whole, the current one first, and never show in `Debug`.
pub async fn secrets_are_replaced(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let old = Secret {
        key: "whsec_old".to_owned(),
        expires_at: Some(instant(500)),
    };
    let secrets = vec![secret("whsec_new"), old];
    world
        .store
        .set_secrets(endpoint.key, secrets.clone(), instant(5))
        .await
        .expect("set_secrets");
    let found = world
        .store
        .endpoint_by_key(endpoint.key)
        .await
        .expect("read")
        .expect("there");
    assert_eq!(found.secrets, secrets);
    assert!(!format!("{found:?}").contains("whsec"), "a secret shows");
}

/// Each change of state is an event with why and by whom; the same state again is none; deleted is final.
pub async fn each_change_of_state_is_an_event(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let set = |state, ms| {
        world
            .store
            .set_endpoint_state(endpoint.key, state, "why", "who", instant(ms))
    };
    set(EndpointState::Active, 10).await.expect("the same state");
    set(EndpointState::Draining, 20).await.expect("set");
    set(EndpointState::Disabled, 30).await.expect("set");
    set(EndpointState::Active, 40).await.expect("set");
    let last = world
        .store
        .last_endpoint_event(endpoint.key)
        .await
        .expect("read")
        .expect("event");
    assert_eq!(
        (last.state, last.at, last.why.as_deref(), last.by.as_str()),
        (EndpointState::Active, instant(40), Some("why"), "who")
    );
    set(EndpointState::Deleted, 50).await.expect("set");
    assert!(matches!(
        set(EndpointState::Active, 60).await,
        Err(StoreError::NotFound { .. })
    ));
    let states: Vec<_> = world
        .ledger()
        .await
        .endpoint_events
        .iter()
        .map(|event| event.state)
        .collect();
    let [active, draining] = [EndpointState::Active, EndpointState::Draining];
    assert_eq!(
        states,
        [
            active,
            draining,
            EndpointState::Disabled,
            active,
            EndpointState::Deleted
        ]
    );
}

/// The failure clock: set, kept over a drain, cleared by a success and by re-activation.
pub async fn the_failure_clock_is_cleared_by_success_and_activation(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let since = async || {
        let found = world
            .store
            .endpoint_by_key(endpoint.key)
            .await
            .expect("read")
            .expect("there");
        found.failing_since
    };
    world
        .store
        .set_failing_since(endpoint.key, Some(instant(10)))
        .await
        .expect("set");
    assert_eq!(since().await, Some(instant(10)));
    world.set_state(&endpoint, EndpointState::Draining, 20).await;
    assert_eq!(since().await, Some(instant(10)));
    world.set_state(&endpoint, EndpointState::Active, 30).await;
    assert_eq!(since().await, None);
    world
        .store
        .set_failing_since(endpoint.key, Some(instant(40)))
        .await
        .expect("set");
    let claimed = world.sending(50).await;
    world
        .settle(world.ended(&claimed, 60, crate::Next::Succeeded))
        .await;
    assert_eq!(since().await, None);
}

/// Pages by id, both ways, behind a row; deleted ones are on none.
pub async fn lists_are_pages_by_id(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let mut made: Vec<Endpoint> = Vec::new();
    for _ in 0..5 {
        made.push(world.endpoint(EndpointState::Active).await);
    }
    made.sort_by_key(|endpoint| endpoint.id);
    let gone = made.remove(2);
    world.set_state(&gone, EndpointState::Deleted, 5).await;
    for app in [Some(world.app.key), None] {
        let ids = async |page| {
            let found = world.store.endpoints(app, page).await.expect("read");
            found.iter().map(|endpoint| endpoint.id).collect::<Vec<_>>()
        };
        assert_eq!(ids(page(2)).await, [made[0].id, made[1].id]);
        let behind = Page {
            after: Some(made[1].id),
            ..page(9)
        };
        assert_eq!(ids(behind).await, [made[2].id, made[3].id]);
        let newest = Page {
            newest_first: true,
            ..page(3)
        };
        assert_eq!(ids(newest).await, [made[3].id, made[2].id, made[1].id]);
        let newest_behind = Page {
            after: Some(made[1].id),
            newest_first: true,
            ..page(3)
        };
        assert_eq!(ids(newest_behind).await, [made[0].id]);
    }
    let apps = world.store.apps(page(10)).await.expect("read");
    assert_eq!(apps, std::slice::from_ref(&world.app));
}

/// A contract is stored once by revision; levels are set and cleared.
pub async fn contracts_are_stored_once(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let store = &world.store;
    let key = store.put_contract("r", "{\"a\":1}").await.expect("put_contract");
    assert_eq!(
        store.put_contract("r", "{\"a\":1}").await.expect("put_contract"),
        key
    );
    let stored = StoredContract {
        key,
        rev: "r".to_owned(),
        canonical: "{\"a\":1}".to_owned(),
    };
    assert_eq!(store.contract(key).await.expect("read"), Some(stored));
    assert_eq!(
        store.organisation_contract().await.expect("read"),
        Some(world.contract)
    );
    store
        .set_contract(Level::App(world.app.key), Some(key))
        .await
        .expect("set");
    assert_eq!(store.app_contracts().await.expect("read"), [(world.app.key, key)]);
    assert_eq!(
        store
            .app("customer-1")
            .await
            .expect("read")
            .and_then(|app| app.contract),
        Some(key)
    );
    store
        .set_contract(Level::App(world.app.key), None)
        .await
        .expect("set");
    assert!(store.app_contracts().await.expect("read").is_empty());
    let unknown = store
        .set_contract(Level::Organisation, Some(crate::ContractKey(99)))
        .await;
    assert!(matches!(unknown, Err(StoreError::NotFound { .. })));
    assert_eq!(
        store.organisation_contract().await.expect("read"),
        Some(world.contract)
    );
}

/// Tokens are listed with their hashes, revoked once, and never forgotten.
pub async fn tokens_are_listed_and_revoked(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let token = |ms, hash| Token {
        id: TokenId::at_unix_ms(ms),
        name: format!("t{ms}"),
        hash: [hash; 32],
        created_at: instant(ms),
        revoked_at: None,
    };
    let [first, second] = [token(1, 1), token(2, 2)];
    for token in [&first, &second] {
        world.store.put_token(token.clone()).await.expect("put_token");
    }
    let again = world.store.put_token(first.clone()).await;
    assert!(matches!(again, Err(StoreError::Conflict { .. })));
    world
        .store
        .revoke_token(first.id, instant(50))
        .await
        .expect("revoke");
    world
        .store
        .revoke_token(first.id, instant(90))
        .await
        .expect("revoking twice is revoking once");
    let revoked = Token {
        revoked_at: Some(instant(50)),
        ..first
    };
    assert_eq!(world.store.tokens().await.expect("read"), [revoked, second]);
    let unknown = world.store.revoke_token(TokenId::at_unix_ms(9), instant(1)).await;
    assert!(matches!(unknown, Err(StoreError::NotFound { .. })));
}

/// Whoever listens is told after the commit what to look at again.
pub async fn changes_are_told(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let mut changes = world.store.changes();
    let endpoint = world.endpoint(EndpointState::Active).await;
    assert_eq!(told(&mut changes), [Change::Endpoint(endpoint.key)]);
    world.set_state(&endpoint, EndpointState::Draining, 5).await;
    assert_eq!(told(&mut changes), [Change::Endpoint(endpoint.key)]);
    world
        .store
        .set_contract(Level::Organisation, Some(world.contract))
        .await
        .expect("set");
    assert_eq!(told(&mut changes), [Change::Contracts]);
    world
        .store
        .set_contract(Level::Endpoint(endpoint.key), Some(world.contract))
        .await
        .expect("set");
    assert_eq!(told(&mut changes), [Change::Endpoint(endpoint.key)]);
    let message = world.accept(world.message(10)).await.message.id;
    assert!(told(&mut changes).is_empty(), "an accept answers its caller");
    world.redrive(message, &endpoint, 20).await;
    assert_eq!(told(&mut changes), [Change::Work(endpoint.key)]);
}
