//! Redrives, lists for people, counts, and what a settle keeps of an answer.

use super::Factory;
use super::world::{World, instant, page};
use crate::{DeliveryState, Next, NotClaimed, Page, Redrive, Settle, Settled, StoreError};
use bytes::Bytes;
use contract::ledger::{DeadReason, EndpointState, Outcome, Trigger};
use contract::{AttemptId, MessageId};

fn dead(world: &World<'_>) -> Next {
    Next::Dead {
        reason: DeadReason::Terminal,
        retry: world.contract,
    }
}

/// A redrive is due at once with a count of its own; its first attempt is `manual`, the next `scheduled`.
pub async fn a_redrive_counts_anew(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let claimed = world.sending(10).await;
    let message = claimed.due.message.id;
    world.settle(world.ended(&claimed, 20, dead(&world))).await;
    let opened = world.redrive(message, &endpoint, 30).await;
    assert_eq!(
        (opened.due_at, opened.opened_at, opened.attempts),
        (Some(instant(30)), instant(30), 0)
    );
    let due = world.due(&endpoint, 30).await.remove(0);
    assert_eq!(
        (due.key, due.trigger, due.first_started_at),
        (opened.key, Trigger::Manual, None)
    );
    let first = world.claim(due, 40).await.expect("claimed");
    assert_eq!((first.attempt_no.get(), first.due.delivery_no.get()), (1, 2));
    world.settle(world.ended(&first, 50, world.retry_at(60))).await;
    let due = world.due(&endpoint, 60).await.remove(0);
    assert_eq!(due.trigger, Trigger::Scheduled);
    world.claim(due, 60).await.expect("claimed");
    let attempts = world.attempts(message).await;
    let records = attempts.iter().map(|one| &one.record);
    let told: Vec<_> = records
        .map(|one| (one.delivery_no.get(), one.attempt_no.get(), one.trigger))
        .collect();
    let [scheduled, manual] = [Trigger::Scheduled, Trigger::Manual];
    assert_eq!(told, [(1, 1, scheduled), (2, 1, manual), (2, 2, scheduled)]);
}

/// A redrive at an endpoint that holds is held; at a disabled one it is recorded as dead.
pub async fn a_redrive_is_held_like_any_other(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Draining).await;
    let message = world.accept(world.message(10)).await.message.id;
    let opened = world.redrive(message, &endpoint, 20).await;
    let due = world.due(&endpoint, 20).await.remove(0);
    assert_eq!(due.key, opened.key);
    assert_eq!(world.claim(due, 30).await.expect_err("held"), NotClaimed::Held);
    world.set_state(&endpoint, EndpointState::Disabled, 40).await;
    let opened = world.redrive(message, &endpoint, 50).await;
    assert_eq!((opened.delivery_no.get(), opened.state), (3, DeliveryState::Dead));
    assert_eq!(opened.reason.as_deref(), Some("endpoint_disabled"));
}

/// To an endpoint that had no part in the fan-out, a resend opens the first number.
pub async fn a_resend_reaches_a_later_endpoint(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let message = world.accept(world.message(10)).await.message.id;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let opened = world.redrive(message, &endpoint, 20).await;
    assert_eq!(
        (opened.delivery_no.get(), opened.state),
        (1, DeliveryState::Pending)
    );
    assert_eq!(world.redrive(message, &endpoint, 30).await.delivery_no.get(), 2);
    assert_eq!(world.deliveries(message).await.len(), 2);
}

/// What is not there cannot be redriven.
pub async fn a_redrive_of_nothing_is_not_found(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let message = world.accept(world.message(10)).await.message.id;
    let other = crate::AppFields {
        name: "other".to_owned(),
        ..crate::AppFields::default()
    };
    let other = world
        .store
        .create_app(other, instant(0))
        .await
        .expect("create_app");
    let fields = crate::EndpointFields {
        url: "http://127.0.0.1:9/".to_owned(),
        ..crate::EndpointFields::default()
    };
    let secret = super::world::secret("s");
    let foreign =
        world
            .store
            .create_endpoint(other.key, fields, EndpointState::Active, secret, "me", instant(0));
    let foreign = foreign.await.expect("create_endpoint");
    let attempt = |message, endpoint| Redrive {
        message,
        endpoint,
        now: instant(20),
    };
    for redrive in [
        attempt(MessageId::at_unix_ms(5), endpoint.key),
        attempt(message, crate::EndpointKey(99)),
        attempt(message, foreign.key),
    ] {
        let refused = world.store.redrive(redrive).await;
        assert!(matches!(refused, Err(StoreError::NotFound { .. })), "{redrive:?}");
    }
    world.set_state(&endpoint, EndpointState::Deleted, 30).await;
    let refused = world.store.redrive(attempt(message, endpoint.key)).await;
    assert!(matches!(refused, Err(StoreError::NotFound { .. })));
}

/// Dead deliveries to redrive in bulk: those that nothing follows, oldest first, in pages.
pub async fn dead_lists_what_nothing_follows(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let mut messages = Vec::new();
    for ms in [10, 20, 30, 40] {
        let claimed = world.sending(ms).await;
        messages.push(claimed.due.message.id);
        let next = if ms == 20 { Next::Succeeded } else { dead(&world) };
        world.settle(world.ended(&claimed, ms + 1, next)).await;
    }
    let list = async |after, limit| {
        let found = world.store.dead(endpoint.key, after, limit).await.expect("dead");
        found
            .into_iter()
            .map(|one| (one.message, one.key))
            .collect::<Vec<_>>()
    };
    let found = list(None, 2).await;
    assert_eq!(
        found.iter().map(|one| one.0).collect::<Vec<_>>(),
        [messages[0], messages[2]]
    );
    assert_eq!(list(Some(found[1].1), 2).await[0].0, messages[3]);
    world.redrive(messages[2], &endpoint, 50).await;
    let found = list(None, 9).await;
    assert_eq!(
        found.iter().map(|one| one.0).collect::<Vec<_>>(),
        [messages[0], messages[3]]
    );
}

/// Of two claims of one delivery one is made; so it is with two settles.
pub async fn one_of_two_wins(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    world.accept(world.message(10)).await;
    let due = world.due(&endpoint, 10).await.remove(0);
    let claim = || crate::Claim {
        due: due.clone(),
        start: world.start(20),
    };
    let (_, claims) = world
        .store
        .settle_and_claim(vec![], vec![claim(), claim()])
        .await
        .expect("claims");
    assert_eq!(claims[1].as_ref().expect_err("moved"), &NotClaimed::Moved);
    let claimed = claims[0].as_ref().expect("claimed");
    let settles = vec![
        world.ended(claimed, 30, world.retry_at(100)),
        world.ended(claimed, 40, Next::Succeeded),
    ];
    let (settled, _) = world
        .store
        .settle_and_claim(settles, vec![])
        .await
        .expect("settles");
    assert_eq!(settled, [Settled::Done, Settled::Stale]);
    let record = world.attempts(due.message.id).await.remove(0).record;
    assert_eq!(
        (record.outcome, record.ended_at),
        (Some(Outcome::Failed), Some(instant(30))),
        "completed once"
    );
}

/// A settle of an attempt before the last changes nothing.
pub async fn a_late_settle_is_stale(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let first = world.sending(10).await;
    world.settle(world.ended(&first, 20, world.retry_at(30))).await;
    let due = world.due(&endpoint, 30).await.remove(0);
    let second = world.claim(due, 40).await.expect("claimed");
    assert_eq!(
        world.settle(world.ended(&first, 50, Next::Succeeded)).await,
        Settled::Stale
    );
    assert_eq!(world.only(first.due.message.id).await.0, DeliveryState::Sending);
    assert_eq!(
        world.settle(world.ended(&second, 60, Next::Succeeded)).await,
        Settled::Done
    );
}

/// Settles and claims of one call share a commit and answer in the order asked.
pub async fn settling_and_claiming_share_a_commit(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let claimed = world.sending(10).await;
    let waiting = world.accept(world.message(20)).await.message.id;
    let due = world.due(&endpoint, 20).await.remove(0);
    assert_eq!(due.message.id, waiting);
    let claim = crate::Claim {
        due,
        start: world.start(30),
    };
    let settle = world.ended(&claimed, 30, Next::Succeeded);
    let (settled, claims) = world
        .store
        .settle_and_claim(vec![settle], vec![claim])
        .await
        .expect("both");
    assert_eq!((settled, claims.len()), (vec![Settled::Done], 1));
    assert_eq!(world.only(waiting).await.0, DeliveryState::Sending);
}

/// The answer is kept: status, error, Retry-After as it came, the body's start; and the real start.
pub async fn an_answer_is_kept(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let claimed = world.sending(10).await;
    let settle = Settle {
        started_at: instant(12),
        outcome: Outcome::TimedOut,
        status: Some(503),
        error: Some("deadline passed".to_owned()),
        retry_after: Some(" 120 ".to_owned()),
        response: Bytes::from_static(b"\xff\x00busy"),
        ..world.ended(&claimed, 30, world.retry_at(100))
    };
    world.settle(settle).await;
    let attempt = world.attempts(claimed.due.message.id).await.remove(0);
    let record = &attempt.record;
    assert_eq!(
        (record.started_at, record.ended_at),
        (instant(12), Some(instant(30)))
    );
    assert_eq!(
        (record.outcome, record.status),
        (Some(Outcome::TimedOut), Some(503))
    );
    assert_eq!(record.error.as_deref(), Some("deadline passed"));
    assert_eq!(record.retry_after.as_deref(), Some(" 120 "));
    assert_eq!(&attempt.response[..], b"\xff\x00busy");
    let by_id = world
        .store
        .attempt(claimed.attempt_id)
        .await
        .expect("read")
        .expect("there");
    assert_eq!((by_id.record, by_id.response), (attempt.record, attempt.response));
    let due = world.due(&endpoint, 100).await.remove(0);
    assert_eq!(
        due.first_started_at,
        Some(instant(12)),
        "contracts count from the real start"
    );
    assert!(
        world
            .store
            .attempt(AttemptId::at_unix_ms(5))
            .await
            .expect("read")
            .is_none()
    );
}

/// Attempts of a message by start, of one endpoint if asked; of an endpoint in pages by id.
pub async fn attempts_are_listed(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let [first, second] = [
        world.endpoint(EndpointState::Active).await,
        world.endpoint(EndpointState::Active).await,
    ];
    let mut ids = Vec::new();
    for ms in [10, 20, 30] {
        let accepted = world.accept_and_start(world.message(ms)).await;
        let of_both = world
            .store
            .attempts(accepted.message.id, None)
            .await
            .expect("read");
        let of_one = world
            .store
            .attempts(accepted.message.id, Some(second.key))
            .await
            .expect("read");
        assert_eq!((of_both.len(), of_one.len()), (2, 1));
        assert_eq!(of_one[0].record.endpoint_id, second.id.to_string());
        ids.push(accepted.claimed[0].attempt_id);
    }
    let list = async |page| {
        let found = world
            .store
            .attempts_of_endpoint(first.key, page)
            .await
            .expect("read");
        found
            .iter()
            .map(|one| one.record.attempt_id.clone())
            .collect::<Vec<_>>()
    };
    let texts: Vec<_> = ids.iter().map(ToString::to_string).collect();
    assert_eq!(list(page(2)).await, texts[..2]);
    let behind = Page {
        after: Some(ids[1]),
        newest_first: true,
        limit: 9,
    };
    assert_eq!(list(behind).await, texts[..1]);
    // A place between ids: the bits of a time alone.
    let at_twenty = u128::from(super::world::BEGIN.unsigned_abs() + 20) << 80;
    let behind = Page {
        after: Some(AttemptId::from_bits(at_twenty)),
        ..page(9)
    };
    assert_eq!(list(behind).await, texts[1..]);
}

/// Messages of an application in pages by id.
pub async fn messages_are_listed(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let mut ids = Vec::new();
    for ms in [30, 10, 20] {
        ids.push(world.accept(world.message(ms)).await.message.id);
    }
    ids.sort();
    let list = async |app, page| {
        let found = world.store.messages(app, page).await.expect("read");
        found.iter().map(|one| one.id).collect::<Vec<_>>()
    };
    assert_eq!(list(world.app.key, page(2)).await, ids[..2]);
    let newest = Page {
        after: Some(ids[2]),
        newest_first: true,
        limit: 9,
    };
    assert_eq!(list(world.app.key, newest).await, [ids[1], ids[0]]);
    assert!(list(crate::AppKey(99), page(9)).await.is_empty());
}

/// Counts by state follow every move.
pub async fn counts_follow_every_move(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let told = async || {
        let counts = world.store.counts().await.expect("counts");
        [
            counts.pending,
            counts.held,
            counts.sending,
            counts.succeeded,
            counts.dead,
            counts.cancelled,
        ]
    };
    let [a, b, c, d] = [
        world.sending(10).await,
        world.sending(11).await,
        world.sending(12).await,
        world.sending(13).await,
    ];
    assert_eq!(told().await, [0, 0, 4, 0, 0, 0]);
    world.settle(world.ended(&a, 20, Next::Succeeded)).await;
    world.settle(world.ended(&b, 20, dead(&world))).await;
    world.settle(world.ended(&c, 20, world.retry_at(30))).await;
    world.settle(world.ended(&d, 20, Next::Released)).await;
    assert_eq!(told().await, [2, 0, 0, 1, 1, 0]);
    world.set_state(&endpoint, EndpointState::Draining, 30).await;
    assert_eq!(told().await, [0, 2, 0, 1, 1, 0]);
    world
        .store
        .cancel(c.due.key, "why", instant(40))
        .await
        .expect("cancel");
    world.redrive(d.due.message.id, &endpoint, 50).await;
    assert_eq!(told().await, [0, 1, 0, 1, 1, 2]);
    let before = told().await;
    let world = world.crash().await;
    let counts = world.store.counts().await.expect("counts");
    let after = [
        counts.pending,
        counts.held,
        counts.sending,
        counts.succeeded,
        counts.dead,
        counts.cancelled,
    ];
    assert_eq!(after, before);
}
