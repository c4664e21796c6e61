//! From a message to its end: what is sent, when the next attempt is due, and why there is none.

use crate::world::{SECRET, START, World, contract};
use contract::ledger::{DeadReason, Outcome, Trigger};
use contract::{Duration, Instant};
use engine::wire::{Fault, Sent};
use store::{DeliveryState, Level, Redrive};

fn at(ms: i64) -> Instant {
    Instant::from_unix_ms(START + ms)
}

#[tokio::test]
async fn a_fresh_message_goes_out_at_once_signed_and_named() {
    let mut world = World::new(&contract(&[])).await;
    world
        .endpoint_with("a.example", |fields| {
            fields.headers.insert("x-api-key".to_owned(), "k".to_owned());
        })
        .await;
    let id = world.send().await;
    let call = world.call().await;
    assert_eq!(&call.outgoing.body[..], b"{\"test\": 2432232314}");
    assert_eq!(call.outgoing.target.canonical(), "http://a.example/hook");
    assert_eq!(call.outgoing.timeout, Duration::from_secs(15));
    for (name, value) in [
        ("webhook-id", id.to_string().as_str()),
        ("svix-id", id.to_string().as_str()),
        ("webhook-timestamp", "1700000000"),
        ("content-type", "application/json"),
        ("x-api-key", "k"),
    ] {
        assert_eq!(call.header(name), value, "{name}");
    }
    assert!(call.header("user-agent").starts_with("Duehook/"));
    let signed = engine::sign::SignKey::parse(SECRET).unwrap();
    let mut signature = String::new();
    signed.sign_into(&id.to_string(), "1700000000", &call.outgoing.body, &mut signature);
    assert_eq!(call.header("webhook-signature"), signature);
    let attempt = call.header("duehook-attempt").to_owned();
    call.answer(204);
    world.until_state(id, DeliveryState::Succeeded).await;
    let rows = world.rows(id).await;
    assert_eq!(attempt, format!("{}; n=1", rows[0].attempt_id));
    assert_eq!(
        (rows.len(), rows[0].outcome, rows[0].status),
        (1, Some(Outcome::Succeeded), Some(204))
    );
    assert_eq!(
        (rows[0].due_at, rows[0].started_at, rows[0].wait_ms),
        (at(0), at(0), None)
    );
}

#[tokio::test]
async fn the_wait_is_counted_from_the_end_and_no_retry_is_early() {
    let mut world = World::new(&contract(&[])).await;
    world.endpoint("a.example").await;
    let id = world.send().await;
    let call = world.call().await;
    let first_id = call.header("webhook-id").to_owned();
    // The attempt takes two seconds.
    world.advance(2000);
    call.answer(503);
    world.until_state(id, DeliveryState::Pending).await;
    world.advance(9999);
    world.settle_down().await;
    assert_eq!(world.waiting_calls(), 0);
    world.advance(1);
    let call = world.call().await;
    assert_eq!(call.at, at(12_000));
    assert_eq!(
        call.header("webhook-id"),
        first_id,
        "the id is the same over all retries"
    );
    assert_eq!(
        call.header("webhook-timestamp"),
        "1700000012",
        "the time is this attempt's"
    );
    assert!(call.header("duehook-attempt").ends_with("; n=2"));
    call.answer(200);
    world.until_state(id, DeliveryState::Succeeded).await;
    let rows = world.rows(id).await;
    assert_eq!((rows[0].started_at, rows[0].ended_at), (at(0), Some(at(2000))));
    assert_eq!((rows[1].due_at, rows[1].started_at), (at(12_000), at(12_000)));
    assert_eq!(rows[1].wait_ms, Some(Duration::from_secs(10)));
    assert_eq!(rows[1].trigger, Trigger::Scheduled);
}

#[tokio::test]
async fn retry_after_is_a_floor_from_the_end_of_the_attempt() {
    let mut world = World::new(&contract(&[])).await;
    world.endpoint("a.example").await;
    let id = world.send().await;
    let call = world.call().await;
    world.advance(500);
    call.reply(Sent {
        status: Some(429),
        retry_after: Some("120".to_owned()),
        ..Sent::default()
    });
    let delivery = world.until_state(id, DeliveryState::Pending).await;
    assert_eq!(delivery.due_at, Some(at(120_500)));
    assert_eq!(
        delivery.wait,
        Some(Duration::from_secs(10)),
        "the drawn wait, before Retry-After"
    );
    assert_eq!(world.rows(id).await[0].retry_after.as_deref(), Some("120"));
}

#[tokio::test]
async fn a_terminal_status_ends_the_delivery_at_once() {
    let mut world = World::new(&contract(&[])).await;
    world.endpoint("a.example").await;
    let id = world.send().await;
    world.call().await.answer(410);
    let delivery = world.until_state(id, DeliveryState::Dead).await;
    assert_eq!(delivery.reason.as_deref(), Some(DeadReason::Terminal.word()));
    assert_eq!(delivery.attempts, 1);
}

#[tokio::test]
async fn three_attempts_are_three_attempts() {
    let mut world = World::new(&contract(&[])).await;
    world.endpoint("a.example").await;
    let id = world.send().await;
    for (wait, due) in [(0, 0), (10_000, 10_000), (60_000, 70_000)] {
        world.advance(wait);
        let call = world.call().await;
        assert_eq!(call.at, at(due));
        call.answer(500);
        world
            .until_delivery(id, |delivery| delivery.state != DeliveryState::Sending)
            .await;
    }
    let delivery = world.until_state(id, DeliveryState::Dead).await;
    assert_eq!(delivery.reason.as_deref(), Some(DeadReason::MaxAttempts.word()));
    world.advance(86_400_000);
    world.settle_down().await;
    assert_eq!((world.waiting_calls(), world.rows(id).await.len()), (0, 3));
}

#[tokio::test]
async fn every_fault_of_an_attempt_waits_its_backoff() {
    let mut world = World::new(&contract(&[])).await;
    world.endpoint("a.example").await;
    for (fault, outcome) in [
        (Fault::Failed("reset".to_owned()), Outcome::Failed),
        (Fault::TimedOut("timeout_in_body".to_owned()), Outcome::TimedOut),
        (Fault::Refused("private: x".to_owned()), Outcome::Refused),
    ] {
        let id = world.send().await;
        world.call().await.fail(fault.clone());
        let delivery = world.until_state(id, DeliveryState::Pending).await;
        assert_eq!(delivery.due_at, Some(at(10_000)), "{fault:?}");
        let row = world.rows(id).await.remove(0);
        assert_eq!((row.outcome, row.status), (Some(outcome), None), "{fault:?}");
        assert!(row.error.is_some());
    }
}

#[tokio::test]
async fn a_retry_beyond_max_age_is_not_made() {
    for (max_age, state) in [
        ("\"9s999ms\"", DeliveryState::Dead),
        ("\"10s\"", DeliveryState::Pending),
    ] {
        let mut world = World::new(&contract(&[("max_age", max_age)])).await;
        world.endpoint("a.example").await;
        let id = world.send().await;
        world.call().await.answer(500);
        let delivery = world.until_state(id, state).await;
        let reason = (state == DeliveryState::Dead).then_some("max_age");
        assert_eq!(delivery.reason.as_deref(), reason, "{max_age}");
    }
}

#[tokio::test]
async fn a_schedule_that_stops_ends_the_delivery() {
    let stops = contract(&[("waits", "[\"10s\"]"), ("then", "\"stop\"")]);
    let mut world = World::new(&stops).await;
    world.endpoint("a.example").await;
    let id = world.send().await;
    world.call().await.answer(500);
    world.until_state(id, DeliveryState::Pending).await;
    world.advance(10_000);
    world.call().await.answer(500);
    let delivery = world.until_state(id, DeliveryState::Dead).await;
    assert_eq!(delivery.reason.as_deref(), Some(DeadReason::ScheduleEnd.word()));
}

#[tokio::test]
async fn a_contract_is_taken_from_the_message_then_endpoint_then_application_then_organisation() {
    let waits = |wait: &str| contract(&[("waits", &format!("[\"{wait}\"]"))]);
    let mut world = World::new(&waits("1s")).await;
    let endpoint = world.endpoint("a.example").await;
    let levels = [
        (None, 1000),
        (Some(Level::App(world.app.key)), 2000),
        (Some(Level::Endpoint(endpoint.key)), 3000),
    ];
    for (level, wait) in levels {
        if let Some(level) = level {
            world
                .set_contract(level, &waits(&format!("{}s", wait / 1000)))
                .await;
            world.settle_down().await;
        }
        let id = world.send().await;
        world.call().await.answer(500);
        let delivery = world.until_state(id, DeliveryState::Pending).await;
        assert_eq!(delivery.due_at, Some(at(wait)), "{level:?}");
        world.store.cancel(delivery.key, "done", at(0)).await.unwrap();
    }
    let own = waits("4s");
    let mut message = world.message();
    let key = world
        .store
        .put_contract(&own.rev(), &own.canonical())
        .await
        .unwrap();
    message.contract = Some(key);
    let id = message.id;
    world.engine.accept(message).await.unwrap();
    world.call().await.answer(500);
    let delivery = world.until_state(id, DeliveryState::Pending).await;
    assert_eq!((delivery.due_at, delivery.retry), (Some(at(4000)), Some(key)));
    assert_eq!(world.rows(id).await[0].retry_rev, own.rev());
}

#[tokio::test]
async fn a_redrive_opens_the_next_number_and_is_due_now() {
    let mut world = World::new(&contract(&[])).await;
    let endpoint = world.endpoint("a.example").await;
    let id = world.send().await;
    world.call().await.answer(410);
    world.until_state(id, DeliveryState::Dead).await;
    world.advance(5);
    let redrive = Redrive {
        message: id,
        endpoint: endpoint.key,
        now: at(5),
    };
    world.store.redrive(redrive).await.unwrap();
    let call = world.call().await;
    assert!(call.header("duehook-attempt").ends_with("; n=1"), "its own count");
    call.answer(500);
    let delivery = world.until_state(id, DeliveryState::Pending).await;
    assert_eq!(
        (delivery.delivery_no.get(), delivery.due_at),
        (2, Some(at(10_005)))
    );
    let rows = world.rows(id).await;
    assert_eq!((rows[1].trigger, rows[1].started_at), (Trigger::Manual, at(5)));
    world.advance(10_000);
    world.call().await.answer(200);
    world.until_state(id, DeliveryState::Succeeded).await;
    assert_eq!(world.rows(id).await[2].trigger, Trigger::Scheduled);
}

#[tokio::test]
async fn an_endpoint_that_cannot_be_sent_to_is_refused_in_the_ledger() {
    let world = World::new(&contract(&[])).await;
    for (url, header, word) in [
        ("http://a.example:25/", "x-ok", "bad_url"),
        ("http://a.example/", "webhook-id", "bad_header"),
    ] {
        let endpoint = world
            .endpoint_with("a.example", |fields| {
                fields.url = url.to_owned();
                fields.headers.insert(header.to_owned(), "x".to_owned());
            })
            .await;
        let id = world.send().await;
        world
            .until_delivery(id, |delivery| {
                delivery.attempts == 1 && delivery.state == DeliveryState::Pending
            })
            .await;
        let row = world.rows(id).await.remove(0);
        assert_eq!(row.outcome, Some(Outcome::Refused));
        assert!(row.error.unwrap().starts_with(word));
        world
            .set_state(endpoint.key, contract::ledger::EndpointState::Deleted)
            .await;
    }
}
