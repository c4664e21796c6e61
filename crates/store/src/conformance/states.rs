//! Both state tables of spec/engine.md, cell by cell: what a delivery's state lets happen, and what an endpoint's state
//! does to new messages, waiting deliveries and attempts in flight.

use super::Factory;
use super::World;
use super::world::{at, instant};
use crate::{Claimed, DeliveryState, Due, Endpoint, Next, NotClaimed, Settled};
use contract::MessageId;
use contract::ledger::{DeadReason, DeliveryEventKind, EndpointState, Outcome};

/// A delivery brought into a state, as the calls see it.
struct Subject {
    message: MessageId,
    endpoint: Endpoint,
    /// As `due` showed it before anything happened.
    due: Due,
    /// The attempt that was made on its way, if any.
    claimed: Option<Claimed>,
}

async fn subject(world: &World<'_>, state: DeliveryState) -> Subject {
    let endpoint = world.endpoint(EndpointState::Active).await;
    let message = world.accept(world.message(10)).await.message.id;
    let due = world.due(&endpoint, 20).await.remove(0);
    let mut subject = Subject {
        message,
        endpoint,
        due: due.clone(),
        claimed: None,
    };
    if state == DeliveryState::Pending {
        return subject;
    }
    if state == DeliveryState::Cancelled {
        assert!(
            world
                .store
                .cancel(due.key, "not wanted", instant(30))
                .await
                .expect("cancel")
        );
        return subject;
    }
    let claimed = world.claim(due, 30).await.expect("claimed");
    let next = match state {
        DeliveryState::Succeeded => Some(Next::Succeeded),
        DeliveryState::Dead => Some(Next::Dead {
            reason: DeadReason::Terminal,
            retry: world.contract,
        }),
        _ => None,
    };
    if let Some(next) = next {
        assert_eq!(world.settle(world.ended(&claimed, 40, next)).await, Settled::Done);
    }
    subject.claimed = Some(claimed);
    subject
}

fn events(records: &super::Records) -> Vec<(DeliveryEventKind, u32, Option<&str>)> {
    let event = |event: &contract::ledger::DeliveryEvent| (event.event, event.delivery_no.get());
    records
        .delivery_events
        .iter()
        .map(|one| (event(one).0, event(one).1, one.reason.as_deref()))
        .collect()
}

/// What never moves a delivery in this state: claims, settles, cancelling and expiry, as far as `allowed` leaves them.
async fn nothing_else_moves(world: &World<'_>, subject: &Subject, state: DeliveryState, settles: bool) {
    let before = world.deliveries(subject.message).await;
    assert_eq!(before[0].state, state);
    assert_eq!(
        world.claim(subject.due.clone(), 50).await.expect_err("no claim"),
        NotClaimed::Moved
    );
    assert!(
        !world
            .store
            .cancel(subject.due.key, "late", instant(50))
            .await
            .expect("cancel")
    );
    let expired = vec![(subject.due.key, world.contract)];
    assert_eq!(world.store.expire(expired, instant(50)).await.expect("expire"), 0);
    if let (true, Some(claimed)) = (settles, &subject.claimed) {
        for next in [Next::Succeeded, world.retry_at(99), Next::Released] {
            assert_eq!(world.settle(world.ended(claimed, 60, next)).await, Settled::Stale);
        }
    }
    assert_eq!(world.deliveries(subject.message).await, before);
}

/// pending, claim → sending; the attempt is written as started (I2).
pub async fn pending_is_claimed(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let subject = subject(&world, DeliveryState::Pending).await;
    let claimed = world.claim(subject.due, 30).await.expect("claimed");
    assert_eq!(claimed.attempt_no.get(), 1);
    assert_eq!(world.only(subject.message).await, (DeliveryState::Sending, None));
    let attempts = world.attempts(subject.message).await;
    assert_eq!(attempts.len(), 1);
    let record = &attempts[0].record;
    assert_eq!(
        (record.started_at, record.ended_at, record.outcome),
        (instant(30), None, None)
    );
    assert_eq!(record.attempt_id, claimed.attempt_id.to_string());
}

/// pending, cancel → cancelled.
pub async fn pending_is_cancelled(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let subject = subject(&world, DeliveryState::Cancelled).await;
    let reason = Some("not wanted".to_owned());
    assert_eq!(
        world.only(subject.message).await,
        (DeliveryState::Cancelled, reason)
    );
    let ledger = world.ledger().await;
    let cancelled = (DeliveryEventKind::Cancelled, 1, Some("not wanted"));
    assert_eq!(events(&ledger), [(DeliveryEventKind::Opened, 1, None), cancelled]);
}

/// pending, expiry → dead: `max_age`.
pub async fn pending_expires(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let subject = subject(&world, DeliveryState::Pending).await;
    let expired = vec![(subject.due.key, world.contract)];
    assert_eq!(world.store.expire(expired, instant(50)).await.expect("expire"), 1);
    let reason = Some("max_age".to_owned());
    assert_eq!(world.only(subject.message).await, (DeliveryState::Dead, reason));
    assert!(world.due(&subject.endpoint, 100).await.is_empty());
}

/// pending, redrive → superseded; the next number is due now.
pub async fn pending_is_superseded(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let subject = subject(&world, DeliveryState::Pending).await;
    let second = world.redrive(subject.message, &subject.endpoint, 50).await;
    assert_eq!(
        (second.delivery_no.get(), second.state),
        (2, DeliveryState::Pending)
    );
    let deliveries = world.deliveries(subject.message).await;
    assert_eq!(deliveries[0].state, DeliveryState::Cancelled);
    let due = world.due(&subject.endpoint, 50).await;
    assert_eq!(due.iter().map(|due| due.key).collect::<Vec<_>>(), [second.key]);
    let ledger = world.ledger().await;
    let kinds: Vec<_> = events(&ledger)
        .iter()
        .map(|(kind, number, _)| (*kind, *number))
        .collect();
    let [opened, superseded] = [DeliveryEventKind::Opened, DeliveryEventKind::Superseded];
    assert_eq!(kinds, [(opened, 1), (superseded, 1), (opened, 2)]);
}

/// sending, success → succeeded.
pub async fn sending_succeeds(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let subject = subject(&world, DeliveryState::Succeeded).await;
    assert_eq!(
        world.only(subject.message).await,
        (DeliveryState::Succeeded, None)
    );
    let delivery = world.deliveries(subject.message).await.remove(0);
    assert_eq!(
        (delivery.closed_at, delivery.due_at, delivery.attempts),
        (Some(instant(40)), None, 1)
    );
    let record = world.attempts(subject.message).await.remove(0).record;
    assert_eq!(
        (record.ended_at, record.outcome, record.status),
        (Some(instant(40)), Some(Outcome::Succeeded), Some(204))
    );
}

/// sending, failure with attempts left → pending, with its due time, wait and contract.
pub async fn sending_fails_and_waits(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let subject = subject(&world, DeliveryState::Sending).await;
    let claimed = subject.claimed.expect("claimed");
    let settled = world.settle(world.ended(&claimed, 40, world.retry_at(500))).await;
    assert_eq!(settled, Settled::Done);
    let delivery = world.deliveries(subject.message).await.remove(0);
    assert_eq!(
        (delivery.state, delivery.due_at),
        (DeliveryState::Pending, Some(instant(500)))
    );
    assert!(world.due(&subject.endpoint, 499).await.is_empty());
    let due = world.due(&subject.endpoint, 500).await.remove(0);
    assert_eq!((due.attempts, due.retry), (1, Some(world.contract)));
    assert_eq!(due.wait.map(contract::Duration::as_ms), Some(1234));
    assert_eq!(due.first_started_at, Some(instant(30)));
    let second = world.claim(due, 510).await.expect("claimed");
    assert_eq!(second.attempt_no.get(), 2);
    let record = world.attempts(subject.message).await.remove(1).record;
    assert_eq!(
        (record.due_at, record.wait_ms.map(contract::Duration::as_ms)),
        (instant(500), Some(1234))
    );
}

/// sending, failure without attempts left → dead, with the reason and the contract that decided it.
pub async fn sending_fails_and_is_dead(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let subject = subject(&world, DeliveryState::Sending).await;
    let other = world
        .store
        .put_contract("rev-2", "{}")
        .await
        .expect("put_contract");
    let next = Next::Dead {
        reason: DeadReason::MaxAttempts,
        retry: other,
    };
    let claimed = subject.claimed.expect("claimed");
    assert_eq!(world.settle(world.ended(&claimed, 40, next)).await, Settled::Done);
    let reason = Some("max_attempts".to_owned());
    assert_eq!(world.only(subject.message).await, (DeliveryState::Dead, reason));
    let ledger = world.ledger().await;
    let dead = &ledger.delivery_events[1];
    assert_eq!(
        (dead.event, dead.at, dead.retry_rev.as_str()),
        (DeliveryEventKind::Dead, instant(40), "rev-2")
    );
}

/// sending, released (never sent) → pending as it was; the row is taken back.
pub async fn sending_is_released(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let subject = subject(&world, DeliveryState::Sending).await;
    let claimed = subject.claimed.expect("claimed");
    assert_eq!(
        world.settle(world.ended(&claimed, 40, Next::Released)).await,
        Settled::Done
    );
    assert!(world.attempts(subject.message).await.is_empty());
    let due = world.due(&subject.endpoint, 40).await.remove(0);
    assert_eq!((due.attempts, due.first_started_at), (0, None));
    assert_eq!(
        (due.due_at, due.due_boot),
        (subject.due.due_at, subject.due.due_boot)
    );
    let again = world.claim(due, 50).await.expect("claimed");
    assert_eq!(again.attempt_no.get(), 1);
}

/// sending, redrive → superseded; its attempt still ends, and changes nothing more.
pub async fn sending_is_superseded(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let subject = subject(&world, DeliveryState::Sending).await;
    let second = world.redrive(subject.message, &subject.endpoint, 35).await;
    let claimed = subject.claimed.expect("claimed");
    assert_eq!(
        world.settle(world.ended(&claimed, 40, Next::Succeeded)).await,
        Settled::Stale
    );
    let states: Vec<_> = world
        .deliveries(subject.message)
        .await
        .iter()
        .map(|one| one.state)
        .collect();
    assert_eq!(states, [DeliveryState::Cancelled, DeliveryState::Pending]);
    let record = world.attempts(subject.message).await.remove(0).record;
    assert_eq!(
        (record.delivery_no.get(), record.outcome),
        (1, Some(Outcome::Succeeded))
    );
    assert_eq!(second.delivery_no.get(), 2);
}

/// sending: claiming, cancelling and expiring find it moved.
pub async fn sending_moves_by_its_settle_alone(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let subject = subject(&world, DeliveryState::Sending).await;
    nothing_else_moves(&world, &subject, DeliveryState::Sending, false).await;
}

/// succeeded: final. A resend opens the next number.
pub async fn succeeded_is_final(factory: &dyn Factory) {
    final_but_for_a_redrive(factory, DeliveryState::Succeeded).await;
}

/// dead: final. A redrive opens the next number.
pub async fn dead_is_final(factory: &dyn Factory) {
    final_but_for_a_redrive(factory, DeliveryState::Dead).await;
}

/// cancelled: final.
pub async fn cancelled_is_final(factory: &dyn Factory) {
    final_but_for_a_redrive(factory, DeliveryState::Cancelled).await;
}

async fn final_but_for_a_redrive(factory: &dyn Factory, state: DeliveryState) {
    let world = World::new(factory).await;
    let subject = subject(&world, state).await;
    nothing_else_moves(&world, &subject, state, true).await;
    let second = world.redrive(subject.message, &subject.endpoint, 70).await;
    assert_eq!((second.delivery_no.get(), second.attempts), (2, 0));
    let deliveries = world.deliveries(subject.message).await;
    assert_eq!(
        (deliveries[0].state, deliveries[1].state),
        (state, DeliveryState::Pending)
    );
}

// ---- endpoints ----------------------------------------------------------------------------------------------

/// active, new message: fans out.
pub async fn active_gets_new_messages(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let accepted = world.accept(world.message(10)).await;
    assert_eq!(
        (accepted.deliveries, accepted.due_at_endpoints),
        (1, vec![endpoint.key])
    );
    let started = world.accept_and_start(world.message(11)).await;
    assert_eq!((started.claimed.len(), started.due_at_endpoints.len()), (1, 0));
}

/// active, waiting: goes when due, not before.
pub async fn active_goes_when_due(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    world.accept(world.message(10)).await;
    assert!(world.due(&endpoint, 9).await.is_empty());
    let due = world.due(&endpoint, 10).await.remove(0);
    world.claim(due, 10).await.expect("claimed");
}

/// active, in flight: ends as it ends.
pub async fn active_attempts_finish(factory: &dyn Factory) {
    attempts_finish(factory, EndpointState::Active).await;
}

/// draining, new message: fans out and is held. The gate is not even asked.
pub async fn draining_holds_new_messages(factory: &dyn Factory) {
    let world = World::new(factory).await;
    world.endpoint(EndpointState::Draining).await;
    let gate = world.open_gate(10);
    let message = world.message(10);
    let accepted = world.store.accept(message, gate.clone()).await.expect("accept");
    assert_eq!(
        (
            accepted.deliveries,
            accepted.claimed.len(),
            accepted.due_at_endpoints.len()
        ),
        (1, 0, 0)
    );
    assert_eq!(gate.reserved.load(std::sync::atomic::Ordering::SeqCst), 0);
    assert_eq!(world.only(accepted.message.id).await.0, DeliveryState::Pending);
    let counts = world.store.counts().await.expect("counts");
    assert_eq!((counts.pending, counts.held), (0, 1));
}

/// draining, waiting: held; a claim is refused inside its transaction (I4), and goes after re-activation.
pub async fn draining_holds_what_waits(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let message = world.accept(world.message(10)).await.message.id;
    let due = world.due(&endpoint, 20).await.remove(0);
    world.set_state(&endpoint, EndpointState::Draining, 20).await;
    assert_eq!(
        world.claim(due.clone(), 30).await.expect_err("held"),
        NotClaimed::Held
    );
    assert!(world.attempts(message).await.is_empty());
    assert_eq!(
        world
            .store
            .bury(endpoint.key, instant(30), 10)
            .await
            .expect("bury"),
        0
    );
    world.set_state(&endpoint, EndpointState::Active, 40).await;
    world.claim(due, 50).await.expect("claimed");
}

/// draining, in flight: finishes; a failure waits, held.
pub async fn draining_attempts_finish(factory: &dyn Factory) {
    attempts_finish(factory, EndpointState::Draining).await;
}

/// disabled, new message: recorded as dead `endpoint_disabled`, redrivable.
pub async fn disabled_records_new_messages_as_dead(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Disabled).await;
    let accepted = world.accept_and_start(world.message(10)).await;
    assert_eq!(
        (
            accepted.deliveries,
            accepted.claimed.len(),
            accepted.due_at_endpoints.len()
        ),
        (1, 0, 0)
    );
    let message = accepted.message.id;
    let dead = (DeliveryState::Dead, Some("endpoint_disabled".to_owned()));
    assert_eq!(world.only(message).await, dead);
    let ledger = world.ledger().await;
    let reason = Some("endpoint_disabled");
    assert_eq!(
        events(&ledger),
        [
            (DeliveryEventKind::Opened, 1, None),
            (DeliveryEventKind::Dead, 1, reason)
        ]
    );
    world.set_state(&endpoint, EndpointState::Active, 20).await;
    let second = world.redrive(message, &endpoint, 30).await;
    assert_eq!(world.due(&endpoint, 30).await[0].key, second.key);
}

/// disabled, waiting: dead in batches, redrivable.
pub async fn disabled_buries_what_waits(factory: &dyn Factory) {
    buried(factory, EndpointState::Disabled, "endpoint_disabled").await;
}

/// disabled, in flight: finishes; a failure that would wait is dead.
pub async fn disabled_attempts_finish(factory: &dyn Factory) {
    attempts_finish(factory, EndpointState::Disabled).await;
}

/// deleted, new message: not wanted any more.
pub async fn deleted_gets_no_new_messages(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    world.set_state(&endpoint, EndpointState::Deleted, 5).await;
    let accepted = world.accept_and_start(world.message(10)).await;
    assert_eq!((accepted.deliveries, accepted.claimed.len()), (0, 0));
}

/// deleted, waiting: dead in batches.
pub async fn deleted_buries_what_waits(factory: &dyn Factory) {
    buried(factory, EndpointState::Deleted, "endpoint_deleted").await;
}

/// deleted, in flight: finishes; a failure that would wait is dead.
pub async fn deleted_attempts_finish(factory: &dyn Factory) {
    attempts_finish(factory, EndpointState::Deleted).await;
}

async fn buried(factory: &dyn Factory, state: EndpointState, reason: &str) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let mut messages = Vec::new();
    for ms in 10..15 {
        messages.push(world.accept(world.message(ms)).await.message.id);
    }
    let due = world.due(&endpoint, 20).await.remove(0);
    assert_eq!(
        world
            .store
            .bury(endpoint.key, instant(20), 10)
            .await
            .expect("bury"),
        0,
        "still active"
    );
    world.set_state(&endpoint, state, 20).await;
    assert_eq!(world.claim(due, 25).await.expect_err("held"), NotClaimed::Held);
    for expected in [2, 2, 1, 0] {
        assert_eq!(
            world
                .store
                .bury(endpoint.key, instant(30), 2)
                .await
                .expect("bury"),
            expected
        );
    }
    for message in messages {
        assert_eq!(
            world.only(message).await,
            (DeliveryState::Dead, Some(reason.to_owned()))
        );
    }
}

/// An attempt in flight when its endpoint leaves `active`: a success is one, a failure that would wait does so (held)
/// or is dead, and one that was never sent likewise.
async fn attempts_finish(factory: &dyn Factory, state: EndpointState) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let [succeeds, fails, unsent] = [
        world.sending(10).await,
        world.sending(11).await,
        world.sending(12).await,
    ];
    world.set_state(&endpoint, state, 20).await;
    let ended = [
        world.settle(world.ended(&succeeds, 30, Next::Succeeded)).await,
        world.settle(world.ended(&fails, 30, world.retry_at(40))).await,
        world.settle(world.ended(&unsent, 30, Next::Released)).await,
    ];
    let waits = match state {
        EndpointState::Active | EndpointState::Draining => (Settled::Done, DeliveryState::Pending),
        EndpointState::Disabled => (Settled::Dead(DeadReason::EndpointDisabled), DeliveryState::Dead),
        EndpointState::Deleted => (Settled::Dead(DeadReason::EndpointDeleted), DeliveryState::Dead),
    };
    assert_eq!(ended, [Settled::Done, waits.0, waits.0]);
    let expected = [DeliveryState::Succeeded, waits.1, waits.1];
    for (claimed, expected) in [succeeds, fails, unsent].iter().zip(expected) {
        assert_eq!(world.only(claimed.due.message.id).await.0, expected);
    }
    if state == EndpointState::Draining {
        let due = world.store.due(endpoint.key, at(50), 10, &[]).await.expect("due");
        assert_eq!(
            world.claim(due[0].clone(), 50).await.expect_err("held"),
            NotClaimed::Held
        );
    }
}
